//! V of a given policy, by backward recursion.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::model::{InitialDistribution, StepKernel};
use crate::policy::MarkovPolicy;
use crate::shape::Shape;
use crate::table::{StateValues, StepSignal, zeros};
use crate::vectorised::with_small_constant;
use crate::vectorised::{Job, each_row, vectorised};

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
    evaluator.start_step(policy, signal, kernel);
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

/// [`evaluate`] with its workspace, for loops that must not allocate.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Evaluator {
    values: StateValues,
    expected: Vec<f64>, // [S, A], of the next state's value, for the step at hand
}

impl Evaluator {
    /// A workspace for policies of this shape.
    pub fn new(shape: Shape) -> Result<Self> {
        Ok(Self {
            values: StateValues::zeros(shape)?,
            expected: zeros("expected values [S, A]", shape.pairs())?,
        })
    }

    /// V^pi_1(mu; g, P), without allocating.
    pub fn evaluate<G: StepSignal, K: StepKernel>(
        &mut self,
        policy: &MarkovPolicy,
        signal: &G,
        kernel: &K,
        initial: &InitialDistribution,
    ) -> f64 {
        initial.expectation(self.start_step(policy, signal, kernel))
    }

    /// V^pi_h for every step, of the last policy evaluated.
    #[must_use]
    pub fn values(&self) -> &StateValues {
        &self.values
    }

    /// V^pi_1, one value a state.
    fn start_step<G: StepSignal, K: StepKernel>(
        &mut self,
        policy: &MarkovPolicy,
        signal: &G,
        kernel: &K,
    ) -> &[f64] {
        let states = policy.shape().num_states();
        with_small_constant!(if K::ASKED_OFTEN, states, S => vectorised(Recursion::<G, K, S> {
            policy,
            signal,
            kernel,
            expected: &mut self.expected,
            values: &mut self.values,
        }));
        self.values.step(0)
    }
}

/// `S` is the number of states, or 0 where it is not known beforehand.
struct Recursion<'a, G, K, const S: usize> {
    policy: &'a MarkovPolicy,
    signal: &'a G,
    kernel: &'a K,
    expected: &'a mut [f64], // [S, A]
    values: &'a mut StateValues,
}

impl<G: StepSignal, K: StepKernel, const S: usize> Job for Recursion<'_, G, K, S> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let shape = self.policy.shape();
        for step in (0..shape.horizon()).rev() {
            let (here, next) = self.values.step_and_next(step);
            let states = if S > 0 { S } else { next.len() };
            let (here, next) = (&mut here[..states], &next[..states]);
            let choices = self.policy.step(step);
            if step + 1 < shape.horizon() {
                expect_where_taken(self.kernel, step, choices, next, self.expected);
            } else {
                self.expected.fill(0.0); // no step follows
            }
            self.signal.add_to(step, self.expected); // now Q_h(s,a), where a is taken
            let (mut state, mut rest) = (0, choices);
            each_row(self.expected, shape.num_actions(), |action_values| {
                let choice = rest.split_off(..action_values.len()).unwrap_or_default();
                let parts = action_values.iter().zip(choice);
                here[state] = parts.fold(0.0, |sum, (q, p)| sum + q * p);
                state += 1;
            });
        }
    }
}

/// The expected value of the next state, at least for the actions that are taken: a deterministic
/// policy needs one row in |A|, and then looking at each row on its own is faster than all of them.
#[inline(always)]
fn expect_where_taken<K: StepKernel>(
    kernel: &K,
    step: usize,
    choices: &[f64],
    next: &[f64],
    expected: &mut [f64],
) {
    let taken = choices
        .iter()
        .filter(|&&probability| probability > 0.0)
        .count();
    if 2 * taken > choices.len() {
        kernel.all_expectations(step, next, expected);
        return;
    }
    for (pair, (target, &probability)) in expected.iter_mut().zip(choices).enumerate() {
        *target = if probability > 0.0 {
            kernel.expectation(step, pair, next)
        } else {
            0.0
        };
    }
}
