//! Episodes of a known model.

use rand_distr::{Distribution, StandardNormal};

use crate::error::Result;
use crate::model::{ConstrainedMdp, ObservationNoise};
use crate::policy::{Actions, MarkovPolicy};
use crate::simulate::cumulative::{CumulativeRows, draw};
use crate::simulate::{Streams, UniformStream};
use crate::table::StepSignal;
use crate::trajectory::Trajectory;
use crate::vectorised::{Job, vectorised};

/// Samples a [`ConstrainedMdp`].
#[derive(Debug, Clone)]
pub struct TabularEnvironment<'m> {
    model: &'m ConstrainedMdp,
    first: CumulativeRows,
    next: CumulativeRows,
}

impl<'m> TabularEnvironment<'m> {
    /// An environment that behaves as the model says.
    pub fn new(model: &'m ConstrainedMdp) -> Result<Self> {
        Ok(Self {
            model,
            first: CumulativeRows::of_distribution(model.initial().data())?,
            next: CumulativeRows::of_kernel(model)?,
        })
    }

    /// Plays one episode and writes what is observed into `seen`.
    pub fn rollout(&self, policy: &MarkovPolicy, streams: &mut Streams, seen: &mut Trajectory) {
        let Streams {
            states,
            actions,
            noise,
        } = streams;
        let choose = |step, state| {
            let choices = policy.row(step, state).iter().copied().enumerate();
            draw(choices, actions.next_uniform())
        };
        vectorised(Play {
            environment: self,
            states,
            noise,
            seen,
            choose,
        });
    }

    /// [`TabularEnvironment::rollout`] of a policy that takes one action at each (step, state): there is
    /// nothing to draw, and the actions' stream stays where it is.
    pub fn rollout_of_actions(
        &self,
        actions: Actions<'_>,
        streams: &mut Streams,
        seen: &mut Trajectory,
    ) {
        vectorised(Play {
            environment: self,
            states: &mut streams.states,
            noise: &mut streams.noise,
            seen,
            choose: |step, state| actions.at(step, state),
        });
    }
}

/// One episode; `choose` is asked for the action at each (step, state).
struct Play<'a, 'm, F> {
    environment: &'a TabularEnvironment<'m>,
    states: &'a mut UniformStream,
    noise: &'a mut UniformStream,
    seen: &'a mut Trajectory,
    choose: F,
}

impl<F: FnMut(usize, usize) -> usize> Job for Play<'_, '_, F> {
    type Output = ();

    #[inline(always)]
    fn run(mut self) {
        let (model, seen) = (self.environment.model, self.seen);
        let (shape, noise) = (model.shape(), model.noise());
        let horizon = shape.horizon();
        let mut state = self
            .environment
            .first
            .draw(0, 0, self.states.next_uniform());
        let places = seen.states[..horizon].iter_mut().zip(&mut seen.actions);
        let observed = places.zip(&mut seen.rewards).enumerate();
        for (step, ((seen_state, seen_action), seen_reward)) in observed {
            let action = (self.choose)(step, state);
            let pair = shape.pair(state, action);
            *seen_state = state as u32;
            *seen_action = action as u32;
            *seen_reward = observe(noise, model.reward().at(step, pair), self.noise);
            for (constraint, cost) in model.costs().iter().enumerate() {
                let observed = observe(noise, cost.at(step, pair), self.noise);
                seen.costs[constraint * horizon + step] = observed;
            }
            if step + 1 < horizon {
                let uniform = self.states.next_uniform();
                state = self.environment.next.draw(step, pair, uniform);
            }
        }
    }
}

/// An observation of a quantity with this mean.
#[inline(always)]
fn observe(noise: ObservationNoise, mean: f64, stream: &mut UniformStream) -> f64 {
    match noise {
        ObservationNoise::Deterministic => mean,
        ObservationNoise::Bernoulli => f64::from(stream.next_uniform() < mean),
        ObservationNoise::Gaussian(normal) => {
            let standard: f64 = StandardNormal.sample(stream.generator());
            mean + normal.sigma() * standard
        }
        ObservationNoise::Uniform(uniform) => {
            mean + uniform.half_width() * (2.0 * stream.next_uniform() - 1.0)
        }
    }
}
