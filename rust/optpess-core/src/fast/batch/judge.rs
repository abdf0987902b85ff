//! True values of the policies of all replicates of a batch.

use crate::error::Result;
use crate::fast::lane::{Lane, row_sums};
use crate::model::{ConstrainedMdp, Slices};
use crate::table::zeros;

/// True values of the policies of all replicates.
#[derive(Debug)]
pub(crate) struct BatchJudge<'m, V> {
    model: &'m ConstrainedMdp,
    means: Vec<[f64; 2]>, // [H, S, A], expected reward and cost
    rows: Vec<f64>,       // the true kernel, dense
    stride: usize,        // between the rows of two steps; 0 for a stationary kernel
    values: [Vec<V>; 2],  // [H + 1, S], reward and cost
    truth: [V; 2],        // V(r) and V(c)
}

impl<'m, V: Lane> BatchJudge<'m, V> {
    pub(crate) fn new(model: &'m ConstrainedMdp) -> Result<Self> {
        let (shape, kernel) = (model.shape(), model.kernel().kernel());
        let places = (shape.horizon() + 1) * shape.num_states();
        let values = || zeros::<V>("values of replicates [H + 1, S]", places);
        Ok(Self {
            model,
            means: model.means()?,
            rows: kernel.to_dense()?,
            stride: match kernel.slices() {
                Slices::Stationary => 0,
                Slices::PerStep(_) => shape.pairs(),
            },
            values: [values()?, values()?],
            truth: [V::default(); 2],
        })
    }

    /// V(r) and V(c) of each replicate's policy, as last assessed.
    #[inline(always)]
    pub(crate) fn truth(&self) -> [V; 2] {
        self.truth
    }

    /// Evaluates the policies. `S` is the number of states, or 0 if it is not known at compile time.
    #[inline(always)]
    pub(crate) fn assess<const S: usize>(&mut self, policies: &[V::Indices]) {
        let [steps, states, num_actions] = self.model.shape().sizes();
        let states = if S > 0 { S } else { states };
        for step in (0..steps).rev() {
            let [rewards, costs] = &mut self.values;
            let rewards = &mut rewards[step * states..][..2 * states];
            let costs = &mut costs[step * states..][..2 * states];
            let (reward_here, next_reward) = rewards.split_at_mut(states);
            let (cost_here, next_cost) = costs.split_at_mut(states);
            let taken = &policies[step * states..][..states];
            for (state, taken) in taken.iter().enumerate() {
                let mut values = [V::default().to_register(); 2];
                for visit in 0..V::rows_to_scan(num_actions) {
                    let (action, chosen) = V::scan_row(taken, num_actions, visit);
                    let pair = state * num_actions + action;
                    let mut own = self.means[step * states * num_actions + pair].map(V::all);
                    if step + 1 < steps {
                        let row = &self.rows[(step * self.stride + pair) * states..][..states];
                        own[0] = own[0].plus(row_sums::<S, V>(row, next_reward));
                        own[1] = own[1].plus(row_sums::<S, V>(row, next_cost));
                    }
                    for (value, own) in values.iter_mut().zip(own) {
                        V::select_into(value, chosen, own);
                    }
                }
                [reward_here[state], cost_here[state]] = values.map(V::from_register);
            }
        }
        let start = self.model.initial().data();
        let [rewards, costs] = &self.values;
        self.truth[0] = row_sums::<S, V>(start, &rewards[..states]);
        self.truth[1] = row_sums::<S, V>(start, &costs[..states]);
    }
}
