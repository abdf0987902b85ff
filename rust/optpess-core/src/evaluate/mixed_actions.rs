//! Mixtures of deterministic policies, kept as actions and shares, with the occupancy of drawing one of them once for
//! the whole episode.

use crate::error::{Error, Result};
use crate::evaluate::joint::JointChoice;
use crate::model::{InitialDistribution, Kernel, StepKernel};
use crate::parallel::{Parts, Workers};
use crate::policy::MarkovPolicy;
use crate::shape::Shape;
use crate::table::{CompactActions, zeros};

/// How many states are left between two looks at the stop flag.
const STATES_PER_LOOK: usize = 1 << 16;

/// How many states in advance the targets of a state's mass are asked for.
const AHEAD: usize = 8;

/// The Markov policy that has the same occupancy, hence the same start value for every signal, as drawing end i with
/// probability w_i once for the whole episode.
///
/// Formula: the policy induced by sum_i w_i q^i; where no mixed mass arrives, end i has the share w_i. Citation:
/// \[Liu21\], Lemma D.3 (after Altman 1999, Theorem 6.1). Deviation: as of [`super::mix_policies`].
#[derive(Debug, Clone, PartialEq)]
pub struct MixedActions {
    shape: Shape,
    ends: Vec<CompactActions>,
    weights: Vec<f64>,
    shares: Vec<f64>, // [H, S, ends - 1]: of the second end and those after it
}

impl MixedActions {
    /// The mixture of some ends, at least one, with weights that sum to one.
    pub fn new(
        shape: Shape,
        ends: Vec<CompactActions>,
        weights: Vec<f64>,
        kernel: &Kernel,
        initial: &InitialDistribution,
        workers: Workers<'_>,
    ) -> Result<Self> {
        if ends.is_empty() {
            return Err(Error::NothingGiven { what: "policies" });
        }
        debug_assert_eq!(ends.len(), weights.len());
        let places = shape.horizon() * shape.num_states();
        let shares = zeros("shares [H, S]", places.saturating_mul(ends.len() - 1))?;
        let mut mixed = Self {
            shape,
            ends,
            weights,
            shares,
        };
        mixed.find_shares(kernel, initial, workers)?;
        Ok(mixed)
    }

    /// The same ends with other weights.
    pub fn reweigh(
        &mut self,
        weights: Vec<f64>,
        kernel: &Kernel,
        initial: &InitialDistribution,
        workers: Workers<'_>,
    ) -> Result<()> {
        debug_assert_eq!(self.ends.len(), weights.len());
        self.weights = weights;
        self.find_shares(kernel, initial, workers)
    }

    /// The deterministic policies that are mixed.
    #[must_use]
    pub fn ends(&self) -> &[CompactActions] {
        &self.ends
    }

    /// One weight an end.
    #[must_use]
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// The share of each end but the first in the mass that arrives, `[H, S, ends - 1]`.
    #[must_use]
    pub fn shares(&self) -> &[f64] {
        &self.shares
    }

    /// The ends, their weights, and the shares `[H, S, ends - 1]`.
    #[must_use]
    pub fn into_parts(self) -> (Vec<CompactActions>, Vec<f64>, Vec<f64>) {
        (self.ends, self.weights, self.shares)
    }

    /// The policy in full.
    pub fn policy(&self) -> Result<MarkovPolicy> {
        let mut data = zeros("a policy [H, S, A]", self.shape.triples())?;
        for (place, row) in data.chunks_exact_mut(self.shape.num_actions()).enumerate() {
            self.each_share(place, |action, share| row[action] += share);
        }
        Ok(MarkovPolicy::from_distributions(self.shape, data))
    }

    /// Calls `visit` with the action and the share of each end. Ends that all agree are visited once, so that their
    /// share is exactly 1.
    #[inline(always)]
    fn each_share(&self, place: usize, mut visit: impl FnMut(usize, f64)) {
        let action = self.ends[0].at(place);
        let others = self.ends.len() - 1;
        let shares = &self.shares[place * others..][..others];
        let mut same = true;
        for end in &self.ends[1..] {
            same &= end.at(place) == action;
        }
        if same {
            visit(action, 1.0);
            return;
        }
        let mut first = 1.0;
        for share in shares {
            first -= share;
        }
        visit(action, first.max(0.0));
        for (end, &share) in self.ends[1..].iter().zip(shares) {
            visit(end.at(place), share);
        }
    }

    /// The forward recursion, one walk an end: a thread advances a walk, another computes the shares.
    fn find_shares(
        &mut self,
        kernel: &Kernel,
        initial: &InitialDistribution,
        workers: Workers<'_>,
    ) -> Result<()> {
        let walks = self.ends.len();
        if walks == 1 {
            return Ok(());
        }
        let (horizon, states) = (self.shape.horizon(), self.shape.num_states());
        let mut arrivals: Vec<f64> = zeros("arrivals [S]", states.saturating_mul(2 * walks))?;
        for walk in 0..walks {
            arrivals[2 * walk * states..][..states].copy_from_slice(initial.data());
        }
        // d_h of a walk is at [walk, h modulo 2].
        let at = |walk: usize, step: usize| {
            let first = (2 * walk + step % 2) * states;
            first..first + states
        };
        let arrivals = Parts::new(&mut arrivals);
        let shares = Parts::new(&mut self.shares);
        let (ends, weights) = (&self.ends, &self.weights);
        let stopped = || {
            workers
                .control
                .stop
                .load(std::sync::atomic::Ordering::Relaxed)
        };
        workers.run(horizon, walks + 1, |step, part| {
            if part == walks {
                // SAFETY: d_h is read by every part of this stage and written by none; the shares of a step are
                // written by one part.
                let (masses, shares) = unsafe {
                    let all = (0..walks).map(|walk| arrivals.read(at(walk, step)));
                    let own = step * states * (walks - 1)..(step + 1) * states * (walks - 1);
                    (all.collect::<Vec<_>>(), shares.write(own))
                };
                write_shares(&masses, weights, shares);
            } else if step + 1 < horizon {
                // SAFETY: d_h is read only.
                let here = unsafe { arrivals.read(at(part, step)) };
                // SAFETY: d_{h+1} of a walk is written by one part, in this stage.
                let next = unsafe { arrivals.write(at(part, step + 1)) };
                next.fill(0.0);
                for (state, &mass) in here.iter().enumerate() {
                    if state % STATES_PER_LOOK == 0 && stopped() {
                        return;
                    }
                    // A policy of weight 0 can have mass anywhere; a state without mass adds nothing.
                    if mass > 0.0 && weights[part] > 0.0 {
                        let pair = |state| {
                            let action = ends[part].at(step * states + state);
                            self.shape.pair(state, action)
                        };
                        kernel.ask_for_successors(
                            step,
                            pair((state + AHEAD).min(states - 1)),
                            next,
                        );
                        kernel.propagate(step, pair(state), mass, next);
                    }
                }
            }
        })
    }
}

/// The part of the mass at each state that comes from each end but the first.
fn write_shares(masses: &[&[f64]], weights: &[f64], shares: &mut [f64]) {
    for (state, shares) in shares.chunks_exact_mut(masses.len() - 1).enumerate() {
        let own = |end: usize| weights[end] * masses[end][state];
        let total: f64 = (0..masses.len()).map(own).sum();
        for (other, share) in shares.iter_mut().enumerate() {
            *share = if total > 0.0 {
                own(other + 1) / total
            } else {
                weights[other + 1]
            };
        }
    }
}

/// Weighs the action values by the shares.
impl<const N: usize> JointChoice<N> for MixedActions {
    #[inline(always)]
    fn choose(
        &self,
        step: usize,
        state: usize,
        q: &impl Fn(usize) -> [f64; N],
        _: &mut [[f64; N]],
    ) -> ([f64; N], usize) {
        let mut values = [0.0; N];
        self.each_share(step * self.shape.num_states() + state, |action, share| {
            let found = q(action);
            for n in 0..N {
                values[n] += share * found[n];
            }
        });
        (values, 0)
    }
}
