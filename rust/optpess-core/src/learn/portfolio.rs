//! The policies that a mixture may contain, what is certified of each, and the best weights over them.
//!
//! A candidate has two upper bounds on each of its costs: the worst case over the confidence sets, and the bound from
//! the episodes it has played itself. The smaller one counts, and none ever increases. Nothing here can break safety:
//! weights that exceed a limit are refused by [`Mixture::new`](crate::learn::Mixture::new).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::confidence::{EpisodeCost, Observations};
use crate::control::check_stopped;
use crate::error::Result;
use crate::learn::largest_weight;
use crate::learn::mix_settings::SETS_SHARE;
use crate::learn::proposals::Proposals;
use crate::learn::{LimitedBaseline, Member, MemberPolicy, MixSettings, PolicySource};
use crate::plan::PLANNING_MARGIN;
use crate::policy::{MarkovPolicy, Played};

/// How many candidates are kept.
const CAPACITY: usize = 24;

/// The shares of the episodes that may be spent on certifying candidates by playing them.
const TRIAL_SHARES: [f64; 6] = [0.02, 0.05, 0.1, 0.2, 0.4, 0.7];

/// A trial is worth its price if it pays within this many times as many episodes as were played so far.
const LOOKAHEAD: f64 = 6.0;

/// The part of the episodes of a trial that its candidate is expected to play, relative to its weight now.
const PLAYED_PART: f64 = 0.7;

/// While the best mixture gains less than this part of what may be possible, there is little to lose by exploring.
const LITTLE_GAIN: f64 = 0.1;

/// How far rounding may put the costs of three candidates above the limits, which are below those of the mixture by
/// more: [`PLANNING_MARGIN`] times the horizon.
const TRIPLE_ROUNDING: f64 = 2e-13;

/// Positions of candidates with weights.
pub(crate) type Weights = Vec<(usize, f64)>;

/// How much of the time is given to the explorer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Exploration {
    /// The share at which the gap that is left counts fully.
    pub share: f64,
    /// The least share.
    pub least_share: f64,
    /// The threshold of the optimistic sets.
    pub threshold: f64,
}

/// By measurement: docs/mixing.md.
impl Default for Exploration {
    fn default() -> Self {
        Self {
            share: 0.2,
            least_share: 0.01,
            threshold: 1.0,
        }
    }
}

impl Exploration {
    /// The explorer's share, from its optimistic value, the value of the best mixture and that of the baseline.
    ///
    /// Formula: share (V_up - v)/V_up, at least the least share; raised towards 1 while v - R_0 is below a tenth of
    /// V_up - R_0. Citation: none; measured (docs/mixing.md). Deviation: none.
    fn share_for(&self, optimistic: f64, value: f64, baseline: f64) -> f64 {
        let gap = (optimistic - value) / optimistic.max(f64::MIN_POSITIVE);
        let share = (self.share * gap).clamp(self.least_share, self.share.max(self.least_share));
        let gained = (value - baseline) / (LITTLE_GAIN * (optimistic - baseline)).max(1e-9);
        share + (1.0 - share) * (1.0 - gained).clamp(0.0, 1.0)
    }
}

/// One policy with its bounds and estimates.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Candidate {
    pub(crate) number: u64,
    pub(crate) source: PolicySource,
    pub(crate) policy: Arc<MemberPolicy>,
    /// The worst case over the confidence sets, or what is known of pi0; one a constraint.
    pub(crate) worst_case: Vec<f64>,
    /// The bounds from own episodes, once the candidate is on trial; one a constraint.
    pub(crate) own: Option<Vec<EpisodeCost>>,
    /// V(r-hat, P-hat) and V(c-hat, P-hat).
    pub(crate) reward: f64,
    pub(crate) costs: Vec<f64>,
    last_used: u64,
}

impl Candidate {
    /// The upper bound on the cost that counts.
    #[inline(always)]
    pub(crate) fn bound(&self, constraint: usize) -> f64 {
        let own = self.own.as_ref().map(|own| own[constraint].upper());
        let worst_case = self.worst_case[constraint];
        own.map_or(worst_case, |own| own.min(worst_case))
    }

    /// How many own episodes its bounds have seen.
    pub(crate) fn own_episodes(&self) -> u64 {
        let own = self.own.as_ref().and_then(|own| own.first());
        own.map_or(0, EpisodeCost::episodes)
    }
}

/// The candidates; the first one is the baseline.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Portfolio {
    pub(crate) candidates: Vec<Candidate>,
    limits: Vec<f64>,
    horizon: usize,
    observations: Observations,
    /// What the bounds from own episodes may fail with, in all.
    own_delta: f64,
    radius_factor: f64,
    next_number: u64,
    trials: u64,
    exploration: Exploration,
    /// The explorer's candidates, with weights, and its optimistic value.
    explorer: Weights,
    optimistic_value: f64,
}

/// The positions and weights of the best mixture, and its value.
#[derive(Debug, Clone, Copy)]
struct BestPair {
    value: f64,
    first: (usize, f64),
    second: Option<(usize, f64)>,
    /// Only with several constraints.
    third: Option<(usize, f64)>,
}

impl BestPair {
    fn weights(&self) -> impl Iterator<Item = (usize, f64)> {
        let others = self.second.into_iter().chain(self.third);
        std::iter::once(self.first).chain(others)
    }
}

impl Portfolio {
    /// The baseline alone. Its bounds are its known costs; if these are not known, its limits, and it is on trial from
    /// the start.
    pub(crate) fn new(baseline: &LimitedBaseline, settings: &MixSettings) -> Result<Self> {
        let horizon = baseline.policy().shape().horizon();
        let margin = PLANNING_MARGIN * horizon as f64; // weights are rounded
        let limits = baseline
            .limits()
            .iter()
            .map(|limit| limit - margin)
            .collect();
        let mut portfolio = Self {
            candidates: Vec::new(),
            limits,
            horizon,
            observations: settings.observations,
            own_delta: (1.0 - SETS_SHARE) * settings.failure_probability,
            radius_factor: settings.radius_factor,
            next_number: 0,
            trials: 0,
            exploration: settings.exploration,
            explorer: Vec::new(),
            optimistic_value: 0.0,
        };
        let policy = MemberPolicy::from(baseline.policy().clone());
        let place = portfolio.propose(Arc::new(policy), PolicySource::Baseline);
        let bounds = baseline.costs().unwrap_or(baseline.limits());
        portfolio.candidates[place].worst_case = bounds.to_vec();
        if baseline.costs().is_none() {
            portfolio.start_trial(place)?;
        }
        Ok(portfolio)
    }

    /// The position of a policy, which is added if it is new.
    fn propose(&mut self, policy: Arc<MemberPolicy>, source: PolicySource) -> usize {
        let same =
            |candidate: &Candidate| candidate.policy.policy().has_entries_of(policy.policy());
        if let Some(place) = self.candidates.iter().position(same) {
            return place;
        }
        let most = self.horizon as f64;
        self.candidates.push(Candidate {
            number: self.next_number,
            source,
            policy,
            worst_case: vec![most; self.limits.len()],
            own: None,
            reward: 0.0,
            costs: vec![0.0; self.limits.len()],
            last_used: 0,
        });
        self.next_number += 1;
        self.candidates.len() - 1
    }

    /// Makes candidates of all that was proposed, and drops those that were used least recently.
    pub(crate) fn add(&mut self, proposals: Proposals) -> Result<()> {
        self.optimistic_value = proposals.optimistic_value;
        let mut explorer = Vec::new();
        for (actions, weight) in proposals.explorer {
            explorer.push((
                self.propose_actions(&actions, PolicySource::Explorer)?,
                weight,
            ));
        }
        let mut others = Vec::new();
        for (list, source) in [
            (proposals.cautious, PolicySource::Cautious),
            (proposals.bold, PolicySource::Bold),
        ] {
            for actions in list {
                others.push((self.propose_actions(&actions, source)?, 0.0));
            }
        }
        self.drop_unused(&mut [&mut explorer, &mut others]);
        self.explorer = explorer;
        Ok(())
    }

    /// [`Portfolio::propose`] for a deterministic policy.
    fn propose_actions(&mut self, actions: &[u32], source: PolicySource) -> Result<usize> {
        let same = |candidate: &Candidate| candidate.policy.actions() == Some(actions);
        if let Some(place) = self.candidates.iter().position(same) {
            return Ok(place);
        }
        let shape = self.candidates[0].policy.policy().shape();
        let policy = MemberPolicy::deterministic(shape, actions)?;
        Ok(self.propose(Arc::new(policy), source))
    }

    /// Begins to count the candidate's own episodes. The j-th trial spends delta/(j (j+1)), in equal parts for the
    /// constraints; the sum over all trials is delta.
    fn start_trial(&mut self, place: usize) -> Result<()> {
        if self.candidates[place].own.is_some() {
            return Ok(());
        }
        self.trials += 1;
        let level = self.next_level(self.trials);
        let (most, horizon, observations) = (self.horizon as f64, self.horizon, self.observations);
        let bound = || EpisodeCost::new(most, horizon, observations, level);
        let own: Result<Vec<_>> = self.limits.iter().map(|_| bound()).collect();
        self.candidates[place].own = Some(own?);
        Ok(())
    }

    fn next_level(&self, trial: u64) -> f64 {
        let trial = trial as f64;
        let level = self.own_delta / (trial * (trial + 1.0)) / self.limits.len() as f64;
        level.powf(self.radius_factor * self.radius_factor)
    }

    /// Adds the total costs of an episode of the policy with this number; returns whether a bound fell.
    #[inline(always)]
    pub(crate) fn record(&mut self, number: u64, totals: &[f64]) -> Result<bool> {
        let mut fell = false;
        let mut candidates = self.candidates.iter_mut();
        if let Some(candidate) = candidates.find(|candidate| candidate.number == number)
            && let Some(own) = &mut candidate.own
        {
            for (own, &total) in own.iter_mut().zip(totals) {
                fell |= own.observe(total)?;
            }
        }
        Ok(fell)
    }

    /// Drops candidates that were used least recently, except the baseline and `kept`, which are moved along.
    fn drop_unused(&mut self, kept: &mut [&mut Weights]) {
        if self.candidates.len() <= CAPACITY {
            return;
        }
        let is_kept = |place: usize| {
            place == 0
                || kept
                    .iter()
                    .any(|list| list.iter().any(|(other, _)| *other == place))
        };
        let mut places: Vec<usize> = (0..self.candidates.len()).collect();
        places.sort_by_key(|&place| {
            let candidate = &self.candidates[place];
            let unused = u64::MAX - candidate.last_used;
            (!is_kept(place), unused, u64::MAX - candidate.own_episodes())
        });
        let needed = places.iter().filter(|&&place| is_kept(place)).count();
        places.truncate(CAPACITY.max(needed));
        places.sort_unstable();
        for list in kept.iter_mut() {
            for (place, _) in list.iter_mut() {
                *place = places.binary_search(place).unwrap_or(0);
            }
        }
        let mut place = 0;
        self.candidates.retain(|_| {
            place += 1;
            places.binary_search(&(place - 1)).is_ok()
        });
    }

    /// The member that a mixture gets for a candidate with a weight. While nothing shows by how much the baseline is
    /// within its limits, its source is its estimation.
    pub(crate) fn member(&self, (place, weight): (usize, f64)) -> Member {
        let candidate = &self.candidates[place];
        let estimating = place == 0 && !self.baseline_has_room();
        Member {
            number: candidate.number,
            source: if estimating {
                PolicySource::BaselineEstimation
            } else {
                candidate.source
            },
            weight,
            cost_bounds: self.bounds_of(place),
            policy: candidate.policy.clone(),
        }
    }

    /// The bounds of a candidate, one a constraint.
    pub(crate) fn bounds_of(&self, place: usize) -> Vec<f64> {
        (0..self.limits.len())
            .map(|m| self.candidates[place].bound(m))
            .collect()
    }

    /// Whether the baseline is certified below every limit, so that it can be the partner of a coin.
    pub(crate) fn baseline_has_room(&self) -> bool {
        let bounds = self.bounds_of(0);
        bounds
            .iter()
            .zip(&self.limits)
            .all(|(bound, limit)| bound < limit)
    }

    /// Renews the estimates of every candidate; `estimate` gives reward and costs of what is played.
    pub(crate) fn estimate(
        &mut self,
        mut estimate: impl FnMut(Played<'_>) -> (f64, Vec<f64>),
    ) -> Result<()> {
        for candidate in &mut self.candidates {
            check_stopped()?;
            (candidate.reward, candidate.costs) = estimate(candidate.policy.played());
        }
        Ok(())
    }

    /// Renews the worst case of the baseline, of the explorer and of the candidates that may enter the mixture;
    /// `worst_case` gives the bounds of what is played. A bound that would rise stays: the sets of earlier times hold too.
    pub(crate) fn certify(
        &mut self,
        mut worst_case: impl FnMut(Played<'_>) -> Vec<f64>,
    ) -> Result<()> {
        for place in 0..self.candidates.len() {
            let explores = self.explorer.iter().any(|(other, _)| *other == place);
            if place > 0 && !explores && !self.can_enter(place) {
                continue;
            }
            check_stopped()?;
            let candidate = &mut self.candidates[place];
            let found = worst_case(candidate.policy.played());
            for (bound, found) in candidate.worst_case.iter_mut().zip(found) {
                *bound = bound.min(found);
            }
        }
        Ok(())
    }

    /// The bounds from own episodes of a policy that is on trial, with the number of episodes.
    pub(crate) fn own_bounds(&self, policy: &MarkovPolicy) -> Option<Vec<(f64, u64)>> {
        let mut candidates = self.candidates.iter();
        let candidate = candidates.find(|candidate| candidate.policy.policy() == policy)?;
        let own = candidate.own.as_ref()?;
        Some(
            own.iter()
                .map(|own| (own.upper(), own.episodes()))
                .collect(),
        )
    }

    /// All bounds, `[candidates, M]`.
    fn bounds(&self) -> Vec<f64> {
        let constraints = 0..self.limits.len();
        let candidates = self.candidates.iter();
        candidates
            .flat_map(|candidate| constraints.clone().map(|m| candidate.bound(m)))
            .collect()
    }

    /// The best mixture of two candidates within the limits, when their costs are `bounds`.
    ///
    /// Formula: with one constraint the optimum of max sum w_i R_i subject to sum w_i U_i <= tau mixes at most two
    /// candidates. A pair (i, j) with U(j) within the limits has the weight w_i = min over m with U_m(i) > tau_m of
    /// (tau_m - U_m(j))/(U_m(i) - U_m(j)). Citation: docs/mixing.md. Deviation: with several constraints the optimum may
    /// mix more than two; mixtures of three are tried.
    fn best_pair(&self, bounds: &[f64], limits: &[f64]) -> BestPair {
        let count = limits.len();
        let of = |place: usize| &bounds[place * count..][..count];
        let within = |place: usize| {
            of(place)
                .iter()
                .zip(limits)
                .all(|(bound, limit)| bound <= limit)
        };
        let mut best = BestPair {
            value: self.candidates[0].reward,
            first: (0, 1.0),
            second: None,
            third: None,
        };
        let inside: Vec<usize> = (0..self.candidates.len()).filter(|&i| within(i)).collect();
        for &i in &inside {
            if self.candidates[i].reward > best.value {
                best.value = self.candidates[i].reward;
                best.first = (i, 1.0);
            }
        }
        for i in (0..self.candidates.len()).filter(|&i| !within(i)) {
            let reward = self.candidates[i].reward;
            for &j in &inside {
                let other = self.candidates[j].reward;
                if reward <= other {
                    continue;
                }
                let mut weight = 1.0_f64;
                for ((&high, &low), &limit) in of(i).iter().zip(of(j)).zip(limits) {
                    if high > limit {
                        weight = weight.min((limit - low) / (high - low));
                    }
                }
                let value = weight * reward + (1.0 - weight) * other;
                if value > best.value && weight > 0.0 {
                    best.value = value;
                    best.first = (i, weight);
                    best.second = Some((j, 1.0 - weight));
                }
            }
        }
        if count > 1 {
            self.try_triples(bounds, limits, &mut best);
        }
        best
    }

    /// Replaces the best mixture by a better one of three candidates that uses two limits fully.
    ///
    /// Formula: w_i, w_j, w_k with sum 1 and the costs of two constraints at their limits, by Cramer's rule; kept if no
    /// weight is negative and no other limit is exceeded.
    fn try_triples(&self, bounds: &[f64], limits: &[f64], best: &mut BestPair) {
        let (count, total) = (limits.len(), self.candidates.len());
        let of = |place: usize| &bounds[place * count..][..count];
        for i in 0..total {
            for j in i + 1..total {
                for k in j + 1..total {
                    let rewards = [i, j, k].map(|place| self.candidates[place].reward);
                    if rewards.iter().all(|reward| *reward <= best.value) {
                        continue;
                    }
                    for a in 0..count {
                        for b in a + 1..count {
                            // Differences to k, so that the weights of i and j solve two equations.
                            let column =
                                |place: usize| [of(place)[a] - of(k)[a], of(place)[b] - of(k)[b]];
                            let (first, second) = (column(i), column(j));
                            let right = [limits[a] - of(k)[a], limits[b] - of(k)[b]];
                            let determinant = first[0] * second[1] - first[1] * second[0];
                            let weights = [
                                (right[0] * second[1] - right[1] * second[0]) / determinant,
                                (first[0] * right[1] - first[1] * right[0]) / determinant,
                            ];
                            let weights = [weights[0], weights[1], 1.0 - weights[0] - weights[1]];
                            if !weights.iter().all(|weight| *weight >= 0.0) {
                                continue; // not a number for parallel columns, too
                            }
                            let mixed = |m: usize| -> f64 {
                                let costs = [of(i)[m], of(j)[m], of(k)[m]];
                                weights
                                    .iter()
                                    .zip(costs)
                                    .map(|(weight, cost)| weight * cost)
                                    .sum()
                            };
                            let value = weights.iter().zip(rewards).map(|(w, r)| w * r).sum();
                            if value > best.value + 1e-9
                                && (0..count).all(|m| mixed(m) <= limits[m] + TRIPLE_ROUNDING)
                            {
                                *best = BestPair {
                                    value,
                                    first: (i, weights[0]),
                                    second: Some((j, weights[1])),
                                    third: Some((k, weights[2])),
                                };
                            }
                        }
                    }
                }
            }
        }
    }

    /// Whether a candidate would belong to the best mixture if its costs were those estimated: only then can a lower
    /// worst case change the mixture.
    fn can_enter(&self, place: usize) -> bool {
        let mut bounds = self.bounds();
        let now = self.best_pair(&bounds, &self.limits).value;
        let count = self.limits.len();
        for (m, bound) in bounds[place * count..][..count].iter_mut().enumerate() {
            *bound = bound.min(self.candidates[place].costs[m]);
        }
        self.best_pair(&bounds, &self.limits).value > now
    }

    /// The largest weight that a mixture with these costs can have beside the baseline.
    fn weight_beside_baseline(&self, costs: &[f64], bounds: &[f64]) -> f64 {
        largest_weight(costs, &bounds[..self.limits.len()], &self.limits)
    }

    /// The costs of a mixture, given those of its members.
    fn costs_of(&self, weights: impl Iterator<Item = (usize, f64)>, bounds: &[f64]) -> Vec<f64> {
        let count = self.limits.len();
        let mut costs = vec![0.0; count];
        for (place, weight) in weights {
            for (cost, bound) in costs.iter_mut().zip(&bounds[place * count..]) {
                *cost += weight * bound;
            }
        }
        costs
    }

    /// The members of the next mixture: the explorer with its share, a trial with its share, and the best mixture within
    /// what these leave of the limits. While nothing shows by how much the baseline is within its limits, the baseline
    /// alone.
    ///
    /// The explorer gets its share times the weight it could have beside the baseline alone, so the rest always has room
    /// for the baseline; with one constraint and without a trial, the whole is at least as good by the estimates as a coin
    /// between that pair and the best mixture (docs/mixing.md, Lemma 8).
    pub(crate) fn weigh(&mut self, episodes: u64) -> Result<Vec<Member>> {
        if !self.baseline_has_room() {
            return Ok(vec![self.member((0, 1.0))]);
        }
        let bounds = self.bounds();
        let best = self.best_pair(&bounds, &self.limits);
        let baseline = self.candidates[0].reward;
        let share = self
            .exploration
            .share_for(self.optimistic_value, best.value, baseline);
        let costs = self.costs_of(self.explorer.iter().copied(), &bounds);
        let part = share * self.weight_beside_baseline(&costs, &bounds);
        let explorer = self.explorer.iter();
        let mut weights: Weights = explorer.map(|&(i, w)| (i, part * w)).collect();
        let (trial_part, trial) = self.trial(best, 1.0 - share, episodes, &bounds);
        for (place, weight) in trial {
            if place > 0 {
                self.start_trial(place)?;
            }
            weights.push((place, trial_part * weight));
        }
        let rest = self.rest(&weights, &bounds);
        let left = 1.0 - weights.iter().map(|(_, weight)| weight).sum::<f64>();
        for (place, weight) in rest.weights() {
            weights.push((place, left * weight));
        }
        for &(place, _) in &weights {
            self.candidates[place].last_used = episodes;
        }
        let members = merge(weights).into_iter();
        Ok(members.map(|weight| self.member(weight)).collect())
    }

    /// The best mixture within what some weights leave of the limits.
    fn rest(&self, weights: &[(usize, f64)], bounds: &[f64]) -> BestPair {
        let used: f64 = weights.iter().map(|(_, weight)| weight).sum();
        let spent = self.costs_of(weights.iter().copied(), bounds);
        let limits = self.limits.iter().zip(&spent).zip(bounds);
        let left = (1.0 - used).max(f64::MIN_POSITIVE);
        let limits: Vec<f64> = limits
            .map(|((limit, spent), safe)| ((limit - spent) / left).max(*safe))
            .collect();
        self.best_pair(bounds, &limits)
    }

    /// The share and the mixture of a trial that is worth its price: over a period of trial and one of its fruits it
    /// earns more than the best mixture of today does. Nothing rests on this guess but what is played.
    fn trial(&self, best: BestPair, most: f64, episodes: u64, bounds: &[f64]) -> (f64, Weights) {
        let count = self.limits.len();
        let period = LOOKAHEAD * (episodes as f64).max(64.0);
        let mut found = (best.value, 0.0, Vec::new());
        for share in TRIAL_SHARES.map(|share| share * most) {
            let mut projected = bounds.to_vec();
            for (place, candidate) in self.candidates.iter().enumerate().skip(1) {
                let own = &bounds[place * count..][..count];
                let weight = self.weight_beside_baseline(own, bounds);
                let more = PLAYED_PART * share * period * weight;
                if candidate.own_episodes() as f64 + more < 1.0 {
                    continue;
                }
                for m in 0..count {
                    let guess = self.projected(candidate, m, more);
                    let bound = &mut projected[place * count + m];
                    *bound = bound.min(guess);
                }
            }
            let later = self.best_pair(&projected, &self.limits);
            let costs = self.costs_of(later.weights(), bounds);
            let part = share * self.weight_beside_baseline(&costs, bounds);
            let weights: Weights = later.weights().map(|(i, w)| (i, part * w)).collect();
            let reward = |(place, weight): &(usize, f64)| weight * self.candidates[*place].reward;
            let during = weights.iter().map(reward).sum::<f64>()
                + (1.0 - part) * self.rest(&weights, bounds).value;
            let value = 0.5 * (during + later.value);
            if value > found.0 + 1e-9 {
                found = (value, part, later.weights().collect());
            }
        }
        (found.1, found.2)
    }

    /// A guess of a candidate's bound after this many more own episodes.
    fn projected(&self, candidate: &Candidate, m: usize, more: f64) -> f64 {
        if let Some(own) = &candidate.own {
            return own[m].projected(candidate.costs[m], more);
        }
        let level = self.next_level(self.trials + 1);
        let fresh = EpisodeCost::new(self.horizon as f64, self.horizon, self.observations, level);
        fresh.map_or(f64::INFINITY, |own| own.projected(candidate.costs[m], more))
    }
}

/// Adds the weights of equal positions; drops those without weight.
fn merge(mut weights: Weights) -> Weights {
    weights.sort_by_key(|&(place, _)| place);
    weights.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 += next.1;
        }
        same
    });
    weights.retain(|&(_, weight)| weight > 0.0);
    weights
}

#[cfg(test)]
mod tests {
    use rand::rngs::ChaCha8Rng;
    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::confidence::SafetyMargin;
    use crate::knowledge::Knowledge;
    use crate::learn::Mixture;
    use crate::shape::Shape;

    const HORIZON: usize = 4;
    const DELTA: f64 = 0.02;

    /// A portfolio of candidates with any bounds and rewards, and its limits.
    fn random(generator: &mut ChaCha8Rng, num_costs: usize, count: usize) -> (Portfolio, Vec<f64>) {
        let mut number = |scale: f64| scale * generator.random::<f64>();
        let policy = MarkovPolicy::uniform(Shape::new(HORIZON, 1, 2).unwrap()).unwrap();
        let margins: Vec<SafetyMargin> = (0..num_costs)
            .map(|_| {
                let safe = number(2.0);
                SafetyMargin::new(safe + 1e-3 + number(1.9), safe).unwrap()
            })
            .collect();
        let limits = margins.iter().map(SafetyMargin::cost_limit).collect();
        let baseline = LimitedBaseline::new(policy, &margins).unwrap();
        let settings = MixSettings {
            radius_factor: 1.0,
            failure_probability: DELTA,
            knowledge: Knowledge::default(),
            observations: Observations::Bounded,
            exploration: Exploration::default(),
            replan_growth: 0.1,
            seed: 0,
        };
        let mut portfolio = Portfolio::new(&baseline, &settings).unwrap();
        for place in 1..=count {
            let mut candidate = portfolio.candidates[0].clone();
            candidate.number = place as u64;
            candidate.source = PolicySource::Bold;
            candidate.reward = number(4.0);
            for (bound, cost) in candidate.worst_case.iter_mut().zip(&mut candidate.costs) {
                // Some bounds are the trivial one, some are ties.
                *bound = (number(5.0).min(4.0) * 8.0).round() / 8.0;
                *cost = *bound * number(1.0);
            }
            portfolio.candidates.push(candidate);
        }
        portfolio.candidates[0].reward = number(2.0);
        portfolio.optimistic_value = 2.0 + number(2.0);
        let (first, share) = (number(count as f64 + 0.999) as usize, number(1.0));
        portfolio.explorer = vec![(first, share), (count, 1.0 - share)];
        (portfolio, limits)
    }

    fn value(portfolio: &Portfolio, weights: impl Iterator<Item = (usize, f64)>) -> f64 {
        weights
            .map(|(place, weight)| weight * portfolio.candidates[place].reward)
            .sum()
    }

    /// min over l >= 0 of l tau + max_i (R_i - l U_i): the optimum of the linear program by duality. The minimum is where
    /// two candidates tie, or at 0.
    fn dual_optimum(portfolio: &Portfolio, bounds: &[f64], limit: f64) -> f64 {
        let points: Vec<(f64, f64)> = portfolio
            .candidates
            .iter()
            .zip(bounds)
            .map(|(candidate, &bound)| (bound, candidate.reward))
            .collect();
        let height = |l: f64| {
            let heights = points.iter().map(|(cost, reward)| reward - l * cost);
            l * limit + heights.fold(f64::NEG_INFINITY, f64::max)
        };
        let mut least = height(0.0);
        for (cost, reward) in &points {
            for (other_cost, other_reward) in &points {
                let l = (reward - other_reward) / (cost - other_cost);
                if l.is_finite() && l > 0.0 {
                    least = least.min(height(l));
                }
            }
        }
        least
    }

    /// docs/mixing.md, Lemma 7.
    #[test]
    fn the_best_pair_is_the_optimum_of_the_linear_program() {
        let mut generator = ChaCha8Rng::seed_from_u64(1);
        let mut pairs = 0;
        for case in 0..3000 {
            let (portfolio, _) = random(&mut generator, 1, 1 + case % 9);
            let bounds = portfolio.bounds();
            let best = portfolio.best_pair(&bounds, &portfolio.limits);
            let expected = dual_optimum(&portfolio, &bounds, portfolio.limits[0]);
            assert!(
                (best.value - expected).abs() < 1e-9,
                "{case}: {best:?} {expected}"
            );
            assert!((value(&portfolio, best.weights()) - best.value).abs() < 1e-12);
            let cost = portfolio.costs_of(best.weights(), &bounds)[0];
            assert!(cost <= portfolio.limits[0] + 1e-14, "{case}");
            pairs += usize::from(best.second.is_some());
        }
        assert!(pairs > 500, "{pairs}");
    }

    /// docs/mixing.md, Lemma 7, several constraints: within the limits, and no pair on a grid is better.
    #[test]
    fn with_several_constraints_no_pair_is_better() {
        let mut generator = ChaCha8Rng::seed_from_u64(2);
        for case in 0..300 {
            let count = 1 + case % 5;
            let (portfolio, _) = random(&mut generator, 2 + case % 2, count);
            let bounds = portfolio.bounds();
            let best = portfolio.best_pair(&bounds, &portfolio.limits);
            let within = |weights: &[(usize, f64)], room: f64| {
                let costs = portfolio.costs_of(weights.iter().copied(), &bounds);
                let mut each = costs.iter().zip(&portfolio.limits);
                each.all(|(cost, limit)| *cost <= limit + room)
            };
            assert!(within(&best.weights().collect::<Vec<_>>(), 1e-14), "{case}");
            for i in 0..=count {
                // One of the two has to be within the limits.
                for j in (0..=count).filter(|&j| within(&[(j, 1.0)], 0.0)) {
                    for step in 0..=100 {
                        let weight = f64::from(step) / 100.0;
                        let pair = [(i, weight), (j, 1.0 - weight)];
                        if within(&pair, 0.0) {
                            let found = value(&portfolio, pair.into_iter());
                            assert!(found <= best.value + 1e-12, "{case}: {pair:?}");
                        }
                    }
                }
            }
        }
    }

    /// docs/mixing.md, Lemma 2: whatever the candidates are, the weights keep every limit, and the explorer gets its part.
    #[test]
    fn the_weights_of_any_portfolio_keep_every_limit() {
        let mut generator = ChaCha8Rng::seed_from_u64(3);
        let mut trials = 0;
        for case in 0..1500 {
            let (mut portfolio, limits) = random(&mut generator, 1 + case % 3, 1 + case % 9);
            for episodes in [0, 10, 1000, 100_000] {
                let bounds = portfolio.bounds();
                let best = portfolio.best_pair(&bounds, &portfolio.limits).value;
                let baseline = portfolio.candidates[0].reward;
                let exploration = portfolio.exploration;
                let share = exploration.share_for(portfolio.optimistic_value, best, baseline);
                let costs = portfolio.costs_of(portfolio.explorer.iter().copied(), &bounds);
                let part = share * portfolio.weight_beside_baseline(&costs, &bounds);
                assert!(share >= exploration.least_share && share <= 1.0);
                let members = portfolio.weigh(episodes).unwrap();
                for &(place, weight) in &portfolio.explorer {
                    let number = portfolio.candidates[place].number;
                    let found = members.iter().find(|member| member.number == number);
                    let found = found.map_or(0.0, |member| member.weight);
                    assert!(found >= part * weight - 1e-12, "{case}: {found}");
                }
                Mixture::new(1, members, limits.clone()).unwrap();
            }
            trials += portfolio.trials;
        }
        assert!(trials > 100, "{trials}");
    }

    /// docs/mixing.md, Lemma 8.
    #[test]
    fn the_rest_makes_up_for_the_explorer() {
        let mut generator = ChaCha8Rng::seed_from_u64(4);
        let mut better = 0;
        for case in 0..3000 {
            let (portfolio, _) = random(&mut generator, 1, 1 + case % 9);
            let bounds = portfolio.bounds();
            let share: f64 = generator.random();
            let explorer = || portfolio.explorer.iter().copied();
            let costs = portfolio.costs_of(explorer(), &bounds);
            let weight = portfolio.weight_beside_baseline(&costs, &bounds);
            let part = share * weight;
            let used: Weights = explorer().map(|(i, w)| (i, part * w)).collect();
            let whole = value(&portfolio, used.iter().copied())
                + (1.0 - part) * portfolio.rest(&used, &bounds).value;
            let beside = weight * value(&portfolio, explorer())
                + (1.0 - weight) * portfolio.candidates[0].reward;
            let best = portfolio.best_pair(&bounds, &portfolio.limits).value;
            let coin = share * beside + (1.0 - share) * best;
            assert!(whole >= coin - 1e-9, "{case}: {whole} {coin}");
            better += usize::from(whole > coin + 1e-3);
        }
        assert!(better > 100, "{better}");
    }

    /// docs/mixing.md, Lemma 4: the levels of any number of trials add up to no more than their part of delta, a
    /// second start spends nothing, and only episodes after the start count.
    #[test]
    fn trials_spend_their_part_of_delta_and_count_later_episodes() {
        for num_costs in 1..=3 {
            let mut generator = ChaCha8Rng::seed_from_u64(5);
            let (mut portfolio, _) = random(&mut generator, num_costs, 40);
            let mut spent = 0.0;
            for place in 1..=40 {
                let totals = vec![1.0; num_costs];
                assert!(!portfolio.record(place as u64, &totals).unwrap());
                portfolio.start_trial(place).unwrap();
                portfolio.record(place as u64, &totals).unwrap();
                portfolio.start_trial(place).unwrap();
                assert_eq!(portfolio.trials, place as u64);
                assert_eq!(portfolio.candidates[place].own_episodes(), 1);
                let own = portfolio.candidates[place].own.as_ref().unwrap();
                assert_eq!(own.len(), num_costs);
                let levels: f64 = own.iter().map(EpisodeCost::level).sum();
                let j = place as f64;
                let expected = (1.0 - SETS_SHARE) * DELTA / (j * (j + 1.0));
                assert!((levels - expected).abs() < 1e-15);
                spent += levels;
            }
            let part = (1.0 - SETS_SHARE) * DELTA;
            assert!(spent <= part && spent > 0.97 * part, "{spent}");
        }
    }
}
