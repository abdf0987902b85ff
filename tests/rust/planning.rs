//! The chord method against every deterministic policy there is, against itself from another start, and
//! against the golden optima.

use optpess_core::control::Control;
use optpess_core::error::Error;
use optpess_core::evaluate::evaluate;
use optpess_core::model::{InitialDistribution, Kernel, Slices};
use optpess_core::parallel::Workers;
use optpess_core::plan::{
    ChordSearch, PlainOracle, PlanningProblem, backward_induction, best_actions, frontier,
    least_cost_and_rounding, solve_exactly, solve_to,
};
use optpess_core::policy::MarkovPolicy;
use optpess_core::shape::Shape;
use optpess_core::table::Signal;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::instances::load_all;
use crate::problems::{Problem, distribution, kernel_rows, problems};

/// Reward and cost of a small problem: real numbers, or integers with many ties.
pub fn small_problems() -> impl Strategy<Value = Problem> {
    let sizes = (1..=3_usize, 1..=2_usize, 1..=2_usize, any::<bool>());
    sizes.prop_flat_map(|(horizon, states, actions, stochastic)| {
        let shape = Shape::new(horizon, states, actions).unwrap();
        let numbers = || {
            let integers = (-2..=2_i8).prop_map(f64::from);
            prop_oneof![
                vec(integers, shape.triples()),
                vec(-1.0..1.0_f64, shape.triples())
            ]
        };
        (
            kernel_rows(shape.triples(), states, stochastic),
            [numbers(), numbers()],
            distribution(states),
        )
            .prop_map(move |(rows, signals, initial)| Problem {
                shape,
                initial: InitialDistribution::new(states, initial).unwrap(),
                kernels: [rows.clone(), rows],
                signals: signals.map(|data| Signal::new("signal", shape, data).unwrap()),
                policies: vec![],
                weights: vec![],
            })
    })
}

pub fn tradeoff<'a>(
    problem: &'a Problem,
    kernel: &'a Kernel,
) -> PlanningProblem<'a, Signal, Signal, Kernel> {
    PlanningProblem {
        shape: problem.shape,
        reward: &problem.signals[0],
        cost: &problem.signals[1],
        kernel,
        initial: &problem.initial,
    }
}

/// (cost, reward) of every deterministic policy.
pub fn all_points(problem: &Problem, kernel: &Kernel) -> Vec<(f64, f64)> {
    let [horizon, states, actions] = problem.shape.sizes();
    let places = horizon * states;
    (0..actions.pow(places as u32))
        .map(|number| {
            let digit = |place: usize| (number / actions.pow(place as u32) % actions) as u32;
            let choices: Vec<u32> = (0..places).map(digit).collect();
            let policy = MarkovPolicy::deterministic(problem.shape, &choices).unwrap();
            let value = |which: usize| {
                evaluate(&policy, &problem.signals[which], kernel, &problem.initial).unwrap()
            };
            (value(1), value(0))
        })
        .collect()
}

/// The best reward of a mixture of two policies that costs at most `limit`: every pair is tried.
pub fn best_by_force(points: &[(f64, f64)], limit: f64) -> f64 {
    let mut best = f64::NEG_INFINITY;
    for &(cost, reward) in points.iter().filter(|point| point.0 <= limit) {
        best = best.max(reward);
        for &(dear, more) in points.iter().filter(|point| point.0 > limit) {
            let weight = (limit - cost) / (dear - cost);
            best = best.max((1.0 - weight) * reward + weight * more);
        }
    }
    best
}

pub fn extremes(points: &[(f64, f64)]) -> (f64, f64) {
    let costs = points.iter().map(|point| point.0);
    costs.fold((f64::INFINITY, f64::NEG_INFINITY), |ends, cost| {
        (ends.0.min(cost), ends.1.max(cost))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_plan_is_the_best_mixture_of_all_deterministic_policies(
        problem in small_problems(), place in 0.0..1.2_f64, sparse: bool,
    ) {
        let kernel = problem.kernel(0, sparse);
        let points = all_points(&problem, &kernel);
        let (least, most) = extremes(&points);
        // Rounding may decide at the least cost itself; a hair above it nothing is in doubt.
        let limit = least + 1e-9 + place * (most - least);
        let plan = solve_exactly(&tradeoff(&problem, &kernel), limit).unwrap();
        let best = best_by_force(&points, limit);
        let width = 1e-11 + 1e-12 * plan.multiplier;
        prop_assert!((plan.value - best).abs() <= width, "{} against {best}", plan.value);
        prop_assert!(plan.certificate.cost <= limit);
        prop_assert!(plan.bound >= best - 1e-11 && plan.bound - plan.value <= width);
    }

    #[test]
    fn the_search_on_a_known_model_finds_what_the_chord_method_finds(
        problem in problems(), place in 0.05..1.2_f64, sparse: bool, threads in 1..4_usize,
    ) {
        let kernel = problem.kernel(0, sparse);
        let posed = tradeoff(&problem, &kernel);
        let mut oracle = PlainOracle::new(&posed).unwrap();
        let (least, _) = least_cost_and_rounding(&mut oracle, 0.0).unwrap();
        let limit = least + place;
        let mut search = ChordSearch::new(problem.shape).unwrap();
        let expected = search.solve(&mut oracle, limit).unwrap();
        let control = Control::default();
        let workers = Workers { threads, control: &control };
        let plan = solve_to(&posed, limit, 0.0, workers).unwrap();
        let width = 1e-11 * (1.0 + expected.value.abs()) + 1e-12 * expected.multiplier;
        prop_assert!((plan.value - expected.value).abs() <= width, "{} {expected:?}", plan.value);
        let near = solve_to(&posed, limit, 0.01, workers).unwrap();
        prop_assert!(near.bound - near.value <= 0.01 + width && near.certificate.cost <= limit);
        prop_assert!(near.value >= expected.value - 0.01 - width);
        // The mixture that is kept as actions has the value that is claimed for it.
        let policy = plan.policy.policy().unwrap();
        let value = evaluate(&policy, posed.reward, &kernel, &problem.initial).unwrap();
        prop_assert!((value - plan.value).abs() <= 1e-12 * (1.0 + value.abs()));
    }

    #[test]
    fn the_best_actions_have_the_bits_of_a_plain_induction(
        problem in problems(), sparse: bool, threads in 1..4_usize,
    ) {
        let kernel = problem.kernel(0, sparse);
        let signal = &problem.signals[0];
        let plain = backward_induction(problem.shape, signal, &kernel).unwrap();
        let control = Control::default();
        let workers = Workers { threads, control: &control };
        let (actions, values) = best_actions(problem.shape, signal, &kernel, workers).unwrap();
        prop_assert!(actions.iter().eq(plain.actions().iter().map(|&action| action as usize)));
        prop_assert_eq!(&values, plain.values());
    }

    #[test]
    fn the_frontier_is_the_envelope_of_all_deterministic_policies(problem in small_problems()) {
        let kernel = problem.dense(0);
        let points = all_points(&problem, &kernel);
        let vertices = frontier(&tradeoff(&problem, &kernel), 1000).unwrap();
        let (least, _) = extremes(&points);
        let best = points.iter().fold(f64::NEG_INFINITY, |best, point| best.max(point.1));
        prop_assert!((vertices[0].0 - least).abs() <= 1e-12);
        prop_assert!((vertices[vertices.len() - 1].1 - best).abs() <= 1e-12);
        // A hair above each vertex, so that rounding of its cost does not decide; where the curve is steep even
        // a hair counts, so it is the curve that is compared, with the rounding of costs times its slope.
        let ends = vertices.windows(2).map(|pair| (pair[0], Some(pair[1])));
        for ((cost, reward), next) in ends.chain([(vertices[vertices.len() - 1], None)]) {
            let slope = next.map_or(0.0, |(dear, more)| (more - reward) / (dear - cost));
            let reached = next.map_or(f64::INFINITY, |(_, more)| more);
            let expected = (reward + slope * 1e-13).min(reached);
            let forced = best_by_force(&points, cost + 1e-13);
            let width = 1e-11 + slope * 1e-14;
            prop_assert!((forced - expected).abs() <= width, "{forced} at {cost}, not {expected}");
        }
        for pair in vertices.windows(2) {
            let middle = (pair[0].0.midpoint(pair[1].0), pair[0].1.midpoint(pair[1].1));
            let slope = (pair[1].1 - pair[0].1) / (pair[1].0 - pair[0].0);
            let forced = best_by_force(&points, middle.0);
            prop_assert!((forced - middle.1).abs() <= 1e-11 + slope * 1e-14, "{forced} at {middle:?}");
        }
    }

    #[test]
    fn what_no_policy_attains_is_refused_with_the_least_attainable_cost(problem in small_problems()) {
        let kernel = problem.dense(0);
        let (least, _) = extremes(&all_points(&problem, &kernel));
        let posed = tradeoff(&problem, &kernel);
        let mut oracle = PlainOracle::new(&posed).unwrap();
        let mut search = ChordSearch::new(problem.shape).unwrap();
        let refused = search.solve(&mut oracle, least - 1e-3);
        let Err(Error::Infeasible { least_cost, .. }) = refused else {
            return Err(TestCaseError::fail(format!("{refused:?}")));
        };
        prop_assert!((least_cost - least).abs() <= 1e-12);
        let (found, rounding) = least_cost_and_rounding(&mut oracle, least - 1e-3).unwrap();
        prop_assert_eq!(found.to_bits(), least_cost.to_bits());
        prop_assert!(0.0 < rounding && rounding < 1e-10, "{}", rounding);
    }

    #[test]
    fn a_start_from_the_last_answer_changes_nothing(
        problem in problems(), place in 0.05..0.95_f64, shifts in vec(-0.5..0.5_f64, 12),
    ) {
        let kernel = problem.dense(0);
        let shape = problem.shape;
        let mut warm = ChordSearch::new(shape).unwrap();
        let [reward, cost] = [0, 1].map(|which| problem.signals[which].data().to_vec());
        for (round, shift) in shifts.iter().enumerate() {
            let moved = |data: &[f64], phase: usize| {
                let shifted = data.iter().enumerate().map(|(index, entry)| {
                    entry + shift * ((index * 7 + phase) as f64).sin()
                });
                Signal::new("signal", shape, shifted.collect()).unwrap()
            };
            let (reward, cost) = (moved(&reward, round), moved(&cost, 3 * round + 1));
            let posed = PlanningProblem {
                shape, reward: &reward, cost: &cost, kernel: &kernel, initial: &problem.initial,
            };
            let mut oracle = PlainOracle::new(&posed).unwrap();
            let mut cold = ChordSearch::new(shape).unwrap();
            let dearest = cold.solve(&mut oracle, f64::MAX).unwrap().cost;
            let Err(Error::Infeasible { least_cost, .. }) = cold.solve(&mut oracle, -1e9) else {
                unreachable!("no policy costs so little");
            };
            let limit = least_cost + place * (dearest - least_cost).max(0.0) + 1e-9;
            cold.forget();
            let answers = [&mut cold, &mut warm].map(|search| search.solve(&mut oracle, limit).unwrap());
            let size = answers[0].value.abs().max(1.0);
            prop_assert!((answers[0].value - answers[1].value).abs() <= 1e-11 * size, "{answers:?}");
            prop_assert!(answers[1].cost <= limit + 1e-11 * limit.abs().max(1.0));
        }
    }
}

/// Least cost and most reward cost the same on paper, and rounding sets them apart: the point of more reward is the
/// one vertex.
#[test]
fn a_rise_at_the_same_cost_up_to_rounding_is_no_edge() {
    let shape = Shape::new(3, 2, 2).unwrap();
    let stay = [1.0, 0.0];
    let mixed = [0.823_196_695_100_074_6, 0.176_803_304_899_925_5];
    let rows = [
        [stay, mixed, stay, stay],
        [stay, stay, [0.0, 1.0], stay],
        [stay; 4],
    ];
    let reward = vec![0., 0., 0., 0., 0., 0., 0., 0., 0., 0., -1., 0.];
    let cost = vec![2., 2., 0., 0., -1., 0., 0., 0., 0., -1., -2., 0.];
    for start in [[0.5, 0.5], [1.0, 0.0]] {
        let rows = rows.as_flattened().as_flattened().to_vec();
        let problem = Problem {
            shape,
            initial: InitialDistribution::new(2, start.to_vec()).unwrap(),
            kernels: [rows.clone(), rows],
            signals: [&reward, &cost]
                .map(|data| Signal::new("signal", shape, data.clone()).unwrap()),
            policies: vec![],
            weights: vec![],
        };
        let vertices = frontier(&tradeoff(&problem, &problem.dense(0)), 10).unwrap();
        assert_eq!(vertices.len(), 1, "{vertices:?}");
        assert!((vertices[0].0 - (2.0 * start[0] - 2.0)).abs() < 1e-14 && vertices[0].1 == 0.0);
    }
}

#[test]
fn golden_optima_are_found_in_every_form_of_storage() {
    for instance in load_all() {
        let known = &instance.constrained;
        for (form, kernel) in instance.kernels() {
            for (reward, cost) in instance
                .reward_signals()
                .iter()
                .zip(&instance.cost_signals())
            {
                let problem = PlanningProblem {
                    shape: instance.shape,
                    reward,
                    cost,
                    kernel: &kernel,
                    initial: &instance.initial,
                };
                let plan = solve_exactly(&problem, instance.limit).unwrap();
                let name = format!("{}, {form}", instance.name);
                assert!((plan.value - known.value).abs() < 1e-14, "{name}: {plan:?}");
                assert!((plan.certificate.cost - known.cost).abs() < 1e-14, "{name}");
                assert!((plan.multiplier - known.multiplier).abs() < 1e-13, "{name}");
                assert!((plan.bound - known.value).abs() < 1e-13, "{name}");
                assert!(plan.certificate.cost <= plan.certificate.limit, "{name}");
            }
        }
    }
}

/// Full rows that are mostly zeros are walked as lists.
#[test]
fn rows_of_zeros_are_left_out_and_nothing_changes() {
    let (states, actions) = (70, 2);
    let shape = Shape::new(4, states, actions).unwrap();
    let mut data = vec![0.0; 4 * states * actions * states];
    for (row, entries) in data.chunks_exact_mut(states).enumerate() {
        entries[row % states] = 0.25;
        entries[row * 7 % states] += 0.75;
    }
    let last = data.len() - 1;
    data[last] = f64::NAN; // of the last step, which is never read
    let kernel = Kernel::dense(states, actions, Slices::PerStep(4), data).unwrap();
    let values = (0..shape.triples()).map(|place| (place as f64).sin());
    let signal = Signal::new("signal", shape, values.collect()).unwrap();
    let plain = backward_induction(shape, &signal, &kernel).unwrap();
    let control = Control::default();
    let found = best_actions(shape, &signal, &kernel, Workers::alone(&control));
    let (actions, values) = found.unwrap();
    assert!(
        actions
            .iter()
            .eq(plain.actions().iter().map(|&action| action as usize))
    );
    for (found, expected) in values.data().iter().zip(plain.values().data()) {
        assert!((found - expected).abs() < 1e-14);
    }
}
