//! Episodes of a known model.

use rand_distr::{Distribution, StandardNormal};

use crate::error::Result;
use crate::fast::isa::{Job, vectorised};
use crate::model::{ConstrainedMdp, ObservationNoise};
use crate::policy::{ActionTable, MarkovPolicy, Played};
use crate::random::draw;
use crate::simulate::cumulative::CumulativeRows;
use crate::simulate::{StreamSet, Uniforms};
use crate::table::StepSignal;
use crate::trajectory::Trajectory;

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
    /// An environment that samples this model.
    pub fn new(model: &'m ConstrainedMdp) -> Result<Self> {
        Ok(Self {
            model,
            means: model.means()?,
            first: CumulativeRows::of_distribution(model.initial().data())?,
            next: CumulativeRows::of_kernel(model)?,
        })
    }

    /// Plays one episode and writes what is observed into `seen`.
    #[inline]
    pub(crate) fn play_episode<U: Uniforms>(
        &self,
        played: Played<'_>,
        streams: &mut StreamSet<U>,
        seen: &mut Trajectory,
    ) {
        match played {
            Played::Policy(policy) => self.rollout(policy, streams, seen),
            Played::Actions(actions) => self.rollout_of_actions(actions, streams, seen),
        }
    }

    /// Plays one episode of a policy and writes what is observed into `seen`.
    pub fn rollout<U: Uniforms>(
        &self,
        policy: &MarkovPolicy,
        streams: &mut StreamSet<U>,
        seen: &mut Trajectory,
    ) {
        let StreamSet {
            states,
            actions,
            noise,
        } = streams;
        self.play((states, noise), seen, |step, state| {
            let choices = policy.row(step, state).iter().copied().enumerate();
            draw(choices, actions.next_uniform())
        });
    }

    /// [`TabularEnvironment::rollout`] of an action table. The random numbers for drawing actions are skipped.
    pub fn rollout_of_actions<U: Uniforms>(
        &self,
        actions: ActionTable<'_>,
        streams: &mut StreamSet<U>,
        seen: &mut Trajectory,
    ) {
        streams.actions.skip(self.model.shape().horizon());
        self.play(
            (&mut streams.states, &mut streams.noise),
            seen,
            |step, state| actions.at(step, state),
        );
    }

    /// Plays one episode. The loop is compiled for each kind of noise, so that a cheap kind does not pay for a dear
    /// one.
    #[inline(always)]
    fn play<U: Uniforms>(
        &self,
        streams: (&mut U, &mut U),
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
    fn play_observing<U: Uniforms>(
        &self,
        (states, noise): (&mut U, &mut U),
        seen: &mut Trajectory,
        choose: impl FnMut(usize, usize) -> usize,
        observe: impl Fn(f64, &mut U) -> f64,
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

/// One episode: `choose` returns the action at each (step, state), `observe` an observation of a quantity with a given
/// mean.
struct Play<'a, 'm, U, F, G> {
    environment: &'a TabularEnvironment<'m>,
    states: &'a mut U,
    noise: &'a mut U,
    seen: &'a mut Trajectory,
    choose: F,
    observe: G,
}

impl<U, F, G> Job for Play<'_, '_, U, F, G>
where
    U: Uniforms,
    F: FnMut(usize, usize) -> usize,
    G: Fn(f64, &mut U) -> f64,
{
    type Output = ();

    #[inline(always)]
    fn run(mut self) {
        let (model, seen, observe) = (self.environment.model, self.seen, self.observe);
        let (shape, horizon) = (model.shape(), model.shape().horizon());
        let (means, other_costs) = (&self.environment.means, &model.costs()[1..]);
        let seen = seen.parts_mut();
        let (first_costs, seen_costs) = seen.costs.split_at_mut(horizon);
        let mut state = self
            .environment
            .first
            .draw(0, 0, self.states.next_uniform());
        let places = seen.states[..horizon]
            .iter_mut()
            .zip(seen.actions.iter_mut());
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
