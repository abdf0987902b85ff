//! A policy is re-evaluated against its limit before anyone plays it, by code that did not find it.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::evaluate::{evaluate, mix_policies};
use crate::model::{InitialDistribution, StepKernel};
use crate::policy::MarkovPolicy;
use crate::table::StepSignal;

/// What re-evaluation found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// V(g_c) of the policy, as re-evaluated.
    pub cost: f64,
    /// The limit it is held to.
    pub limit: f64,
    /// The weight of the safe policy mixed in because rounding had put the cost above the limit; 0 in
    /// the usual case.
    pub repair: f64,
}

impl Certificate {
    /// limit - cost, never negative.
    #[must_use]
    pub fn slack(&self) -> f64 {
        self.limit - self.cost
    }
}

/// How much of the safe policy may be mixed in without asking how large the excess is.
const MAX_REPAIR: f64 = 1e-6;

/// An excess below this, relative to the costs at hand, is rounding whatever its repair takes: where the
/// safe policy has next to no slack itself, even a unit in the last place takes a lot of it.
const EXCESS_WIDTH: f64 = 1e-12;

/// Re-evaluates a policy's cost; where it exceeds the limit by rounding, mixes in as much of the safe
/// policy (in occupancy space) as brings it back.
///
/// [`Error::CertificateFailed`] if the safe policy itself is above the limit, or if more than a
/// millionth of it would be needed for an excess that is no rounding error: then the planner was wrong,
/// and the policy must not be played.
pub fn certified<C: StepSignal, K: StepKernel>(
    policy: MarkovPolicy,
    safe: &MarkovPolicy,
    cost: &C,
    kernel: &K,
    initial: &InitialDistribution,
    limit: f64,
) -> Result<(MarkovPolicy, Certificate)> {
    let found = evaluate(&policy, cost, kernel, initial)?;
    if found <= limit {
        let certificate = Certificate {
            cost: found,
            limit,
            repair: 0.0,
        };
        return Ok((policy, certificate));
    }
    let safe_cost = evaluate(safe, cost, kernel, initial)?;
    let failed = Error::CertificateFailed {
        claimed: limit,
        evaluated: found,
        limit,
    };
    if safe_cost >= limit {
        return Err(failed);
    }
    let original = [policy, safe.clone()];
    let size = found.abs().max(limit.abs()).max(safe_cost.abs());
    let most = if found - limit <= EXCESS_WIDTH * size {
        1.0
    } else {
        MAX_REPAIR
    };
    let mut repair = ((found - limit) / (found - safe_cost)).max(f64::EPSILON);
    while repair < most {
        let mixed = mix_policies(&original, &[1.0 - repair, repair], kernel, initial)?;
        let cost = evaluate(&mixed, cost, kernel, initial)?;
        if cost <= limit {
            return Ok((
                mixed,
                Certificate {
                    cost,
                    limit,
                    repair,
                },
            ));
        }
        repair *= 2.0;
    }
    if most < 1.0 {
        return Err(failed);
    }
    let [_, safe] = original;
    let certificate = Certificate {
        cost: safe_cost,
        limit,
        repair: 1.0,
    };
    Ok((safe, certificate))
}
