//! The episode loop for replicates of a tiny problem, alone or side by side.

use std::sync::atomic::Ordering;

use crate::error::{Error, Result};
use crate::lanes::{Lane, row_sums, with_small_constant};
use crate::learn::BatchLearners;
use crate::model::{ConstrainedMdp, Slices};
use crate::record::BatchRecorder;
use crate::run::episode_loop::PROGRESS_INTERVAL;
use crate::run::replicate::Control;
use crate::simulate::{BatchEnvironment, BatchStreams};
use crate::table::zeros;
use crate::trajectory::BatchTrajectory;
use crate::vectorised::{Job, vectorised};

/// Plays `episodes` episodes of as many replicates as the recorder has.
pub(crate) fn run_batch_loop<V: Lane>(
    model: &ConstrainedMdp,
    flock: &mut BatchLearners<V>,
    episodes: u64,
    streams: &mut BatchStreams<V>,
    recorder: &mut BatchRecorder<'_, V>,
    control: &Control,
) -> Result<()> {
    let environment = BatchEnvironment::new(model)?;
    let judge = BatchJudge::<V>::new(model)?;
    let seen = BatchTrajectory::new(model.shape())?;
    // One choice of the instruction set and of the number of states for all episodes.
    with_small_constant!(model.shape().num_states(), S => {
        vectorised(Episodes::<V, S> {
            environment,
            judge,
            seen,
            flock,
            episodes,
            streams,
            recorder,
            control,
        })
    })
}

struct Episodes<'a, 'm, 'r, V: Lane, const S: usize> {
    environment: BatchEnvironment,
    judge: BatchJudge<'m, V>,
    seen: BatchTrajectory<V>,
    flock: &'a mut BatchLearners<V>,
    episodes: u64,
    streams: &'a mut BatchStreams<V>,
    recorder: &'a mut BatchRecorder<'r, V>,
    control: &'a Control,
}

impl<V: Lane, const S: usize> Job for Episodes<'_, '_, '_, V, S> {
    type Output = Result<()>;

    #[inline(always)]
    fn run(mut self) -> Result<()> {
        let (flock, control) = (self.flock, self.control);
        for episode in 0..self.episodes {
            if episode % PROGRESS_INTERVAL == 0 {
                let replicates = self.recorder.num_replicates() as u64;
                let begun = PROGRESS_INTERVAL.min(self.episodes - episode) * replicates;
                control.episodes_done.fetch_add(begun, Ordering::Relaxed);
            }
            if control.stop.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            flock.plan::<S>();
            let policies = flock.actions();
            self.environment
                .play::<V, S>(policies, self.streams, &mut self.seen);
            if flock.changed() || episode == 0 {
                self.judge.assess::<S>(policies);
            }
            let played = flock.episodes_observed();
            flock.absorb::<S>(&self.seen);
            self.recorder
                .add(played, self.judge.truth, flock.multipliers());
        }
        Ok(())
    }
}

/// True values of the policies of all replicates.
#[derive(Debug)]
struct BatchJudge<'m, V> {
    model: &'m ConstrainedMdp,
    means: Vec<[f64; 2]>, // [H, S, A], expected reward and cost
    rows: Vec<f64>,       // the true kernel, dense
    stride: usize,        // between the rows of two steps; 0 for a stationary kernel
    values: [Vec<V>; 2],  // [H + 1, S], reward and cost
    truth: [V; 2],        // V(r) and V(c)
}

impl<'m, V: Lane> BatchJudge<'m, V> {
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

    /// `S` is the number of states, or 0 where it is not known beforehand.
    #[inline(always)]
    fn assess<const S: usize>(&mut self, policies: &[V::Indices]) {
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
