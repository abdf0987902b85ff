//! OptDual-CMDP of \[Efroni20\]: a price of cost, and the best plausible pair at that price.
//!
//! The box in words: play the policy of the pair (pi, p') that maximises V(r-hat + b_o, p') - lambda
//! V(c-hat - b_o, p') over policies and kernels p' within b_p of P-hat; move lambda by (V(c-hat - b_o, p') -
//! tau)/t, not below 0. One episode costs one extended backward induction. Promise: regret and *weak*
//! violation of order sqrt(K), with probability 1 - delta.

use serde::{Deserialize, Serialize};

use crate::confidence::peers::dual_step;
use crate::confidence::{LearningTerms, PeerRadii, SafetyMargin};
use crate::error::Result;
use crate::learn::PolicySource;
use crate::learn::peers::optimistic_signals::Plausible;
use crate::learn::peers::{Biased, Known, MarginRule, Peer, Planned, Row, Rule};
use crate::plan::{ExtendedOracle, ExtendedVertex, ExtendedWork, Oracle, Point};
use crate::policy::MarkovPolicy;
use crate::shape::Shape;

/// The learner of OptDual-CMDP.
pub type OptDualCmdp = Peer<DualRule>;

/// How it plans.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DualRule {
    dual_step: f64, // 1/t
    cost_limit: f64,
    plausible: Plausible,
    work: ExtendedWork,
    found: ExtendedVertex,
    multiplier: f64,
}

impl MarginRule for DualRule {
    fn begin(shape: Shape, margin: &SafetyMargin, terms: &LearningTerms) -> Result<Self> {
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

impl Rule for DualRule {
    const PROMISE: &'static str =
        "regret and weak violation of order sqrt(K) with probability 1 - delta";

    fn revise(&mut self, row: &Row<'_>, radii: &PeerRadii) {
        self.plausible.revise(row, radii);
    }

    fn plan(&mut self, known: &Known, policy: &mut MarkovPolicy) -> Result<Planned> {
        let problem = self.plausible.problem(known);
        let mut oracle = ExtendedOracle::on(&problem, &mut self.work);
        oracle.maximise(self.multiplier, &mut self.found);
        oracle.locate(&mut self.found);
        policy.set_actions(self.found.actions());
        Ok(Planned {
            source: PolicySource::PlausibleLagrangian,
            reward: self.found.reward(),
            cost: self.found.cost(),
        })
    }

    fn advance(&mut self) {
        let excess = self.found.cost() - self.cost_limit;
        self.multiplier = (self.multiplier + self.dual_step * excess).max(0.0);
    }

    fn biased(&self) -> Biased<'_> {
        self.plausible.signals.biased()
    }

    fn multiplier(&self) -> f64 {
        self.multiplier
    }
}
