//! Did the paper's events and lemmas hold in this run? Checked against the truth at every episode.

use strum::{EnumCount, VariantArray};

use crate::confidence::constants::{
    confidence_radius, constraint_tightening, log_factor, multiplier_bound, tightening_delta,
    tightening_horizon,
};
use crate::learn::{Deployment, Learner, PolicySource};
use crate::model::ConstrainedMdp;
use crate::record::{CompensatedSum, TrueValues};
use crate::run::episode_loop::{Observer, Trace};
use crate::table::StepSignal;
use crate::trajectory::Trajectory;

/// What is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumCount, VariantArray, strum::IntoStaticStr)]
pub enum Check {
    /// |r - r-hat| <= beta (good event, Appendix A).
    RewardDeviation,
    /// |c - c-hat| <= beta (good event).
    CostDeviation,
    /// |P-hat(s') - P(s')| <= beta for every s' (good event).
    TransitionDeviation,
    /// |P-hat(s') - P(s')| <= sqrt(2 P Z / N) + Z / (3 N) for every s' (good event).
    TransitionBernstein,
    /// V(c underbar, P-hat) >= V(c, P) for the deployed policy (Lemma 5.1).
    CostDominance,
    /// max(0, V(c tilde, P-hat)) <= V(c, P) for the deployed policy (Lemma C.1).
    CostOptimism,
    /// V(r bar, P-hat) >= V* past the gate (Lemma 5.3), and the same for other optimistic plans.
    RewardOptimism,
    /// lambda^k within the bound of Lemma 5.6 from C'' on.
    MultiplierBound,
    /// lambda^{k+1} >= sum of (V-hat(c tilde) + eps - tau), the telescoping behind the violation bound.
    Telescoping,
}

/// The result of one check over a run.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Finding {
    /// How often it was made.
    pub made: u64,
    /// How often it failed.
    pub failed: u64,
    /// The first failing episode, from 0.
    pub first_failure: Option<u64>,
    /// By how much it failed at worst.
    pub worst_excess: f64,
}

/// The results of all checks of one replicate, in the order of [`Check`].
#[derive(Debug, Clone, PartialEq)]
pub struct Audit {
    /// One finding a check.
    pub findings: [Finding; Check::COUNT],
}

impl Audit {
    /// The finding of one check.
    #[must_use]
    pub fn of(&self, check: Check) -> Finding {
        self.findings[check as usize]
    }
}

/// What rounding may do to two values that are equal on paper, relative to their size.
const ROUNDING: f64 = 1e-9;

/// Checks every episode of a run.
#[derive(Debug)]
pub(crate) struct Auditor<'m> {
    model: &'m ConstrainedMdp,
    optimal_value: f64,
    log_factor: f64,
    tightening_delta: f64,
    /// C'' and the sum of eps_u up to it.
    tightening: Option<(u64, f64)>,
    sum_of_tightenings: CompensatedSum,
    telescoped: CompensatedSum,
    /// Whether Algorithm 2 has been played: only its multiplier telescopes.
    telescopes: bool,
    audit: Audit,
    episode: u64,
}

impl<'m> Auditor<'m> {
    pub(crate) fn new<L: Learner>(
        model: &'m ConstrainedMdp,
        learner: &L,
        optimal_value: f64,
    ) -> Self {
        let (shape, terms) = (learner.shape(), learner.terms());
        let tightening_delta = tightening_delta(shape, terms.failure_probability());
        // The bound on lambda counts from the learner's first episode, not from the audit's.
        let mut sum_of_tightenings = CompensatedSum::default();
        let mut tightening = None;
        if let Some(first) = learner
            .margin()
            .and_then(|margin| tightening_horizon(shape, &margin, terms.failure_probability()))
        {
            for k in 1..=learner.episodes_observed().min(first) {
                sum_of_tightenings.add(constraint_tightening(k, shape, tightening_delta));
                if k == first {
                    tightening = Some((first, sum_of_tightenings.value()));
                }
            }
        }
        Self {
            model,
            optimal_value,
            log_factor: log_factor(shape, terms.num_episodes(), terms.failure_probability()),
            tightening_delta,
            tightening,
            sum_of_tightenings,
            telescoped: CompensatedSum::default(),
            telescopes: false,
            audit: Audit {
                findings: [Finding::default(); Check::COUNT],
            },
            episode: 0,
        }
    }

    pub(crate) fn finish(self) -> Audit {
        self.audit
    }

    /// Notes whether `excess` (what should not be positive) is.
    #[inline(always)]
    fn note(&mut self, check: Check, excess: f64) {
        let finding = &mut self.audit.findings[check as usize];
        finding.made += 1;
        if excess > 0.0 {
            finding.failed += 1;
            finding.first_failure.get_or_insert(self.episode);
            finding.worst_excess = finding.worst_excess.max(excess);
        }
    }

    /// left <= right up to rounding.
    fn note_at_most(&mut self, check: Check, left: f64, right: f64) {
        self.note(
            check,
            left - right - ROUNDING * left.abs().max(right.abs()).max(1.0),
        );
    }

    /// The four deviation conditions for a row that has just changed.
    fn check_row<L: Learner>(&mut self, learner: &L, step: usize, pair: usize) {
        let (shape, estimates) = (learner.shape(), learner.estimates());
        let row = step * shape.pairs() + pair;
        let visits = estimates.visits()[row];
        let radius = confidence_radius(visits, self.log_factor);
        let reward = self.model.reward().at(step, pair);
        let cost = self.model.costs()[0].at(step, pair);
        self.note(
            Check::RewardDeviation,
            (reward - estimates.rewards()[row]).abs() - radius,
        );
        self.note(
            Check::CostDeviation,
            (cost - estimates.costs()[row]).abs() - radius,
        );
        if step + 1 == shape.horizon() {
            return;
        }
        let (mut plain, mut bernstein) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
        let count = f64::from(visits.max(1));
        for state in 0..shape.num_states() {
            let estimate = estimates.kernel().row(step, pair).probability(state);
            let truth = self.probability(step, pair, state);
            let deviation = (estimate - truth).abs();
            let sharper =
                (2.0 * truth * self.log_factor / count).sqrt() + self.log_factor / (3.0 * count);
            plain = plain.max(deviation - radius);
            bernstein = bernstein.max(deviation - sharper);
        }
        self.note(Check::TransitionDeviation, plain);
        self.note(Check::TransitionBernstein, bernstein);
    }

    fn probability(&self, step: usize, pair: usize, state: usize) -> f64 {
        let mut successors = self.model.kernel().kernel().successors(step, pair);
        successors
            .find(|&(next, _)| next == state)
            .map_or(0.0, |(_, probability)| probability)
    }

    fn check_primal_dual<L: Learner>(&mut self, learner: &L, deployment: &Deployment) {
        let Some(margin) = learner.margin() else {
            return;
        };
        let (shape, k) = (learner.shape(), deployment.episode + 1);
        self.telescopes = true;
        let epsilon = constraint_tightening(k, shape, self.tightening_delta);
        self.sum_of_tightenings.add(epsilon);
        if self.tightening.is_none() && epsilon <= margin.gap() / 2.0 {
            let delta = learner.terms().failure_probability();
            let first = tightening_horizon(shape, &margin, delta);
            self.tightening = first.map(|first| (first, self.sum_of_tightenings.value()));
        }
        if let Some(tightening) = self.tightening {
            let bound = multiplier_bound(k, shape, &margin, self.tightening_delta, tightening);
            self.note_at_most(Check::MultiplierBound, learner.multiplier(), bound);
        }
        self.telescoped
            .add(deployment.biased_cost.max(0.0) + epsilon - margin.cost_limit());
    }
}

impl<L: Learner> Observer<L> for Auditor<'_> {
    const READS_FIGURES: bool = true;

    fn played(&mut self, learner: &L, deployment: &Deployment, truth: TrueValues, _: &Trajectory) {
        self.episode = deployment.episode;
        match deployment.source {
            PolicySource::Lagrangian => {
                let optimistic = deployment.biased_cost.max(0.0);
                self.note_at_most(Check::CostOptimism, optimistic, truth.cost);
                self.check_primal_dual(learner, deployment);
            }
            PolicySource::PessimisticSet => {
                self.note_at_most(Check::CostDominance, truth.cost, deployment.biased_cost);
                let (optimum, planned) = (self.optimal_value, deployment.optimistic_reward);
                self.note_at_most(Check::RewardOptimism, optimum, planned);
            }
            PolicySource::Optimistic => {
                let optimistic = deployment.biased_cost.max(0.0);
                self.note_at_most(Check::CostOptimism, optimistic, truth.cost);
                let (optimum, planned) = (self.optimal_value, deployment.optimistic_reward);
                self.note_at_most(Check::RewardOptimism, optimum, planned);
            }
            // The kernel is the best for reward and cost together, so that the cost alone need not be
            // below the truth.
            PolicySource::Plausible => {
                let (optimum, planned) = (self.optimal_value, deployment.optimistic_reward);
                self.note_at_most(Check::RewardOptimism, optimum, planned);
            }
            PolicySource::PlausibleLagrangian => {
                let excess = deployment.biased_cost - learner.cost_limit();
                let lagrangian = deployment.optimistic_reward - learner.multiplier() * excess;
                self.note_at_most(Check::RewardOptimism, self.optimal_value, lagrangian);
            }
            // The iterate of mirror ascent need not be better than the optimum, only cheaper than it is.
            PolicySource::MirrorAscent | PolicySource::LeastCost => {
                let optimistic = deployment.biased_cost.max(0.0);
                self.note_at_most(Check::CostOptimism, optimistic, truth.cost);
            }
            PolicySource::Baseline
            | PolicySource::BaselineEstimation
            | PolicySource::KnownTransitions => {
                self.note_at_most(Check::CostDominance, truth.cost, deployment.biased_cost);
            }
        }
    }

    fn absorbed(&mut self, learner: &L, seen: &Trajectory) {
        for (step, (&state, &action)) in seen.states.iter().zip(&seen.actions).enumerate() {
            let pair = learner.shape().pair(state as usize, action as usize);
            self.check_row(learner, step, pair);
        }
        if self.telescopes {
            let telescoped = self.telescoped.value();
            self.note_at_most(Check::Telescoping, telescoped, learner.multiplier());
        }
    }
}

/// Whoever needs a run through the learner's full verb: an audit, or whoever forced it.
#[derive(Debug)]
pub(crate) struct Figures<'a, 'm> {
    /// Everything that was seen, if it was asked for.
    pub(crate) trace: Option<&'a mut Trace>,
    /// The audit, if it was asked for.
    pub(crate) auditor: Option<&'a mut Auditor<'m>>,
}

impl<L: Learner> Observer<L> for Figures<'_, '_> {
    const READS_FIGURES: bool = true;

    fn played(
        &mut self,
        learner: &L,
        deployment: &Deployment,
        truth: TrueValues,
        seen: &Trajectory,
    ) {
        if let Some(trace) = &mut self.trace {
            trace.played(learner, deployment, truth, seen);
        }
        if let Some(auditor) = &mut self.auditor {
            auditor.played(learner, deployment, truth, seen);
        }
    }

    fn absorbed(&mut self, learner: &L, seen: &Trajectory) {
        if let Some(auditor) = &mut self.auditor {
            auditor.absorbed(learner, seen);
        }
    }
}
