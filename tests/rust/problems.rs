//! Random problems for the property tests, and small helpers on kernels.

use optpess_core::model::{InitialDistribution, Kernel, Slices};
use optpess_core::policy::MarkovPolicy;
use optpess_core::shape::Shape;
use optpess_core::table::Signal;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::cases::sparse_kernel;

/// The largest sizes that are tried.
const MAX_HORIZON: usize = 8;
const MAX_STATES: usize = 8;
const MAX_ACTIONS: usize = 4;

/// What a random problem is made of: two kernels and two signals, some policies, a start.
#[derive(Debug, Clone)]
pub struct Problem {
    pub shape: Shape,
    pub initial: InitialDistribution,
    pub kernels: [Vec<f64>; 2], // each [H, S, A, S]
    pub signals: [Signal; 2],
    pub policies: Vec<MarkovPolicy>,
    pub weights: Vec<f64>, // [policies], a distribution
}

impl Problem {
    /// The first or second kernel, dense and stored for each step.
    pub fn dense(&self, which: usize) -> Kernel {
        let [horizon, states, actions] = self.shape.sizes();
        let data = self.kernels[which].clone();
        Kernel::dense(states, actions, Slices::PerStep(horizon), data).unwrap()
    }

    /// The first or second kernel, sparse and stored for each step.
    pub fn sparse(&self, which: usize) -> Kernel {
        let [horizon, states, actions] = self.shape.sizes();
        let slices = Slices::PerStep(horizon);
        sparse_kernel(states, actions, slices, &self.kernels[which])
    }

    /// The first or second kernel, stored as the problem's draw says.
    pub fn kernel(&self, which: usize, sparse: bool) -> Kernel {
        if sparse {
            self.sparse(which)
        } else {
            self.dense(which)
        }
    }
}

/// A shape of up to S, A, H = 8, 4, 8.
pub fn shapes() -> impl Strategy<Value = Shape> {
    (1..=MAX_HORIZON, 1..=MAX_STATES, 1..=MAX_ACTIONS)
        .prop_map(|(horizon, states, actions)| Shape::new(horizon, states, actions).unwrap())
}

/// A problem whose rows are distributions (half of the time) or lose mass, some all of it.
pub fn problems() -> impl Strategy<Value = Problem> {
    (shapes(), any::<bool>()).prop_flat_map(|(shape, stochastic)| problem_of(shape, stochastic))
}

/// A problem of one of these shapes whose rows are distributions.
pub fn stochastic_problems(shapes: impl Strategy<Value = Shape>) -> impl Strategy<Value = Problem> {
    shapes.prop_flat_map(|shape| problem_of(shape, true))
}

fn problem_of(shape: Shape, stochastic: bool) -> impl Strategy<Value = Problem> {
    let states = shape.num_states();
    (1..=4_usize).prop_flat_map(move |count| {
        (
            kernel_rows(shape.triples(), states, stochastic),
            kernel_rows(shape.triples(), states, stochastic),
            [signals(shape), signals(shape)],
            vec(policies(shape), count),
            distribution(states),
            distribution(count),
        )
            .prop_map(
                move |(first, second, signals, policies, initial, weights)| Problem {
                    shape,
                    initial: InitialDistribution::new(states, initial).unwrap(),
                    kernels: [first, second],
                    signals,
                    policies,
                    weights,
                },
            )
    })
}

/// Signals are not rewards: they may be negative and large.
fn signals(shape: Shape) -> impl Strategy<Value = Signal> {
    vec(-20.0..20.0_f64, shape.triples())
        .prop_map(move |data| Signal::new("signal", shape, data).unwrap())
}

/// A policy; about a third of its entries are zero, so that some states are never reached.
fn policies(shape: Shape) -> impl Strategy<Value = MarkovPolicy> {
    let rows = shape.horizon() * shape.num_states();
    vec(distribution(shape.num_actions()), rows)
        .prop_map(move |rows| MarkovPolicy::new("policy", shape, rows.concat()).unwrap())
}

/// `[rows, states]`. If not `stochastic`, a row keeps nothing (one in five), or a part of its mass.
pub fn kernel_rows(
    rows: usize,
    states: usize,
    stochastic: bool,
) -> impl Strategy<Value = Vec<f64>> {
    let kept = if stochastic {
        Just(1.0).boxed()
    } else {
        prop_oneof![1 => Just(0.0), 2 => Just(1.0), 2 => 0.0..1.0_f64].boxed()
    };
    vec((distribution(states), kept), rows).prop_map(|rows| {
        rows.into_iter()
            .flat_map(|(row, kept)| row.into_iter().map(move |entry| entry * kept))
            .collect()
    })
}

/// A distribution over `len` outcomes; about a third of them are impossible.
pub fn distribution(len: usize) -> impl Strategy<Value = Vec<f64>> {
    vec(prop_oneof![1 => Just(0.0), 2 => 0.01..1.0_f64], len).prop_map(|mut weights| {
        let total: f64 = weights.iter().sum();
        if total > 0.0 {
            weights.iter_mut().for_each(|weight| *weight /= total);
        } else {
            weights[0] = 1.0;
        }
        weights
    })
}
