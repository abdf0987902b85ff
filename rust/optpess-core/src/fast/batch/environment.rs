//! Episodes of a tiny known model, one for each replicate of a batch.

use rand_distr::{Distribution, StandardNormal};

use crate::error::Result;
use crate::fast::batch::trajectory::BatchTrajectory;
use crate::fast::chacha::BatchStreams;
use crate::fast::lane::Lane;
use crate::model::{ConstrainedMdp, ObservationNoise};
use crate::shape::Shape;
use crate::simulate::cumulate;
use crate::table::zeros;

/// Samples a [`ConstrainedMdp`] with one cost as [`crate::simulate::TabularEnvironment`] does, from full tables.
#[derive(Debug, Clone)]
pub(crate) struct BatchEnvironment {
    shape: Shape,
    noise: ObservationNoise,
    first: Vec<f64>,      // [S], cumulative
    next: Vec<f64>,       // [H, S, A, S], cumulative; the last step is not used
    means: Vec<[f64; 2]>, // [H, S, A], expected reward and cost
}

impl BatchEnvironment {
    /// An environment that samples this model.
    pub(crate) fn new(model: &ConstrainedMdp) -> Result<Self> {
        let (shape, kernel) = (model.shape(), model.kernel().kernel());
        let states = shape.num_states();
        let likely = |&(_, probability): &(usize, f64)| probability > 0.0;
        let mut first = zeros("cumulative probabilities", states)?;
        let starts = model.initial().data().iter().copied().enumerate();
        cumulate(starts.filter(likely), &mut first);
        let mut next = zeros("cumulative probabilities", shape.triples() * states)?;
        let used = (shape.horizon() - 1) * shape.pairs();
        for (row, sums) in next.chunks_exact_mut(states).take(used).enumerate() {
            let successors = kernel.successors(row / shape.pairs(), row % shape.pairs());
            cumulate(successors.filter(likely), sums);
        }
        Ok(Self {
            shape,
            noise: model.noise(),
            first,
            next,
            means: model.means()?,
        })
    }

    /// Plays one episode of each replicate. `S` is the number of states, or 0 if it is not known at compile time.
    #[inline(always)]
    pub(crate) fn play<V: Lane, const S: usize>(
        &self,
        policies: &[V::Indices], // [H, S]
        streams: &mut BatchStreams<V>,
        seen: &mut BatchTrajectory<V>,
    ) {
        let [steps, states, actions] = self.shape.sizes();
        let states = if S > 0 { S } else { states };
        let pairs = states * actions;
        let mut state = inverse_cdf::<V>(&self.first, streams.states.next());
        for step in 0..steps {
            let mut action = V::Indices::default();
            let policy = &policies[step * states..][..states];
            for visit in 0..V::rows_to_scan(states) {
                let (state, chosen) = V::scan_row(&state, states, visit);
                action = V::select_indices(chosen, policy[state], action);
            }
            let pair =
                V::indices(|lane| state.as_ref()[lane] * actions as u32 + action.as_ref()[lane]);
            (seen.states[step], seen.pairs[step]) = (state, pair);
            let means = &self.means[step * pairs..][..pairs];
            let (mut reward, mut cost) = (V::default(), V::default());
            if step + 1 < steps {
                let rows = &self.next[step * pairs * states..][..pairs * states];
                let uniform = streams.states.next();
                for visit in 0..V::rows_to_scan(pairs) {
                    let (pair, chosen) = V::scan_row(&pair, pairs, visit);
                    let outcome = inverse_cdf::<V>(&rows[pair * states..][..states], uniform);
                    state = V::select_indices(chosen, outcome, state);
                    let [own_reward, own_cost] = means[pair].map(V::all);
                    reward = V::select(chosen, own_reward, reward);
                    cost = V::select(chosen, own_cost, cost);
                }
            } else {
                for visit in 0..V::rows_to_scan(pairs) {
                    let (pair, chosen) = V::scan_row(&pair, pairs, visit);
                    let [own_reward, own_cost] = means[pair].map(V::all);
                    reward = V::select(chosen, own_reward, reward);
                    cost = V::select(chosen, own_cost, cost);
                }
            }
            (seen.rewards[step], seen.costs[step]) = (reward, cost);
        }
        self.observe(streams, seen);
    }

    /// Turns the means in a trajectory into observations.
    #[inline(always)]
    fn observe<V: Lane>(&self, streams: &mut BatchStreams<V>, seen: &mut BatchTrajectory<V>) {
        let means = seen.rewards.iter_mut().zip(&mut seen.costs);
        match self.noise {
            ObservationNoise::Deterministic => {}
            ObservationNoise::Bernoulli => {
                let observe = |uniform: f64, mean| f64::from(uniform < mean);
                for (reward, cost) in means {
                    *reward = streams.noise.next().zip(*reward, observe);
                    *cost = streams.noise.next().zip(*cost, observe);
                }
            }
            ObservationNoise::Gaussian(normal) => {
                for number in means.flat_map(|(reward, cost)| [reward, cost]) {
                    for (lane, generator) in streams.noise_generators.iter_mut().enumerate() {
                        let standard: f64 = StandardNormal.sample(generator);
                        *number.lane_mut(lane) += normal.sigma() * standard;
                    }
                }
            }
            ObservationNoise::Uniform(uniform) => {
                let half_width = uniform.half_width();
                let observe = |uniform: f64, mean| mean + half_width * (2.0 * uniform - 1.0);
                for (reward, cost) in means {
                    *reward = streams.noise.next().zip(*reward, observe);
                    *cost = streams.noise.next().zip(*cost, observe);
                }
            }
        }
    }
}

/// The outcome of each number: how many cumulative sums it reaches or exceeds. The last sum is infinite.
#[inline(always)]
fn inverse_cdf<V: Lane>(sums: &[f64], uniform: V) -> V::Indices {
    let mut outcome = V::Indices::default();
    for &sum in &sums[..sums.len() - 1] {
        outcome = V::indices(|lane| outcome.as_ref()[lane] + u32::from(sum <= uniform.lane(lane)));
    }
    outcome
}
