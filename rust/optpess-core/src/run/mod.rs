//! Owns the loop in which a learner meets an environment, the judge that knows the truth, and the
//! audit. Refuses formulas.

mod audit;
mod engine;
mod episode_loop;
mod forecast;
mod judge;
mod replicate;
mod side_by_side;

pub use audit::{Audit, Check, Finding};
pub use engine::EngineChoice;
pub use episode_loop::{Observer, Trace, run_episodes};
pub use forecast::gate_forecast;
pub use judge::Judge;
pub use replicate::{Control, Outcome, Simulation, episodes_left, simulate};
