//! One episode of each replicate of a batch.

use crate::error::Result;
use crate::fast::lane::Lane;
use crate::shape::Shape;
use crate::table::zeros;

/// The observations of one episode of each replicate, of a problem with one cost.
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
    /// Arrays for one episode of a problem of this shape, to be overwritten.
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
