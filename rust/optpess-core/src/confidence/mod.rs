//! Owns every constant of the theory and the signals that are biased by them. Refuses bookkeeping of
//! counts, and planning.

pub mod constants;
mod first;
mod guarantee;
mod margin;
pub mod peers;
mod rule;
mod signals;

pub(crate) use first::bisect_first;
pub use guarantee::Guarantee;
pub use margin::SafetyMargin;
pub use peers::PeerRadii;
pub use rule::{Bonus, ConfidenceRule, LearningTerms, MAX_EPISODES};
pub use signals::{OptimisticCost, OptimisticReward, PessimisticCost};
