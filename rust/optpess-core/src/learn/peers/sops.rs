//! S-OPS in its stochastic form: an optimistic candidate, a worst-case certificate, and a coin between it and pi0.
//!
//! After Stradi, Castiglioni, Marchesi and Gatti, *Learning Adversarial MDPs with Stochastic Hard Constraints*, ICML
//! 2025, cited as \[Stradi25\], as restated by Zuo and Stradi, *Toward Optimal Regret in Adversarial MDPs with
//! Stochastic Hard Constraints*, 2026, cited as \[Zuo26\]. The box in words:
//!
//! 1. Candidate: the policy of the pair (pi, p') that maximises V(r-hat + xi, p') subject to V(c-hat - xi, p') <= tau,
//!    over policies and kernels within eps of P-hat. If no pair is within the limit, play pi0.
//! 2. Certificate: w = min{H, max of V^pi(min{1, c-hat + xi}, p')} over the kernels p' within eps of P-hat.
//! 3. Coin: if w > tau, play pi0 with probability (w - tau) / (w - c0), else the candidate; one toss an episode.
//! 4. All episodes feed the counts.
//!
//! Promise: with probability 1 - delta, in every episode the expected cost, over the coin too, is at most tau. This is the
//! theorem of \[Stradi25\] on zero violation. It rests on the sets alone (\[Zuo26\], (C.2) and Lemma B.2): they hold at all
//! N at once, so w bounds the candidate's cost, however that was chosen and however long ago. The regret of order
//! sqrt(K) / (tau - c0) of its theorem is proved for the candidate of mirror descent, not for this one.
//!
//! Deviations. The candidate of \[Stradi25\] comes from mirror descent, because its losses are adversarial; for stochastic
//! rewards the optimistic program replaces it, which is OptCMDP's plan. w is the worst case of one kernel for the
//! whole cost, as in \[Zuo26\], (6), instead of one kernel for each pair: it is never larger, and only upper bounds on it
//! are used. Costs are at most 1, so the signal of the certificate is cut off there. With a growth above 0 the
//! learner plans only when some count has grown by that share since the last plan, not before every episode.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::actions::StandIns;
use crate::confidence::{Guarantee, LearningTerms, PeerRadii, PessimisticCost, SafetyMargin};
use crate::error::{ArrayIndex, Error, Interval, Result};
use crate::estimate::RowEstimate;
use crate::evaluate::Evaluator;
use crate::learn::BaselineClaim;
use crate::learn::peers::optimistic_plan::OptimisticPlan;
use crate::learn::peers::optimistic_signals::Plausible;
use crate::learn::peers::{Algorithm, Peer, PeerExperience, Proposal};
use crate::learn::stored::check;
use crate::learn::{
    BiasedSignals, Member, MemberPolicy, Mixture, PolicySource, SafeBaseline, largest_weight,
};
use crate::model::InitialDistribution;
use crate::number::from_count;
use crate::plan::{ExtendedOracle, ExtendedVertex, ExtendedWork};
use crate::policy::MarkovPolicy;
use crate::random::Coin;
use crate::table::zeros;

/// The learner of S-OPS.
pub type Sops = Peer<SopsAlgorithm>;

/// How it plans.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SopsAlgorithm {
    baseline: Arc<MemberPolicy>,
    margin: SafetyMargin,
    growth: f64,
    coin: Coin,
    plausible: Plausible,
    /// min{1, c-hat + xi}.
    cost: PessimisticCost,
    plan: OptimisticPlan<ExtendedVertex>,
    work: ExtendedWork,
    evaluator: Evaluator,
    order: Vec<u32>,   // [S], workspace
    planned: Vec<u64>, // [H, S, A], the counts of the last plan
    replan: bool,
    /// The mixture of the last plan, and the candidate's values in it.
    deployed: Option<(Mixture, Proposal)>,
}

/// The number of pi0 among the policies of the learner.
const BASELINE: u64 = 0;

impl Sops {
    /// A learner that has seen nothing: pi0 costs at most the margin's safe cost; `growth` is the share by which a count
    /// has to grow for a new plan, 0 for a plan before every episode; the coin is that of replicate 0 of `seed`.
    pub fn new(
        initial: InitialDistribution,
        baseline: MarkovPolicy,
        margin: SafetyMargin,
        terms: LearningTerms,
        growth: f64,
        seed: u64,
    ) -> Result<Self> {
        let allowed = Interval::closed(0.0, f64::MAX);
        if !allowed.contains(growth) {
            return Err(Error::OutOfRange {
                place: ArrayIndex::scalar("replan_growth"),
                found: growth,
                allowed,
            });
        }
        let baseline = SafeBaseline::new(baseline, margin)?;
        let shape = baseline.policy().shape();
        let algorithm = SopsAlgorithm {
            baseline: Arc::new(baseline.policy().clone().into()),
            margin,
            growth,
            coin: Coin::new(seed, 0),
            plausible: Plausible::new(shape)?,
            cost: PessimisticCost::new(shape, 0.0)?,
            plan: OptimisticPlan::new(shape)?,
            work: ExtendedWork::new(shape)?,
            evaluator: Evaluator::new(shape)?,
            order: zeros("the order of states [S]", shape.num_states())?,
            planned: zeros("counts [H, S, A]", shape.triples())?,
            replan: true,
            deployed: None,
        };
        let limits = (margin.cost_limit(), Some(margin));
        let mut learner = Self::from_parts(shape, initial, limits, terms, algorithm)?;
        learner.known.radii = PeerRadii::of_sops(shape, &terms);
        Ok(learner)
    }

    /// pi0, and what is claimed of its cost.
    pub(crate) fn claims(&self) -> (&MarkovPolicy, Vec<BaselineClaim>) {
        let claim = BaselineClaim::AtMost(self.algorithm.margin.safe_cost());
        (self.algorithm.baseline.policy(), vec![claim])
    }
}

impl SopsAlgorithm {
    /// A new candidate, its certificate, and the mixture with pi0.
    fn propose(
        &mut self,
        known: &PeerExperience,
        policy: &mut MarkovPolicy,
    ) -> Result<(Mixture, Proposal)> {
        let problem = self.plausible.problem(known);
        let mut oracle = ExtendedOracle::on(&problem, &mut self.work);
        let source = PolicySource::Plausible;
        let proposal = self.plan.plan(&mut oracle, known, source, policy)?;
        known.fold(policy); // no value changes
        let (limit, safe_cost) = (self.margin.cost_limit(), self.margin.safe_cost());
        let mut members = Vec::with_capacity(2);
        let mut weight = 0.0;
        if proposal.source == source {
            let bound = self.worst_case(known, policy);
            weight = largest_weight(&[bound], &[safe_cost], &[limit]);
            let (number, policy) = self.numbered(policy);
            members.push(Member {
                number,
                source,
                weight,
                cost_bounds: vec![bound],
                policy,
            });
        }
        members.push(Member {
            number: BASELINE,
            source: PolicySource::Baseline,
            weight: 1.0 - weight,
            cost_bounds: vec![safe_cost],
            policy: Arc::clone(&self.baseline),
        });
        let last = self.mixture().map_or(0, Mixture::number);
        let mixture = Mixture::new(last + 1, members, vec![limit])?;
        Ok((mixture, proposal))
    }

    /// w.
    fn worst_case(&mut self, known: &PeerExperience, policy: &MarkovPolicy) -> f64 {
        let (kernels, order) = (self.plausible.kernels(), &mut self.order);
        let worst =
            self.evaluator
                .evaluate_best(policy, &self.cost, kernels, order, known.initial());
        worst.min(known.shape().horizon() as f64)
    }

    /// The candidate with its number: that of the last one if it is the same policy, else the number of the new mixture.
    fn numbered(&self, policy: &MarkovPolicy) -> (u64, Arc<MemberPolicy>) {
        let last = self.mixture().map_or(0, Mixture::number);
        let candidate = self.mixture().map(|mixture| &mixture.members()[0]);
        match candidate.filter(|member| member.policy.policy() == policy) {
            Some(same) => (same.number, Arc::clone(&same.policy)),
            None => (last + 1, Arc::new(policy.clone().into())),
        }
    }
}

impl Algorithm for SopsAlgorithm {
    const PROMISE: &'static str =
        "no violation with probability 1 - delta, for the expected cost over the coin too";

    fn check_stored(&self, known: &PeerExperience) -> Result<()> {
        let shape = known.shape();
        check("the signals of a learner", self.plausible.fits(shape)?)?;
        check(
            "the signals of a learner",
            self.cost == PessimisticCost::new(shape, 0.0)?,
        )?;
        let tables = self.order.len() == shape.num_states()
            && self.planned.len() == shape.triples()
            && self.work.shape() == shape
            && self.evaluator.shape() == shape;
        check("the workspace of a learner", tables)?;
        let baseline = self.baseline.policy().shape() == shape
            && known.margin() == Some(self.margin)
            && (0.0..=f64::MAX).contains(&self.growth);
        check("the baseline of a learner", baseline)?;
        if let Some((mixture, _)) = &self.deployed {
            mixture.check_stored(shape, &[self.margin.cost_limit()])?;
        }
        self.plan.check_stored(shape)
    }

    fn update_row(&mut self, row: &RowEstimate<'_>, radii: &PeerRadii) {
        let width = radii.sops_observation(row.visits);
        self.plausible.update_row_with(row, width, |frequency| {
            radii.sops_successor(row.visits, frequency)
        });
        let bound = (row.cost + width).min(1.0);
        self.cost.set(row.step, row.pair, bound, 0.0);
        let pairs = self.planned.len() / self.baseline.policy().shape().horizon();
        let planned = from_count(self.planned[row.step * pairs + row.pair]);
        self.replan |= from_count(row.visits) > (1.0 + self.growth) * planned;
    }

    fn plan(&mut self, known: &PeerExperience, policy: &mut MarkovPolicy) -> Result<Proposal> {
        let (mut mixture, proposal) = match self.deployed.take() {
            Some(last) if !self.replan => last,
            last => {
                self.deployed = last;
                let next = self.propose(known, policy)?;
                self.planned.copy_from_slice(known.estimates().visits());
                self.replan = false;
                next
            }
        };
        let chosen = mixture.choose(&mut self.coin);
        policy.clone_from(chosen.policy.policy());
        let played = if chosen.source.is_baseline() {
            Proposal {
                source: chosen.source,
                reward: None,
                cost: Some(self.margin.safe_cost()),
            }
        } else {
            proposal
        };
        self.deployed = Some((mixture, proposal));
        Ok(played)
    }

    fn restrict(&mut self, actions: &StandIns) -> Result<()> {
        actions.check_policy("baseline", self.baseline.policy())
    }

    fn signals(&self) -> BiasedSignals<'_> {
        self.plausible.signals.signals()
    }

    fn mixture(&self) -> Option<&Mixture> {
        self.deployed.as_ref().map(|(mixture, _)| mixture)
    }

    fn set_coin(&mut self, seed: u64, replicate: u64) {
        self.coin = Coin::new(seed, replicate);
    }

    fn guarantee(&self, terms: &LearningTerms) -> Option<Guarantee> {
        let probability = 1.0 - terms.failure_probability();
        let kept = terms.rule().keeps_guarantee();
        kept.then_some(Guarantee::SafeMixtures {
            probability,
            stationary: false,
            rewards: false,
            costs: false,
            support: false,
        })
    }
}
