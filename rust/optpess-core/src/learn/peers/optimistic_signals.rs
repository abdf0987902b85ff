//! The optimistic signals of most of these algorithms, with one bonus a pair, on the estimated kernel or on all
//! plausible ones.

use serde::{Deserialize, Serialize};

use crate::confidence::{KernelBox, OptimisticCost, OptimisticReward, PeerRadii};
use crate::error::Result;
use crate::estimate::EmpiricalKernel;
use crate::estimate::RowEstimate;
use crate::learn::BiasedSignals;
use crate::learn::peers::PeerExperience;
use crate::plan::{Extended, PlanningProblem};
use crate::shape::Shape;
use crate::table::zeros;

/// r-hat + b, c-hat - b, and b.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct OptimisticSignals {
    pub(crate) reward: OptimisticReward,
    pub(crate) cost: OptimisticCost,
    bonuses: Vec<f64>, // [H, S, A]
    pairs: usize,
}

impl OptimisticSignals {
    /// Empty tables: every row is updated before the first plan.
    pub(crate) fn new(shape: Shape) -> Result<Self> {
        Ok(Self {
            reward: OptimisticReward::for_bounded_violation(shape, 0.0)?,
            cost: OptimisticCost::new(shape, 0.0)?,
            bonuses: zeros("bonuses [H, S, A]", shape.triples())?,
            pairs: shape.pairs(),
        })
    }

    /// Whether stored tables are those of a problem of this shape.
    pub(crate) fn fits(&self, shape: Shape) -> Result<bool> {
        let fresh = Self::new(shape)?;
        Ok(self.reward == fresh.reward
            && self.cost == fresh.cost
            && self.bonuses.len() == fresh.bonuses.len()
            && self.pairs == fresh.pairs)
    }

    pub(crate) fn update_row(&mut self, row: &RowEstimate<'_>, bonus: f64) {
        self.reward.update(row, bonus);
        self.cost.update(row, bonus);
        self.bonuses[row.step * self.pairs + row.pair] = bonus;
    }

    /// The problem on the estimated kernel.
    pub(crate) fn on_estimates<'a>(
        &'a self,
        known: &'a PeerExperience,
    ) -> PlanningProblem<'a, OptimisticReward, OptimisticCost, EmpiricalKernel> {
        PlanningProblem {
            shape: known.shape(),
            reward: &self.reward,
            cost: &self.cost,
            kernel: known.kernel(),
            initial: known.initial(),
        }
    }

    pub(crate) fn signals(&self) -> BiasedSignals<'_> {
        BiasedSignals::new(
            Some(self.reward.signal()),
            self.cost.signal(),
            self.bonuses.clone(),
        )
    }
}

/// r-hat + b_o, c-hat - b_o, and the kernels within b_p of P-hat.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Plausible {
    pub(crate) signals: OptimisticSignals,
    kernels: KernelBox,
}

impl Plausible {
    /// Empty tables: every row is updated before the first plan.
    pub(crate) fn new(shape: Shape) -> Result<Self> {
        Ok(Self {
            signals: OptimisticSignals::new(shape)?,
            kernels: KernelBox::everything(shape)?,
        })
    }

    /// Whether stored tables are those of a problem of this shape.
    pub(crate) fn fits(&self, shape: Shape) -> Result<bool> {
        Ok(self.signals.fits(shape)? && self.kernels.fits(shape))
    }

    pub(crate) fn update_row(&mut self, row: &RowEstimate<'_>, radii: &PeerRadii) {
        self.update_row_with(row, radii.observation(row.visits), |frequency| {
            radii.successor(row.visits, frequency)
        });
    }

    /// The same with other radii: of the signals, and of a successor with this frequency.
    pub(crate) fn update_row_with(
        &mut self,
        row: &RowEstimate<'_>,
        observation: f64,
        successor: impl Fn(f64) -> f64,
    ) {
        self.signals.update_row(row, observation);
        if !row.successors.in_full().is_empty() {
            let radius = |_, frequency| successor(frequency);
            self.kernels
                .set_row(row.step, row.pair, row.successors.in_full(), radius);
        }
    }

    /// The plausible kernels.
    pub(crate) fn kernels(&self) -> &KernelBox {
        &self.kernels
    }

    /// The problem over policies and plausible kernels.
    pub(crate) fn problem<'a>(
        &'a self,
        known: &'a PeerExperience,
    ) -> Extended<'a, OptimisticReward, OptimisticCost> {
        Extended {
            reward: &self.signals.reward,
            cost: &self.signals.cost,
            kernels: &self.kernels,
            initial: known.initial(),
        }
    }
}
