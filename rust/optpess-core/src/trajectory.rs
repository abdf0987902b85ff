//! Owns the plain observations of one episode. Refuses to know who made them.

use crate::error::Result;
use crate::lanes::Lane;
use crate::shape::Shape;
use crate::table::zeros;

/// What was seen in one episode; re-used from episode to episode.
#[derive(Debug, Clone, PartialEq)]
pub struct Trajectory {
    /// S_h, `[H]`.
    pub states: Vec<u32>,
    /// A_h, `[H]`.
    pub actions: Vec<u32>,
    /// R_h, observed rewards, `[H]`.
    pub rewards: Vec<f64>,
    /// C_h, observed costs, `[M, H]`.
    pub costs: Vec<f64>,
}

impl Trajectory {
    /// Room for one episode of a problem with this shape and number of costs.
    pub fn new(shape: Shape, num_constraints: usize) -> Result<Self> {
        let horizon = shape.horizon();
        Ok(Self {
            states: zeros("states [H]", horizon)?,
            actions: zeros("actions [H]", horizon)?,
            rewards: zeros("rewards [H]", horizon)?,
            costs: zeros("costs [M, H]", num_constraints * horizon)?,
        })
    }
}

/// What was seen in one episode of one replicate or of several side by side, of a problem with one cost.
#[derive(Debug, Clone)]
pub(crate) struct BatchTrajectory<V: Lane> {
    /// S_h, `[H]`.
    pub(crate) states: Vec<V::Indices>,
    /// (S_h, A_h) as an index within the step, `[H]`.
    pub(crate) pairs: Vec<V::Indices>,
    /// R_h, `[H]`.
    pub(crate) rewards: Vec<V>,
    /// C_h, `[H]`.
    pub(crate) costs: Vec<V>,
}

impl<V: Lane> BatchTrajectory<V> {
    /// Room for one episode of a problem with this shape.
    pub(crate) fn new(shape: Shape) -> Result<Self> {
        let horizon = shape.horizon();
        Ok(Self {
            states: zeros("states [H]", horizon)?,
            pairs: zeros("pairs [H]", horizon)?,
            rewards: zeros("rewards [H]", horizon)?,
            costs: zeros("costs [H]", horizon)?,
        })
    }
}
