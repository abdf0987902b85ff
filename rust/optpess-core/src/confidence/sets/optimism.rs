//! Optimistic rewards, costs and kernels for exploration. No guarantee rests on them.
//!
//! The sets are those of the Beta mixture with the threshold t = ln(1/alpha) as it is, for one sequence and not for all
//! of them together: t = 1 explores better than smaller and larger numbers (docs/mixing.md). A row that was never visited
//! stays fully optimistic; scaling a bonus would not keep that.

use crate::confidence::sets::{BetaMixture, KernelBox};
use crate::error::Result;
use crate::estimate::Tally;
use crate::knowledge::Knowledge;
use crate::number::from_count;
use crate::table::Signal;

/// Upper ends of rewards, lower ends of costs, boxes of transitions. Rebuilt from counts; not stored.
#[derive(Debug, Clone)]
pub struct OptimisticSets {
    sequence: BetaMixture,
    kernels: KernelBox,
    reward: Vec<f64>,     // [rows]
    costs: Vec<Vec<f64>>, // [M][rows]
}

impl OptimisticSets {
    /// Sets of rows that were never visited.
    pub fn new(tally: &Tally, threshold: f64) -> Result<Self> {
        let shape = tally.shape();
        let rows = tally.num_rows();
        Ok(Self {
            sequence: BetaMixture::from_threshold(threshold, 0.0)?,
            kernels: if tally.is_pooled() {
                KernelBox::pooled(shape)?
            } else {
                KernelBox::everything(shape)?
            },
            reward: vec![1.0; rows],
            costs: vec![vec![0.0; rows]; tally.num_costs()],
        })
    }

    /// Renews the sets of a row from its counts.
    pub fn refresh(&mut self, row: usize, tally: &Tally, knowledge: &Knowledge) {
        let (step, pair) = tally.place(row);
        let visits = from_count(tally.visits(row));
        let clip = |sum: f64| sum.clamp(0.0, visits); // unbounded noise can leave the range
        let known = knowledge
            .rewards
            .as_ref()
            .map(|reward| reward.step(step)[pair]);
        self.reward[row] =
            known.unwrap_or_else(|| self.sequence.upper(visits, clip(tally.reward_sum(row))));
        for (constraint, cost) in self.costs.iter_mut().enumerate() {
            let known = knowledge
                .costs
                .as_ref()
                .map(|costs| costs[constraint].step(step)[pair]);
            let sum = clip(tally.cost_sum(row, constraint));
            cost[row] = known.unwrap_or_else(|| self.sequence.lower(visits, sum));
        }
        if tally.is_last(row) {
            return;
        }
        let states = tally.shape().num_states() as u32;
        let draws = from_count(tally.draws(row));
        let support = knowledge.support.as_ref();
        let support = support.map(|support| support.successors(step, pair));
        let unseen = self.sequence.upper(draws, 0.0);
        let mut seen = tally.successors(row).iter().peekable();
        let (sequence, mut allowed) = (self.sequence, support.map(|list| list.iter().peekable()));
        let only = support.is_some_and(|list| list.len() == 1);
        let ends = (0..states).map(|state| {
            let possible = allowed
                .as_mut()
                .is_none_or(|list| list.next_if_eq(&&state).is_some());
            match seen.next_if(|(other, _)| *other == state) {
                _ if possible && only => [1.0, 1.0],
                Some(&(_, count)) => sequence.interval(draws, from_count(count)).into(),
                None if possible => [0.0, unseen],
                None => [0.0, 0.0],
            }
        });
        self.kernels.set_ends(step, pair, ends);
    }

    /// The plausible kernels.
    #[must_use]
    pub fn kernels(&self) -> &KernelBox {
        &self.kernels
    }

    /// The optimistic reward.
    pub fn reward(&self, tally: &Tally) -> Result<Signal> {
        tally.signal("an optimistic reward", |row| self.reward[row])
    }

    /// sum_m y_m c_m with optimistic costs, for weights y.
    pub fn weighted_cost(&self, tally: &Tally, weights: &[f64]) -> Result<Signal> {
        tally.signal("an optimistic cost", |row| {
            let costs = self.costs.iter().zip(weights);
            costs.map(|(cost, weight)| weight * cost[row]).sum()
        })
    }
}
