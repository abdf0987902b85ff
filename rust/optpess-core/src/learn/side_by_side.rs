//! Algorithm 2 for eight replicates at once, one in each lane of a vector.
//!
//! What a tiny problem spends on one episode is mostly waiting: for a sum, for a draw, for a division.
//! Eight replicates of the same learner have the same episode number, hence the same eps_k and eta_k, and
//! run through the same loops; each lane does what [`OptPessPrimalDual`] does alone, to the last bit.

use crate::confidence::constants::{constraint_tightening, primal_scaling};
use crate::confidence::{Bonus, SafetyMargin};
use crate::error::Result;
use crate::lanes::{LANES, Lanes, add, lane_sums, row_sums, with_small_constant};
use crate::learn::{Learner, OptPessPrimalDual};
use crate::model::InitialDistribution;
use crate::shape::Shape;
use crate::table::{StepSignal, zeros};
use crate::trajectory::Trajectory;
use crate::vectorised::{Job, vectorised};

/// The largest problem, in entries of P-hat, that is worth it: eight copies of larger ones leave the
/// nearest cache, and one alone already fills vectors.
const MOST_ENTRIES: usize = 512;

/// Eight learners. The last axis of every table is the replicate.
#[derive(Debug, Clone)]
pub(crate) struct PrimalDualFlock {
    shape: Shape,
    initial: InitialDistribution,
    margin: SafetyMargin,
    bonus: Bonus,
    tightening_delta: f64,
    observed: u64,
    // What has been learnt.
    pairs: Vec<Pair>,      // [H, S, A]
    counts: Vec<Lanes>,    // [H, S, A, S], the last step is not used
    kernel: Vec<Lanes>,    // [H, S, A, S], the last step is not used
    positive_costs: usize, // entries of c tilde above 0, of all lanes
    multiplier: [f64; LANES],
    next_multiplier: [f64; LANES],
    // The plan.
    actions: Vec<[u64; LANES]>, // [H, S]
    changed: bool,
    values: [Vec<Lanes>; 2], // [S], of the Lagrangian: this step's and the next
    cost_values: [Vec<Lanes>; 2], // [S]
}

/// What eight replicates know of one pair (s, a) of a step.
#[derive(Debug, Clone, Copy, Default)]
struct Pair {
    visits: Lanes,
    reward_sum: Lanes,
    cost_sum: Lanes,
    reward: Lanes, // r tilde
    cost: Lanes,   // c tilde
}

impl PrimalDualFlock {
    /// Eight copies of a learner, or None if its problem is too large to gain from it.
    pub(crate) fn new(learner: &OptPessPrimalDual) -> Result<Option<Self>> {
        let shape = learner.shape();
        let [steps, states, _] = shape.sizes();
        let entries = shape.triples().saturating_mul(states);
        if entries > MOST_ENTRIES {
            return Ok(None);
        }
        let wide = |what, len| zeros::<Lanes>(what, len);
        let column = || wide("values of replicates [S]", states);
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
            multiplier: [learner.multiplier(); LANES],
            next_multiplier: [0.0; LANES],
            actions: zeros("actions of replicates [H, S]", steps * states)?,
            changed: false,
            values: [column()?, column()?],
            cost_values: [column()?, column()?],
        };
        flock.copy_from(learner)?;
        Ok(Some(flock))
    }

    fn copy_from(&mut self, learner: &OptPessPrimalDual) -> Result<()> {
        let (estimates, pairs) = (learner.estimates(), self.shape.pairs());
        let (reward_sums, cost_sums) = estimates.sums();
        for row in 0..self.shape.triples() {
            let all = |value: f64| Lanes([value; LANES]);
            let (step, pair) = (row / pairs, row % pairs);
            self.pairs[row] = Pair {
                visits: all(f64::from(estimates.visits()[row])),
                reward_sum: all(reward_sums[row]),
                cost_sum: all(cost_sums[row]),
                reward: all(learner.optimistic_reward().at(step, pair)),
                cost: all(learner.optimistic_cost().at(step, pair)),
            };
            let positive = usize::from(self.pairs[row].cost.0[0] > 0.0);
            self.positive_costs += LANES * positive;
        }
        let (counts, probabilities) = estimates.kernel().in_full()?;
        for (entry, (count, probability)) in counts.into_iter().zip(probabilities).enumerate() {
            self.counts[entry] = Lanes([f64::from(count); LANES]);
            self.kernel[entry] = Lanes([probability; LANES]);
        }
        Ok(())
    }

    /// The action of a replicate at (step, state).
    #[inline(always)]
    pub(crate) fn action(&self, step: usize, state: usize, lane: usize) -> usize {
        self.actions[step * self.shape.num_states() + state][lane] as usize
    }

    /// The actions of all replicates, `[H, S]`.
    #[inline(always)]
    pub(crate) fn actions(&self) -> &[[u64; LANES]] {
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
    pub(crate) fn multipliers(&self) -> &[f64; LANES] {
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
                vectorised(Induction::<S, true> { flock: self, price })
            })
        } else {
            with_small_constant!(self.shape.num_states(), S => {
                vectorised(Induction::<S, false> { flock: self, price })
            })
        };
        // Alg. 2, line 7
        let limit = self.margin.cost_limit();
        for lane in 0..LANES {
            let raised = self.multiplier[lane] + truncated_cost[lane] + epsilon - limit;
            self.next_multiplier[lane] = raised.max(0.0);
        }
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
struct Induction<'a, const S: usize, const WITH_COST: bool> {
    flock: &'a mut PrimalDualFlock,
    price: [f64; LANES],
}

impl<const S: usize, const WITH_COST: bool> Job for Induction<'_, S, WITH_COST> {
    type Output = [f64; LANES];

    #[inline(always)]
    fn run(self) -> [f64; LANES] {
        let (flock, price) = (self.flock, self.price);
        let [steps, states, actions] = flock.shape.sizes();
        let states = if S > 0 { S } else { states };
        let mut differences = 0;
        for step in (0..steps).rev() {
            flock.values.swap(0, 1);
            flock.cost_values.swap(0, 1);
            let ([here, next], [cost_here, cost_next]) =
                (&mut flock.values, &mut flock.cost_values);
            let (next, cost_next) = (&next[..states], &cost_next[..states]);
            for state in 0..states {
                let mut best = [f64::NEG_INFINITY; LANES];
                let (mut best_action, mut best_cost) = ([0; LANES], [0.0; LANES]);
                for action in 0..actions {
                    let row = (step * states + state) * actions + action;
                    let (gain, loss) = (flock.pairs[row].reward.0, flock.pairs[row].cost.0);
                    let mut quality: [f64; LANES] =
                        std::array::from_fn(|lane| gain[lane] - price[lane] * loss[lane]);
                    let mut cost = loss;
                    if step + 1 < steps {
                        let columns = &flock.kernel[row * states..][..states];
                        add(&mut quality, lane_sums::<S>(columns, next));
                        if WITH_COST {
                            add(&mut cost, lane_sums::<S>(columns, cost_next));
                        }
                    }
                    for lane in 0..LANES {
                        let better = quality[lane] > best[lane];
                        best[lane] = if better { quality[lane] } else { best[lane] };
                        best_action[lane] = if better {
                            action as u64
                        } else {
                            best_action[lane]
                        };
                        best_cost[lane] = if better { cost[lane] } else { best_cost[lane] };
                    }
                }
                let kept = &mut flock.actions[step * states + state];
                for lane in 0..LANES {
                    differences |= kept[lane] ^ best_action[lane];
                }
                *kept = best_action;
                here[state] = Lanes(best);
                cost_here[state] = Lanes(best_cost);
            }
        }
        flock.changed = differences != 0;
        if !WITH_COST {
            return [0.0; LANES];
        }
        let cost = row_sums::<S>(flock.initial.data(), &flock.cost_values[0]);
        cost.map(|cost| cost.max(0.0))
    }
}

struct Update<'a> {
    flock: &'a mut PrimalDualFlock,
    seen: &'a [Trajectory],
}

impl Job for Update<'_> {
    type Output = ();

    /// Alg. 2, lines 4, 5 and 9: counters, estimates and signals of the rows that changed.
    #[inline(always)]
    fn run(self) {
        let (flock, seen) = (self.flock, &self.seen[..self.seen.len().min(LANES)]);
        let [steps, states, actions] = flock.shape.sizes();
        for step in 0..steps {
            let pairs = &mut flock.pairs[step * states * actions..][..states * actions];
            // Each replicate has a row of its own: gather, compute side by side, scatter.
            let mut rows = [0; LANES];
            let (mut visits, mut rewards, mut costs) = ([1.0; LANES], [0.0; LANES], [0.0; LANES]);
            for (lane, seen) in seen.iter().enumerate() {
                rows[lane] = seen.states[step] as usize * actions + seen.actions[step] as usize;
                let pair = &pairs[rows[lane]];
                visits[lane] = pair.visits.0[lane] + 1.0;
                rewards[lane] = pair.reward_sum.0[lane] + seen.rewards[step];
                costs[lane] = pair.cost_sum.0[lane] + seen.costs[step];
            }
            let (mut gains, mut losses) = ([0.0; LANES], [0.0; LANES]);
            for lane in 0..LANES {
                let bonus = flock.bonus.at_expected(visits[lane]);
                gains[lane] = rewards[lane] / visits[lane] + bonus;
                losses[lane] = costs[lane] / visits[lane] - bonus;
            }
            for lane in 0..seen.len() {
                let pair = &mut pairs[rows[lane]];
                pair.visits.0[lane] = visits[lane];
                pair.reward_sum.0[lane] = rewards[lane];
                pair.cost_sum.0[lane] = costs[lane];
                pair.reward.0[lane] = gains[lane];
                flock.positive_costs += usize::from(losses[lane] > 0.0);
                flock.positive_costs -= usize::from(pair.cost.0[lane] > 0.0);
                pair.cost.0[lane] = losses[lane];
            }
            if step + 1 == steps {
                continue;
            }
            for (lane, seen) in seen.iter().enumerate() {
                let row = (step * states * actions + rows[lane]) * states;
                let counts = &mut flock.counts[row..][..states];
                counts[seen.states[step + 1] as usize].0[lane] += 1.0;
                let kernel = &mut flock.kernel[row..][..states];
                for (share, count) in kernel.iter_mut().zip(counts) {
                    share.0[lane] = count.0[lane] / visits[lane];
                }
            }
        }
    }
}
