//! Is the known answer still the answer, however the kernel and the signal are stored?

use optpess_core::evaluate::{evaluate, mix_policies, occupancy, state_values};
use optpess_core::plan::backward_induction;
use optpess_core::table::{Signal, StepSignal};

use crate::instances::load_all;

/// A few roundings of numbers below 10; the expected numbers themselves are rounded once.
const TOLERANCE: f64 = 1e-14;

#[track_caller]
fn assert_near(found: &[f64], expected: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (index, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!((a - b).abs() <= TOLERANCE, "{what} [{index}]: {a} for {b}");
    }
}

#[test]
fn the_golden_instances_are_all_found() {
    let names: Vec<String> = load_all().into_iter().map(|known| known.name).collect();
    assert_eq!(names, ["leak", "pair", "ring"]);
}

#[test]
fn known_policies_have_their_known_values() {
    for instance in load_all() {
        for (storage, kernel) in instance.kernels() {
            for known in &instance.policies {
                let what = format!("{} {storage} {}", instance.name, known.name);
                let cases = [
                    (
                        instance.reward_signals(),
                        known.reward,
                        &known.reward_values,
                    ),
                    (instance.cost_signals(), known.cost, &known.cost_values),
                ];
                for (signals, start, values) in cases {
                    for signal in signals {
                        let found = state_values(&known.policy, &signal, &kernel).unwrap();
                        assert_near(found.data(), values, &what);
                        let found = evaluate(&known.policy, &signal, &kernel, &instance.initial);
                        assert_near(&[found.unwrap()], &[start], &what);
                    }
                }
            }
        }
    }
}

#[test]
fn known_policies_have_their_known_occupancies() {
    for instance in load_all() {
        for (storage, kernel) in instance.kernels() {
            for known in &instance.policies {
                let what = format!("{} {storage} {}", instance.name, known.name);
                let found = occupancy(&known.policy, &kernel, &instance.initial).unwrap();
                assert_near(found.data(), &known.occupancy, &what);
            }
        }
    }
}

#[test]
fn backward_induction_finds_the_known_unconstrained_optimum() {
    for instance in load_all() {
        let known = &instance.unconstrained;
        for (storage, kernel) in instance.kernels() {
            for signal in instance.reward_signals() {
                let what = format!("{} {storage}", instance.name);
                let plan = backward_induction(instance.shape, &signal, &kernel).unwrap();
                // The best policy of each golden instance is unique, so the actions must agree.
                assert_eq!(plan.actions(), known.choices, "{what}");
                assert_near(plan.values().data(), &known.values, &what);
                let start = instance.initial.expectation(plan.values().step(0));
                assert_near(&[start], &[known.value], &what);
            }
        }
    }
}

/// With a signal of zeros every action ties at every place.
#[test]
fn ties_go_to_the_lowest_action() {
    for instance in load_all() {
        let zeros = vec![0.0; instance.shape.triples()];
        let signal = Signal::new("zeros", instance.shape, zeros).unwrap();
        for (storage, kernel) in instance.kernels() {
            let plan = backward_induction(instance.shape, &signal, &kernel).unwrap();
            let lowest = plan.actions().iter().all(|&action| action == 0);
            assert!(lowest, "{} {storage}", instance.name);
        }
    }
}

#[test]
fn the_parts_of_the_known_constrained_optimum_mix_to_its_value_and_cost() {
    for instance in load_all() {
        let known = &instance.constrained;
        assert!(known.cost <= instance.limit, "{}", instance.name);
        for (storage, kernel) in instance.kernels() {
            let what = format!("{} {storage}", instance.name);
            let parts = &known.mixture;
            let policies: Vec<_> = parts.iter().map(|part| part.policy.clone()).collect();
            let weights: Vec<f64> = parts.iter().map(|part| part.weight).collect();
            let mixed = mix_policies(&policies, &weights, &kernel, &instance.initial).unwrap();
            for (signals, value, of_part) in [
                (
                    instance.reward_signals(),
                    known.value,
                    parts.iter().map(|part| part.reward).collect::<Vec<_>>(),
                ),
                (
                    instance.cost_signals(),
                    known.cost,
                    parts.iter().map(|part| part.cost).collect(),
                ),
            ] {
                for signal in signals {
                    let start = |policy| evaluate(policy, &signal, &kernel, &instance.initial);
                    assert_near(&[start(&mixed).unwrap()], &[value], &what);
                    for (policy, expected) in policies.iter().zip(&of_part) {
                        assert_near(&[start(policy).unwrap()], &[*expected], &what);
                    }
                }
            }
        }
    }
}

/// r - l c, never stored.
struct Lagrangian<'a> {
    reward: &'a Signal,
    cost: &'a Signal,
    multiplier: f64,
}

impl StepSignal for Lagrangian<'_> {
    fn at(&self, step: usize, pair: usize) -> f64 {
        self.reward.at(step, pair) - self.multiplier * self.cost.at(step, pair)
    }
}

/// Weak duality: max over policies of V(r - l c) + l tau bounds the constrained optimum for every
/// l >= 0, and meets it at the known multiplier.
#[test]
fn the_known_multiplier_proves_the_known_constrained_optimum() {
    for instance in load_all() {
        let known = &instance.constrained;
        let (rewards, costs) = (instance.reward_signals(), instance.cost_signals());
        for (storage, kernel) in instance.kernels() {
            for (reward, cost) in rewards.iter().zip(&costs) {
                let multiplier = known.multiplier;
                let signal = Lagrangian {
                    reward,
                    cost,
                    multiplier,
                };
                let plan = backward_induction(instance.shape, &signal, &kernel).unwrap();
                let bound = instance.initial.expectation(plan.values().step(0))
                    + multiplier * instance.limit;
                let what = format!("{} {storage}", instance.name);
                assert_near(&[bound], &[known.value], &what);
            }
        }
    }
}
