//! Is the mathematics true on random inputs? Dense and sparse, stochastic and leaking kernels.

use optpess_core::evaluate::{
    Evaluator, Expectation, Expected, OccupancyMeasure, PairEvaluator, RollingValues, Sweep, Take,
    evaluate, mix_policies, occupancy, state_values, value_difference,
};
use optpess_core::model::{InitialDistribution, Kernel, Slices};
use optpess_core::plan::backward_induction;
use optpess_core::policy::MarkovPolicy;
use optpess_core::shape::Shape;
use optpess_core::table::{Signal, StateValues};
use proptest::prelude::*;

use crate::cases::sparse_kernel;
use crate::problems::{Problem, kernel_rows, problems, shapes};

/// 256 problems a property; a failure is reported in full, so nothing is written beside the sources.
fn settings() -> ProptestConfig {
    ProptestConfig {
        cases: 256,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// The size of the numbers that were added up: differences are judged relative to it.
fn scale<'a>(tables: impl IntoIterator<Item = &'a [f64]>) -> f64 {
    let entries = tables.into_iter().flatten();
    entries.fold(f64::MIN_POSITIVE, |largest, entry| largest.max(entry.abs()))
}

fn near(found: &[f64], expected: &[f64], tolerance: f64) -> Result<(), TestCaseError> {
    prop_assert_eq!(found.len(), expected.len());
    for (index, (a, b)) in found.iter().zip(expected).enumerate() {
        // A NaN fails.
        prop_assert!((a - b).abs() <= tolerance, "[{index}]: {a} for {b}");
    }
    Ok(())
}

/// Bits, with one zero only.
fn bits(data: &[f64]) -> Vec<u64> {
    data.iter().map(|entry| (entry + 0.0).to_bits()).collect()
}

/// Some action for each step and state, `[H, S]`.
fn some_actions(shape: Shape, salt: usize) -> Vec<u32> {
    let places = 0..shape.horizon() * shape.num_states();
    let action = |place: usize| (place * 7 + place / 3 + salt) % shape.num_actions();
    places.map(|place| action(place) as u32).collect()
}

/// The table `[rows, S, width]` with state s renamed to `name[s]`.
fn renamed(data: &[f64], name: &[usize], width: usize) -> Vec<f64> {
    let mut out = vec![0.0; data.len()];
    for (index, block) in data.chunks_exact(width).enumerate() {
        let (row, state) = (index / name.len(), index % name.len());
        let target = (row * name.len() + name[state]) * width;
        out[target..][..width].copy_from_slice(block);
    }
    out
}

/// Everything that is computed from one kernel, to be compared between kernels.
fn everything(problem: &Problem, kernel: &Kernel) -> (Vec<StateValues>, Vec<Vec<f64>>, Vec<f64>) {
    let plan = backward_induction(problem.shape, &problem.signals[0], kernel).unwrap();
    let policies = problem.policies.iter();
    let mut values: Vec<StateValues> = policies
        .map(|policy| state_values(policy, &problem.signals[0], kernel).unwrap())
        .collect();
    values.push(plan.values().clone());
    let policies = problem.policies.iter();
    let visits = policies
        .map(|policy| occupancy(policy, kernel, &problem.initial).unwrap())
        .map(OccupancyMeasure::into_data)
        .collect();
    let mixed = mix_policies(
        &problem.policies,
        &problem.weights,
        kernel,
        &problem.initial,
    );
    (values, visits, mixed.unwrap().into_data())
}

proptest! {
    #![proptest_config(settings())]

    /// \[Liu21\], Lemma D.2, as an equality.
    #[test]
    fn taking_actions_is_following_the_deterministic_policy_to_the_bit(
        problem in problems(), sparse in any::<bool>(), salt in 0..9_usize,
    ) {
        let (shape, kernel) = (problem.shape, problem.kernel(0, sparse));
        let actions = some_actions(shape, salt);
        let policy = MarkovPolicy::deterministic(shape, &actions).unwrap();
        let mut evaluator = Evaluator::new(shape).unwrap();
        for signal in &problem.signals {
            let taken = evaluator.evaluate_actions(&actions, signal, &kernel, &problem.initial);
            let values = evaluator.values().clone();
            let followed = evaluator.evaluate(&policy, signal, &kernel, &problem.initial);
            prop_assert_eq!(bits(&[taken]), bits(&[followed]));
            prop_assert_eq!(bits(values.data()), bits(evaluator.values().data()));
        }
    }

    #[test]
    fn two_signals_in_one_pass_have_the_bits_of_each_alone(
        problem in problems(), sparse in any::<bool>(),
    ) {
        let kernel = problem.kernel(0, sparse);
        let [first, second] = &problem.signals;
        let mut evaluator = PairEvaluator::new(problem.shape).unwrap();
        for policy in &problem.policies {
            let both = evaluator.evaluate(policy, (first, second), &kernel, &problem.initial);
            let alone = [first, second].map(|signal| {
                evaluate(policy, signal, &kernel, &problem.initial).unwrap()
            });
            prop_assert_eq!(bits(&[both.0, both.1]), bits(&alone));
        }
    }

    #[test]
    fn a_sweep_in_two_parts_has_the_bits_of_one(
        problem in problems(), sparse in any::<bool>(), share in 0.0..=1.0_f64,
    ) {
        let (shape, kernel) = (problem.shape, problem.kernel(0, sparse));
        let (states, actions) = (shape.num_states(), some_actions(shape, 1));
        let split = (share * shape.horizon() as f64) as usize;
        let mut q = vec![0.0; shape.pairs()];
        let mut values = RollingValues::<1>::new(shape).unwrap();
        for steps in [split..shape.horizon(), 0..split] {
            Sweep {
                shape,
                steps,
                signals: &problem.signals[0],
                backup: &mut Expected(&kernel),
                choice: &mut Take { states, actions: &actions },
                values: &mut values,
                action_values: [&mut q],
            }.run();
        }
        let policy = MarkovPolicy::deterministic(shape, &actions).unwrap();
        let expected = state_values(&policy, &problem.signals[0], &kernel).unwrap();
        prop_assert_eq!(bits(values.last()[0]), bits(expected.step(0)));
    }

    #[test]
    fn both_forms_of_the_value_difference_lemma_give_the_difference(
        problem in problems(), sparse in any::<bool>(),
    ) {
        let policy = &problem.policies[0];
        let kernels = [problem.kernel(0, sparse), problem.kernel(1, sparse)];
        let [first, second] = [0, 1].map(|which| (&problem.signals[which], &kernels[which]));
        let values = [first, second].map(|(g, p)| state_values(policy, g, p).unwrap());
        let [before, after] = [0, 1].map(|which| problem.initial.expectation(values[which].step(0)));
        let tolerance = 1e-10 * scale(values.iter().map(StateValues::data));
        for form in [Expectation::First, Expectation::Second] {
            let found = value_difference(policy, first, second, &problem.initial, form).unwrap();
            near(&[found], &[after - before], tolerance)?;
        }
    }

    #[test]
    fn an_occupancy_times_a_signal_is_the_value(problem in problems(), sparse in any::<bool>()) {
        let kernel = problem.kernel(0, sparse);
        for policy in &problem.policies {
            let visits = occupancy(policy, &kernel, &problem.initial).unwrap();
            for signal in &problem.signals {
                let value = evaluate(policy, signal, &kernel, &problem.initial).unwrap();
                near(&[visits.expectation(signal)], &[value], 1e-12 * scale([signal.data()]))?;
            }
        }
    }

    #[test]
    fn the_policy_read_off_an_occupancy_has_that_occupancy(
        problem in problems(), sparse in any::<bool>(),
    ) {
        let kernel = problem.kernel(0, sparse);
        let completion = problem.policies.last().unwrap();
        for policy in &problem.policies {
            let visits = occupancy(policy, &kernel, &problem.initial).unwrap();
            let read = visits.induced_policy(completion).unwrap();
            let again = occupancy(&read, &kernel, &problem.initial).unwrap();
            near(again.data(), visits.data(), 1e-13)?;
        }
    }

    #[test]
    fn masses_add_up_to_what_has_not_leaked(problem in problems(), sparse in any::<bool>()) {
        let kernel = problem.kernel(0, sparse);
        let visits = occupancy(&problem.policies[0], &kernel, &problem.initial).unwrap();
        let mut remaining = 1.0;
        for (step, masses) in visits.data().chunks_exact(problem.shape.pairs()).enumerate() {
            near(&[masses.iter().sum()], &[remaining], 1e-12)?;
            let kept = masses.iter().enumerate().map(|(pair, &mass)| {
                let row: f64 = kernel.successors(step, pair).map(|(_, p)| p).sum();
                mass * row
            });
            remaining = kept.sum();
        }
    }

    /// \[Liu21\], Lemma D.3, as far as it holds: from the start.
    #[test]
    fn a_mixture_has_the_start_value_of_its_markov_policy_for_every_signal(
        problem in problems(), sparse in any::<bool>(),
    ) {
        let kernel = problem.kernel(0, sparse);
        let (policies, weights) = (&problem.policies, &problem.weights);
        let mixed = mix_policies(policies, weights, &kernel, &problem.initial).unwrap();
        for signal in &problem.signals {
            let start = |policy| evaluate(policy, signal, &kernel, &problem.initial).unwrap();
            let average: f64 = policies.iter().zip(weights).map(|(p, w)| w * start(p)).sum();
            near(&[start(&mixed)], &[average], 1e-12 * scale([signal.data()]))?;
        }
    }

    #[test]
    fn renaming_states_renames_every_answer(
        (problem, name) in problems().prop_flat_map(|problem| {
            let names: Vec<usize> = (0..problem.shape.num_states()).collect();
            (Just(problem), Just(names).prop_shuffle())
        }),
        sparse in any::<bool>(),
    ) {
        let [horizon, states, actions] = problem.shape.sizes();
        let successors_renamed = renamed(&problem.kernels[0], &name, 1);
        let other = Problem {
            initial: InitialDistribution::new(states, renamed(problem.initial.data(), &name, 1))
                .unwrap(),
            kernels: [renamed(&successors_renamed, &name, actions * states), vec![]],
            signals: problem.signals.clone().map(|signal| {
                let data = renamed(signal.data(), &name, actions);
                Signal::new("signal", problem.shape, data).unwrap()
            }),
            policies: problem.policies.iter().map(|policy| {
                let data = renamed(policy.data(), &name, actions);
                MarkovPolicy::new("policy", problem.shape, data).unwrap()
            }).collect(),
            ..problem.clone()
        };
        let (values, visits, mixed) = everything(&problem, &problem.kernel(0, sparse));
        let (other_values, other_visits, other_mixed) =
            everything(&other, &other.kernel(0, sparse));
        let tolerance = 1e-12 * horizon as f64 * scale([problem.signals[0].data()]);
        for (own, other) in values.iter().zip(&other_values) {
            near(other.data(), &renamed(own.data(), &name, 1), tolerance)?;
        }
        for (own, other) in visits.iter().zip(&other_visits) {
            near(other, &renamed(own, &name, actions), 1e-13)?;
        }
        near(&other_mixed, &renamed(&mixed, &name, actions), 1e-11)?;
    }

    #[test]
    fn dense_and_sparse_kernels_give_the_same_answers(problem in problems()) {
        let (values, visits, mixed) = everything(&problem, &problem.dense(0));
        let (sparse_values, sparse_visits, sparse_mixed) = everything(&problem, &problem.sparse(0));
        let horizon = problem.shape.horizon() as f64;
        let tolerance = 1e-12 * horizon * scale([problem.signals[0].data()]);
        for (dense, sparse) in values.iter().zip(&sparse_values) {
            near(sparse.data(), dense.data(), tolerance)?;
        }
        // Masses are spread in the same order either way: the same bits.
        prop_assert_eq!(visits, sparse_visits);
        prop_assert_eq!(mixed, sparse_mixed);
        prop_assert_eq!(problem.sparse(0).to_dense().unwrap(), problem.kernels[0].clone());
    }

    #[test]
    fn a_stationary_problem_is_its_own_broadcast(
        (problem, once, signal) in (problems(), any::<bool>()).prop_flat_map(|(problem, full)| {
            let shape = problem.shape;
            let signal = proptest::collection::vec(-20.0..20.0_f64, shape.pairs());
            (Just(problem), kernel_rows(shape.pairs(), shape.num_states(), full), signal)
        }),
    ) {
        let [horizon, states, actions] = problem.shape.sizes();
        let shape = problem.shape;
        let short = Signal::stationary("signal", shape, signal.clone()).unwrap();
        let long = Signal::new("signal", shape, signal.repeat(horizon)).unwrap();
        let with = |signal: &Signal| Problem {
            signals: [signal.clone(), signal.clone()],
            ..problem.clone()
        };
        let dense = |slices, data| Kernel::dense(states, actions, slices, data).unwrap();
        let per_step = Slices::PerStep(horizon);
        // The same additions in the same order: the same bits.
        let expected = everything(&with(&long), &dense(per_step, once.repeat(horizon)));
        let stored_once = dense(Slices::Stationary, once.clone());
        prop_assert_eq!(&everything(&with(&short), &stored_once), &expected);
        prop_assert_eq!(&everything(&with(&long), &stored_once), &expected);
        let expected = everything(
            &with(&long),
            &sparse_kernel(states, actions, per_step, &once.repeat(horizon)),
        );
        let stored_once = sparse_kernel(states, actions, Slices::Stationary, &once);
        prop_assert_eq!(&everything(&with(&short), &stored_once), &expected);
    }

    #[test]
    fn backward_induction_beats_every_policy_everywhere_and_attains_its_values(
        problem in problems(), sparse in any::<bool>(),
    ) {
        let kernel = problem.kernel(0, sparse);
        let signal = &problem.signals[0];
        let plan = backward_induction(problem.shape, signal, &kernel).unwrap();
        let best = plan.values().data();
        let own = state_values(&plan.policy().unwrap(), signal, &kernel).unwrap();
        let tolerance = 1e-13 * problem.shape.horizon() as f64 * scale([signal.data()]);
        near(own.data(), best, tolerance)?;
        for policy in &problem.policies {
            let values = state_values(policy, signal, &kernel).unwrap();
            for (index, (value, best)) in values.data().iter().zip(best).enumerate() {
                prop_assert!(*value <= best + tolerance, "[{index}]: {value} above {best}");
            }
        }
    }

    /// Both ways of storing: a slice of NaN would poison anything that so much as multiplied it.
    #[test]
    fn the_last_slice_of_the_kernel_never_matters(problem in problems(), sparse in any::<bool>()) {
        let mut spoilt = problem.clone();
        let used = (problem.shape.horizon() - 1) * problem.shape.pairs();
        for kernel in &mut spoilt.kernels {
            kernel[used * problem.shape.num_states()..].fill(f64::NAN);
        }
        let sound = [problem.kernel(0, sparse), problem.kernel(1, sparse)];
        let spoilt = [spoilt.kernel(0, sparse), spoilt.kernel(1, sparse)];
        prop_assert_eq!(everything(&problem, &spoilt[0]), everything(&problem, &sound[0]));
        for form in [Expectation::First, Expectation::Second] {
            let difference = |kernels: &[Kernel; 2]| {
                let [first, second] = [0, 1].map(|which| (&problem.signals[which], &kernels[which]));
                let policy = &problem.policies[0];
                value_difference(policy, first, second, &problem.initial, form).unwrap()
            };
            prop_assert_eq!(difference(&spoilt).to_bits(), difference(&sound).to_bits());
        }
    }

    #[test]
    fn random_shapes_index_every_triple_once(shape in shapes()) {
        let places: Vec<[usize; 3]> = (0..shape.triples()).map(|at| shape.triple_index(at)).collect();
        for (flat, &[step, state, action]) in places.iter().enumerate() {
            prop_assert_eq!(step * shape.pairs() + shape.pair(state, action), flat);
        }
        prop_assert_eq!(Shape::new(shape.horizon(), shape.num_states(), shape.num_actions()), Ok(shape));
    }
}
