//! A bound on how far the pessimistic cost of pi0 can have moved since it was last evaluated. While the bound rules
//! out a crossing of (tau + c0)/2, the evaluation is skipped.

use crate::confidence::{Bonus, bisect_first};
use crate::error::Result;
use crate::estimate::Estimates;
use crate::learn::{Learner, OptPessLp};
use crate::number::from_count;
use crate::shape::Shape;
use crate::table::{StateValues, StepSignal, zeros};
use crate::trajectory::Trajectory;

/// Relative allowance for rounding in two evaluations, far above their actual rounding errors.
const ROUNDING: f64 = 1e-9;

/// The bound from below is used for fewer episodes than this: the average of more numbers may be too inexact.
const MAX_SHUT_EPISODES: u64 = u32::MAX as u64;

/// Whether V^{pi0}(c underbar, P-hat) can have crossed (tau + c0)/2 since it was last evaluated. If not, the gate is
/// as it was.
///
/// Formula, first bound, for the episodes before the gate can open: after k episodes no row has more than k visits,
/// so c underbar >= y = b(k) + min(0, least cost ever observed) in every row that was visited, and c underbar = b(0)
/// in all others. By backward induction V_h >= min(b(0), (H - h) y), h = 0, 1, ..., wherever y >= 0. So the gate is
/// shut while min(b(0), H y) > (tau + c0)/2.
///
/// Formula, second bound, from then on: by the value-difference lemma an episode that adds one visit to the rows x_h,
/// h < H, moves the value of every (step, state) by at most sum_h |change of c underbar(x_h)| + |change of P-hat(x_h)
/// V_{h+1}|, V being the values before it. With N >= 1 earlier visits c-hat moves by at most 2 C/(N+1), where C
/// bounds the costs ever observed, the bonus by at most b/(2N) with b <= c underbar + C, and P-hat V by at most (max
/// V - min V)/(N+1), over states seen before: P-hat leads to no others.
///
/// Under the rule Sharp the bonus depends on more than visits, neither bound holds, and every plan evaluates pi0.
///
/// Citation: \[Liu21\], Lemma D.2, for the second. Deviation: none; the decisions are those of Algorithm 1.
#[derive(Debug, Clone)]
pub(crate) struct GateBound {
    /// The bound from below keeps the gate shut after fewer episodes than this; None until the next evaluation.
    shut_before: Option<u64>,
    /// How far the value may still move; not positive if the next plan must evaluate pi0.
    slack: f64,
    /// Whether the gate was open at the last evaluation.
    open: bool,
    /// A bound on how far any value has moved since the last evaluation.
    drift: f64,
    /// max V_h over the states seen, at the last evaluation.
    highest: Vec<f64>, // [H + 1]
    /// The largest size of a cost ever observed.
    largest_cost: f64,
    /// The least cost ever observed, or 0 if none was below.
    least_cost: f64,
}

impl GateBound {
    pub(crate) fn new(shape: Shape) -> Result<Self> {
        Ok(Self {
            shut_before: None,
            slack: 0.0,
            open: false,
            drift: 0.0,
            highest: zeros("highest values [H + 1]", shape.horizon() + 1)?,
            largest_cost: 0.0,
            least_cost: 0.0,
        })
    }

    /// Whether the bounds prove the gate shut after this many episodes.
    #[inline(always)]
    pub(crate) fn is_shut(&self, episodes: u64) -> bool {
        self.is_shut_by_bonus(episodes) || (self.has_slack() && !self.open)
    }

    /// Whether the bound from below keeps the gate shut after this many episodes.
    #[inline(always)]
    fn is_shut_by_bonus(&self, episodes: u64) -> bool {
        self.shut_before.is_some_and(|end| episodes < end)
    }

    /// Whether the bounds prove the gate open.
    #[inline(always)]
    pub(crate) fn is_open(&self) -> bool {
        self.has_slack() && self.open
    }

    #[inline(always)]
    fn has_slack(&self) -> bool {
        self.slack > 0.0
    }

    /// Makes the next plan evaluate pi0.
    #[inline(always)]
    fn invalidate(&mut self) {
        self.slack = 0.0;
    }

    /// Call it when the learner has evaluated pi0.
    #[inline]
    pub(crate) fn evaluated(&mut self, learner: &OptPessLp) {
        let Some(margin) = learner.margin() else {
            return self.invalidate();
        };
        let model = learner.model();
        let Some(bonus) = model.bonus_of_visits() else {
            return self.invalidate(); // the bounds below need it
        };
        let values = model.last_values();
        let value = learner.experience().initial().expectation(values.step(0));
        let compared = (value, margin.midpoint());
        self.set_values(compared, values, learner.estimates(), bonus);
    }

    /// Restarts from the values of pi0; `value` is its value from the start, which the gate compares with
    /// `midpoint`.
    fn set_values(
        &mut self,
        (value, midpoint): (f64, f64),
        values: &StateValues,
        estimates: &Estimates,
        bonus: &Bonus,
    ) {
        let shape = estimates.shape();
        if self.shut_before.is_none() {
            self.shut_before = Some(self.earliest_opening(midpoint, shape.horizon(), bonus));
        }
        self.drift = 0.0;
        self.open = value < midpoint;
        self.slack = (value - midpoint).abs() - ROUNDING * (1.0 + value.abs());
        if !self.has_slack() {
            return; // also for NaN
        }
        let rows = estimates.visits().chunks_exact(shape.num_actions());
        self.highest.fill(0.0);
        for (place, visits) in rows.enumerate() {
            if visits.iter().any(|&count| count > 0) {
                let (step, state) = (place / shape.num_states(), place % shape.num_states());
                let value = values.step(step)[state];
                if value < 0.0 {
                    return self.invalidate(); // the bound is for values in [0, max V]
                }
                self.highest[step] = self.highest[step].max(value);
            }
        }
    }

    /// The least number of episodes after which the bound from below is not above the midpoint.
    fn earliest_opening(&self, midpoint: f64, horizon: usize, bonus: &Bonus) -> u64 {
        let horizon = horizon as f64;
        let above = midpoint + ROUNDING * (1.0 + midpoint - horizon * self.least_cost);
        // An average of 2^32 numbers may lie below the least of them by (1 + 2^-53)^(2^32) - 1 < 1e-6 of it.
        let least_average = (1.0 + 1e-6) * self.least_cost;
        let is_above = |episodes: u64| {
            let row = bonus.at(episodes) + least_average;
            (horizon * row).min(bonus.at(0)) > above
        };
        // The bonus decreases with the visits, so the predicate is monotone.
        bisect_first(0..MAX_SHUT_EPISODES, |episodes| !is_above(episodes))
    }

    /// Widens the range of observed costs; the bound from below must then be computed again. This is rare.
    #[cold]
    fn widen_cost_range(&mut self, costs: &[f64]) {
        for &cost in costs {
            self.largest_cost = self.largest_cost.max(cost.abs());
            self.least_cost = self.least_cost.min(cost);
        }
        self.shut_before = None;
    }

    /// Call it when the learner has counted an episode.
    #[inline(always)]
    pub(crate) fn counted(&mut self, learner: &OptPessLp, seen: &Trajectory) {
        let (episodes, cost) = (learner.episodes_observed(), learner.model().cost());
        self.add(episodes, seen, learner.estimates(), cost);
    }

    /// Adds the drift of one counted episode, the last of `episodes`; `cost` is c underbar as of the last evaluation or
    /// later.
    #[inline(always)]
    fn add<G: StepSignal>(
        &mut self,
        episodes: u64,
        seen: &Trajectory,
        estimates: &Estimates,
        cost: &G,
    ) {
        let shape = estimates.shape();
        let costs = &seen.costs()[..shape.horizon()];
        let range = (self.least_cost, self.largest_cost);
        let (least, largest) = costs.iter().fold(range, |(least, largest), &cost| {
            let least = if cost < least { cost } else { least };
            (least, if cost > largest { cost } else { largest })
        });
        if least < self.least_cost || largest > self.largest_cost {
            self.widen_cost_range(costs);
        }
        if self.is_shut_by_bonus(episodes) {
            return self.invalidate(); // after the last of them pi0 is evaluated
        }
        if !self.has_slack() {
            return;
        }
        let fixed = 3.0 * self.largest_cost + 2.0 * self.drift;
        let mut change = 0.0;
        for step in 0..shape.horizon() {
            let pair = shape.pair(seen.states()[step] as usize, seen.actions()[step] as usize);
            let visits_before = estimates.visits()[step * shape.pairs() + pair] - 1;
            if visits_before == 0 {
                return self.invalidate(); // the row's first visit: the second bound needs an earlier one
            }
            let range = fixed + cost.at(step, pair) + self.highest[step + 1];
            change += range / from_count(visits_before);
        }
        self.drift += change;
        self.slack -= change;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use proptest::prelude::*;
    use proptest::test_runner::TestRunner;
    use rand::rngs::ChaCha8Rng;
    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::confidence::{ConfidenceRule, LearningTerms, PessimisticCost};
    use crate::evaluate::Evaluator;
    use crate::model::InitialDistribution;
    use crate::policy::MarkovPolicy;

    const EPISODES: u64 = 400;

    /// Plays random paths with costs in [least, least + 1] and compares, after every episode, the value of the uniform
    /// policy with the bound from below. Returns the smallest distance, relative to the bound.
    fn nearest(least: f64, factor: f64) -> f64 {
        let shape = Shape::new(3, 2, 2).unwrap();
        let rule = ConfidenceRule::scaled(factor).unwrap();
        let bonus = LearningTerms::new(EPISODES, 0.1, rule)
            .unwrap()
            .bonus(shape);
        let initial = InitialDistribution::new(2, vec![0.5, 0.5]).unwrap();
        let policy = MarkovPolicy::uniform(shape).unwrap();
        let mut estimates = Estimates::new(shape).unwrap();
        let mut signal = PessimisticCost::new(shape, bonus.at(0)).unwrap();
        let mut evaluator = Evaluator::new(shape).unwrap();
        let (mut nearest, mut coin) = (f64::INFINITY, 1_u32);
        let mut toss = |sides: u32| {
            coin = coin.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (coin >> 16) % sides
        };
        for k in 1..=EPISODES {
            let [states, actions] = [0, 1].map(|_| (0..3).map(|_| toss(2)).collect());
            let costs = (0..3).map(|_| least + f64::from(toss(5) == 0)).collect();
            let seen = Trajectory::checked(shape, states, actions, vec![0.0; 3], costs).unwrap();
            estimates.count(&seen).unwrap();
            estimates.refresh_with(|row| {
                signal.update(row, bonus.of(row));
            });
            let value = evaluator.evaluate(&policy, &signal, estimates.kernel(), &initial);
            let row = bonus.at(k) + least;
            if row >= 0.0 {
                let bound = (3.0 * row).min(bonus.at(0));
                assert!(value >= bound, "{k}: {value} is below {bound}");
                nearest = nearest.min(value / bound - 1.0);
            }
        }
        nearest
    }

    #[test]
    fn the_value_of_a_policy_stays_above_the_bound_from_below() {
        assert!(nearest(0.0, 1.0) < 2.0);
        assert!(nearest(-0.3, 0.5) < 2.0);
        // A bonus so small that rows that were never visited matter.
        assert!(nearest(0.0, 0.01).is_finite());
    }

    #[test]
    fn the_gate_is_surely_shut_up_to_the_crossing_and_not_after_it() {
        let shape = Shape::new(3, 2, 2).unwrap();
        let bonus = LearningTerms::new(1_000_000, 0.1, ConfidenceRule::Theorem)
            .unwrap()
            .bonus(shape);
        let mut gate = GateBound::new(shape).unwrap();
        let earliest_opening = gate.earliest_opening(1.0, 3, &bonus);
        let bound = |k: u64| 3.0 * bonus.at(k);
        assert!(bound(earliest_opening - 1) > 1.0 && bound(earliest_opening) < 1.0 + 1e-8);
        gate.widen_cost_range(&[-0.1, 0.5]);
        assert!(gate.earliest_opening(1.0, 3, &bonus) < earliest_opening);
        assert_eq!(gate.earliest_opening(2.0 * bonus.at(0), 3, &bonus), 0);
        gate.widen_cost_range(&[-1e9]);
        assert_eq!(gate.earliest_opening(1.0, 3, &bonus), 0);
    }

    /// A run in which the pessimistic cost of a policy wanders around the midpoint.
    #[derive(Debug, Clone)]
    struct Wandering {
        sizes: [usize; 3],
        factor: f64,
        /// The midpoint, and the centre and half width of the costs, before and after half of the episodes; in units
        /// of b(0).
        midpoint: f64,
        centres: [f64; 2],
        width: f64,
        /// Whether signals are refreshed after every episode, as past the gate, or only when pi0 is evaluated.
        eager: bool,
        seed: u64,
    }

    fn wandering() -> impl Strategy<Value = Wandering> {
        let sizes = [1..4_usize, 1..4, 1..3];
        let centre = || prop_oneof![Just(0.0), -0.4..1.0_f64];
        (
            sizes,
            0.001..1.0_f64,
            0.05..1.5_f64,
            [centre(), centre()],
            prop_oneof![Just(0.0), 0.0..1.0_f64],
            any::<bool>(),
            any::<u64>(),
        )
            .prop_map(
                |(sizes, factor, midpoint, centres, width, eager, seed)| Wandering {
                    sizes,
                    factor,
                    midpoint,
                    centres,
                    width,
                    eager,
                    seed,
                },
            )
    }

    /// How often each bound decided the gate, and how often the value crossed the midpoint.
    #[derive(Debug, Default)]
    struct Tally {
        by_first: u32,
        by_second: u32,
        crossings: u32,
    }

    impl Wandering {
        /// Evaluates the policy at every episode and compares both bounds with the value.
        fn check(&self, tally: &mut Tally) -> std::result::Result<(), TestCaseError> {
            let [horizon, states, actions] = self.sizes;
            let shape = Shape::new(horizon, states, actions).unwrap();
            let mut generator = ChaCha8Rng::seed_from_u64(self.seed);
            let rule = ConfidenceRule::scaled(self.factor).unwrap();
            let terms = LearningTerms::new(EPISODES, 0.1, rule).unwrap();
            let bonus = terms.bonus(shape);
            let initial = InitialDistribution::new(states, vec![1.0 / states as f64; states]);
            let initial = initial.unwrap();
            let actions_taken: Vec<u32> = (0..horizon * states)
                .map(|_| generator.random_range(0..actions as u32))
                .collect();
            let policies = [
                MarkovPolicy::uniform(shape).unwrap(),
                MarkovPolicy::deterministic(shape, &actions_taken).unwrap(),
            ];
            let policy = &policies[usize::from(generator.random::<bool>())];
            let midpoint = self.midpoint * bonus.at(0);
            let mut estimates = Estimates::new(shape).unwrap();
            let mut current = PessimisticCost::new(shape, bonus.at(0)).unwrap();
            let mut known = current.clone();
            let mut evaluator = Evaluator::new(shape).unwrap();
            let mut gate = GateBound::new(shape).unwrap();
            let mut evaluated: Vec<f64> = vec![];
            let mut was_open = None;
            for k in 0..EPISODES {
                let value = evaluator.evaluate(policy, &current, estimates.kernel(), &initial);
                let values = evaluator.values();
                let everywhere = || (0..horizon).flat_map(|step| values.step(step)).copied();
                let open = value < midpoint;
                tally.crossings += u32::from(was_open.is_some_and(|before| before != open));
                was_open = Some(open);
                if gate.is_shut(k) || gate.is_open() {
                    prop_assert_eq!(gate.is_open(), open, "{}: {} {}", k, value, midpoint);
                    prop_assert_eq!(gate.is_shut(k), !open);
                    if gate.is_shut_by_bonus(k) {
                        tally.by_first += 1;
                    } else {
                        tally.by_second += 1;
                        for (before, now) in evaluated.iter().zip(everywhere()) {
                            let allowed = gate.drift + ROUNDING * (1.0 + now.abs());
                            let drift = (now - before).abs();
                            prop_assert!(drift <= allowed, "{}: {} > {}", k, drift, allowed);
                        }
                    }
                } else {
                    gate.set_values((value, midpoint), values, &estimates, &bonus);
                    evaluated = everywhere().collect();
                    known = current.clone();
                }
                let centre = self.centres[usize::from(2 * k > EPISODES)] * bonus.at(0);
                let width = self.width * bonus.at(0);
                let mut draw = |count: usize| generator.random_range(0..count as u32);
                let states = (0..horizon).map(|_| draw(states)).collect();
                let actions = (0..horizon).map(|_| draw(actions)).collect();
                let costs = (0..horizon)
                    .map(|_| centre + width * (2.0 * generator.random::<f64>() - 1.0))
                    .collect();
                let rewards = vec![0.0; horizon];
                let seen = Trajectory::checked(shape, states, actions, rewards, costs).unwrap();
                estimates.count(&seen).unwrap();
                estimates.refresh_with(|row| {
                    current.update(row, bonus.of(row));
                });
                gate.add(k + 1, &seen, &estimates, &known);
                if self.eager {
                    known = current.clone();
                }
            }
            Ok(())
        }
    }

    #[test]
    fn neither_bound_rules_out_a_crossing_that_happened() {
        let tally = RefCell::new(Tally::default());
        let config = ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::with_cases(2000)
        };
        let mut runner = TestRunner::new(config);
        let held = runner.run(&wandering(), |run| run.check(&mut tally.borrow_mut()));
        assert!(held.is_ok(), "{}", held.unwrap_err());
        // Of 800,000 episodes.
        let Tally {
            by_first,
            by_second,
            crossings,
        } = tally.into_inner();
        assert!(by_first > 10_000, "{by_first}");
        assert!(by_second > 10_000, "{by_second}");
        assert!(crossings > 1000, "{crossings}");
    }
}
