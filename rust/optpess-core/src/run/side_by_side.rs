//! The episode loop for replicates of a tiny problem, alone or side by side.

use std::sync::atomic::Ordering;

use crate::error::{Error, Result};
use crate::lanes::{Wide, row_sums, with_small_constant};
use crate::learn::{Deployment, PolicySource, PrimalDualFlock};
use crate::model::{ConstrainedMdp, Slices};
use crate::record::{Recorder, TrueValues};
use crate::run::episode_loop::BREATH;
use crate::run::replicate::Control;
use crate::simulate::{Streams, TabularEnvironment};
use crate::table::zeros;
use crate::trajectory::Trajectory;
use crate::vectorised::{Job, vectorised};

/// Plays `episodes` episodes of as many replicates as there are streams and recorders, which must fit in.
pub(crate) fn run_side_by_side<V: Wide>(
    model: &ConstrainedMdp,
    flock: &mut PrimalDualFlock<V>,
    episodes: u64,
    streams: &mut [Streams],
    recorders: &mut [Recorder<'_>],
    control: &Control,
) -> Result<()> {
    let environment = TabularEnvironment::new(model)?;
    let mut judge = FlockJudge::<V>::new(model)?;
    let mut seen = Vec::with_capacity(streams.len());
    for _ in 0..streams.len() {
        seen.push(Trajectory::new(model.shape(), model.costs().len())?);
    }
    for episode in 0..episodes {
        if episode % BREATH == 0 {
            let begun = BREATH.min(episodes - episode) * streams.len() as u64;
            control.episodes_done.fetch_add(begun, Ordering::Relaxed);
        }
        if control.stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        flock.plan();
        for (lane, (streams, seen)) in streams.iter_mut().zip(&mut seen).enumerate() {
            environment
                .rollout_choosing(streams, seen, |step, state| flock.action(step, state, lane));
        }
        if flock.changed() || episode == 0 {
            judge.assess(flock.actions());
        }
        let deployment = Deployment {
            episode: flock.episodes_observed(),
            source: PolicySource::Lagrangian,
            certificate: None,
            optimistic_reward: f64::NAN,
            biased_cost: f64::NAN,
            version: 0,
        };
        flock.absorb(&seen);
        for (lane, recorder) in recorders.iter_mut().enumerate() {
            let truth = TrueValues {
                reward: judge.truth[0].lane(lane),
                cost: judge.truth[1].lane(lane),
            };
            recorder.add(&deployment, truth, flock.multipliers().lane(lane));
        }
    }
    Ok(())
}

/// True values of the policies of all replicates.
#[derive(Debug)]
struct FlockJudge<'m, V> {
    model: &'m ConstrainedMdp,
    means: Vec<[f64; 2]>, // [H, S, A], expected reward and cost
    rows: Vec<f64>,       // the true kernel, dense
    stride: usize,        // between the rows of two steps; 0 for a stationary kernel
    values: [Vec<V>; 2],  // [H + 1, S], reward and cost
    truth: [V; 2],        // V(r) and V(c)
}

impl<'m, V: Wide> FlockJudge<'m, V> {
    fn new(model: &'m ConstrainedMdp) -> Result<Self> {
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

    #[inline(always)]
    fn assess(&mut self, actions: &[V::Indices]) {
        with_small_constant!(self.model.shape().num_states(), S => {
            vectorised(Assessment::<V, S> { judge: self, actions });
        });
    }
}

struct Assessment<'a, 'm, V: Wide, const S: usize> {
    judge: &'a mut FlockJudge<'m, V>,
    actions: &'a [V::Indices],
}

impl<V: Wide, const S: usize> Job for Assessment<'_, '_, V, S> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let judge = self.judge;
        let model = judge.model;
        let [steps, states, num_actions] = model.shape().sizes();
        let states = if S > 0 { S } else { states };
        for step in (0..steps).rev() {
            let [rewards, costs] = &mut judge.values;
            let rewards = &mut rewards[step * states..][..2 * states];
            let costs = &mut costs[step * states..][..2 * states];
            let (reward_here, next_reward) = rewards.split_at_mut(states);
            let (cost_here, next_cost) = costs.split_at_mut(states);
            let next = [&*next_reward, &*next_cost];
            let taken = &self.actions[step * states..][..states];
            for (state, taken) in taken.iter().enumerate() {
                // One replicate has one action; several are looked at for all actions and chosen from.
                let looked_at = if V::COUNT == 1 {
                    let only = taken.as_ref()[0] as usize;
                    only..only + 1
                } else {
                    0..num_actions
                };
                let taken = V::from_indices(taken);
                let mut values = [V::default(); 2];
                for action in looked_at {
                    let pair = state * num_actions + action;
                    let mut own = judge.means[step * states * num_actions + pair].map(V::all);
                    if step + 1 < steps {
                        let row = &judge.rows[(step * judge.stride + pair) * states..][..states];
                        own[0] = own[0].plus(row_sums::<S, V>(row, next[0]));
                        own[1] = own[1].plus(row_sums::<S, V>(row, next[1]));
                    }
                    // The last action that is not above the one taken stands.
                    let above = (V::all(action as f64), taken);
                    for (value, own) in values.iter_mut().zip(own) {
                        *value = V::choose(above, *value, own);
                    }
                }
                [reward_here[state], cost_here[state]] = values;
            }
        }
        let start = model.initial().data();
        judge.truth = [0, 1].map(|which| row_sums::<S, V>(start, &judge.values[which][..states]));
    }
}
