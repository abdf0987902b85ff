//! The Markov policy of a mixture of two deterministic ones, read off their occupancies.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::model::{InitialDistribution, StepKernel};
use crate::plan::tradeoff::Vertex;
use crate::policy::MarkovPolicy;
use crate::shape::Shape;
use crate::table::zeros;
use crate::vectorised::{Job, vectorised};

/// Workspace for mixing; nothing is allocated later.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Mixer {
    arrivals: [[Vec<f64>; 2]; 2], // [policy][this step, next step][S]
}

impl Mixer {
    /// A workspace for policies of this shape.
    pub fn new(shape: Shape) -> Result<Self> {
        let states = || zeros("arrivals [S]", shape.num_states());
        Ok(Self {
            arrivals: [[states()?, states()?], [states()?, states()?]],
        })
    }

    /// Writes into `mixed` the policy with the occupancy (1 - w) q^below + w q^above; `completion`
    /// decides wherever neither has mass.
    #[expect(
        clippy::too_many_arguments,
        reason = "two ends, a weight, a kernel, a start, a rule, a target"
    )]
    pub fn mix<K: StepKernel>(
        &mut self,
        below: &Vertex,
        above: &Vertex,
        weight_above: f64,
        kernel: &K,
        initial: &InitialDistribution,
        completion: &MarkovPolicy,
        mixed: &mut MarkovPolicy,
    ) {
        let ends = [(&below.actions[..], kernel), (&above.actions[..], kernel)];
        self.mix_each(ends, weight_above, initial, completion, mixed);
    }

    /// [`Mixer::mix`] for ends that each have a kernel of their own: the policy with the occupancy
    /// (1 - w) q^below + w q^above, each on its own kernel.
    pub fn mix_each<K: StepKernel>(
        &mut self,
        ends: [(&[u32], &K); 2],
        weight_above: f64,
        initial: &InitialDistribution,
        completion: &MarkovPolicy,
        mixed: &mut MarkovPolicy,
    ) {
        for arrivals in &mut self.arrivals {
            arrivals[0].copy_from_slice(initial.data());
        }
        vectorised(Mix {
            arrivals: &mut self.arrivals,
            ends,
            weights: [1.0 - weight_above, weight_above],
            completion,
            mixed,
        });
    }
}

struct Mix<'a, K> {
    arrivals: &'a mut [[Vec<f64>; 2]; 2],
    ends: [(&'a [u32], &'a K); 2],
    weights: [f64; 2],
    completion: &'a MarkovPolicy,
    mixed: &'a mut MarkovPolicy,
}

impl<K: StepKernel> Job for Mix<'_, K> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let shape = self.mixed.shape();
        let states = shape.num_states();
        for step in 0..shape.horizon() {
            let actions = self.ends.map(|(end, _)| &end[step * states..][..states]);
            for state in 0..states {
                let masses = [0, 1].map(|end| self.weights[end] * self.arrivals[end][0][state]);
                let total = masses[0] + masses[1];
                let row = self.mixed.row_mut(step, state);
                if total > 0.0 {
                    row.fill(0.0);
                    row[actions[0][state] as usize] += masses[0] / total;
                    row[actions[1][state] as usize] += masses[1] / total;
                } else {
                    row.copy_from_slice(self.completion.row(step, state));
                }
            }
            if step + 1 == shape.horizon() {
                break;
            }
            for (arrivals, (end, kernel)) in self.arrivals.iter_mut().zip(self.ends) {
                let chosen = &end[step * states..][..states];
                let [here, next] = arrivals;
                next.fill(0.0);
                for (state, &mass) in here.iter().enumerate() {
                    if mass > 0.0 {
                        let pair = shape.pair(state, chosen[state] as usize);
                        kernel.spread(step, pair, mass, next);
                    }
                }
                arrivals.swap(0, 1);
            }
        }
    }
}
