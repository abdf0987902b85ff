//! Bounds that need no solver: the Lagrangian of a problem with any number of constraints.

use crate::error::Result;
use crate::model::ConstrainedMdp;
use crate::plan::backward_induction::GreedyPlan;
use crate::table::{Signal, StepSignal};

/// weight g_r - sum_m l_m c_m, never stored.
#[derive(Debug)]
pub struct LagrangianSignal<'a> {
    /// g_r.
    pub reward: &'a Signal,
    /// The weight of the reward: 1, or 0 to look at costs alone.
    pub reward_weight: f64,
    /// The costs c_m.
    pub costs: &'a [Signal],
    /// The multipliers l_m.
    pub multipliers: &'a [f64],
}

impl StepSignal for LagrangianSignal<'_> {
    #[inline(always)]
    fn at(&self, step: usize, pair: usize) -> f64 {
        let mut sum = self.reward_weight * self.reward.at(step, pair);
        for (cost, multiplier) in self.costs.iter().zip(self.multipliers) {
            sum -= multiplier * cost.at(step, pair);
        }
        sum
    }
}

/// The best policy for the Lagrangian of a known model, with its value
/// max over policies of weight V(r) - sum_m l_m V(c_m).
///
/// For multipliers l >= 0, that maximum plus sum_m l_m tau_m bounds V* from above (weak duality),
/// whoever found the multipliers: this is the certificate of optimality.
pub fn lagrangian_plan(
    model: &ConstrainedMdp,
    reward_weight: f64,
    multipliers: &[f64],
) -> Result<(GreedyPlan, f64)> {
    let signal = LagrangianSignal {
        reward: model.reward(),
        reward_weight,
        costs: model.costs(),
        multipliers,
    };
    let mut plan = GreedyPlan::new(model.shape())?;
    plan.solve(&signal, &**model.kernel().kernel());
    let value = model.initial().expectation(plan.values().step(0));
    Ok((plan, value))
}

/// Reward and costs of a deterministic policy of a known model.
pub fn locate(model: &ConstrainedMdp, plan: &GreedyPlan) -> Result<(f64, Vec<f64>)> {
    let policy = plan.policy()?;
    let value = |signal: &Signal| {
        crate::evaluate::evaluate(&policy, signal, model.kernel(), model.initial())
    };
    let costs: Result<Vec<f64>> = model.costs().iter().map(value).collect();
    Ok((value(model.reward())?, costs?))
}
