//! Whichever learner it is.

use optpess_core::confidence::OptimisticReward;
use optpess_core::learn::peers::{
    AlwaysBaseline, Cucrl, Opdop, OptCmdp, OptCmdpBonus, OptDualCmdp, OptPrimalDualCmdp,
    UnconstrainedOptimistic,
};
use optpess_core::learn::{Learner as Verbs, OptPessLp, OptPessPrimalDual};
use optpess_core::table::Signal;
use serde::{Deserialize, Serialize};

/// Any learner of the core.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum AnyLearner {
    Lp(Box<OptPessLp>),
    PrimalDual(Box<OptPessPrimalDual>),
    AlwaysBaseline(Box<AlwaysBaseline>),
    Unconstrained(Box<UnconstrainedOptimistic>),
    OptCmdp(Box<OptCmdp>),
    OptCmdpBonus(Box<OptCmdpBonus>),
    OptDualCmdp(Box<OptDualCmdp>),
    OptPrimalDualCmdp(Box<OptPrimalDualCmdp>),
    Opdop(Box<Opdop>),
    Cucrl(Box<Cucrl>),
}

/// The paper's two algorithms one way, those it is compared with another.
macro_rules! ours_or_peer {
    ($learner:expr, $lp:ident => $first:expr, $dual:ident => $second:expr, $peer:ident => $other:expr) => {
        match $learner {
            AnyLearner::Lp($lp) => $first,
            AnyLearner::PrimalDual($dual) => $second,
            AnyLearner::AlwaysBaseline($peer) => $other,
            AnyLearner::Unconstrained($peer) => $other,
            AnyLearner::OptCmdp($peer) => $other,
            AnyLearner::OptCmdpBonus($peer) => $other,
            AnyLearner::OptDualCmdp($peer) => $other,
            AnyLearner::OptPrimalDualCmdp($peer) => $other,
            AnyLearner::Opdop($peer) => $other,
            AnyLearner::Cucrl($peer) => $other,
        }
    };
}
pub(crate) use ours_or_peer;

/// Calls the same verb on whichever learner it is.
macro_rules! either {
    ($learner:expr, $inner:ident => $call:expr) => {
        $crate::any_learner::ours_or_peer!(
            $learner, $inner => $call, $inner => $call, $inner => $call)
    };
}
pub(crate) use either;

impl AnyLearner {
    /// What is added to the average reward or cost, `[H, S, A]`.
    pub fn bonuses(&self) -> Vec<f64> {
        let visits = either!(self, inner => inner.estimates()).visits();
        ours_or_peer!(self,
            lp => visits.iter().map(|&visits| lp.bonus().at(visits)).collect(),
            dual => visits.iter().map(|&visits| dual.bonus().at(visits)).collect(),
            peer => peer.biased().bonuses.to_vec())
    }

    /// The biased reward (None while the safe cost is being estimated) and cost of the next plan.
    pub fn signals(&self) -> (Option<&Signal>, &Signal) {
        ours_or_peer!(self,
        lp => (lp.optimistic_reward().map(OptimisticReward::signal), lp.pessimistic_cost().signal()),
        dual => (Some(dual.optimistic_reward().signal()), dual.optimistic_cost().signal()),
        peer => {
            let biased = peer.biased();
            (Some(biased.reward), biased.cost)
        })
    }

    /// Z or L.
    pub fn log_factor(&self) -> f64 {
        ours_or_peer!(self,
            lp => lp.bonus().log_factor(),
            dual => dual.bonus().log_factor(),
            peer => peer.log_factor())
    }

    /// How many backward inductions the plans took, where that is counted.
    pub fn inductions(&self) -> u64 {
        match self {
            Self::Lp(learner) => learner.inductions(),
            other => either!(other, inner => inner.episodes_observed()),
        }
    }

    /// What its paper proves of a learner that is compared with; the paper's own have a guarantee.
    pub fn promise(&self) -> Option<&'static str> {
        ours_or_peer!(self, _lp => None, _dual => None, peer => Some(peer.promise()))
    }
}
