//! Runs of a learner in a known model: the episode loop, the judge that evaluates policies in the true model, the
//! audit, the check of what the learner was told, and forecasts.

mod assumption;
mod audit;
mod episode_loop;
mod forecast;
mod judge;
mod mixture_bounds;
mod replicate;
mod sample;
mod snapshot;
mod task;
#[cfg(test)]
mod tests;

pub use crate::control::Control;
pub use crate::fast::EngineChoice;
pub use assumption::{SafetyClaim, StatedCost};
pub use audit::{Audit, Check, Finding};
pub use episode_loop::{Replicate, Trace};
pub use forecast::{gate_extrapolation, gate_forecast};
pub use judge::{MemberValues, MixtureJudge, PlainJudge, baseline_values};
pub use replicate::{Outcome, Simulation, check_replicate, episodes_left, simulate, simulate_on};
pub use sample::{Sample, sample};
pub use snapshot::{Snapshots, StoredReplicate};
