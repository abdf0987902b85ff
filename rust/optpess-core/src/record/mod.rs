//! Owns what happened, as data, and plain statistics of it. Refuses to compute true values: those are
//! the judge's.

mod schedule;
mod side_by_side;
mod sum;

pub use schedule::record_points;
pub(crate) use side_by_side::BatchRecorder;
pub use sum::CompensatedSum;

use crate::learn::{Deployment, PolicySource};

/// The true value and cost of a deployed policy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrueValues {
    /// V(r).
    pub reward: f64,
    /// V(c).
    pub cost: f64,
}

/// What happened in one replicate: curves at the record points, exact totals.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplicateRecord {
    /// sum of V* - V(r) up to each record point, signed.
    pub reward_regret: Vec<f64>,
    /// sum of V(c) - tau up to each record point, signed; the weak violation is its positive part.
    pub signed_violation: Vec<f64>,
    /// sum of the positive parts of V(c) - tau up to each record point.
    pub strong_violation: Vec<f64>,
    /// lambda after each record point.
    pub multiplier: Vec<f64>,
    /// The largest V(c) - tau of any episode, or 0.
    pub worst_violation: f64,
    /// How many episodes had V(c) > tau.
    pub violating_episodes: u64,
    /// The first of them, from 0.
    pub first_violation: Option<u64>,
    /// How many episodes played pi0, for whatever reason.
    pub baseline_episodes: u64,
    /// How many of those were spent on estimating its cost.
    pub estimation_episodes: u64,
    /// The first episode that did not play pi0, from 0.
    pub first_planned: Option<u64>,
    /// The least slack of any certificate; infinite if there was none.
    pub least_slack: f64,
    /// How many certificates needed a repair, and the largest.
    pub repairs: (u64, f64),
    /// The safe cost the learner used in the end; NaN if it was never known.
    pub safe_cost: f64,
}

/// Adds episodes up into a [`ReplicateRecord`]; memory does not grow with their number.
#[derive(Debug)]
pub struct Recorder<'a> {
    points: &'a [u64],
    optimal_value: f64,
    cost_limit: f64,
    regret: CompensatedSum,
    signed: CompensatedSum,
    strong: CompensatedSum,
    episodes: u64,
    next_point: u64,
    record: ReplicateRecord,
}

impl<'a> Recorder<'a> {
    /// A record to be filled at these points (numbers of episodes, increasing).
    #[must_use]
    pub fn new(points: &'a [u64], optimal_value: f64, cost_limit: f64) -> Self {
        let curve = || Vec::with_capacity(points.len());
        Self {
            points,
            optimal_value,
            cost_limit,
            regret: CompensatedSum::default(),
            signed: CompensatedSum::default(),
            strong: CompensatedSum::default(),
            episodes: 0,
            next_point: points.first().copied().unwrap_or(u64::MAX),
            record: ReplicateRecord {
                reward_regret: curve(),
                signed_violation: curve(),
                strong_violation: curve(),
                multiplier: curve(),
                worst_violation: 0.0,
                violating_episodes: 0,
                first_violation: None,
                baseline_episodes: 0,
                estimation_episodes: 0,
                first_planned: None,
                least_slack: f64::INFINITY,
                repairs: (0, 0.0),
                safe_cost: f64::NAN,
            },
        }
    }

    /// Adds one episode; `multiplier` is lambda after it.
    #[inline]
    pub fn add(&mut self, deployment: &Deployment, truth: TrueValues, multiplier: f64) {
        let violation = truth.cost - self.cost_limit;
        self.regret.add(self.optimal_value - truth.reward);
        self.signed.add(violation);
        if violation > 0.0 {
            self.strong.add(violation);
            self.record.worst_violation = self.record.worst_violation.max(violation);
            self.record.violating_episodes += 1;
            self.record
                .first_violation
                .get_or_insert(deployment.episode);
        }
        match deployment.source {
            PolicySource::Baseline => self.record.baseline_episodes += 1,
            PolicySource::BaselineEstimation => {
                self.record.baseline_episodes += 1;
                self.record.estimation_episodes += 1;
            }
            PolicySource::PessimisticSet
            | PolicySource::Lagrangian
            | PolicySource::Optimistic
            | PolicySource::Plausible
            | PolicySource::PlausibleLagrangian
            | PolicySource::LeastCost
            | PolicySource::MirrorAscent
            | PolicySource::KnownTransitions => {
                self.record.first_planned.get_or_insert(deployment.episode);
            }
        }
        if let Some(certificate) = deployment.certificate {
            self.record.least_slack = self.record.least_slack.min(certificate.slack());
            if certificate.repair > 0.0 {
                self.record.repairs.0 += 1;
                self.record.repairs.1 = self.record.repairs.1.max(certificate.repair);
            }
        }
        self.episodes += 1;
        if self.episodes == self.next_point {
            self.take(multiplier);
        }
    }

    #[cold]
    fn take(&mut self, multiplier: f64) {
        self.record.reward_regret.push(self.regret.value());
        self.record.signed_violation.push(self.signed.value());
        self.record.strong_violation.push(self.strong.value());
        self.record.multiplier.push(multiplier);
        let taken = self.record.multiplier.len();
        self.next_point = self.points.get(taken).copied().unwrap_or(u64::MAX);
    }

    /// The finished record.
    #[must_use]
    pub fn finish(mut self, safe_cost: f64) -> ReplicateRecord {
        self.record.safe_cost = safe_cost;
        self.record
    }
}
