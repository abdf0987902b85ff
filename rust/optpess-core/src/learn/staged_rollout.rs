//! A staged rollout: a candidate replaces a baseline in a share of the episodes that its own episodes justify.

use serde::{Deserialize, Serialize};

use crate::confidence::{PlayedCost, check_failure_probability};
use crate::error::{ArrayIndex, Error, Interval, Result};
use crate::learn::largest_weight;
use crate::learn::stored::{from_bytes, to_bytes};
use crate::random::Coin;

/// One constraint of a rollout.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Constraint {
    /// tau.
    pub limit: f64,
    /// c0, a cost that the baseline is known not to exceed in expectation; below the limit.
    pub baseline_cost: f64,
    /// The largest possible cost of an episode.
    pub largest: f64,
}

impl Constraint {
    fn check(&self, m: usize) -> Result<()> {
        let allowed = |array, found: f64, allowed: Interval| {
            if allowed.contains(found) {
                return Ok(());
            }
            let place = ArrayIndex::new(array, &[m]);
            Err(Error::OutOfRange {
                place,
                found,
                allowed,
            })
        };
        let positive = Interval::open_closed(0.0, f64::MAX);
        allowed("cost_limit", self.limit, positive)?;
        let nonnegative = Interval::closed(0.0, f64::MAX);
        allowed("baseline_cost", self.baseline_cost, nonnegative)?;
        allowed("max_episode_cost", self.largest, positive)?;
        if self.baseline_cost < self.limit {
            return Ok(());
        }
        Err(Error::NoSafetyMargin {
            safe_cost: self.baseline_cost,
            limit: self.limit,
        })
    }

    /// The largest weight of a candidate that costs at most `upper`, when the baseline has the rest.
    #[must_use]
    pub fn weight(&self, upper: f64) -> f64 {
        largest_weight(&[upper], &[self.baseline_cost], &[self.limit])
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Stage {
    Toss,
    RecordCandidate,
    /// The baseline's cost may be recorded, or the coin tossed again.
    RecordBaseline,
}

/// Decides for each episode whether a candidate or the baseline plays it.
///
/// Promise: with probability at least 1 - delta, in every episode the expected cost given the past, over the coin
/// too, is at most tau for every constraint, if the baseline's expected cost is at most c0, no episode costs more than
/// the largest cost, and the candidate's expected cost given the past stays the same. Proof: candidate j = 1, 2, ...
/// and constraint m have a [`PlayedCost`] at level delta/(j (j + 1) M), and these add up to at most delta; while all
/// hold, [`Constraint::weight`] keeps the mixture within every limit.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "StoredRollout")]
pub struct StagedRollout {
    constraints: Vec<Constraint>,
    failure_probability: f64,
    candidate_number: u64,
    candidate: Vec<PlayedCost>,
    baseline: Vec<PlayedCost>,
    coin: Coin,
    stage: Stage,
}

/// A [`StagedRollout`] as it was stored.
#[derive(Deserialize)]
struct StoredRollout {
    constraints: Vec<Constraint>,
    failure_probability: f64,
    candidate_number: u64,
    candidate: Vec<PlayedCost>,
    baseline: Vec<PlayedCost>,
    coin: Coin,
    stage: Stage,
}

/// A stored rollout is checked as a given one is: what it has seen must fit its constraints and levels.
impl TryFrom<StoredRollout> for StagedRollout {
    type Error = Error;

    fn try_from(stored: StoredRollout) -> Result<Self> {
        let damaged = |what| Error::StoredState { what };
        let mut rollout = Self::new(stored.constraints, stored.failure_probability, 0)?;
        let recorded = |played: &[PlayedCost]| {
            let first = played.first().map_or(0, PlayedCost::episodes);
            let alike = played.iter().all(|played| played.episodes() == first);
            alike.then_some(first)
        };
        let fits = |found: &[PlayedCost], fresh: &[PlayedCost]| {
            let mut pairs = found.iter().zip(fresh);
            found.len() == fresh.len() && pairs.all(|(found, fresh)| found.continues(fresh))
        };
        if !fits(&stored.baseline, &rollout.baseline) {
            return Err(damaged("what a rollout knows of its baseline"));
        }
        if !(1..u64::MAX).contains(&stored.candidate_number) {
            return Err(damaged("the number of a rollout's candidate"));
        }
        rollout.candidate = rollout.fresh_candidate(stored.candidate_number);
        if !fits(&stored.candidate, &rollout.candidate) {
            return Err(damaged("what a rollout knows of its candidate"));
        }
        let episodes = recorded(&stored.candidate).zip(recorded(&stored.baseline));
        let decided = episodes.and_then(|(candidate, baseline)| candidate.checked_add(baseline));
        if decided.is_none_or(|decided| decided > stored.coin.tosses()) {
            return Err(damaged("the number of a rollout's episodes"));
        }
        Ok(Self {
            candidate_number: stored.candidate_number,
            candidate: stored.candidate,
            baseline: stored.baseline,
            coin: stored.coin,
            stage: stored.stage,
            ..rollout
        })
    }
}

impl StagedRollout {
    /// With the first candidate. Refuses an empty list, numbers out of range, and a baseline that is not below the
    /// limit.
    pub fn new(constraints: Vec<Constraint>, failure_probability: f64, seed: u64) -> Result<Self> {
        if constraints.is_empty() {
            return Err(Error::NothingGiven { what: "cost_limit" });
        }
        for (m, constraint) in constraints.iter().enumerate() {
            constraint.check(m)?;
        }
        check_failure_probability(failure_probability)?;
        let level = failure_probability / constraints.len() as f64;
        let mut rollout = Self {
            baseline: played(&constraints, level),
            candidate: vec![],
            candidate_number: 0,
            constraints,
            failure_probability,
            coin: Coin::new(seed, 0),
            stage: Stage::Toss,
        };
        rollout.replace_candidate()?;
        Ok(rollout)
    }

    /// Tosses the coin: true if the candidate plays the next episode. Refused while a candidate's episode has not been
    /// recorded: leaving episodes out would void the bound.
    pub fn use_candidate(&mut self) -> Result<bool> {
        if self.stage == Stage::RecordCandidate {
            return Err(Error::OutOfTurn {
                called: "use_candidate",
                expected: "record",
            });
        }
        let chosen = self.coin.toss_for(self.weight());
        self.stage = if chosen {
            Stage::RecordCandidate
        } else {
            Stage::RecordBaseline
        };
        Ok(chosen)
    }

    /// Takes in the total costs of the episode just played, one a constraint. If one is refused, nothing changes.
    pub fn record(&mut self, costs: &[f64]) -> Result<()> {
        let played = match self.stage {
            Stage::Toss => {
                return Err(Error::OutOfTurn {
                    called: "record",
                    expected: "use_candidate",
                });
            }
            Stage::RecordCandidate => &mut self.candidate,
            Stage::RecordBaseline => &mut self.baseline,
        };
        if costs.len() != played.len() {
            return Err(Error::ShapeMismatch {
                array: "cost",
                axes: "[M]",
                expected: vec![played.len()],
                found: vec![costs.len()],
            });
        }
        for (m, (played, &cost)) in played.iter().zip(costs).enumerate() {
            played.check(m, cost)?;
        }
        for (played, &cost) in played.iter_mut().zip(costs) {
            played.observe(cost)?;
            match self.stage {
                Stage::RecordCandidate => played.renew_upper(),
                _ => played.renew_lower(),
            }
        }
        self.stage = Stage::Toss;
        Ok(())
    }

    /// Starts the next candidate, with nothing known about it. Refused while an episode has not been recorded.
    pub fn replace_candidate(&mut self) -> Result<()> {
        if self.stage == Stage::RecordCandidate {
            return Err(Error::OutOfTurn {
                called: "replace_candidate",
                expected: "record",
            });
        }
        self.candidate_number += 1;
        self.candidate = self.fresh_candidate(self.candidate_number);
        Ok(())
    }

    /// Nothing known about a candidate, at the levels that its number has.
    fn fresh_candidate(&self, number: u64) -> Vec<PlayedCost> {
        let level = share_of(self.failure_probability, number, self.constraints.len());
        played(&self.constraints, level)
    }

    /// The rollout as bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        to_bytes("a rollout", self)
    }

    /// The rollout of [`StagedRollout::to_bytes`]. Refuses bytes that are damaged or whose parts do not fit each other.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        from_bytes("a rollout", bytes)
    }

    /// The probability with which the candidate plays the next episode.
    #[must_use]
    pub fn weight(&self) -> f64 {
        let each = self.constraints.iter().zip(&self.candidate);
        each.map(|(constraint, played)| constraint.weight(played.upper()))
            .fold(1.0, f64::min)
    }

    /// j = 1, 2, ...
    #[must_use]
    pub fn candidate_number(&self) -> u64 {
        self.candidate_number
    }

    /// What the candidate's episodes say, one for each constraint.
    #[must_use]
    pub fn candidate(&self) -> &[PlayedCost] {
        &self.candidate
    }

    /// What the recorded episodes of the baseline say, one for each constraint. Not used for the weight.
    #[must_use]
    pub fn baseline(&self) -> &[PlayedCost] {
        &self.baseline
    }

    /// The constraints.
    #[must_use]
    pub fn constraints(&self) -> &[Constraint] {
        &self.constraints
    }

    /// How many episodes were decided.
    #[must_use]
    pub fn episodes(&self) -> u64 {
        self.coin.tosses()
    }

    /// delta.
    #[must_use]
    pub fn failure_probability(&self) -> f64 {
        self.failure_probability
    }

    /// The first constraint for which the baseline is above its claimed cost, with probability at least 1 - delta.
    #[must_use]
    pub fn contradicted_baseline(&self) -> Option<usize> {
        let mut each = self.constraints.iter().zip(&self.baseline);
        each.position(|(constraint, played)| played.lower() > constraint.baseline_cost)
    }
}

/// The level of candidate j = 1, 2, ... for one of M constraints.
///
/// Formula: delta/(j (j + 1) M), which adds up to delta over all candidates and constraints. Deviation: none.
fn share_of(failure_probability: f64, candidate: u64, num_constraints: usize) -> f64 {
    let j = candidate as f64;
    failure_probability / (j * (j + 1.0) * num_constraints as f64)
}

fn played(constraints: &[Constraint], level: f64) -> Vec<PlayedCost> {
    let each = constraints.iter();
    each.map(|constraint| PlayedCost::new(constraint.largest, level))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONSTRAINT: Constraint = Constraint {
        limit: 1.0,
        baseline_cost: 0.5,
        largest: 4.0,
    };

    fn rollout(constraints: &[Constraint]) -> StagedRollout {
        StagedRollout::new(constraints.to_vec(), 0.1, 7).unwrap()
    }

    #[test]
    fn the_weight_grows_to_one_for_a_cheap_candidate_and_stays_small_for_a_costly_one() {
        for (cost, grows) in [(0.6, true), (3.0, false)] {
            let mut rollout = rollout(&[CONSTRAINT]);
            assert!((rollout.weight() - 0.5 / 3.5).abs() < 1e-12);
            let mut before = rollout.weight();
            for episode in 0..2000_u32 {
                let noise = if episode % 2 == 0 { 0.1 } else { -0.1 };
                let chosen = rollout.use_candidate().unwrap();
                let cost = if chosen { cost } else { 0.4 };
                rollout.record(&[cost + noise]).unwrap();
                let (weight, upper) = (rollout.weight(), rollout.candidate()[0].upper());
                assert!(weight >= before);
                assert!(weight * upper + (1.0 - weight) * 0.5 <= 1.0 || upper <= 1.0);
                before = weight;
            }
            assert_eq!(rollout.weight() >= 1.0, grows);
            assert_eq!(rollout.contradicted_baseline(), None);
            assert_eq!(rollout.episodes(), 2000);
        }
    }

    #[test]
    fn shares_of_the_failure_probability_add_up_and_start_with_every_candidate() {
        let mut rollout = rollout(&[CONSTRAINT, CONSTRAINT]);
        let mut spent = 0.0;
        for number in 1..=1000 {
            assert_eq!(rollout.candidate_number(), number);
            spent += rollout
                .candidate()
                .iter()
                .map(PlayedCost::level)
                .sum::<f64>();
            rollout.replace_candidate().unwrap();
        }
        assert!(spent < 0.1 && spent > 0.0998, "{spent}");
    }

    #[test]
    fn episodes_of_a_candidate_cannot_be_left_out() {
        let mut rollout = rollout(&[CONSTRAINT]);
        assert!(matches!(
            rollout.record(&[0.1]),
            Err(Error::OutOfTurn { .. })
        ));
        while !rollout.use_candidate().unwrap() {}
        assert!(matches!(
            rollout.use_candidate(),
            Err(Error::OutOfTurn { .. })
        ));
        assert!(matches!(
            rollout.replace_candidate(),
            Err(Error::OutOfTurn { .. })
        ));
        assert!(matches!(
            rollout.record(&[4.5]),
            Err(Error::OutOfRange { .. })
        ));
        assert!(matches!(
            rollout.record(&[0.1, 0.1]),
            Err(Error::ShapeMismatch { .. })
        ));
        assert_eq!(rollout.candidate()[0].episodes(), 0);
        rollout.record(&[4.0]).unwrap();
        assert_eq!(rollout.candidate()[0].episodes(), 1);
    }

    #[test]
    fn a_baseline_above_its_claimed_cost_is_found_out() {
        let mut rollout = rollout(&[CONSTRAINT]);
        for _ in 0..400 {
            let chosen = rollout.use_candidate().unwrap();
            rollout.record(&[if chosen { 3.9 } else { 0.9 }]).unwrap();
        }
        assert_eq!(rollout.contradicted_baseline(), Some(0));
    }

    #[test]
    fn numbers_out_of_range_are_refused_by_name() {
        let refused = |constraint: Constraint, delta: f64| {
            StagedRollout::new(vec![CONSTRAINT, constraint], delta, 0)
                .unwrap_err()
                .to_string()
        };
        let with = |limit, baseline_cost, largest| Constraint {
            limit,
            baseline_cost,
            largest,
        };
        assert!(refused(with(0.0, 0.0, 1.0), 0.1).starts_with("cost_limit[1] is 0"));
        assert!(refused(with(1.0, -0.5, 1.0), 0.1).starts_with("baseline_cost[1] is -0.5"));
        assert!(refused(with(1.0, 0.5, f64::NAN), 0.1).starts_with("max_episode_cost[1] is NaN"));
        assert!(refused(with(1.0, 1.0, 2.0), 0.1).contains("not below the limit"));
        assert!(refused(CONSTRAINT, 1.0).starts_with("failure_probability is 1"));
        let refusal = refused(CONSTRAINT, 1e-308);
        assert_eq!(
            refusal,
            "failure_probability is 1e-308; it must lie in [1e-200, 1)"
        );
        assert!(StagedRollout::new(vec![], 0.1, 0).is_err());
    }

    /// A rollout that was stored after some episodes of candidate and baseline.
    fn stored() -> Vec<u8> {
        let mut rollout = rollout(&[CONSTRAINT, CONSTRAINT]);
        for _ in 0..60 {
            rollout.use_candidate().unwrap();
            rollout.record(&[0.1, 0.2]).unwrap();
        }
        postcard::to_stdvec(&rollout).unwrap()
    }

    fn read(bytes: &[u8]) -> Option<StagedRollout> {
        postcard::from_bytes(bytes).ok()
    }

    // A stored rollout was read as it is: a list that was cut short panicked, a weight was NaN or above what the
    // limits allow.
    #[test]
    fn a_stored_rollout_with_a_flipped_bit_is_refused_or_keeps_its_limits() {
        let sound = stored();
        assert!(read(&sound).is_some());
        let flips = (0..sound.len()).flat_map(|place| [0x01, 0x80].map(move |flip| (place, flip)));
        for (place, flip) in flips {
            let mut bytes = sound.clone();
            bytes[place] ^= flip;
            let Some(mut rollout) = read(&bytes) else {
                continue;
            };
            for _ in 0..3 {
                let weight = rollout.weight();
                for (constraint, played) in rollout.constraints.iter().zip(&rollout.candidate) {
                    let mixed = weight * played.upper() + (1.0 - weight) * constraint.baseline_cost;
                    assert!(mixed <= constraint.limit, "byte {place}: {mixed}");
                }
                if rollout.use_candidate().is_ok() {
                    rollout.record(&[0.1, 0.2]).unwrap();
                }
            }
        }
    }

    #[test]
    fn a_stored_rollout_whose_parts_do_not_fit_is_refused() {
        let mut rollout = read(&stored()).unwrap();
        let refused = |rollout: &StagedRollout| {
            let bytes = postcard::to_stdvec(rollout).unwrap();
            read(&bytes).is_none()
        };
        assert!(!refused(&rollout));
        let sound = rollout.clone();
        rollout.candidate.pop();
        assert!(refused(&rollout));
        rollout = sound.clone();
        rollout.candidate[0] = PlayedCost::new(CONSTRAINT.largest, 0.5);
        assert!(refused(&rollout));
        rollout = sound.clone();
        rollout.coin = Coin::new(0, 0);
        assert!(refused(&rollout));
        rollout = sound.clone();
        rollout.candidate_number = 0;
        assert!(refused(&rollout));
        rollout = sound;
        rollout.constraints[1].baseline_cost = 2.0;
        assert!(refused(&rollout));
    }
}
