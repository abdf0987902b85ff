//! OptPrimalDual-CMDP of \[Efroni20\]: mirror ascent on the policy, gradient ascent on the multiplier.
//!
//! The box in words: start from the uniform policy; play pi_k; evaluate it for the optimistic signals of
//! OptCMDP-bonus on P-hat, with action values clipped; multiply pi_k by exp(t_K (Q_r - lambda Q_c)); move
//! lambda by the excess of V_c over the limit, within \[0, rho\]. One episode costs two evaluations and no
//! optimisation. Promise: regret and *weak* violation of order sqrt(K), with probability 1 - delta.

use serde::{Deserialize, Serialize};

use crate::confidence::published::{dual_step, mirror_step, multiplier_cap};
use crate::confidence::{LearningTerms, PeerRadii, SafetyMargin};
use crate::error::Result;
use crate::estimate::RowEstimate;
use crate::learn::BiasedSignals;
use crate::learn::peers::mirror_step::{MirrorStep, Steps};
use crate::learn::peers::optimistic_signals::OptimisticSignals;
use crate::learn::peers::{Algorithm, MarginAlgorithm, Peer, PeerExperience, Proposal};
use crate::learn::stored::check;
use crate::policy::MarkovPolicy;
use crate::shape::Shape;

/// The learner of OptPrimalDual-CMDP.
pub type OptPrimalDualCmdp = Peer<MirrorAlgorithm>;

/// How it plans.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MirrorAlgorithm {
    signals: OptimisticSignals,
    iterate: MirrorStep,
}

impl MarginAlgorithm for MirrorAlgorithm {
    fn new(shape: Shape, margin: &SafetyMargin, terms: &LearningTerms) -> Result<Self> {
        // t_K, 1/t, rho.
        let steps = Steps {
            policy: mirror_step(shape, margin, terms.num_episodes()),
            dual: dual_step(shape, margin, terms.num_episodes()),
            multiplier_cap: multiplier_cap(shape, margin),
        };
        Ok(Self {
            signals: OptimisticSignals::new(shape)?,
            iterate: MirrorStep::new(shape, margin.cost_limit(), &steps)?,
        })
    }
}

impl Algorithm for MirrorAlgorithm {
    const PROMISE: &'static str =
        "regret and weak violation of order sqrt(K) with probability 1 - delta";

    fn check_stored(&self, known: &PeerExperience) -> Result<()> {
        let shape = known.shape();
        let fresh: Self = known.fresh()?;
        check("the signals of a learner", self.signals.fits(shape)?)?;
        check(
            "the policy of a learner",
            self.iterate.fits(shape, &fresh.iterate),
        )
    }

    fn update_row(&mut self, row: &RowEstimate<'_>, radii: &PeerRadii) {
        self.signals
            .update_row(row, radii.bonus(row.visits, row.successors.in_full()));
    }

    fn plan(&mut self, known: &PeerExperience, policy: &mut MarkovPolicy) -> Result<Proposal> {
        let kernel = known.kernel();
        Ok(self.iterate.play(&self.signals, kernel, known, policy))
    }

    fn end_episode(&mut self) {
        self.iterate.ascend(0.0);
    }

    fn signals(&self) -> BiasedSignals<'_> {
        self.signals.signals()
    }

    fn multiplier(&self) -> f64 {
        self.iterate.multiplier
    }
}
