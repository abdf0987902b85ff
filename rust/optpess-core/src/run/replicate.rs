//! Runs of many replicates over threads; each is a function of (model, learner, seed, replicate) alone.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::control::Control;
use crate::error::{ArrayIndex, Error, Interval, Result};
use crate::fast::batch::{BatchLearners, fits_batch, run_batch};
use crate::fast::lanes::{LANES, Lanes};
use crate::fast::{BatchStreams, EngineChoice, Lane, check_choice};
use crate::learn::{AnyLearner, Learner, OptPessPrimalDual};
use crate::model::{ConstrainedMdp, InitialDistribution};
use crate::policy::SUM_TOLERANCE;
use crate::record::{Recorder, ReplicateRecord, record_points};
use crate::run::assumption::SafetyClaim;
use crate::run::audit::{Audit, Auditor};
use crate::run::episode_loop::{Replicate, Trace};

/// Fewer replicates than this are faster one after the other.
const MIN_BATCH: usize = 3;

/// The settings of a run.
#[derive(Debug, Clone)]
pub struct Simulation {
    /// The replicates, by number; results come in this order.
    pub replicates: Vec<u64>,
    /// The seed all replicates share.
    pub seed: u64,
    /// How many threads to use, at least 1.
    pub threads: usize,
    /// How many episodes to play, at most those the learner has left.
    pub episodes: u64,
    /// Whether to keep all observations.
    pub trace: bool,
    /// Whether to check the paper's events and lemmas at every episode.
    pub audit: bool,
    /// Whether to keep the learners as they are after the last episode.
    pub learners: bool,
    /// The engine; the results are the same for all.
    pub engine: EngineChoice,
}

/// The result of one replicate.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The curves and totals.
    pub record: ReplicateRecord,
    /// All observations, if they were asked for.
    pub trace: Option<Trace>,
    /// The findings of the audit, if it was asked for.
    pub audit: Option<Audit>,
    /// The learner after the last episode, if it was asked for. It goes on where the replicate stopped.
    pub learner: Option<AnyLearner>,
}

/// Runs every replicate from a copy of the learner, judged against the model.
pub fn simulate(
    model: &ConstrainedMdp,
    learner: &AnyLearner,
    optimal_value: f64,
    simulation: &Simulation,
    control: &Control,
) -> Result<Vec<Outcome>> {
    check(model, learner, simulation)?;
    let points = record_points(simulation.episodes, 40);
    let work = SimulationTask {
        model,
        learner,
        optimal_value,
        simulation,
        points: &points,
        control,
    };
    let together = work.batch_size();
    let groups: Vec<&[u64]> = simulation.replicates.chunks(together).collect();
    let results: Vec<Mutex<Option<Result<Vec<Outcome>>>>> =
        groups.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    let worker = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let (Some(slot), Some(&group)) = (results.get(index), groups.get(index)) else {
                return;
            };
            let outcome = work.run_group(group);
            if outcome.is_err() {
                control.stop.store(true, Ordering::Relaxed);
            }
            if let Ok(mut place) = slot.lock() {
                *place = Some(outcome);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..simulation.threads.min(groups.len()) {
            scope.spawn(worker);
        }
        worker();
    });
    gather_outcomes(results)
}

/// All outcomes in order, or the first error that is not the interruption caused by another error.
fn gather_outcomes(results: Vec<Mutex<Option<Result<Vec<Outcome>>>>>) -> Result<Vec<Outcome>> {
    let mut outcomes = Vec::with_capacity(results.len());
    let mut interrupted = false;
    for slot in results {
        match slot.into_inner().ok().flatten() {
            Some(Ok(group)) => outcomes.extend(group),
            Some(Err(Error::Interrupted)) | None => interrupted = true,
            Some(Err(error)) => return Err(error),
        }
    }
    if interrupted {
        Err(Error::Interrupted)
    } else {
        Ok(outcomes)
    }
}

/// The data that all replicates share.
struct SimulationTask<'a> {
    model: &'a ConstrainedMdp,
    learner: &'a AnyLearner,
    optimal_value: f64,
    simulation: &'a Simulation,
    points: &'a [u64],
    control: &'a Control,
}

impl SimulationTask<'_> {
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

    /// Runs a group of replicates, one after the other or in lanes, with the same outcomes.
    fn run_group(&self, group: &[u64]) -> Result<Vec<Outcome>> {
        let (choice, forced) = (self.choice(), self.simulation.engine);
        if let (EngineChoice::Batch { lanes }, AnyLearner::OptPessPrimalDual(learner)) =
            (choice, self.learner)
        {
            let few = group.len() < MIN_BATCH && forced == EngineChoice::Auto;
            if lanes == LANES && !few {
                return self.run_batch::<Lanes>(group, learner);
            }
            let mut outcomes = Vec::with_capacity(group.len());
            for one in group.chunks(1) {
                outcomes.extend(self.run_batch::<f64>(one, learner)?);
            }
            return Ok(outcomes);
        }
        let alone = group.iter();
        alone
            .map(|&replicate| self.run_one(replicate, choice))
            .collect()
    }

    fn recorder<V: Lane>(&self, num_replicates: usize) -> Recorder<'_, V> {
        let limits = self.model.limits();
        Recorder::new(self.points, self.optimal_value, limits, num_replicates)
    }

    fn run_batch<V: Lane>(
        &self,
        group: &[u64],
        learner: &OptPessPrimalDual,
    ) -> Result<Vec<Outcome>> {
        let mut learners = BatchLearners::<V>::new(learner)?;
        let mut streams = BatchStreams::new(self.simulation.seed, group);
        let mut recorder = self.recorder::<V>(group.len());
        run_batch(
            self.model,
            &mut learners,
            self.simulation.episodes,
            &mut streams,
            &mut recorder,
            self.control,
        )?;
        let records = recorder.finish(safe_cost(self.learner)).into_iter();
        let outcomes = records.enumerate().map(|(lane, record)| {
            Ok(Outcome {
                record,
                trace: None,
                audit: None,
                learner: if self.simulation.learners {
                    Some(learners.learner(learner, lane)?.into())
                } else {
                    None
                },
            })
        });
        outcomes.collect()
    }

    fn run_one(&self, replicate: u64, choice: EngineChoice) -> Result<Outcome> {
        let (model, simulation) = (self.model, self.simulation);
        let mut trace = simulation.trace.then(Trace::default);
        let mut auditor = if simulation.audit {
            let claim = SafetyClaim::of(model, self.learner)?;
            Some(Auditor::new(model, self.learner, self.optimal_value, claim))
        } else {
            None
        };
        let (learner, address) = (self.learner.clone(), (simulation.seed, replicate));
        let recorder = self.recorder(1);
        let mut replicate =
            Replicate::new(model, learner, choice, address, recorder, self.control)?;
        // The loop is compiled once more without observers, so that a run without them does no work for them.
        if trace.is_none() && auditor.is_none() {
            replicate.play(simulation.episodes)?;
        } else {
            let mut both = (&mut trace, &mut auditor);
            replicate.play_observed(simulation.episodes, &mut both)?;
        }
        let (learner, recorder) = replicate.finish();
        Ok(Outcome {
            record: recorder.finish(safe_cost(&learner)).swap_remove(0),
            trace,
            audit: auditor.map(Auditor::finish),
            learner: simulation.learners.then_some(learner),
        })
    }
}

/// c0 as the learner uses it now; NaN while it is unknown.
fn safe_cost(learner: &AnyLearner) -> f64 {
    let margin = learner.margin();
    margin.map_or(f64::NAN, |margin| margin.safe_cost())
}

/// How many of its K episodes a learner has not seen yet.
pub fn episodes_left(learner: &AnyLearner) -> u64 {
    learner.terms().num_episodes() - learner.episodes_observed()
}

fn check(model: &ConstrainedMdp, learner: &AnyLearner, simulation: &Simulation) -> Result<()> {
    check_model(model, learner)?;
    let observed = [simulation.trace, simulation.audit];
    check_choice(simulation.engine, learner, observed)?;
    let left = episodes_left(learner) as f64;
    scalar("episodes", simulation.episodes as f64, 1.0, left)?;
    let count = simulation.replicates.len() as f64;
    scalar("replicates", count, 1.0, f64::MAX)?;
    scalar("threads", simulation.threads as f64, 1.0, f64::MAX)
}

/// Refuses a model that does not match the learner's inputs.
pub(crate) fn check_model(model: &ConstrainedMdp, learner: &dyn Learner) -> Result<()> {
    let expected = learner.shape().sizes().to_vec();
    let found = model.shape().sizes().to_vec();
    if expected != found {
        return Err(Error::ShapeMismatch {
            array: "model",
            axes: "[H, S, A] of the learner",
            expected,
            found,
        });
    }
    let limits = learner.cost_limits();
    let constraints = limits.len() as f64;
    scalar(
        "the model's number of constraints",
        model.costs().len() as f64,
        constraints,
        constraints,
    )?;
    for (constraint, (&found, &limit)) in model.limits().iter().zip(&limits).enumerate() {
        let allowed = Interval::closed(limit, limit);
        if !allowed.contains(found) {
            let array = "the model's cost_limit (the learner has another)";
            let place = match limits.len() {
                1 => ArrayIndex::scalar(array),
                _ => ArrayIndex::new(array, &[constraint]),
            };
            return Err(Error::OutOfRange {
                place,
                found,
                allowed,
            });
        }
    }
    let initial = [model.initial(), learner.experience().initial()].map(InitialDistribution::data);
    for (state, (&found, &expected)) in initial[0].iter().zip(initial[1]).enumerate() {
        let allowed = Interval::closed(expected - SUM_TOLERANCE, expected + SUM_TOLERANCE);
        if !allowed.contains(found) {
            return Err(Error::OutOfRange {
                place: ArrayIndex::new(
                    "the model's initial distribution (the learner has another)",
                    &[state],
                ),
                found,
                allowed,
            });
        }
    }
    Ok(())
}

fn scalar(name: &'static str, found: f64, low: f64, high: f64) -> Result<()> {
    let allowed = Interval::closed(low, high);
    if allowed.contains(found) {
        return Ok(());
    }
    Err(Error::OutOfRange {
        place: ArrayIndex::scalar(name),
        found,
        allowed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actions::StandIns;
    use crate::confidence::{ConfidenceRule, Guarantee, LearningTerms, SafetyMargin};
    use crate::learn::{BiasedSignals, Deployment, Experience, Figures, OptPessPrimalDual};
    use crate::model::{Kernel, ObservationNoise, Slices, TransitionKernel, UnitSignal};
    use crate::policy::MarkovPolicy;
    use crate::shape::Shape;
    use crate::table::Signal;
    use crate::trajectory::Trajectory;

    /// A learner with other limits than the one inside.
    struct Limited(OptPessPrimalDual, Vec<f64>);

    impl Learner for Limited {
        fn next_policy(&mut self) -> Result<Deployment> {
            self.0.next_policy()
        }
        fn policy(&self) -> &MarkovPolicy {
            self.0.policy()
        }
        fn restrict(&mut self, actions: &StandIns) -> Result<()> {
            self.0.restrict(actions)
        }
        fn observe(&mut self, seen: &Trajectory) -> Result<()> {
            self.0.observe(seen)
        }
        fn experience(&self) -> &Experience {
            self.0.experience()
        }
        fn protocol_mut(&mut self) -> &mut crate::learn::Protocol {
            self.0.protocol_mut()
        }
        fn margin(&self) -> Option<SafetyMargin> {
            self.0.margin()
        }
        fn cost_limit(&self) -> f64 {
            self.1[0]
        }
        fn cost_limits(&self) -> Vec<f64> {
            self.1.clone()
        }
        fn signals(&mut self) -> BiasedSignals<'_> {
            self.0.signals()
        }
        fn figures(&mut self) -> Figures {
            self.0.figures()
        }
        fn guarantee(&self) -> Option<Guarantee> {
            self.0.guarantee()
        }
    }

    fn model(limits: &[f64]) -> ConstrainedMdp {
        let shape = Shape::new(1, 1, 2).unwrap();
        let kernel = Kernel::dense(1, 2, Slices::Stationary, vec![1.0, 1.0]).unwrap();
        let signal = || {
            let signal = Signal::new("signal", shape, vec![0.25, 1.0]).unwrap();
            UnitSignal::new("signal", &[], signal).unwrap()
        };
        ConstrainedMdp::new(
            TransitionKernel::new(std::sync::Arc::new(kernel)).unwrap(),
            signal(),
            limits.iter().map(|_| signal()).collect(),
            limits.to_vec(),
            InitialDistribution::new(1, vec![1.0]).unwrap(),
            ObservationNoise::Bernoulli,
        )
        .unwrap()
    }

    fn refusal(model_limits: &[f64], learner_limits: &[f64]) -> Option<String> {
        let terms = LearningTerms::new(10, 0.1, ConfidenceRule::Theorem).unwrap();
        let initial = InitialDistribution::new(1, vec![1.0]).unwrap();
        let margin = SafetyMargin::new(0.5, 0.25).unwrap();
        let shape = Shape::new(1, 1, 2).unwrap();
        let inside = OptPessPrimalDual::new(shape, initial, margin, terms).unwrap();
        let learner = Limited(inside, learner_limits.to_vec());
        let checked = check_model(&model(model_limits), &learner);
        checked.err().map(|error| error.to_string())
    }

    #[test]
    fn every_limit_is_compared() {
        assert_eq!(refusal(&[0.5], &[0.5]), None);
        assert_eq!(refusal(&[0.5, 0.75, 0.25], &[0.5, 0.75, 0.25]), None);
        let refused = |model: &[f64], learner: &[f64], words: &str| {
            let message = refusal(model, learner).unwrap();
            assert!(message.contains(words), "{message}");
        };
        let count = "the model's number of constraints is";
        refused(&[0.5, 0.75], &[0.5], count);
        refused(&[0.5], &[0.5, 0.75], count);
        let limit = "the model's cost_limit (the learner has another)";
        refused(&[0.75], &[0.5], &format!("{limit} is 0.75"));
        refused(&[0.5, 0.5], &[0.5, 0.75], &format!("{limit}[1] is 0.5"));
    }
}
