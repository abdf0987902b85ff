//! The one U-turn of the house: a policy goes out, a trajectory comes back.

use std::sync::atomic::Ordering;

use crate::error::{Error, Result};
use crate::learn::{Deployment, Learner, PolicySource};
use crate::model::ConstrainedMdp;
use crate::record::{Recorder, TrueValues};
use crate::run::judge::Judge;
use crate::run::replicate::Control;
use crate::simulate::{Streams, TabularEnvironment};
use crate::trajectory::Trajectory;

/// Looks on at every episode.
pub trait Observer<L: Learner> {
    /// Whether it reads figures of a deployment that no record holds.
    const READS_FIGURES: bool;
    /// Called when the episode has been played and judged, before the learner takes it in.
    fn played(
        &mut self,
        learner: &L,
        deployment: &Deployment,
        truth: TrueValues,
        seen: &Trajectory,
    );
    /// Called when the learner has taken it in.
    fn absorbed(&mut self, learner: &L, seen: &Trajectory);
}

impl<L: Learner> Observer<L> for () {
    const READS_FIGURES: bool = false;
    #[inline(always)]
    fn played(&mut self, _: &L, _: &Deployment, _: TrueValues, _: &Trajectory) {}
    #[inline(always)]
    fn absorbed(&mut self, _: &L, _: &Trajectory) {}
}

/// How many episodes pass between two reports of progress. The stop flag is read at every episode: one
/// load, and an episode of a large problem takes long enough for a user to notice a thousand of them.
pub(crate) const PROGRESS_INTERVAL: u64 = 1024;

/// Plays `episodes` episodes of the learner against the model.
pub fn run_episodes<L: Learner, O: Observer<L>>(
    model: &ConstrainedMdp,
    learner: &mut L,
    episodes: u64,
    streams: &mut Streams,
    recorder: &mut Recorder<'_>,
    observer: &mut O,
    control: &Control,
) -> Result<()> {
    let environment = TabularEnvironment::new(model)?;
    let mut judge = Judge::new(model)?;
    let mut seen = Trajectory::new(model.shape(), model.costs().len())?;
    for episode in 0..episodes {
        if episode % PROGRESS_INTERVAL == 0 {
            control
                .episodes_done
                .fetch_add(PROGRESS_INTERVAL.min(episodes - episode), Ordering::Relaxed);
        }
        if control.stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let deployment = if O::READS_FIGURES {
            learner.next_policy()?
        } else {
            learner.next_plan()?
        };
        let truth = if let Some(actions) = learner.actions() {
            environment.rollout_of_actions(actions, streams, &mut seen);
            judge.assess_actions(actions, deployment.version)
        } else {
            environment.rollout(learner.policy(), streams, &mut seen);
            judge.assess(learner.policy(), deployment.version)?
        };
        observer.played(learner, &deployment, truth, &seen);
        learner.absorb(&seen)?;
        observer.absorbed(learner, &seen);
        recorder.add(&deployment, truth, learner.multiplier());
    }
    Ok(())
}

/// Everything that was seen, for small runs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trace {
    /// States, `[episodes, H]`.
    pub states: Vec<u32>,
    /// Actions, `[episodes, H]`.
    pub actions: Vec<u32>,
    /// Observed rewards, `[episodes, H]`.
    pub rewards: Vec<f64>,
    /// Observed costs, `[episodes, H]`.
    pub costs: Vec<f64>,
    /// V(r) of the deployed policy, `[episodes]`.
    pub deployed_value: Vec<f64>,
    /// V(c) of the deployed policy, `[episodes]`.
    pub deployed_cost: Vec<f64>,
    /// Whether pi0 was played, `[episodes]`.
    pub on_baseline: Vec<bool>,
    /// lambda when the policy was planned, `[episodes]`.
    pub multiplier: Vec<f64>,
}

impl<L: Learner> Observer<L> for Trace {
    const READS_FIGURES: bool = false;

    fn played(
        &mut self,
        learner: &L,
        deployment: &Deployment,
        truth: TrueValues,
        seen: &Trajectory,
    ) {
        self.states.extend_from_slice(&seen.states);
        self.actions.extend_from_slice(&seen.actions);
        self.rewards.extend_from_slice(&seen.rewards);
        self.costs.extend_from_slice(&seen.costs);
        self.deployed_value.push(truth.reward);
        self.deployed_cost.push(truth.cost);
        self.on_baseline.push(matches!(
            deployment.source,
            PolicySource::Baseline | PolicySource::BaselineEstimation
        ));
        self.multiplier.push(learner.multiplier());
    }

    fn absorbed(&mut self, _: &L, _: &Trajectory) {}
}
