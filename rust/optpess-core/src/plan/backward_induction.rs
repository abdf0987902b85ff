//! The best policy for one signal, by backward induction.

use crate::error::Result;
use crate::model::StepKernel;
use crate::policy::MarkovPolicy;
use crate::shape::Shape;
use crate::table::{StateValues, StepSignal, zeros};
use crate::vectorised::{Job, vectorised};

/// A deterministic policy with the values it attains; also the workspace of the next induction.
#[derive(Debug, Clone, PartialEq)]
pub struct GreedyPlan {
    shape: Shape,
    actions: Vec<u32>, // [H, S]
    values: StateValues,
}

impl GreedyPlan {
    /// A workspace for problems of this shape.
    pub fn new(shape: Shape) -> Result<Self> {
        Ok(Self {
            shape,
            actions: zeros("actions [H, S]", shape.horizon() * shape.num_states())?,
            values: StateValues::zeros(shape)?,
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
        for step in (0..shape.horizon()).rev() {
            let last = step + 1 == shape.horizon();
            let (here, next) = self.plan.values.step_and_next(step);
            let chosen = &mut self.plan.actions[step * shape.num_states()..];
            for (state, (value, choice)) in here.iter_mut().zip(chosen).enumerate() {
                let (mut best, mut best_action) = (f64::NEG_INFINITY, 0);
                for action in 0..shape.num_actions() {
                    let pair = shape.pair(state, action);
                    let mut quality = self.signal.at(step, pair);
                    if !last {
                        quality += self.kernel.expect(step, pair, next);
                    }
                    if quality > best {
                        (best, best_action) = (quality, action as u32);
                    }
                }
                (*value, *choice) = (best, best_action);
            }
        }
    }
}
