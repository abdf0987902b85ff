//! Owns the search for a best policy, given signals and a kernel. Refuses to know where the signals
//! came from and whether they are biased.

mod backward_induction;
mod chord;
mod exact;
mod extended;
mod extended_plan;
mod frontier;
mod kernel_box;
mod lagrangian;
mod mirror_ascent;
mod mixing;
mod problem;

pub use backward_induction::{GreedyPlan, backward_induction};
pub use chord::{Chord, ChordSearch, ChordSolution, PLANNING_MARGIN, least_cost_and_rounding};
pub use exact::{ExactPlan, extreme, problem_of, solve_exactly};
pub use extended::{Extended, ExtendedOracle, ExtendedVertex, ExtendedWork, extended_induction};
pub use extended_plan::{ExtendedPlan, solve_extended};
pub use frontier::frontier;
pub use kernel_box::KernelBox;
pub use lagrangian::{LagrangianSignal, lagrangian_plan, locate};
pub use mirror_ascent::MirrorAscent;
pub use mixing::PolicyMixer;
pub(crate) use problem::TIE_WIDTH;
pub use problem::{
    Objective, Oracle, Penalised, PlainOracle, PlanningProblem, PlanningWork, Point, Vertex,
};
