//! OptCMDP of \[Efroni20\]: optimism in reward, cost and transitions, over all plausible kernels.
//!
//! The box in words: play the policy of the pair (pi, p') that maximises V(r-hat + b_o, p') subject to
//! V(c-hat - b_o, p') <= tau, over policies pi and kernels p' within b_p of P-hat: a linear program over
//! extended occupancies, solved here by the chord method with extended backward induction. Its optimum
//! mixes two pairs; the policy is the marginal of the mixed extended occupancy. One episode costs a few
//! extended inductions. Promise: regret and strong violation of order sqrt(K), with probability
//! 1 - delta; nothing about single episodes.

use serde::{Deserialize, Serialize};

use crate::confidence::{LearningTerms, PeerRadii, SafetyMargin};
use crate::error::Result;
use crate::estimate::RowEstimate;
use crate::learn::BiasedSignals;
use crate::learn::PolicySource;
use crate::learn::peers::optimistic_plan::OptimisticPlan;
use crate::learn::peers::optimistic_signals::Plausible;
use crate::learn::peers::{Algorithm, MarginAlgorithm, Peer, PeerExperience, Proposal};
use crate::learn::stored::check;
use crate::plan::{ExtendedOracle, ExtendedVertex, ExtendedWork};
use crate::policy::MarkovPolicy;
use crate::shape::Shape;

/// The learner of OptCMDP.
pub type OptCmdp = Peer<PlausibleAlgorithm>;

/// How it plans.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PlausibleAlgorithm {
    plausible: Plausible,
    plan: OptimisticPlan<ExtendedVertex>,
    work: ExtendedWork,
}

impl MarginAlgorithm for PlausibleAlgorithm {
    fn new(shape: Shape, _: &SafetyMargin, _: &LearningTerms) -> Result<Self> {
        Ok(Self {
            plausible: Plausible::new(shape)?,
            plan: OptimisticPlan::new(shape)?,
            work: ExtendedWork::new(shape)?,
        })
    }
}

impl Algorithm for PlausibleAlgorithm {
    const PROMISE: &'static str =
        "regret and strong violation of order sqrt(K) with probability 1 - delta";

    fn check_stored(&self, known: &PeerExperience) -> Result<()> {
        let shape = known.shape();
        check("the signals of a learner", self.plausible.fits(shape)?)?;
        check("the workspace of a learner", self.work.shape() == shape)?;
        self.plan.check_stored(shape)
    }

    fn update_row(&mut self, row: &RowEstimate<'_>, radii: &PeerRadii) {
        self.plausible.update_row(row, radii);
    }

    fn plan(&mut self, known: &PeerExperience, policy: &mut MarkovPolicy) -> Result<Proposal> {
        let problem = self.plausible.problem(known);
        let mut oracle = ExtendedOracle::on(&problem, &mut self.work);
        self.plan
            .plan(&mut oracle, known, PolicySource::Plausible, policy)
    }

    fn signals(&self) -> BiasedSignals<'_> {
        self.plausible.signals.signals()
    }
}
