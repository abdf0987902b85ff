//! OPDOP of \[Ding21\], in its tabular form: mirror ascent with mixing on the policy, and a dual variable.
//!
//! The box in words: as OptPrimalDual-CMDP, but the policy is mixed with a share 1/K of the uniform one
//! before each step, averages divide by N + 1, and the bonus is (1 + H sqrt(S)) sqrt(L / (N + 1)). One
//! episode costs two evaluations. Promise: regret and *weak* violation of order sqrt(K), with probability
//! 1 - delta. Its own setting is linear function approximation; a table is the special case of indicator
//! features, in which its regularised least squares are these averages.

use serde::{Deserialize, Serialize};

use crate::confidence::published::{opdop_dual_step, opdop_mirror_step, opdop_multiplier_cap};
use crate::confidence::{LearningTerms, PeerRadii, SafetyMargin};
use crate::error::Result;
use crate::estimate::RowEstimate;
use crate::estimate::{EmpiricalKernel, Estimates};
use crate::learn::BiasedSignals;
use crate::learn::peers::mirror_step::{MirrorStep, Steps};
use crate::learn::peers::optimistic_signals::OptimisticSignals;
use crate::learn::peers::{Algorithm, MarginAlgorithm, Peer, PeerExperience, Proposal};
use crate::learn::stored::check;
use crate::model::StepKernel;
use crate::number::from_count;
use crate::policy::MarkovPolicy;
use crate::shape::Shape;

/// The learner of OPDOP.
pub type Opdop = Peer<OpdopAlgorithm>;

/// How it plans.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OpdopAlgorithm {
    signals: OptimisticSignals,
    iterate: MirrorStep,
    uniform_share: f64,
}

impl MarginAlgorithm for OpdopAlgorithm {
    fn new(shape: Shape, margin: &SafetyMargin, terms: &LearningTerms) -> Result<Self> {
        let steps = Steps {
            policy: opdop_mirror_step(shape, terms.num_episodes()),
            dual: opdop_dual_step(terms.num_episodes()),
            multiplier_cap: opdop_multiplier_cap(shape, margin),
        };
        Ok(Self {
            signals: OptimisticSignals::new(shape)?,
            iterate: MirrorStep::new(shape, margin.cost_limit(), &steps)?,
            uniform_share: 1.0 / terms.num_episodes() as f64,
        })
    }
}

/// N / (N + 1), which turns an average over N into one over N + 1.
fn shrinkage(visits: u64) -> f64 {
    from_count(visits) / (from_count(visits) + 1.0)
}

/// Frequencies over N + 1 instead of N: every row loses some mass.
struct Regularised<'a> {
    estimates: &'a Estimates,
    kernel: &'a EmpiricalKernel,
}

impl Regularised<'_> {
    fn shrinkage(&self, step: usize, pair: usize) -> f64 {
        shrinkage(self.estimates.visits()[step * self.estimates.shape().pairs() + pair])
    }
}

impl StepKernel for Regularised<'_> {
    fn expectation(&self, step: usize, pair: usize, values: &[f64]) -> f64 {
        self.shrinkage(step, pair) * self.kernel.expectation(step, pair, values)
    }

    fn propagate(&self, step: usize, pair: usize, mass: f64, next: &mut [f64]) {
        let mass = self.shrinkage(step, pair) * mass;
        self.kernel.propagate(step, pair, mass, next);
    }
}

impl Algorithm for OpdopAlgorithm {
    const PROMISE: &'static str =
        "regret and weak violation of order sqrt(K) with probability 1 - delta";

    fn check_stored(&self, known: &PeerExperience) -> Result<()> {
        let shape = known.shape();
        let fresh: Self = known.fresh()?;
        check("the signals of a learner", self.signals.fits(shape)?)?;
        let iterate = self.iterate.fits(shape, &fresh.iterate)
            && self.uniform_share.to_bits() == fresh.uniform_share.to_bits();
        check("the policy of a learner", iterate)
    }

    fn update_row(&mut self, row: &RowEstimate<'_>, radii: &PeerRadii) {
        let shrunk = RowEstimate {
            reward: shrinkage(row.visits) * row.reward,
            cost: shrinkage(row.visits) * row.cost,
            ..*row
        };
        self.signals
            .update_row(&shrunk, radii.regularised(row.visits));
    }

    fn plan(&mut self, known: &PeerExperience, policy: &mut MarkovPolicy) -> Result<Proposal> {
        let kernel = Regularised {
            estimates: known.estimates(),
            kernel: known.kernel(),
        };
        Ok(self.iterate.play(&self.signals, &kernel, known, policy))
    }

    fn end_episode(&mut self) {
        self.iterate.ascend(self.uniform_share);
    }

    fn signals(&self) -> BiasedSignals<'_> {
        self.signals.signals()
    }

    fn multiplier(&self) -> f64 {
        self.iterate.multiplier
    }
}
