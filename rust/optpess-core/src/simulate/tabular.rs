//! Episodes of a known model.

use rand::{Rng, RngExt};
use rand_distr::{Distribution, StandardNormal};

use crate::model::{ConstrainedMdp, ObservationNoise};
use crate::policy::MarkovPolicy;
use crate::simulate::Streams;
use crate::table::StepSignal;
use crate::trajectory::Trajectory;

/// Samples a [`ConstrainedMdp`].
#[derive(Debug, Clone, Copy)]
pub struct TabularEnvironment<'m> {
    model: &'m ConstrainedMdp,
}

impl<'m> TabularEnvironment<'m> {
    /// An environment that behaves as the model says.
    #[must_use]
    pub fn new(model: &'m ConstrainedMdp) -> Self {
        Self { model }
    }

    /// Plays one episode and writes what is observed into `seen`.
    pub fn rollout(&self, policy: &MarkovPolicy, streams: &mut Streams, seen: &mut Trajectory) {
        let model = self.model;
        let (shape, noise) = (model.shape(), model.noise());
        let mut state = draw(
            model.initial().data().iter().copied().enumerate(),
            &mut streams.states,
        );
        for step in 0..shape.horizon() {
            let choices = policy.row(step, state).iter().copied().enumerate();
            let action = draw(choices, &mut streams.actions);
            let pair = shape.pair(state, action);
            seen.states[step] = state as u32;
            seen.actions[step] = action as u32;
            seen.rewards[step] = observe(noise, model.reward().at(step, pair), &mut streams.noise);
            for (constraint, cost) in model.costs().iter().enumerate() {
                let observed = observe(noise, cost.at(step, pair), &mut streams.noise);
                seen.costs[constraint * shape.horizon() + step] = observed;
            }
            if step + 1 < shape.horizon() {
                let successors = model.kernel().kernel().successors(step, pair);
                state = draw(successors, &mut streams.states);
            }
        }
    }
}

/// Draws an outcome with its probability: the first whose cumulative probability exceeds a uniform
/// number. Rounding may leave the total a little short of that number; the last possible outcome
/// then stands.
fn draw<R: Rng>(outcomes: impl Iterator<Item = (usize, f64)>, generator: &mut R) -> usize {
    let uniform: f64 = generator.random();
    let (mut cumulative, mut last) = (0.0, 0);
    for (outcome, probability) in outcomes {
        if probability > 0.0 {
            cumulative += probability;
            last = outcome;
            if uniform < cumulative {
                break;
            }
        }
    }
    last
}

/// An observation of a quantity with this mean.
fn observe<R: Rng>(noise: ObservationNoise, mean: f64, generator: &mut R) -> f64 {
    match noise {
        ObservationNoise::Deterministic => mean,
        ObservationNoise::Bernoulli => f64::from(generator.random::<f64>() < mean),
        ObservationNoise::Gaussian(normal) => {
            let standard: f64 = StandardNormal.sample(generator);
            mean + normal.sigma() * standard
        }
        ObservationNoise::Uniform(uniform) => {
            mean + uniform.half_width() * (2.0 * generator.random::<f64>() - 1.0)
        }
    }
}
