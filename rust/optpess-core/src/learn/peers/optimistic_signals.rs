//! What most of these algorithms plan with: optimistic signals with one bonus a pair, on the estimated
//! kernel or on all plausible ones.

use serde::{Deserialize, Serialize};

use crate::confidence::{OptimisticCost, OptimisticReward, PeerRadii};
use crate::error::Result;
use crate::estimate::EmpiricalKernel;
use crate::learn::peers::{Biased, Known, Row};
use crate::plan::{Extended, KernelBox, PlanningProblem};
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

    /// The problem on the estimated kernel.
    pub(crate) fn on_estimates<'a>(
        &'a self,
        known: &'a Known,
    ) -> PlanningProblem<'a, OptimisticReward, OptimisticCost, EmpiricalKernel> {
        PlanningProblem {
            shape: known.shape,
            reward: &self.reward,
            cost: &self.cost,
            kernel: known.estimates.kernel(),
            initial: &known.initial,
        }
    }

    pub(crate) fn biased(&self) -> Biased<'_> {
        Biased {
            reward: self.reward.signal(),
            cost: self.cost.signal(),
            bonuses: &self.bonuses,
        }
    }
}

/// r-hat + b_o, c-hat - b_o, and the kernels within b_p of P-hat.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Plausible {
    pub(crate) signals: OptimisticSignals,
    kernels: KernelBox,
}

impl Plausible {
    /// Tables to be filled: every row is revised before the first plan.
    pub(crate) fn new(shape: Shape) -> Result<Self> {
        Ok(Self {
            signals: OptimisticSignals::new(shape)?,
            kernels: KernelBox::everything(shape)?,
        })
    }

    pub(crate) fn revise(&mut self, row: &Row<'_>, radii: &PeerRadii) {
        self.signals.revise(row, radii.observation(row.visits));
        if !row.frequencies.is_empty() {
            let radius = |_, frequency| radii.successor(row.visits, frequency);
            self.kernels
                .set_row(row.step, row.pair, row.frequencies, radius);
        }
    }

    /// The problem over policies and plausible kernels.
    pub(crate) fn problem<'a>(
        &'a self,
        known: &'a Known,
    ) -> Extended<'a, OptimisticReward, OptimisticCost> {
        Extended {
            reward: &self.signals.reward,
            cost: &self.signals.cost,
            kernels: &self.kernels,
            initial: &known.initial,
        }
    }
}
