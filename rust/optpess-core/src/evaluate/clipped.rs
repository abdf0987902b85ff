//! Values of a given policy whose action values are kept within what any policy can attain.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::model::{InitialDistribution, StepKernel};
use crate::policy::MarkovPolicy;
use crate::shape::Shape;
use crate::table::{StateValues, StepSignal, zeros};

/// Q and V of a policy, with Q clipped at every step; also the workspace of the next evaluation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ClippedValues {
    shape: Shape,
    action_values: Vec<f64>, // [H, S, A]
    values: StateValues,
}

impl ClippedValues {
    /// A workspace for policies of this shape.
    pub fn new(shape: Shape) -> Result<Self> {
        Ok(Self {
            shape,
            action_values: zeros("action values [H, S, A]", shape.triples())?,
            values: StateValues::zeros(shape)?,
        })
    }

    /// Q_h(s,a) of the last evaluation, `[H, S, A]`.
    #[must_use]
    pub fn action_values(&self) -> &[f64] {
        &self.action_values
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
        let (horizon, pairs) = (self.shape.horizon(), self.shape.pairs());
        for step in (0..horizon).rev() {
            let (here, next) = self.values.step_and_next(step);
            let action_values = &mut self.action_values[step * pairs..][..pairs];
            if step + 1 < horizon {
                kernel.all_expectations(step, next, action_values);
            } else {
                action_values.fill(0.0); // no step follows
            }
            signal.add_to(step, action_values);
            let most = (horizon - step) as f64;
            for q in action_values.iter_mut() {
                *q = q.clamp(0.0, most);
            }
            let actions = self.shape.num_actions();
            let rows = action_values
                .chunks_exact(actions)
                .zip(policy.step(step).chunks_exact(actions));
            for (value, (action_values, choices)) in here.iter_mut().zip(rows) {
                *value = action_values
                    .iter()
                    .zip(choices)
                    .fold(0.0, |sum, (q, p)| sum + q * p);
            }
        }
        initial.expectation(self.values.step(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Kernel, Slices};
    use crate::table::Signal;

    #[test]
    fn values_stay_within_what_is_left_of_the_episode() {
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
