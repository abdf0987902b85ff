//! Counts of a problem with any number of costs, pooled over the steps if the problem is stationary; P-hat as lists.
//!
//! A *row* is a pair (s,a), or a triple (h,s,a) if steps are told apart.

use serde::{Deserialize, Serialize};

use crate::actions::StandIns;
use crate::error::{ArrayIndex, Error, Interval, Result};
use crate::model::StepKernel;
use crate::number::{MAX_COUNT, from_count};
use crate::shape::Shape;
use crate::table::{Signal, zeros};
use crate::trajectory::Trajectory;

/// The largest size of a stored sum of observations, in parts of a range.
const LARGEST_SUM: f64 = 1e100;

/// N, N(s') and the sums of rewards and costs of every row. Stored as it is; P-hat is rebuilt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    shape: Shape,
    /// Between the rows of two steps: |S| |A|, or 0 if all steps share their rows.
    stride: usize,
    num_costs: usize,
    visits: Vec<u64>,                 // [rows]
    reward_sums: Vec<f64>,            // [rows]
    cost_sums: Vec<f64>,              // [rows, M]
    successors: Vec<Vec<(u32, u64)>>, // [rows] lists of (state, count), ascending by state
    draws: Vec<u64>,                  // [rows], the sum of each list: visits before the last step
}

impl Tally {
    /// Nothing seen yet.
    pub fn new(shape: Shape, pooled: bool, num_costs: usize) -> Result<Self> {
        let rows = if pooled {
            shape.pairs()
        } else {
            shape.triples()
        };
        Ok(Self {
            shape,
            stride: if pooled { 0 } else { shape.pairs() },
            num_costs,
            visits: zeros("visits", rows)?,
            reward_sums: zeros("reward sums", rows)?,
            cost_sums: zeros("cost sums", rows * num_costs)?,
            successors: zeros("successors", rows)?,
            draws: zeros("draws", rows)?,
        })
    }

    /// Refuses stored tables of the wrong length, states that do not exist, and lists that do not add up.
    pub(crate) fn check_stored(&self) -> Result<()> {
        let pairs = self.shape.pairs();
        let rows = match self.stride {
            0 => Some(pairs),
            stride if stride == pairs => Some(self.shape.triples()),
            _ => None,
        };
        let lengths = [
            self.visits.len(),
            self.reward_sums.len(),
            self.successors.len(),
            self.draws.len(),
        ];
        let costs = rows.and_then(|rows| rows.checked_mul(self.num_costs));
        let mut fits = lengths.iter().all(|&length| Some(length) == rows)
            && Some(self.cost_sums.len()) == costs;
        let sums = self.reward_sums.iter().chain(&self.cost_sums);
        fits = fits && sums.into_iter().all(|sum| sum.abs() <= LARGEST_SUM);
        for (row, list) in self.successors.iter().enumerate() {
            let states = list
                .iter()
                .all(|&(state, _)| (state as usize) < self.shape.num_states());
            let ascend = list.windows(2).all(|pair| pair[0].0 < pair[1].0);
            let counts = list.iter().map(|&(_, count)| count);
            let sum = counts.fold(0, u64::saturating_add);
            fits = fits && states && ascend && sum == self.draws[row];
            fits = fits && self.draws[row] <= self.visits[row] && self.visits[row] <= MAX_COUNT;
        }
        if fits {
            Ok(())
        } else {
            Err(Error::StoredState {
                what: "the counts of a learner",
            })
        }
    }

    /// H, |S|, |A|.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Whether all steps share their rows.
    #[must_use]
    pub fn is_pooled(&self) -> bool {
        self.stride == 0
    }

    /// How many rows there are.
    #[must_use]
    pub fn num_rows(&self) -> usize {
        self.visits.len()
    }

    /// M.
    #[must_use]
    pub fn num_costs(&self) -> usize {
        self.num_costs
    }

    /// The row of a pair at a step.
    #[must_use]
    #[inline(always)]
    pub fn row(&self, step: usize, pair: usize) -> usize {
        step * self.stride + pair
    }

    /// The first step that a row serves, and its pair.
    #[must_use]
    #[inline(always)]
    pub fn place(&self, row: usize) -> (usize, usize) {
        (row / self.shape.pairs(), row % self.shape.pairs())
    }

    /// Whether no state follows the row: it serves the last step alone.
    #[must_use]
    pub fn is_last(&self, row: usize) -> bool {
        !self.is_pooled() && self.place(row).0 + 1 == self.shape.horizon()
    }

    /// N of a row.
    #[must_use]
    #[inline(always)]
    pub fn visits(&self, row: usize) -> u64 {
        self.visits[row]
    }

    /// How often a successor of the row was seen.
    #[must_use]
    #[inline(always)]
    pub fn draws(&self, row: usize) -> u64 {
        self.draws[row]
    }

    /// The sum of the rewards of a row.
    #[must_use]
    pub fn reward_sum(&self, row: usize) -> f64 {
        self.reward_sums[row]
    }

    /// The sum of a cost of a row.
    #[must_use]
    pub fn cost_sum(&self, row: usize, constraint: usize) -> f64 {
        self.cost_sums[row * self.num_costs + constraint]
    }

    /// The successors seen, with their counts, ascending by state.
    #[must_use]
    #[inline(always)]
    pub fn successors(&self, row: usize) -> &[(u32, u64)] {
        &self.successors[row]
    }

    /// Refuses an episode with another number of costs.
    pub fn check_costs(&self, seen: &Trajectory) -> Result<()> {
        let horizon = seen.shape().horizon();
        if seen.costs().len() == self.num_costs * horizon {
            return Ok(());
        }
        Err(Error::ShapeMismatch {
            array: "costs",
            axes: "[M, H]",
            expected: vec![self.num_costs, self.shape.horizon()],
            found: vec![seen.costs().len() / horizon, horizon],
        })
    }

    /// Refuses an episode that [`Tally::count`] would refuse.
    pub fn check(&self, seen: &Trajectory) -> Result<()> {
        self.check_costs(seen)?;
        self.check_room(seen)
    }

    /// Counts one episode with as many costs as the tally has. `visited` is called with every row, its step and its
    /// visits.
    #[inline(always)]
    pub fn count(
        &mut self,
        seen: &Trajectory,
        mut visited: impl FnMut(usize, usize, u64),
    ) -> Result<()> {
        self.check(seen)?;
        for step in 0..self.shape.horizon() {
            let row = self.count_step(seen, step, seen.actions()[step]);
            visited(row, step, self.visits[row]);
        }
        Ok(())
    }

    /// Refuses an episode after which a count might be too large: a row that all steps share is visited up to H times an
    /// episode.
    #[inline(always)]
    fn check_room(&self, seen: &Trajectory) -> Result<()> {
        let most = MAX_COUNT.saturating_sub(self.shape.horizon() as u64);
        for step in 0..self.shape.horizon() {
            let (state, action) = (seen.states()[step], seen.actions()[step]);
            let pair = self.shape.pair(state as usize, action as usize);
            let visits = self.visits[self.row(step, pair)];
            if visits > most {
                return Err(Error::OutOfRange {
                    place: ArrayIndex::new("visits", &[step, state as usize, action as usize]),
                    found: from_count(visits),
                    allowed: Interval::closed(0.0, from_count(most)),
                });
            }
        }
        Ok(())
    }

    /// Counts one step of an episode for an action, which is the one that was played or stands in for it; returns the row.
    #[inline(always)]
    fn count_step(&mut self, seen: &Trajectory, step: usize, action: u32) -> usize {
        let (horizon, state) = (self.shape.horizon(), seen.states()[step] as usize);
        let row = self.row(step, self.shape.pair(state, action as usize));
        self.visits[row] += 1;
        self.reward_sums[row] += seen.rewards()[step];
        for constraint in 0..self.num_costs {
            let cost = seen.costs()[constraint * horizon + step];
            self.cost_sums[row * self.num_costs + constraint] += cost;
        }
        if step + 1 < horizon {
            self.draws[row] += 1;
            count_in(&mut self.successors[row], seen.states()[step + 1]);
        }
        row
    }

    /// Counts an episode that was counted in the rows of the actions that stand in for those that were played: their
    /// rows are always those they stand in for. `visited` is called with every such row and its step.
    pub fn count_stand_ins(
        &mut self,
        seen: &Trajectory,
        actions: &StandIns,
        mut visited: impl FnMut(usize, usize),
    ) {
        for step in 0..self.shape.horizon() {
            let state = seen.states()[step] as usize;
            for &action in actions.standing_in_for(state, seen.actions()[step]) {
                visited(self.count_step(seen, step, action), step);
            }
        }
    }

    /// The averages of every row: a stationary signal if the tally is pooled.
    pub fn signal(&self, name: &'static str, of_row: impl Fn(usize) -> f64) -> Result<Signal> {
        let data = (0..self.num_rows()).map(of_row).collect();
        Signal::labelled(name, &[], self.shape, self.stride, data)
    }

    /// r-hat of a row.
    #[must_use]
    pub fn mean_reward(&self, row: usize) -> f64 {
        self.reward_sums[row] / from_count(self.visits[row].max(1))
    }

    /// c-hat of a row.
    #[must_use]
    pub fn mean_cost(&self, row: usize, constraint: usize) -> f64 {
        self.cost_sum(row, constraint) / from_count(self.visits[row].max(1))
    }
}

#[inline(always)]
fn count_in(list: &mut Vec<(u32, u64)>, state: u32) {
    match list.iter().position(|&(other, _)| other >= state) {
        Some(place) if list[place].0 == state => list[place].1 += 1,
        Some(place) => list.insert(place, (state, 1)),
        None => list.push((state, 1)),
    }
}

/// P-hat of a tally: the frequencies of the successors seen. A row without draws has no successor.
#[derive(Debug, Clone, Default)]
pub struct FrequencyKernel {
    stride: usize,
    offsets: Vec<u32>, // [rows + 1]
    states: Vec<u32>,
    probabilities: Vec<f64>,
}

impl FrequencyKernel {
    /// Replaces the kernel by the frequencies of a tally.
    pub fn refresh(&mut self, tally: &Tally) {
        self.stride = tally.stride;
        self.offsets.clear();
        self.states.clear();
        self.probabilities.clear();
        self.offsets.push(0);
        for row in 0..tally.num_rows() {
            let draws = from_count(tally.draws[row]);
            for &(state, count) in &tally.successors[row] {
                self.states.push(state);
                self.probabilities.push(from_count(count) / draws);
            }
            self.offsets.push(self.states.len() as u32);
        }
    }

    #[inline(always)]
    fn list(&self, step: usize, pair: usize) -> (&[u32], &[f64]) {
        let row = step * self.stride + pair;
        let range = self.offsets[row] as usize..self.offsets[row + 1] as usize;
        (&self.states[range.clone()], &self.probabilities[range])
    }
}

impl StepKernel for FrequencyKernel {
    #[inline(always)]
    fn expectation(&self, step: usize, pair: usize, values: &[f64]) -> f64 {
        let (states, probabilities) = self.list(step, pair);
        let pairs = states.iter().zip(probabilities);
        pairs.fold(0.0, |sum, (&state, p)| sum + p * values[state as usize])
    }

    #[inline(always)]
    fn propagate(&self, step: usize, pair: usize, mass: f64, next: &mut [f64]) {
        let (states, probabilities) = self.list(step, pair);
        for (&state, p) in states.iter().zip(probabilities) {
            next[state as usize] += mass * p;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_pass_the_largest_of_32_bits() {
        let shape = Shape::new(2, 1, 1).unwrap();
        let seen = Trajectory::checked(shape, vec![0; 2], vec![0; 2], vec![1.0; 2], vec![0.0; 2]);
        let mut tally = Tally::new(shape, true, 1).unwrap();
        let most = u64::from(u32::MAX);
        (tally.visits[0], tally.draws[0]) = (most, most);
        tally.successors[0] = vec![(0, most)];
        tally.reward_sums[0] = from_count(most);
        tally.count(&seen.unwrap(), |_, _, _| {}).unwrap();
        assert_eq!((tally.visits(0), tally.draws(0)), (most + 2, most + 1));
        assert_eq!(tally.successors(0), [(0, most + 1)]);
        assert_eq!(tally.mean_reward(0).to_bits(), 1.0_f64.to_bits());
        tally.check_stored().unwrap();
        let mut forged = tally.clone();
        forged.visits[0] = MAX_COUNT + 1;
        assert!(forged.check_stored().is_err());
        tally.successors[0] = vec![(0, u64::MAX)];
        assert!(tally.check_stored().is_err());
    }

    #[test]
    fn a_count_that_would_not_fit_is_refused_and_nothing_changes() {
        let shape = Shape::new(2, 1, 1).unwrap();
        let zeros = || vec![0.0; 2];
        let seen = Trajectory::checked(shape, vec![0; 2], vec![0; 2], zeros(), zeros()).unwrap();
        let mut tally = Tally::new(shape, true, 1).unwrap();
        tally.visits[0] = MAX_COUNT - 2;
        tally.count(&seen, |_, _, _| {}).unwrap();
        let before = tally.clone();
        assert!(tally.count(&seen, |_, _, _| {}).is_err());
        assert_eq!(tally, before);
    }

    #[test]
    fn pooled_rows_add_the_steps_and_the_last_step_has_no_successor() {
        let shape = Shape::new(3, 2, 1).unwrap();
        let seen = Trajectory::checked(
            shape,
            vec![0, 0, 1],
            vec![0; 3],
            vec![1.0, 0.0, 1.0],
            vec![0.5, 0.25, 1.0],
        )
        .unwrap();
        let mut tally = Tally::new(shape, true, 1).unwrap();
        let mut rows = Vec::new();
        tally.count(&seen, |row, _, _| rows.push(row)).unwrap();
        assert_eq!(rows, [0, 0, 1]);
        assert_eq!((tally.visits(0), tally.draws(0), tally.draws(1)), (2, 2, 0));
        assert_eq!(tally.successors(0), [(0, 1), (1, 1)]);
        assert!((tally.mean_cost(0, 0) - 0.375).abs() < 1e-15);
        let mut kernel = FrequencyKernel::default();
        kernel.refresh(&tally);
        assert!((kernel.expectation(1, 0, &[2.0, 4.0]) - 3.0).abs() < 1e-15);
        assert!(kernel.expectation(0, 1, &[2.0, 4.0]).abs() < 1e-300);
        let mut apart = Tally::new(shape, false, 1).unwrap();
        apart.count(&seen, |_, _, _| {}).unwrap();
        assert_eq!(
            (apart.visits(0), apart.visits(2), apart.visits(5)),
            (1, 1, 1)
        );
        assert!(apart.is_last(5) && !apart.is_last(3));
    }
}
