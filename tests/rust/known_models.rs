//! All bits of plans and values of known models. Shared with the bench `fingerprint`.

use optpess_core::confidence::KernelBox;
use optpess_core::evaluate::{evaluate, mix_policies, occupancy, state_values};
use optpess_core::model::Kernel;
use optpess_core::plan::{
    Extended, PlanningProblem, backward_induction, frontier, solve_exactly, solve_extended,
};
use optpess_core::policy::MarkovPolicy;

use crate::bits::{Bits, indices, numbers};
use crate::cases::{Problem, sparse_kernel};

/// By the name of what was computed, with rows in full and as lists.
pub fn planning_bits(problem: &Problem) -> Vec<(String, Bits)> {
    let model = &problem.model;
    let (shape, initial, limit) = (model.shape(), model.initial(), model.limits()[0]);
    let (reward, cost) = (model.reward(), &model.costs()[0]);
    let in_full = model.kernel().kernel();
    let rows = in_full.to_dense().unwrap();
    let (states, actions) = (shape.num_states(), shape.num_actions());
    let lists = sparse_kernel(states, actions, in_full.slices(), &rows);
    let mut found = Vec::new();
    for (storage, kernel) in [("dense", &**in_full), ("sparse", &lists)] {
        let one_limit = PlanningProblem {
            shape,
            reward,
            cost,
            kernel,
            initial,
        };
        let plan = solve_exactly(&one_limit, limit).unwrap();
        let scalars = [
            plan.value,
            plan.multiplier,
            plan.bound,
            plan.certificate.cost,
        ];
        let parts = vec![
            ("plan", numbers(&scalars)),
            ("policy", numbers(plan.policy.policy().unwrap().data())),
        ];
        found.push((format!("solve {storage}"), parts));
        let vertices = frontier(&one_limit, 1000).unwrap();
        let ends = vertices.iter().flat_map(|&(cost, reward)| [cost, reward]);
        let ends = numbers(&ends.collect::<Vec<_>>());
        found.push((format!("frontier {storage}"), vec![("vertices", ends)]));
        found.push((format!("evaluate {storage}"), value_bits(problem, kernel)));
    }
    let kernels = KernelBox::around(shape, &rows, &vec![0.05; rows.len()]).unwrap();
    let extended = Extended {
        reward,
        cost,
        kernels: &kernels,
        initial,
    };
    let plan = solve_extended(&extended, limit).unwrap();
    let scalars = [plan.value, plan.cost, plan.multiplier, plan.bound];
    let parts = vec![
        ("plan", numbers(&scalars)),
        ("policy", numbers(plan.policy.data())),
        ("flow", numbers(&plan.flow)),
        ("occupancy", numbers(plan.occupancy.data())),
    ];
    found.push(("extended".to_owned(), parts));
    found
}

/// Values, occupancies, mixtures and the best policy for one signal.
fn value_bits(problem: &Problem, kernel: &Kernel) -> Bits {
    let model = &problem.model;
    let (shape, initial, reward) = (model.shape(), model.initial(), model.reward());
    let policies = [MarkovPolicy::uniform(shape).unwrap(), problem.safe.clone()];
    let mixed = mix_policies(&policies, &[0.3, 0.7], kernel, initial).unwrap();
    let mut parts = vec![("mixed", numbers(mixed.data()))];
    for policy in [&policies[0], &policies[1], &mixed] {
        let value = evaluate(policy, reward, kernel, initial).unwrap();
        let values = state_values(policy, reward, kernel).unwrap();
        let flow = occupancy(policy, kernel, initial).unwrap();
        parts.push(("value", numbers(&[value])));
        for step in 0..shape.horizon() {
            parts.push(("values", numbers(values.step(step))));
        }
        parts.push(("occupancy", numbers(flow.data())));
    }
    let best = backward_induction(shape, reward, kernel).unwrap();
    parts.push(("actions", indices(best.actions())));
    for step in 0..shape.horizon() {
        parts.push(("best values", numbers(best.values().step(step))));
    }
    parts
}
