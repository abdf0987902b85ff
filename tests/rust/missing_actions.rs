//! Learners that were told that some actions do not exist: are they those of the problem without these actions?

use optpess_core::actions::StandIns;
use optpess_core::confidence::{
    ConfidenceRule, CostRadius, LearningTerms, Observations, SafetyMargin,
};
use optpess_core::error::Error;
use optpess_core::evaluate::evaluate;
use optpess_core::knowledge::{Knowledge, Support};
use optpess_core::learn::peers::{AlwaysBaseline, Cucrl, KnownTransitions, Sops};
use optpess_core::learn::{
    AnyLearner, Exploration, Learner, LimitedBaseline, MixSettings, OptPessLp, OptPessMix,
    SafeBaseline,
};
use optpess_core::model::{ConstrainedMdp, InitialDistribution, Kernel, ObservationNoise, Slices};
use optpess_core::number::from_count;
use optpess_core::plan::{problem_of, solve_exactly};
use optpess_core::policy::MarkovPolicy;
use optpess_core::run::{Control, EngineChoice, Outcome, Simulation, simulate};
use optpess_core::shape::Shape;
use optpess_core::simulate::{Streams, TabularEnvironment};
use optpess_core::table::Signal;
use optpess_core::trajectory::Trajectory;
use proptest::prelude::*;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use crate::bits::outcome_bits;
use crate::cases::{Problem, Visitor};

const DELTA: f64 = 0.05;

/// Stationary rows `[S, A, ...]` of a random problem.
#[derive(Clone)]
struct Rows {
    sizes: [usize; 3], // S, A, H
    transitions: Vec<f64>,
    rewards: Vec<f64>,
    costs: Vec<f64>,
}

impl Rows {
    fn random(sizes: [usize; 3], seed: u64) -> Self {
        let [states, actions, _] = sizes;
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        let mut numbers = |count| -> Vec<f64> { (0..count).map(|_| generator.random()).collect() };
        let mut transitions = numbers(states * actions * states);
        for row in transitions.chunks_exact_mut(states) {
            row.iter_mut().for_each(|entry| *entry = entry.powi(3));
            let total: f64 = row.iter().sum();
            row.iter_mut().for_each(|entry| *entry /= total);
        }
        Self {
            sizes,
            transitions,
            rewards: numbers(states * actions),
            costs: numbers(states * actions),
        }
    }

    fn shape(&self) -> Shape {
        let [states, actions, horizon] = self.sizes;
        Shape::new(horizon, states, actions).unwrap()
    }

    /// Writes the rows of missing actions, by hand: those of the lowest action that exists.
    fn aliased(mut self, mask: &[bool]) -> Self {
        let [states, actions, _] = self.sizes;
        for state in 0..states {
            let lowest = (0..actions).find(|a| mask[state * actions + a]).unwrap();
            for action in (0..actions).filter(|a| !mask[state * actions + a]) {
                let (own, source) = (state * actions + action, state * actions + lowest);
                self.rewards[own] = self.rewards[source];
                self.costs[own] = self.costs[source];
                let row = source * states..(source + 1) * states;
                self.transitions.copy_within(row, own * states);
            }
        }
        self
    }

    /// The problem with this safe policy and limit; the least costly policy and a limit above it if none is given.
    fn problem(&self, safe: Option<(MarkovPolicy, SafetyMargin)>) -> Problem {
        let [states, actions, _] = self.sizes;
        let shape = self.shape();
        let rows = self.transitions.clone();
        let kernel = Kernel::dense(states, actions, Slices::Stationary, rows).unwrap();
        let signal = |name, data: &Vec<f64>| Signal::stationary(name, shape, data.clone()).unwrap();
        let initial = InitialDistribution::new(states, vec![1.0 / states as f64; states]).unwrap();
        let limit = safe.as_ref().map(|(_, margin)| margin.cost_limit());
        let signals = (
            signal("rewards", &self.rewards),
            signal("costs", &self.costs),
        );
        let mut problem = Problem::new(
            (kernel, signals.0, signals.1),
            limit,
            initial,
            ObservationNoise::Bernoulli,
        );
        if let Some((policy, margin)) = safe {
            (problem.safe, problem.margin) = (policy, margin);
        }
        problem
    }
}

/// A problem with missing actions: the rows of these are copies, and its safe policy plays none.
struct Masked {
    problem: Problem,
    actions: StandIns,
}

impl Masked {
    fn new(sizes: [usize; 3], mask: &[bool], seed: u64) -> Self {
        let rows = Rows::random(sizes, seed).aliased(mask);
        let actions = StandIns::new(rows.shape(), mask.to_vec()).unwrap();
        let mut problem = rows.problem(None);
        actions.fold(&mut problem.safe);
        Self { problem, actions }
    }

    /// A mask in which about a third of the actions are missing, in every state fewer than all.
    fn random(sizes: [usize; 3], seed: u64) -> Self {
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        let mask = random_mask(&mut generator, sizes[0], sizes[1]);
        Self::new(sizes, &mask, seed)
    }

    /// Every learner, by name, before and after it is told which actions exist.
    fn learners(&self, terms: LearningTerms) -> Vec<(String, AnyLearner, AnyLearner)> {
        let learners = all_learners(&self.problem, terms);
        let restricted = learners.into_iter().map(|(name, learner)| {
            let mut told = learner.clone();
            told.restrict(&self.actions).unwrap();
            (name, learner, told)
        });
        restricted.collect()
    }
}

fn random_mask(generator: &mut ChaCha8Rng, states: usize, actions: usize) -> Vec<bool> {
    let mut mask = Vec::new();
    for _ in 0..states {
        let sure = (generator.random::<f64>() * actions as f64) as usize;
        for action in 0..actions {
            mask.push(action == sure || generator.random::<f64>() < 0.6);
        }
    }
    mask
}

/// Collects all learners of a problem.
#[derive(Default)]
struct Collect(Vec<(String, AnyLearner)>);

impl Visitor for Collect {
    fn visit<L: Learner + Clone + Into<AnyLearner>>(&mut self, name: &str, learner: &L) {
        self.0.push((name.to_owned(), learner.clone().into()));
    }
}

fn mix(problem: &Problem, knowledge: Knowledge) -> OptPessMix {
    let baseline = LimitedBaseline::new(problem.safe.clone(), &[problem.margin]).unwrap();
    let settings = MixSettings {
        radius_factor: 1.0,
        failure_probability: DELTA,
        knowledge,
        observations: Observations::Bounded,
        exploration: Exploration::default(),
        replan_growth: 0.1,
        seed: 3,
    };
    OptPessMix::new(problem.model.initial().clone(), baseline, settings).unwrap()
}

/// What is true of a problem.
fn truth(model: &ConstrainedMdp) -> Knowledge {
    let (shape, kernel) = (model.shape(), model.kernel().kernel());
    let mut mask = vec![false; shape.pairs() * shape.num_states()];
    for pair in 0..shape.pairs() {
        for (state, _) in kernel.successors(0, pair) {
            mask[pair * shape.num_states() + state] = true;
        }
    }
    let cost: &Signal = &model.costs()[0];
    let reward: &Signal = model.reward();
    Knowledge {
        stationary: true,
        rewards: Some(reward.clone()),
        costs: Some(vec![cost.clone()]),
        support: Some(Support::new(shape, &mask).unwrap()),
    }
}

fn all_learners(problem: &Problem, terms: LearningTerms) -> Vec<(String, AnyLearner)> {
    let mut found = Collect::default();
    found.visit("lp", &problem.lp(terms));
    let estimating = problem.lp_with_estimated_cost(terms, CostRadius::Paper);
    found.visit("lp-estimating", &estimating);
    found.visit("primal-dual", &problem.primal_dual(terms));
    problem.visit_peers(terms, &mut found);
    found.visit("mix", &mix(problem, Knowledge::default()));
    let stationary = Knowledge {
        stationary: true,
        ..Knowledge::default()
    };
    found.visit("mix-stationary", &mix(problem, stationary));
    found.visit("mix-informed", &mix(problem, truth(&problem.model)));
    found.0
}

fn terms(num_episodes: u64, factor: f64, delta: f64) -> LearningTerms {
    let rule = ConfidenceRule::scaled(factor).unwrap();
    LearningTerms::new(num_episodes, delta, rule).unwrap()
}

fn simulation(episodes: u64, engine: EngineChoice) -> Simulation {
    Simulation {
        replicates: vec![0, 1, 2],
        seed: 11,
        threads: 1,
        episodes,
        trace: true,
        audit: false,
        learners: false,
        engine,
    }
}

fn run(problem: &Problem, learner: &AnyLearner, simulation: &Simulation) -> Vec<Outcome> {
    let optimum = solve_exactly(&problem_of(&problem.model, 0), problem.margin.cost_limit());
    let optimum = optimum.unwrap().value;
    simulate(
        &problem.model,
        learner,
        optimum,
        simulation,
        &Control::default(),
    )
    .unwrap()
}

/// Plays episodes of a model with a learner; `each` is called after every plan.
fn play(
    model: &ConstrainedMdp,
    learner: &mut AnyLearner,
    episodes: u64,
    mut each: impl FnMut(&mut AnyLearner),
) {
    let environment = TabularEnvironment::new(model).unwrap();
    let mut streams = Streams::new(5, 0);
    let mut seen = Trajectory::zeros(model.shape(), 1).unwrap();
    for _ in 0..episodes {
        learner.next_policy().unwrap();
        each(learner);
        environment.rollout(learner.policy(), &mut streams, &mut seen);
        learner.observe(&seen).unwrap();
    }
}

/// An episode of the smaller problem in the actions of the larger one.
fn translated(seen: &Trajectory, shape: Shape, kept: &[[u32; 2]]) -> Trajectory {
    let places = seen.states().iter().zip(seen.actions());
    let actions = places.map(|(&state, &action)| kept[state as usize][action as usize]);
    Trajectory::checked(
        shape,
        seen.states().to_vec(),
        actions.collect(),
        seen.rewards().to_vec(),
        seen.costs().to_vec(),
    )
    .unwrap()
}

/// The learners whose constants contain A in a logarithm with delta alone. With twice the actions and twice delta, the
/// learner of a problem with two of four actions has the constants of the learner of the problem with two actions.
const COMPARABLE: [&str; 8] = [
    "lp",
    "always-baseline",
    "unconstrained",
    "optcmdp",
    "optcmdp-bonus",
    "optdual",
    "cucrl",
    "sops",
];

#[test]
fn decisions_and_values_are_those_of_the_problem_without_the_missing_actions() {
    let kept = [[0, 1], [1, 3], [2, 3], [0, 2]];
    let small = Rows::random([4, 2, 3], 8);
    let mut large = Rows::random([4, 4, 3], 9);
    let mut mask = vec![false; 16];
    for (state, kept) in kept.iter().enumerate() {
        for (action, &number) in kept.iter().enumerate() {
            let (own, source) = (state * 4 + number as usize, state * 2 + action);
            mask[own] = true;
            large.rewards[own] = small.rewards[source];
            large.costs[own] = small.costs[source];
            let row = &small.transitions[source * 4..][..4];
            large.transitions[own * 4..][..4].copy_from_slice(row);
        }
    }
    let (large, small) = (large.aliased(&mask), small.problem(None));
    let shape = large.shape();
    let actions = StandIns::new(shape, mask).unwrap();
    let taken = small.safe.actions().unwrap();
    let taken = taken.iter().enumerate();
    let safe: Vec<u32> = taken
        .map(|(place, &action)| kept[place % 4][action as usize])
        .collect();
    let safe = MarkovPolicy::deterministic(shape, &safe).unwrap();
    let large = large.problem(Some((safe, small.margin)));
    let episodes = 300;
    let factors = [0.01, 0.1];
    let mut planned = 0;
    for factor in factors {
        let ours = all_learners(&large, terms(episodes, factor, 2.0 * DELTA));
        let theirs = all_learners(&small, terms(episodes, factor, DELTA));
        for ((name, mut ours), (_, mut theirs)) in ours.into_iter().zip(theirs) {
            if !COMPARABLE.contains(&&*name) {
                continue;
            }
            ours.restrict(&actions).unwrap();
            let environment = TabularEnvironment::new(&small.model).unwrap();
            let mut streams = Streams::new(5, 0);
            let mut seen = Trajectory::zeros(small.model.shape(), 1).unwrap();
            for episode in 0..episodes {
                let what = format!("{name}, {factor}, episode {episode}");
                let found = ours.next_policy().unwrap();
                let expected = theirs.next_policy().unwrap();
                assert_eq!(found.source, expected.source, "{what}");
                planned += usize::from(!found.source.is_baseline());
                for step in 0..3 {
                    for (state, kept) in kept.iter().enumerate() {
                        let row = ours.policy().row(step, state);
                        let expected = theirs.policy().row(step, state);
                        for (&number, p) in kept.iter().zip(expected) {
                            assert!((row[number as usize] - p).abs() < 1e-9, "{what}");
                        }
                    }
                }
                actions.check_policy("policy", ours.policy()).unwrap();
                let (found, expected) = (ours.figures(), theirs.figures());
                for (found, expected) in [
                    (found.optimistic_reward, expected.optimistic_reward),
                    (found.biased_cost, expected.biased_cost),
                    (found.cost_at_most, expected.cost_at_most),
                    (found.optimum_at_most, expected.optimum_at_most),
                ] {
                    let difference = found.unwrap_or(0.0) - expected.unwrap_or(0.0);
                    assert_eq!(found.is_some(), expected.is_some(), "{what}");
                    assert!(difference.abs() < 1e-8, "{what}: {found:?} {expected:?}");
                }
                assert!(
                    (ours.multiplier() - theirs.multiplier()).abs() < 1e-8,
                    "{what}"
                );
                environment.rollout(theirs.policy(), &mut streams, &mut seen);
                theirs.observe(&seen).unwrap();
                ours.observe(&translated(&seen, shape, &kept)).unwrap();
            }
        }
    }
    assert!(planned > 1000, "{planned}");
}

/// Checks that the rows of missing actions are those they stand in for, to the bit, and that what is deployed plays
/// none.
fn check_rows(name: &str, learner: &mut AnyLearner, actions: &StandIns) {
    let shape = learner.shape();
    actions.check_policy("policy", learner.policy()).unwrap();
    if let Some(mixture) = learner.mixture() {
        for (place, member) in mixture.members().iter().enumerate() {
            let policy = member.policy.policy();
            actions.check_policy("member", policy).unwrap();
            let mut others = mixture.members()[..place].iter();
            let twice = others.any(|other| other.policy.policy() == policy);
            assert!(!twice || name == "sops", "{name}: a member twice"); // its candidate may be pi0
        }
    }
    let signals = learner.signals();
    let mut tables = vec![signals.bonuses.clone(), signals.cost.data().to_vec()];
    tables.extend(signals.reward.map(|reward| reward.data().to_vec()));
    let learner = &*learner;
    let estimates = learner.estimates();
    tables.push(estimates.visits().iter().copied().map(from_count).collect());
    for row in 0..shape.triples() {
        let [step, state, action] = shape.triple_index(row);
        let lowest = actions.of(state, action as u32) as usize;
        let (pair, source) = (shape.pair(state, action), shape.pair(state, lowest));
        let other = step * shape.pairs() + source;
        for table in &tables {
            assert_eq!(table[row].to_bits(), table[other].to_bits(), "{name}");
        }
        let means = |row| [estimates.mean_reward(row), estimates.mean_cost(row)].map(f64::to_bits);
        assert_eq!(means(row), means(other), "{name}");
        for next in 0..shape.num_states() {
            let [own, other] = [pair, source].map(|pair| estimates.frequency(step, pair, next));
            assert_eq!(own.to_bits(), other.to_bits(), "{name}");
        }
        if let AnyLearner::OptPessMix(learner) = learner {
            let (tally, sets) = (learner.model().tally(), learner.model().sets());
            let [own, other] = [pair, source].map(|pair| tally.row(step, pair));
            assert_eq!(sets.row(own), sets.row(other), "{name}");
            assert_eq!(sets.cost(own, 0), sets.cost(other, 0), "{name}");
            assert_eq!(tally.successors(own), tally.successors(other), "{name}");
            assert_eq!(tally.visits(own), tally.visits(other), "{name}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn rows_of_missing_actions_are_those_they_stand_in_for(seed in 0_u64..1000) {
        let masked = Masked::random([3, 4, 3], seed);
        for (name, _, mut learner) in masked.learners(terms(60, 0.01, DELTA)) {
            play(&masked.problem.model, &mut learner, 60, |learner| {
                check_rows(&name, learner, &masked.actions);
            });
        }
    }

    #[test]
    fn no_missing_action_is_played_and_nothing_unsafe_is_deployed(seed in 0_u64..1000) {
        let masked = Masked::random([3, 4, 3], seed);
        let shape = masked.problem.model.shape();
        for (name, _, learner) in masked.learners(terms(80, 0.02, DELTA)) {
            let outcomes = run(&masked.problem, &learner, &simulation(80, EngineChoice::Auto));
            for outcome in &outcomes {
                let trace = outcome.trace.as_ref().unwrap();
                for (&state, &action) in trace.states.iter().zip(&trace.actions) {
                    prop_assert!(masked.actions.exists(state as usize, action as usize), "{}", name);
                }
                prop_assert_eq!(trace.actions.len(), 80 * shape.horizon());
                if name.starts_with("mix") {
                    prop_assert_eq!(outcome.record.violating_episodes, 0, "{}", name);
                }
            }
        }
    }
}

#[test]
fn every_engine_gives_the_bits_of_the_plain_one_and_a_batch_is_refused() {
    let masked = Masked::new([3, 3, 3], &MASK, 4);
    for (name, plain, learner) in masked.learners(terms(150, 0.01, DELTA)) {
        let bits = |engine| -> Vec<_> {
            let outcomes = run(&masked.problem, &learner, &simulation(150, engine));
            outcomes.iter().map(outcome_bits).collect()
        };
        let expected = bits(EngineChoice::Plain);
        assert_eq!(bits(EngineChoice::Auto), expected, "{name}");
        assert_eq!(bits(EngineChoice::Packed), expected, "{name}");
        let batch = Simulation {
            trace: false,
            ..simulation(10, EngineChoice::Batch { lanes: 8 })
        };
        let control = Control::default();
        let model = &masked.problem.model;
        let refused = simulate(model, &learner, 1.0, &batch, &control).unwrap_err();
        assert!(matches!(refused, Error::NoSuchEngine { .. }), "{name}");
        // Only the mask is the reason.
        let allowed = simulate(model, &plain, 1.0, &batch, &control).is_ok();
        assert_eq!(allowed, name == "primal-dual");
    }
}

/// Three states with three actions; one, two and no action missing.
const MASK: [bool; 9] = [false, true, true, false, false, true, true, true, true];

#[test]
fn the_audit_of_a_learner_with_missing_actions_finds_nothing() {
    let masked = Masked::new([3, 3, 3], &MASK, 4);
    let audited = Simulation {
        audit: true,
        ..simulation(200, EngineChoice::Auto)
    };
    for (name, _, learner) in masked.learners(terms(200, 1.0, DELTA)) {
        for outcome in run(&masked.problem, &learner, &audited) {
            let audit = outcome.audit.unwrap();
            for check in <optpess_core::run::Check as strum::VariantArray>::VARIANTS {
                assert_eq!(audit.of(*check).failed, 0, "{name}: {check:?}");
            }
        }
    }
}

/// Real duplicates have to be explored one by one, and they share delta.
#[test]
fn missing_actions_are_not_explored() {
    let mask: Vec<bool> = (0..3).flat_map(|_| [true, true, false, false]).collect();
    let masked = Masked::new([3, 4, 3], &mask, 21);
    let regret = |learner: &OptPessMix| {
        let learner = learner.clone().into();
        let outcomes = run(
            &masked.problem,
            &learner,
            &simulation(1500, EngineChoice::Auto),
        );
        let last = outcomes
            .iter()
            .map(|outcome| outcome.record.reward_regret.last().unwrap());
        last.sum::<f64>()
    };
    let with_duplicates = mix(&masked.problem, Knowledge::default());
    let mut told = with_duplicates.clone();
    told.restrict(&masked.actions).unwrap();
    let (told, with_duplicates) = (regret(&told), regret(&with_duplicates));
    assert!(told < 0.9 * with_duplicates, "{told} {with_duplicates}");
}

#[test]
fn what_was_declared_of_missing_actions_is_not_read() {
    let masked = Masked::new([3, 3, 3], &MASK, 4);
    let model = &masked.problem.model;
    let (shape, knowledge) = (model.shape(), truth(model));
    let mut wrong = knowledge.clone();
    // Whoever reads these rows plays the actions.
    let spoilt = |signal: &Signal, wrong: f64| {
        let mut data = signal.data().to_vec();
        for (pair, value) in data.iter_mut().enumerate() {
            if !masked.actions.exists(pair / 3, pair % 3) {
                *value = wrong;
            }
        }
        Signal::stationary("a table", shape, data).unwrap()
    };
    let rewards = knowledge.rewards.as_ref();
    wrong.rewards = rewards.map(|table| spoilt(table, 1.0));
    let costs = knowledge.costs.as_ref();
    wrong.costs = costs.map(|tables| vec![spoilt(&tables[0], 0.0)]);
    let possible = (0..shape.pairs() * 3).map(|entry| {
        let pair = entry / 3;
        masked.actions.exists(pair / 3, pair % 3) || entry % 3 == 0
    });
    let possible: Vec<bool> = possible.collect();
    wrong.support = Some(Support::new(shape, &possible).unwrap());
    let mut outcomes = Vec::new();
    for knowledge in [knowledge, wrong] {
        let mut learner = mix(&masked.problem, knowledge);
        learner.restrict(&masked.actions).unwrap();
        let found = run(
            &masked.problem,
            &learner.into(),
            &simulation(200, EngineChoice::Auto),
        );
        outcomes.push(found.iter().map(outcome_bits).collect::<Vec<_>>());
    }
    assert_eq!(outcomes[0], outcomes[1]);

    let rows = Rows::random([3, 3, 3], 4);
    let other = Rows::random([3, 3, 3], 5).problem(None);
    let terms = terms(200, 0.05, DELTA);
    // The rows that exist are those of the masked problem; those that do not are of another one.
    let mut given = rows.aliased(&MASK).transitions;
    for (pair, row) in given.chunks_exact_mut(3).enumerate() {
        if !MASK[pair] {
            for (state, p) in other.model.kernel().kernel().successors(0, pair) {
                row[state] = p;
            }
        }
    }
    let given = Kernel::dense(3, 3, Slices::Stationary, given).unwrap();
    let true_kernel = model.kernel().kernel();
    let bits = [&given, true_kernel].map(|kernel| {
        let known = KnownTransitions::new(shape, kernel).unwrap();
        let baseline = SafeBaseline::new(masked.problem.safe.clone(), masked.problem.margin);
        let initial = model.initial().clone();
        let mut learner = Cucrl::new(known, initial, baseline.unwrap(), terms).unwrap();
        learner.restrict(&masked.actions).unwrap();
        let found = run(
            &masked.problem,
            &learner.into(),
            &simulation(200, EngineChoice::Auto),
        );
        found.iter().map(outcome_bits).collect::<Vec<_>>()
    });
    assert_eq!(bits[0], bits[1]);
}

#[test]
fn a_stored_learner_keeps_its_actions() {
    let masked = Masked::new([3, 3, 3], &MASK, 4);
    for (name, _, mut learner) in masked.learners(terms(120, 0.01, DELTA)) {
        play(&masked.problem.model, &mut learner, 40, |_| {});
        let stored = postcard::to_stdvec(&learner).unwrap();
        let mut restored: AnyLearner = postcard::from_bytes(&stored).unwrap();
        assert_eq!(restored.experience().actions(), Some(&masked.actions));
        let mut policies = Vec::new();
        play(&masked.problem.model, &mut learner, 40, |learner| {
            policies.push(learner.policy().clone());
        });
        let mut place = 0;
        play(&masked.problem.model, &mut restored, 40, |restored| {
            assert_eq!(restored.policy(), &policies[place], "{name}");
            place += 1;
        });
    }
}

#[test]
fn a_mask_without_missing_actions_changes_nothing() {
    let problem = Rows::random([3, 3, 3], 6).problem(None);
    let everything = StandIns::new(problem.model.shape(), vec![true; 9]).unwrap();
    for (name, learner) in all_learners(&problem, terms(60, 0.01, DELTA)) {
        let mut told = learner.clone();
        told.restrict(&everything).unwrap();
        assert!(told.experience().actions().is_none());
        let bytes = |learner| postcard::to_stdvec(learner).unwrap();
        assert_eq!(bytes(&told), bytes(&learner), "{name}");
    }
}

#[test]
fn a_refusal_names_the_index_and_changes_nothing() {
    let masked = Masked::new([3, 3, 3], &MASK, 4);
    let (model, margin) = (&masked.problem.model, masked.problem.margin);
    let (shape, initial) = (model.shape(), model.initial());
    let bytes = |learner: &AnyLearner| postcard::to_stdvec(learner).unwrap();

    let mask = |len: usize| StandIns::new(shape, vec![true; len]);
    let message = "actions has shape [8]; it must have shape [3, 3] (axes [S, A])";
    assert_eq!(mask(8).unwrap_err().to_string(), message);
    let mut empty = MASK;
    empty[5] = false;
    let message = "actions[1] is False for every action; every state needs at least one action";
    let refused = StandIns::new(shape, empty.to_vec()).unwrap_err();
    assert_eq!(refused.to_string(), message);

    // A baseline that plays a missing action, by every learner that has one.
    let uniform = MarkovPolicy::uniform(shape).unwrap();
    let baseline = || SafeBaseline::new(uniform.clone(), margin).unwrap();
    let known = KnownTransitions::new(shape, model.kernel().kernel()).unwrap();
    let plan = terms(9, 1.0, DELTA);
    let problem = Problem {
        safe: uniform.clone(),
        model: model.clone(),
        margin,
    };
    let learners: [AnyLearner; 5] = [
        OptPessLp::new(initial.clone(), baseline(), plan)
            .unwrap()
            .into(),
        mix(&problem, Knowledge::default()).into(),
        AlwaysBaseline::new(initial.clone(), baseline(), 9)
            .unwrap()
            .into(),
        Cucrl::new(known, initial.clone(), baseline(), plan)
            .unwrap()
            .into(),
        Sops::new(initial.clone(), uniform.clone(), margin, plan, 0.0, 1)
            .unwrap()
            .into(),
    ];
    for mut learner in learners {
        let before = bytes(&learner);
        let refused = learner.restrict(&masked.actions).unwrap_err().to_string();
        assert!(
            refused.starts_with("baseline[0, 0, 0] is 0.333"),
            "{refused}"
        );
        let end = "; action 0 does not exist in state 0, where the actions are [1, 2]";
        assert!(refused.ends_with(end), "{refused}");
        assert_eq!(bytes(&learner), before);
    }

    let other = StandIns::new(Shape::new(1, 2, 2).unwrap(), vec![true; 4]).unwrap();
    for (name, plain, mut learner) in masked.learners(terms(60, 0.01, DELTA)) {
        let mut late = plain.clone();
        assert!(
            matches!(late.restrict(&other), Err(Error::ShapeMismatch { .. })),
            "{name}"
        );
        late.next_policy().unwrap();
        assert!(
            matches!(late.restrict(&masked.actions), Err(Error::OutOfTurn { .. })),
            "{name}"
        );
        let twice = learner.restrict(&masked.actions);
        assert!(matches!(twice, Err(Error::OutOfTurn { .. })), "{name}");

        learner.next_policy().unwrap();
        let before = bytes(&learner);
        let (states, actions) = (vec![0, 1, 2], vec![1, 0, 0]);
        let numbers = || vec![0.5; 3];
        let seen = Trajectory::checked(shape, states, actions, numbers(), numbers()).unwrap();
        let message =
            "actions[1] is 0; action 0 does not exist in state 1, where the actions are [2]";
        assert_eq!(
            learner.observe(&seen).unwrap_err().to_string(),
            message,
            "{name}"
        );
        assert_eq!(bytes(&learner), before, "{name}");

        if let AnyLearner::OptPessMix(learner) = &learner {
            learner.certify(&masked.problem.safe).unwrap();
            let refused = learner.certify(&uniform).unwrap_err().to_string();
            assert!(refused.starts_with("policy[0, 0, 0] is 0.333"), "{refused}");
            let refused = learner.model().worst_kernel(&uniform, 0).unwrap_err();
            assert!(matches!(refused, Error::NoSuchAction { .. }));
        }
    }
}

#[test]
fn a_plan_from_outside_is_folded_before_it_is_certified() {
    let masked = Masked::new([3, 3, 3], &MASK, 4);
    let shape = masked.problem.model.shape();
    let mut learner = masked.problem.lp(terms(5000, 1e-4, DELTA));
    learner.restrict(&masked.actions).unwrap();
    let (environment, mut streams) = (
        TabularEnvironment::new(&masked.problem.model).unwrap(),
        Streams::new(5, 0),
    );
    let mut seen = Trajectory::zeros(shape, 1).unwrap();
    for _ in 0..1000 {
        if learner.assess().unwrap().is_none() {
            let names = [0, 0, 0].repeat(3); // action 0 exists in the last state alone
            let mut candidate = MarkovPolicy::deterministic(shape, &names).unwrap();
            if learner.deploy(&mut candidate).is_ok() {
                let expected = [1, 2, 0].repeat(3);
                assert_eq!(learner.policy().actions().unwrap(), expected);
                return;
            }
            learner.deploy(&mut masked.problem.safe.clone()).unwrap();
        }
        environment.rollout(learner.policy(), &mut streams, &mut seen);
        learner.observe(&seen).unwrap();
    }
    panic!("the gate stayed shut, or the candidate is above the limit");
}

/// docs/design.md: folding keeps every value.
#[test]
fn folding_a_policy_keeps_its_values() {
    let mut generator = ChaCha8Rng::seed_from_u64(2);
    for seed in 0..50 {
        let masked = Masked::random([4, 4, 3], seed);
        let model = &masked.problem.model;
        let shape = model.shape();
        let rows = (0..shape.horizon() * shape.num_states()).flat_map(|_| {
            let row: Vec<f64> = (0..4).map(|_| generator.random::<f64>()).collect();
            let total: f64 = row.iter().sum();
            row.into_iter().map(move |entry| entry / total)
        });
        let policy = MarkovPolicy::new("policy", shape, rows.collect()).unwrap();
        let mut folded = policy.clone();
        masked.actions.fold(&mut folded);
        masked.actions.check_policy("policy", &folded).unwrap();
        let kernel = model.kernel();
        for signal in [model.reward(), &model.costs()[0]] {
            let [own, kept] = [&policy, &folded]
                .map(|policy| evaluate(policy, signal, kernel, model.initial()).unwrap());
            assert!((own - kept).abs() < 1e-12);
        }
    }
}
