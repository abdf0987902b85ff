//! Two signals under one policy, in one pass.

use crate::error::Result;
use crate::model::{InitialDistribution, StepKernel};
use crate::policy::MarkovPolicy;
use crate::shape::Shape;
use crate::table::{StepSignal, zeros};
use crate::vectorised::{Job, vectorised};

/// Values of two signals at this step (0) and the next (1); nothing is allocated later.
#[derive(Debug, Clone)]
pub struct PairEvaluator {
    first: [Vec<f64>; 2],  // [S]
    second: [Vec<f64>; 2], // [S]
}

impl PairEvaluator {
    /// A workspace for policies of this shape.
    pub fn new(shape: Shape) -> Result<Self> {
        let states = || zeros("state values [S]", shape.num_states());
        Ok(Self {
            first: [states()?, states()?],
            second: [states()?, states()?],
        })
    }

    /// (V^pi_1(mu; f, P), V^pi_1(mu; g, P)) for finite signals f and g, to the bits of
    /// [`super::evaluate`] for each: an action that is not taken adds 0 there and is left out here.
    pub fn evaluate<F: StepSignal, G: StepSignal, K: StepKernel>(
        &mut self,
        policy: &MarkovPolicy,
        signals: (&F, &G),
        kernel: &K,
        initial: &InitialDistribution,
    ) -> (f64, f64) {
        vectorised(Recursion {
            policy,
            signals,
            kernel,
            values: self,
        });
        (
            initial.expectation(&self.first[0]),
            initial.expectation(&self.second[0]),
        )
    }
}

struct Recursion<'a, F, G, K> {
    policy: &'a MarkovPolicy,
    signals: (&'a F, &'a G),
    kernel: &'a K,
    values: &'a mut PairEvaluator,
}

impl<F: StepSignal, G: StepSignal, K: StepKernel> Job for Recursion<'_, F, G, K> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (shape, kernel) = (self.policy.shape(), self.kernel);
        let (f, g) = self.signals;
        for step in (0..shape.horizon()).rev() {
            self.values.first.swap(0, 1);
            self.values.second.swap(0, 1);
            let ([first, next_first], [second, next_second]) =
                (&mut self.values.first, &mut self.values.second);
            for state in 0..shape.num_states() {
                let mut sums = (0.0, 0.0);
                for (action, &probability) in self.policy.row(step, state).iter().enumerate() {
                    if probability > 0.0 {
                        let pair = shape.pair(state, action);
                        let mut own = (0.0, 0.0);
                        if step + 1 < shape.horizon() {
                            own = kernel.expectation_of_two(step, pair, next_first, next_second);
                        }
                        sums.0 += (own.0 + f.at(step, pair)) * probability;
                        sums.1 += (own.1 + g.at(step, pair)) * probability;
                    }
                }
                (first[state], second[state]) = sums;
            }
        }
    }
}
