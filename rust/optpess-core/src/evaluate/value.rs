//! V of a given policy, by backward recursion.

use crate::error::Result;
use crate::model::{InitialDistribution, StepKernel};
use crate::policy::MarkovPolicy;
use crate::table::{StateValues, StepSignal};
use crate::vectorised::{Job, vectorised};

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
    let mut values = StateValues::zeros(policy.shape())?;
    vectorised(Recursion {
        policy,
        signal,
        kernel,
        values: &mut values,
    });
    Ok(values)
}

/// V^pi_1(mu; g, P), the value from the start.
pub fn evaluate<G: StepSignal, K: StepKernel>(
    policy: &MarkovPolicy,
    signal: &G,
    kernel: &K,
    initial: &InitialDistribution,
) -> Result<f64> {
    Ok(initial.expect(state_values(policy, signal, kernel)?.step(0)))
}

struct Recursion<'a, G, K> {
    policy: &'a MarkovPolicy,
    signal: &'a G,
    kernel: &'a K,
    values: &'a mut StateValues,
}

impl<G: StepSignal, K: StepKernel> Job for Recursion<'_, G, K> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let shape = self.policy.shape();
        for step in (0..shape.horizon()).rev() {
            let last = step + 1 == shape.horizon();
            let (here, next) = self.values.step_and_next(step);
            for (state, value) in here.iter_mut().enumerate() {
                let mut sum = 0.0;
                for (action, &probability) in self.policy.row(step, state).iter().enumerate() {
                    // An action never taken adds nothing; a deterministic policy skips most rows.
                    if probability > 0.0 {
                        let pair = shape.pair(state, action);
                        let mut quality = self.signal.at(step, pair);
                        if !last {
                            quality += self.kernel.expect(step, pair, next);
                        }
                        sum += probability * quality;
                    }
                }
                *value = sum;
            }
        }
    }
}
