//! Values V of given policies: [`sweep`](super::sweep) with a policy, with one action for each state, or with clipped
//! action values.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::evaluate::row_set::{Best, Memory, RowSet};
use crate::evaluate::sweep::{Backup, Choice, Expected, RollingValues, Sweep, Wanted};
use crate::model::{InitialDistribution, StepKernel};
use crate::policy::MarkovPolicy;
use crate::shape::Shape;
use crate::table::{StateValues, StepSignal, zeros};

/// V^pi_h(s; g, P) for every step and state.
///
/// Formula: V_H = 0; V_h(s) = sum_a pi_h(a|s) (g_h(s,a) + sum_s' P_h(s'|s,a) V_{h+1}(s')).
/// Citation: \[Liu21\], Section 2. Deviation: none; P may lose mass.
///
/// The caller has checked that signal and kernel have the policy's shape.
pub fn state_values<G: StepSignal, K: StepKernel>(
    policy: &MarkovPolicy,
    signal: &G,
    kernel: &K,
) -> Result<StateValues> {
    let mut evaluator = Evaluator::new(policy.shape())?;
    evaluator.sweep(&mut Follow::new(policy), signal, &mut Expected(kernel));
    Ok(evaluator.values)
}

/// V^pi_1(mu; g, P), the value from the start.
pub fn evaluate<G: StepSignal, K: StepKernel>(
    policy: &MarkovPolicy,
    signal: &G,
    kernel: &K,
    initial: &InitialDistribution,
) -> Result<f64> {
    Ok(Evaluator::new(policy.shape())?.evaluate(policy, signal, kernel, initial))
}

/// Weighs the action values by a policy.
#[derive(Debug)]
pub struct Follow<'a> {
    policy: &'a MarkovPolicy,
    /// The rows of the states of the current step that have not been weighed yet.
    rest: &'a [f64],
}

impl<'a> Follow<'a> {
    /// Follows this policy.
    #[must_use]
    pub fn new(policy: &'a MarkovPolicy) -> Self {
        Self { policy, rest: &[] }
    }
}

impl<const N: usize> Choice<N> for Follow<'_> {
    const FOR_EACH_SIZE: bool = true;

    #[inline(always)]
    fn begin_step(&mut self, step: usize) {
        self.rest = self.policy.step(step);
    }

    #[inline(always)]
    fn wanted(&self, _: usize) -> Wanted<'_> {
        Wanted::Weighted(self.rest)
    }

    #[inline(always)]
    fn choose(&mut self, _: usize, _: usize, q: [&[f64]; N]) -> [f64; N] {
        // Taken off the front: finding a row by its index takes longer than weighing it.
        let probabilities = self.rest.split_off(..q[0].len()).unwrap_or_default();
        q.map(|q| weigh(q.iter().copied(), probabilities))
    }

    fn each_taken(&self, step: usize, state: usize, mut visit: impl FnMut(usize)) {
        for (action, &probability) in self.policy.row(step, state).iter().enumerate() {
            if probability > 0.0 {
                visit(action);
            }
        }
    }
}

/// sum_a pi(a|s) Q(s,a), from the lowest action to the highest.
#[inline(always)]
fn weigh(q: impl Iterator<Item = f64>, probabilities: &[f64]) -> f64 {
    q.zip(probabilities).fold(0.0, |sum, (q, p)| sum + q * p)
}

/// Reads the action value of one given action for each step and state, `[H, S]`. The bits are those of [`Follow`] with
/// the deterministic policy, except for the sign of a zero.
#[derive(Debug)]
pub struct Take<'a> {
    /// |S|.
    pub states: usize,
    /// The actions.
    pub actions: &'a [u32],
}

impl<const N: usize> Choice<N> for Take<'_> {
    #[inline(always)]
    fn wanted(&self, step: usize) -> Wanted<'_> {
        Wanted::One(&self.actions[step * self.states..][..self.states])
    }

    #[inline(always)]
    fn choose(&mut self, step: usize, state: usize, q: [&[f64]; N]) -> [f64; N] {
        let action = self.actions[step * self.states + state] as usize;
        q.map(|q| q[action])
    }

    fn each_taken(&self, step: usize, state: usize, mut visit: impl FnMut(usize)) {
        visit(self.actions[step * self.states + state] as usize);
    }
}

/// [`evaluate`] with its workspace, for loops that must not allocate. Only its shape is stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(into = "Shape", try_from = "Shape")]
pub struct Evaluator {
    shape: Shape,
    values: StateValues,
    action_values: Vec<f64>, // [S, A], of the current step
}

impl From<Evaluator> for Shape {
    fn from(evaluator: Evaluator) -> Self {
        evaluator.shape
    }
}

impl TryFrom<Shape> for Evaluator {
    type Error = Error;

    fn try_from(shape: Shape) -> Result<Self> {
        Self::new(shape)
    }
}

impl Evaluator {
    /// A workspace for policies of this shape.
    pub fn new(shape: Shape) -> Result<Self> {
        Ok(Self {
            shape,
            values: StateValues::zeros(shape)?,
            action_values: zeros("action values [S, A]", shape.pairs())?,
        })
    }

    /// The shape of its policies.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// V^pi_1(mu; g, P), without allocating.
    pub fn evaluate<G: StepSignal, K: StepKernel>(
        &mut self,
        policy: &MarkovPolicy,
        signal: &G,
        kernel: &K,
        initial: &InitialDistribution,
    ) -> f64 {
        self.sweep(&mut Follow::new(policy), signal, &mut Expected(kernel));
        initial.expectation(self.values.step(0))
    }

    /// [`Evaluator::evaluate`] for the deterministic policy that takes these actions, `[H, S]`.
    pub fn evaluate_actions<G: StepSignal, K: StepKernel>(
        &mut self,
        actions: &[u32],
        signal: &G,
        kernel: &K,
        initial: &InitialDistribution,
    ) -> f64 {
        let states = self.shape.num_states();
        let choice = &mut Take { states, actions };
        self.sweep(choice, signal, &mut Expected(kernel));
        initial.expectation(self.values.step(0))
    }

    /// The largest V^pi_1(mu; g, P') over the kernels P' of a set, one kernel for the whole episode; without allocating.
    ///
    /// Formula: V_H = 0; V_h(s) = sum_a pi_h(a|s) (g_h(s,a) + max over p in the set of <p, V_{h+1}>). Citation:
    /// \[Zuo26\], (6), the joint worst case. Deviation: none; the rows of a set are chosen independently of each other,
    /// so the recursion is exact.
    pub fn evaluate_best<G: StepSignal, R: RowSet>(
        &mut self,
        policy: &MarkovPolicy,
        signal: &G,
        set: &R,
        order: &mut [u32],
        initial: &InitialDistribution,
    ) -> f64 {
        let best = &mut Best::new(set, order, Memory::Nothing);
        self.sweep(&mut Follow::new(policy), signal, best);
        initial.expectation(self.values.step(0))
    }

    /// V^pi_h for every step, of the last policy evaluated.
    #[must_use]
    pub fn values(&self) -> &StateValues {
        &self.values
    }

    #[inline(always)]
    fn sweep<C: Choice<1>, G: StepSignal, B: Backup<1>>(
        &mut self,
        choice: &mut C,
        signal: &G,
        backup: &mut B,
    ) {
        Sweep {
            shape: self.shape,
            steps: 0..self.shape.horizon(),
            signals: signal,
            backup,
            choice,
            values: &mut self.values,
            action_values: [&mut self.action_values],
        }
        .run();
    }
}

/// Two signals under one policy, in one pass, with the workspace for it.
#[derive(Debug, Clone)]
pub struct PairEvaluator {
    values: RollingValues<2>,
    action_values: [Vec<f64>; 2], // [S, A], of the current step
}

impl PairEvaluator {
    /// A workspace for policies of this shape.
    pub fn new(shape: Shape) -> Result<Self> {
        let pairs = || zeros("action values [S, A]", shape.pairs());
        Ok(Self {
            values: RollingValues::new(shape)?,
            action_values: [pairs()?, pairs()?],
        })
    }

    /// (V^pi_1(mu; f, P), V^pi_1(mu; g, P)), to the bits of [`evaluate`] for each; without allocating.
    pub fn evaluate<F: StepSignal, G: StepSignal, K: StepKernel>(
        &mut self,
        policy: &MarkovPolicy,
        signals: (&F, &G),
        kernel: &K,
        initial: &InitialDistribution,
    ) -> (f64, f64) {
        let shape = policy.shape();
        Sweep {
            shape,
            steps: 0..shape.horizon(),
            signals,
            backup: &mut Expected(kernel),
            choice: &mut Follow::new(policy),
            values: &mut self.values,
            action_values: self.action_values.each_mut().map(|q| &mut q[..]),
        }
        .run();
        self.values
            .last()
            .map(|values| initial.expectation(values))
            .into()
    }
}

/// Clips action values to the range that a policy can attain, stores them and weighs them by a policy.
struct Clipped<'a> {
    policy: &'a MarkovPolicy,
    kept: &'a mut [f64], // [H, S, A]
}

impl Choice<1> for Clipped<'_> {
    #[inline(always)]
    fn wanted(&self, _: usize) -> Wanted<'_> {
        Wanted::All // all are kept, taken or not
    }

    #[inline(always)]
    fn choose(&mut self, step: usize, state: usize, [q]: [&[f64]; 1]) -> [f64; 1] {
        let shape = self.policy.shape();
        let first = step * shape.pairs() + shape.pair(state, 0);
        let kept = &mut self.kept[first..][..q.len()];
        let most = (shape.horizon() - step) as f64;
        for (kept, q) in kept.iter_mut().zip(q) {
            *kept = q.clamp(0.0, most);
        }
        [weigh(kept.iter().copied(), self.policy.row(step, state))]
    }

    fn each_taken(&self, step: usize, state: usize, visit: impl FnMut(usize)) {
        Choice::<1>::each_taken(&Follow::new(self.policy), step, state, visit);
    }
}

/// Q and V of a policy, with Q clipped at every step; also the workspace of the next evaluation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ClippedValues {
    kept: Vec<f64>, // [H, S, A]
    evaluator: Evaluator,
}

impl ClippedValues {
    /// A workspace for policies of this shape.
    pub fn new(shape: Shape) -> Result<Self> {
        Ok(Self {
            kept: zeros("action values [H, S, A]", shape.triples())?,
            evaluator: Evaluator::new(shape)?,
        })
    }

    /// Whether stored values are those of a problem of this shape.
    pub(crate) fn fits(&self, shape: Shape) -> bool {
        self.kept.len() == shape.triples() && self.evaluator.shape() == shape
    }

    /// Q_h(s,a) of the last evaluation, `[H, S, A]`.
    #[must_use]
    pub fn action_values(&self) -> &[f64] {
        &self.kept
    }

    /// V_1(mu) of a policy, without allocating.
    ///
    /// Formula (h from 0): Q_h(s,a) = clip(g_h(s,a) + sum_s' P_h(s'|s,a) V_{h+1}(s'), 0, H - h);
    /// V_h(s) = sum_a pi_h(a|s) Q_h(s,a); V_H = 0. Citation: \[Efroni20\], truncated policy evaluation.
    /// Deviation: none.
    pub fn evaluate<G: StepSignal, K: StepKernel>(
        &mut self,
        policy: &MarkovPolicy,
        signal: &G,
        kernel: &K,
        initial: &InitialDistribution,
    ) -> f64 {
        let mut clipped = Clipped {
            policy,
            kept: &mut self.kept,
        };
        let evaluator = &mut self.evaluator;
        evaluator.sweep(&mut clipped, signal, &mut Expected(kernel));
        initial.expectation(evaluator.values.step(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Kernel, Slices};
    use crate::table::Signal;

    #[test]
    fn clipped_values_stay_within_what_is_left_of_the_episode() {
        let shape = Shape::new(2, 1, 2).unwrap();
        let kernel = Kernel::dense(1, 2, Slices::Stationary, vec![1.0, 1.0]).unwrap();
        let signal = Signal::stationary("g", shape, vec![5.0, -5.0]).unwrap();
        let policy = MarkovPolicy::new("policy", shape, vec![0.5, 0.5, 0.25, 0.75]).unwrap();
        let initial = InitialDistribution::new(1, vec![1.0]).unwrap();
        let mut values = ClippedValues::new(shape).unwrap();
        let start = values.evaluate(&policy, &signal, &kernel, &initial);
        assert_eq!(values.action_values(), [2.0, 0.0, 1.0, 0.0]);
        assert!((start - 1.0).abs() < 1e-15);
    }
}
