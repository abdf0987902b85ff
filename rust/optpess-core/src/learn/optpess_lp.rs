//! Algorithm 1 of \[Liu21\], OptPess-LP.
//!
//! Promise (Theorem 3.1): with probability at least 1 - delta, no policy deployed in any of the K episodes has an
//! expected cost above tau. Rests on Assumptions 2.1 (noise) and 2.2 (the expected cost of pi0 is at most c0 < tau).
//!
//! The box in words: play pi0 until even its pessimistic cost is below (tau + c0)/2. From then on play the policy
//! with the best optimistic reward among those whose pessimistic cost is at most tau. If c0 is not given, play pi0
//! until it is known well enough (Appendix E); what is seen meanwhile counts.
//!
//! Why it is safe: a policy leaves this file through `keep_baseline`, which plays pi0, or through `deploy`, which
//! plays nothing whose pessimistic cost, evaluated here on the estimates, is above tau (Lemma 5.1). Who proposes the
//! candidate of line 5 does not matter: the search below, a linear program, or an engine.

use serde::{Deserialize, Serialize};

use crate::confidence::{Guarantee, LearningTerms, SafetyMargin};
use crate::confidence::{OptimisticReward, PessimisticCost};
use crate::error::Result;
use crate::learn::baseline::SafeCost;
use crate::learn::biased_model::{BiasedModel, SearchTask, SignalListener};
use crate::learn::{Deployment, Figures, Learner};
use crate::learn::{PessimisticSet, PolicySource, SafeBaseline, StandIns};
use crate::model::InitialDistribution;
use crate::plan::{ChordSearch, PlainOracle};
use crate::policy::MarkovPolicy;
use crate::trajectory::Trajectory;

/// The learner of Algorithm 1.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OptPessLp {
    // Input: K, delta, pi0, c0, tau.
    pub(super) baseline: SafeBaseline, // pi0 and tau
    pub(super) safe_cost: SafeCost,    // c0, given or being estimated
    // What has been seen, and P-hat, r bar and c underbar that follow from it; K and delta are in its bonus.
    pub(super) model: BiasedModel<PessimisticCost>,
    // The plan.
    pub(super) search: ChordSearch, // starts from the two policies of the last plan
    pub(super) planned: MarkovPolicy, // the last policy of the pessimistic set that was deployed
    last_source: PolicySource,
}

impl OptPessLp {
    /// A learner that has seen nothing.
    pub fn new(
        initial: InitialDistribution,
        baseline: SafeBaseline,
        terms: LearningTerms,
    ) -> Result<Self> {
        let shape = baseline.policy().shape();
        let (safe_cost, terms) = SafeCost::begin(&baseline, terms)?; // Appendix E spends half of delta on c0
        let first = terms.bonus(shape).at(0);
        // The scale of r bar contains c0, so it is formed when that is known.
        let reward = |margin| OptimisticReward::for_zero_violation(shape, &margin, first);
        let reward = safe_cost.margin().map(reward).transpose()?;
        Ok(Self {
            model: BiasedModel::new(initial, terms, reward, PessimisticCost::new(shape, first)?)?,
            search: ChordSearch::new(shape)?,
            planned: baseline.policy().clone(),
            last_source: PolicySource::Baseline,
            baseline,
            safe_cost,
        })
    }

    /// Line 4: Pi^k (Eq. 9). Plays pi0 if the set holds nothing else; else None, and [`OptPessLp::deploy`] comes next.
    pub fn assess(&mut self) -> Result<Option<Deployment>> {
        self.assess_for(&mut ())
    }

    /// [`OptPessLp::assess`] for an engine, which receives each refreshed row.
    pub(crate) fn assess_for(
        &mut self,
        listener: &mut impl SignalListener,
    ) -> Result<Option<Deployment>> {
        self.await_candidate(listener)?;
        let cost = self.model.cost_of(self.baseline.policy());
        let margin = self.safe_cost.margin();
        match margin.map(|margin| PessimisticSet::assess(cost, &margin)) {
            Some(PessimisticSet::CostBounded) => Ok(None),
            Some(PessimisticSet::BaselineOnly) | None => self.keep_baseline().map(Some),
        }
    }

    /// Line 3: P-hat, r-hat, c-hat (Eq. 3-5), r bar, c underbar (Eq. 6-8). All an engine needs if the gate is open.
    pub(crate) fn await_candidate(&mut self, listener: &mut impl SignalListener) -> Result<()> {
        self.model.experience.protocol.await_candidate()?;
        self.model.refresh(listener);
        Ok(())
    }

    /// Plays pi0, which is safe by Assumption 2.2.
    pub(crate) fn keep_baseline(&mut self) -> Result<Deployment> {
        self.play(self.safe_cost.source())
    }

    /// Line 5 without its search: plays the candidate if its pessimistic cost is at most tau. One that is above by
    /// rounding is first mixed with pi0; any other is refused, and another may follow. The policy planned before is
    /// left in `candidate`.
    pub fn deploy(&mut self, candidate: &mut MarkovPolicy) -> Result<Deployment> {
        self.model.experience.protocol.check_awaiting()?;
        self.model.refresh(&mut ()); // for a learner that was stored since
        let (pi0, tau) = (self.baseline.policy(), self.baseline.cost_limit());
        let certificate = self.model.certify(candidate, pi0, tau)?;
        std::mem::swap(candidate, &mut self.planned);
        let deployment = self.play(PolicySource::PessimisticSet)?;
        Ok(deployment.certified(certificate))
    }

    fn play(&mut self, source: PolicySource) -> Result<Deployment> {
        let episode = self.model.experience.protocol.deploy()?;
        self.last_source = source;
        Ok(Deployment::new(episode, source))
    }

    /// The search of line 5; None while c0 is being estimated.
    pub(crate) fn line_5(&mut self) -> Option<SearchTask<'_, PessimisticCost>> {
        let (problem, pi0) = (self.model.problem()?, self.baseline.policy());
        Some((problem, &mut self.search, pi0, self.baseline.cost_limit()))
    }

    /// pi0 and tau.
    pub(crate) fn baseline(&self) -> &SafeBaseline {
        &self.baseline
    }

    /// P-hat, r bar and c underbar.
    pub(crate) fn model(&self) -> &BiasedModel<PessimisticCost> {
        &self.model
    }
}

impl Learner for OptPessLp {
    fn next_policy(&mut self) -> Result<Deployment> {
        if let Some(deployment) = self.assess()? {
            return Ok(deployment); // lines 3 and 4
        }
        let mut candidate = self.baseline.policy().clone();
        if let Some((problem, search, pi0, tau)) = self.line_5() {
            search.best_within(&mut PlainOracle::new(&problem)?, tau, pi0, &mut candidate)?;
        }
        self.deploy(&mut candidate) // line 5
    }

    fn policy(&self) -> &MarkovPolicy {
        match self.last_source {
            PolicySource::PessimisticSet => &self.planned,
            _ => self.baseline.policy(),
        }
    }

    fn observe(&mut self, seen: &Trajectory) -> Result<()> {
        self.model.observe(seen)?; // lines 6 and 7
        if let Some(margin) = self.safe_cost.observe(seen)? {
            let (shape, first) = (seen.shape(), self.terms().bonus(seen.shape()).at(0));
            let reward = OptimisticReward::for_zero_violation(shape, &margin, first)?;
            self.model.set_reward(reward); // Appendix E has ended
        }
        Ok(())
    }

    fn restrict(&mut self, actions: &StandIns) -> Result<()> {
        self.model.restrict(actions, Some(self.baseline.policy()))
    }

    /// Lemma 5.1 bounds the cost of the policy that is played, Lemma 5.3 the optimum by r bar of a planned policy.
    fn figures(&mut self) -> Figures {
        self.model.refresh(&mut ());
        let policy = self.policy().clone();
        let planned = self.last_source == PolicySource::PessimisticSet;
        let reward = planned.then(|| self.model.reward_of(&policy)).flatten();
        Figures::pessimistic(self.model.cost_of(&policy), reward)
    }

    fn guarantee(&self) -> Option<Guarantee> {
        let terms = self.terms();
        let probability = 1.0 - self.baseline.total_failure_probability(terms);
        let holds = self.baseline.cost_is_valid() && terms.rule().keeps_guarantee();
        holds.then(|| Guarantee::zero_violation(probability, terms.rule()))
    }

    methods_of_a_biased_model!();

    fn margin(&self) -> Option<SafetyMargin> {
        self.safe_cost.margin()
    }

    fn cost_limit(&self) -> f64 {
        self.baseline.cost_limit()
    }

    fn inductions(&self) -> u64 {
        self.search.inductions()
    }
}
