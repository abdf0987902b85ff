//! Confidence sets of every row of a problem, at all times at once: plausible transitions and mean costs.
//!
//! Each set is a closed formula of the counts (`beta_mixture.rs`, `dirichlet.rs`, `bounded_mean.rs`, `sub_gaussian.rs`),
//! intersected with the sets of earlier times, which hold too. [`Levels`] says where delta goes.

use serde::{Deserialize, Serialize};

use crate::actions::StandIns;
use crate::confidence::sets::{BetaMixture, BoundedMean, DirichletSet, SubGaussianMixture};
use crate::error::{ArrayIndex, Error, Interval, Result};
use crate::estimate::Tally;
use crate::knowledge::Knowledge;
use crate::number::from_count;
use crate::trajectory::Trajectory;

/// The mass of the mixture's prior on the probabilities 0 and 1. It makes bounds of successors that were never seen
/// narrower by a fifth and costs ln 2 of the threshold for the others.
pub(in crate::confidence) const ENDPOINT_MASS: f64 = 0.5;

/// What is known of the observations of costs.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub enum Observations {
    /// They lie in \[0, 1\].
    #[default]
    Bounded,
    /// Their deviations from the mean are sub-Gaussian with this variance proxy.
    SubGaussian {
        /// sigma squared.
        variance_proxy: f64,
    },
}

/// The failure probabilities of the sequences of one row. All that a set of rows may fail with is their sum.
///
/// Every row gets the same share of delta. Half of it goes to the mean costs, in equal parts, and half to the
/// transitions; all of it to one of them if the other is known or absent. Of the transitions' part one half goes to the
/// entries of the box, in equal parts, and one half to the Dirichlet ball. A row with two possible successors has one
/// entry and no ball, a row with one has neither.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Levels {
    /// Of each mean cost.
    pub cost: f64,
    /// Of each entry of the box.
    pub entry: f64,
    /// Of the Dirichlet ball.
    pub ball: f64,
}

impl Levels {
    /// The levels of a row with this many possible successors (0 if the row ends the episode) and unknown costs.
    #[must_use]
    pub fn of_row(row_share: f64, num_successors: usize, unknown_costs: usize) -> Self {
        let (with_costs, with_transitions) = (unknown_costs > 0, num_successors > 1);
        let part = if with_costs && with_transitions {
            0.5 * row_share
        } else {
            row_share
        };
        let (entry, ball) = match num_successors {
            0 | 1 => (0.0, 0.0),
            2 => (part, 0.0),
            more => (0.5 * part / more as f64, 0.5 * part),
        };
        Self {
            cost: part / unknown_costs.max(1) as f64,
            entry,
            ball,
        }
    }

    /// The same with every threshold ln(1/alpha) multiplied by the square of a factor, which multiplies radii by about the
    /// factor.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Self {
        let scaled = |level: f64| level.powf(factor * factor);
        Self {
            cost: scaled(self.cost),
            entry: scaled(self.entry),
            ball: scaled(self.ball),
        }
    }

    /// What all sequences of the row may fail with: their sum.
    #[must_use]
    pub fn total(&self, num_successors: usize, unknown_costs: usize) -> f64 {
        let entries = if num_successors == 2 {
            1
        } else {
            num_successors
        };
        self.cost * unknown_costs as f64 + self.entry * entries as f64 + self.ball
    }
}

/// The ends of the probability of one successor.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The successor.
    pub state: u32,
    /// The least plausible probability.
    pub lower: f64,
    /// The largest plausible probability.
    pub upper: f64,
    /// The frequency.
    pub frequency: f64,
}

/// The plausible distributions of the next state of one row: those in a box and in a ball.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlausibleRow {
    /// Successors that were seen, and all possible ones if the support is known; ascending by state.
    pub entries: Vec<Entry>,
    /// The largest plausible probability of any other state; 0 if the support is known.
    pub unseen: f64,
    /// The ball around the frequencies.
    pub ball: DirichletSet,
    num_successors: usize,
    draws: u64,
}

impl PlausibleRow {
    fn everything(num_successors: usize, support: Option<&[u32]>) -> Self {
        let upper = 1.0;
        let sure = f64::from(u8::from(num_successors == 1));
        let entry = |&state: &u32| Entry {
            state,
            lower: sure,
            upper,
            frequency: 0.0,
        };
        Self {
            entries: support.unwrap_or_default().iter().map(entry).collect(),
            unseen: if support.is_some() { 0.0 } else { 1.0 },
            ball: DirichletSet::from_radius(f64::INFINITY),
            num_successors,
            draws: 0,
        }
    }

    /// 1 minus the sum of the lower ends: the mass that the row may place.
    #[must_use]
    #[inline(always)]
    pub fn unassigned(&self) -> f64 {
        1.0 - self.entries.iter().map(|entry| entry.lower).sum::<f64>()
    }

    /// The successors that were seen, as (frequency, value).
    #[inline(always)]
    pub fn seen<'a>(&'a self, values: &'a [f64]) -> impl Iterator<Item = (f64, f64)> + Clone + 'a {
        let seen = self.entries.iter().filter(|entry| entry.frequency > 0.0);
        seen.map(|entry| (entry.frequency, values[entry.state as usize]))
    }

    fn refresh(&mut self, counts: &[(u32, u64)], draws: u64, levels: Levels) -> Result<()> {
        if self.num_successors <= 1 || draws == self.draws {
            return Ok(());
        }
        self.draws = draws;
        let sequence = BetaMixture::with_endpoint_mass(levels.entry, ENDPOINT_MASS)?;
        let visits = from_count(draws);
        let unseen = sequence.upper(visits, 0.0);
        for entry in &mut self.entries {
            let count = count_of(counts, entry.state);
            entry.frequency = from_count(count) / visits;
            let (lower, upper) = if count == 0 {
                (0.0, unseen)
            } else {
                sequence.interval(visits, from_count(count))
            };
            (entry.lower, entry.upper) = intersect((entry.lower, entry.upper), (lower, upper));
        }
        if self.unseen > 0.0 {
            for &(state, count) in counts {
                if let Err(place) = self
                    .entries
                    .binary_search_by_key(&state, |entry| entry.state)
                {
                    let found = sequence.interval(visits, from_count(count));
                    let (lower, upper) = intersect((0.0, self.unseen), found);
                    let frequency = from_count(count) / visits;
                    self.entries.insert(
                        place,
                        Entry {
                            state,
                            lower,
                            upper,
                            frequency,
                        },
                    );
                }
            }
            self.unseen = self.unseen.min(unseen);
        }
        if self.num_successors > 2 {
            let threshold = -levels.ball.ln();
            let counts = counts.iter().map(|&(_, count)| count);
            self.ball = DirichletSet::new(threshold, self.num_successors, counts);
        }
        Ok(())
    }

    /// Whether a distribution lies in the set; `row` gives its (state, probability). For audits.
    #[must_use]
    pub fn contains(&self, row: &[(u32, f64)]) -> bool {
        let probability = |state: u32| {
            let found = row.iter().find(|(other, _)| *other == state);
            found.map_or(0.0, |(_, probability)| *probability)
        };
        let entries = self.entries.iter();
        let mut inside = entries.clone().all(|entry| {
            let p = probability(entry.state);
            entry.lower <= p && p <= entry.upper
        });
        for &(state, p) in row {
            let listed = self.entries.iter().any(|entry| entry.state == state);
            inside &= listed || p <= self.unseen;
        }
        let seen = entries.filter(|entry| entry.frequency > 0.0);
        let divergence: f64 = seen
            .map(|entry| entry.frequency * (entry.frequency / probability(entry.state)).ln())
            .sum();
        inside && (self.num_successors <= 2 || divergence <= self.ball.radius())
    }
}

fn count_of(counts: &[(u32, u64)], state: u32) -> u64 {
    let found = counts.iter().find(|(other, _)| *other == state);
    found.map_or(0, |(_, count)| *count)
}

/// The intersection of two intervals; the second if they do not meet, which happens only where a sequence has failed.
fn intersect(first: (f64, f64), second: (f64, f64)) -> (f64, f64) {
    let (lower, upper) = (first.0.max(second.0), first.1.min(second.1));
    if lower <= upper {
        (lower, upper)
    } else {
        second
    }
}

/// Plausible transitions and mean costs of every row. With probability at least 1 - delta all of them contain the truth
/// at all times at once.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ConfidenceSets {
    row_share: f64,
    radius_factor: f64,
    observations: Observations,
    rows: Vec<PlausibleRow>,
    costs: Vec<PlausibleCost>, // [rows, M]
    costs_are_known: bool,
    num_costs: usize,
}

/// The ends of a mean cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct PlausibleCost {
    lower: f64,
    upper: f64,
    /// None before the first visit: the capital of the bets takes half a kilobyte.
    mean: Option<Box<BoundedMean>>,
}

impl ConfidenceSets {
    /// Whether stored sets are those of a tally.
    pub(crate) fn fits(&self, tally: &Tally) -> bool {
        let (rows, states) = (tally.num_rows(), tally.shape().num_states());
        let entries = self.rows.iter().all(|row| {
            let states_exist = row
                .entries
                .iter()
                .all(|entry| (entry.state as usize) < states);
            states_exist
                && row
                    .entries
                    .windows(2)
                    .all(|pair| pair[0].state < pair[1].state)
        });
        entries
            && self.rows.len() == rows
            && self.num_costs == tally.num_costs()
            && self.costs.len() == rows * self.num_costs
    }

    /// Nothing seen yet; the sets may fail with probability delta in all. A factor other than 1 on every radius voids that.
    pub fn new(
        tally: &Tally,
        knowledge: &Knowledge,
        observations: Observations,
        (delta, radius_factor): (f64, f64),
    ) -> Result<Self> {
        let (shape, num_costs) = (tally.shape(), tally.num_costs());
        let (mut rows, mut costs) = (Vec::new(), Vec::new());
        for row in 0..tally.num_rows() {
            let (step, pair) = tally.place(row);
            let support = knowledge.support.as_ref();
            let support = support.map(|support| support.successors(step, pair));
            let possible = support.map_or(shape.num_states(), <[u32]>::len);
            let num_successors = if tally.is_last(row) { 0 } else { possible };
            rows.push(PlausibleRow::everything(num_successors, support));
            for constraint in 0..num_costs {
                let known = knowledge.costs.as_ref().map(|costs| &costs[constraint]);
                let known = known.map(|cost| cost.step(step)[pair]);
                costs.push(PlausibleCost {
                    lower: known.unwrap_or(0.0),
                    upper: known.unwrap_or(1.0),
                    mean: None,
                });
            }
        }
        Ok(Self {
            row_share: delta / tally.num_rows() as f64,
            radius_factor,
            observations,
            rows,
            costs,
            costs_are_known: knowledge.costs.is_some(),
            num_costs,
        })
    }

    /// Whether the radii are those of the formulas.
    #[must_use]
    pub fn keep_guarantee(&self) -> bool {
        (self.radius_factor - 1.0).abs() <= f64::EPSILON
    }

    /// The levels of a row's sequences.
    #[must_use]
    pub fn levels(&self, row: usize) -> Levels {
        let unknown = if self.costs_are_known {
            0
        } else {
            self.num_costs
        };
        let levels = Levels::of_row(self.row_share, self.rows[row].num_successors, unknown);
        levels.scaled(self.radius_factor)
    }

    /// Gives the rows of actions that do not exist the sets of those they stand in for.
    pub(crate) fn restrict(&mut self, actions: &StandIns) {
        actions.copy_rows(&mut self.rows, 1);
        actions.copy_rows(&mut self.costs, self.num_costs);
    }

    /// Refuses costs that contradict bounded observations.
    pub fn check(&self, seen: &Trajectory) -> Result<()> {
        if self.observations != Observations::Bounded || self.costs_are_known {
            return Ok(());
        }
        let allowed = Interval::closed(0.0, 1.0);
        let horizon = seen.shape().horizon();
        match seen
            .costs()
            .iter()
            .position(|&cost| !allowed.contains(cost))
        {
            Some(place) => Err(Error::OutOfRange {
                place: ArrayIndex::new("costs", &[place / horizon, place % horizon]),
                found: seen.costs()[place],
                allowed,
            }),
            None => Ok(()),
        }
    }

    /// Adds the costs that were observed at one visit of a row; they were checked.
    #[inline(always)]
    pub fn observe(&mut self, row: usize, costs: impl Iterator<Item = f64>) -> Result<()> {
        if self.observations == Observations::Bounded && !self.costs_are_known {
            let means = &mut self.costs[row * self.num_costs..][..self.num_costs];
            for (target, cost) in means.iter_mut().zip(costs) {
                target.mean.get_or_insert_default().observe(cost)?;
            }
        }
        Ok(())
    }

    /// Narrows the sets of a row by all that was seen of it.
    pub fn refresh(&mut self, row: usize, tally: &Tally) -> Result<()> {
        let levels = self.levels(row);
        self.rows[row].refresh(tally.successors(row), tally.draws(row), levels)?;
        let visits = tally.visits(row);
        if self.costs_are_known || visits == 0 {
            return Ok(());
        }
        for constraint in 0..self.num_costs {
            let cost = &mut self.costs[row * self.num_costs + constraint];
            let half = 0.5 * levels.cost; // one side each
            let found = match self.observations {
                Observations::Bounded => match &cost.mean {
                    Some(mean) => (mean.lower(half), mean.upper(half)),
                    None => (0.0, 1.0),
                },
                Observations::SubGaussian { variance_proxy } => {
                    let sequence = SubGaussianMixture::new(variance_proxy, levels.cost)?;
                    let sum = tally.cost_sum(row, constraint);
                    sequence.interval(from_count(visits), sum, (0.0, 1.0))
                }
            };
            (cost.lower, cost.upper) = intersect((cost.lower, cost.upper), found);
        }
        Ok(())
    }

    /// The plausible transitions of a row.
    #[must_use]
    #[inline(always)]
    pub fn row(&self, row: usize) -> &PlausibleRow {
        &self.rows[row]
    }

    /// The ends of a mean cost of a row.
    #[must_use]
    #[inline(always)]
    pub fn cost(&self, row: usize, constraint: usize) -> (f64, f64) {
        let cost = &self.costs[row * self.num_costs + constraint];
        (cost.lower, cost.upper)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_levels_of_a_row_add_up_to_its_share() {
        for (successors, costs) in [(0, 1), (1, 1), (2, 1), (3, 1), (10, 3), (5, 0), (2, 0)] {
            let levels = Levels::of_row(0.01, successors, costs);
            let total = levels.total(successors, costs);
            assert!(
                total <= 0.01 * (1.0 + 1e-12),
                "{successors} {costs}: {total}"
            );
            let useful = costs > 0 || successors > 1;
            assert!(!useful || total > 0.0099);
        }
    }

    #[test]
    fn intervals_that_do_not_meet_leave_the_later_one() {
        assert_eq!(intersect((0.0, 0.5), (0.25, 1.0)), (0.25, 0.5));
        assert_eq!(intersect((0.0, 0.2), (0.25, 1.0)), (0.25, 1.0));
    }
}
