//! Runs of many replicates over threads; each is a function of (model, learner, seed, replicate) alone.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::control::Control;
use crate::error::{ArrayIndex, Error, Interval, Result};
use crate::fast::{EngineChoice, check_choice};
use crate::learn::{AnyLearner, Learner};
use crate::model::{ConstrainedMdp, InitialDistribution};
use crate::policy::SUM_TOLERANCE;
use crate::random::MAX_REPLICATE;
use crate::record::{ReplicateRecord, record_points};
use crate::run::audit::Audit;
use crate::run::episode_loop::Trace;
use crate::run::snapshot::Snapshots;
use crate::run::task::SimulationTask;

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
    /// The number of the replicate.
    pub replicate: u64,
    /// How many episodes it has played: all, unless the run was stopped.
    pub episodes: u64,
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
    let snapshots = Snapshots::none();
    let outcomes = simulate_on(
        model,
        learner,
        optimal_value,
        simulation,
        &snapshots,
        control,
    )?;
    let mut episodes = outcomes.iter().map(|outcome| outcome.episodes);
    let all_ended = episodes.all(|episodes| episodes == simulation.episodes);
    if all_ended && outcomes.len() == simulation.replicates.len() {
        Ok(outcomes)
    } else {
        Err(Error::Interrupted)
    }
}

/// [`simulate`] that goes on from the states of its replicates, and answers requests for them.
///
/// If it is stopped, the outcomes are those of the replicates that have played, and each record is that of a run of as
/// many episodes as it has played.
pub fn simulate_on(
    model: &ConstrainedMdp,
    learner: &AnyLearner,
    optimal_value: f64,
    simulation: &Simulation,
    snapshots: &Snapshots,
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
        snapshots,
        control,
    };
    let groups = work.groups();
    let results: Vec<Mutex<Option<GroupResult>>> =
        groups.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    let worker = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let (Some(slot), Some(group)) = (results.get(index), groups.get(index)) else {
                return;
            };
            if control.is_stopped() {
                return;
            }
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
            // The threads that there are do the work of one that cannot be started.
            let _ = std::thread::Builder::new().spawn_scoped(scope, worker);
        }
        worker();
    });
    let outcomes = gather_outcomes(simulation.replicates.len(), results)?;
    let all = outcomes.into_iter().enumerate();
    let all = all.map(|(index, outcome)| match outcome {
        Some(outcome) => Ok(Some(outcome)),
        None => work.outcome_so_far(index),
    });
    all.filter_map(Result::transpose).collect()
}

/// The outcomes of a group of replicates, each with its place in the order of the run.
pub(super) type GroupResult = Result<Vec<(usize, Outcome)>>;

/// All outcomes in order, or the first error. Replicates whose turn did not come have none.
fn gather_outcomes(
    count: usize,
    results: Vec<Mutex<Option<GroupResult>>>,
) -> Result<Vec<Option<Outcome>>> {
    let mut outcomes: Vec<Option<Outcome>> = (0..count).map(|_| None).collect();
    for slot in results {
        if let Some(group) = slot.into_inner().ok().flatten() {
            for (index, outcome) in group? {
                outcomes[index] = Some(outcome);
            }
        }
    }
    Ok(outcomes)
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
    for &replicate in &simulation.replicates {
        check_replicate(replicate)?;
    }
    scalar("threads", simulation.threads as f64, 1.0, f64::MAX)
}

/// Refuses the number of a replicate whose random numbers would be those of another one.
pub fn check_replicate(replicate: u64) -> Result<()> {
    if replicate <= MAX_REPLICATE {
        return Ok(());
    }
    Err(Error::OutOfRange {
        place: ArrayIndex::scalar("replicate"),
        found: replicate as f64,
        allowed: Interval::closed(0.0, MAX_REPLICATE as f64),
    })
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
