//! The episode loop for replicates that run side by side.

use std::sync::atomic::Ordering;

use crate::error::{Error, Result};
use crate::lanes::{LANES, Lanes, add, row_sums, with_small_constant};
use crate::learn::{Deployment, PolicySource, PrimalDualFlock};
use crate::model::{ConstrainedMdp, Slices};
use crate::record::{Recorder, TrueValues};
use crate::run::episode_loop::BREATH;
use crate::run::replicate::Control;
use crate::simulate::{Streams, TabularEnvironment};
use crate::table::{StepSignal, zeros};
use crate::trajectory::Trajectory;
use crate::vectorised::{Job, vectorised};

/// Plays `episodes` episodes of up to eight replicates: as many as there are streams and recorders.
pub(crate) fn run_side_by_side(
    model: &ConstrainedMdp,
    flock: &mut PrimalDualFlock,
    episodes: u64,
    streams: &mut [Streams],
    recorders: &mut [Recorder<'_>],
    control: &Control,
) -> Result<()> {
    let environment = TabularEnvironment::new(model)?;
    let mut judge = FlockJudge::new(model)?;
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
                reward: judge.truth[0][lane],
                cost: judge.truth[1][lane],
            };
            recorder.add(&deployment, truth, flock.multipliers()[lane]);
        }
    }
    Ok(())
}

/// True values of the policies of eight replicates.
#[derive(Debug)]
struct FlockJudge<'m> {
    model: &'m ConstrainedMdp,
    rows: Vec<f64>,               // the true kernel, dense
    stride: usize,                // between the rows of two steps; 0 for a stationary kernel
    values: [[Vec<Lanes>; 2]; 2], // [S], reward and cost, of this step and the next
    truth: [[f64; LANES]; 2],     // V(r) and V(c) of each replicate
}

impl<'m> FlockJudge<'m> {
    fn new(model: &'m ConstrainedMdp) -> Result<Self> {
        let (shape, kernel) = (model.shape(), model.kernel().kernel());
        let column = || zeros::<Lanes>("values of replicates [S]", shape.num_states());
        Ok(Self {
            model,
            rows: kernel.to_dense()?,
            stride: match kernel.slices() {
                Slices::Stationary => 0,
                Slices::PerStep(_) => shape.pairs(),
            },
            values: [[column()?, column()?], [column()?, column()?]],
            truth: [[f64::NAN; LANES]; 2],
        })
    }

    #[inline(always)]
    fn assess(&mut self, actions: &[[u64; LANES]]) {
        with_small_constant!(self.model.shape().num_states(), S => {
            vectorised(Assessment::<S> { judge: self, actions });
        });
    }
}

struct Assessment<'a, 'm, const S: usize> {
    judge: &'a mut FlockJudge<'m>,
    actions: &'a [[u64; LANES]],
}

impl<const S: usize> Job for Assessment<'_, '_, S> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let judge = self.judge;
        let model = judge.model;
        let [steps, states, num_actions] = model.shape().sizes();
        let states = if S > 0 { S } else { states };
        let signals = [model.reward(), &model.costs()[0]];
        for step in (0..steps).rev() {
            judge.values.swap(0, 1);
            let [here, next] = &mut judge.values;
            for state in 0..states {
                let taken = self.actions[step * states + state];
                let mut values = [[0.0; LANES]; 2];
                for action in 0..num_actions {
                    let pair = state * num_actions + action;
                    for which in 0..2 {
                        let mut own = [signals[which].at(step, pair); LANES];
                        if step + 1 < steps {
                            let row =
                                &judge.rows[(step * judge.stride + pair) * states..][..states];
                            add(&mut own, row_sums::<S>(row, &next[which][..states]));
                        }
                        for lane in 0..LANES {
                            let chosen = taken[lane] == action as u64;
                            values[which][lane] = if chosen {
                                own[lane]
                            } else {
                                values[which][lane]
                            };
                        }
                    }
                }
                here[0][state] = Lanes(values[0]);
                here[1][state] = Lanes(values[1]);
            }
        }
        let start = model.initial().data();
        judge.truth = [0, 1].map(|which| row_sums::<S>(start, &judge.values[0][which]));
    }
}
