//! OptDual-CMDP of \[Efroni20\]: the best plausible pair for the Lagrangian, and a dual update of the multiplier.
//!
//! The box in words: play the policy of the pair (pi, p') that maximises V(r-hat + b_o, p') - lambda
//! V(c-hat - b_o, p') over policies and kernels p' within b_p of P-hat; move lambda by (V(c-hat - b_o, p') -
//! tau)/t, not below 0. One episode costs one extended backward induction. Promise: regret and *weak*
//! violation of order sqrt(K), with probability 1 - delta.

use serde::{Deserialize, Serialize};

use crate::confidence::published::dual_step;
use crate::confidence::{LearningTerms, PeerRadii, SafetyMargin};
use crate::error::Result;
use crate::estimate::RowEstimate;
use crate::learn::BiasedSignals;
use crate::learn::PolicySource;
use crate::learn::peers::optimistic_signals::Plausible;
use crate::learn::peers::{Algorithm, MarginAlgorithm, Peer, PeerExperience, Proposal};
use crate::learn::stored::check;
use crate::plan::{ActionPoint, ExtendedOracle, ExtendedVertex, ExtendedWork, Oracle, Point};
use crate::policy::MarkovPolicy;
use crate::shape::Shape;

/// The learner of OptDual-CMDP.
pub type OptDualCmdp = Peer<DualAlgorithm>;

/// How it plans.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DualAlgorithm {
    dual_step: f64, // 1/t
    cost_limit: f64,
    plausible: Plausible,
    work: ExtendedWork,
    found: ExtendedVertex,
    multiplier: f64,
}

impl MarginAlgorithm for DualAlgorithm {
    fn new(shape: Shape, margin: &SafetyMargin, terms: &LearningTerms) -> Result<Self> {
        Ok(Self {
            dual_step: dual_step(shape, margin, terms.num_episodes()),
            cost_limit: margin.cost_limit(),
            plausible: Plausible::new(shape)?,
            work: ExtendedWork::new(shape)?,
            found: ExtendedVertex::for_shape(shape)?,
            multiplier: 0.0,
        })
    }
}

impl Algorithm for DualAlgorithm {
    const PROMISE: &'static str =
        "regret and weak violation of order sqrt(K) with probability 1 - delta";

    fn check_stored(&self, known: &PeerExperience) -> Result<()> {
        let shape = known.shape();
        check("the signals of a learner", self.plausible.fits(shape)?)?;
        let plan = self.work.shape() == shape && self.found.fits(shape);
        check("the last plan of a learner", plan)?;
        let fresh: Self = known.fresh()?;
        let dual = self.dual_step.to_bits() == fresh.dual_step.to_bits()
            && self.cost_limit.to_bits() == fresh.cost_limit.to_bits()
            && (0.0..f64::INFINITY).contains(&self.multiplier);
        check("the multiplier of a learner", dual)
    }

    fn update_row(&mut self, row: &RowEstimate<'_>, radii: &PeerRadii) {
        self.plausible.update_row(row, radii);
    }

    fn plan(&mut self, known: &PeerExperience, policy: &mut MarkovPolicy) -> Result<Proposal> {
        let problem = self.plausible.problem(known);
        let mut oracle = ExtendedOracle::on(&problem, &mut self.work);
        oracle.maximise(self.multiplier, &mut self.found);
        oracle.locate(&mut self.found);
        policy.set_actions(self.found.actions());
        Ok(Proposal {
            source: PolicySource::PlausibleLagrangian,
            reward: Some(self.found.reward()),
            cost: Some(self.found.cost()),
        })
    }

    fn end_episode(&mut self) {
        let excess = self.found.cost() - self.cost_limit;
        self.multiplier = (self.multiplier + self.dual_step * excess).max(0.0);
    }

    fn signals(&self) -> BiasedSignals<'_> {
        self.plausible.signals.signals()
    }

    fn multiplier(&self) -> f64 {
        self.multiplier
    }
}
