//! Best policies for given signals and a given kernel or set of kernels. Planners do not know where the signals come
//! from or whether they are biased.
//!
//! `induction.rs` maximises one signal, `problem.rs` poses a reward and a cost on one kernel, `chord.rs` finds the best
//! reward for a limit, `exact.rs` and `frontier.rs` do so for known models, `extended.rs` chooses the kernel too.

mod chord;
mod exact;
mod extended;
mod frontier;
mod induction;
mod mirror_ascent;
mod problem;

pub use chord::{
    Chord, ChordSearch, ChordSolution, PLANNING_MARGIN, PartneredSolution, least_cost_and_rounding,
};
pub use exact::{ExactPlan, extreme, problem_of, solve_exactly};
pub use extended::{
    Extended, ExtendedOracle, ExtendedPlan, ExtendedVertex, ExtendedWork, extended_induction,
    solve_extended,
};
pub use frontier::frontier;
pub(crate) use induction::TIE_WIDTH;
pub use induction::{GreedyPlan, Lagrangian, backward_induction, lagrangian_plan, locate};
pub use mirror_ascent::MirrorAscent;
pub use problem::{Objective, Oracle, PlainOracle, PlanningProblem, PlanningWork, Point, Vertex};
