//! Counts, sums and the empirical model, kept up to date by one trajectory at a time: an episode
//! changes at most H rows.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::estimate::kernel::{EmpiricalKernel, Successors};
use crate::shape::Shape;
use crate::table::zeros;
use crate::trajectory::Trajectory;
use crate::vectorised::{Job, vectorised};

/// N_h(s,a), N_h(s,a,s') and the averages r-hat, c-hat and P-hat.
///
/// Formula: each average is a sum over max(N, 1). Citation: \[Liu21\], Eq. (3)-(5). Deviation: none;
/// r-hat and c-hat are not clipped. The state after the last step is not counted: no value uses it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Estimates {
    shape: Shape,
    visits: Vec<u32>,      // [H, S, A]
    reward_sums: Vec<f64>, // [H, S, A]
    cost_sums: Vec<f64>,   // [H, S, A]
    rewards: Vec<f64>,     // [H, S, A]
    costs: Vec<f64>,       // [H, S, A]
    kernel: EmpiricalKernel,
    /// Rows counted since their averages were last renewed, each once.
    dirty: Vec<RowIndex>, // [at most H S A]
    is_dirty: Vec<bool>, // [H, S, A]
}

/// A row and where it is, so that nobody has to divide to find out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct RowIndex {
    row: u32,
    step: u32,
    state: u32,
    action: u32,
}

impl Estimates {
    /// Nothing observed yet.
    pub fn new(shape: Shape) -> Result<Self> {
        Self::with_kernel(shape, EmpiricalKernel::new(shape, false)?)
    }

    /// Nothing observed yet; the rows of P-hat are kept in full, however many states there are.
    pub fn in_full(shape: Shape) -> Result<Self> {
        Self::with_kernel(shape, EmpiricalKernel::new(shape, true)?)
    }

    fn with_kernel(shape: Shape, kernel: EmpiricalKernel) -> Result<Self> {
        let table = || zeros("estimates [H, S, A]", shape.triples());
        Ok(Self {
            shape,
            visits: zeros("visits [H, S, A]", shape.triples())?,
            reward_sums: table()?,
            cost_sums: table()?,
            rewards: table()?,
            costs: table()?,
            kernel,
            dirty: Vec::with_capacity(shape.horizon()),
            is_dirty: zeros("marks [H, S, A]", shape.triples())?,
        })
    }

    /// H, |S|, |A|.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// N_h(s,a), `[H, S, A]`.
    #[must_use]
    pub fn visits(&self) -> &[u32] {
        &self.visits
    }

    /// The sums behind r-hat and c-hat, `[H, S, A]`.
    pub(crate) fn sums(&self) -> (&[f64], &[f64]) {
        (&self.reward_sums, &self.cost_sums)
    }

    /// r-hat, `[H, S, A]`.
    #[must_use]
    pub fn rewards(&self) -> &[f64] {
        &self.rewards
    }

    /// c-hat, `[H, S, A]`.
    #[must_use]
    pub fn costs(&self) -> &[f64] {
        &self.costs
    }

    /// P-hat and N_h(s,a,s').
    #[must_use]
    pub fn kernel(&self) -> &EmpiricalKernel {
        &self.kernel
    }

    /// Takes one episode in and tells `changed` of every row that changed. The trajectory's first cost
    /// is the one counted.
    #[inline]
    pub fn update(
        &mut self,
        seen: &Trajectory,
        changed: impl FnMut(RowEstimate<'_>),
    ) -> Result<()> {
        self.count(seen)?;
        self.renew(changed);
        Ok(())
    }

    /// The first half of [`Estimates::update`]: counts and sums. Averages and P-hat lag behind until
    /// [`Estimates::renew`].
    #[inline(always)]
    pub fn count(&mut self, seen: &Trajectory) -> Result<()> {
        let (horizon, pairs) = (self.shape.horizon(), self.shape.pairs());
        let places = seen.states[..horizon].iter().zip(&seen.actions[..horizon]);
        let numbers = seen.rewards[..horizon].iter().zip(&seen.costs[..horizon]);
        let mut next_states = seen.states[1..horizon].iter();
        for (step, ((&state, &action), (reward, cost))) in places.zip(numbers).enumerate() {
            let row = step * pairs + self.shape.pair(state as usize, action as usize);
            if let Some(&next_state) = next_states.next() {
                self.kernel.count(row, next_state as usize)?;
            }
            self.visits[row] += 1;
            self.reward_sums[row] += reward;
            self.cost_sums[row] += cost;
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
        Ok(())
    }

    /// The second half: renews the averages of every row counted since the last time, and tells
    /// `changed` of each.
    #[inline]
    pub fn renew(&mut self, changed: impl FnMut(RowEstimate<'_>)) {
        self.renew_for(Told(changed));
    }

    /// [`Estimates::renew`] for a reader.
    #[inline]
    pub(crate) fn renew_for(&mut self, reader: impl RowListener) {
        vectorised(Renewal {
            estimates: self,
            reader,
        });
    }

    #[inline(always)]
    fn renew_row(&mut self, place: RowIndex) -> RowEstimate<'_> {
        let (row, step) = (place.row as usize, place.step as usize);
        let (state, action) = (place.state as usize, place.action as usize);
        let pair = self.shape.pair(state, action);
        let visits = self.visits[row];
        let count = f64::from(visits);
        self.rewards[row] = self.reward_sums[row] / count;
        self.costs[row] = self.cost_sums[row] / count;
        let mut successors = Successors::NONE;
        if step + 1 < self.shape.horizon() {
            self.kernel.renew(row, count);
            successors = self.kernel.row(step, pair);
        }
        RowEstimate {
            step,
            state,
            action,
            pair,
            visits,
            reward: self.rewards[row],
            cost: self.costs[row],
            successors,
        }
    }
}

/// Is told of every row that changed. Compilers do not always lay a closure out inside the loop that calls
/// it; a method that is marked as `#[inline(always)]` they do.
pub(crate) trait RowListener {
    /// Called once for each row.
    fn changed(&mut self, row: RowEstimate<'_>);
}

struct Told<F>(F);

impl<F: FnMut(RowEstimate<'_>)> RowListener for Told<F> {
    #[inline(always)]
    fn changed(&mut self, row: RowEstimate<'_>) {
        (self.0)(row);
    }
}

struct Renewal<'a, R> {
    estimates: &'a mut Estimates,
    reader: R,
}

impl<R: RowListener> Job for Renewal<'_, R> {
    type Output = ();

    #[inline(always)]
    fn run(mut self) {
        for index in 0..self.estimates.dirty.len() {
            let place = self.estimates.dirty[index];
            self.estimates.is_dirty[place.row as usize] = false;
            self.reader.changed(self.estimates.renew_row(place));
        }
        self.estimates.dirty.clear();
    }
}

/// What an episode changed at one step.
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
    pub visits: u32,
    /// r-hat_h(s,a).
    pub reward: f64,
    /// c-hat_h(s,a).
    pub cost: f64,
    /// P-hat_h(.|s,a); none at the last step.
    pub successors: Successors<'a>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn episode(
        states: [u32; 2],
        actions: [u32; 2],
        rewards: [f64; 2],
        costs: [f64; 2],
    ) -> Trajectory {
        Trajectory {
            states: states.to_vec(),
            actions: actions.to_vec(),
            rewards: rewards.to_vec(),
            costs: costs.to_vec(),
        }
    }

    #[test]
    fn rows_never_visited_stay_zero_and_visited_ones_are_averages() {
        let mut estimates = Estimates::new(Shape::new(2, 2, 1).unwrap()).unwrap();
        let mut changed = Vec::new();
        estimates
            .update(&episode([0, 1], [0, 0], [1.0, 0.0], [0.5, 1.0]), |row| {
                changed.push((row.step, row.pair, row.visits, row.reward, row.cost));
            })
            .unwrap();
        assert_eq!(changed, [(0, 0, 1, 1.0, 0.5), (1, 1, 1, 0.0, 1.0)]);
        estimates
            .update(&episode([0, 0], [0, 0], [0.0, 1.0], [0.0, 0.0]), |_| {})
            .unwrap();
        assert_eq!(estimates.visits(), &[2, 0, 1, 1]);
        let row = |pair| estimates.kernel().row(0, pair);
        assert_eq!(row(0), Successors::Full(&[0.5, 0.5]));
        assert_eq!(row(1), Successors::Full(&[0.0, 0.0]));
        assert_eq!(estimates.rewards(), &[0.5, 0.0, 1.0, 0.0]);
    }
}
