//! One episode: states, actions, rewards and costs of every step.

use crate::error::{ArrayIndex, Error, Interval, Result};
use crate::shape::Shape;
use crate::table::zeros;

/// One episode of a problem of this shape. Indices are in range and numbers are finite: constructing is validating.
#[derive(Debug, Clone, PartialEq)]
pub struct Trajectory {
    shape: Shape,
    states: Vec<u32>,  // [H]
    actions: Vec<u32>, // [H]
    rewards: Vec<f64>, // [H]
    costs: Vec<f64>,   // [M, H]
}

impl Trajectory {
    /// An episode with one cost. Refuses arrays of another length than H, states and actions that do not exist, and
    /// numbers that are not finite.
    pub fn checked(
        shape: Shape,
        states: Vec<u32>,
        actions: Vec<u32>,
        rewards: Vec<f64>,
        costs: Vec<f64>,
    ) -> Result<Self> {
        Self::with_costs(shape, 1, states, actions, rewards, costs)
    }

    /// [`Trajectory::checked`] with several costs, `[M, H]`.
    pub fn with_costs(
        shape: Shape,
        num_costs: usize,
        states: Vec<u32>,
        actions: Vec<u32>,
        rewards: Vec<f64>,
        costs: Vec<f64>,
    ) -> Result<Self> {
        let horizon = shape.horizon();
        if num_costs > 1 && costs.len() != num_costs * horizon {
            return Err(Error::ShapeMismatch {
                array: "costs",
                axes: "[M, H]",
                expected: vec![num_costs, horizon],
                found: vec![costs.len()],
            });
        }
        let first_costs = if num_costs > 1 { horizon } else { costs.len() };
        let lengths = [
            ("states", states.len()),
            ("actions", actions.len()),
            ("rewards", rewards.len()),
            ("costs", first_costs),
        ];
        for (array, found) in lengths {
            if found != horizon {
                return Err(Error::ShapeMismatch {
                    array,
                    axes: "[H]",
                    expected: vec![horizon],
                    found: vec![found],
                });
            }
        }
        let indices = [
            ("states", &states, shape.num_states()),
            ("actions", &actions, shape.num_actions()),
        ];
        for (array, values, count) in indices {
            if let Some(step) = values.iter().position(|&value| value as usize >= count) {
                return Err(Error::OutOfRange {
                    place: ArrayIndex::new(array, &[step]),
                    found: f64::from(values[step]),
                    allowed: Interval::closed(0.0, (count - 1) as f64),
                });
            }
        }
        for (array, values) in [("rewards", &rewards), ("costs", &costs)] {
            if let Some(place) = values.iter().position(|value| !value.is_finite()) {
                let index = [place / horizon, place % horizon];
                let several = array == "costs" && num_costs > 1;
                return Err(Error::NotFinite {
                    place: ArrayIndex::new(array, if several { &index } else { &index[1..] }),
                    found: values[place],
                });
            }
        }
        Ok(Self {
            shape,
            states,
            actions,
            rewards,
            costs,
        })
    }

    /// An episode in state 0 with action 0 throughout, for the simulator to overwrite.
    pub fn zeros(shape: Shape, num_constraints: usize) -> Result<Self> {
        let horizon = shape.horizon();
        Ok(Self {
            shape,
            states: zeros("states [H]", horizon)?,
            actions: zeros("actions [H]", horizon)?,
            rewards: zeros("rewards [H]", horizon)?,
            costs: zeros("costs [M, H]", num_constraints * horizon)?,
        })
    }

    /// H, |S|, |A| of the problem.
    #[must_use]
    #[inline(always)]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// S_h, `[H]`.
    #[must_use]
    #[inline(always)]
    pub fn states(&self) -> &[u32] {
        &self.states
    }

    /// A_h, `[H]`.
    #[must_use]
    #[inline(always)]
    pub fn actions(&self) -> &[u32] {
        &self.actions
    }

    /// R_h, observed rewards, `[H]`.
    #[must_use]
    #[inline(always)]
    pub fn rewards(&self) -> &[f64] {
        &self.rewards
    }

    /// C_h, observed costs, `[M, H]`.
    #[must_use]
    #[inline(always)]
    pub fn costs(&self) -> &[f64] {
        &self.costs
    }

    /// The four arrays, for the simulator to write valid steps into.
    #[inline(always)]
    pub(crate) fn parts_mut(&mut self) -> TrajectoryParts<'_> {
        TrajectoryParts {
            states: &mut self.states,
            actions: &mut self.actions,
            rewards: &mut self.rewards,
            costs: &mut self.costs,
        }
    }
}

/// The arrays of a [`Trajectory`], to be written. The caller keeps the indices in range and the numbers finite.
#[derive(Debug)]
pub(crate) struct TrajectoryParts<'a> {
    pub(crate) states: &'a mut [u32],
    pub(crate) actions: &'a mut [u32],
    pub(crate) rewards: &'a mut [f64],
    pub(crate) costs: &'a mut [f64],
}
