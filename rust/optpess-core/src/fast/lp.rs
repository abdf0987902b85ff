//! The engine of Algorithm 1. It skips the evaluation of pi0 while the gate cannot have moved, and does the search of
//! line 5 on packed tables. Policies are played only through the learner's `keep_baseline`, `assess_for` and `deploy`.

use crate::error::Result;
use crate::fast::gate_bound::GateBound;
use crate::fast::packed::{PackedOracle, PackedOracleWork, PackedProblem};
use crate::learn::{Deployment, Learner, OptPessLp};
use crate::policy::{ActionTable, Changes, MarkovPolicy, Played};
use crate::trajectory::Trajectory;

/// A learner of Algorithm 1 with its engine.
#[derive(Debug)]
pub(crate) struct LpEngine {
    learner: OptPessLp,
    gate: GateBound,
    /// Signals and P-hat in packed form; None before the first plan.
    packed: Option<PackedProblem>,
    work: Option<PackedOracleWork>,
    candidate: MarkovPolicy,
    /// pi0 as one action for each (step, state), `[H, S]`, if it is deterministic.
    baseline_actions: Option<Vec<u32>>,
    /// Whether pi0 is played; None before the first plan.
    on_baseline: Option<bool>,
    /// Whether the policy differs from the one of the episode before.
    changed: bool,
}

impl LpEngine {
    pub(crate) fn new(learner: OptPessLp) -> Result<Self> {
        let pi0 = learner.baseline().policy();
        Ok(Self {
            gate: GateBound::new(learner.shape())?,
            packed: None,
            work: None,
            candidate: pi0.clone(),
            baseline_actions: pi0.actions(),
            on_baseline: None,
            changed: true,
            learner,
        })
    }

    #[inline]
    pub(crate) fn plan(&mut self) -> Result<Deployment> {
        let observed = self.learner.episodes_observed();
        if self.gate.is_shut(observed) || self.learner.margin().is_none() {
            return self.keep_baseline();
        }
        if let Some(packed) = &mut self.packed {
            packed.fit(self.learner.estimates().kernel())?;
        }
        if self.gate.is_open() {
            self.learner.await_candidate(&mut self.packed)?;
        } else {
            let assessed = self.learner.assess_for(&mut self.packed)?;
            self.gate.evaluated(&self.learner);
            if let Some(deployment) = assessed {
                self.baseline_is_played();
                return Ok(deployment);
            }
        }
        self.search()?;
        let deployment = self.learner.deploy(&mut self.candidate)?;
        // The last planned policy is now in `candidate`.
        let planned_before = self.on_baseline == Some(false);
        self.changed = !(planned_before && self.candidate.has_entries_of(self.learner.policy()));
        self.on_baseline = Some(false);
        Ok(deployment)
    }

    #[inline]
    fn keep_baseline(&mut self) -> Result<Deployment> {
        let deployment = self.learner.keep_baseline()?;
        self.baseline_is_played();
        Ok(deployment)
    }

    #[inline]
    fn baseline_is_played(&mut self) {
        self.changed = self.on_baseline != Some(true);
        self.on_baseline = Some(true);
    }

    /// The search of line 5, on packed tables.
    fn search(&mut self) -> Result<()> {
        let Some((problem, search, pi0, tau)) = self.learner.line_5() else {
            return Ok(()); // pi0 remains the candidate
        };
        let packed = match &mut self.packed {
            Some(packed) => packed,
            none => none.insert(PackedProblem::of(&problem)?),
        };
        let work = match &mut self.work {
            Some(work) => work,
            none => none.insert(PackedOracleWork::new(problem.shape)?),
        };
        let mut oracle = PackedOracle {
            problem: &problem,
            packed,
            work,
        };
        search.best_within(&mut oracle, tau, pi0, &mut self.candidate)?;
        Ok(())
    }

    #[inline]
    pub(crate) fn played(&self) -> Played<'_> {
        match &self.baseline_actions {
            Some(actions) if self.on_baseline == Some(true) => {
                let states = self.learner.shape().num_states();
                Played::Actions(ActionTable::new(actions, states))
            }
            _ => Played::Policy(self.learner.policy()),
        }
    }

    #[inline]
    pub(crate) fn changes(&self) -> Changes<'_> {
        if self.changed {
            Changes::Everything
        } else {
            Changes::Nothing
        }
    }

    #[inline]
    pub(crate) fn observe(&mut self, seen: &Trajectory) -> Result<()> {
        self.learner.observe(seen)?;
        self.gate.counted(&self.learner, seen);
        Ok(())
    }

    pub(crate) fn learner(&self) -> &OptPessLp {
        &self.learner
    }

    pub(crate) fn into_learner(self) -> OptPessLp {
        self.learner
    }
}
