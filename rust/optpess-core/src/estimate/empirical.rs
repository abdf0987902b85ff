//! Averages and P-hat, derived from counts. `count` counts an episode; `refresh` updates the averages of the rows
//! that were counted since the last refresh, at most H rows an episode.

use serde::{Deserialize, Serialize, Serializer};

use crate::actions::StandIns;
use crate::error::{Error, Result};
use crate::estimate::counts::{Counts, StoredCounts, StoredSuccessors};
use crate::estimate::kernel::{EmpiricalKernel, Successors};
use crate::fast::isa::{Job, vectorised};
use crate::number::from_count;
use crate::shape::Shape;
use crate::table::zeros;
use crate::trajectory::Trajectory;

/// N_h(s,a), N_h(s,a,s') and the averages r-hat, c-hat and P-hat. Stored as [`Counts`].
///
/// Formula: each average is a sum over max(N, 1). Citation: \[Liu21\], Eq. (3)-(5). Deviation: none;
/// r-hat and c-hat are not clipped. The state after the last step is not counted: no value uses it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "Counts")]
pub struct Estimates {
    shape: Shape,
    in_full: bool,
    visits: Vec<u64>,      // [H, S, A]
    reward_sums: Vec<f64>, // [H, S, A]
    cost_sums: Vec<f64>,   // [H, S, A]
    kernel: EmpiricalKernel,
    /// Rows counted since the last refresh, each once.
    dirty: Vec<RowIndex>, // [at most H S A]
    is_dirty: Vec<bool>, // [H, S, A]
}

/// A flat row index with its (step, state, action), kept together to avoid a division.
#[derive(Debug, Clone, Copy, PartialEq)]
struct RowIndex {
    row: u32,
    step: u32,
    state: u32,
    action: u32,
}

/// As [`Counts`], and without a copy of them.
impl Serialize for Estimates {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let stored = StoredCounts {
            shape: self.shape,
            in_full: self.in_full,
            visits: &self.visits,
            reward_sums: &self.reward_sums,
            cost_sums: &self.cost_sums,
            successors: StoredSuccessors(&self.kernel),
        };
        stored.serialize(serializer)
    }
}

/// Restores stored counts; every row is marked to be refreshed.
impl TryFrom<Counts> for Estimates {
    type Error = Error;

    fn try_from(counts: Counts) -> Result<Self> {
        counts.check()?;
        let mut estimates = Self::with_storage(counts.shape, counts.in_full)?;
        for successor in &counts.successors {
            let (row, state) = (successor.row as usize, successor.state as usize);
            estimates.kernel.count(row, state, successor.count)?;
        }
        estimates.visits = counts.visits;
        estimates.reward_sums = counts.reward_sums;
        estimates.cost_sums = counts.cost_sums;
        estimates.mark_all();
        Ok(estimates)
    }
}

impl Estimates {
    /// Nothing observed yet.
    pub fn new(shape: Shape) -> Result<Self> {
        Self::with_storage(shape, false)
    }

    /// Nothing observed yet; the rows of P-hat are kept in full, however many states there are.
    pub fn in_full(shape: Shape) -> Result<Self> {
        Self::with_storage(shape, true)
    }

    fn with_storage(shape: Shape, in_full: bool) -> Result<Self> {
        let table = || zeros("estimates [H, S, A]", shape.triples());
        Ok(Self {
            shape,
            in_full,
            visits: zeros("visits [H, S, A]", shape.triples())?,
            reward_sums: table()?,
            cost_sums: table()?,
            kernel: EmpiricalKernel::new(shape, in_full)?,
            dirty: Vec::with_capacity(shape.horizon()),
            is_dirty: zeros("marks [H, S, A]", shape.triples())?,
        })
    }

    /// Estimates with the storage of these and other counts: N_h(s,a), the sums of rewards and costs, and N_h(s,a,s')
    /// `[H, S, A, S]`, of which the last step is not read. The next refresh computes every row.
    pub(crate) fn with_counts(
        &self,
        visits: Vec<u64>,
        [reward_sums, cost_sums]: [Vec<f64>; 2],
        successors: &[u64],
    ) -> Result<Self> {
        let followed = self.shape.triples() - self.shape.pairs();
        let rows = successors.chunks_exact(self.shape.num_states());
        let mut counted = Self::with_storage(self.shape, self.in_full)?;
        for (row, counts) in rows.take(followed).enumerate() {
            for (state, &count) in counts.iter().enumerate().filter(|&(_, &count)| count > 0) {
                counted.kernel.count(row, state, count)?;
            }
        }
        (counted.visits, counted.reward_sums, counted.cost_sums) = (visits, reward_sums, cost_sums);
        counted.mark_all();
        Ok(counted)
    }

    /// How much memory the tables take.
    pub(crate) fn bytes(&self) -> usize {
        let a_row = size_of::<u64>() + 2 * size_of::<f64>() + size_of::<RowIndex>() + 1;
        a_row * self.shape.triples() + self.kernel.bytes()
    }

    /// H, |S|, |A|.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// N_h(s,a), `[H, S, A]`.
    #[must_use]
    pub fn visits(&self) -> &[u64] {
        &self.visits
    }

    /// The sums behind r-hat and c-hat, `[H, S, A]`.
    pub(crate) fn sums(&self) -> (&[f64], &[f64]) {
        (&self.reward_sums, &self.cost_sums)
    }

    /// r-hat of a row, `step * S A + pair`, from its counts.
    #[must_use]
    #[inline(always)]
    pub fn mean_reward(&self, row: usize) -> f64 {
        self.reward_sums[row] / from_count(self.visits[row].max(1))
    }

    /// c-hat of a row, `step * S A + pair`, from its counts.
    #[must_use]
    #[inline(always)]
    pub fn mean_cost(&self, row: usize) -> f64 {
        self.cost_sums[row] / from_count(self.visits[row].max(1))
    }

    /// P-hat_h(s'|s,a) from its counts; 0 at the last step.
    #[must_use]
    pub fn frequency(&self, step: usize, pair: usize, state: usize) -> f64 {
        if step + 1 == self.shape.horizon() {
            return 0.0;
        }
        let row = step * self.shape.pairs() + pair;
        from_count(self.kernel.count_of(row, state)) / from_count(self.visits[row].max(1))
    }

    /// P-hat as of the last refresh.
    #[must_use]
    pub fn kernel(&self) -> &EmpiricalKernel {
        &self.kernel
    }

    /// Counts one episode. P-hat lags behind until [`Estimates::refresh`]. The trajectory's first cost is the one
    /// counted.
    #[inline(always)]
    pub fn count(&mut self, seen: &Trajectory) -> Result<()> {
        let (horizon, pairs) = (self.shape.horizon(), self.shape.pairs());
        let places = seen.states()[..horizon]
            .iter()
            .zip(&seen.actions()[..horizon]);
        let numbers = seen.rewards()[..horizon]
            .iter()
            .zip(&seen.costs()[..horizon]);
        let mut next_states = seen.states()[1..horizon].iter();
        for (step, ((&state, &action), (reward, cost))) in places.zip(numbers).enumerate() {
            let row = step * pairs + self.shape.pair(state as usize, action as usize);
            if let Some(&next_state) = next_states.next() {
                self.kernel.count(row, next_state as usize, 1)?;
            }
            self.visits[row] += 1;
            self.reward_sums[row] += reward;
            self.cost_sums[row] += cost;
            self.mark(row, step, state, action);
        }
        Ok(())
    }

    /// Counts an episode that was counted in the rows of the actions that stand in for those that were played:
    /// their rows are always those they stand in for.
    pub(crate) fn count_stand_ins(&mut self, seen: &Trajectory, actions: &StandIns) -> Result<()> {
        let (horizon, pairs) = (self.shape.horizon(), self.shape.pairs());
        for step in 0..horizon {
            let state = seen.states()[step];
            for &action in actions.standing_in_for(state as usize, seen.actions()[step]) {
                let row = step * pairs + self.shape.pair(state as usize, action as usize);
                if step + 1 < horizon {
                    self.kernel
                        .count(row, seen.states()[step + 1] as usize, 1)?;
                }
                self.visits[row] += 1;
                self.reward_sums[row] += seen.rewards()[step];
                self.cost_sums[row] += seen.costs()[step];
                self.mark(row, step, state, action);
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn mark(&mut self, row: usize, step: usize, state: u32, action: u32) {
        if !self.is_dirty[row] {
            self.is_dirty[row] = true;
            self.dirty.push(RowIndex {
                row: row as u32,
                step: step as u32,
                state,
                action,
            });
        }
    }

    /// Marks every row, so that the next refresh passes it to the listener.
    pub fn mark_all(&mut self) {
        for row in 0..self.shape.triples() {
            let [step, state, action] = self.shape.triple_index(row);
            self.mark(row, step, state as u32, action as u32);
        }
    }

    /// Updates P-hat of every row counted since the last refresh, and passes each row to `listener`.
    #[inline]
    pub(crate) fn refresh(&mut self, listener: impl RowListener) {
        vectorised(Refresh {
            estimates: self,
            listener,
        });
    }

    /// Updates P-hat of every row counted since the last refresh, and calls `changed` with each row.
    pub fn refresh_with(&mut self, changed: impl FnMut(&RowEstimate<'_>)) {
        self.refresh(Call(changed));
    }

    #[inline(always)]
    fn refresh_row(&mut self, index: RowIndex) -> RowEstimate<'_> {
        let (row, step) = (index.row as usize, index.step as usize);
        let (state, action) = (index.state as usize, index.action as usize);
        let pair = self.shape.pair(state, action);
        let visits = self.visits[row];
        let count = from_count(visits.max(1));
        let (reward, cost) = (self.reward_sums[row] / count, self.cost_sums[row] / count);
        let mut successors = Successors::NONE;
        if step + 1 < self.shape.horizon() {
            self.kernel.refresh(row, count);
            successors = self.kernel.row(step, pair);
        }
        RowEstimate {
            step,
            state,
            action,
            pair,
            visits,
            reward,
            cost,
            reward_sum: self.reward_sums[row],
            cost_sum: self.cost_sums[row],
            successors,
        }
    }
}

/// Receives every refreshed row. A trait and not a closure: the compiler does not always inline a closure into the loop
/// that calls it, but does inline a method marked `#[inline(always)]`.
pub(crate) trait RowListener {
    /// Called once for each row.
    fn changed(&mut self, row: &RowEstimate<'_>);
}

struct Call<F>(F);

impl<F: FnMut(&RowEstimate<'_>)> RowListener for Call<F> {
    #[inline(always)]
    fn changed(&mut self, row: &RowEstimate<'_>) {
        (self.0)(row);
    }
}

struct Refresh<'a, R> {
    estimates: &'a mut Estimates,
    listener: R,
}

impl<R: RowListener> Job for Refresh<'_, R> {
    type Output = ();

    #[inline(always)]
    fn run(mut self) {
        for index in 0..self.estimates.dirty.len() {
            let index = self.estimates.dirty[index];
            self.estimates.is_dirty[index.row as usize] = false;
            let row = self.estimates.refresh_row(index);
            self.listener.changed(&row);
        }
        self.estimates.dirty.clear();
    }
}

/// One row after a refresh.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowEstimate<'a> {
    /// h.
    pub step: usize,
    /// s.
    pub state: usize,
    /// a.
    pub action: usize,
    /// The index of (s, a) within the step.
    pub pair: usize,
    /// N_h(s,a).
    pub visits: u64,
    /// r-hat_h(s,a).
    pub reward: f64,
    /// c-hat_h(s,a).
    pub cost: f64,
    /// The sum behind r-hat.
    pub reward_sum: f64,
    /// The sum behind c-hat.
    pub cost_sum: f64,
    /// P-hat_h(.|s,a); none at the last step.
    pub successors: Successors<'a>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::MAX_COUNT;

    fn episode(
        states: [u32; 2],
        actions: [u32; 2],
        rewards: [f64; 2],
        costs: [f64; 2],
    ) -> Trajectory {
        let shape = Shape::new(2, 2, 1).unwrap();
        let (states, actions) = (states.to_vec(), actions.to_vec());
        Trajectory::checked(shape, states, actions, rewards.to_vec(), costs.to_vec()).unwrap()
    }

    fn two_episodes() -> Estimates {
        let mut estimates = Estimates::new(Shape::new(2, 2, 1).unwrap()).unwrap();
        let first = episode([0, 1], [0, 0], [1.0, 0.0], [0.5, 1.0]);
        estimates.count(&first).unwrap();
        let mut changed = Vec::new();
        estimates.refresh_with(|row| {
            changed.push((row.step, row.pair, row.visits, row.reward, row.cost));
        });
        assert_eq!(changed, [(0, 0, 1, 1.0, 0.5), (1, 1, 1, 0.0, 1.0)]);
        let second = episode([0, 0], [0, 0], [0.0, 1.0], [0.0, 0.0]);
        estimates.count(&second).unwrap();
        estimates
    }

    #[test]
    fn rows_never_visited_stay_zero_and_visited_ones_are_averages() {
        let mut estimates = two_episodes();
        assert!((estimates.frequency(0, 0, 1) - 0.5).abs() < 1e-300);
        estimates.refresh_with(|_| {});
        assert_eq!(estimates.visits(), &[2, 0, 1, 1]);
        let row = |pair| estimates.kernel().row(0, pair);
        assert_eq!(row(0), Successors::Full(&[0.5, 0.5]));
        assert_eq!(row(1), Successors::Full(&[0.0, 0.0]));
        let rewards: Vec<f64> = (0..4).map(|row| estimates.mean_reward(row)).collect();
        assert_eq!(rewards, [0.5, 0.0, 1.0, 0.0]);
    }

    #[test]
    fn counts_pass_the_largest_of_32_bits() {
        let [empty, most] = [0, u64::from(u32::MAX)];
        let sums = || vec![from_count(most), 0.0, 0.0, 0.0];
        let mut estimates = two_episodes();
        let visits = vec![most, empty, most, empty];
        let successors = [most, empty, empty, empty, empty, empty, empty, empty];
        estimates = estimates
            .with_counts(visits, [sums(), sums()], &successors)
            .unwrap();
        let seen = episode([0, 0], [0, 0], [1.0, 0.0], [0.0, 0.0]);
        estimates.count(&seen).unwrap();
        estimates.refresh_with(|_| {});
        assert_eq!(estimates.visits(), &[most + 1, 0, most + 1, 0]);
        assert_eq!(estimates.kernel().row(0, 0), Successors::Full(&[1.0, 0.0]));
        assert_eq!(estimates.mean_reward(0).to_bits(), 1.0_f64.to_bits());
        let average = estimates.mean_cost(0);
        assert_eq!(
            average.to_bits(),
            (from_count(most) / from_count(most + 1)).to_bits()
        );
        let stored = postcard::to_stdvec(&estimates).unwrap();
        let mut restored: Estimates = postcard::from_bytes(&stored).unwrap();
        restored.refresh_with(|_| {});
        assert_eq!(restored, estimates);
    }

    #[test]
    fn a_stored_count_above_the_largest_is_refused() {
        let stored = postcard::to_stdvec(&two_episodes()).unwrap();
        let counts: Counts = postcard::from_bytes(&stored).unwrap();
        for forged in [MAX_COUNT + 1, u64::MAX] {
            let mut counts = counts.clone();
            counts.visits[0] = forged;
            counts.successors[0].count = forged;
            let refusal = Estimates::try_from(counts).unwrap_err().to_string();
            assert!(refusal.contains("stored visits"), "{refusal}");
        }
    }

    #[test]
    fn counts_are_the_whole_state() {
        let mut estimates = two_episodes();
        let stored = postcard::to_stdvec(&estimates).unwrap();
        let counts: Counts = postcard::from_bytes(&stored).unwrap();
        let mut restored = Estimates::try_from(counts.clone()).unwrap();
        estimates.refresh_with(|_| {});
        let mut told = 0;
        restored.refresh_with(|_| told += 1);
        assert_eq!((told, &restored), (4, &estimates));
        let mut broken = counts;
        broken.successors[0].count += 1;
        let refusal = Estimates::try_from(broken).unwrap_err().to_string();
        assert!(refusal.contains("stored successors"), "{refusal}");
    }
}
