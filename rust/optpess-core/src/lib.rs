//! Planning and safe learning in finite-horizon constrained Markov decision processes.
//!
//! The problem: maximise V_1(mu; r, P) over policies, subject to V_1(mu; c, P) <= tau, where V is the
//! expected sum of a signal over the H steps of an episode.
//!
//! The paper: Liu, Zhou, Kalathil, Kumar and Tian, *Learning Policies with Zero or Bounded Constraint
//! Violation for Constrained MDPs*, NeurIPS 2021, cited as \[Liu21\].
//!
//! Data walks through the rooms in one direction; a module uses only modules above it in this list:
//!
//! | room | owns |
//! |---|---|
//! | [`error`], [`shape`] | causes of refusal; sizes and index arithmetic |
//! | [`table`], [`trajectory`] | storage; observations of an episode |
//! | [`policy`] | pi_h(a\|s) is a distribution |
//! | [`model`] | what the world is; validation |
//! | [`evaluate`] | exact values and occupancies of a given policy |
//! | [`estimate`] | counts and plain averages |
//! | [`confidence`] | the theory's constants; biased signals; guarantees |
//! | [`plan`] | best policies for given signals and kernel |
//! | [`learn`] | the algorithms: order of calls, gate, baseline |
//! | [`simulate`] | sampling of a known model |
//! | [`record`] | what happened, as data |
//! | [`run`] | the episode loop, the judge, the audit |
//!
//! ```
//! use optpess_core::evaluate::evaluate;
//! use optpess_core::model::{InitialDistribution, Kernel, Slices};
//! use optpess_core::policy::MarkovPolicy;
//! use optpess_core::shape::Shape;
//! use optpess_core::table::Signal;
//!
//! // One state, one action, two steps, one unit of reward a step.
//! let shape = Shape::new(2, 1, 1)?;
//! let kernel = Kernel::dense(1, 1, Slices::Stationary, vec![1.0])?;
//! let reward = Signal::stationary("rewards", shape, vec![1.0])?;
//! let policy = MarkovPolicy::deterministic(shape, &[0, 0])?;
//! let initial = InitialDistribution::new(1, vec![1.0])?;
//! assert_eq!(evaluate(&policy, &reward, &kernel, &initial)?, 2.0);
//! # Ok::<(), optpess_core::error::Error>(())
//! ```

pub mod certify;
pub mod confidence;
pub mod control;
pub mod error;
pub mod estimate;
pub mod evaluate;
pub mod fast;
pub mod learn;
pub mod model;
pub mod number;
pub mod plan;
pub mod policy;
pub mod record;
pub mod run;
pub mod shape;
pub mod simulate;
mod sums;
pub mod table;
pub mod trajectory;
