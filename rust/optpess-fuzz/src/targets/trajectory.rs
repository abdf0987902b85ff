//! Learners from any numbers, and episodes of any numbers for them: each is refused and changes nothing, or counts once.

use optpess_core::confidence::{ConfidenceRule, LearningTerms, Observations, SafetyMargin};
use optpess_core::knowledge::Knowledge;
use optpess_core::learn::{
    AnyLearner, Exploration, Learner, LimitedBaseline, LiveLearner, MixSettings, ObservationRanges,
    OptPessMix, ValueRange,
};
use optpess_core::trajectory::Trajectory;

use crate::cases::Problem;
use crate::input::Input;
use crate::learners::{bytes_of, check_claims, every_learner, problem, restricted};
use crate::targets::{Target, plain_seeds};

/// The bytes are settings, ranges and episodes.
pub const TARGET: Target = Target {
    name: "trajectory",
    run,
    seeds: plain_seeds,
};

const MOST_EPISODES: usize = 6;

fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let Some(learner) = learner(&mut input) else {
        return;
    };
    let mut live = LiveLearner::new(learner);
    if let Some(ranges) = ranges(&mut input, live.learner().cost_limits().len()) {
        let _ = live.settle(ranges, (input.word(), 0));
    }
    for _ in 0..MOST_EPISODES {
        check_claims(live.learner_mut());
        if live.pending().is_none() && live.next_policy().is_err() {
            return;
        }
        let Some(seen) = trajectory(&mut input, &live) else {
            continue;
        };
        let (before, observed) = (bytes_of(&live), live.learner().episodes_observed());
        match live.observe(seen) {
            Ok(()) => assert_eq!(live.learner().episodes_observed(), observed + 1),
            Err(_) => assert_eq!(before, bytes_of(&live), "a refused episode changes nothing"),
        }
        if !input.has_more() {
            return;
        }
    }
}

fn learner(input: &mut Input<'_>) -> Option<AnyLearner> {
    let problem = problem();
    let learner = match input.byte() {
        0xc0.. => mixing(input, &problem)?,
        kind => {
            let rule = match input.byte() {
                0xf0.. => ConfidenceRule::scaled(input.float()).ok()?,
                _ => ConfidenceRule::scaled(0.01).ok()?,
            };
            let (episodes, delta) = match input.byte() {
                0xe0.. => (input.word(), input.float()),
                _ => (20, 0.1),
            };
            let terms = LearningTerms::new(episodes, delta, rule).ok()?;
            let mut all = every_learner(&problem, terms);
            all.swap_remove(usize::from(kind) % all.len())
        }
    };
    match input.byte() {
        0x80.. => restricted(learner),
        _ => Some(learner),
    }
}

/// OptPess-Mix with settings of any numbers.
fn mixing(input: &mut Input<'_>, problem: &Problem) -> Option<AnyLearner> {
    let margin = match input.byte() {
        0xe0.. => SafetyMargin::new(input.float(), input.float()).ok()?,
        _ => problem.margin,
    };
    let count = 1 + input.below(2);
    let baseline = LimitedBaseline::new(problem.safe.clone(), &vec![margin; count]).ok()?;
    let mut number = |usual: f64| match input.byte() {
        0xe0.. => input.float(),
        _ => usual,
    };
    let settings = MixSettings {
        failure_probability: number(0.1),
        radius_factor: number(0.02),
        exploration: Exploration {
            share: number(0.2),
            least_share: number(0.01),
            threshold: number(1.0),
        },
        replan_growth: number(0.1),
        observations: match number(0.0) {
            0.0 => Observations::Bounded,
            variance_proxy => Observations::SubGaussian { variance_proxy },
        },
        knowledge: Knowledge {
            stationary: number(0.0) > 0.0,
            ..Knowledge::default()
        },
        seed: 3,
    };
    let learner = OptPessMix::new(problem.model.initial().clone(), baseline, settings).ok()?;
    Some(learner.into())
}

/// None for [0, 1] without noise. The variance proxy is one that a caller may state.
fn ranges(input: &mut Input<'_>, num_costs: usize) -> Option<ObservationRanges> {
    if input.byte() < 0x80 {
        return None;
    }
    let mut range = || match input.byte() {
        0x80.. => ValueRange::new("range", input.float(), input.float()).ok(),
        _ => Some(ValueRange::UNIT),
    };
    let reward = range()?;
    let costs: Option<Vec<ValueRange>> = (0..num_costs).map(|_| range()).collect();
    let proxy = (input.byte() >= 0x80).then_some(0.5);
    Some(ObservationRanges::new(reward, costs?, proxy))
}

fn trajectory(input: &mut Input<'_>, live: &LiveLearner) -> Option<Trajectory> {
    let shape = live.learner().shape();
    let num_costs = live.learner().cost_limits().len();
    let mut indices = |count: usize| -> Vec<u32> {
        let length = input.length(shape.horizon());
        let index = |input: &mut Input<'_>| match input.byte() {
            0xff => input.word() as u32,
            byte => u32::from(byte) % count as u32,
        };
        (0..length).map(|_| index(input)).collect()
    };
    let (states, actions) = (indices(shape.num_states()), indices(shape.num_actions()));
    let length = input.length(shape.horizon());
    let rewards = input.list(length, Input::unit);
    let length = input.length(num_costs * shape.horizon());
    let costs = input.list(length, Input::unit);
    Trajectory::with_costs(shape, num_costs, states, actions, rewards, costs).ok()
}
