//! The episode loop of replicates of a tiny problem of Algorithm 2, one or eight at a time in the lanes of a vector.
//!
//! This loop is compiled as a whole for each instruction set and each small number of states. Doing the same with the
//! loop of single replicates would compile every learner as often. So there are two loops; they share streams, recorder
//! and control.

mod environment;
mod judge;
mod learners;
mod trajectory;

pub(crate) use learners::BatchLearners;

use crate::control::Control;
use crate::error::Result;
use crate::fast::batch::environment::BatchEnvironment;
use crate::fast::batch::judge::BatchJudge;
use crate::fast::batch::trajectory::BatchTrajectory;
use crate::fast::chacha::BatchStreams;
use crate::fast::isa::with_small_constant;
use crate::fast::isa::{Job, vectorised};
use crate::fast::lane::Lane;
use crate::learn::{AnyLearner, Learner, PolicySource};
use crate::model::ConstrainedMdp;
use crate::record::Recorder;

/// Whether a learner and its problem can run in a batch.
pub(crate) fn fits_batch(learner: &AnyLearner) -> bool {
    matches!(learner, AnyLearner::OptPessPrimalDual(_))
        && learners::is_small_enough(learner.shape())
        && learner.experience().actions().is_none()
}

/// Plays as many replicates as the recorder has until they have played `episodes` episodes, or until their states are
/// asked for or they are to stop: `answered` is the last request that was answered.
pub(crate) fn run_batch<V: Lane>(
    model: &ConstrainedMdp,
    learners: &mut BatchLearners<V>,
    episodes: u64,
    streams: &mut BatchStreams<V>,
    recorder: &mut Recorder<'_, V>,
    (control, answered): (&Control, u64),
) -> Result<()> {
    let (before, first) = (recorder.episodes(), learners.episodes_observed());
    let environment = BatchEnvironment::new(model)?;
    let judge = BatchJudge::<V>::new(model)?;
    let seen = BatchTrajectory::new(model.shape())?;
    // One choice of the instruction set and of the number of states for all episodes.
    with_small_constant!(model.shape().num_states(), S => {
        vectorised(Episodes::<V, S> {
            environment,
            judge,
            seen,
            learners,
            episodes,
            streams,
            recorder,
            control,
            answered,
        });
    });
    // Algorithm 2 has no baseline.
    let played = recorder.episodes() - before;
    if played > 0 {
        recorder.note_planned(first, played, PolicySource::Lagrangian);
    }
    Ok(())
}

struct Episodes<'a, 'm, 'r, V: Lane, const S: usize> {
    environment: BatchEnvironment,
    judge: BatchJudge<'m, V>,
    seen: BatchTrajectory<V>,
    learners: &'a mut BatchLearners<V>,
    episodes: u64,
    streams: &'a mut BatchStreams<V>,
    recorder: &'a mut Recorder<'r, V>,
    control: &'a Control,
    answered: u64,
}

impl<V: Lane, const S: usize> Job for Episodes<'_, '_, '_, V, S> {
    type Output = ();

    #[inline(always)]
    fn run(mut self) {
        let (learners, control) = (self.learners, self.control);
        let replicates = self.recorder.num_replicates() as u64;
        let first = self.recorder.episodes();
        for episode in first..self.episodes {
            if control.pauses(self.answered) {
                return;
            }
            control.note_progress(episode, self.episodes, replicates);
            learners.plan::<S>();
            let policies = learners.actions();
            self.environment
                .play::<V, S>(policies, self.streams, &mut self.seen);
            if learners.changed() || episode == first {
                self.judge.assess::<S>(policies);
            }
            let played = learners.episodes_observed();
            learners.observe::<S>(&self.seen);
            self.recorder
                .add(played, self.judge.truth(), *learners.multipliers());
        }
    }
}
