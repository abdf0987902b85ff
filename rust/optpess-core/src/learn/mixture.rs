//! Mixtures: members with weights, of which a coin chooses one before the episode starts.
//!
//! Safety in one line: the expected cost of an episode is the sum of w_i V(pi_i; c), which is at most the sum of
//! w_i U_i if every U_i bounds its member's cost. [`Mixture::new`] refuses members whose weighted bounds exceed a limit,
//! so no such mixture is ever deployed, whoever proposed its members and weights.
//!
//! The coin is that of S-OPS (Stradi, Castiglioni, Marchesi, Gatti, ICML 2025); docs/mixing.md cites its relatives.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::certify::within;
use crate::error::{Error, Result};
use crate::learn::PolicySource;
use crate::learn::stored::check;
use crate::policy::{ActionTable, MarkovPolicy, Played};
use crate::random::Coin;
use crate::shape::Shape;

/// A policy, and its actions if it is deterministic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "MarkovPolicy", into = "MarkovPolicy")]
pub struct MemberPolicy {
    policy: MarkovPolicy,
    actions: Option<Vec<u32>>, // [H, S]
}

impl From<MarkovPolicy> for MemberPolicy {
    fn from(policy: MarkovPolicy) -> Self {
        Self {
            actions: policy.actions(),
            policy,
        }
    }
}

impl From<MemberPolicy> for MarkovPolicy {
    fn from(member: MemberPolicy) -> Self {
        member.policy
    }
}

impl MemberPolicy {
    /// The deterministic policy that takes these actions, `[H, S]`.
    pub fn deterministic(shape: Shape, actions: &[u32]) -> Result<Self> {
        Ok(Self {
            policy: MarkovPolicy::deterministic(shape, actions)?,
            actions: Some(actions.to_vec()),
        })
    }

    /// The policy.
    #[must_use]
    pub fn policy(&self) -> &MarkovPolicy {
        &self.policy
    }

    /// Its actions, `[H, S]`, if it is deterministic.
    #[must_use]
    pub fn actions(&self) -> Option<&[u32]> {
        self.actions.as_deref()
    }

    /// What an episode with this policy plays.
    #[must_use]
    #[inline(always)]
    pub fn played(&self) -> Played<'_> {
        match &self.actions {
            Some(actions) => {
                Played::Actions(ActionTable::new(actions, self.policy.shape().num_states()))
            }
            None => Played::Policy(&self.policy),
        }
    }
}

/// A member of a mixture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Member {
    /// The number of the policy within its learner: the same number is the same policy.
    pub number: u64,
    /// Where the policy comes from.
    pub source: PolicySource,
    /// The probability that the coin chooses it.
    pub weight: f64,
    /// Upper bounds on its expected cost, one a constraint.
    pub cost_bounds: Vec<f64>,
    /// The policy.
    pub policy: Arc<MemberPolicy>,
}

/// Members with weights, whose weighted cost bounds are within every limit; and the member chosen last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mixture {
    number: u64,
    members: Vec<Member>,
    limits: Vec<f64>,
    cost_bounds: Vec<f64>,
    chosen: usize,
}

/// The largest weight of a member, mixed with a partner that is within every limit, for which [`Mixture::new`] does not
/// refuse the pair (member first).
///
/// Formula: 1 if U_m <= tau_m for all m, else min over the other m of (tau_m - u_m) / (U_m - u_m), with U the bounds of the
/// member and u those of the partner. Citation: S-OPS; docs/mixing.md. Deviation: lowered by a few units in the last
/// place if rounding puts a weighted bound above its limit.
#[must_use]
pub fn largest_weight(member: &[f64], partner: &[f64], limits: &[f64]) -> f64 {
    let bounds = || member.iter().zip(partner).zip(limits);
    let weights = bounds()
        .filter(|((bound, _), limit)| !within(**bound, **limit))
        .map(|((bound, partner), limit)| (limit - partner) / (bound - partner));
    let mut weight = weights.fold(1.0, f64::min).max(0.0);
    let mut lowered = f64::EPSILON;
    while weight > 0.0
        && !bounds().all(|((bound, partner), &limit)| {
            within(weight * bound + (1.0 - weight) * partner, limit)
        })
    {
        weight = (weight - lowered).max(0.0);
        lowered *= 2.0;
    }
    weight
}

/// How far the sum of weights may be from 1.
const WEIGHT_TOLERANCE: f64 = 1e-12;

impl Mixture {
    /// Refuses stored parts that do not fit each other, a learner of this shape and this number of limits.
    pub(super) fn check_stored(&self, shape: Shape, limits: &[f64]) -> Result<()> {
        let num_limits = limits.len();
        let members = self.members.iter().all(|member| {
            member.policy.policy().shape() == shape
                && member.cost_bounds.len() == num_limits
                && member.cost_bounds.iter().all(|bound| !bound.is_nan())
                && (0.0..=1.0).contains(&member.weight)
        });
        let total: f64 = self.members.iter().map(|member| member.weight).sum();
        let bounds = self.cost_bounds.iter().zip(limits);
        let fits = members
            && (total - 1.0).abs() <= WEIGHT_TOLERANCE
            && self.chosen < self.members.len()
            && self.limits == limits
            && self.cost_bounds.len() == num_limits
            && bounds.into_iter().all(|(bound, limit)| bound <= limit);
        check("the mixture of a learner", fits)
    }

    /// A mixture, or [`Error::CertificateFailed`] if a weighted cost bound is above its limit. `number` tells one
    /// mixture of a learner from the next.
    pub fn new(number: u64, members: Vec<Member>, limits: Vec<f64>) -> Result<Self> {
        let total: f64 = members.iter().map(|member| member.weight).sum();
        let weights_are_valid = members.iter().all(|member| member.weight >= 0.0)
            && (total - 1.0).abs() <= WEIGHT_TOLERANCE;
        let mut cost_bounds = Vec::with_capacity(limits.len());
        for (constraint, &limit) in limits.iter().enumerate() {
            let bounds = members
                .iter()
                .map(|member| member.weight * member.cost_bounds[constraint]);
            let evaluated: f64 = bounds.sum();
            if !weights_are_valid || !within(evaluated, limit) {
                return Err(Error::CertificateFailed {
                    claimed: limit,
                    evaluated,
                    limit,
                });
            }
            cost_bounds.push(evaluated);
        }
        Ok(Self {
            number,
            members,
            limits,
            cost_bounds,
            chosen: 0,
        })
    }

    /// Which mixture of its learner this is.
    #[must_use]
    #[inline(always)]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The members.
    #[must_use]
    #[inline(always)]
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The limits, one a constraint.
    #[must_use]
    pub fn limits(&self) -> &[f64] {
        &self.limits
    }

    /// Upper bounds on the expected cost of an episode, one a constraint; never above the limits.
    #[must_use]
    pub fn cost_bounds(&self) -> &[f64] {
        &self.cost_bounds
    }

    /// Tosses the coin: the member that the next episode plays.
    #[inline(always)]
    pub fn choose(&mut self, coin: &mut Coin) -> &Member {
        let mut left = coin.toss();
        self.chosen = self.members.len() - 1;
        for (index, member) in self.members.iter().enumerate() {
            if left < member.weight {
                self.chosen = index;
                break;
            }
            left -= member.weight;
        }
        &self.members[self.chosen]
    }

    /// The position of the member chosen last.
    #[must_use]
    pub fn chosen(&self) -> usize {
        self.chosen
    }

    /// The member chosen last.
    #[must_use]
    #[inline(always)]
    pub fn chosen_member(&self) -> &Member {
        &self.members[self.chosen]
    }

    /// The probability that an episode does not play pi0.
    #[must_use]
    pub fn planned_weight(&self) -> f64 {
        let planned = self
            .members
            .iter()
            .filter(|member| !member.source.is_baseline());
        planned.map(|member| member.weight).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_weight_is_that_of_its_formula_and_no_pair_is_refused() {
        let shape = Shape::new(1, 1, 1).unwrap();
        let policy = Arc::new(MemberPolicy::deterministic(shape, &[0]).unwrap());
        let member = |weight, cost_bounds: &[f64; 2]| Member {
            number: 0,
            source: PolicySource::Plausible,
            weight,
            cost_bounds: cost_bounds.to_vec(),
            policy: Arc::clone(&policy),
        };
        let mut state = 1_u64;
        let mut number = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        for _ in 0..10_000 {
            let limits = [3.0 * number(), number()];
            let partner = limits.map(|limit| limit * number());
            let bounds = [6.0 * number(), 6.0 * number()];
            let weight = largest_weight(&bounds, &partner, &limits);
            let exact = (0..2)
                .filter(|&m| bounds[m] > limits[m])
                .map(|m| (limits[m] - partner[m]) / (bounds[m] - partner[m]))
                .fold(1.0, f64::min);
            assert!(weight <= 1.0 && (weight - exact).abs() < 1e-13);
            let members = vec![member(weight, &bounds), member(1.0 - weight, &partner)];
            Mixture::new(0, members, limits.to_vec()).unwrap();
        }
        assert!((largest_weight(&[6.0], &[0.6], &[3.0]) - 2.4 / 5.4).abs() < 1e-15);
    }
}
