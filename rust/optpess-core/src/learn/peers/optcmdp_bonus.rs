//! OptCMDP-bonus of \[Efroni20\]: optimism in reward and cost, through bonuses, on the estimated kernel.
//!
//! The box in words: play the policy that maximises V(r-hat + b, P-hat) subject to
//! V(c-hat - b, P-hat) <= tau, where b = b_o + H sum b_p makes up for unknown signals and transitions.
//! One episode costs one to a few backward inductions. Promise: regret and strong violation of order
//! sqrt(K), with probability 1 - delta; nothing about single episodes.

use serde::{Deserialize, Serialize};

use crate::confidence::{LearningTerms, PeerRadii, SafetyMargin};
use crate::error::Result;
use crate::learn::PolicySource;
use crate::learn::peers::optimistic_plan::OptimisticPlan;
use crate::learn::peers::optimistic_signals::OptimisticSignals;
use crate::learn::peers::{Biased, Known, MarginRule, Peer, Planned, Row, Rule};
use crate::plan::{PlainOracle, PlanningWork, Vertex};
use crate::policy::MarkovPolicy;
use crate::shape::Shape;

/// The learner of OptCMDP-bonus.
pub type OptCmdpBonus = Peer<BonusRule>;

/// How it plans.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BonusRule {
    signals: OptimisticSignals,
    plan: OptimisticPlan<Vertex>,
    work: PlanningWork,
}

impl MarginRule for BonusRule {
    fn begin(shape: Shape, _: &SafetyMargin, _: &LearningTerms) -> Result<Self> {
        Ok(Self {
            signals: OptimisticSignals::new(shape)?,
            plan: OptimisticPlan::new(shape)?,
            work: PlanningWork::new(shape)?,
        })
    }
}

impl Rule for BonusRule {
    const PROMISE: &'static str =
        "regret and strong violation of order sqrt(K) with probability 1 - delta";

    fn revise(&mut self, row: &Row<'_>, radii: &PeerRadii) {
        self.signals
            .revise(row, radii.bonus(row.visits, row.frequencies));
    }

    fn plan(&mut self, known: &Known, policy: &mut MarkovPolicy) -> Result<Planned> {
        let problem = self.signals.on_estimates(known);
        let mut oracle = PlainOracle::on(&problem, &mut self.work);
        self.plan
            .plan(&mut oracle, known, PolicySource::Optimistic, policy)
    }

    fn biased(&self) -> Biased<'_> {
        self.signals.biased()
    }
}
