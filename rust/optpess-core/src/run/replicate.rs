//! Many replicates over threads; each is a function of (model, learner, seed, replicate) alone.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crate::error::{ArrayIndex, Error, Interval, Result};
use crate::lanes::{LANES, Lane, Lanes};
use crate::learn::{BatchLearners, Learner};
use crate::model::ConstrainedMdp;
use crate::record::{BatchRecorder, Recorder, ReplicateRecord, record_points};
use crate::run::audit::{Audit, Auditor, Figures};
use crate::run::engine::{EngineChoice, refused};
use crate::run::episode_loop::{Trace, run_episodes};
use crate::run::side_by_side::run_batch_loop;
use crate::simulate::{BatchStreams, Streams};

/// Fewer replicates than this are faster one after the other.
const MIN_BATCH: usize = 3;

/// What is to be run.
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
    /// Whether to keep everything that was seen.
    pub trace: bool,
    /// Whether to check the paper's events and lemmas at every episode.
    pub audit: bool,
    /// Which implementation to use; it changes no bit of what comes out.
    pub engine: EngineChoice,
}

/// How the caller watches and stops a run.
#[derive(Debug, Default)]
pub struct Control {
    /// Set it to end the run with [`Error::Interrupted`].
    pub stop: AtomicBool,
    /// How many episodes all replicates together have begun, rounded up a little.
    pub episodes_done: AtomicU64,
}

/// What one replicate came to.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The curves and totals.
    pub record: ReplicateRecord,
    /// Everything that was seen, if it was asked for.
    pub trace: Option<Trace>,
    /// What the audit found, if it was asked for.
    pub audit: Option<Audit>,
}

/// Runs every replicate from a copy of the learner, judged against the model.
pub fn simulate<L: Learner>(
    model: &ConstrainedMdp,
    learner: &L,
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
    let together = work.batch_size()?;
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

/// All outcomes in order, or the first error that is not merely the echo of another.
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

/// What every replicate is given.
struct SimulationTask<'a, L> {
    model: &'a ConstrainedMdp,
    learner: &'a L,
    optimal_value: f64,
    simulation: &'a Simulation,
    points: &'a [u64],
    control: &'a Control,
}

impl<L: Learner> SimulationTask<'_, L> {
    /// Whether replicates run in lanes, and if the number of lanes was chosen, that number.
    fn batch(&self) -> Result<Option<Option<usize>>> {
        let Simulation { trace, audit, .. } = *self.simulation;
        match self.simulation.engine {
            EngineChoice::Plain | EngineChoice::Packed => Ok(None),
            EngineChoice::Auto if trace || audit => Ok(None),
            EngineChoice::Auto => Ok(self.learner.flock::<f64>()?.map(|_| None)),
            EngineChoice::Batch { lanes } => match self.learner.flock::<f64>()? {
                Some(_) => Ok(Some(Some(lanes))),
                None => refused("Batch", "this learner and problem have none"),
            },
        }
    }

    /// How many replicates run side by side: as many as a flock holds, fewer if threads would be idle.
    fn batch_size(&self) -> Result<usize> {
        match self.batch()? {
            None => Ok(1),
            Some(Some(lanes)) => Ok(lanes),
            Some(None) => {
                let replicates = self.simulation.replicates.len();
                let share = replicates.div_ceil(self.simulation.threads);
                Ok(share.clamp(1, LANES))
            }
        }
    }

    /// A group by itself, or side by side; what comes out is the same.
    fn run_group(&self, group: &[u64]) -> Result<Vec<Outcome>> {
        if let Some(lanes) = self.batch()? {
            let together = lanes.map_or(group.len() >= MIN_BATCH, |lanes| lanes == LANES);
            if together && let Some(flock) = self.learner.flock::<Lanes>()? {
                return self.run_batch(group, flock);
            }
            if let Some(flock) = self.learner.flock::<f64>()? {
                let alone = group.chunks(1);
                let outcomes = alone.map(|one| self.run_batch(one, flock.clone()));
                return Ok(outcomes.collect::<Result<Vec<_>>>()?.concat());
            }
        }
        group
            .iter()
            .map(|&replicate| self.run_one(replicate))
            .collect()
    }

    fn recorder(&self) -> Recorder<'_> {
        Recorder::new(self.points, self.optimal_value, self.learner.cost_limit())
    }

    fn run_batch<V: Lane>(
        &self,
        group: &[u64],
        mut flock: BatchLearners<V>,
    ) -> Result<Vec<Outcome>> {
        let mut streams = BatchStreams::new(self.simulation.seed, group);
        let recorders = group.iter().map(|_| self.recorder()).collect();
        let mut recorder = BatchRecorder::new(recorders);
        let first_episode = flock.episodes_observed();
        run_batch_loop(
            self.model,
            &mut flock,
            self.simulation.episodes,
            &mut streams,
            &mut recorder,
            self.control,
        )?;
        let safe_cost = safe_cost(self.learner);
        let recorders = recorder.finish(first_episode).into_iter();
        let outcomes = recorders.map(|recorder| Outcome {
            record: recorder.finish(safe_cost),
            trace: None,
            audit: None,
        });
        Ok(outcomes.collect())
    }

    fn run_one(&self, replicate: u64) -> Result<Outcome> {
        let (model, simulation, control) = (self.model, self.simulation, self.control);
        let mut learner = self.learner.clone();
        let mut streams = Streams::new(simulation.seed, replicate);
        let mut recorder = self.recorder();
        let mut trace = simulation.trace.then(Trace::default);
        let mut auditor = simulation
            .audit
            .then(|| Auditor::new(model, &learner, self.optimal_value));
        let episodes = simulation.episodes;
        // The loop is compiled for each kind of observer, so that a plain run pays for none.
        if auditor.is_some() || simulation.engine == EngineChoice::Plain {
            let mut figures = Figures {
                trace: trace.as_mut(),
                auditor: auditor.as_mut(),
            };
            run_episodes(
                model,
                &mut learner,
                episodes,
                &mut streams,
                &mut recorder,
                &mut figures,
                control,
            )
        } else if let Some(trace) = &mut trace {
            run_episodes(
                model,
                &mut learner,
                episodes,
                &mut streams,
                &mut recorder,
                trace,
                control,
            )
        } else {
            run_episodes(
                model,
                &mut learner,
                episodes,
                &mut streams,
                &mut recorder,
                &mut (),
                control,
            )
        }?;
        Ok(Outcome {
            record: recorder.finish(safe_cost(&learner)),
            trace,
            audit: auditor.map(Auditor::finish),
        })
    }
}

/// c0 as the learner uses it now; NaN while it is unknown.
fn safe_cost<L: Learner>(learner: &L) -> f64 {
    let margin = learner.margin();
    margin.map_or(f64::NAN, |margin| margin.safe_cost())
}

/// How many of its K episodes a learner has not seen yet.
pub fn episodes_left<L: Learner>(learner: &L) -> u64 {
    learner.terms().num_episodes() - learner.episodes_observed()
}

fn check<L: Learner>(model: &ConstrainedMdp, learner: &L, simulation: &Simulation) -> Result<()> {
    check_model(model, learner)?;
    let left = episodes_left(learner) as f64;
    scalar("episodes", simulation.episodes as f64, 1.0, left)?;
    let count = simulation.replicates.len() as f64;
    scalar("replicates", count, 1.0, f64::MAX)?;
    scalar("threads", simulation.threads as f64, 1.0, f64::MAX)?;
    simulation.engine.check(simulation.trace, simulation.audit)
}

/// Refuses a model that is not one the learner could have been made for.
pub(crate) fn check_model<L: Learner>(model: &ConstrainedMdp, learner: &L) -> Result<()> {
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
    scalar(
        "the model's number of constraints",
        model.costs().len() as f64,
        1.0,
        1.0,
    )?;
    let limit = learner.cost_limit();
    scalar(
        "the model's cost_limit (the learner has another)",
        model.limits()[0],
        limit,
        limit,
    )
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
