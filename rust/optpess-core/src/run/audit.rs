//! The audit: whether the paper's events and lemmas held in a run, checked against the true model at every episode.

use serde::{Deserialize, Serialize};
use strum::{EnumCount, VariantArray};

use crate::confidence::constants::{Schedule, log_factor, multiplier_bound, tightening_horizon};
use crate::confidence::{DeviationRadii, SafetyMargin};
use crate::learn::{AnyLearner, Figures, Learner, Mixture, PolicySource};
use crate::model::ConstrainedMdp;
use crate::number::from_count;
use crate::record::CompensatedSum;
use crate::run::assumption::{SafetyClaim, excess_over};
use crate::run::episode_loop::{EpisodeFacts, Observer};
use crate::run::judge::MixtureJudge;
use crate::run::mixture_bounds::MixtureBounds;
use crate::table::StepSignal;
use crate::trajectory::Trajectory;

/// The conditions that an audit checks.
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
    /// V(c underbar, P-hat) >= V(c, P) for the deployed policy (Lemma 5.1). For a mixture: its weighted cost bounds
    /// against its true costs, one check a constraint whenever another mixture is deployed.
    CostDominance,
    /// U >= V(pi; c_m) for a member of a mixture and its cost bound U, one check a constraint whenever the member or a
    /// bound is new.
    MemberCost,
    /// The confidence set of a row's transitions contains the true row; made for every row whenever OptPess-Mix has
    /// deployed another mixture.
    PlausibleTransitions,
    /// The confidence interval of a row's mean cost contains the true one; made likewise.
    PlausibleCost,
    /// max(0, V(c tilde, P-hat)) <= V(c, P) for the deployed policy (Lemma C.1).
    CostOptimism,
    /// V(r bar, P-hat) >= V* past the gate (Lemma 5.3), and the same for other optimistic plans.
    RewardOptimism,
    /// lambda^k within the bound of Lemma 5.6 from C'' on.
    MultiplierBound,
    /// lambda^{k+1} >= sum of (V-hat(c tilde) + eps - tau), the telescoping behind the violation bound.
    Telescoping,
    /// Sums and P-hat, which the learner updates episode by episode, against compensated sums and the counts; two checks
    /// for every row that is visited.
    Drift,
    /// The policy that the learner was told of is as safe as it was told (Assumption 2.2); checked once a run.
    SafetyAssumption,
}

/// The result of one check over a run.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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

/// Checks every episode of a run.
#[derive(Debug)]
pub(crate) struct Auditor<'m> {
    model: &'m ConstrainedMdp,
    optimal_value: f64,
    log_factor: f64,
    state: AuditState,
}

/// What an audit remembers between two episodes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AuditState {
    /// eps_k and eta_k, with the margin they belong to; None while c0 is being estimated.
    schedule: Option<(SafetyMargin, Schedule)>,
    /// C'' and the sum of eps_u up to it.
    tightening: Option<(u64, f64)>,
    sum_of_tightenings: CompensatedSum,
    telescoped: CompensatedSum,
    /// What rounding may have done to lambda since the audit began: its updates are plain sums.
    multiplier_rounding: f64,
    /// Whether Algorithm 2 has been played: only its multiplier telescopes.
    telescopes: bool,
    mixture_bounds: MixtureBounds,
    /// The sums of rewards and costs of every row, `[H, S, A]`.
    sums: Vec<[CompensatedSum; 2]>,
    audit: Audit,
    episode: u64,
}

impl AuditState {
    /// The results so far.
    pub(crate) fn findings(self) -> Audit {
        self.audit
    }
}

impl<'m> Auditor<'m> {
    /// An audit of a run that begins with this learner; `claim` is what it was told of a safe policy.
    pub(crate) fn new(
        model: &'m ConstrainedMdp,
        learner: &AnyLearner,
        optimal_value: f64,
        claim: Option<SafetyClaim>,
    ) -> Self {
        let (shape, terms) = (learner.shape(), learner.terms());
        let delta = terms.failure_probability();
        let margin = learner.margin();
        let schedule = margin.map(|margin| (margin, Schedule::new(shape, &margin, delta)));
        // The bound on lambda counts from the learner's first episode, not from the audit's.
        let mut sum_of_tightenings = CompensatedSum::default();
        let mut tightening = None;
        if let Some((margin, schedule)) = &schedule
            && let Some(first) = tightening_horizon(shape, margin, delta)
        {
            for k in 1..=learner.episodes_observed().min(first) {
                sum_of_tightenings.add(schedule.tightening(k));
                if k == first {
                    tightening = Some((first, sum_of_tightenings.value()));
                }
            }
        }
        let state = AuditState {
            schedule,
            tightening,
            sum_of_tightenings,
            telescoped: CompensatedSum::default(),
            multiplier_rounding: 0.0,
            telescopes: false,
            mixture_bounds: MixtureBounds::default(),
            sums: compensated_sums(learner),
            audit: Audit {
                findings: [Finding::default(); Check::COUNT],
            },
            episode: learner.episodes_observed(),
        };
        let mut auditor = Self::resumed(model, learner, optimal_value, state);
        if let Some(claim) = claim {
            auditor.note(Check::SafetyAssumption, claim.excess());
        }
        auditor
    }

    /// An audit that goes on from a state.
    pub(crate) fn resumed(
        model: &'m ConstrainedMdp,
        learner: &AnyLearner,
        optimal_value: f64,
        state: AuditState,
    ) -> Self {
        let terms = learner.terms();
        Self {
            model,
            optimal_value,
            log_factor: log_factor(
                learner.shape(),
                terms.num_episodes(),
                terms.failure_probability(),
            ),
            state,
        }
    }

    /// What it remembers.
    pub(crate) fn state(&self) -> &AuditState {
        &self.state
    }

    pub(crate) fn finish(self) -> Audit {
        self.state.findings()
    }

    /// Notes a check, which fails if `excess` is positive, or no number.
    #[inline(always)]
    fn note(&mut self, check: Check, excess: f64) {
        let finding = &mut self.state.audit.findings[check as usize];
        finding.made += 1;
        if excess > 0.0 || excess.is_nan() {
            finding.failed += 1;
            finding.first_failure.get_or_insert(self.state.episode);
            let excess = if excess.is_nan() {
                f64::INFINITY
            } else {
                excess
            };
            finding.worst_excess = finding.worst_excess.max(excess);
        }
    }

    /// left <= right up to rounding.
    fn note_at_most(&mut self, check: Check, left: f64, right: f64) {
        self.note(check, excess_over(left, right));
    }

    /// low <= value <= high up to rounding, as one check: that a confidence set holds the truth.
    fn note_inside(&mut self, check: Check, value: f64, [low, high]: [f64; 2]) {
        if low - value > value - high {
            self.note_at_most(check, low, value);
        } else {
            self.note_at_most(check, value, high);
        }
    }

    /// The confidence sets of OptPess-Mix against the truth.
    fn check_sets(&mut self, learner: &AnyLearner) {
        let AnyLearner::OptPessMix(learner) = learner else {
            return;
        };
        let (tally, sets, shape) = (
            learner.model().tally(),
            learner.model().sets(),
            learner.shape(),
        );
        for step in 0..shape.horizon() {
            for pair in 0..shape.pairs() {
                let row = tally.row(step, pair);
                for (m, cost) in self.model.costs().iter().enumerate() {
                    let (low, high) = sets.cost(row, m);
                    self.note_inside(Check::PlausibleCost, cost.at(step, pair), [low, high]);
                }
                if step + 1 < shape.horizon() {
                    let kernel = self.model.kernel().kernel();
                    let successors = kernel.possible_successors(step, pair);
                    let truth: Vec<(u32, f64)> =
                        successors.map(|(state, p)| (state as u32, p)).collect();
                    let inside = sets.row(row).contains(&truth);
                    self.note(Check::PlausibleTransitions, if inside { 0.0 } else { 1.0 });
                }
            }
            if tally.is_pooled() {
                break; // the other steps have the same sets
            }
        }
    }

    /// The cost bounds of a mixture and of its members against the truth.
    fn check_mixture(&mut self, mixture: &Mixture, judged: &MixtureJudge<'_>) {
        let mut bounds = std::mem::take(&mut self.state.mixture_bounds);
        bounds.check(mixture, judged, |check, cost, bound| {
            self.note_inside(check, cost, [f64::NEG_INFINITY, bound]);
        });
        self.state.mixture_bounds = bounds;
    }

    /// The four deviation conditions for a row that has just changed.
    fn check_row(&mut self, learner: &AnyLearner, step: usize, pair: usize) {
        let (shape, estimates) = (learner.shape(), learner.estimates());
        let row = step * shape.pairs() + pair;
        let visits = estimates.visits()[row];
        let radii = DeviationRadii::after(visits, self.log_factor);
        let radius = radii.plain();
        let reward = self.model.reward().at(step, pair);
        let cost = self.model.costs()[0].at(step, pair);
        self.note(
            Check::RewardDeviation,
            (reward - estimates.mean_reward(row)).abs() - radius,
        );
        self.note(
            Check::CostDeviation,
            (cost - estimates.mean_cost(row)).abs() - radius,
        );
        if step + 1 == shape.horizon() {
            return;
        }
        let (mut plain, mut bernstein) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
        for state in 0..shape.num_states() {
            let estimate = estimates.frequency(step, pair, state);
            let truth = self.probability(step, pair, state);
            let deviation = (estimate - truth).abs();
            plain = plain.max(deviation - radius);
            bernstein = bernstein.max(deviation - radii.bernstein(truth));
        }
        self.note(Check::TransitionDeviation, plain);
        self.note(Check::TransitionBernstein, bernstein);
    }

    /// The sums of a row that was just counted, against compensated ones.
    fn check_sums(&mut self, learner: &AnyLearner, row: usize, [reward, cost]: [f64; 2]) {
        let estimates = learner.estimates();
        let (reward_sums, cost_sums) = estimates.sums();
        let visits = from_count(estimates.visits()[row]);
        let sums = &mut self.state.sums[row];
        let terms = [(reward, reward_sums[row]), (cost, cost_sums[row])];
        let excesses = sums.iter_mut().zip(terms).map(|(sum, (term, kept))| {
            sum.add(term);
            let value = sum.value();
            // Each of N additions rounds a sum of at most that size.
            let rounding = visits * f64::EPSILON * value.abs().max(visits);
            (kept - value).abs() - rounding
        });
        let excess = excesses.fold(f64::NEG_INFINITY, largest);
        self.note(Check::Drift, excess);
    }

    /// P-hat of the rows of an episode, as the plan used it, against the counts.
    fn check_frequencies(&mut self, learner: &AnyLearner, seen: &Trajectory) {
        let (shape, estimates) = (learner.shape(), learner.estimates());
        for step in 0..shape.horizon() - 1 {
            let (state, action) = (seen.states()[step], seen.actions()[step]);
            let pair = shape.pair(state as usize, action as usize);
            let kept = estimates.kernel().row(step, pair);
            let drift = kept.iter().map(|(state, probability)| {
                (probability - estimates.frequency(step, pair, state)).abs()
            });
            let drift = drift.fold(0.0, largest);
            self.note(Check::Drift, drift);
        }
    }

    fn probability(&self, step: usize, pair: usize, state: usize) -> f64 {
        let mut successors = self.model.kernel().kernel().successors(step, pair);
        successors
            .find(|&(next, _)| next == state)
            .map_or(0.0, |(_, probability)| probability)
    }

    /// Checks what Lemma 5.6 and the proof of Theorem 4.1 claim about lambda.
    fn check_multiplier(&mut self, learner: &AnyLearner, k: u64, figures: &Figures) {
        let (Some((margin, schedule)), Some(cost)) = (self.state.schedule, figures.cost_at_least)
        else {
            return;
        };
        let (shape, epsilon) = (learner.shape(), schedule.tightening(k));
        self.state.telescopes = true;
        self.state.sum_of_tightenings.add(epsilon);
        if self.state.tightening.is_none() && epsilon <= margin.gap() / 2.0 {
            let delta = learner.terms().failure_probability();
            let first = tightening_horizon(shape, &margin, delta);
            self.state.tightening =
                first.map(|first| (first, self.state.sum_of_tightenings.value()));
        }
        if let Some(tightening) = self.state.tightening {
            let bound = multiplier_bound(k, shape, &margin, &schedule, tightening);
            self.note_at_most(Check::MultiplierBound, learner.multiplier(), bound);
        }
        let limit = margin.cost_limit();
        self.state.telescoped.add(cost + epsilon - limit);
        // Line 7 adds three numbers to lambda; each addition loses at most half a unit in the last place.
        let size = learner.multiplier() + cost + epsilon + limit;
        self.state.multiplier_rounding += 1.5 * f64::EPSILON * size;
    }
}

/// The larger of two; NaN if one of them is.
fn largest(first: f64, second: f64) -> f64 {
    if second <= first || first.is_nan() {
        first
    } else {
        second
    }
}

/// The sums of rewards and costs that a learner starts from, `[H, S, A]`.
fn compensated_sums(learner: &AnyLearner) -> Vec<[CompensatedSum; 2]> {
    let (rewards, costs) = learner.estimates().sums();
    let pairs = rewards.iter().zip(costs);
    let sum = |first: f64| CompensatedSum::from_parts(|_| [first, 0.0]);
    pairs
        .map(|(&reward, &cost)| [sum(reward), sum(cost)])
        .collect()
}

impl Observer for Auditor<'_> {
    fn played(&mut self, facts: &EpisodeFacts<'_>, learner: Option<&mut AnyLearner>) {
        let Some(learner) = learner else {
            return; // an audit runs on the plain engine
        };
        let (deployment, truth) = (facts.deployment, facts.truth);
        self.state.episode = deployment.episode;
        if let (Some(mixture), Some(judged)) = (learner.mixture(), facts.mixture) {
            if self.state.mixture_bounds.is_new(mixture) {
                self.check_mixture(mixture, judged);
                self.check_sets(learner);
                if let Some(reward) = learner.figures().optimum_at_most {
                    self.note_at_most(Check::RewardOptimism, self.optimal_value, reward);
                }
            }
            return;
        }
        let figures = learner.figures(); // up to date with the counts
        self.check_frequencies(learner, facts.seen);
        if let Some(cost) = figures.cost_at_least {
            self.note_at_most(Check::CostOptimism, cost, truth.cost);
        }
        if let Some(cost) = figures.cost_at_most {
            self.note_at_most(Check::CostDominance, truth.cost, cost);
        }
        if let Some(reward) = figures.optimum_at_most {
            self.note_at_most(Check::RewardOptimism, self.optimal_value, reward);
        }
        if deployment.source == PolicySource::Lagrangian {
            self.check_multiplier(learner, deployment.episode + 1, &figures);
        }
    }

    fn observed(&mut self, seen: &Trajectory, learner: Option<&mut AnyLearner>) {
        let Some(learner) = learner else {
            return;
        };
        if learner.mixture().is_some() {
            return; // such a learner has other confidence sets than those of the paper
        }
        for (step, (&state, &action)) in seen.states().iter().zip(seen.actions()).enumerate() {
            let pair = learner.shape().pair(state as usize, action as usize);
            self.check_row(learner, step, pair);
            let row = step * learner.shape().pairs() + pair;
            let seen = [seen.rewards()[step], seen.costs()[step]];
            self.check_sums(learner, row, seen);
        }
        if self.state.telescopes {
            let telescoped = self.state.telescoped.value() - self.state.multiplier_rounding;
            self.note_at_most(Check::Telescoping, telescoped, learner.multiplier());
        }
    }
}
