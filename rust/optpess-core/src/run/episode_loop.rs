//! The episode loop: plan, play, judge, observe, record.

use serde::{Deserialize, Serialize};

use crate::control::Control;
use crate::error::Result;
use crate::fast::{BatchedUniforms, Engine, EngineChoice, FastJudge};
use crate::learn::{AnyLearner, Deployment, Learner};
use crate::model::ConstrainedMdp;
use crate::record::{Recorder, RecorderState, TrueValues};
use crate::run::judge::{Judge, MixtureJudge, PlainJudge};
use crate::simulate::{StreamSet, TabularEnvironment};
use crate::trajectory::Trajectory;

/// The facts of an episode that has been played and judged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EpisodeFacts<'a> {
    pub(crate) deployment: &'a Deployment,
    pub(crate) truth: TrueValues,
    /// V(c_m) of what was deployed, `[M]`.
    pub(crate) costs: &'a [f64],
    /// The judge of mixtures, if one was deployed.
    pub(crate) mixture: Option<&'a MixtureJudge<'a>>,
    pub(crate) seen: &'a Trajectory,
    /// lambda when the policy was planned.
    pub(crate) multiplier: f64,
}

/// Observes every episode. The learner is passed if the engine is the plain one.
pub(crate) trait Observer {
    /// Called when the episode has been played and judged, before the learner counts it.
    fn played(&mut self, facts: &EpisodeFacts<'_>, learner: Option<&mut AnyLearner>);
    /// Called when the learner has counted it.
    fn observed(&mut self, seen: &Trajectory, learner: Option<&mut AnyLearner>);
}

impl Observer for () {
    #[inline(always)]
    fn played(&mut self, _: &EpisodeFacts<'_>, _: Option<&mut AnyLearner>) {}
    #[inline(always)]
    fn observed(&mut self, _: &Trajectory, _: Option<&mut AnyLearner>) {}
}

impl<A: Observer> Observer for Option<A> {
    fn played(&mut self, facts: &EpisodeFacts<'_>, learner: Option<&mut AnyLearner>) {
        if let Some(observer) = self {
            observer.played(facts, learner);
        }
    }

    fn observed(&mut self, seen: &Trajectory, learner: Option<&mut AnyLearner>) {
        if let Some(observer) = self {
            observer.observed(seen, learner);
        }
    }
}

impl<A: Observer, B: Observer> Observer for (&mut A, &mut B) {
    fn played(&mut self, facts: &EpisodeFacts<'_>, mut learner: Option<&mut AnyLearner>) {
        self.0.played(facts, learner.as_deref_mut());
        self.1.played(facts, learner);
    }

    fn observed(&mut self, seen: &Trajectory, mut learner: Option<&mut AnyLearner>) {
        self.0.observed(seen, learner.as_deref_mut());
        self.1.observed(seen, learner);
    }
}

/// One replicate of a run: learner, environment, judge and recorder. It can be continued.
#[derive(Debug)]
pub struct Replicate<'a> {
    engine: Engine,
    environment: TabularEnvironment<'a>,
    streams: StreamSet<BatchedUniforms>,
    judge: Judge<'a>,
    recorder: Recorder<'a>,
    seen: Trajectory,
    control: &'a Control,
    /// The last request for its state that was answered.
    answered: u64,
}

impl<'a> Replicate<'a> {
    /// A replicate that has not played; its streams and the learner's coin follow from (seed, replicate). A learner without an engine of the
    /// chosen kind runs on the plain one.
    pub fn new(
        model: &'a ConstrainedMdp,
        mut learner: AnyLearner,
        choice: EngineChoice,
        (seed, replicate): (u64, u64),
        recorder: Recorder<'a>,
        control: &'a Control,
    ) -> Result<Self> {
        learner.set_coin(seed, replicate);
        Self::resumed(model, learner, choice, (seed, replicate), recorder, control)
    }

    /// [`Replicate::new`] for a learner that was in this replicate before and has its coin. The recorder tells how many
    /// episodes were played; the streams still are at their beginning.
    pub(crate) fn resumed(
        model: &'a ConstrainedMdp,
        learner: AnyLearner,
        choice: EngineChoice,
        (seed, replicate): (u64, u64),
        recorder: Recorder<'a>,
        control: &'a Control,
    ) -> Result<Self> {
        let plain = choice == EngineChoice::Plain;
        let one_constraint = model.costs().len() == 1;
        Ok(Self {
            engine: if plain {
                Engine::plain(learner)
            } else {
                Engine::of(learner)?
            },
            environment: TabularEnvironment::new(model)?,
            streams: StreamSet::new(seed, replicate),
            judge: if one_constraint && !plain {
                Judge::Fast(Box::new(FastJudge::new(model)?))
            } else {
                Judge::Plain(Box::new(PlainJudge::new(model)?))
            },
            recorder,
            seen: Trajectory::zeros(model.shape(), model.costs().len())?,
            control,
            answered: 0,
        })
    }

    /// Plays `episodes` further episodes; fewer if it is to stop or its state is asked for.
    pub fn play(&mut self, episodes: u64) -> Result<()> {
        self.play_observed(episodes, &mut ())
    }

    /// [`Replicate::play`] with an observer.
    pub(crate) fn play_observed<O: Observer>(
        &mut self,
        episodes: u64,
        observer: &mut O,
    ) -> Result<()> {
        let Self {
            engine,
            environment,
            streams,
            judge,
            recorder,
            seen,
            control,
            answered,
        } = self;
        let episodes = recorder.episodes() + episodes;
        for episode in recorder.episodes()..episodes {
            if control.pauses(*answered) {
                return Ok(());
            }
            control.note_progress(episode, episodes, 1);
            let deployment = engine.plan()?;
            let (played, changes) = (engine.played(), engine.changes());
            environment.play_episode(played, streams, seen);
            let truth = if let Some(mixture) = engine.mixture() {
                recorder.note_mixture(mixture);
                judge.assess_mixture(mixture)?
            } else {
                judge.assess(played, changes)?
            };
            let facts = EpisodeFacts {
                deployment: &deployment,
                truth,
                costs: judge.costs(),
                mixture: judge.of_mixtures(),
                seen,
                multiplier: engine.multiplier(),
            };
            observer.played(&facts, engine.plain_learner());
            engine.observe(seen)?;
            observer.observed(seen, engine.plain_learner());
            recorder.note(&deployment);
            let multiplier = engine.multiplier();
            recorder.add_judged(deployment.episode, truth, judge.costs(), multiplier);
        }
        Ok(())
    }

    /// Moves the streams of a resumed replicate to where they were.
    pub(crate) fn advance_streams(&mut self, noise_words: u128) {
        let horizon = self.seen.shape().horizon();
        let sizes = [horizon, self.seen.costs().len() / horizon];
        let episodes = self.recorder.episodes();
        self.streams.advance(episodes, sizes, noise_words);
    }

    /// What has been recorded.
    pub(crate) fn recorder(&self) -> &Recorder<'a> {
        &self.recorder
    }

    /// Copies of the learner, the record and the position of the noise, after which it goes on.
    pub(crate) fn state(&mut self, answered: u64) -> (AnyLearner, RecorderState, u128) {
        self.answer(answered);
        let noise_words = self.streams.noise_words();
        (self.engine.learner(), self.recorder.state(0), noise_words)
    }

    /// Notes that a request for its state needs no further answer.
    pub(crate) fn answer(&mut self, answered: u64) {
        self.answered = answered;
    }

    /// Ends the record after the last episode that was played.
    pub(crate) fn end_here(&mut self) {
        self.recorder.end_here(self.engine.multiplier());
    }

    /// The learner after all episodes, and the recorder.
    #[must_use]
    pub fn finish(self) -> (AnyLearner, Recorder<'a>) {
        (self.engine.into_learner(), self.recorder)
    }
}

/// All observations and true values of a replicate, for small runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// States, `[episodes, H]`.
    pub states: Vec<u32>,
    /// Actions, `[episodes, H]`.
    pub actions: Vec<u32>,
    /// Observed rewards, `[episodes, H]`.
    pub rewards: Vec<f64>,
    /// Observed costs, `[episodes, M, H]`.
    pub costs: Vec<f64>,
    /// V(r) of the deployed policy or mixture, `[episodes]`.
    pub deployed_value: Vec<f64>,
    /// V(c_m) of the deployed policy or mixture, `[episodes, M]`.
    pub deployed_cost: Vec<f64>,
    /// Whether pi0 was played, `[episodes]`.
    pub on_baseline: Vec<bool>,
    /// lambda when the policy was planned, `[episodes]`.
    pub multiplier: Vec<f64>,
}

impl Observer for Trace {
    fn played(&mut self, facts: &EpisodeFacts<'_>, _: Option<&mut AnyLearner>) {
        self.states.extend_from_slice(facts.seen.states());
        self.actions.extend_from_slice(facts.seen.actions());
        self.rewards.extend_from_slice(facts.seen.rewards());
        self.costs.extend_from_slice(facts.seen.costs());
        self.deployed_value.push(facts.truth.reward);
        self.deployed_cost.extend_from_slice(facts.costs);
        self.on_baseline.push(facts.deployment.source.is_baseline());
        self.multiplier.push(facts.multiplier);
    }

    fn observed(&mut self, _: &Trajectory, _: Option<&mut AnyLearner>) {}
}
