//! Best policies for one signal minus a priced other, over data of which an episode changes H rows.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::estimate::{EmpiricalKernel, Successors};
use crate::evaluate::{Board, BoardWork, Followed, GROUP};
use crate::model::InitialDistribution;
use crate::plan::priced_induction::{best_for, fit, set_row};
use crate::policy::Actions;
use crate::shape::Shape;
use crate::table::zeros;

/// What is known of one pair (s, a) of a step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PairData<'a> {
    /// g_r(s, a).
    pub(crate) reward: f64,
    /// g_c(s, a).
    pub(crate) cost: f64,
    /// P(.|s, a); none at the last step.
    pub(crate) row: Successors<'a>,
}

/// Keeps a policy that is best for g_r - price g_c, and its cost.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PricedPlanner {
    shape: Shape,
    board: Board,
    work: BoardWork,
    found: Vec<u32>, // [H, padded], what the last induction chose
    kept: Vec<u32>,  // [H, padded], the policy kept
    /// Each (step, state) at which the last induction changed it; room for one more than there are.
    changed: Vec<[u32; 2]>,
    num_changed: usize,
    followed: Followed<1>,
    /// Whether `followed` is up to date; as long as no cost is positive nobody asks it.
    following: bool,
}

impl PricedPlanner {
    /// Every pair earns and costs the same and leads nowhere; the policy takes action 0.
    pub(crate) fn new(
        shape: Shape,
        reward: f64,
        cost: f64,
        kernel: &EmpiricalKernel,
    ) -> Result<Self> {
        let list_width = kernel.list_width();
        let board = Board::new(shape, list_width, |_, _| [reward, cost])?;
        let places = shape.horizon() * board.padded_states();
        Ok(Self {
            shape,
            found: zeros("actions [H, S]", places)?,
            kept: zeros("actions [H, S]", places)?,
            changed: zeros("changed actions [H, S]", places + 1)?,
            num_changed: 0,
            followed: Followed::new(shape, list_width)?,
            following: false,
            work: BoardWork::new(shape, 1)?,
            board,
        })
    }

    /// The policy kept.
    #[inline(always)]
    pub(crate) fn actions(&self) -> Actions<'_> {
        let changed = &self.changed[..self.num_changed];
        Actions::new(&self.kept, self.board.padded_states(), changed)
    }

    /// To be called before rows of `kernel` are set: it may store them in another way than before.
    #[inline(always)]
    pub(crate) fn fit(&mut self, kernel: &EmpiricalKernel) -> Result<()> {
        if fit(&mut self.board, kernel)? {
            self.followed = Followed::new(self.shape, kernel.list_width())?;
            self.following = false;
        }
        Ok(())
    }

    /// Takes in new data of one pair.
    #[inline(always)]
    pub(crate) fn set(&mut self, step: usize, state: usize, action: usize, data: PairData<'_>) {
        let PairData { reward, cost, row } = data;
        self.board.set_signals(step, state, action, reward, cost);
        if step + 1 < self.shape.horizon() {
            set_row(&mut self.board, step, state, action, row);
        }
        if self.following && self.actions().at(step, state) == action {
            self.followed.follow(step, state, row.iter(), [cost]);
        }
    }

    /// Finds and keeps the best policy for g_r - price g_c; whether it is another one than before.
    #[inline(always)]
    pub(crate) fn best_for(&mut self, price: f64) -> bool {
        best_for(&self.board, price, &mut self.work, &mut self.found);
        let padded = self.board.padded_states();
        let policies = (&self.found[..], &self.kept[..]);
        self.num_changed = places_that_differ(policies, padded, &mut self.changed);
        std::mem::swap(&mut self.found, &mut self.kept);
        if self.following {
            let (board, followed) = (&self.board, &mut self.followed);
            let changed = &self.changed[..self.num_changed];
            let actions = Actions::new(&self.kept, board.padded_states(), changed);
            for (step, state) in actions.changed() {
                follow(board, followed, step, state, actions.at(step, state));
            }
        }
        self.num_changed > 0
    }

    /// max(0, V(g_c)) of the policy kept.
    #[inline(always)]
    pub(crate) fn truncated_cost(&mut self, initial: &InitialDistribution) -> f64 {
        if !self.board.some_cost_is_positive() {
            self.following = false;
            return 0.0; // no policy costs more
        }
        if !self.following {
            self.follow_anew();
        }
        let [cost] = self.followed.evaluate(initial);
        cost.max(0.0)
    }

    #[cold]
    fn follow_anew(&mut self) {
        let (board, followed) = (&self.board, &mut self.followed);
        let actions = Actions::new(&self.kept, board.padded_states(), &[]);
        for step in 0..self.shape.horizon() {
            for state in 0..self.shape.num_states() {
                follow(board, followed, step, state, actions.at(step, state));
            }
        }
        self.following = true;
    }
}

#[inline(always)]
fn follow(board: &Board, followed: &mut Followed<1>, step: usize, state: usize, action: usize) {
    let cost = board.cost(step, state, action);
    if step + 1 < board.shape().horizon() {
        followed.follow(step, state, board.row(step, state, action), [cost]);
    } else {
        followed.follow(step, state, std::iter::empty(), [cost]);
    }
}

/// Writes each (step, state) at which two policies `[H, padded]` differ into `places`, and returns how many there
/// are. Which ones they are is hard to predict, so marks are collected without a branch, and then followed.
#[inline(always)]
fn places_that_differ(
    (first, second): (&[u32], &[u32]),
    padded: usize,
    places: &mut [[u32; 2]],
) -> usize {
    const MARKS: usize = u64::BITS as usize;
    let (mut count, groups_a_step) = (0, (padded / GROUP) as u32);
    let (first, second) = (first.as_chunks::<GROUP>().0, second.as_chunks::<GROUP>().0);
    let parts = first.chunks(MARKS).zip(second.chunks(MARKS));
    for (part, (first, second)) in parts.enumerate() {
        let mut marks = 0_u64;
        for (place, (a, b)) in first.iter().zip(second).enumerate() {
            marks |= u64::from(a != b) << place;
        }
        while marks != 0 {
            let place = marks.trailing_zeros();
            marks &= marks - 1;
            let (a, b) = (&first[place as usize], &second[place as usize]);
            let group = (part * MARKS) as u32 + place;
            let (step, group) = (group / groups_a_step, group % groups_a_step);
            for lane in 0..GROUP {
                places[count] = [step, group * GROUP as u32 + lane as u32];
                count += usize::from(a[lane] != b[lane]);
            }
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_that_differs_is_found_in_order() {
        let (steps, padded) = (30, 12);
        let first: Vec<u32> = (0..steps * padded).map(|place| place % 3).collect();
        for stride in [1, 2, 7, 45, 359] {
            let mut second = first.clone();
            let mut expected = Vec::new();
            for place in (stride - 1..steps * padded).step_by(stride as usize) {
                second[place as usize] += 1;
                expected.push([place / padded, place % padded]);
            }
            let mut places = vec![[0; 2]; (steps * padded) as usize + 1];
            let policies = (&first[..], &second[..]);
            let count = places_that_differ(policies, padded as usize, &mut places);
            assert_eq!(&places[..count], &expected[..]);
        }
    }
}
