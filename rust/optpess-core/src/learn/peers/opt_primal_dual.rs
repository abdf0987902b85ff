//! OptPrimalDual-CMDP of \[Efroni20\]: mirror ascent on the policy, gradient ascent on the price of cost.
//!
//! The box in words: start from the uniform policy; play pi_k; evaluate it for the optimistic signals of
//! OptCMDP-bonus on P-hat, with action values clipped; multiply pi_k by exp(t_K (Q_r - lambda Q_c)); move
//! lambda by the excess of V_c over the limit, within \[0, rho\]. One episode costs two evaluations and no
//! optimisation. Promise: regret and *weak* violation of order sqrt(K), with probability 1 - delta.

use serde::{Deserialize, Serialize};

use crate::confidence::peers::{dual_step, mirror_step, multiplier_cap};
use crate::confidence::{LearningTerms, PeerRadii, SafetyMargin};
use crate::error::Result;
use crate::learn::peers::mirror_step::{MirrorStep, Steps};
use crate::learn::peers::optimistic_signals::OptimisticSignals;
use crate::learn::peers::{Biased, Known, MarginRule, Peer, Planned, Row, Rule};
use crate::policy::MarkovPolicy;
use crate::shape::Shape;

/// The learner of OptPrimalDual-CMDP.
pub type OptPrimalDualCmdp = Peer<MirrorRule>;

/// How it plans.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MirrorRule {
    signals: OptimisticSignals,
    iterate: MirrorStep,
}

impl MarginRule for MirrorRule {
    fn begin(shape: Shape, margin: &SafetyMargin, terms: &LearningTerms) -> Result<Self> {
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

impl Rule for MirrorRule {
    const PROMISE: &'static str =
        "regret and weak violation of order sqrt(K) with probability 1 - delta";

    fn revise(&mut self, row: &Row<'_>, radii: &PeerRadii) {
        self.signals
            .revise(row, radii.bonus(row.visits, row.frequencies));
    }

    fn plan(&mut self, known: &Known, policy: &mut MarkovPolicy) -> Result<Planned> {
        let kernel = known.estimates.kernel();
        Ok(self.iterate.play(&self.signals, kernel, known, policy))
    }

    fn advance(&mut self) {
        self.iterate.ascend(0.0);
    }

    fn biased(&self) -> Biased<'_> {
        self.signals.biased()
    }

    fn multiplier(&self) -> f64 {
        self.iterate.multiplier
    }
}
