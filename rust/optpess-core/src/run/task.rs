//! What the workers of a run do: one replicate after the other, or groups of them in lanes.

use std::cmp::Reverse;

use crate::control::Control;
use crate::error::{Error, Result};
use crate::fast::batch::{BatchLearners, fits_batch, run_batch};
use crate::fast::lanes::{LANES, Lanes};
use crate::fast::{BatchStreams, EngineChoice, Lane};
use crate::learn::{AnyLearner, Learner, OptPessPrimalDual};
use crate::model::ConstrainedMdp;
use crate::record::{Recorder, RecorderState};
use crate::run::assumption::SafetyClaim;
use crate::run::audit::{AuditState, Auditor};
use crate::run::episode_loop::{Replicate, Trace};
use crate::run::replicate::{GroupResult, Outcome, Simulation};
use crate::run::snapshot::{ReplicateState, Snapshots};

/// Fewer replicates than this are faster one after the other.
const MIN_BATCH: usize = 3;

/// The data that all replicates share.
pub(super) struct SimulationTask<'a> {
    pub(super) model: &'a ConstrainedMdp,
    pub(super) learner: &'a AnyLearner,
    pub(super) optimal_value: f64,
    pub(super) simulation: &'a Simulation,
    pub(super) points: &'a [u64],
    pub(super) snapshots: &'a Snapshots,
    pub(super) control: &'a Control,
}

impl<'a> SimulationTask<'a> {
    /// The engine that is used: an audit needs the learner's own claims, and a batch can be neither audited nor traced.
    fn choice(&self) -> EngineChoice {
        let observed = self.simulation.trace || self.simulation.audit;
        match self.simulation.engine {
            EngineChoice::Auto if self.simulation.audit => EngineChoice::Plain,
            EngineChoice::Auto if !observed && fits_batch(self.learner) => {
                EngineChoice::Batch { lanes: LANES }
            }
            EngineChoice::Auto => EngineChoice::Packed,
            forced => forced,
        }
    }

    /// How many replicates one worker takes at a time: as many as a batch has lanes, fewer if threads would be idle.
    fn batch_size(&self) -> usize {
        let EngineChoice::Batch { lanes } = self.choice() else {
            return 1;
        };
        let replicates = self.simulation.replicates.len();
        let share = replicates.div_ceil(self.simulation.threads);
        share.clamp(1, lanes)
    }

    /// The places of the replicates that are played together: as many episodes of each were played before. Those that
    /// are furthest come first.
    pub(super) fn groups(&self) -> Vec<Vec<usize>> {
        let count = self.simulation.replicates.len();
        let stored = |index| self.snapshots.of(index);
        let played = |index| stored(index).map_or(0, |stored| stored.episodes);
        let played: Vec<u64> = (0..count).map(played).collect();
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by_key(|&index| Reverse(played[index])); // stable: a fresh run keeps its order
        let as_far = order.chunk_by(|&a, &b| played[a] == played[b]);
        let groups = as_far.flat_map(|together| together.chunks(self.batch_size()));
        groups.map(<[usize]>::to_vec).collect()
    }

    /// Runs a group of replicates, one after the other or in lanes, with the same outcomes.
    pub(super) fn run_group(&self, group: &[usize]) -> GroupResult {
        let _watch = self.control.watch();
        for &index in group {
            self.snapshots.begin(index);
        }
        let outcomes = self.outcomes(group);
        for &index in group {
            self.snapshots.end(index);
        }
        outcomes
    }

    fn outcomes(&self, group: &[usize]) -> GroupResult {
        let (choice, forced) = (self.choice(), self.simulation.engine);
        let EngineChoice::Batch { lanes } = choice else {
            return self.one_by_one(group, |index, state| self.run_one(index, state, choice));
        };
        let few = group.len() < MIN_BATCH && forced == EngineChoice::Auto;
        if lanes == LANES && !few {
            let states = group.iter().map(|&index| self.state_of(index));
            let states: Vec<Option<ReplicateState>> = states.collect::<Result<_>>()?;
            let states: Option<Vec<ReplicateState>> = states.into_iter().collect();
            match states {
                Some(states) if self.have_ended(&states) => {}
                states => return self.run_batch::<Lanes>(group, states.unwrap_or_default()),
            }
        }
        self.one_by_one(group, |index, state| {
            let outcomes = self.run_batch::<f64>(&[index], state.into_iter().collect())?;
            Ok(outcomes.into_iter().next().map(|(_, outcome)| outcome))
        })
    }

    /// Runs replicates one after the other; those that have ended are not run.
    fn one_by_one(
        &self,
        group: &[usize],
        run: impl Fn(usize, Option<ReplicateState>) -> Result<Option<Outcome>>,
    ) -> GroupResult {
        let mut outcomes = Vec::with_capacity(group.len());
        for &index in group {
            let outcome = match self.state_of(index)? {
                Some(state) if self.have_ended(std::slice::from_ref(&state)) => {
                    self.control
                        .note_resumed(state.record.episodes(), self.simulation.episodes);
                    Some(self.outcome_of(index, state)?)
                }
                state => run(index, state)?,
            };
            outcomes.extend(outcome.map(|outcome| (index, outcome)));
        }
        Ok(outcomes)
    }

    /// The state from which a replicate goes on; None for one that has not played.
    fn state_of(&self, index: usize) -> Result<Option<ReplicateState>> {
        match self.snapshots.of(index) {
            Some(stored) if stored.episodes > 0 => stored.state(self.learner).map(Some),
            _ => Ok(None),
        }
    }

    fn have_ended(&self, states: &[ReplicateState]) -> bool {
        let mut episodes = states.iter().map(|state| state.record.episodes());
        episodes.all(|episodes| episodes >= self.simulation.episodes)
    }

    /// The outcome of a replicate that is not played further: it has ended, or the run was stopped before its turn.
    fn outcome_of(&self, index: usize, state: ReplicateState) -> Result<Outcome> {
        let simulation = self.simulation;
        let mut recorder = self.resumed_recorder::<f64>(vec![state.record])?;
        let has_ended = recorder.episodes() >= simulation.episodes;
        let fits = [
            state.learner.is_some() == (simulation.learners || !has_ended),
            state.trace.is_some() == simulation.trace,
            state.audit.is_some() == simulation.audit,
        ];
        if fits.contains(&false) {
            return Err(Error::StoredState {
                what: "the state of a replicate",
            });
        }
        recorder.end_here(state.learner.as_ref().map_or(0.0, Learner::multiplier));
        Ok(Outcome {
            replicate: simulation.replicates[index],
            episodes: recorder.episodes(),
            record: recorder.finish(state.safe_cost).swap_remove(0),
            trace: state.trace,
            audit: state.audit.map(AuditState::findings),
            learner: state.learner.filter(|_| simulation.learners),
        })
    }

    /// The outcome of a replicate whose turn did not come before the run was stopped; None if it has not played.
    pub(super) fn outcome_so_far(&self, index: usize) -> Result<Option<Outcome>> {
        let state = self.state_of(index)?;
        state.map(|state| self.outcome_of(index, state)).transpose()
    }

    fn recorder<V: Lane>(&self, num_replicates: usize) -> Recorder<'a, V> {
        let limits = self.model.limits();
        Recorder::new(self.points, self.optimal_value, limits, num_replicates)
    }

    fn resumed_recorder<V: Lane>(&self, states: Vec<RecorderState>) -> Result<Recorder<'a, V>> {
        let limits = self.model.limits();
        Recorder::resumed(self.points, self.optimal_value, limits, states)
    }

    /// The learner as a state keeps it: not after the last episode, unless the run keeps its learners.
    fn kept_learner(&self, learner: AnyLearner, episodes: u64) -> Option<AnyLearner> {
        let ended = episodes >= self.simulation.episodes;
        (!ended || self.simulation.learners).then_some(learner)
    }

    /// Runs replicates in lanes, from their states or, if there are none, from the beginning.
    fn run_batch<V: Lane>(&self, group: &[usize], states: Vec<ReplicateState>) -> GroupResult {
        let AnyLearner::OptPessPrimalDual(first) = self.learner else {
            return Ok(Vec::new()); // refused before
        };
        let (simulation, control) = (self.simulation, self.control);
        let numbers: Vec<u64> = group.iter().map(|&i| simulation.replicates[i]).collect();
        let mut streams = BatchStreams::new(simulation.seed, &numbers);
        let (mut learners, mut recorder);
        if states.is_empty() {
            learners = BatchLearners::<V>::new(&[first])?;
            recorder = self.recorder::<V>(group.len());
        } else {
            let own = states.iter().map(|state| match &state.learner {
                Some(AnyLearner::OptPessPrimalDual(learner)) => Ok(&**learner),
                _ => Err(Error::StoredState {
                    what: "the learner of a replicate",
                }),
            });
            let own: Vec<&OptPessPrimalDual> = own.collect::<Result<_>>()?;
            learners = BatchLearners::<V>::new(&own)?;
            let words: Vec<u128> = states.iter().map(|state| state.noise_words).collect();
            let records = states.into_iter().map(|state| state.record).collect();
            recorder = self.resumed_recorder::<V>(records)?;
            let horizon = self.model.shape().horizon();
            streams.advance(recorder.episodes(), horizon, &words);
            for _ in group {
                control.note_resumed(recorder.episodes(), simulation.episodes);
            }
        }
        let mut answered = 0;
        loop {
            let (episodes, ask) = (simulation.episodes, (control, answered));
            run_batch(
                self.model,
                &mut learners,
                episodes,
                &mut streams,
                &mut recorder,
                ask,
            )?;
            let has_ended = recorder.episodes() == episodes;
            answered = control.last_request();
            if self.snapshots.are_kept() {
                for (lane, &index) in group.iter().enumerate() {
                    let learner = learners.learner(first, lane)?.into();
                    let state = ReplicateState {
                        record: recorder.state(lane),
                        learner: self.kept_learner(learner, recorder.episodes()),
                        safe_cost: safe_cost(self.learner),
                        noise_words: streams.noise_words(lane),
                        trace: None,
                        audit: None,
                    };
                    self.snapshots.put(index, answered, &state)?;
                }
            }
            if has_ended || control.is_stopped() {
                break;
            }
        }
        let episodes = recorder.episodes();
        if episodes == 0 {
            return Ok(Vec::new());
        }
        recorder.end_here(*learners.multipliers());
        let records = recorder.finish(safe_cost(self.learner)).into_iter();
        let outcomes = records.enumerate().map(|(lane, record)| {
            let outcome = Outcome {
                replicate: numbers[lane],
                episodes,
                record,
                trace: None,
                audit: None,
                learner: if simulation.learners {
                    Some(learners.learner(first, lane)?.into())
                } else {
                    None
                },
            };
            Ok((group[lane], outcome))
        });
        outcomes.collect()
    }

    /// Runs one replicate, from its state or, if there is none, from the beginning; None if it did not play.
    fn run_one(
        &self,
        index: usize,
        state: Option<ReplicateState>,
        choice: EngineChoice,
    ) -> Result<Option<Outcome>> {
        let (model, simulation, control) = (self.model, self.simulation, self.control);
        let address = (simulation.seed, simulation.replicates[index]);
        let mut trace = simulation.trace.then(Trace::default);
        let mut auditor = None;
        let mut replicate;
        if let Some(state) = state {
            let learner = state.learner.ok_or(Error::StoredState {
                what: "the learner of a replicate",
            })?;
            if state.trace.is_some() != simulation.trace
                || state.audit.is_some() != simulation.audit
            {
                return Err(Error::StoredState {
                    what: "the trace or the audit of a replicate",
                });
            }
            trace = state.trace;
            auditor = state
                .audit
                .map(|audit| Auditor::resumed(model, &learner, self.optimal_value, audit));
            let recorder = self.resumed_recorder(vec![state.record])?;
            control.note_resumed(recorder.episodes(), simulation.episodes);
            replicate = Replicate::resumed(model, learner, choice, address, recorder, control)?;
            replicate.advance_streams(state.noise_words);
        } else {
            if simulation.audit {
                let claim = SafetyClaim::of(model, self.learner)?;
                auditor = Some(Auditor::new(model, self.learner, self.optimal_value, claim));
            }
            self.learner.check_memory()?;
            let (learner, recorder) = (self.learner.clone(), self.recorder(1));
            replicate = Replicate::new(model, learner, choice, address, recorder, control)?;
        }
        let is_within_episode = loop {
            let left = simulation.episodes - replicate.recorder().episodes();
            // The loop is compiled once more without observers, so that a run without them does no work for them.
            let played = if trace.is_none() && auditor.is_none() {
                replicate.play(left)
            } else {
                replicate.play_observed(left, &mut (&mut trace, &mut auditor))
            };
            match played {
                Err(Error::Interrupted) => break true, // the last state is older, but whole
                played => played?,
            }
            let answered = control.last_request();
            let episodes = replicate.recorder().episodes();
            if self.snapshots.are_kept() {
                let (learner, record, noise_words) = replicate.state(answered);
                let state = ReplicateState {
                    record,
                    safe_cost: safe_cost(&learner),
                    learner: self.kept_learner(learner, episodes),
                    noise_words,
                    trace: trace.clone(),
                    audit: auditor.as_ref().map(|auditor| auditor.state().clone()),
                };
                self.snapshots.put(index, answered, &state)?;
            } else {
                replicate.answer(answered);
            }
            if episodes == simulation.episodes || control.is_stopped() {
                break false;
            }
        };
        let episodes = replicate.recorder().episodes();
        if episodes == 0 {
            return Ok(None);
        }
        replicate.end_here();
        let (learner, recorder) = replicate.finish();
        Ok(Some(Outcome {
            replicate: address.1,
            episodes,
            record: recorder.finish(safe_cost(&learner)).swap_remove(0),
            trace,
            audit: auditor.map(Auditor::finish),
            // One that was stopped within its plan is not the learner after its last episode.
            learner: (simulation.learners && !is_within_episode).then_some(learner),
        }))
    }
}

/// c0 as the learner uses it now; NaN while it is unknown.
fn safe_cost(learner: &AnyLearner) -> f64 {
    let margin = learner.margin();
    margin.map_or(f64::NAN, |margin| margin.safe_cost())
}
