//! Best policies of known models for one signal, or for the Lagrangian of any number of costs, each with the reward and
//! the costs it comes to.

use crate::error::Result;
use crate::evaluate::{
    Heaviest, JointChoice, JointSweep, JointValues, RewardAndCosts, TakeCompact,
};
use crate::model::{ConstrainedMdp, Kernel};
use crate::parallel::Workers;
use crate::plan::action_gaps::ActionGaps;
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

/// Best policies for Lagrangians of one model, each sweep with what is known from the one before: the policies and
/// numbers of sweeps on their own.
#[derive(Debug)]
pub struct LagrangianSearch {
    gaps: Option<ActionGaps>,
}

impl LagrangianSearch {
    /// A search that knows nothing yet. Every call of [`LagrangianSearch::best`] must be for this model.
    #[must_use]
    pub fn new(model: &ConstrainedMdp) -> Self {
        let shape = model.shape();
        let signals = signals_of(model);
        let range = |signal: &&Signal| signal.range(shape.horizon(), shape.pairs());
        let ranges = signals.iter().map(range).collect();
        let side_by_side = signals.len() <= MOST_LANES;
        let gaps = || ActionGaps::new(shape, ranges, model.kernel().kernel().leak(), 1);
        Self {
            gaps: side_by_side.then(gaps).flatten(),
        }
    }

    /// The best policy for weight r - sum_m l_m c_m, with its reward and costs.
    pub fn best(
        &mut self,
        model: &ConstrainedMdp,
        reward_weight: f64,
        multipliers: &[f64],
        workers: Workers<'_>,
    ) -> Result<LagrangianPlan> {
        let signals = signals_of(model);
        let lagrangian = (reward_weight, multipliers);
        match signals.len() {
            2 => self.side_by_side::<2>(model, &signals, lagrangian, workers),
            3..=4 => self.side_by_side::<4>(model, &signals, lagrangian, workers),
            5..=MOST_LANES => self.side_by_side::<MOST_LANES>(model, &signals, lagrangian, workers),
            _ => policy_first(model, lagrangian, workers),
        }
    }

    /// One sweep with all signals side by side.
    fn side_by_side<const N: usize>(
        &mut self,
        model: &ConstrainedMdp,
        signals: &[&Signal],
        (reward_weight, multipliers): (f64, &[f64]),
        workers: Workers<'_>,
    ) -> Result<LagrangianPlan> {
        let mut weights = [0.0; N];
        weights[0] = reward_weight;
        for (weight, multiplier) in weights[1..].iter_mut().zip(multipliers) {
            *weight = -multiplier;
        }
        let choice = Heaviest { weights };
        let mut actions = CompactActions::zeros(model.shape())?;
        let mut values = JointValues::rolling(model.shape())?;
        let sweep = sweep_of(model, RewardAndCosts::<_, N>::new(signals), workers);
        match &mut self.gaps {
            Some(gaps) => gaps.sweep(&sweep, weights, &mut values, Some(&mut actions))?,
            None => sweep.run(&choice, &mut values, Some(&mut actions))?,
        }
        let found = model.initial().expectations(values.first_step());
        Ok(LagrangianPlan {
            value: choice.weigh(found),
            reward: found[0],
            costs: found[1..signals.len()].to_vec(),
            actions,
        })
    }
}

/// The reward, then the costs.
fn signals_of(model: &ConstrainedMdp) -> Vec<&Signal> {
    std::iter::once(model.reward())
        .chain(model.costs())
        .collect()
}

/// One sweep for the policy, and then its reward and costs: for more signals than fit side by side.
fn policy_first(
    model: &ConstrainedMdp,
    (reward_weight, multipliers): (f64, &[f64]),
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
            1..=2 => start_values::<2>(model, signals, choice, workers)?.to_vec(),
            3..=4 => start_values::<4>(model, signals, choice, workers)?.to_vec(),
            _ => start_values::<MOST_LANES>(model, signals, choice, workers)?.to_vec(),
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
    workers: Workers<'_>,
) -> Result<[f64; N]> {
    let mut values = JointValues::rolling(model.shape())?;
    let sweep = sweep_of(model, RewardAndCosts::<_, N>::new(signals), workers);
    sweep.run(choice, &mut values, None)?;
    Ok(model.initial().expectations(values.first_step()))
}

fn sweep_of<'a, G>(
    model: &'a ConstrainedMdp,
    signals: G,
    workers: Workers<'a>,
) -> JointSweep<'a, G> {
    JointSweep {
        shape: model.shape(),
        signals,
        kernel: model.kernel().kernel(),
        workers,
    }
}
