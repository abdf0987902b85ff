//! Every learner on a small problem, and what must hold of any learner, whoever made it.

use optpess_core::actions::StandIns;
use optpess_core::confidence::{ConfidenceRule, CostRadius, LearningTerms, Observations};
use optpess_core::knowledge::{Knowledge, Support};
use optpess_core::learn::{
    AnyLearner, Exploration, Figures, Learner, LimitedBaseline, LiveLearner, MixSettings,
    OptPessMix,
};
use optpess_core::policy::MarkovPolicy;
use optpess_core::shape::Shape;

use crate::cases::{Problem, Visitor};

/// Larger learners are stored and read back, but not driven.
const MOST_TRIPLES: usize = 512;

/// K of the learners below.
pub const EPISODES: u64 = 60;

/// The problem of the learners below: two states, two actions, three steps.
pub fn problem() -> Problem {
    Problem::random([2, 2, 3], 1)
}

/// All kinds of learners on a problem, fresh.
pub fn every_learner(problem: &Problem, terms: LearningTerms) -> Vec<AnyLearner> {
    struct Collected(Vec<AnyLearner>);
    impl Visitor for Collected {
        fn visit<L: Learner + Clone + Into<AnyLearner>>(&mut self, _: &str, learner: &L) {
            self.0.push(learner.clone().into());
        }
    }
    let delta = terms.failure_probability();
    let theorem = LearningTerms::new(terms.num_episodes(), delta, ConfidenceRule::Theorem);
    let sharp = LearningTerms::new(terms.num_episodes(), delta, ConfidenceRule::Sharp);
    let mut collected = Collected(vec![
        problem.lp(terms).into(),
        problem.lp(sharp.unwrap_or(terms)).into(),
        problem.primal_dual(terms).into(),
        problem.primal_dual(theorem.unwrap_or(terms)).into(),
    ]);
    let radii = [CostRadius::SubGaussian, CostRadius::Paper];
    // Half of delta is spent on the cost of pi0, so the least delta of all is refused.
    for radius in radii.into_iter().filter(|_| delta > 1e-199) {
        let learner = problem.lp_with_estimated_cost(terms, radius);
        collected.0.push(learner.into());
    }
    problem.visit_peers(terms, &mut collected);
    collected.0.extend(mixing_learners(problem));
    collected.0
}

/// The settings of OptPess-Mix that make it leave pi0 within a few episodes.
pub fn mix_settings(knowledge: Knowledge, observations: Observations) -> MixSettings {
    MixSettings {
        failure_probability: 0.1,
        radius_factor: 0.02,
        knowledge,
        observations,
        exploration: Exploration::default(),
        replan_growth: 0.1,
        seed: 3,
    }
}

fn mixing_learners(problem: &Problem) -> Vec<AnyLearner> {
    let (model, shape) = (&problem.model, problem.model.shape());
    let support = Support::new(shape, &vec![true; shape.pairs() * shape.num_states()]);
    let known = Knowledge {
        rewards: Some(model.reward().clone()),
        costs: Some(model.costs().to_vec()),
        support: support.ok(),
        ..Knowledge::default()
    };
    let pooled = Knowledge {
        stationary: true,
        ..Knowledge::default()
    };
    let proxy = Observations::SubGaussian {
        variance_proxy: 0.5,
    };
    let given = LimitedBaseline::new(problem.safe.clone(), &[problem.margin]);
    let estimated = LimitedBaseline::estimated(problem.safe.clone(), model.limits());
    let two = LimitedBaseline::new(problem.safe.clone(), &[problem.margin; 2]);
    let cases = [
        (given.clone(), Knowledge::default(), Observations::Bounded),
        (given.clone(), pooled, Observations::Bounded),
        (given.clone(), Knowledge::default(), proxy),
        (given, known, Observations::Bounded),
        (estimated, Knowledge::default(), Observations::Bounded),
        (two, Knowledge::default(), Observations::Bounded),
    ];
    let made = cases.into_iter().filter_map(|(baseline, knowledge, seen)| {
        let settings = mix_settings(knowledge, seen);
        OptPessMix::new(model.initial().clone(), baseline.ok()?, settings).ok()
    });
    made.map(Into::into).collect()
}

/// A learner that knows that an action does not exist, if pi0 never plays it.
pub fn restricted(mut learner: AnyLearner) -> Option<AnyLearner> {
    let shape = learner.shape();
    let masks =
        (0..shape.pairs()).map(|missing| (0..shape.pairs()).map(move |pair| pair != missing));
    for mask in masks {
        let actions = StandIns::new(shape, mask.collect()).ok()?;
        if learner.restrict(&actions).is_ok() {
            return Some(learner);
        }
    }
    None
}

/// Plays episodes as any caller may, and checks what must hold of any learner. Refusals are no findings.
pub fn drive(live: &mut LiveLearner, episodes: usize) {
    let shape = live.learner().shape();
    if shape.triples() > MOST_TRIPLES {
        return;
    }
    let (observed, stored) = (live.learner().episodes_observed(), bytes_of(live));
    let again: LiveLearner = LiveLearner::from_bytes(&stored).expect("what was stored can be read");
    assert_eq!(
        stored,
        bytes_of(&again),
        "reading and storing changes nothing"
    );
    let _ = live.learner().progress();
    let _ = live.learner().guarantee();
    for episode in 0..episodes {
        check_claims(live.learner_mut());
        if live.pending().is_none() && live.next_policy().is_err() {
            return;
        }
        check_plan(live, shape);
        match play(live, shape, episode) {
            Some(()) => {
                let now = live.learner().episodes_observed();
                assert_eq!(now, observed + 1 + episode as u64, "an episode counts once");
            }
            None => return,
        }
    }
}

/// Plays the pending episode step by step; None if something was refused.
fn play(live: &mut LiveLearner, shape: Shape, episode: usize) -> Option<()> {
    let start = live.learner().experience().initial().data();
    let first = start.iter().position(|&probability| probability > 0.0)?;
    let num_costs = live.learner().cost_limits().len();
    let mut action = live.begin(first).ok()?;
    for step in 0..shape.horizon() {
        assert!(action < shape.num_actions(), "an action that exists");
        let reward = ((episode + step) % 3) as f64 / 2.0;
        let costs: Vec<f64> = (0..num_costs)
            .map(|m| ((episode + step + m) % 5) as f64 / 8.0)
            .collect();
        let state = (episode * (step + 1) + action) % shape.num_states();
        match live.step(reward, &costs, state) {
            Ok(Some(next)) => action = next,
            Ok(None) => {}
            Err(_) => {
                live.abandon().expect("a pending episode can be given up");
                return None;
            }
        }
    }
    live.finish().ok().map(|_| ())
}

fn check_plan(live: &LiveLearner, shape: Shape) {
    let (policy, uniforms) = live.deployed().expect("there is a deployment");
    check_policy(policy, shape);
    assert_eq!(uniforms.len(), shape.horizon());
    let limits = live.learner().cost_limits();
    if let Some(mixture) = live.learner().mixture() {
        let weights: f64 = mixture.members().iter().map(|member| member.weight).sum();
        assert!((weights - 1.0).abs() < 1e-6, "weights add up to {weights}");
        for (bound, limit) in mixture.cost_bounds().iter().zip(&limits) {
            assert!(bound <= limit, "a mixture of cost {bound} above {limit}");
        }
    }
    if let Some(certificate) = live.pending().and_then(|found| found.certificate) {
        assert!(certificate.cost() <= certificate.limit());
        assert!(certificate.limit() <= limits[0], "the learner's own limit");
    }
}

fn check_policy(policy: &MarkovPolicy, shape: Shape) {
    assert_eq!(policy.shape(), shape);
    for row in policy.data().chunks_exact(shape.num_actions()) {
        let sum: f64 = row.iter().sum();
        assert!(
            (sum - 1.0).abs() < 1e-6 && row.iter().all(|&p| p >= 0.0),
            "{row:?}"
        );
    }
}

/// Signals, bonuses, figures and multipliers are numbers.
pub fn check_claims(learner: &mut AnyLearner) {
    let signals = learner.signals();
    let reward = signals.reward.map_or(&[][..], |reward| reward.data());
    let all = reward
        .iter()
        .chain(signals.cost.data())
        .chain(&signals.bonuses);
    for &value in all {
        assert!(value.is_finite(), "a signal or bonus is {value}");
    }
    let Figures {
        optimistic_reward,
        biased_cost,
        cost_at_least,
        cost_at_most,
        optimum_at_most,
    } = learner.figures();
    let figures = [
        optimistic_reward,
        biased_cost,
        cost_at_least,
        cost_at_most,
        optimum_at_most,
    ];
    for value in figures
        .into_iter()
        .flatten()
        .chain([learner.multiplier(), learner.log_factor()])
    {
        assert!(!value.is_nan(), "a figure is NaN");
    }
}

/// A learner as it is stored.
pub fn bytes_of(live: &LiveLearner) -> Vec<u8> {
    live.to_bytes().expect("a learner can be stored")
}
