//! Which actions exist in which states, and what stands in for the others.
//!
//! An action that does not exist in a state *stands in for* the lowest action that does: it has the same transitions,
//! rewards and costs. The problem is then one in which several numbers name the same action, and everything that is true
//! of problems is true of it: its optimum is that over the actions that exist, and a policy keeps its values if the
//! probability of an action that does not exist is moved to the one it stands in for.

use serde::{Deserialize, Serialize};

use crate::error::{ArrayIndex, Error, Result};
use crate::policy::MarkovPolicy;
use crate::shape::Shape;
use crate::trajectory::Trajectory;

/// The actions of each state, of which every state has at least one; and the action that each missing one stands in for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "(usize, Vec<bool>)", try_from = "(usize, Vec<bool>)")]
pub struct StandIns {
    num_actions: usize,
    exists: Vec<bool>,      // [S, A]
    lowest: Vec<u32>,       // [S], the lowest action that exists
    missing: Vec<Vec<u32>>, // [S] lists of actions, ascending
}

impl From<StandIns> for (usize, Vec<bool>) {
    fn from(actions: StandIns) -> Self {
        (actions.num_actions, actions.exists)
    }
}

/// A stored mask is checked as a given one is.
impl TryFrom<(usize, Vec<bool>)> for StandIns {
    type Error = Error;

    fn try_from((num_actions, exists): (usize, Vec<bool>)) -> Result<Self> {
        let num_states = exists.len() / num_actions.max(1);
        Self::new(Shape::new(1, num_states, num_actions)?, exists)
    }
}

impl StandIns {
    /// From a mask `[S, A]`, true where the action exists. Refuses a mask of another size and a state without an action.
    pub fn new(shape: Shape, exists: Vec<bool>) -> Result<Self> {
        let num_actions = shape.num_actions();
        if exists.len() != shape.pairs() {
            return Err(mismatch(shape, vec![exists.len()]));
        }
        let (mut lowest, mut missing) = (Vec::new(), Vec::new());
        for (state, row) in exists.chunks_exact(num_actions).enumerate() {
            let Some(action) = row.iter().position(|&exists| exists) else {
                return Err(Error::NoActionExists {
                    place: ArrayIndex::new("actions", &[state]),
                });
            };
            lowest.push(action as u32);
            let others = (0_u32..).zip(row).filter(|(_, exists)| !**exists);
            missing.push(others.map(|(action, _)| action).collect());
        }
        Ok(Self {
            num_actions,
            exists,
            lowest,
            missing,
        })
    }

    /// Whether every action exists in every state.
    #[must_use]
    pub fn all_exist(&self) -> bool {
        self.exists.iter().all(|&exists| exists)
    }

    /// Whether the action exists in the state.
    #[must_use]
    #[inline(always)]
    pub fn exists(&self, state: usize, action: usize) -> bool {
        self.exists[state * self.num_actions + action]
    }

    /// The action itself if it exists in the state, else the one it stands in for.
    #[must_use]
    #[inline(always)]
    pub fn of(&self, state: usize, action: u32) -> u32 {
        if self.exists(state, action as usize) {
            action
        } else {
            self.lowest[state]
        }
    }

    /// The actions that do not exist in the state and stand in for this one, ascending.
    #[must_use]
    #[inline(always)]
    pub fn standing_in_for(&self, state: usize, action: u32) -> &[u32] {
        if self.lowest[state] == action {
            &self.missing[state]
        } else {
            &[]
        }
    }

    /// Refuses a problem with other numbers of states and actions.
    pub fn check_shape(&self, shape: Shape) -> Result<()> {
        if [self.lowest.len(), self.num_actions] == shape.sizes()[1..] {
            return Ok(());
        }
        Err(mismatch(shape, vec![self.lowest.len(), self.num_actions]))
    }

    /// Refuses a policy that plays an action that does not exist. The shapes must agree.
    pub fn check_policy(&self, name: &'static str, policy: &MarkovPolicy) -> Result<()> {
        let shape = policy.shape();
        for (row, &found) in policy.data().iter().enumerate() {
            let [step, state, action] = shape.triple_index(row);
            if found > 0.0 && !self.exists(state, action) {
                let place = ArrayIndex::new(name, &[step, state, action]);
                return Err(self.no_such_action(place, found, state, action));
            }
        }
        Ok(())
    }

    /// Refuses an episode in which an action was played that does not exist. The shapes must agree.
    pub fn check_episode(&self, seen: &Trajectory) -> Result<()> {
        for (step, (&state, &action)) in seen.states().iter().zip(seen.actions()).enumerate() {
            let (state, action) = (state as usize, action as usize);
            if !self.exists(state, action) {
                let place = ArrayIndex::new("actions", &[step]);
                return Err(self.no_such_action(place, action as f64, state, action));
            }
        }
        Ok(())
    }

    fn no_such_action(&self, place: ArrayIndex, found: f64, state: usize, action: usize) -> Error {
        let all = 0..self.num_actions;
        Error::NoSuchAction {
            place,
            found,
            action,
            state,
            existing: all.filter(|&other| self.exists(state, other)).collect(),
        }
    }

    /// Moves the probability of actions that do not exist to those they stand in for. Rows without such a probability
    /// keep their bits.
    pub fn fold(&self, policy: &mut MarkovPolicy) {
        for step in 0..policy.shape().horizon() {
            for (state, missing) in self.missing.iter().enumerate() {
                let row = policy.row_mut(step, state);
                for &action in missing {
                    let moved = std::mem::take(&mut row[action as usize]);
                    row[self.lowest[state] as usize] += moved;
                }
            }
        }
    }

    /// [`StandIns::fold`] for the actions of a deterministic policy, `[H, S]`.
    pub fn fold_actions(&self, actions: &mut [u32]) {
        for step in actions.chunks_exact_mut(self.lowest.len()) {
            for (state, action) in step.iter_mut().enumerate() {
                *action = self.of(state, *action);
            }
        }
    }

    /// Gives the rows of actions that do not exist the entries of those they stand in for, in a table `[..., S, A, width]`.
    pub fn copy_rows<T: Clone>(&self, table: &mut [T], width: usize) {
        self.each_missing(table.len(), width, |own, source| {
            for entry in 0..width {
                table[own + entry] = table[source + entry].clone();
            }
        });
    }

    /// Sets the rows of actions that do not exist to zero, in a table `[..., S, A, width]`.
    pub fn clear_rows<T: Default>(&self, table: &mut [T], width: usize) {
        self.each_missing(table.len(), width, |own, _| {
            table[own..][..width].fill_with(T::default);
        });
    }

    /// Calls `visit` with the start of each missing row in a table of this length, and that of the row it stands in for.
    fn each_missing(&self, length: usize, width: usize, mut visit: impl FnMut(usize, usize)) {
        let slice = self.exists.len() * width;
        for start in (0..length).step_by(slice.max(1)) {
            for (state, missing) in self.missing.iter().enumerate() {
                let place =
                    |action: u32| start + (state * self.num_actions + action as usize) * width;
                for &action in missing {
                    visit(place(action), place(self.lowest[state]));
                }
            }
        }
    }
}

fn mismatch(shape: Shape, found: Vec<usize>) -> Error {
    Error::ShapeMismatch {
        array: "actions",
        axes: "[S, A]",
        expected: shape.sizes()[1..].to_vec(),
        found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two steps, two states, three actions; state 0 lacks action 0, state 1 lacks 1 and 2.
    fn example() -> (Shape, StandIns) {
        let shape = Shape::new(2, 2, 3).unwrap();
        let mask = vec![false, true, true, true, false, false];
        (shape, StandIns::new(shape, mask).unwrap())
    }

    #[test]
    fn a_missing_action_stands_in_for_the_lowest_that_exists() {
        let (_, actions) = example();
        let all = [0, 1, 2];
        assert_eq!(all.map(|action| actions.of(0, action)), [1, 1, 2]);
        assert_eq!(all.map(|action| actions.of(1, action)), [0, 0, 0]);
        assert_eq!(actions.standing_in_for(0, 1), [0]);
        assert!(actions.standing_in_for(0, 2).is_empty());
        assert_eq!(actions.standing_in_for(1, 0), [1, 2]);
        assert!(!actions.all_exist());
    }

    #[test]
    fn folding_moves_the_probability_and_leaves_distributions() {
        let (shape, actions) = example();
        let mut policy = MarkovPolicy::uniform(shape).unwrap();
        actions.fold(&mut policy);
        let third = 1.0 / 3.0;
        assert_eq!(policy.row(1, 0), [0.0, third + third, third]);
        assert_eq!(policy.row(1, 1), [third + third + third, 0.0, 0.0]);
        actions.check_policy("policy", &policy).unwrap();
        let again = policy.clone();
        actions.fold(&mut policy);
        assert_eq!(policy, again);
        let mut table = [0, 2, 2, 1];
        actions.fold_actions(&mut table);
        assert_eq!(table, [1, 0, 2, 0]);
    }

    #[test]
    fn rows_are_copied_in_every_slice_of_a_table_and_cleared() {
        let (_, actions) = example();
        let mut table: Vec<u32> = (0..24).collect();
        actions.copy_rows(&mut table, 2);
        let first = [2, 3, 2, 3, 4, 5, 6, 7, 6, 7, 6, 7];
        let second = first.map(|entry| entry + 12);
        assert_eq!(table, [first, second].concat());
        actions.clear_rows(&mut table, 2);
        assert_eq!(table[..12], [0, 0, 2, 3, 4, 5, 6, 7, 0, 0, 0, 0]);
    }

    #[test]
    fn a_stored_mask_is_restored_and_a_damaged_one_refused() {
        let (_, actions) = example();
        let stored: (usize, Vec<bool>) = actions.clone().into();
        assert_eq!(StandIns::try_from(stored), Ok(actions));
        for damaged in [
            (3, vec![true; 5]),
            (0, vec![true; 6]),
            (3, vec![false; 6]),
            (3, vec![]),
        ] {
            StandIns::try_from(damaged).unwrap_err();
        }
    }
}
