//! The optimum of a known problem with one constraint, as a policy that is re-evaluated.

use crate::certify::{Reevaluation, repair, within};
use crate::control::Control;
use crate::error::{ArrayIndex, Error, Interval, Result};
use crate::evaluate::{Heaviest, JointSweep, JointValues, MixedActions};
use crate::model::{ConstrainedMdp, InitialDistribution, Slices};
use crate::parallel::Workers;
use crate::plan::chord::{ChordSearch, ChordSolution, cost_rounding};
use crate::plan::induction::Lagrangian;
use crate::plan::known::{KnownOracle, KnownProblem, KnownVertex};
use crate::plan::pace::Predictions;
use crate::plan::problem::{Objective, Oracle, Point};
use crate::shape::Shape;
use crate::table::{Signal, StepSignal};

/// How far the re-evaluated value of a plan may be from the planner's own, relative to the size of the
/// values it mixes.
pub(crate) const VALUE_WIDTH: f64 = 1e-9;

/// Problems with fewer steps are not guessed from shorter ones.
const SHORTENED_FROM: usize = 40;

/// How many times fewer steps the shorter problem has.
const SHORTENED_BY: usize = 10;

/// How exactly the shorter problem is solved, relative to the range of its values.
const GUESS_TOLERANCE: f64 = 1e-4;

/// The optimal policy of a constrained problem, and the two policies it mixes.
#[derive(Debug, Clone)]
pub struct ExactPlan {
    /// The policy, re-evaluated and within the limit: a mixture of at most two deterministic policies, the one within
    /// the limit first.
    pub policy: MixedActions,
    /// V(g_r), as re-evaluated.
    pub value: f64,
    /// The optimal multiplier or, with a tolerance, that of the bound.
    pub multiplier: f64,
    /// An upper bound on the optimum: the Lagrangian at the multiplier.
    pub bound: f64,
    /// V(g_c) as re-evaluated, the limit, and the repair if there was one.
    pub certificate: Reevaluation,
    /// How many backward inductions the search took, without the one for the bound.
    pub inductions: usize,
}

/// The reward and one cost of a known model as a planning problem; the caller has checked that it has such a cost.
#[must_use]
pub fn problem_of(model: &ConstrainedMdp, constraint: usize) -> KnownProblem<'_, Signal, Signal> {
    KnownProblem {
        shape: model.shape(),
        reward: model.reward(),
        cost: &model.costs()[constraint],
        kernel: model.kernel().kernel(),
        initial: model.initial(),
    }
}

/// max V(g_r) subject to V(g_c) <= limit, as a policy with its certificate, on one thread.
pub fn solve_exactly<R: StepSignal + Sync, C: StepSignal + Sync>(
    problem: &KnownProblem<'_, R, C>,
    limit: f64,
) -> Result<ExactPlan> {
    solve_to(problem, limit, 0.0, Workers::alone(&Control::default()))
}

/// [`solve_exactly`] on several threads. With a positive tolerance the search ends as soon as the value is known to be
/// at most that far below the optimum.
///
/// The policy is evaluated again after the search, and a separate induction computes the bound. If the least attainable
/// cost meets the limit only to rounding, so does the plan; its slack may then be a rounding error below zero.
pub fn solve_to<R: StepSignal + Sync, C: StepSignal + Sync>(
    problem: &KnownProblem<'_, R, C>,
    limit: f64,
    tolerance: f64,
    workers: Workers<'_>,
) -> Result<ExactPlan> {
    let (shape, kernel, initial) = (problem.shape, problem.kernel, problem.initial);
    let guess = multiplier_of_a_shorter_problem(problem, limit, workers)?;
    // Without a guess the first multiplier is that of the chord between the ends of the curve.
    let far = usize::from(guess.is_none());
    let mut oracle = KnownOracle::new(problem, workers)?.for_close_multipliers(far);
    let mut search = ChordSearch::new(shape)?;
    let mut pace = Predictions::new(tolerance, guess);
    let found = search.solve_at(&mut pace, &mut oracle, limit)?;
    let [mut below, above] = search.into_ends();
    let mut size = below.reward().abs();
    let (mut ends, mut weights) = (vec![below.actions().clone()], vec![1.0]);
    if found.weight_above > 0.0 {
        size = size.max(above.reward().abs());
        ends.push(above.into_actions());
        weights = vec![1.0 - found.weight_above, found.weight_above];
    }
    let mut policy = MixedActions::new(shape, ends, weights, kernel, initial, workers)?;
    let [mut value, cost] = oracle.evaluate(&policy)?;
    let mut certificate = Reevaluation {
        cost,
        limit,
        repair: 0.0,
    };
    if !within(cost, limit) {
        let rounding = cost_rounding(&mut oracle, limit, &mut below);
        oracle.check()?;
        if !(within(cost, limit + rounding) && within(limit, below.cost())) {
            let mut mixed = |repair: f64| {
                let above = found.weight_above * (1.0 - repair);
                policy.reweigh(vec![1.0 - above, above], kernel, initial, workers)?;
                let [reward, cost] = oracle.evaluate(&policy)?;
                value = reward;
                Ok(cost)
            };
            certificate = repair(cost, below.cost(), limit, &mut mixed)?.into();
        }
    }
    check_value(&mut oracle, limit, &mut below, &found, value, size)?;
    Ok(ExactPlan {
        policy,
        value,
        multiplier: found.multiplier,
        bound: lagrangian_bound(problem, found.multiplier, workers)? + found.multiplier * limit,
        certificate,
        inductions: found.inductions,
    })
}
/// The multiplier of the same problem with a tenth of the steps, a tenth of the limit and a start in any state, above 0;
/// None if a problem is not the same at every step, or has so few steps that this would not save time. The start in any
/// state stands for where the process is after some steps. A multiplier that is far off costs the search some inductions.
fn multiplier_of_a_shorter_problem<R: StepSignal + Sync, C: StepSignal + Sync>(
    problem: &KnownProblem<'_, R, C>,
    limit: f64,
    workers: Workers<'_>,
) -> Result<Option<f64>> {
    let shape = problem.shape;
    let is_stationary = problem.reward.is_stationary()
        && problem.cost.is_stationary()
        && problem.kernel.slices() == Slices::Stationary;
    if !is_stationary || shape.horizon() < SHORTENED_FROM {
        return Ok(None);
    }
    let steps = shape.horizon() / SHORTENED_BY;
    let part = steps as f64 / shape.horizon() as f64;
    let states = shape.num_states();
    let anywhere = InitialDistribution::new(states, vec![1.0 / states as f64; states])?;
    let shorter = KnownProblem {
        shape: Shape::stationary(steps, states, shape.num_actions())?,
        initial: &anywhere,
        ..*problem
    };
    let (least, greatest) = problem.reward.range(steps, shape.pairs());
    let tolerance = GUESS_TOLERANCE * steps as f64 * (greatest - least);
    let mut oracle = KnownOracle::new(&shorter, workers)?.for_close_multipliers(1);
    let mut pace = Predictions::new(tolerance, None);
    let found = ChordSearch::new(shorter.shape)?.solve_at(&mut pace, &mut oracle, limit * part);
    match found {
        Ok(found) if found.multiplier > 0.0 && found.multiplier < f64::MAX => {
            Ok(Some(found.multiplier))
        }
        Err(Error::Interrupted) => Err(Error::Interrupted),
        // The shorter problem may be infeasible although the problem is not.
        _ => Ok(None),
    }
}

/// Refuses a plan whose value, evaluated again, is not what the search found.
fn check_value<R: StepSignal + Sync, C: StepSignal + Sync>(
    oracle: &mut KnownOracle<'_, R, C>,
    limit: f64,
    below: &mut KnownVertex,
    found: &ChordSolution,
    value: f64,
    size: f64,
) -> Result<()> {
    let difference = (value - found.value).abs();
    if difference <= VALUE_WIDTH * size {
        return Ok(());
    }
    // The rounding of the cost, in units of reward.
    let priced_rounding = found.multiplier * cost_rounding(oracle, limit, below);
    oracle.check()?;
    if difference <= VALUE_WIDTH * size + priced_rounding {
        return Ok(());
    }
    Err(Error::NumericalTrouble {
        solver: "parametric",
        status: format!("claimed the value {}, re-evaluated {value}", found.value),
    })
}

/// max over policies of V(g_r) - multiplier V(g_c), by an induction on that one signal.
fn lagrangian_bound<R: StepSignal + Sync, C: StepSignal + Sync>(
    problem: &KnownProblem<'_, R, C>,
    multiplier: f64,
    workers: Workers<'_>,
) -> Result<f64> {
    let signal = Lagrangian::of_one(problem.reward, problem.cost, &multiplier);
    let mut values = JointValues::rolling(problem.shape)?;
    let sweep = JointSweep {
        shape: problem.shape,
        signals: &signal,
        kernel: problem.kernel,
        workers,
    };
    sweep.run(&Heaviest { weights: [1.0] }, &mut values, None)?;
    let [found] = problem.initial.expectations(values.first_step());
    Ok(found)
}

/// The policy at one end of the trade-off between the reward and one cost of a known model.
pub fn extreme(
    model: &ConstrainedMdp,
    constraint: usize,
    objective: Objective,
    workers: Workers<'_>,
) -> Result<KnownVertex> {
    let count = model.costs().len();
    if constraint >= count {
        return Err(Error::OutOfRange {
            place: ArrayIndex::scalar("constraint"),
            found: constraint as f64,
            allowed: Interval::closed(0.0, (count - 1) as f64),
        });
    }
    let problem = problem_of(model, constraint);
    let mut oracle = KnownOracle::new(&problem, workers)?;
    let mut found = KnownVertex::for_shape(model.shape())?;
    oracle.extreme(objective, &mut found);
    oracle.check()?;
    Ok(found)
}
