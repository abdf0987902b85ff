//! Algorithm 2 for tiny problems, for one replicate or for eight at once in the lanes of a vector.
//!
//! An episode of a tiny problem is mostly latency: of loads, sums, draws and divisions. Replicates of the same learner
//! have the same episode number, hence the same eps_k and eta_k, and run through the same loops. Each has the bits of
//! [`OptPessPrimalDual`], with tables as small as the problem.

use crate::confidence::constants::Schedule;
use crate::confidence::{Bonus, OptimisticCost, OptimisticReward, biased};
use crate::error::Result;
use crate::estimate::Estimates;
use crate::fast::batch::trajectory::BatchTrajectory;
use crate::fast::lane::{Lane, lane_sums, row_sums};
use crate::learn::{Learner, OptPessPrimalDual, dual_update};
use crate::model::InitialDistribution;
use crate::number::from_count;
use crate::shape::Shape;
use crate::table::zeros;

/// The largest problem, in entries of P-hat, that runs in a batch: eight copies of a larger one exceed the first-level
/// cache, and one replicate alone already fills vectors.
const MAX_BATCH_ENTRIES: usize = 512;

/// One learner (`V` is f64) or eight ([`crate::fast::lanes::Lanes`]). The last axis of every table is the replicate.
#[derive(Debug, Clone)]
pub(crate) struct BatchLearners<V: Lane> {
    shape: Shape,
    initial: InitialDistribution,
    cost_limit: f64,
    bonus: Bonus,
    schedule: Schedule,
    observed: u64,
    // Counts and estimates.
    pairs: Vec<Pair<V>>,     // [H, S, A]
    counts: Vec<V>,          // [H, S, A, S], the last step is not used
    kernel: Vec<V>,          // [H, S, A, S], the last step is not used
    any_positive_cost: bool, // whether c tilde was ever above 0 anywhere
    multiplier: V,
    next_multiplier: V,
    // The plan.
    actions: Vec<V::Indices>, // [H, S]
    changed: bool,
    values: Vec<V>,      // [H + 1, S], of the Lagrangian
    cost_values: Vec<V>, // [H + 1, S]
}

/// Counts, sums and signals of one pair (s, a) of a step.
#[derive(Debug, Clone, Copy, Default)]
struct Pair<V> {
    visits: V,
    reward_sum: V,
    cost_sum: V,
    reward: V, // r tilde
    cost: V,   // c tilde
}

fn entries(shape: Shape) -> usize {
    shape.triples().saturating_mul(shape.num_states())
}

/// Whether a problem is small enough to gain from a batch.
pub(crate) fn is_small_enough(shape: Shape) -> bool {
    entries(shape) <= MAX_BATCH_ENTRIES
}

impl<V: Lane> Pair<V> {
    /// r tilde and c tilde of a row, from its counts.
    #[inline(always)]
    fn set_signals(&mut self, bonus: &Bonus) {
        let bonus = bonus.after(self.visits);
        let average = |sum: V| sum.zip(self.visits, |sum, visits| sum / visits.max(1.0));
        let (reward, cost) = (average(self.reward_sum), average(self.cost_sum));
        self.reward = biased(reward, OptimisticReward::FACTOR, bonus);
        self.cost = biased(cost, OptimisticCost::FACTOR, bonus);
    }
}

impl<V: Lane> BatchLearners<V> {
    /// Copies of learners whose next call is a plan, of which there is at least one. They have the same inputs and
    /// have observed as many episodes; lanes without a learner copy the first.
    pub(crate) fn new(learners: &[&OptPessPrimalDual]) -> Result<Self> {
        let of = |lane: usize| *learners.get(lane).unwrap_or(&learners[0]);
        let learner = of(0);
        learner.experience().protocol().check_plan()?;
        let shape = learner.shape();
        let [steps, states, _] = shape.sizes();
        let entries = entries(shape);
        let wide = |what, len| zeros::<V>(what, len);
        let values = || wide("values of replicates [H + 1, S]", (steps + 1) * states);
        let mut batch = Self {
            shape,
            initial: learner.experience().initial().clone(),
            cost_limit: learner.cost_limit(),
            bonus: learner.terms().bonus(shape),
            schedule: *learner.schedule(),
            observed: learner.episodes_observed(),
            pairs: zeros("replicates [H, S, A]", shape.triples())?,
            counts: wide("counts of replicates [H, S, A, S]", entries)?,
            kernel: wide("kernels of replicates [H, S, A, S]", entries)?,
            any_positive_cost: false,
            multiplier: V::from_lanes(|lane| of(lane).multiplier()),
            next_multiplier: V::default(),
            actions: zeros("actions of replicates [H, S]", steps * states)?,
            changed: false,
            values: values()?,
            cost_values: values()?,
        };
        let estimates: Vec<&Estimates> = learners.iter().map(|each| each.estimates()).collect();
        batch.copy_counts(&estimates)?;
        Ok(batch)
    }

    /// Copies the counts of the learners and computes the estimates that follow from them.
    fn copy_counts(&mut self, estimates: &[&Estimates]) -> Result<()> {
        let states = self.shape.num_states();
        let place = |lane: usize| if lane < estimates.len() { lane } else { 0 };
        let of = |lane: usize| estimates[place(lane)];
        for row in 0..self.shape.triples() {
            let mut pair = Pair {
                visits: V::from_lanes(|lane| from_count(of(lane).visits()[row])),
                reward_sum: V::from_lanes(|lane| of(lane).sums().0[row]),
                cost_sum: V::from_lanes(|lane| of(lane).sums().1[row]),
                ..Pair::default()
            };
            pair.set_signals(&self.bonus);
            for lane in 0..V::COUNT {
                self.any_positive_cost |= pair.cost.lane(lane) > 0.0;
            }
            self.pairs[row] = pair;
        }
        let counts = estimates.iter().map(|each| each.kernel().in_full());
        let counts: Vec<(Vec<u64>, Vec<f64>)> = counts.collect::<Result<_>>()?;
        for entry in 0..counts[0].0.len() {
            let count = V::from_lanes(|lane| from_count(counts[place(lane)].0[entry]));
            let visits = V::from_lanes(|lane| from_count(of(lane).visits()[entry / states].max(1)));
            self.counts[entry] = count;
            self.kernel[entry] = count.zip(visits, |count, visits| count / visits);
        }
        Ok(())
    }

    /// The learner of one replicate as it is now; `first` is the learner that was copied.
    pub(crate) fn learner(
        &self,
        first: &OptPessPrimalDual,
        lane: usize,
    ) -> Result<OptPessPrimalDual> {
        let column = |of_pair: &dyn Fn(&Pair<V>) -> V| -> Vec<f64> {
            self.pairs
                .iter()
                .map(|pair| of_pair(pair).lane(lane))
                .collect()
        };
        let whole = |numbers: Vec<f64>| numbers.into_iter().map(|count| count as u64).collect();
        // Counts are below 2^53, so exact.
        let counts = self.counts.iter().map(|count| count.lane(lane)).collect();
        let estimates = first.estimates().with_counts(
            whole(column(&|pair| pair.visits)),
            [
                column(&|pair| pair.reward_sum),
                column(&|pair| pair.cost_sum),
            ],
            &(whole(counts) as Vec<u64>),
        )?;
        let multiplier = self.multiplier.lane(lane);
        let actions: Vec<u32> = self
            .actions
            .iter()
            .map(|taken| taken.as_ref()[lane])
            .collect();
        Ok(first.advanced(estimates, self.observed, multiplier, &actions))
    }

    /// The actions of all replicates, `[H, S]`.
    #[inline(always)]
    pub(crate) fn actions(&self) -> &[V::Indices] {
        &self.actions
    }

    /// Whether the last plan differs from the one before in any replicate.
    #[inline(always)]
    pub(crate) fn changed(&self) -> bool {
        self.changed
    }

    /// How many episodes each replicate has observed.
    #[inline(always)]
    pub(crate) fn episodes_observed(&self) -> u64 {
        self.observed
    }

    /// lambda of each replicate.
    #[inline(always)]
    pub(crate) fn multipliers(&self) -> &V {
        &self.multiplier
    }

    /// Plans the next episode of every replicate. `S` is the number of states, or 0 if it is not known at compile time.
    #[inline(always)]
    pub(crate) fn plan<const S: usize>(&mut self) {
        let k = self.observed + 1;
        // Alg. 2, line 3
        let (epsilon, eta) = (self.schedule.tightening(k), self.schedule.scaling(k));
        let price = self.multiplier.map(|multiplier| multiplier / eta);
        // Alg. 2, line 6. If no cost is positive, no policy has a positive cost, and line 7 truncates it to 0.
        let cost = if self.any_positive_cost {
            self.induct::<S, true>(price)
        } else {
            self.induct::<S, false>(price)
        };
        // Alg. 2, line 7
        let (lambda, tau) = (self.multiplier, self.cost_limit);
        self.next_multiplier = dual_update(lambda, cost, epsilon, tau);
    }

    /// Backward induction. Returns V(c tilde) of each plan, or 0 if `WITH_COST` is false.
    #[inline(always)]
    fn induct<const S: usize, const WITH_COST: bool>(&mut self, price: V) -> V {
        let [steps, states, actions] = self.shape.sizes();
        let states = if S > 0 { S } else { states };
        let mut changed = false;
        for step in (0..steps).rev() {
            let (here, next) = self.values[step * states..][..2 * states].split_at_mut(states);
            let costs = &mut self.cost_values[step * states..][..2 * states];
            let (cost_here, cost_next) = costs.split_at_mut(states);
            let (first, num_pairs) = (step * states * actions, states * actions);
            let pairs = &self.pairs[first..][..num_pairs];
            let rows = &self.kernel[first * states..][..num_pairs * states];
            let chosen = &mut self.actions[step * states..][..states];
            for state in 0..states {
                let mut best = V::all(f64::NEG_INFINITY).to_register();
                let (mut best_action, mut best_cost) =
                    (V::Indices::default(), V::default().to_register());
                for action in 0..actions {
                    let row = state * actions + action;
                    let (reward, mut cost) = (pairs[row].reward, pairs[row].cost);
                    let priced = price.zip(cost, |price, cost| price * cost);
                    let mut q = reward.zip(priced, |reward, priced| reward - priced);
                    if step + 1 < steps {
                        let columns = &rows[row * states..][..states];
                        q = q.plus(lane_sums::<S, V>(columns, next));
                        if WITH_COST {
                            cost = cost.plus(lane_sums::<S, V>(columns, cost_next));
                        }
                    }
                    let better = (q, V::from_register(best));
                    best_action = V::select_greater_indices(better, action as u32, best_action);
                    if WITH_COST {
                        best_cost = V::select_greater(better, cost, V::from_register(best_cost))
                            .to_register();
                    }
                    best = V::select_greater(better, q, better.1).to_register();
                }
                changed |= chosen[state] != best_action;
                chosen[state] = best_action;
                here[state] = V::from_register(best);
                if WITH_COST {
                    cost_here[state] = V::from_register(best_cost);
                }
            }
        }
        self.changed = changed;
        if !WITH_COST {
            return V::default();
        }
        row_sums::<S, V>(self.initial.data(), &self.cost_values[..states])
    }

    /// Counts one episode of each replicate. Alg. 2, lines 4, 5 and 9: counters, estimates and signals of
    /// the rows that changed. Each replicate has its own row: the rows are selected from the table with masks,
    /// computed in lanes and written back.
    #[inline(always)]
    pub(crate) fn observe<const S: usize>(&mut self, seen: &BatchTrajectory<V>) {
        let [steps, states, actions] = self.shape.sizes();
        let num_pairs = if S > 0 { S } else { states } * actions;
        for step in 0..steps {
            let rows = &seen.pairs[step];
            let pairs = &mut self.pairs[step * num_pairs..][..num_pairs];
            let [mut visits, mut reward_sum, mut cost_sum] = [V::default().to_register(); 3];
            for visit in 0..V::rows_to_scan(num_pairs) {
                let (row, chosen) = V::scan_row(rows, num_pairs, visit);
                V::select_into(&mut visits, chosen, pairs[row].visits);
                V::select_into(&mut reward_sum, chosen, pairs[row].reward_sum);
                V::select_into(&mut cost_sum, chosen, pairs[row].cost_sum);
            }
            let mut own = Pair {
                visits: V::from_register(visits).map(|visits| visits + 1.0),
                reward_sum: V::from_register(reward_sum).plus(seen.rewards[step]),
                cost_sum: V::from_register(cost_sum).plus(seen.costs[step]),
                ..Pair::default()
            };
            own.set_signals(&self.bonus);
            for lane in 0..V::COUNT {
                self.any_positive_cost |= own.cost.lane(lane) > 0.0;
            }
            for visit in 0..V::rows_to_scan(num_pairs) {
                let (row, chosen) = V::scan_row(rows, num_pairs, visit);
                let pair = &mut pairs[row];
                pair.visits = V::select(chosen, own.visits, pair.visits);
                pair.reward_sum = V::select(chosen, own.reward_sum, pair.reward_sum);
                pair.cost_sum = V::select(chosen, own.cost_sum, pair.cost_sum);
                pair.reward = V::select(chosen, own.reward, pair.reward);
                pair.cost = V::select(chosen, own.cost, pair.cost);
            }
            if step + 1 < steps {
                let next_state = &seen.states[step + 1];
                if S > 0 {
                    self.refresh_rows::<S>(step, 0, rows, next_state, own.visits);
                } else {
                    for first in 0..states {
                        self.refresh_rows::<1>(step, first, rows, next_state, own.visits);
                    }
                }
            }
        }
        self.multiplier = self.next_multiplier;
        self.observed += 1;
    }

    /// Counts the next states and refreshes P-hat, for the N successors from `first` on.
    #[inline(always)]
    fn refresh_rows<const N: usize>(
        &mut self,
        step: usize,
        first: usize,
        rows: &V::Indices,
        next_state: &V::Indices,
        visits: V,
    ) {
        let [_, states, actions] = self.shape.sizes();
        let num_pairs = states * actions;
        let table = step * num_pairs * states..(step + 1) * num_pairs * states;
        let (counts, kernel) = (&mut self.counts[table.clone()], &mut self.kernel[table]);
        let mut held = [V::default().to_register(); N];
        for visit in 0..V::rows_to_scan(num_pairs) {
            let (row, chosen) = V::scan_row(rows, num_pairs, visit);
            let counts = &counts[row * states + first..][..N];
            for (held, count) in held.iter_mut().zip(counts) {
                V::select_into(held, chosen, *count);
            }
        }
        let mut own = held.map(V::from_register);
        for (place, count) in own.iter_mut().enumerate() {
            let followed = V::from_indices(next_state, |state| {
                f64::from(state as usize == first + place)
            });
            *count = count.plus(followed);
        }
        let shares = own.map(|count| count.zip(visits, |count, visits| count / visits));
        for visit in 0..V::rows_to_scan(num_pairs) {
            let (row, chosen) = V::scan_row(rows, num_pairs, visit);
            let counts = &mut counts[row * states + first..][..N];
            let kernel = &mut kernel[row * states + first..][..N];
            for place in 0..N {
                counts[place] = V::select(chosen, own[place], counts[place]);
                kernel[place] = V::select(chosen, shares[place], kernel[place]);
            }
        }
    }
}
