//! OptCMDP-bonus of \[Efroni20\]: optimism in reward and cost, through bonuses, on the estimated kernel.
//!
//! The box in words: play the policy that maximises V(r-hat + b, P-hat) subject to
//! V(c-hat - b, P-hat) <= tau, where b = b_o + H sum b_p makes up for unknown signals and transitions.
//! One episode costs one to a few backward inductions. Promise: regret and strong violation of order
//! sqrt(K), with probability 1 - delta; nothing about single episodes.

use serde::{Deserialize, Serialize};

use crate::confidence::{LearningTerms, PeerRadii, SafetyMargin};
use crate::error::Result;
use crate::estimate::RowEstimate;
use crate::learn::BiasedSignals;
use crate::learn::PolicySource;
use crate::learn::peers::optimistic_plan::OptimisticPlan;
use crate::learn::peers::optimistic_signals::OptimisticSignals;
use crate::learn::peers::{Algorithm, MarginAlgorithm, Peer, PeerExperience, Proposal};
use crate::learn::stored::check;
use crate::plan::{PlainOracle, PlanningWork, Vertex};
use crate::policy::MarkovPolicy;
use crate::shape::Shape;

/// The learner of OptCMDP-bonus.
pub type OptCmdpBonus = Peer<BonusAlgorithm>;

/// How it plans.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BonusAlgorithm {
    signals: OptimisticSignals,
    plan: OptimisticPlan<Vertex>,
    work: PlanningWork,
}

impl MarginAlgorithm for BonusAlgorithm {
    fn new(shape: Shape, _: &SafetyMargin, _: &LearningTerms) -> Result<Self> {
        Ok(Self {
            signals: OptimisticSignals::new(shape)?,
            plan: OptimisticPlan::new(shape)?,
            work: PlanningWork::new(shape)?,
        })
    }
}

impl Algorithm for BonusAlgorithm {
    const PROMISE: &'static str =
        "regret and strong violation of order sqrt(K) with probability 1 - delta";

    fn check_stored(&self, known: &PeerExperience) -> Result<()> {
        let shape = known.shape();
        check("the signals of a learner", self.signals.fits(shape)?)?;
        check("the workspace of a learner", self.work.shape() == shape)?;
        self.plan.check_stored(shape)
    }

    fn update_row(&mut self, row: &RowEstimate<'_>, radii: &PeerRadii) {
        self.signals
            .update_row(row, radii.bonus(row.visits, row.successors.in_full()));
    }

    fn plan(&mut self, known: &PeerExperience, policy: &mut MarkovPolicy) -> Result<Proposal> {
        let problem = self.signals.on_estimates(known);
        let mut oracle = PlainOracle::on(&problem, &mut self.work);
        self.plan
            .plan(&mut oracle, known, PolicySource::Optimistic, policy)
    }

    fn signals(&self) -> BiasedSignals<'_> {
        self.signals.signals()
    }
}
