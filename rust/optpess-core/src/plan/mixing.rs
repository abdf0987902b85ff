//! The Markov policy of a mixture of two deterministic ones, read off their occupancies.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::model::{InitialDistribution, StepKernel};
use crate::plan::problem::Vertex;
use crate::policy::MarkovPolicy;
use crate::shape::Shape;
use crate::table::zeros;
use crate::vectorised::with_small_constant;
use crate::vectorised::{Job, vectorised};

/// Workspace for mixing; nothing is allocated later.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PolicyMixer {
    arrivals: [[Vec<f64>; 2]; 2], // [policy][this step, next step][S]
    shares: [Vec<f64>; 2],        // [policy][S], of those who arrive
}

impl PolicyMixer {
    /// A workspace for policies of this shape.
    pub fn new(shape: Shape) -> Result<Self> {
        let states = || zeros("arrivals [S]", shape.num_states());
        Ok(Self {
            arrivals: [[states()?, states()?], [states()?, states()?]],
            shares: [states()?, states()?],
        })
    }

    /// Writes into `mixed` the policy with the occupancy (1 - w) q^below + w q^above; `completion`
    /// decides wherever neither has mass.
    #[expect(
        clippy::too_many_arguments,
        reason = "two ends, a weight, a kernel, a start, a rule, a target"
    )]
    pub fn mix<K: StepKernel>(
        &mut self,
        below: &Vertex,
        above: &Vertex,
        weight_above: f64,
        kernel: &K,
        initial: &InitialDistribution,
        completion: &MarkovPolicy,
        mixed: &mut MarkovPolicy,
    ) {
        let ends = [(&below.actions[..], kernel), (&above.actions[..], kernel)];
        self.mix_each(ends, weight_above, initial, completion, mixed);
    }

    /// [`PolicyMixer::mix`] for ends that each have a kernel of their own: the policy with the occupancy
    /// (1 - w) q^below + w q^above, each on its own kernel.
    pub fn mix_each<K: StepKernel>(
        &mut self,
        ends: [(&[u32], &K); 2],
        weight_above: f64,
        initial: &InitialDistribution,
        completion: &MarkovPolicy,
        mixed: &mut MarkovPolicy,
    ) {
        for arrivals in &mut self.arrivals {
            arrivals[0].copy_from_slice(initial.data());
        }
        let states = mixed.shape().num_states();
        with_small_constant!(if K::ASKED_OFTEN, states, S => vectorised(Mix::<K, S> {
            mixer: self,
            ends,
            weights: [1.0 - weight_above, weight_above],
            completion,
            mixed,
        }));
    }
}

/// `S` is the number of states, or 0 where it is not known beforehand.
struct Mix<'a, K, const S: usize> {
    mixer: &'a mut PolicyMixer,
    ends: [(&'a [u32], &'a K); 2],
    weights: [f64; 2],
    completion: &'a MarkovPolicy,
    mixed: &'a mut MarkovPolicy,
}

impl<K: StepKernel, const S: usize> Job for Mix<'_, K, S> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let shape = self.mixed.shape();
        let states = if S > 0 { S } else { shape.num_states() };
        let PolicyMixer { arrivals, shares } = self.mixer;
        for step in 0..shape.horizon() {
            let ends = self.ends.map(|(end, _)| &end[step * states..][..states]);
            let [first, second] = &mut *shares;
            let (first, second) = (&mut first[..states], &mut second[..states]);
            let here = [0, 1].map(|end: usize| &arrivals[end][0][..states]);
            share(self.weights, here, [&mut *first, &mut *second]);
            for state in 0..states {
                let row = self.mixed.row_mut(step, state);
                if first[state].is_nan() {
                    row.copy_from_slice(self.completion.row(step, state));
                } else {
                    // In one pass: clearing a short row first is a call, which is longer than this.
                    for (action, probability) in (0..).zip(row) {
                        let [one, other] = ends.map(|end| end[state] == action);
                        *probability = if one { first[state] } else { 0.0 };
                        *probability += if other { second[state] } else { 0.0 };
                    }
                }
            }
            if step + 1 == shape.horizon() {
                break;
            }
            for (which, (_, kernel)) in self.ends.into_iter().enumerate() {
                let [here, next] = &mut arrivals[which];
                // A policy without weight may arrive anywhere; an empty state sends nobody on.
                let (here, weight) = (&here[..states], self.weights[which]);
                let masses = here.iter().zip(ends[which]).enumerate();
                // Few sums stay in registers; others are made where they belong.
                let mut few = [0.0; S];
                let sums = if S > 0 {
                    &mut few[..]
                } else {
                    &mut next[..states]
                };
                sums.fill(0.0);
                for (state, (&mass, &action)) in masses {
                    if mass > 0.0 && weight > 0.0 {
                        let pair = shape.pair(state, action as usize);
                        kernel.propagate(step, pair, mass, sums);
                    }
                }
                if S > 0 {
                    next[..states].copy_from_slice(&few);
                }
                arrivals[which].swap(0, 1);
            }
        }
    }
}

/// What part of those who arrive at each state comes from each of two policies; not a number where nobody arrives.
#[inline(always)]
fn share(weights: [f64; 2], arrivals: [&[f64]; 2], shares: [&mut [f64]; 2]) {
    let [first, second] = shares;
    let arrived = arrivals[0].iter().zip(arrivals[1]);
    for ((first, second), (one, other)) in first.iter_mut().zip(second).zip(arrived) {
        let masses = [weights[0] * one, weights[1] * other];
        let total = masses[0] + masses[1];
        (*first, *second) = (masses[0] / total, masses[1] / total);
    }
}
