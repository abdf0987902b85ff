//! Best policies for given signals and a given kernel or set of kernels. Planners do not know where the signals come
//! from or whether they are biased.
//!
//! `induction.rs` maximises one signal, `problem.rs` poses a reward and a cost on one kernel, `chord.rs` finds the best
//! reward for a limit with the multipliers of `pace.rs` (`bracket.rs`: from a guess), `extended.rs` chooses the kernel too. For known models, which
//! may be large, `known.rs` has the oracle, `exact.rs` and `frontier.rs` use it, `lagrangian.rs` maximises with any number
//! of costs, and `action_gaps.rs` says which actions need not be looked at.

mod action_gaps;
mod bracket;
mod chord;
mod exact;
mod extended;
mod frontier;
mod induction;
mod known;
mod lagrangian;
mod mirror_ascent;
mod pace;
mod problem;

pub use chord::{
    Chord, ChordSearch, ChordSolution, PLANNING_MARGIN, PartneredSolution, least_cost_and_rounding,
};
pub use exact::{ExactPlan, extreme, problem_of, solve_exactly, solve_to};
pub use extended::{
    Extended, ExtendedOracle, ExtendedPlan, ExtendedVertex, ExtendedWork, extended_induction,
    solve_extended,
};
pub use frontier::{FoundFrontier, FrontierRequest, frontier, frontier_to};
pub(crate) use induction::TIE_WIDTH;
pub use induction::{GreedyPlan, Lagrangian, backward_induction};
pub use known::{KnownOracle, KnownProblem, KnownVertex};
pub use lagrangian::{LagrangianPlan, LagrangianSearch, best_actions, evaluate_all};
pub use mirror_ascent::MirrorAscent;
pub use problem::{
    ActionPoint, MixingOracle, Objective, Oracle, PlainOracle, PlanningProblem, PlanningWork,
    Point, Vertex,
};
