//! How far a learner is: the certified cost of what it would play now, its gate, and the episodes until it leaves pi0.

use crate::confidence::constants::tightening_horizon;
use crate::confidence::{Bonus, SafetyMargin, bisect_first};
use crate::error::Result;
use crate::evaluate::{OccupancyMeasure, evaluate, occupancy};
use crate::learn::{AnyLearner, Learner, OptPessLp, PessimisticSet};
use crate::number::from_count;

/// The largest number of episodes that an estimate of the gate's opening searches.
pub(crate) const LAST_SEARCHED: u64 = 1_000_000_000_000_000_000;

/// How far a learner is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// How many episodes it has observed.
    pub episodes_observed: u64,
    /// K; None for a learner without one.
    pub num_episodes: Option<u64>,
    /// Whether the policy that is played, or would be planned now, is pi0 because no other may be.
    pub on_baseline: bool,
    /// The upper bound that the learner's own estimates give for the cost of that policy; None if it computes none. For
    /// pi0 it can be above the limit: pi0 is played for what was told of it. A bound only under a guarantee.
    pub certified_cost: Option<f64>,
    /// tau.
    pub cost_limit: f64,
    /// The gate of Algorithm 1.
    pub gate: Option<Gate>,
    /// C'' of Algorithm 2, within 2^62.
    pub tightening_horizon: Option<u64>,
    /// The weight of the certified policy in a mixture with pi0; None for learners without a coin.
    pub weight: Option<f64>,
    /// How many further episodes it is expected to play pi0, from the estimates so far; 0 once it has left pi0. None if
    /// that cannot be estimated yet, is above 10^18, or if there is nothing to leave. It may be more than K allows.
    pub episodes_left: Option<u64>,
}

/// The gate of Algorithm 1 (Eq. 9): the pessimistic cost of pi0 against (tau + c0)/2.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gate {
    /// V(c underbar, P-hat) of pi0.
    pub cost: f64,
    /// (tau + c0)/2; None while c0 is being estimated.
    pub threshold: Option<f64>,
    /// Whether policies other than pi0 may be played.
    pub open: bool,
}

impl AnyLearner {
    /// How far the learner is. Works on a copy, which plans if a plan comes next: the learner does not change.
    pub fn progress(&self) -> Result<Progress> {
        let terms = *self.terms();
        let mut twin = self.clone();
        let mut found = Progress {
            episodes_observed: self.episodes_observed(),
            num_episodes: self.needs_num_episodes().then_some(terms.num_episodes()),
            on_baseline: false,
            certified_cost: None,
            cost_limit: self.cost_limit(),
            gate: None,
            tightening_horizon: None,
            weight: None,
            episodes_left: None,
        };
        if let Self::OptPessPrimalDual(learner) = self {
            let (shape, delta) = (learner.shape(), terms.failure_probability());
            found.tightening_horizon = learner
                .margin()
                .and_then(|margin| tightening_horizon(shape, &margin, delta));
        }
        let Some((baseline, _)) = self.claimed_baseline() else {
            return Ok(found); // these learners have no pessimistic cost
        };
        if twin.experience().protocol().check_plan().is_ok() {
            twin.next_policy()?;
        }
        found.certified_cost = twin.figures().cost_at_most;
        found.on_baseline = twin.policy().has_entries_of(baseline);
        if let Some(mixture) = twin.mixture() {
            found.weight = Some(mixture.planned_weight());
            found.on_baseline = mixture.planned_weight() <= 0.0;
        }
        if let Self::OptPessLp(learner) = &twin {
            let gate = gate(learner)?;
            (found.gate, found.on_baseline) = (Some(gate), !gate.open);
            found.episodes_left = match learner.margin() {
                Some(margin) if found.episodes_observed > 0 => shut_for(learner, &margin)?,
                _ => None,
            };
        }
        if !found.on_baseline {
            found.episodes_left = Some(0);
        }
        Ok(found)
    }
}

/// The gate of a learner whose signals are up to date.
fn gate(learner: &OptPessLp) -> Result<Gate> {
    let (model, pi0) = (learner.model(), learner.baseline().policy());
    let (kernel, initial) = (model.experience().kernel(), model.experience().initial());
    let cost = evaluate(pi0, model.cost(), kernel, initial)?;
    let set = learner
        .margin()
        .map(|margin| PessimisticSet::assess(cost, &margin));
    Ok(Gate {
        cost,
        threshold: learner.margin().map(|margin| margin.midpoint()),
        open: set == Some(PessimisticSet::CostBounded),
    })
}

/// How many further episodes of pi0 a shut gate is expected to stay shut, on the estimates so far. None under Sharp.
fn shut_for(learner: &OptPessLp, margin: &SafetyMargin) -> Result<Option<u64>> {
    let (model, pi0) = (learner.model(), learner.baseline().policy());
    let (kernel, initial) = (model.experience().kernel(), model.experience().initial());
    let estimates = learner.estimates();
    let Some(bonus) = model.bonus_of_visits() else {
        return Ok(None); // under Sharp it depends on what will be observed
    };
    let opening = GateOpening {
        share: &occupancy(pi0, kernel, initial)?,
        bonus,
        margin,
    };
    let visits = |row: usize| from_count(estimates.visits()[row]);
    Ok(opening.first(1, |row| estimates.mean_cost(row), visits))
}

/// The pessimistic cost of pi0 after further episodes, with expected counts instead of sampled ones.
pub(crate) struct GateOpening<'a> {
    /// How often an episode of pi0 meets each row.
    pub(crate) share: &'a OccupancyMeasure,
    /// b, with the K of the learner.
    pub(crate) bonus: &'a Bonus,
    pub(crate) margin: &'a SafetyMargin,
}

impl GateOpening<'_> {
    /// The least number of further episodes, from `least` on, after which the pessimistic cost of pi0 is expected to be
    /// below (tau + c0)/2, given the cost and the visits so far of each row; None if it is above 10^18.
    pub(crate) fn first(
        &self,
        least: u64,
        cost: impl Fn(usize) -> f64,
        visits: impl Fn(usize) -> f64,
    ) -> Option<u64> {
        let pessimistic_cost = |episodes: u64| -> f64 {
            let rows = self.share.data().iter().enumerate();
            let terms = rows.filter(|&(_, &mass)| mass > 0.0).map(|(row, &mass)| {
                let expected = visits(row) + episodes as f64 * mass;
                mass * (cost(row) + self.bonus.after(expected))
            });
            terms.sum()
        };
        let open = |episodes| pessimistic_cost(episodes) < self.margin.midpoint();
        let first = bisect_first(least..LAST_SEARCHED + 1, open);
        (first <= LAST_SEARCHED).then_some(first)
    }
}
