//! Algorithm 2 for tiny problems, for one replicate or for eight at once in the lanes of a vector.
//!
//! What a tiny problem spends on one episode is mostly looking up and waiting: for a sum, for a draw, for a
//! division. Replicates of the same learner have the same episode number, hence the same eps_k and eta_k,
//! and run through the same loops. Each does what [`OptPessPrimalDual`] does, to the last bit, with tables
//! as small as the problem.

use crate::confidence::constants::{constraint_tightening, primal_scaling};
use crate::confidence::{Bonus, SafetyMargin};
use crate::error::Result;
use crate::lanes::{LANES, Wide, lane_sums, row_sums, with_small_constant};
use crate::learn::{Learner, OptPessPrimalDual};
use crate::model::InitialDistribution;
use crate::shape::Shape;
use crate::table::{StepSignal, zeros};
use crate::trajectory::Trajectory;
use crate::vectorised::{Job, vectorised};

/// The largest problem, in entries of P-hat, that is worth it: eight copies of larger ones leave the
/// nearest cache, and one alone already fills vectors.
const MOST_ENTRIES: usize = 512;

/// One learner (`V` is f64) or eight ([`Lanes`]). The last axis of every table is the replicate.
#[derive(Debug, Clone)]
pub(crate) struct PrimalDualFlock<V: Wide> {
    shape: Shape,
    initial: InitialDistribution,
    margin: SafetyMargin,
    bonus: Bonus,
    tightening_delta: f64,
    observed: u64,
    // What has been learnt.
    pairs: Vec<Pair<V>>,   // [H, S, A]
    counts: Vec<V>,        // [H, S, A, S], the last step is not used
    kernel: Vec<V>,        // [H, S, A, S], the last step is not used
    positive_costs: usize, // entries of c tilde above 0, of all lanes
    multiplier: V,
    next_multiplier: V,
    // The plan.
    actions: Vec<V::Indices>, // [H, S]
    changed: bool,
    values: Vec<V>,      // [H + 1, S], of the Lagrangian
    cost_values: Vec<V>, // [H + 1, S]
}

/// What is known of one pair (s, a) of a step.
#[derive(Debug, Clone, Copy, Default)]
struct Pair<V> {
    visits: V,
    reward_sum: V,
    cost_sum: V,
    reward: V, // r tilde
    cost: V,   // c tilde
}

impl<V: Wide> PrimalDualFlock<V> {
    /// Copies of a learner, or None if its problem is too large to gain from it.
    pub(crate) fn new(learner: &OptPessPrimalDual) -> Result<Option<Self>> {
        let shape = learner.shape();
        let [steps, states, _] = shape.sizes();
        let entries = shape.triples().saturating_mul(states);
        if entries > MOST_ENTRIES {
            return Ok(None);
        }
        let wide = |what, len| zeros::<V>(what, len);
        let values = || wide("values of replicates [H + 1, S]", (steps + 1) * states);
        let mut flock = Self {
            shape,
            initial: learner.initial().clone(),
            margin: *learner.safety_margin(),
            bonus: *learner.bonus(),
            tightening_delta: learner.tightening_delta(),
            observed: learner.episodes_observed(),
            pairs: zeros("replicates [H, S, A]", shape.triples())?,
            counts: wide("counts of replicates [H, S, A, S]", entries)?,
            kernel: wide("kernels of replicates [H, S, A, S]", entries)?,
            positive_costs: 0,
            multiplier: V::all(learner.multiplier()),
            next_multiplier: V::default(),
            actions: zeros("actions of replicates [H, S]", steps * states)?,
            changed: false,
            values: values()?,
            cost_values: values()?,
        };
        flock.copy_from(learner)?;
        Ok(Some(flock))
    }

    fn copy_from(&mut self, learner: &OptPessPrimalDual) -> Result<()> {
        let (estimates, pairs) = (learner.estimates(), self.shape.pairs());
        let (reward_sums, cost_sums) = estimates.sums();
        for row in 0..self.shape.triples() {
            let (step, pair) = (row / pairs, row % pairs);
            self.pairs[row] = Pair {
                visits: V::all(f64::from(estimates.visits()[row])),
                reward_sum: V::all(reward_sums[row]),
                cost_sum: V::all(cost_sums[row]),
                reward: V::all(learner.optimistic_reward().at(step, pair)),
                cost: V::all(learner.optimistic_cost().at(step, pair)),
            };
            let positive = usize::from(self.pairs[row].cost.lane(0) > 0.0);
            self.positive_costs += V::COUNT * positive;
        }
        let (counts, probabilities) = estimates.kernel().in_full()?;
        for (entry, (count, probability)) in counts.into_iter().zip(probabilities).enumerate() {
            self.counts[entry] = V::all(f64::from(count));
            self.kernel[entry] = V::all(probability);
        }
        Ok(())
    }

    /// The action of a replicate at (step, state).
    #[inline(always)]
    pub(crate) fn action(&self, step: usize, state: usize, lane: usize) -> usize {
        self.actions[step * self.shape.num_states() + state].as_ref()[lane] as usize
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

    /// Plans the next episode of every replicate.
    #[inline(always)]
    pub(crate) fn plan(&mut self) {
        let k = self.observed + 1;
        // Alg. 2, line 3
        let epsilon = constraint_tightening(k, self.shape, self.tightening_delta);
        let eta = primal_scaling(k, self.shape, &self.margin);
        let price = self.multiplier.map(|multiplier| multiplier / eta);
        // Alg. 2, line 6. If no cost is positive no policy's is, and line 7 truncates it to 0.
        let truncated_cost = if self.positive_costs > 0 {
            with_small_constant!(self.shape.num_states(), S => {
                vectorised(Induction::<V, S, true> { flock: self, price })
            })
        } else {
            with_small_constant!(self.shape.num_states(), S => {
                vectorised(Induction::<V, S, false> { flock: self, price })
            })
        };
        // Alg. 2, line 7
        let limit = self.margin.cost_limit();
        let charged = self.multiplier.plus(truncated_cost);
        self.next_multiplier = charged.map(|charged| (charged + epsilon - limit).max(0.0));
    }

    /// Takes in one episode of each of the first `seen.len()` replicates; the other lanes stay as they are.
    #[inline(always)]
    pub(crate) fn absorb(&mut self, seen: &[Trajectory]) {
        vectorised(Update { flock: self, seen });
        self.multiplier = self.next_multiplier;
        self.observed += 1;
    }
}

/// Returns max(0, V(c tilde)) of each plan, or 0 if `WITH_COST` is false.
struct Induction<'a, V: Wide, const S: usize, const WITH_COST: bool> {
    flock: &'a mut PrimalDualFlock<V>,
    price: V,
}

impl<V: Wide, const S: usize, const WITH_COST: bool> Job for Induction<'_, V, S, WITH_COST> {
    type Output = V;

    #[inline(always)]
    fn run(self) -> V {
        let (flock, price) = (self.flock, self.price);
        let [steps, states, actions] = flock.shape.sizes();
        let states = if S > 0 { S } else { states };
        flock.changed = false;
        for step in (0..steps).rev() {
            let (here, next) = flock.values[step * states..][..2 * states].split_at_mut(states);
            let costs = &mut flock.cost_values[step * states..][..2 * states];
            let (cost_here, cost_next) = costs.split_at_mut(states);
            let first = step * states * actions;
            let mut pairs = flock.pairs[first..][..states * actions].iter();
            let mut rows = flock.kernel[first * states..].chunks_exact(states);
            let chosen = &mut flock.actions[step * states..][..states];
            for state in 0..states {
                let mut best = V::all(f64::NEG_INFINITY);
                let (mut best_action, mut best_cost) = (V::default(), V::default());
                for (action, pair) in pairs.by_ref().take(actions).enumerate() {
                    let (reward, mut cost) = (pair.reward, pair.cost);
                    let priced = price.zip(cost, |price, cost| price * cost);
                    let mut quality = reward.zip(priced, |reward, priced| reward - priced);
                    if step + 1 < steps
                        && let Some(columns) = rows.next()
                    {
                        quality = quality.plus(lane_sums::<S, V>(columns, next));
                        if WITH_COST {
                            cost = cost.plus(lane_sums::<S, V>(columns, cost_next));
                        }
                    }
                    let better = (quality, best);
                    best_action = V::choose(better, V::all(action as f64), best_action);
                    best_cost = V::choose(better, cost, best_cost);
                    best = V::choose(better, quality, best);
                }
                let best_action = best_action.to_indices();
                flock.changed |= chosen[state] != best_action;
                chosen[state] = best_action;
                (here[state], cost_here[state]) = (best, best_cost);
            }
        }
        if !WITH_COST {
            return V::default();
        }
        let cost = row_sums::<S, V>(flock.initial.data(), &flock.cost_values[..states]);
        cost.map(|cost| cost.max(0.0))
    }
}

struct Update<'a, V: Wide> {
    flock: &'a mut PrimalDualFlock<V>,
    seen: &'a [Trajectory],
}

impl<V: Wide> Job for Update<'_, V> {
    type Output = ();

    /// Alg. 2, lines 4, 5 and 9: counters, estimates and signals of the rows that changed.
    #[inline(always)]
    fn run(self) {
        let (flock, seen) = (self.flock, &self.seen[..self.seen.len().min(V::COUNT)]);
        let [steps, states, actions] = flock.shape.sizes();
        for step in 0..steps {
            let pairs = &mut flock.pairs[step * states * actions..][..states * actions];
            // Each replicate has a row of its own: gather, compute side by side, scatter.
            let mut rows = [0; LANES];
            let (mut visits, mut rewards, mut costs) = (V::all(1.0), V::default(), V::default());
            for (lane, seen) in seen.iter().enumerate() {
                rows[lane] = seen.states[step] as usize * actions + seen.actions[step] as usize;
                let pair = &pairs[rows[lane]];
                *visits.lane_mut(lane) = pair.visits.lane(lane) + 1.0;
                *rewards.lane_mut(lane) = pair.reward_sum.lane(lane) + seen.rewards[step];
                *costs.lane_mut(lane) = pair.cost_sum.lane(lane) + seen.costs[step];
            }
            let bonus = visits.map(|visits| flock.bonus.at_expected(visits));
            let average = |sums: V| sums.zip(visits, |sum, visits| sum / visits);
            let gains = average(rewards).plus(bonus);
            let losses = average(costs).zip(bonus, |cost, bonus| cost - bonus);
            for lane in 0..seen.len() {
                let pair = &mut pairs[rows[lane]];
                *pair.visits.lane_mut(lane) = visits.lane(lane);
                *pair.reward_sum.lane_mut(lane) = rewards.lane(lane);
                *pair.cost_sum.lane_mut(lane) = costs.lane(lane);
                *pair.reward.lane_mut(lane) = gains.lane(lane);
                flock.positive_costs += usize::from(losses.lane(lane) > 0.0);
                flock.positive_costs -= usize::from(pair.cost.lane(lane) > 0.0);
                *pair.cost.lane_mut(lane) = losses.lane(lane);
            }
            if step + 1 == steps {
                continue;
            }
            for (lane, seen) in seen.iter().enumerate() {
                let row = (step * states * actions + rows[lane]) * states;
                let counts = &mut flock.counts[row..][..states];
                *counts[seen.states[step + 1] as usize].lane_mut(lane) += 1.0;
                let kernel = &mut flock.kernel[row..][..states];
                for (share, count) in kernel.iter_mut().zip(counts) {
                    *share.lane_mut(lane) = count.lane(lane) / visits.lane(lane);
                }
            }
        }
    }
}
