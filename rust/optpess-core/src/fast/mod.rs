//! Engines: code that gives the bits of the plain code in less time. `README.md` beside this file says what each part
//! skips, why its bits agree and which test checks it.
//!
//! Only `run` imports this module; an architecture test checks it. [`isa`], the choice of the instruction set, comes
//! before all modules that compute, and tables, models, evaluation and estimates use it too.

pub(crate) mod batch;
mod chacha;
mod chain;
mod gate_bound;
pub mod isa;
mod judge;
mod lane;
pub(crate) mod lanes;
mod lp;
mod packed;
mod primal_dual;

pub(crate) use chacha::{BatchStreams, BatchedUniforms};
pub(crate) use judge::FastJudge;
pub(crate) use lane::Lane;

use crate::error::{Error, Result};
use crate::fast::batch::fits_batch;
use crate::fast::lanes::LANES;
use crate::fast::lp::LpEngine;
use crate::fast::primal_dual::PrimalDualEngine;
use crate::learn::{AnyLearner, Deployment, Learner, Mixture};
use crate::policy::{ActionTable, Changes, Played};
use crate::trajectory::Trajectory;

/// The engine of a run. Every choice gives the same bits; tests force each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EngineChoice {
    /// The fastest engine of the learner; the plain one for an audit.
    #[default]
    Auto,
    /// The learner's own code.
    Plain,
    /// The learner with a packed copy of its tables; the plain one for learners without such an engine.
    Packed,
    /// Replicates of a tiny problem in lanes, one or eight at a time; only for OptPess-PrimalDual.
    Batch {
        /// 1 or 8.
        lanes: usize,
    },
}

/// A learner with the code that drives it. Decisions and bits are those of the learner's own code.
#[derive(Debug)]
pub(crate) enum Engine {
    Plain(PlainEngine),
    Lp(Box<LpEngine>),
    PrimalDual(Box<PrimalDualEngine>),
}

impl Engine {
    /// The fastest engine of a learner; the plain one if there is no other.
    pub(crate) fn of(learner: AnyLearner) -> Result<Self> {
        Ok(match learner {
            // The engines do not know of actions that stand in for others.
            restricted if restricted.experience().actions().is_some() => Self::plain(restricted),
            AnyLearner::OptPessLp(learner) => Self::Lp(Box::new(LpEngine::new(*learner)?)),
            AnyLearner::OptPessPrimalDual(learner) => {
                Self::PrimalDual(Box::new(PrimalDualEngine::new(*learner)?))
            }
            other => Self::plain(other),
        })
    }

    /// The learner's own code.
    pub(crate) fn plain(learner: AnyLearner) -> Self {
        Self::Plain(PlainEngine {
            learner,
            actions: None,
        })
    }

    /// Plans the next episode.
    #[inline]
    pub(crate) fn plan(&mut self) -> Result<Deployment> {
        match self {
            Self::Plain(engine) => engine.plan(),
            Self::Lp(engine) => engine.plan(),
            Self::PrimalDual(engine) => engine.plan(),
        }
    }

    /// The policy of the next episode.
    #[inline]
    pub(crate) fn played(&self) -> Played<'_> {
        match self {
            Self::Plain(engine) => engine.played(),
            Self::Lp(engine) => engine.played(),
            Self::PrimalDual(engine) => Played::Actions(engine.actions()),
        }
    }

    /// The mixture that was deployed, if the learner deploys mixtures; then the policy is that of the chosen member.
    #[inline]
    pub(crate) fn mixture(&self) -> Option<&Mixture> {
        match self {
            Self::Plain(engine) => engine.learner.mixture(),
            Self::Lp(_) | Self::PrimalDual(_) => None,
        }
    }

    /// How that policy differs from the one of the episode before.
    #[inline]
    pub(crate) fn changes(&self) -> Changes<'_> {
        match self {
            Self::Plain(_) => Changes::Everything, // the plain judge compares
            Self::Lp(engine) => engine.changes(),
            Self::PrimalDual(engine) => engine.changes(),
        }
    }

    /// Counts one episode.
    #[inline]
    pub(crate) fn observe(&mut self, seen: &Trajectory) -> Result<()> {
        match self {
            Self::Plain(engine) => engine.learner.observe(seen),
            Self::Lp(engine) => engine.observe(seen),
            Self::PrimalDual(engine) => engine.observe(seen),
        }
    }

    /// lambda, the dual variable the next plan will use.
    #[inline]
    pub(crate) fn multiplier(&self) -> f64 {
        match self {
            Self::Plain(engine) => engine.learner.multiplier(),
            Self::Lp(_) => 0.0,
            Self::PrimalDual(engine) => engine.learner().multiplier(),
        }
    }

    /// The learner, from which an audit reads claims; None for engines that leave the learner's tables out of date.
    pub(crate) fn plain_learner(&mut self) -> Option<&mut AnyLearner> {
        match self {
            Self::Plain(engine) => Some(&mut engine.learner),
            Self::Lp(_) | Self::PrimalDual(_) => None,
        }
    }

    /// A copy of the learner after the episodes so far. A new engine of the copy goes on with the same bits.
    pub(crate) fn learner(&self) -> AnyLearner {
        match self {
            Self::Plain(engine) => engine.learner.clone(),
            Self::Lp(engine) => engine.learner().clone().into(),
            Self::PrimalDual(engine) => engine.to_learner().into(),
        }
    }

    /// The learner after all episodes.
    pub(crate) fn into_learner(self) -> AnyLearner {
        match self {
            Self::Plain(engine) => engine.learner,
            Self::Lp(engine) => engine.into_learner().into(),
            Self::PrimalDual(engine) => engine.into_learner().into(),
        }
    }
}

/// The engine that skips nothing.
#[derive(Debug)]
pub(crate) struct PlainEngine {
    learner: AnyLearner,
    /// The policy as one action for each (step, state), `[H, S]`, if it is played as an action table.
    actions: Option<Vec<u32>>,
}

impl PlainEngine {
    fn plan(&mut self) -> Result<Deployment> {
        let deployment = self.learner.next_policy()?;
        // Plans of Algorithm 2, and the baseline of Algorithm 1 if it is deterministic, are played as action tables.
        // This fixes the order of sums in which they are judged.
        let deterministic = match self.learner {
            AnyLearner::OptPessPrimalDual(_) => true,
            AnyLearner::OptPessLp(_) => deployment.source.is_baseline(),
            _ => false,
        };
        self.actions = deterministic
            .then(|| self.learner.policy().actions())
            .flatten();
        Ok(deployment)
    }

    fn played(&self) -> Played<'_> {
        match &self.actions {
            Some(actions) => {
                let states = self.learner.shape().num_states();
                Played::Actions(ActionTable::new(actions, states))
            }
            None => match self.learner.mixture() {
                Some(mixture) => mixture.chosen_member().policy.played(),
                None => Played::Policy(self.learner.policy()),
            },
        }
    }
}

/// Refuses an engine that cannot be used with this learner, a trace or an audit.
pub(crate) fn check_choice(
    choice: EngineChoice,
    learner: &AnyLearner,
    [trace, audit]: [bool; 2],
) -> Result<()> {
    let (engine, reason) = match choice {
        EngineChoice::Batch { lanes } if !matches!(lanes, 1 | LANES) => {
            ("Batch", "it has 1 or 8 lanes")
        }
        EngineChoice::Batch { .. } if trace => ("Batch", "it keeps no trace"),
        EngineChoice::Batch { .. } if audit => ("Batch", "an audit reads figures it leaves out"),
        EngineChoice::Batch { .. } if !fits_batch(learner) => {
            ("Batch", "this learner and problem have none")
        }
        EngineChoice::Packed if audit => ("Packed", "an audit reads figures it leaves out"),
        _ => return Ok(()),
    };
    Err(Error::NoSuchEngine { engine, reason })
}
