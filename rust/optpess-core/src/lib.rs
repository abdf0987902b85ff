//! Planning and safe learning in finite-horizon constrained Markov decision processes.
//!
//! The problem: maximise V_1(mu; r, P) over policies, subject to V_1(mu; c, P) <= tau, where V is the
//! expected sum of a signal over the H steps of an episode.
//!
//! The paper: Liu, Zhou, Kalathil, Kumar and Tian, *Learning Policies with Zero or Bounded Constraint
//! Violation for Constrained MDPs*, NeurIPS 2021, cited as \[Liu21\].
//!
//! # Modules
//!
//! A module uses itself and those before it in this list; `tests/rust/architecture.rs` checks it.
//!
//! | module | contents |
//! |---|---|
//! | [`error`], [`shape`] | causes of refusal; sizes and index arithmetic |
//! | [`number`], [`control`], `sums` | numbers that formulas are written for; stop flag; the order of additions |
//! | [`parallel`] | work in stages, on several threads |
//! | [`random`] | seeded generators, and the coin of mixtures |
//! | [`fast::isa`] | the choice of the instruction set |
//! | [`table`], [`trajectory`] | storage of signals and values; one observed episode |
//! | [`policy`] | pi_h(a\|s), and what an episode plays |
//! | [`actions`] | which actions exist in which states, and what stands in for the others |
//! | [`model`] | the constrained MDP: kernels, signals, limits, start, noise |
//! | [`evaluate`] | exact values and occupancies of given policies |
//! | [`knowledge`] | what a user declares to be known |
//! | [`estimate`] | counts and plain averages |
//! | [`confidence`] | constants and radii of the theory; biased signals; guarantees |
//! | [`certify`] | re-evaluation of a policy against a limit; bounds from played episodes |
//! | [`plan`] | best policies for given signals and kernels |
//! | [`learn`] | the algorithms, one file each |
//! | [`simulate`] | random streams; episodes of a known model |
//! | [`record`] | what happened in a run, as data |
//! | [`fast`] | engines with the bits of the plain code; its README says what each skips |
//! | [`run`] | the episode loop, the judge, the audit |
//!
//! # The safety argument
//!
//! To check that Algorithm 1 plays no policy above the limit, read in this order: `docs/guarantees.md` (statement and
//! assumptions), `learn/optpess_lp.rs` (the algorithm), `learn/biased_model.rs` (its tables),
//! `confidence/constants.rs`,
//! `bonus.rs` and `signals.rs` (the pessimistic cost), `learn/pessimistic_set.rs` (Eq. 9), `certify/mod.rs` (no policy
//! above tau is played), `evaluate/sweep.rs` and `value.rs` (what is evaluated), `estimate/counts.rs` and
//! `empirical.rs` (Eq. 3-5), and `tests/rust/lemmas.rs` (Lemma 5.1 on random worlds).
//!
//! # Example
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

pub mod actions;
pub mod certify;
pub mod confidence;
pub mod control;
pub mod error;
pub mod estimate;
pub mod evaluate;
pub mod fast;
pub mod knowledge;
pub mod learn;
pub mod model;
pub mod number;
pub mod parallel;
pub mod plan;
pub mod policy;
pub mod random;
pub mod record;
pub mod run;
pub mod shape;
pub mod simulate;
mod sums;
pub mod table;
pub mod trajectory;
