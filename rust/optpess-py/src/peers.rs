//! The learners that know only their margin, and those that the paper's are compared with, from Python.

use optpess_core::confidence::{LearningTerms, SafetyMargin};
use optpess_core::error::Result;
use optpess_core::learn::OptPessPrimalDual;
use optpess_core::learn::peers::{
    AlwaysBaseline, Cucrl, KnownTransitions, Opdop, OptCmdp, OptCmdpBonus, OptDualCmdp,
    OptPrimalDualCmdp, UnconstrainedOptimistic,
};
use optpess_core::model::InitialDistribution;
use optpess_core::shape::Shape;
use pyo3::prelude::*;

use crate::any_learner::AnyLearner;
use crate::convert::core;
use crate::error::unknown_choice;
use crate::evaluate::initial_in;
use crate::learner::{Learner, baseline_in, episodes_in, terms};
use crate::transitions::kernel_of_shape;

/// What makes a learner from its Input line.
type Make = fn(Shape, InitialDistribution, SafetyMargin, LearningTerms) -> Result<AnyLearner>;

/// The constructor of one learner, as a function to whichever learner it is.
macro_rules! made {
    ($kind:ident as $variant:ident) => {
        |shape, initial, margin, terms| {
            let learner = $kind::new(shape, initial, margin, terms)?;
            Ok(AnyLearner::$variant(Box::new(learner)))
        }
    };
}

/// The learners that are told of no safe policy, by name.
const MAKERS: [(&str, Make); 7] = [
    ("optpess-primaldual", made!(OptPessPrimalDual as PrimalDual)),
    (
        "unconstrained",
        made!(UnconstrainedOptimistic as Unconstrained),
    ),
    ("optcmdp", made!(OptCmdp as OptCmdp)),
    ("optcmdp-bonus", made!(OptCmdpBonus as OptCmdpBonus)),
    ("optdual-cmdp", made!(OptDualCmdp as OptDualCmdp)),
    (
        "optprimaldual-cmdp",
        made!(OptPrimalDualCmdp as OptPrimalDualCmdp),
    ),
    ("opdop", made!(Opdop as Opdop)),
];

/// A learner that knows only its margin, by the name of its algorithm.
#[pyfunction]
#[expect(
    clippy::too_many_arguments,
    reason = "the Input line of the algorithm boxes"
)]
pub fn margin_learner(
    algorithm: &str,
    sizes: (usize, usize, usize),
    initial: &Bound<'_, PyAny>,
    cost_limit: f64,
    safe_cost: f64,
    num_episodes: &Bound<'_, PyAny>,
    failure_probability: f64,
    factor: Option<f64>,
) -> PyResult<Learner> {
    let Some((_, make)) = MAKERS.iter().find(|(name, _)| *name == algorithm) else {
        return Err(unknown_choice("algorithm", algorithm, "those of optpess"));
    };
    let terms = terms(num_episodes, failure_probability, factor)?;
    let shape = core(Shape::new(sizes.0, sizes.1, sizes.2))?;
    let initial = initial_in(initial, shape.num_states())?;
    let margin = core(SafetyMargin::new(cost_limit, safe_cost))?;
    Ok(Learner {
        learner: core(make(shape, initial, margin, terms))?,
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
    let baseline = baseline_in(baseline, cost_limit, safe_cost, radius)?;
    let initial = initial_in(initial, baseline.policy().shape().num_states())?;
    let learner = core(AlwaysBaseline::new(initial, baseline, num_episodes))?;
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
    let terms = terms(num_episodes, failure_probability, factor)?;
    let baseline = baseline_in(baseline, cost_limit, Some(safe_cost), "sub-gaussian")?;
    let shape = baseline.policy().shape();
    let initial = initial_in(initial, shape.num_states())?;
    let kernel = kernel_of_shape(transitions, shape)?;
    let transitions = core(KnownTransitions::new(shape, &kernel))?;
    let learner = core(Cucrl::new(transitions, initial, baseline, terms))?;
    Ok(Learner {
        learner: AnyLearner::Cucrl(Box::new(learner)),
    })
}
