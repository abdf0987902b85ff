//! Owns the algorithms: the order of calls, the baseline, the gate. Refuses environments, the true
//! model, regret and printing.
//!
//! A learner has two verbs, which take turns: [`Learner::next_policy`] plans from everything seen so
//! far, [`Learner::observe`] takes one episode in.

mod baseline;
mod gate_watch;
mod optpess_lp;
mod optpess_primal_dual;
pub mod peers;
mod pessimistic_set;
mod side_by_side;
mod turn;

pub use baseline::{CostRadius, SafeBaseline, SafeCost};
pub use optpess_lp::OptPessLp;
pub use optpess_primal_dual::OptPessPrimalDual;
pub use pessimistic_set::PessimisticSet;
pub(crate) use side_by_side::BatchLearners;

use serde::{Deserialize, Serialize};

use crate::confidence::{Guarantee, LearningTerms, SafetyMargin};
use crate::error::{ArrayIndex, Error, Interval, Result};
use crate::estimate::Estimates;
use crate::lanes::Lane;
use crate::plan::Certificate;
use crate::policy::{ActionTable, MarkovPolicy};
use crate::shape::Shape;
use crate::trajectory::Trajectory;

/// Where a deployed policy comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
pub enum PolicySource {
    /// pi0, because the pessimistic set holds nothing else yet.
    Baseline,
    /// pi0, while its cost is being estimated (Appendix E).
    BaselineEstimation,
    /// The best policy of the pessimistic set (Algorithm 1).
    PessimisticSet,
    /// The best policy for the Lagrangian (Algorithm 2).
    Lagrangian,
    /// The best policy for optimistic signals.
    Optimistic,
    /// The policy of the best pair of a policy and a plausible kernel, for optimistic signals.
    Plausible,
    /// The policy of the best such pair for the Lagrangian.
    PlausibleLagrangian,
    /// The policy of least cost, because even that is above the limit: outside the good event.
    LeastCost,
    /// A step of mirror ascent from the last policy.
    MirrorAscent,
    /// The best policy whose pessimistic cost is within the limit on transitions that were told.
    KnownTransitions,
}

/// What is known of the policy of one episode before it is played.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Deployment {
    /// The episode, from 0.
    pub episode: u64,
    /// Where the policy comes from.
    pub source: PolicySource,
    /// The re-evaluation against the limit, for policies of the pessimistic set.
    pub certificate: Option<Certificate>,
    /// The policy's value for the learner's optimistic reward on its empirical kernel; NaN where the
    /// algorithm does not compute it.
    pub optimistic_reward: f64,
    /// The policy's value for the learner's biased cost on its empirical kernel: pessimistic in
    /// Algorithm 1, optimistic in Algorithm 2.
    pub biased_cost: f64,
    /// Changes whenever the policy does.
    pub version: u64,
}

/// A learner: the Input line of an algorithm box with two verbs.
pub trait Learner: Clone + Send + Sync {
    /// H, |S|, |A|.
    fn shape(&self) -> Shape;
    /// K, delta and the confidence rule.
    fn terms(&self) -> &LearningTerms;
    /// (tau, c0) as used now; None while c0 is being estimated.
    fn margin(&self) -> Option<SafetyMargin>;
    /// tau.
    fn cost_limit(&self) -> f64;
    /// The number of episodes observed so far.
    fn episodes_observed(&self) -> u64;
    /// Plans the next episode.
    fn next_policy(&mut self) -> Result<Deployment>;
    /// As [`Learner::next_policy`], for a caller who keeps a record and nothing else: figures of the
    /// deployment that no record holds (the policy's values on the empirical kernel) may be NaN, and
    /// averages and signals may lag behind the counts until someone needs them.
    #[inline(always)]
    fn next_plan(&mut self) -> Result<Deployment> {
        self.next_policy()
    }
    /// The policy of the last deployment; of the last by [`Learner::next_policy`], while the learner has
    /// [`Learner::actions`].
    fn policy(&self) -> &MarkovPolicy;
    /// The policy of the last deployment as one action for each (step, state), if the learner keeps it so. Its
    /// changes are from the version before.
    #[inline(always)]
    fn actions(&self) -> Option<ActionTable<'_>> {
        None
    }
    /// Takes in an episode that is known to be well-formed.
    fn absorb(&mut self, seen: &Trajectory) -> Result<()>;
    /// Counts and averages.
    fn estimates(&self) -> &Estimates;
    /// What this learner may promise.
    fn guarantee(&self) -> Option<Guarantee>;
    /// lambda, the dual variable the next plan will use; 0 for algorithms without one.
    fn multiplier(&self) -> f64;

    /// Copies of the learner that run side by side, for learners and problems that have them.
    #[expect(private_interfaces, private_bounds, reason = "for the run room alone")]
    fn flock<V: Lane>(&self) -> Result<Option<BatchLearners<V>>> {
        Ok(None)
    }

    /// Takes in an episode; refuses a malformed one and then is as it was.
    fn observe(&mut self, seen: &Trajectory) -> Result<()> {
        check_trajectory(self.shape(), seen)?;
        self.absorb(seen)
    }
}

fn check_trajectory(shape: Shape, seen: &Trajectory) -> Result<()> {
    let horizon = shape.horizon();
    let lengths = [
        ("states", seen.states.len()),
        ("actions", seen.actions.len()),
        ("rewards", seen.rewards.len()),
        ("costs", seen.costs.len()),
    ];
    for (array, found) in lengths {
        if found != horizon {
            return Err(Error::ShapeMismatch {
                array,
                axes: "[H]",
                expected: vec![horizon],
                found: vec![found],
            });
        }
    }
    let indices = [
        ("states", &seen.states, shape.num_states()),
        ("actions", &seen.actions, shape.num_actions()),
    ];
    for (array, values, count) in indices {
        if let Some(step) = values.iter().position(|&value| value as usize >= count) {
            return Err(Error::OutOfRange {
                place: ArrayIndex::new(array, &[step]),
                found: f64::from(values[step]),
                allowed: Interval::closed(0.0, (count - 1) as f64),
            });
        }
    }
    for (array, values) in [("rewards", &seen.rewards), ("costs", &seen.costs)] {
        if let Some(step) = values.iter().position(|value| !value.is_finite()) {
            return Err(Error::NotFinite {
                place: ArrayIndex::new(array, &[step]),
                found: values[step],
            });
        }
    }
    Ok(())
}
