//! Any learner of the core as one type, for simulation, storage and Python.

use serde::{Deserialize, Serialize};

use crate::actions::StandIns;
use crate::confidence::{Guarantee, SafetyMargin};
use crate::error::Result;
use crate::learn::peers::{
    AlwaysBaseline, Cucrl, Opdop, OptCmdp, OptCmdpBonus, OptDualCmdp, OptPrimalDualCmdp, Sops,
    UnconstrainedOptimistic,
};
use crate::learn::{
    BaselineClaim, BiasedSignals, Deployment, Experience, Figures, Learner, Mixture, Protocol,
};
use crate::learn::{OptPessLp, OptPessMix, OptPessPrimalDual};
use crate::policy::MarkovPolicy;
use crate::trajectory::Trajectory;

macro_rules! any_learner {
    ($($kind:ident),*) => {
        /// One of the learners. The list is closed.
        #[derive(Debug, Clone, Serialize, Deserialize)]
        #[allow(missing_docs, reason = "each variant is named like its learner")]
        pub enum AnyLearner {
            $($kind(Box<$kind>),)*
        }

        $(impl From<$kind> for AnyLearner {
            fn from(learner: $kind) -> Self {
                Self::$kind(Box::new(learner))
            }
        })*

        impl AnyLearner {
            #[inline(always)]
            fn get(&self) -> &dyn Learner {
                match self {
                    $(Self::$kind(learner) => &**learner,)*
                }
            }

            #[inline(always)]
            fn get_mut(&mut self) -> &mut dyn Learner {
                match self {
                    $(Self::$kind(learner) => &mut **learner,)*
                }
            }
        }
    };
}

any_learner!(
    OptPessLp,
    OptPessPrimalDual,
    OptPessMix,
    AlwaysBaseline,
    UnconstrainedOptimistic,
    OptCmdp,
    OptCmdpBonus,
    OptDualCmdp,
    OptPrimalDualCmdp,
    Opdop,
    Cucrl,
    Sops
);

impl AnyLearner {
    /// Whether the learner was told K; others go on for ever.
    #[must_use]
    pub fn needs_num_episodes(&self) -> bool {
        !matches!(self, Self::OptPessMix(_))
    }

    /// pi0 and what the learner was told of its cost; None if it was given no policy. Exhaustive on purpose: a new
    /// learner does not compile until it is chosen here.
    #[must_use]
    pub fn claimed_baseline(&self) -> Option<(&MarkovPolicy, Vec<BaselineClaim>)> {
        let baseline = match self {
            Self::OptPessMix(learner) => return Some(learner.baseline().claims()),
            Self::Sops(learner) => return Some(learner.claims()),
            Self::OptPessLp(learner) => learner.baseline(),
            Self::AlwaysBaseline(learner) => learner.baseline(),
            Self::Cucrl(learner) => learner.baseline(),
            Self::OptPessPrimalDual(_)
            | Self::UnconstrainedOptimistic(_)
            | Self::OptCmdp(_)
            | Self::OptCmdpBonus(_)
            | Self::OptDualCmdp(_)
            | Self::OptPrimalDualCmdp(_)
            | Self::Opdop(_) => return None,
        };
        Some(baseline.claims())
    }
}

impl Learner for AnyLearner {
    fn next_policy(&mut self) -> Result<Deployment> {
        self.get_mut().next_policy()
    }

    fn policy(&self) -> &MarkovPolicy {
        self.get().policy()
    }

    fn observe(&mut self, seen: &Trajectory) -> Result<()> {
        self.get_mut().observe(seen)
    }

    fn restrict(&mut self, actions: &StandIns) -> Result<()> {
        self.get_mut().restrict(actions)
    }

    fn experience(&self) -> &Experience {
        self.get().experience()
    }

    fn protocol_mut(&mut self) -> &mut Protocol {
        self.get_mut().protocol_mut()
    }

    fn margin(&self) -> Option<SafetyMargin> {
        self.get().margin()
    }

    fn cost_limit(&self) -> f64 {
        self.get().cost_limit()
    }

    fn signals(&mut self) -> BiasedSignals<'_> {
        self.get_mut().signals()
    }

    fn figures(&mut self) -> Figures {
        self.get_mut().figures()
    }

    fn mixture(&self) -> Option<&Mixture> {
        self.get().mixture()
    }

    fn set_coin(&mut self, seed: u64, replicate: u64) {
        self.get_mut().set_coin(seed, replicate);
    }

    fn cost_limits(&self) -> Vec<f64> {
        self.get().cost_limits()
    }

    fn guarantee(&self) -> Option<Guarantee> {
        self.get().guarantee()
    }

    fn log_factor(&self) -> f64 {
        self.get().log_factor()
    }

    fn multiplier(&self) -> f64 {
        self.get().multiplier()
    }

    fn promise(&self) -> Option<&'static str> {
        self.get().promise()
    }

    fn inductions(&self) -> u64 {
        self.get().inductions()
    }
}
