//! Planning over policies and plausible kernels: against every pair of extreme points there is, against
//! planning on one kernel, and against itself from another start.

use optpess_core::confidence::KernelBox;
use optpess_core::error::Error;
use optpess_core::evaluate::{Backup, Best, Follow, Memory, Sweep, Worst, evaluate, state_values};
use optpess_core::model::{Kernel, Slices};
use optpess_core::plan::{
    ChordSearch, Extended, ExtendedOracle, ExtendedVertex, ExtendedWork, PlanningProblem, Point,
    backward_induction, extended_induction, solve_exactly, solve_extended,
};
use optpess_core::policy::MarkovPolicy;
use optpess_core::shape::Shape;
use optpess_core::table::{Signal, StateValues};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::planning::{best_by_force, extremes};
use crate::problems::{Problem, problems, stochastic_problems};

/// A problem, half-widths of its boxes `[H, S, A, S]` and the set they make.
#[derive(Debug, Clone)]
struct Uncertain {
    problem: Problem,
    radius: Vec<f64>,
    kernels: KernelBox,
}

impl Uncertain {
    fn extended(&self) -> Extended<'_, Signal, Signal> {
        Extended {
            reward: &self.problem.signals[0],
            cost: &self.problem.signals[1],
            kernels: &self.kernels,
            initial: &self.problem.initial,
        }
    }
}

fn uncertain(shapes: impl Strategy<Value = Shape>) -> impl Strategy<Value = Uncertain> {
    let widths = prop_oneof![Just(0.0), Just(2.0), 0.0..0.4_f64];
    (stochastic_problems(shapes), widths, any::<u64>()).prop_map(|(problem, width, salt)| {
        let entries = problem.shape.triples() * problem.shape.num_states();
        let radius = (0..entries).map(|index| width * fraction(index as u64 ^ salt));
        let radius: Vec<f64> = radius.collect();
        let kernels = KernelBox::around(problem.shape, &problem.kernels[0], &radius).unwrap();
        Uncertain {
            problem,
            radius,
            kernels,
        }
    })
}

/// A number in [0.25, 1] that looks random.
fn fraction(index: u64) -> f64 {
    let mixed = index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    0.25 + 0.75 * (mixed as f64 / (1_u64 << 24) as f64)
}

fn shapes(max: [usize; 3]) -> impl Strategy<Value = Shape> {
    (1..=max[0], 1..=max[1], 1..=max[2]).prop_map(|(h, s, a)| Shape::new(h, s, a).unwrap())
}

/// max over policies and plausible kernels of V(signal).
fn best_value(case: &Uncertain, signal: &Signal) -> f64 {
    let shape = case.problem.shape;
    let mut work = ExtendedWork::new(shape).unwrap();
    let mut found = ExtendedVertex::for_shape(shape).unwrap();
    extended_induction(signal, &case.kernels, &mut work, &mut found);
    case.problem.initial.expectation(work.values().step(0))
}

/// The values of a policy when rows are chosen by a backup.
fn swept<B: Backup<1>>(policy: &MarkovPolicy, signal: &Signal, backup: &mut B) -> StateValues {
    let shape = policy.shape();
    let mut values = StateValues::zeros(shape).unwrap();
    Sweep {
        shape,
        steps: 0..shape.horizon(),
        signals: signal,
        backup,
        choice: &mut Follow::new(policy),
        values: &mut values,
        action_values: [&mut vec![0.0; shape.pairs()]],
    }
    .run();
    values
}

fn negated(signal: &Signal) -> Signal {
    let data = signal.data().iter().map(|value| -value).collect();
    Signal::new("signal", signal.shape(), data).unwrap()
}

/// The extreme rows of two states: as much as may be on the first state, or on the second.
fn two_state_rows(case: &Uncertain, row: usize) -> [[f64; 2]; 2] {
    let centre = &case.problem.kernels[0][row * 2..][..2];
    let radius = &case.radius[row * 2..][..2];
    let low = |s: usize| (centre[s] - radius[s]).max(0.0);
    let high = |s: usize| (centre[s] + radius[s]).min(1.0);
    let most = high(0).min(1.0 - low(1));
    let least = low(0).max(1.0 - high(1));
    [[most, 1.0 - most], [least, 1.0 - least]]
}

/// (cost, reward) of every deterministic policy on every extreme kernel, for two states.
fn all_points(case: &Uncertain) -> Vec<(f64, f64)> {
    let problem = &case.problem;
    let [horizon, states, actions] = problem.shape.sizes();
    let (places, rows) = (horizon * states, problem.shape.triples());
    let mut points = Vec::new();
    for number in 0..actions.pow(places as u32) {
        let digit = |place: usize| (number / actions.pow(place as u32) % actions) as u32;
        let choices: Vec<u32> = (0..places).map(digit).collect();
        let policy = MarkovPolicy::deterministic(problem.shape, &choices).unwrap();
        // Only the rows of the actions taken matter.
        for ends in 0..1_usize << (places - states) {
            let mut data = problem.kernels[0].clone();
            for (place, &choice) in choices.iter().enumerate().take(places - states) {
                let row = place * actions + choice as usize;
                assert!(row < rows);
                let extreme = two_state_rows(case, row)[ends >> place & 1];
                data[row * 2..][..2].copy_from_slice(&extreme);
            }
            let kernel = Kernel::dense(2, actions, Slices::PerStep(horizon), data).unwrap();
            let value = |which: usize| {
                evaluate(&policy, &problem.signals[which], &kernel, &problem.initial).unwrap()
            };
            points.push((value(1), value(0)));
        }
    }
    points
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_worst_and_the_best_row_bound_the_expectation_at_every_step(
        case in uncertain(shapes([6, 5, 3])),
    ) {
        let problem = &case.problem;
        let (shape, kernel) = (problem.shape, problem.dense(0));
        let entries = shape.triples() * shape.num_states();
        for (policy, signal) in problem.policies.iter().zip(problem.signals.iter().cycle()) {
            let expected = state_values(policy, signal, &kernel).unwrap();
            let [mut worst_rows, mut best_rows] = [0, 1].map(|_| vec![0.0; entries]);
            let mut order = vec![0; shape.num_states()];
            let worst = swept(
                policy, signal, &mut Worst::new(&case.kernels, &mut order, Memory::RowPerPair(&mut worst_rows)),
            );
            let best = swept(
                policy, signal, &mut Best::new(&case.kernels, &mut order, Memory::RowPerPair(&mut best_rows)),
            );
            let values = worst.data().iter().zip(expected.data()).zip(best.data());
            for ((worst, expected), best) in values {
                prop_assert!(*worst <= expected + 1e-11 && *expected <= best + 1e-11, "{worst} {expected} {best}");
            }
            // The rows that were noted are within the box, and have the values that were claimed.
            for (rows, claimed) in [(worst_rows, worst), (best_rows, best)] {
                let pairs = rows.chunks_exact(shape.num_states()).zip(problem.kernels[0].chunks_exact(shape.num_states()));
                for (row, (noted, centre)) in pairs.enumerate().take(shape.triples() - shape.pairs()) {
                    let taken = policy.data()[row] > 0.0;
                    prop_assert!(!taken || (noted.iter().sum::<f64>() - 1.0).abs() <= 1e-12);
                    let radius = &case.radius[row * shape.num_states()..];
                    for ((p, middle), width) in noted.iter().zip(centre).zip(radius) {
                        prop_assert!(!taken || (p - middle).abs() <= width + 1e-12);
                    }
                }
                let horizon = Slices::PerStep(shape.horizon());
                let noted = Kernel::dense(shape.num_states(), shape.num_actions(), horizon, rows).unwrap();
                let found = state_values(policy, signal, &noted).unwrap();
                for (found, claimed) in found.data().iter().zip(claimed.data()) {
                    prop_assert!((found - claimed).abs() <= 1e-11, "{found} is not {claimed}");
                }
            }
        }
    }

    #[test]
    fn a_plan_is_the_best_mixture_of_all_policies_on_all_extreme_kernels(
        case in uncertain((1..=2_usize, 1..=2_usize).prop_map(|(h, a)| Shape::new(h, 2, a).unwrap())),
        place in 0.0..1.2_f64,
    ) {
        let points = all_points(&case);
        let (least, most) = extremes(&points);
        let limit = least + 1e-9 + place * (most - least);
        let plan = solve_extended(&case.extended(), limit).unwrap();
        let best = best_by_force(&points, limit);
        let width = 1e-10 + 1e-11 * plan.multiplier;
        prop_assert!((plan.value - best).abs() <= width, "{} against {best}", plan.value);
        prop_assert!(plan.cost <= limit + 1e-10);
        prop_assert!(plan.bound >= best - 1e-10 && plan.bound - plan.value <= width);
    }

    #[test]
    fn a_plan_can_be_played_on_a_plausible_kernel_and_costs_and_earns_there_what_it_claims(
        case in uncertain(shapes([6, 6, 3])), place in 0.0..1.2_f64,
    ) {
        let (problem, shape) = (&case.problem, case.problem.shape);
        let least = -best_value(&case, &negated(&problem.signals[1]));
        let most = best_value(&case, &problem.signals[1]);
        let limit = least + 1e-9 + place * (most - least);
        let plan = solve_extended(&case.extended(), limit).unwrap();
        let states = shape.num_states();
        let mut data = problem.kernels[0].clone();
        for (row, &mass) in plan.occupancy.data().iter().enumerate() {
            let flow = plan.flow.get(row * states..).unwrap_or(&[]);
            // The smallest masses have no digits to divide.
            if mass > 1e-9 && !flow.is_empty() {
                for (entry, &moved) in flow[..states].iter().enumerate() {
                    let index = row * states + entry;
                    let away = moved / mass - problem.kernels[0][index];
                    prop_assert!(away.abs() <= case.radius[index] + 1e-6);
                    data[index] = moved / mass;
                }
            }
        }
        let kernel = Kernel::dense(states, shape.num_actions(), Slices::PerStep(shape.horizon()), data);
        let kernel = kernel.unwrap();
        let value = |which: usize| {
            evaluate(&plan.policy, &problem.signals[which], &kernel, &problem.initial).unwrap()
        };
        let size = 1e-6 * shape.horizon() as f64;
        prop_assert!((value(0) - plan.value).abs() <= size);
        prop_assert!((value(1) - plan.cost).abs() <= size && plan.cost <= limit + 1e-10);
    }

    #[test]
    fn a_set_of_one_kernel_is_planning_on_it(problem in stochastic_problems(shapes([6, 6, 3])), place in 0.0..1.2_f64) {
        let radius = vec![0.0; problem.kernels[0].len()];
        let kernels = KernelBox::around(problem.shape, &problem.kernels[0], &radius).unwrap();
        let kernel = problem.dense(0);
        let case = Uncertain { problem, radius, kernels };
        let problem = &case.problem;
        let single = PlanningProblem {
            shape: problem.shape, reward: &problem.signals[0], cost: &problem.signals[1],
            kernel: &kernel, initial: &problem.initial,
        };
        let greedy = backward_induction(problem.shape, single.reward, &kernel).unwrap();
        let best = problem.initial.expectation(greedy.values().step(0));
        prop_assert!((best_value(&case, single.reward) - best).abs() <= 1e-11);
        let least = -best_value(&case, &negated(single.cost));
        let most = best_value(&case, single.cost);
        let limit = least + 1e-9 + place * (most - least);
        let plans = (solve_extended(&case.extended(), limit).unwrap(), solve_exactly(&single, limit).unwrap());
        let width = 1e-10 * (1.0 + plans.1.multiplier);
        prop_assert!((plans.0.value - plans.1.value).abs() <= width, "{plans:?}");
    }

    #[test]
    fn where_the_truth_is_plausible_plans_are_optimistic(
        case in uncertain(shapes([6, 6, 3])), share in 0.0..1.0_f64, place in 0.0..1.2_f64,
    ) {
        // The truth: on the way from the centre to another kernel, but for no row further than its box.
        let (problem, shape) = (&case.problem, case.problem.shape);
        let states = shape.num_states();
        let rows = problem.kernels[0].chunks(states).zip(problem.kernels[1].chunks(states));
        let mut truth = Vec::new();
        for ((centre, other), radius) in rows.zip(case.radius.chunks(states)) {
            let mut reach = share;
            for ((p, q), width) in centre.iter().zip(other).zip(radius) {
                if (q - p).abs() > 0.0 {
                    reach = reach.min(width / (q - p).abs());
                }
            }
            truth.extend(centre.iter().zip(other).map(|(p, q)| p + reach * (q - p)));
        }
        let kernel = Kernel::dense(states, shape.num_actions(), Slices::PerStep(shape.horizon()), truth).unwrap();
        let single = PlanningProblem {
            shape, reward: &problem.signals[0], cost: &problem.signals[1],
            kernel: &kernel, initial: &problem.initial,
        };
        let greedy = backward_induction(shape, single.reward, &kernel).unwrap();
        prop_assert!(best_value(&case, single.reward) >= problem.initial.expectation(greedy.values().step(0)) - 1e-10);
        let costs = [negated(single.cost), single.cost.clone()].map(|signal| {
            let greedy = backward_induction(shape, &signal, &kernel).unwrap();
            problem.initial.expectation(greedy.values().step(0))
        });
        let limit = -costs[0] + 1e-9 + place * (costs[1] + costs[0]);
        let best = solve_exactly(&single, limit).unwrap().value;
        let plan = solve_extended(&case.extended(), limit).unwrap();
        prop_assert!(plan.value >= best - 1e-10 * (1.0 + best.abs()), "{} below {best}", plan.value);
    }

    #[test]
    fn a_start_from_the_last_answer_changes_nothing(
        cases in vec(uncertain(Just(Shape::new(4, 4, 2).unwrap())), 2..6), place in 0.05..0.95_f64,
    ) {
        let shape = Shape::new(4, 4, 2).unwrap();
        let mut warm = ChordSearch::new(shape).unwrap();
        for case in &cases {
            let problem = case.extended();
            let mut oracle = ExtendedOracle::new(&problem).unwrap();
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

    #[test]
    fn nothing_is_known_of_kernels_that_may_be_anything(problem in problems()) {
        // Every state may follow every other: the value is the best signal of each step, once reached.
        let shape = problem.shape;
        let kernels = KernelBox::everything(shape).unwrap();
        let mut work = ExtendedWork::new(shape).unwrap();
        let mut found = ExtendedVertex::for_shape(shape).unwrap();
        extended_induction(&problem.signals[0], &kernels, &mut work, &mut found);
        let best = |row: &[f64]| row.iter().fold(f64::NEG_INFINITY, |most, &value| most.max(value));
        let later: f64 = (1..shape.horizon()).map(|step| best(problem.signals[0].step(step))).sum();
        let first = problem.signals[0].step(0).chunks(shape.num_actions()).map(best);
        let expected: Vec<f64> = first.map(|value| value + later).collect();
        for (value, expected) in work.values().step(0).iter().zip(expected) {
            prop_assert!((value - expected).abs() <= 1e-11);
        }
    }
}
