//! The Python binding of `optpess_core`: converts arguments, calls the core with the interpreter
//! released, converts results. No arithmetic, no decisions, no defaults.

mod call;
mod convert;
mod error;
mod evaluate;
mod learner;
mod model;
mod plan;
mod rollout;
mod run;
mod signals;
mod transitions;

use pyo3::prelude::*;

/// The compiled part of optpess. Private: import from `optpess`. An interpreter without a global lock turns it on: that
/// the classes can do without has not been shown.
#[pymodule(gil_used = true)]
mod _core {
    #[pymodule_export]
    use crate::error::error_kinds;
    #[pymodule_export]
    use crate::evaluate::{
        evaluate, mix_policies, occupancy, policy_from_occupancy, state_values, value_difference,
    };
    #[pymodule_export]
    use crate::learner::{
        Learner, always_baseline, check_margin, cucrl, draw_action, episode_seed, margin_learner,
        optpess_mix, sops,
    };
    #[pymodule_export]
    use crate::model::{Model, check_noise};
    #[pymodule_export]
    use crate::plan::{
        LagrangianSearch, backward_induction, extended_induction, extreme_actions,
        frontier_vertices, least_cost_and_rounding, mix_actions, solve_extended, solve_parametric,
    };
    #[pymodule_export]
    use crate::rollout::Rollout;
    #[pymodule_export]
    use crate::run::{
        baseline_values, recorded_episodes, sample, simulate_learner, tightening_horizon,
    };
    #[pymodule_export]
    use crate::signals::SignalWatch;
    #[pymodule_export]
    use crate::transitions::{Transitions, plain_transitions};
}
