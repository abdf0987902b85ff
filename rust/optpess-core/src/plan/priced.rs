//! Best policies for one signal minus a priced other, over data of which an episode changes H rows.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::estimate::{EmpiricalKernel, Successors};
use crate::evaluate::{PackedProblem, PackedWork, PolicyChain, STATES_PER_GROUP};
use crate::model::InitialDistribution;
use crate::plan::priced_induction::{best_for, fit, set_row};
use crate::policy::ActionTable;
use crate::shape::Shape;
use crate::table::zeros;

/// What is known of one pair (s, a) of a step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowUpdate<'a> {
    /// g_r(s, a).
    pub(crate) reward: f64,
    /// g_c(s, a).
    pub(crate) cost: f64,
    /// P(.|s, a); none at the last step.
    pub(crate) row: Successors<'a>,
}

/// Keeps a policy that is best for g_r - price g_c, and its cost.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LagrangianPlanner {
    shape: Shape,
    board: PackedProblem,
    work: PackedWork,
    found: Vec<u32>, // [H, padded], what the last induction chose
    kept: Vec<u32>,  // [H, padded], the policy kept
    /// Each (step, state) at which the last induction changed it; room for one more than there are.
    changed: Vec<[u32; 2]>,
    num_changed: usize,
    chain: PolicyChain<1>,
    /// Whether `chain` is up to date; as long as no cost is positive nobody asks it.
    chain_is_current: bool,
}

impl LagrangianPlanner {
    /// Every pair earns and costs the same and leads nowhere; the policy takes action 0.
    pub(crate) fn new(
        shape: Shape,
        reward: f64,
        cost: f64,
        kernel: &EmpiricalKernel,
    ) -> Result<Self> {
        let list_width = kernel.list_width();
        let board = PackedProblem::new(shape, list_width, |_, _| [reward, cost])?;
        let places = shape.horizon() * board.padded_states();
        Ok(Self {
            shape,
            found: zeros("actions [H, S]", places)?,
            kept: zeros("actions [H, S]", places)?,
            changed: zeros("changed actions [H, S]", places + 1)?,
            num_changed: 0,
            chain: PolicyChain::new(shape, list_width)?,
            chain_is_current: false,
            work: PackedWork::new(shape, 1)?,
            board,
        })
    }

    /// The policy kept.
    #[inline(always)]
    pub(crate) fn actions(&self) -> ActionTable<'_> {
        let changed = &self.changed[..self.num_changed];
        ActionTable::new(&self.kept, self.board.padded_states(), changed)
    }

    /// To be called before rows of `kernel` are set: it may store them in another way than before.
    #[inline(always)]
    pub(crate) fn fit(&mut self, kernel: &EmpiricalKernel) -> Result<()> {
        if fit(&mut self.board, kernel)? {
            self.chain = PolicyChain::new(self.shape, kernel.list_width())?;
            self.chain_is_current = false;
        }
        Ok(())
    }

    /// Takes in new data of one pair.
    #[inline(always)]
    pub(crate) fn set(&mut self, step: usize, state: usize, action: usize, data: RowUpdate<'_>) {
        let RowUpdate { reward, cost, row } = data;
        self.board.set_signals(step, state, action, reward, cost);
        if step + 1 < self.shape.horizon() {
            set_row(&mut self.board, step, state, action, row);
        }
        if self.chain_is_current && self.actions().at(step, state) == action {
            self.chain.set_row(step, state, row.iter(), [cost]);
        }
    }

    /// Finds and keeps the best policy for g_r - price g_c; whether it is another one than before.
    #[inline(always)]
    pub(crate) fn best_for(&mut self, price: f64) -> bool {
        best_for(&self.board, price, &mut self.work, &mut self.found);
        let padded = self.board.padded_states();
        let policies = (&self.found[..], &self.kept[..]);
        self.num_changed = changed_actions(policies, padded, &mut self.changed);
        std::mem::swap(&mut self.found, &mut self.kept);
        if self.chain_is_current {
            let (board, chain) = (&self.board, &mut self.chain);
            let changed = &self.changed[..self.num_changed];
            let actions = ActionTable::new(&self.kept, board.padded_states(), changed);
            for (step, state) in actions.changed() {
                copy_row(board, chain, step, state, actions.at(step, state));
            }
        }
        self.num_changed > 0
    }

    /// max(0, V(g_c)) of the policy kept.
    #[inline(always)]
    pub(crate) fn truncated_cost(&mut self, initial: &InitialDistribution) -> f64 {
        if !self.board.some_cost_is_positive() {
            self.chain_is_current = false;
            return 0.0; // no policy costs more
        }
        if !self.chain_is_current {
            self.rebuild_chain();
        }
        let [cost] = self.chain.evaluate(initial);
        cost.max(0.0)
    }

    #[cold]
    fn rebuild_chain(&mut self) {
        let (board, chain) = (&self.board, &mut self.chain);
        let actions = ActionTable::new(&self.kept, board.padded_states(), &[]);
        for step in 0..self.shape.horizon() {
            for state in 0..self.shape.num_states() {
                copy_row(board, chain, step, state, actions.at(step, state));
            }
        }
        self.chain_is_current = true;
    }
}

#[inline(always)]
fn copy_row(
    board: &PackedProblem,
    chain: &mut PolicyChain<1>,
    step: usize,
    state: usize,
    action: usize,
) {
    let cost = board.cost(step, state, action);
    if step + 1 < board.shape().horizon() {
        chain.set_row(step, state, board.row(step, state, action), [cost]);
    } else {
        chain.set_row(step, state, std::iter::empty(), [cost]);
    }
}

/// Writes each (step, state) at which two policies `[H, padded]` differ into `places`, and returns how many there
/// are. Which ones they are is hard to predict, so marks are collected without a branch, and then chain.
#[inline(always)]
fn changed_actions(
    (first, second): (&[u32], &[u32]),
    padded: usize,
    places: &mut [[u32; 2]],
) -> usize {
    const MARKS: usize = u64::BITS as usize;
    let (mut count, groups_a_step) = (0, (padded / STATES_PER_GROUP) as u32);
    let (first, second) = (
        first.as_chunks::<STATES_PER_GROUP>().0,
        second.as_chunks::<STATES_PER_GROUP>().0,
    );
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
            for lane in 0..STATES_PER_GROUP {
                places[count] = [step, group * STATES_PER_GROUP as u32 + lane as u32];
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
            let count = changed_actions(policies, padded as usize, &mut places);
            assert_eq!(&places[..count], &expected[..]);
        }
    }
}
