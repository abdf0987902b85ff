//! Certificates: the cost of a policy, re-evaluated by code that did not propose it, and compared with a limit; and
//! bounds on its cost from the episodes it has played.

mod worst_case;

pub use worst_case::{PolicyBounds, WorstCase};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::evaluate::{Evaluator, mix_policies};
use crate::model::{InitialDistribution, StepKernel};
use crate::policy::MarkovPolicy;
use crate::table::StepSignal;

/// Whether a cost respects a limit; false for NaN. Certificates and deployments are decided by this function alone.
#[must_use]
#[inline(always)]
pub fn within(cost: f64, limit: f64) -> bool {
    cost <= limit
}

/// A re-evaluated cost and the limit it respects. Only [`certify`] makes one, so the cost is never above the limit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Reevaluation", into = "Reevaluation")]
pub struct Certificate(Reevaluation);

/// The result of a re-evaluation. For a plan of a known model the cost may exceed the limit by a rounding error: if the
/// least attainable cost equals the limit, no mixture can repair that.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Reevaluation {
    /// V(g_c) of the policy.
    pub cost: f64,
    /// The limit.
    pub limit: f64,
    /// The weight of the safe policy mixed in because rounding had put the cost above the limit; 0 in
    /// the usual case.
    pub repair: f64,
}

impl Certificate {
    fn new(cost: f64, limit: f64, repair: f64) -> Self {
        debug_assert!(within(cost, limit));
        Self(Reevaluation {
            cost,
            limit,
            repair,
        })
    }

    /// V(g_c) of the policy, as re-evaluated; at most the limit.
    #[must_use]
    pub fn cost(&self) -> f64 {
        self.0.cost
    }

    /// The limit.
    #[must_use]
    pub fn limit(&self) -> f64 {
        self.0.limit
    }

    /// The weight of the safe policy mixed in because rounding had put the cost above the limit; 0 in
    /// the usual case.
    #[must_use]
    pub fn repair(&self) -> f64 {
        self.0.repair
    }

    /// limit - cost, never negative.
    #[must_use]
    pub fn slack(&self) -> f64 {
        self.0.limit - self.0.cost
    }
}

impl From<Certificate> for Reevaluation {
    fn from(certificate: Certificate) -> Self {
        certificate.0
    }
}

/// Reads a stored certificate; refuses a cost above its limit.
impl TryFrom<Reevaluation> for Certificate {
    type Error = Error;

    fn try_from(stored: Reevaluation) -> Result<Self> {
        if within(stored.cost, stored.limit) {
            Ok(Self(stored))
        } else {
            Err(failed(stored.cost, stored.limit))
        }
    }
}

fn failed(evaluated: f64, limit: f64) -> Error {
    Error::CertificateFailed {
        claimed: limit,
        evaluated,
        limit,
    }
}

/// The largest weight of the safe policy in a repair of an excess that is more than rounding.
const MAX_REPAIR: f64 = 1e-6;

/// An excess below this, relative to the costs involved, counts as rounding and may be repaired with any weight: if the
/// safe policy has little slack itself, a unit in the last place can need a large one.
const EXCESS_WIDTH: f64 = 1e-12;

/// Re-evaluates a policy's cost. If it exceeds the limit by little, mixes in as much of the safe policy (in occupancy
/// space) as brings it back. Allocates only for that.
///
/// [`Error::CertificateFailed`] if the safe policy has no slack itself, or if an excess that is more than rounding
/// needs more than a millionth of it: then the planner was wrong and the policy must not be played. The policy is
/// then left as it was.
pub fn certify<C: StepSignal, K: StepKernel>(
    evaluator: &mut Evaluator,
    policy: &mut MarkovPolicy,
    safe: &MarkovPolicy,
    cost: &C,
    kernel: &K,
    initial: &InitialDistribution,
    limit: f64,
) -> Result<Certificate> {
    let found = evaluator.evaluate(policy, cost, kernel, initial);
    if within(found, limit) {
        return Ok(Certificate::new(found, limit, 0.0));
    }
    let safe_cost = evaluator.evaluate(safe, cost, kernel, initial);
    let mut repaired = None;
    let certificate = repair(found, safe_cost, limit, &mut |weight| {
        let mixed = if weight < 1.0 {
            let original = [policy.clone(), safe.clone()];
            mix_policies(&original, &[1.0 - weight, weight], kernel, initial)?
        } else {
            safe.clone()
        };
        let cost = evaluator.evaluate(&mixed, cost, kernel, initial);
        repaired = Some(mixed);
        Ok(cost)
    })?;
    if let Some(mixed) = repaired {
        *policy = mixed;
    }
    Ok(certificate)
}

/// Finds the weight of the safe policy that brings a cost above the limit back to it. `cost_with` makes the mixture
/// with a weight, at most 1, and evaluates its cost; the last one it made is the one that the certificate is for.
pub(crate) fn repair(
    found: f64,
    safe_cost: f64,
    limit: f64,
    cost_with: &mut impl FnMut(f64) -> Result<f64>,
) -> Result<Certificate> {
    // A safe policy that costs exactly the limit has no slack for a repair.
    if !within(safe_cost, limit) || within(limit, safe_cost) {
        return Err(failed(found, limit));
    }
    let size = found.abs().max(limit.abs()).max(safe_cost.abs());
    let is_rounding = found - limit <= EXCESS_WIDTH * size;
    let most = if is_rounding { 1.0 } else { MAX_REPAIR };
    let mut weight = ((found - limit) / (found - safe_cost)).max(f64::EPSILON);
    while weight < most {
        let cost = cost_with(weight)?;
        if within(cost, limit) {
            return Ok(Certificate::new(cost, limit, weight));
        }
        weight *= 2.0;
    }
    if !is_rounding {
        return Err(failed(found, limit));
    }
    let cost = cost_with(1.0)?;
    if within(cost, limit) {
        Ok(Certificate::new(cost, limit, 1.0))
    } else {
        Err(failed(cost, limit))
    }
}
