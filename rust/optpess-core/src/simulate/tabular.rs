//! Episodes of a known model.

use rand_distr::{Distribution, StandardNormal};

use crate::error::Result;
use crate::model::{ConstrainedMdp, ObservationNoise};
use crate::policy::{ActionTable, MarkovPolicy};
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
    /// Expected reward and first cost, side by side.
    means: Vec<[f64; 2]>, // [H, S, A]
}

impl<'m> TabularEnvironment<'m> {
    /// An environment that behaves as the model says.
    pub fn new(model: &'m ConstrainedMdp) -> Result<Self> {
        Ok(Self {
            model,
            means: model.means()?,
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
        self.play((states, noise), seen, |step, state| {
            let choices = policy.row(step, state).iter().copied().enumerate();
            draw(choices, actions.next_uniform())
        });
    }

    /// [`TabularEnvironment::rollout`] of a policy that takes one action at each (step, state): the numbers
    /// that would be drawn for actions are left out.
    pub fn rollout_of_actions(
        &self,
        actions: ActionTable<'_>,
        streams: &mut Streams,
        seen: &mut Trajectory,
    ) {
        streams.actions.skip(self.model.shape().horizon());
        self.play(
            (&mut streams.states, &mut streams.noise),
            seen,
            |step, state| actions.at(step, state),
        );
    }

    /// The loop is compiled for each kind of noise, so that the short ones do not carry the long ones.
    #[inline(always)]
    fn play(
        &self,
        streams: (&mut UniformStream, &mut UniformStream),
        seen: &mut Trajectory,
        choose: impl FnMut(usize, usize) -> usize,
    ) {
        match self.model.noise() {
            ObservationNoise::Deterministic => {
                self.play_observing(streams, seen, choose, |mean, _| mean);
            }
            ObservationNoise::Bernoulli => {
                self.play_observing(streams, seen, choose, |mean, stream| {
                    f64::from(stream.next_uniform() < mean)
                });
            }
            ObservationNoise::Gaussian(normal) => {
                self.play_observing(streams, seen, choose, |mean, stream| {
                    let standard: f64 = StandardNormal.sample(stream.generator());
                    mean + normal.sigma() * standard
                });
            }
            ObservationNoise::Uniform(uniform) => {
                self.play_observing(streams, seen, choose, |mean, stream| {
                    mean + uniform.half_width() * (2.0 * stream.next_uniform() - 1.0)
                });
            }
        }
    }

    #[inline(always)]
    fn play_observing(
        &self,
        (states, noise): (&mut UniformStream, &mut UniformStream),
        seen: &mut Trajectory,
        choose: impl FnMut(usize, usize) -> usize,
        observe: impl Fn(f64, &mut UniformStream) -> f64,
    ) {
        vectorised(Play {
            environment: self,
            states,
            noise,
            seen,
            choose,
            observe,
        });
    }
}

/// One episode; `choose` is asked for the action at each (step, state), `observe` for an observation of a
/// quantity with a given mean.
struct Play<'a, 'm, F, G> {
    environment: &'a TabularEnvironment<'m>,
    states: &'a mut UniformStream,
    noise: &'a mut UniformStream,
    seen: &'a mut Trajectory,
    choose: F,
    observe: G,
}

impl<F, G> Job for Play<'_, '_, F, G>
where
    F: FnMut(usize, usize) -> usize,
    G: Fn(f64, &mut UniformStream) -> f64,
{
    type Output = ();

    #[inline(always)]
    fn run(mut self) {
        let (model, seen, observe) = (self.environment.model, self.seen, self.observe);
        let (shape, horizon) = (model.shape(), model.shape().horizon());
        let (means, other_costs) = (&self.environment.means, &model.costs()[1..]);
        let (first_costs, seen_costs) = seen.costs.split_at_mut(horizon);
        let mut state = self
            .environment
            .first
            .draw(0, 0, self.states.next_uniform());
        let places = seen.states[..horizon].iter_mut().zip(&mut seen.actions);
        let numbers = seen.rewards.iter_mut().zip(first_costs);
        for (step, (place, number)) in places.zip(numbers).enumerate() {
            let action = (self.choose)(step, state);
            let pair = shape.pair(state, action);
            (*place.0, *place.1) = (state as u32, action as u32);
            let [reward, cost] = means[step * shape.pairs() + pair];
            *number.0 = observe(reward, self.noise);
            *number.1 = observe(cost, self.noise);
            for (constraint, cost) in other_costs.iter().enumerate() {
                seen_costs[constraint * horizon + step] = observe(cost.at(step, pair), self.noise);
            }
            if step + 1 < horizon {
                let uniform = self.states.next_uniform();
                state = self.environment.next.draw(step, pair, uniform);
            }
        }
    }
}
