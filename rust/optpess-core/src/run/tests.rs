//! Tests of runs that start from states which would take hours to reach, or which are wrong on purpose.

use std::sync::Arc;

use crate::confidence::{ConfidenceRule, LearningTerms, SafetyMargin};
use crate::control::Control;
use crate::estimate::Estimates;
use crate::fast::EngineChoice;
use crate::learn::{AnyLearner, Learner, LiveLearner, OptPessPrimalDual};
use crate::model::{
    ConstrainedMdp, InitialDistribution, Kernel, ObservationNoise, Slices, TransitionKernel,
    UnitSignal,
};
use crate::number::from_count;
use crate::run::audit::Auditor;
use crate::run::episode_loop::Observer;
use crate::run::{Audit, Check, Outcome, Simulation, simulate};
use crate::shape::Shape;
use crate::table::Signal;
use crate::trajectory::Trajectory;

const MARGIN: (f64, f64) = (0.8, 0.1);

/// Two states, two actions, two steps.
fn model() -> ConstrainedMdp {
    let shape = Shape::new(2, 2, 2).unwrap();
    let rows = vec![0.25, 0.75, 0.5, 0.5, 1.0, 0.0, 0.375, 0.625];
    let kernel = Kernel::dense(2, 2, Slices::Stationary, rows).unwrap();
    let signal = |pairs: [f64; 4]| {
        let signal = Signal::new("signal", shape, pairs.repeat(2)).unwrap();
        UnitSignal::new("signal", &[], signal).unwrap()
    };
    ConstrainedMdp::new(
        TransitionKernel::new(Arc::new(kernel)).unwrap(),
        signal([0.1, 0.9, 0.3, 0.6]),
        vec![signal([0.0, 0.7, 0.1, 0.4])],
        vec![MARGIN.0],
        InitialDistribution::new(2, vec![0.5, 0.5]).unwrap(),
        ObservationNoise::Bernoulli,
    )
    .unwrap()
}

fn learner() -> OptPessPrimalDual {
    let terms = LearningTerms::new(1 << 40, 0.1, ConfidenceRule::Theorem).unwrap();
    let margin = SafetyMargin::new(MARGIN.0, MARGIN.1).unwrap();
    let model = model();
    OptPessPrimalDual::new(model.shape(), model.initial().clone(), margin, terms).unwrap()
}

/// A learner after so many episodes for each pair of a step, of which every second one went to either state.
fn after(each: u64) -> OptPessPrimalDual {
    let learner = learner();
    let estimates = Estimates::new(learner.shape()).unwrap();
    let sums = |mean: f64| vec![(mean * from_count(each)).round(); 8];
    let successors = [each / 2, each - each / 2].repeat(8);
    let counted = estimates.with_counts(vec![each; 8], [sums(0.5), sums(0.25)], &successors);
    learner.advanced(counted.unwrap(), 4 * each, 0.5, &[0; 4])
}

fn run(learner: OptPessPrimalDual, engine: EngineChoice) -> Vec<Outcome> {
    let asked = Simulation {
        replicates: vec![0, 1, 2],
        seed: 7,
        threads: 1,
        episodes: 60,
        trace: false,
        audit: false,
        learners: true,
        engine,
    };
    simulate(&model(), &learner.into(), 1.5, &asked, &Control::default()).unwrap()
}

/// What is stored of a learner, and the last entries of its curves.
fn end(outcome: Outcome) -> (Vec<u8>, String) {
    let learner = LiveLearner::new(outcome.learner.unwrap());
    (learner.to_bytes().unwrap(), format!("{:?}", outcome.record))
}

#[test]
fn every_engine_counts_beyond_32_bits_and_gives_the_same_bits() {
    let start = || after(u64::from(u32::MAX) - 2);
    let expected: Vec<_> = run(start(), EngineChoice::Plain);
    for outcome in &expected {
        let learner = outcome.learner.as_ref().unwrap();
        let visits = learner.estimates().visits();
        assert!(visits.iter().any(|&count| count > u64::from(u32::MAX)));
        assert_eq!(visits[..4].iter().sum::<u64>(), learner.episodes_observed());
    }
    let expected: Vec<_> = expected.into_iter().map(end).collect();
    let engines = [
        EngineChoice::Packed,
        EngineChoice::Batch { lanes: 1 },
        EngineChoice::Batch { lanes: 8 },
    ];
    for engine in engines {
        let found: Vec<_> = run(start(), engine).into_iter().map(end).collect();
        assert!(found == expected, "{engine:?}");
    }
}

#[test]
fn a_stored_learner_keeps_counts_beyond_32_bits() {
    let bytes = LiveLearner::new(after(1 << 33).into()).to_bytes().unwrap();
    let restored = LiveLearner::from_bytes(&bytes).unwrap();
    assert_eq!(restored.learner().estimates().visits(), [1 << 33; 8]);
    assert_eq!(restored.to_bytes().unwrap(), bytes);
}

/// What an audit finds after one more episode, if the learner's sums or averages were changed behind its back.
fn audited(change: impl Fn(&mut Vec<f64>)) -> Audit {
    let (model, before) = (model(), AnyLearner::from(after(1000)));
    let mut auditor = Auditor::new(&model, &before, 1.5, None);
    let shape = model.shape();
    let seen = Trajectory::checked(
        shape,
        vec![0, 1],
        vec![1, 0],
        vec![1.0, 0.0],
        vec![0.0, 1.0],
    );
    let mut changed = after(1000);
    let estimates = changed.estimates();
    let (rewards, costs) = estimates.sums();
    let (mut rewards, costs) = (rewards.to_vec(), costs.to_vec());
    change(&mut rewards);
    let (successors, _) = estimates.kernel().in_full().unwrap();
    let counted = estimates.with_counts(estimates.visits().to_vec(), [rewards, costs], &successors);
    changed = changed.advanced(counted.unwrap(), 4000, 0.5, &[0; 4]);
    changed.next_policy().unwrap();
    let seen = seen.unwrap();
    changed.observe(&seen).unwrap();
    auditor.observed(&seen, Some(&mut changed.into()));
    auditor.finish()
}

#[test]
fn the_audit_finds_a_sum_that_has_drifted() {
    assert_eq!(audited(|_| {}).of(Check::Drift).failed, 0);
    for drift in [1e-6, -1e-6, f64::NAN, f64::INFINITY] {
        let audit = audited(|rewards| rewards[1] += drift);
        let found = audit.of(Check::Drift);
        assert_eq!((found.made, found.failed), (2, 1), "{drift}");
        assert!(found.worst_excess > 0.9e-6);
    }
}
