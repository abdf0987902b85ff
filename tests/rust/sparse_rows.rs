//! Sparse kernels that work on all rows of a step at once, against one row after the other, to the bit.

use optpess_core::evaluate::{occupancy, state_values};
use optpess_core::model::{InitialDistribution, Kernel, Slices, StepKernel};
use optpess_core::policy::MarkovPolicy;
use optpess_core::shape::Shape;
use optpess_core::table::Signal;
use proptest::prelude::*;

use crate::bits::numbers;
use crate::net::under_each_set;

/// A random sparse kernel as (successor, probability) lists, row after row.
#[derive(Debug, Clone)]
struct Lists {
    shape: Shape,
    rows: Vec<Vec<(usize, f64)>>, // [H, S, A]
    values: Vec<f64>,             // [S]
    masses: Vec<f64>,             // [S, A]
}

impl Lists {
    fn kernel(&self) -> Kernel {
        let [horizon, states, actions] = self.shape.sizes();
        let mut offsets = vec![0];
        for row in &self.rows {
            offsets.push(offsets[offsets.len() - 1] + row.len() as i64);
        }
        let entries = self.rows.iter().flatten();
        let (successors, probabilities): (Vec<i64>, Vec<f64>) =
            entries.map(|&(state, p)| (state as i64, p)).unzip();
        let slices = Slices::PerStep(horizon);
        Kernel::sparse(
            states,
            actions,
            slices,
            &offsets,
            &successors,
            probabilities,
        )
        .unwrap()
    }

    /// P_h(.|pair) v, from left to right.
    fn expectation(&self, step: usize, pair: usize, values: &[f64]) -> f64 {
        let mut sum = 0.0;
        for &(state, probability) in &self.rows[step * self.shape.pairs() + pair] {
            sum += probability * values[state];
        }
        sum
    }

    /// What flows into each state, pair after pair.
    fn propagate(&self, step: usize, masses: &[f64]) -> Vec<f64> {
        let mut next = vec![0.0; self.shape.num_states()];
        for (pair, mass) in masses.iter().enumerate() {
            for &(state, probability) in &self.rows[step * self.shape.pairs() + pair] {
                next[state] += mass * probability;
            }
        }
        next
    }
}

/// Kernels of every number of rows modulo the width of a strip. The lengths of the rows are nearly equal or
/// very unequal, so that some are interleaved and some are not.
fn lists() -> impl Strategy<Value = Lists> {
    let sizes = (1..4_usize, 1..20_usize, 1..4_usize, any::<bool>());
    sizes.prop_flat_map(|(horizon, states, actions, even)| {
        let shape = Shape::new(horizon, states, actions).unwrap();
        let longest = states.min(9);
        let shortest = if even { longest.div_ceil(2) } else { 0 };
        let row = (shortest..=longest).prop_flat_map(move |length| {
            let successors = proptest::sample::subsequence((0..states).collect::<Vec<_>>(), length);
            let weights = proptest::collection::vec(0.01..1.0_f64, length);
            (successors, weights).prop_map(|(successors, weights)| {
                let total: f64 = weights.iter().sum::<f64>() * 1.01;
                let share = weights.into_iter().map(move |weight| weight / total);
                successors.into_iter().zip(share).collect::<Vec<_>>()
            })
        });
        (
            proptest::collection::vec(row, shape.triples()),
            proptest::collection::vec(-10.0..10.0_f64, states),
            proptest::collection::vec(
                prop_oneof![1 => Just(0.0), 5 => 0.0..1.0_f64],
                shape.pairs(),
            ),
        )
            .prop_map(move |(rows, values, masses)| Lists {
                shape,
                rows,
                values,
                masses,
            })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// All rows of a step at once, interleaved or not, against one row after the other, to the bit.
    #[test]
    fn interleaved_rows_have_the_bits_of_each_row_alone(lists in lists()) {
        let (shape, kernel) = (lists.shape, lists.kernel());
        for step in 0..shape.horizon() {
            let mut found = vec![f64::NAN; shape.pairs()];
            kernel.all_expectations(step, &lists.values, &mut found);
            let alone = |pair| lists.expectation(step, pair, &lists.values);
            let expected: Vec<f64> = (0..shape.pairs()).map(alone).collect();
            prop_assert_eq!(numbers(&found), numbers(&expected));
            let alone = |pair| kernel.expectation(step, pair, &lists.values);
            let one_by_one: Vec<f64> = (0..shape.pairs()).map(alone).collect();
            prop_assert_eq!(numbers(&one_by_one), numbers(&expected));

            let mut found = vec![f64::NAN; shape.num_states()];
            kernel.spread_all(step, &lists.masses, &mut found);
            prop_assert_eq!(numbers(&found), numbers(&lists.propagate(step, &lists.masses)));
        }
    }

    /// The same inside the recursions that use them, on every instruction set.
    #[test]
    fn so_have_the_recursions_on_them(lists in lists()) {
        let (shape, kernel) = (lists.shape, lists.kernel());
        let [horizon, states, actions] = shape.sizes();
        let signal: Vec<f64> = (0..shape.triples()).map(|row| (row as f64).sin()).collect();
        let policy = MarkovPolicy::uniform(shape).unwrap();
        let start = vec![1.0 / states as f64; states];
        let mut values = vec![0.0; (horizon + 1) * states];
        for step in (0..horizon).rev() {
            let (here, next) = values[step * states..][..2 * states].split_at_mut(states);
            for (state, value) in here.iter_mut().enumerate() {
                for action in 0..actions {
                    let pair = state * actions + action;
                    let mut quality = signal[step * shape.pairs() + pair];
                    if step + 1 < horizon {
                        quality += lists.expectation(step, pair, next);
                    }
                    *value += quality * policy.row(step, state)[action];
                }
            }
        }
        let mut flow = vec![];
        let mut arriving = start.clone();
        for step in 0..horizon {
            let masses: Vec<f64> = (0..shape.pairs())
                .map(|pair| arriving[pair / actions] * policy.row(step, pair / actions)[pair % actions])
                .collect();
            arriving = lists.propagate(step, &masses);
            flow.extend(masses);
        }
        let signal = Signal::new("signal", shape, signal).unwrap();
        let initial = InitialDistribution::new(states, start).unwrap();
        let mut found = vec![];
        under_each_set(|_| {
            let values = state_values(&policy, &signal, &kernel).unwrap();
            let flow = occupancy(&policy, &kernel, &initial).unwrap();
            let steps = (0..=horizon).flat_map(|step| values.step(step).to_vec());
            found.push((numbers(&steps.collect::<Vec<_>>()), numbers(flow.data())));
        });
        for found in found {
            prop_assert_eq!(found, (numbers(&values), numbers(&flow)));
        }
    }
}
