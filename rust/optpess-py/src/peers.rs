//! The learners that the paper's are compared with, from Python.

use optpess_core::confidence::SafetyMargin;
use optpess_core::learn::SafeBaseline;
use optpess_core::learn::peers::{
    AlwaysBaseline, Cucrl, KnownTransitions, Opdop, OptCmdpBonus, OptPrimalDualCmdp,
    UnconstrainedOptimistic,
};
use optpess_core::shape::Shape;
use pyo3::prelude::*;

use crate::any_learner::AnyLearner;
use crate::convert::core;
use crate::error::unknown_choice;
use crate::evaluate::{initial_in, policy_in};
use crate::learner::{Learner, episodes_in, radius_in, terms};
use crate::transitions::kernel_of_shape;

/// A learner of the comparison that knows only its margin.
#[pyfunction]
#[expect(
    clippy::too_many_arguments,
    reason = "the Input line of the algorithm boxes"
)]
pub fn peer_learner(
    algorithm: &str,
    sizes: (usize, usize, usize),
    initial: &Bound<'_, PyAny>,
    cost_limit: f64,
    safe_cost: f64,
    num_episodes: &Bound<'_, PyAny>,
    failure_probability: f64,
    factor: Option<f64>,
) -> PyResult<Learner> {
    let num_episodes = episodes_in(num_episodes)?;
    let shape = core(Shape::new(sizes.0, sizes.1, sizes.2))?;
    let initial = initial_in(initial, shape.num_states())?;
    let margin = core(SafetyMargin::new(cost_limit, safe_cost))?;
    let terms = core(terms(num_episodes, failure_probability, factor))?;
    let learner = match algorithm {
        "unconstrained" => UnconstrainedOptimistic::new(shape, initial, margin, terms)
            .map(|learner| AnyLearner::Unconstrained(Box::new(learner))),
        "optcmdp-bonus" => OptCmdpBonus::new(shape, initial, margin, terms)
            .map(|learner| AnyLearner::OptCmdpBonus(Box::new(learner))),
        "optprimaldual-cmdp" => OptPrimalDualCmdp::new(shape, initial, margin, terms)
            .map(|learner| AnyLearner::OptPrimalDualCmdp(Box::new(learner))),
        "opdop" => Opdop::new(shape, initial, margin, terms)
            .map(|learner| AnyLearner::Opdop(Box::new(learner))),
        other => return Err(unknown_choice("algorithm", other, "those of optpess.peers")),
    };
    Ok(Learner {
        learner: core(learner)?,
    })
}

/// The learner that always plays the baseline.
#[pyfunction]
pub fn always_baseline(
    initial: &Bound<'_, PyAny>,
    baseline: &Bound<'_, PyAny>,
    cost_limit: f64,
    safe_cost: Option<f64>,
    radius: &str,
    num_episodes: &Bound<'_, PyAny>,
) -> PyResult<Learner> {
    let num_episodes = episodes_in(num_episodes)?;
    let policy = policy_in("baseline", baseline)?;
    let initial = initial_in(initial, policy.shape().num_states())?;
    let radius = radius_in(radius)?;
    let learner = core((|| {
        let baseline = match safe_cost {
            Some(safe) => SafeBaseline::new(policy, SafetyMargin::new(cost_limit, safe)?)?,
            None => SafeBaseline::estimated(policy, cost_limit, radius)?,
        };
        AlwaysBaseline::new(initial, baseline, num_episodes)
    })())?;
    Ok(Learner {
        learner: AnyLearner::AlwaysBaseline(Box::new(learner)),
    })
}

/// C-UCRL, which is told the transitions.
#[pyfunction]
#[expect(
    clippy::too_many_arguments,
    reason = "the Input line of the algorithm box"
)]
pub fn cucrl(
    transitions: &Bound<'_, PyAny>,
    initial: &Bound<'_, PyAny>,
    baseline: &Bound<'_, PyAny>,
    cost_limit: f64,
    safe_cost: f64,
    num_episodes: &Bound<'_, PyAny>,
    failure_probability: f64,
    factor: Option<f64>,
) -> PyResult<Learner> {
    let num_episodes = episodes_in(num_episodes)?;
    let policy = policy_in("baseline", baseline)?;
    let shape = policy.shape();
    let initial = initial_in(initial, shape.num_states())?;
    let kernel = kernel_of_shape(transitions, shape)?;
    let learner = core((|| {
        let transitions = KnownTransitions::new(shape, &kernel)?;
        let baseline = SafeBaseline::new(policy, SafetyMargin::new(cost_limit, safe_cost)?)?;
        let terms = terms(num_episodes, failure_probability, factor)?;
        Cucrl::new(transitions, initial, baseline, terms)
    })())?;
    Ok(Learner {
        learner: AnyLearner::Cucrl(Box::new(learner)),
    })
}
