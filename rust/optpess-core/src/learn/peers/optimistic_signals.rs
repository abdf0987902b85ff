//! Optimistic reward and cost with one bonus a pair, as most of these algorithms use them.

use serde::{Deserialize, Serialize};

use crate::confidence::{OptimisticCost, OptimisticReward};
use crate::error::Result;
use crate::learn::peers::Row;
use crate::shape::Shape;
use crate::table::zeros;

/// r-hat + b, c-hat - b, and b.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct OptimisticSignals {
    pub(crate) reward: OptimisticReward,
    pub(crate) cost: OptimisticCost,
    pub(crate) bonuses: Vec<f64>, // [H, S, A]
    pairs: usize,
}

impl OptimisticSignals {
    /// Tables to be filled: every row is revised before the first plan.
    pub(crate) fn new(shape: Shape) -> Result<Self> {
        Ok(Self {
            reward: OptimisticReward::for_bounded_violation(shape, 0.0)?,
            cost: OptimisticCost::new(shape, 0.0)?,
            bonuses: zeros("bonuses [H, S, A]", shape.triples())?,
            pairs: shape.pairs(),
        })
    }

    pub(crate) fn revise(&mut self, row: &Row<'_>, bonus: f64) {
        self.reward.update(row.step, row.pair, row.reward, bonus);
        self.cost.update(row.step, row.pair, row.cost, bonus);
        self.bonuses[row.step * self.pairs + row.pair] = bonus;
    }
}
