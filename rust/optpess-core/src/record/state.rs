//! The state of a recorder between two episodes: what a checkpoint keeps of a record that is not finished.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::number::Number;
use crate::record::{CompensatedSum, NotedMixture, Recorder, ReplicateRecord, Spread};

/// The state of one replicate's record. A recorder that was made from it adds further episodes with the same bits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecorderState {
    episodes: u64,
    last_point: u64,
    /// Sum and correction of regret, signed and strong violation.
    sums: [[f64; 2]; 3],
    /// Sum, least and greatest since the last record point: of V(r), and of each V(c_m).
    rewards: [f64; 3],
    costs: Vec<[f64; 3]>, // [M]
    worst_violation: f64,
    violating_episodes: f64,
    baseline_before: u64,
    mixture: Option<NotedMixture>,
    record: ReplicateRecord,
}

impl RecorderState {
    /// How many episodes have been added.
    #[must_use]
    pub fn episodes(&self) -> u64 {
        self.episodes
    }

    /// Refuses a state whose parts do not fit each other, these record points and this number of limits.
    fn check(&self, points: &[u64], num_limits: usize) -> Result<()> {
        let record = &self.record;
        let taken = points.partition_point(|&point| point <= self.episodes);
        let last_point = taken.checked_sub(1).map_or(0, |last| points[last]);
        let (values, costs) = (&record.deployed_value, &record.deployed_cost);
        let curves = [
            &record.reward_regret,
            &record.signed_violation,
            &record.strong_violation,
            &record.multiplier,
            &record.baseline_share,
            &values.mean,
            &values.least,
            &values.greatest,
        ];
        let per_limit = [&costs.mean, &costs.least, &costs.greatest];
        let mixes = self.mixture.is_some();
        let weights = if mixes { taken } else { 0 };
        let plays = record
            .plays
            .iter()
            .try_fold(0_u64, |sum, &n| sum.checked_add(n));
        let sums = [
            &record.reward_regret,
            &record.signed_violation,
            &record.strong_violation,
            &record.multiplier,
        ];
        // The least and the greatest of no episodes are infinite.
        let mut spreads = self.costs.iter().chain([&self.rewards]);
        let fits = [
            self.sums.as_flattened().iter().all(|sum| sum.is_finite()),
            sums.iter()
                .all(|curve| curve.iter().all(|sum| sum.is_finite())),
            spreads.all(|[sum, least, most]| sum.is_finite() && !least.is_nan() && !most.is_nan()),
            !self.worst_violation.is_nan(),
            self.last_point == last_point,
            curves.iter().all(|curve| curve.len() == taken),
            per_limit
                .iter()
                .all(|curve| curve.len() == taken * num_limits),
            record.weight.len() == weights,
            record.certified_cost.len() == weights * num_limits,
            (record.mixtures > 0) == mixes,
            self.mixture
                .as_ref()
                .is_none_or(|mixture| mixture.cost_bounds.len() == num_limits),
            self.costs.len() == num_limits,
            plays == Some(self.episodes),
            self.baseline_before <= record.baseline_episodes,
            record.estimation_episodes <= record.baseline_episodes,
            record.baseline_episodes <= self.episodes,
            (0.0..=self.episodes as f64).contains(&self.violating_episodes),
            (self.violating_episodes > 0.0) == record.first_violation.is_some(),
        ];
        if fits.iter().all(|&fits| fits) {
            return Ok(());
        }
        Err(Error::StoredState {
            what: "the record of a replicate",
        })
    }
}

impl<'a, V: Number> Recorder<'a, V> {
    /// The state of one replicate.
    #[must_use]
    pub fn state(&self, lane: usize) -> RecorderState {
        RecorderState {
            episodes: self.episodes,
            last_point: self.last_point,
            sums: [&self.regret, &self.signed, &self.strong].map(|sum| sum.parts(lane)),
            rewards: self.rewards.parts(lane),
            costs: self.costs.iter().map(|costs| costs.parts(lane)).collect(),
            worst_violation: self.worst_violation.lane(lane),
            violating_episodes: self.violating_episodes.lane(lane),
            baseline_before: self.baseline_before[lane],
            mixture: self.mixture.clone(),
            record: self.records[lane].clone(),
        }
    }

    /// A recorder that goes on from the states of its replicates, of which there is at least one. They must have the
    /// same number of episodes, and fit the record points and the limits.
    pub fn resumed(
        points: &'a [u64],
        optimal_value: f64,
        limits: &[f64],
        states: Vec<RecorderState>,
    ) -> Result<Self> {
        let mut recorder = Self::new(points, optimal_value, limits, states.len());
        let episodes = states.first().map_or(0, RecorderState::episodes);
        for state in &states {
            state.check(points, limits.len())?;
            if state.episodes != episodes {
                return Err(Error::StoredState {
                    what: "the number of episodes of a replicate",
                });
            }
        }
        // Lanes without a replicate repeat the first.
        let of = |lane: usize| states.get(lane).unwrap_or(&states[0]);
        let sums = |which: usize| CompensatedSum::from_parts(|lane| of(lane).sums[which]);
        (recorder.regret, recorder.signed, recorder.strong) = (sums(0), sums(1), sums(2));
        recorder.rewards = Spread::from_parts(|lane| of(lane).rewards);
        for (m, costs) in recorder.costs.iter_mut().enumerate() {
            *costs = Spread::from_parts(|lane| of(lane).costs[m]);
        }
        recorder.worst_violation = V::from_lanes(|lane| of(lane).worst_violation);
        recorder.violating_episodes = V::from_lanes(|lane| of(lane).violating_episodes);
        recorder.episodes = episodes;
        recorder.last_point = states[0].last_point;
        let taken = states[0].record.multiplier.len();
        recorder.next_point = points.get(taken).copied().unwrap_or(u64::MAX);
        recorder.baseline_before = states.iter().map(|state| state.baseline_before).collect();
        recorder.mixture.clone_from(&states[0].mixture);
        recorder.records = states.into_iter().map(|state| state.record).collect();
        let never = recorder
            .records
            .iter()
            .filter(|record| record.first_violation.is_none());
        recorder.never_violating = never.count();
        Ok(recorder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_with_what_is_no_number_is_refused() {
        let points = [1, 2, 4];
        let recorder = Recorder::<f64>::new(&points, 1.0, &[0.5], 1);
        let state = recorder.state(0);
        let resumed = |state: RecorderState| {
            Recorder::<f64>::resumed(&points, 1.0, &[0.5], vec![state]).map(|_| ())
        };
        resumed(state.clone()).unwrap();
        for number in [f64::NAN, f64::INFINITY] {
            for which in 0..3 {
                let mut forged = state.clone();
                forged.sums[which][1] = number;
                assert!(resumed(forged).is_err());
            }
            let mut forged = state.clone();
            forged.rewards[0] = number;
            assert!(resumed(forged).is_err());
        }
    }
}
