//! Every constant and radius of the theory, the signals that are biased by them, and the guarantees. Counts are kept in
//! `estimate`, plans are made in `plan`.

mod baseline_cost;
mod bonus;
pub mod constants;
mod good_event;
mod guarantee;
mod margin;
pub mod published;
mod search;
mod sets;
mod sharp;
mod signals;

pub use baseline_cost::CostRadius;
pub(crate) use bonus::check_failure_probability;
pub use bonus::{Bonus, ConfidenceRule, LearningTerms, MAX_EPISODES, MIN_FAILURE_PROBABILITY};
pub use good_event::DeviationRadii;
pub use guarantee::Guarantee;
pub use margin::SafetyMargin;
pub use published::PeerRadii;
pub(crate) use search::bisect_first;
pub use sets::{
    BetaMixture, BoundedMean, ConfidenceSets, DirichletSet, Entry, EpisodeCost, KernelBox, Levels,
    Observations, OptimisticSets, PlausibleRow, PlayedCost, SubGaussianMixture,
};
pub use sharp::{RowBonuses, SharpBonus};
pub(crate) use signals::biased;
pub use signals::{OptimisticCost, OptimisticReward, PessimisticCost};
