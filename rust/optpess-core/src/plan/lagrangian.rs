//! Best policies of known models for one signal, or for the Lagrangian of any number of costs, each with the reward and
//! the costs it comes to.

use crate::error::Result;
use crate::evaluate::{
    Heaviest, JointChoice, JointSweep, JointValues, RewardAndCosts, TakeCompact,
};
use crate::model::{ConstrainedMdp, Kernel};
use crate::parallel::Workers;
use crate::plan::induction::Lagrangian;
use crate::shape::Shape;
use crate::table::{CompactActions, Signal, StateValues, StepSignal};

/// How many signals are swept side by side at most.
const MOST_LANES: usize = 8;

/// The best policy for one signal, and its values `[H + 1, S]`.
///
/// Formula: that of [`super::GreedyPlan::maximise`], to its bits.
pub fn best_actions<G: StepSignal + Sync>(
    shape: Shape,
    signal: &G,
    kernel: &Kernel,
    workers: Workers<'_>,
) -> Result<(CompactActions, StateValues)> {
    let mut values = JointValues::of_every_step(shape)?;
    let mut actions = CompactActions::zeros(shape)?;
    let sweep = JointSweep {
        shape,
        signals: signal,
        kernel,
        workers,
    };
    sweep.run(
        &Heaviest { weights: [1.0] },
        &mut values,
        Some(&mut actions),
    )?;
    Ok((actions, values.into_state_values()))
}

/// The best policy for a Lagrangian of a known model.
#[derive(Debug, Clone)]
pub struct LagrangianPlan {
    /// max over policies of weight V(r) - sum_m l_m V(c_m). For any multipliers l >= 0 and weight 1, that plus
    /// sum_m l_m tau_m bounds V* from above (weak duality): this is the certificate of optimality.
    pub value: f64,
    /// V(r) of the policy.
    pub reward: f64,
    /// V(c_m) of the policy.
    pub costs: Vec<f64>,
    /// The policy.
    pub actions: CompactActions,
}

/// The best policy for weight r - sum_m l_m c_m, with its reward and costs.
pub fn lagrangian_plan(
    model: &ConstrainedMdp,
    reward_weight: f64,
    multipliers: &[f64],
    workers: Workers<'_>,
) -> Result<LagrangianPlan> {
    let signals = signals_of(model);
    match signals.len() {
        2 => maximise::<2>(model, &signals, reward_weight, multipliers, workers),
        3..=4 => maximise::<4>(model, &signals, reward_weight, multipliers, workers),
        5..=MOST_LANES => {
            maximise::<MOST_LANES>(model, &signals, reward_weight, multipliers, workers)
        }
        _ => maximise_first(model, reward_weight, multipliers, workers),
    }
}

/// The reward, then the costs.
fn signals_of(model: &ConstrainedMdp) -> Vec<&Signal> {
    std::iter::once(model.reward())
        .chain(model.costs())
        .collect()
}

/// One sweep with all signals side by side.
fn maximise<const N: usize>(
    model: &ConstrainedMdp,
    signals: &[&Signal],
    reward_weight: f64,
    multipliers: &[f64],
    workers: Workers<'_>,
) -> Result<LagrangianPlan> {
    let shape = model.shape();
    let mut weights = [0.0; N];
    weights[0] = reward_weight;
    for (weight, multiplier) in weights[1..].iter_mut().zip(multipliers) {
        *weight = -multiplier;
    }
    let choice = Heaviest { weights };
    let mut actions = CompactActions::zeros(shape)?;
    let found = start_values::<N>(model, signals, &choice, Some(&mut actions), workers)?;
    Ok(LagrangianPlan {
        value: choice.weigh(found),
        reward: found[0],
        costs: found[1..signals.len()].to_vec(),
        actions,
    })
}

/// One sweep for the policy, and then its reward and costs: for more signals than fit side by side.
fn maximise_first(
    model: &ConstrainedMdp,
    reward_weight: f64,
    multipliers: &[f64],
    workers: Workers<'_>,
) -> Result<LagrangianPlan> {
    let shape = model.shape();
    let signal = Lagrangian::new(model.reward(), model.costs(), multipliers);
    let signal = signal.with_reward_weight(reward_weight);
    let (actions, values) = best_actions(shape, &signal, model.kernel().kernel(), workers)?;
    let choice = TakeCompact {
        states: shape.num_states(),
        actions: &actions,
    };
    let (reward, costs) = evaluate_all(model, &choice, workers)?;
    Ok(LagrangianPlan {
        value: model.initial().expectation(values.step(0)),
        reward,
        costs,
        actions,
    })
}

/// Reward and costs of what a choice does that is the same for any number of signals.
pub fn evaluate_all<C>(
    model: &ConstrainedMdp,
    choice: &C,
    workers: Workers<'_>,
) -> Result<(f64, Vec<f64>)>
where
    C: JointChoice<2> + JointChoice<4> + JointChoice<MOST_LANES>,
{
    let mut found = Vec::new();
    for signals in signals_of(model).chunks(MOST_LANES) {
        let each = match signals.len() {
            1..=2 => start_values::<2>(model, signals, choice, None, workers)?.to_vec(),
            3..=4 => start_values::<4>(model, signals, choice, None, workers)?.to_vec(),
            _ => start_values::<MOST_LANES>(model, signals, choice, None, workers)?.to_vec(),
        };
        found.extend_from_slice(&each[..signals.len()]);
    }
    let costs = found.split_off(1);
    Ok((found[0], costs))
}

fn start_values<const N: usize>(
    model: &ConstrainedMdp,
    signals: &[&Signal],
    choice: &impl JointChoice<N>,
    actions: Option<&mut CompactActions>,
    workers: Workers<'_>,
) -> Result<[f64; N]> {
    let mut values = JointValues::rolling(model.shape())?;
    let sweep = JointSweep {
        shape: model.shape(),
        signals: RewardAndCosts::<_, N>::new(signals),
        kernel: model.kernel().kernel(),
        workers,
    };
    sweep.run(choice, &mut values, actions)?;
    Ok(model.initial().expectations(values.first_step()))
}
