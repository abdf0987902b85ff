//! The record of a run: curves at record points and exact totals. True values come from the judge.

mod schedule;
mod spread;
mod state;
mod sum;

pub use schedule::record_points;
pub use spread::{Spread, SpreadCurve};
pub use state::RecorderState;
pub use sum::CompensatedSum;

use serde::{Deserialize, Serialize};
use strum::EnumCount;

use crate::learn::{Deployment, Mixture, PolicySource};
use crate::number::Number;

/// The true value and cost of what is deployed: a policy, or a mixture. The values of a mixture are the weighted sums of
/// its members' values, so they do not depend on the coin.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrueValues {
    /// V(r).
    pub reward: f64,
    /// V(c) of the first constraint.
    pub cost: f64,
    /// The largest V(c_m) - tau_m of any constraint m.
    pub excess: f64,
}

impl TrueValues {
    /// Values from V(r), and from V(c_m) and tau_m of every constraint; there is at least one.
    #[must_use]
    #[inline(always)]
    pub fn new(reward: f64, costs: &[f64], limits: &[f64]) -> Self {
        let excesses = costs.iter().zip(limits).map(|(cost, limit)| cost - limit);
        Self {
            reward,
            cost: costs[0],
            excess: excesses.fold(f64::NEG_INFINITY, f64::max),
        }
    }
}

/// The record of one replicate: curves at the record points, exact totals.
///
/// V(r) and V(c) are those of what is deployed: of the policy, or of the mixture. With several constraints V(c) - tau
/// stands for the largest V(c_m) - tau_m of any of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplicateRecord {
    /// sum of V* - V(r) up to each record point, signed.
    pub reward_regret: Vec<f64>,
    /// sum of V(c) - tau up to each record point, signed; the weak violation is its positive part.
    pub signed_violation: Vec<f64>,
    /// sum of the positive parts of V(c) - tau up to each record point.
    pub strong_violation: Vec<f64>,
    /// lambda after each record point.
    pub multiplier: Vec<f64>,
    /// V(r) of the episodes since the record point before.
    pub deployed_value: SpreadCurve,
    /// V(c_m) of the episodes since the record point before, `[T, M]`.
    pub deployed_cost: SpreadCurve,
    /// The share of the episodes since the record point before that played pi0.
    pub baseline_share: Vec<f64>,
    /// The largest V(c) - tau of any episode, or 0.
    pub worst_violation: f64,
    /// How many episodes had V(c) > tau.
    pub violating_episodes: u64,
    /// The first of them, from 0.
    pub first_violation: Option<u64>,
    /// How many episodes played pi0.
    pub baseline_episodes: u64,
    /// How many of those were spent on estimating its cost.
    pub estimation_episodes: u64,
    /// The first episode that did not play pi0, from 0.
    pub first_planned: Option<u64>,
    /// The least slack of any certificate; infinite if there was none.
    pub least_slack: f64,
    /// How many certificates needed a repair, and the largest.
    pub repairs: (u64, f64),
    /// The safe cost that the learner used at the end; NaN if it was never known.
    pub safe_cost: f64,
    /// How many episodes played a policy of each source, in the order of [`PolicySource`].
    pub plays: [u64; PolicySource::COUNT],
    /// The probability that an episode does not play pi0, of the mixture deployed last before each record point; NaN
    /// before the first mixture. Empty for learners that deploy no mixtures.
    pub weight: Vec<f64>,
    /// The upper bounds of that mixture on its expected costs, `[T, M]`, likewise.
    pub certified_cost: Vec<f64>,
    /// How many different mixtures were deployed.
    pub mixtures: u64,
}

impl ReplicateRecord {
    fn new(num_points: usize) -> Self {
        let curve = || Vec::with_capacity(num_points);
        Self {
            reward_regret: curve(),
            signed_violation: curve(),
            strong_violation: curve(),
            multiplier: curve(),
            deployed_value: SpreadCurve::default(),
            deployed_cost: SpreadCurve::default(),
            baseline_share: curve(),
            worst_violation: 0.0,
            violating_episodes: 0,
            first_violation: None,
            baseline_episodes: 0,
            estimation_episodes: 0,
            first_planned: None,
            least_slack: f64::INFINITY,
            repairs: (0, 0.0),
            safe_cost: f64::NAN,
            plays: [0; PolicySource::COUNT],
            weight: Vec::new(),
            certified_cost: Vec::new(),
            mixtures: 0,
        }
    }
}

/// What a record keeps of a mixture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct NotedMixture {
    number: u64,
    weight: f64,
    cost_bounds: Vec<f64>, // [M]
}

/// Sums the episodes of one replicate, or of several in lanes, into records. Memory does not grow with their number.
#[derive(Debug)]
pub struct Recorder<'a, V: Number = f64> {
    points: &'a [u64],
    optimal_value: f64,
    cost_limit: f64,
    regret: CompensatedSum<V>,
    signed: CompensatedSum<V>,
    strong: CompensatedSum<V>,
    rewards: Spread<V>,    // V(r) since the last record point
    costs: Vec<Spread<V>>, // [M], V(c_m) since the last record point
    worst_violation: V,
    violating_episodes: V, // below 2^53, so exact
    /// How many replicates have never violated the limit.
    never_violating: usize,
    episodes: u64,
    last_point: u64,
    next_point: u64,
    /// pi0 in each replicate up to the last record point.
    baseline_before: Vec<u64>,
    /// The mixture deployed last; None for learners that deploy none, and so for replicates in lanes.
    mixture: Option<NotedMixture>,
    records: Vec<ReplicateRecord>, // one a replicate
}

impl<'a, V: Number> Recorder<'a, V> {
    /// Records at these points, for as many replicates as have a lane, at most. There is at least one limit.
    #[must_use]
    pub fn new(
        points: &'a [u64],
        optimal_value: f64,
        limits: &[f64],
        num_replicates: usize,
    ) -> Self {
        let records = (0..num_replicates).map(|_| ReplicateRecord::new(points.len()));
        Self {
            points,
            optimal_value,
            cost_limit: limits[0],
            regret: CompensatedSum::default(),
            signed: CompensatedSum::default(),
            strong: CompensatedSum::default(),
            rewards: Spread::default(),
            costs: vec![Spread::default(); limits.len()],
            worst_violation: V::default(),
            violating_episodes: V::default(),
            never_violating: num_replicates,
            episodes: 0,
            last_point: 0,
            next_point: points.first().copied().unwrap_or(u64::MAX),
            baseline_before: vec![0; num_replicates],
            mixture: None,
            records: records.collect(),
        }
    }

    /// How many replicates there are.
    #[must_use]
    pub fn num_replicates(&self) -> usize {
        self.records.len()
    }

    /// Adds one episode of each replicate, given V(r) and V(c) of its policy and lambda after it. There is one
    /// constraint.
    #[inline(always)]
    pub fn add(&mut self, episode: u64, [reward, cost]: [V; 2], multiplier: V) {
        let violation = cost.map(|cost| cost - self.cost_limit);
        self.costs[0].add(cost);
        self.add_episode(episode, [reward, violation], multiplier);
    }

    #[inline(always)]
    fn add_episode(&mut self, episode: u64, [reward, violation]: [V; 2], multiplier: V) {
        self.regret
            .add(reward.map(|reward| self.optimal_value - reward));
        self.rewards.add(reward);
        self.signed.add(violation);
        let mut any = false;
        for lane in 0..V::COUNT {
            any |= violation.lane(lane) > 0.0;
        }
        if any {
            self.add_violations(episode, violation);
        }
        self.episodes += 1;
        if self.episodes == self.next_point {
            self.take(multiplier);
        }
    }

    #[inline(always)]
    fn add_violations(&mut self, episode: u64, violation: V) {
        self.strong.add_positive(violation);
        let (none, one) = (V::default(), V::all(1.0));
        let worse = (violation, self.worst_violation);
        self.worst_violation = V::select_greater(worse, violation, self.worst_violation);
        let one_more = V::select_greater((violation, none), one, none);
        self.violating_episodes = self.violating_episodes.plus(one_more);
        if self.never_violating > 0 {
            self.note_first(episode, violation);
        }
    }

    #[cold]
    fn note_first(&mut self, episode: u64, violation: V) {
        for (lane, record) in self.records.iter_mut().enumerate() {
            let first = &mut record.first_violation;
            if first.is_none() && violation.lane(lane) > 0.0 {
                *first = Some(episode);
                self.never_violating -= 1;
            }
        }
    }

    #[cold]
    fn take(&mut self, multiplier: V) {
        let [regret, signed, strong] = [&self.regret, &self.signed, &self.strong];
        let [regret, signed, strong] = [regret.value(), signed.value(), strong.value()];
        let count = self.episodes - self.last_point;
        let mut taken = 0;
        for (lane, record) in self.records.iter_mut().enumerate() {
            record.reward_regret.push(regret.lane(lane));
            record.signed_violation.push(signed.lane(lane));
            record.strong_violation.push(strong.lane(lane));
            record.multiplier.push(multiplier.lane(lane));
            record
                .deployed_value
                .push(self.rewards.of_lane(lane, count));
            for costs in &self.costs {
                record.deployed_cost.push(costs.of_lane(lane, count));
            }
            let before =
                std::mem::replace(&mut self.baseline_before[lane], record.baseline_episodes);
            let played = record.baseline_episodes - before;
            record.baseline_share.push(played as f64 / count as f64);
            if let Some(mixture) = &self.mixture {
                record.weight.push(mixture.weight);
                record.certified_cost.extend(&mixture.cost_bounds);
            }
            taken = record.multiplier.len();
        }
        self.rewards = Spread::default();
        self.costs.fill(Spread::default());
        self.last_point = self.episodes;
        self.next_point = self.points.get(taken).copied().unwrap_or(u64::MAX);
    }

    /// Notes in every replicate that `count` episodes from `first` on play policies of this source, which is not pi0.
    pub fn note_planned(&mut self, first: u64, count: u64, source: PolicySource) {
        for record in &mut self.records {
            record.first_planned.get_or_insert(first);
            record.plays[source as usize] += count;
        }
    }

    /// How many episodes have been added.
    #[must_use]
    #[inline(always)]
    pub fn episodes(&self) -> u64 {
        self.episodes
    }

    /// Makes the episode that was added last a record point, as if it were the last of the run.
    pub fn end_here(&mut self, multiplier: V) {
        if self.episodes > self.last_point {
            self.take(multiplier);
        }
    }

    /// The finished records; `safe_cost` is c0 as the learner used it at the end.
    #[must_use]
    pub fn finish(mut self, safe_cost: f64) -> Vec<ReplicateRecord> {
        for (lane, record) in self.records.iter_mut().enumerate() {
            record.worst_violation = self.worst_violation.lane(lane);
            record.violating_episodes = self.violating_episodes.lane(lane) as u64;
            record.safe_cost = safe_cost;
        }
        self.records
    }
}

impl Recorder<'_, f64> {
    /// Adds one episode, given the true values of what was deployed, V(c_m) of every constraint, and lambda after it.
    #[inline(always)]
    pub fn add_judged(&mut self, episode: u64, truth: TrueValues, costs: &[f64], multiplier: f64) {
        for (spread, &cost) in self.costs.iter_mut().zip(costs) {
            spread.add(cost);
        }
        self.add_episode(episode, [truth.reward, truth.excess], multiplier);
    }

    /// Notes the mixture that an episode deploys; nothing to do if it is that of the episode before.
    #[inline(always)]
    pub fn note_mixture(&mut self, mixture: &Mixture) {
        let last = self.mixture.as_ref().map(|mixture| mixture.number);
        if last != Some(mixture.number()) {
            self.note_new_mixture(mixture);
        }
    }

    #[cold]
    fn note_new_mixture(&mut self, mixture: &Mixture) {
        for record in &mut self.records {
            record.mixtures += 1;
            let points = record.multiplier.len(); // those before the first mixture
            record.weight.resize(points, f64::NAN);
            let values = points * mixture.cost_bounds().len();
            record.certified_cost.resize(values, f64::NAN);
        }
        self.mixture = Some(NotedMixture {
            number: mixture.number(),
            weight: mixture.planned_weight(),
            cost_bounds: mixture.cost_bounds().to_vec(),
        });
    }

    /// Notes where the policy of an episode came from, and its certificate.
    #[inline(always)]
    pub fn note(&mut self, deployment: &Deployment) {
        let Some(record) = self.records.first_mut() else {
            return;
        };
        record.plays[deployment.source as usize] += 1;
        if deployment.source.is_baseline() {
            let estimation = deployment.source == PolicySource::BaselineEstimation;
            record.baseline_episodes += 1;
            record.estimation_episodes += u64::from(estimation);
        } else {
            record.first_planned.get_or_insert(deployment.episode);
        }
        if let Some(certificate) = &deployment.certificate {
            record.least_slack = record.least_slack.min(certificate.slack());
            if certificate.repair() > 0.0 {
                record.repairs.0 += 1;
                record.repairs.1 = record.repairs.1.max(certificate.repair());
            }
        }
    }
}
