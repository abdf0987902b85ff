//! Owns the search for a best policy, given signals and a kernel. Refuses to know where the signals
//! came from and whether they are biased.

mod backward_induction;
mod board;
mod certificate;
mod exact;
mod frontier;
mod lagrangian;
mod mirror_ascent;
mod mixing;
mod parametric;
mod priced;
mod tradeoff;

pub use backward_induction::{GreedyPlan, backward_induction};
pub use certificate::{Certificate, certified};
pub use exact::{ExactPlan, extreme, solve_exactly, tradeoff_of};
pub use frontier::frontier;
pub use lagrangian::{LagrangianSignal, lagrangian_plan, locate};
pub use mirror_ascent::MirrorAscent;
pub use mixing::Mixer;
pub use parametric::{Mixture, Parametric};
pub(crate) use priced::{PairData, PricedPlanner};
pub(crate) use tradeoff::StepValues;
pub use tradeoff::{Objective, Penalised, Tradeoff, Vertex};
