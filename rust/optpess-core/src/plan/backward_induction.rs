//! The best policy for one signal, by backward induction.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::model::StepKernel;
use crate::policy::MarkovPolicy;
use crate::shape::Shape;
use crate::table::{StateValues, StepSignal, zeros};
use crate::vectorised::{Job, each_row, vectorised};

/// A deterministic policy with the values it attains; also the workspace of the next induction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(into = "Shape", try_from = "Shape")]
pub struct GreedyPlan {
    shape: Shape,
    actions: Vec<u32>, // [H, S]
    values: StateValues,
    /// The expected value of the next state, then Q_h, for the step at hand.
    expected: Vec<f64>, // [S, A]
}

/// A workspace is stored as its shape.
impl From<GreedyPlan> for Shape {
    fn from(plan: GreedyPlan) -> Self {
        plan.shape
    }
}

impl TryFrom<Shape> for GreedyPlan {
    type Error = Error;

    fn try_from(shape: Shape) -> Result<Self> {
        Self::new(shape)
    }
}

impl GreedyPlan {
    /// A workspace for problems of this shape.
    pub fn new(shape: Shape) -> Result<Self> {
        Ok(Self {
            shape,
            actions: zeros("actions [H, S]", shape.horizon() * shape.num_states())?,
            values: StateValues::zeros(shape)?,
            expected: zeros("expected values [S, A]", shape.pairs())?,
        })
    }

    /// The action taken at each step and state, `[H, S]`.
    #[must_use]
    pub fn actions(&self) -> &[u32] {
        &self.actions
    }

    /// max over policies of V^pi_h(s), `[H + 1, S]`.
    #[must_use]
    pub fn values(&self) -> &StateValues {
        &self.values
    }

    /// The plan as a policy.
    pub fn policy(&self) -> Result<MarkovPolicy> {
        MarkovPolicy::deterministic(self.shape, &self.actions)
    }

    /// Replaces the plan by the best policy for `signal` on `kernel`, without allocating.
    ///
    /// Formula: V_H = 0; Q_h(s,a) = g_h(s,a) + sum_s' P_h(s'|s,a) V_{h+1}(s'); V_h = max_a Q_h; ties
    /// go to the lowest action. Citation: \[Liu21\], Section 4. Deviation: none.
    pub fn solve<G: StepSignal, K: StepKernel>(&mut self, signal: &G, kernel: &K) {
        vectorised(Induction {
            plan: self,
            signal,
            kernel,
        });
    }
}

/// The best policy for one signal on one kernel, and its values.
pub fn backward_induction<G: StepSignal, K: StepKernel>(
    shape: Shape,
    signal: &G,
    kernel: &K,
) -> Result<GreedyPlan> {
    let mut plan = GreedyPlan::new(shape)?;
    plan.solve(signal, kernel);
    Ok(plan)
}

struct Induction<'a, G, K> {
    plan: &'a mut GreedyPlan,
    signal: &'a G,
    kernel: &'a K,
}

impl<G: StepSignal, K: StepKernel> Job for Induction<'_, G, K> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let shape = self.plan.shape;
        let expected = &mut self.plan.expected;
        expected.fill(0.0); // nothing follows the last step
        for step in (0..shape.horizon()).rev() {
            let (here, next) = self.plan.values.step_and_next(step);
            if step + 1 < shape.horizon() {
                self.kernel.all_expectations(step, next, expected);
            }
            let chosen = &mut self.plan.actions[step * shape.num_states()..];
            self.signal.add_to(step, expected); // now Q_h(s,a)
            let mut state = 0;
            each_row(expected, shape.num_actions(), |action_values| {
                let (mut best, mut best_action) = (f64::NEG_INFINITY, 0);
                for (action, &q) in action_values.iter().enumerate() {
                    if q > best {
                        (best, best_action) = (q, action as u32);
                    }
                }
                (here[state], chosen[state]) = (best, best_action);
                state += 1;
            });
        }
    }
}
