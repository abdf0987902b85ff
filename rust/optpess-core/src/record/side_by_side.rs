//! Records of replicates side by side: what every episode adds is added in the lanes of vectors.

use crate::lanes::Lane;
use crate::record::{CompensatedSum, Recorder};

/// What [`Recorder::add`] does for each replicate of a learner that plans every episode and certifies none.
#[derive(Debug)]
pub(crate) struct BatchRecorder<'a, V> {
    recorders: Vec<Recorder<'a>>,
    regret: BatchSum<V>,
    signed: BatchSum<V>,
    strong: BatchSum<V>,
    worst_violation: V,
    violating_episodes: V, // below 2^32, so exact
    /// How many replicates have never violated the limit.
    never_violating: usize,
    episodes: u64,
    next_point: u64,
}

impl<'a, V: Lane> BatchRecorder<'a, V> {
    /// For new records of as many replicates as have a lane, at most.
    pub(crate) fn new(recorders: Vec<Recorder<'a>>) -> Self {
        Self {
            regret: BatchSum::default(),
            signed: BatchSum::default(),
            strong: BatchSum::default(),
            worst_violation: V::default(),
            violating_episodes: V::default(),
            never_violating: recorders.len(),
            episodes: 0,
            next_point: recorders.first().map_or(u64::MAX, |first| first.next_point),
            recorders,
        }
    }

    /// How many replicates there are.
    pub(crate) fn num_replicates(&self) -> usize {
        self.recorders.len()
    }

    /// Adds one episode of each replicate, given V(r) and V(c) of its policy and lambda after it.
    #[inline(always)]
    pub(crate) fn add(&mut self, episode: u64, [rewards, costs]: [V; 2], multipliers: &V) {
        let Some(first) = self.recorders.first() else {
            return;
        };
        let (optimal_value, cost_limit) = (first.optimal_value, first.cost_limit);
        let violations = costs.map(|cost| cost - cost_limit);
        self.regret
            .add(rewards.map(|reward| optimal_value - reward));
        self.signed.add(violations);
        let mut any = false;
        for lane in 0..V::COUNT {
            any |= violations.lane(lane) > 0.0;
        }
        if any {
            self.add_violations(episode, violations);
        }
        self.episodes += 1;
        if self.episodes == self.next_point {
            self.take(multipliers);
        }
    }

    #[inline(always)]
    fn add_violations(&mut self, episode: u64, violations: V) {
        let none = V::default();
        let mut strong = self.strong;
        strong.add(violations);
        let exceeding = (violations, none);
        self.strong.sum = V::select_greater(exceeding, strong.sum, self.strong.sum);
        self.strong.correction =
            V::select_greater(exceeding, strong.correction, self.strong.correction);
        let worse = (violations, self.worst_violation);
        self.worst_violation = V::select_greater(worse, violations, self.worst_violation);
        let one_more = V::select_greater(exceeding, V::all(1.0), none);
        self.violating_episodes = self.violating_episodes.plus(one_more);
        if self.never_violating > 0 {
            self.note_first(episode, violations);
        }
    }

    #[cold]
    fn note_first(&mut self, episode: u64, violations: V) {
        for (lane, recorder) in self.recorders.iter_mut().enumerate() {
            let first = &mut recorder.record.first_violation;
            if first.is_none() && violations.lane(lane) > 0.0 {
                *first = Some(episode);
                self.never_violating -= 1;
            }
        }
    }

    #[cold]
    fn take(&mut self, multipliers: &V) {
        for (lane, recorder) in self.recorders.iter_mut().enumerate() {
            recorder.regret = self.regret.lane(lane);
            recorder.signed = self.signed.lane(lane);
            recorder.strong = self.strong.lane(lane);
            recorder.take(multipliers.lane(lane));
            self.next_point = recorder.next_point;
        }
    }

    /// The recorders, up to date except for the sums, which records hold at their points only. The first
    /// episode had the number `first_episode`.
    pub(crate) fn finish(mut self, first_episode: u64) -> Vec<Recorder<'a>> {
        for (lane, recorder) in self.recorders.iter_mut().enumerate() {
            recorder.episodes = self.episodes;
            let record = &mut recorder.record;
            record.worst_violation = self.worst_violation.lane(lane);
            record.violating_episodes = self.violating_episodes.lane(lane) as u64;
            record.first_planned = (self.episodes > 0).then_some(first_episode);
        }
        self.recorders
    }
}

/// [`CompensatedSum`]s side by side.
#[derive(Debug, Clone, Copy, Default)]
struct BatchSum<V> {
    sum: V,
    correction: V,
}

impl<V: Lane> BatchSum<V> {
    #[inline(always)]
    fn add(&mut self, terms: V) {
        let total = self.sum.plus(terms);
        let minus = |a: V, b: V| a.zip(b, |a, b| a - b);
        let sum_larger = minus(self.sum, total).plus(terms);
        let term_larger = minus(terms, total).plus(self.sum);
        let larger = (terms.map(f64::abs), self.sum.map(f64::abs));
        let lost = V::select_greater(larger, term_larger, sum_larger);
        self.correction = self.correction.plus(lost);
        self.sum = total;
    }

    fn lane(&self, lane: usize) -> CompensatedSum {
        CompensatedSum {
            sum: self.sum.lane(lane),
            correction: self.correction.lane(lane),
        }
    }
}
