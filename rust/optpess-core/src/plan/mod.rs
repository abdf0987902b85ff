//! Owns the search for a best policy, given signals and a kernel. Refuses to know where the signals
//! came from and whether they are biased.

mod backward_induction;

pub use backward_induction::{GreedyPlan, backward_induction};
