//! The optimum of a known problem with one constraint, as a policy that is re-evaluated.

use crate::certify::{Reevaluation, certify, within};
use crate::error::{ArrayIndex, Error, Interval, Result};
use crate::evaluate::{Evaluator, evaluate, mix_policies};
use crate::model::{ConstrainedMdp, StepKernel, TransitionKernel};
use crate::plan::chord::ChordSearch;
use crate::plan::induction::{Lagrangian, backward_induction};
use crate::plan::problem::{Objective, Oracle, PlainOracle, PlanningProblem, Vertex};
use crate::policy::MarkovPolicy;
use crate::table::{Signal, StepSignal};

/// How far the re-evaluated value of a plan may be from the planner's own, relative to the size of the
/// values it mixes.
pub(crate) const VALUE_WIDTH: f64 = 1e-9;

/// The optimal policy of a constrained problem, and the two policies it mixes.
#[derive(Debug, Clone)]
pub struct ExactPlan {
    /// The policy, re-evaluated and within the limit.
    pub policy: MarkovPolicy,
    /// V(g_r), as re-evaluated.
    pub value: f64,
    /// The optimal multiplier.
    pub multiplier: f64,
    /// An upper bound on the optimum: the Lagrangian at the multiplier.
    pub bound: f64,
    /// V(g_c) as re-evaluated, the limit, and the repair if there was one.
    pub certificate: Reevaluation,
    /// The deterministic policies that are mixed, with their weights; the one within the limit first.
    pub ends: Vec<(f64, MarkovPolicy)>,
    /// How many backward inductions the search took, without the one for the bound.
    pub inductions: usize,
}

/// The reward and one cost of a known model as a planning problem; the caller has checked that it has such a cost.
#[must_use]
pub fn problem_of(
    model: &ConstrainedMdp,
    constraint: usize,
) -> PlanningProblem<'_, Signal, Signal, TransitionKernel> {
    PlanningProblem {
        shape: model.shape(),
        reward: model.reward(),
        cost: &model.costs()[constraint],
        kernel: model.kernel(),
        initial: model.initial(),
    }
}

/// max V(g_r) subject to V(g_c) <= limit, as a policy with its certificate.
///
/// [`evaluate`] re-evaluates the policy and [`backward_induction`] computes the bound; neither takes part in the
/// search. If the least attainable cost meets the limit only to rounding, so does the plan; its slack may then be a
/// rounding error below zero.
pub fn solve_exactly<R: StepSignal, C: StepSignal, K: StepKernel>(
    problem: &PlanningProblem<'_, R, C, K>,
    limit: f64,
) -> Result<ExactPlan> {
    let (shape, kernel, initial) = (problem.shape, problem.kernel, problem.initial);
    let mut oracle = PlainOracle::new(problem)?;
    let mut search = ChordSearch::new(shape)?;
    let found = search.solve(&mut oracle, limit)?;
    let (below, above) = (search.chord().below(), search.chord().above());
    let mut ends = vec![below.policy(shape)?];
    let mut weights = vec![1.0 - found.weight_above];
    let mut size = below.reward().abs();
    if found.weight_above > 0.0 {
        ends.push(above.policy(shape)?);
        weights.push(found.weight_above);
        size = size.max(above.reward().abs());
    }
    let mixed = match &ends[..] {
        [single] => single.clone(),
        _ => mix_policies(&ends, &weights, kernel, initial)?,
    };
    let rounding = search.cost_rounding(&mut oracle, limit);
    let (policy, certificate) = reevaluated(problem, mixed, &ends[0], limit, rounding)?;
    let value = evaluate(&policy, problem.reward, kernel, initial)?;
    // The rounding of the cost, in units of reward.
    let priced_rounding = found.multiplier * rounding;
    if (value - found.value).abs() > VALUE_WIDTH * size + priced_rounding {
        return Err(Error::NumericalTrouble {
            solver: "parametric",
            status: format!("claimed the value {}, re-evaluated {value}", found.value),
        });
    }
    let signal = Lagrangian::of_one(problem.reward, problem.cost, &found.multiplier);
    let greedy = backward_induction(shape, &signal, kernel)?;
    Ok(ExactPlan {
        policy,
        value,
        multiplier: found.multiplier,
        bound: initial.expectation(greedy.values().step(0)) + found.multiplier * limit,
        certificate,
        ends: weights.into_iter().zip(ends).collect(),
        inductions: found.inductions,
    })
}

/// [`certify`] for a known model: if the least attainable cost equals the limit to rounding, no policy has slack for a
/// repair, and the rounding error remains.
fn reevaluated<R: StepSignal, C: StepSignal, K: StepKernel>(
    problem: &PlanningProblem<'_, R, C, K>,
    mut policy: MarkovPolicy,
    safe: &MarkovPolicy,
    limit: f64,
    rounding: f64,
) -> Result<(MarkovPolicy, Reevaluation)> {
    let (cost, kernel, initial) = (problem.cost, problem.kernel, problem.initial);
    let mut evaluator = Evaluator::new(problem.shape)?;
    let found = evaluator.evaluate(&policy, cost, kernel, initial);
    let safe_cost = evaluator.evaluate(safe, cost, kernel, initial);
    if !within(found, limit) && within(found, limit + rounding) && within(limit, safe_cost) {
        let reevaluation = Reevaluation {
            cost: found,
            limit,
            repair: 0.0,
        };
        return Ok((policy, reevaluation));
    }
    let evaluator = &mut evaluator;
    let certificate = certify(evaluator, &mut policy, safe, cost, kernel, initial, limit)?;
    Ok((policy, certificate.into()))
}

/// The policy at one end of the trade-off between the reward and one cost of a known model.
pub fn extreme(model: &ConstrainedMdp, constraint: usize, objective: Objective) -> Result<Vertex> {
    let count = model.costs().len();
    if constraint >= count {
        return Err(Error::OutOfRange {
            place: ArrayIndex::scalar("constraint"),
            found: constraint as f64,
            allowed: Interval::closed(0.0, (count - 1) as f64),
        });
    }
    let mut found = Vertex::new(model.shape())?;
    PlainOracle::new(&problem_of(model, constraint))?.extreme(objective, &mut found);
    Ok(found)
}
