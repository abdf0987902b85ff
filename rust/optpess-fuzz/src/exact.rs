//! Small problems solved in exact rational arithmetic: the yardstick of planning.

use num_rational::BigRational;
use num_traits::{One, Signed, Zero};
use optpess_core::model::{InitialDistribution, Kernel};
use optpess_core::shape::Shape;
use optpess_core::table::{Signal, StepSignal};

/// The float as a fraction; it must be finite.
pub fn fraction(value: f64) -> BigRational {
    BigRational::from_float(value).expect("a finite float")
}

/// The nearest float, or an infinity.
pub fn float(value: &BigRational) -> f64 {
    num_traits::ToPrimitive::to_f64(value).unwrap_or(f64::NAN)
}

/// A kernel and a start, with the numbers of the floats.
pub struct Exact<'a> {
    pub shape: Shape,
    pub kernel: &'a Kernel,
    pub initial: &'a InitialDistribution,
}

impl Exact<'_> {
    /// V_1 by backward induction, where `choose` takes the action and the value of a state from its actions' values.
    fn induction(
        &self,
        signal: impl Fn(usize, usize) -> BigRational,
        mut choose: impl FnMut(usize, usize, Vec<BigRational>) -> BigRational,
    ) -> BigRational {
        let shape = self.shape;
        let mut values = vec![BigRational::zero(); shape.num_states()];
        for step in (0..shape.horizon()).rev() {
            let is_last = step + 1 == shape.horizon();
            let of_pair = |pair: usize| {
                let mut value = signal(step, pair);
                if !is_last {
                    for (next, probability) in self.kernel.successors(step, pair) {
                        value += fraction(probability) * &values[next];
                    }
                }
                value
            };
            let states = 0..shape.num_states();
            values = states
                .map(|state| {
                    let actions = 0..shape.num_actions();
                    let each = actions.map(|action| of_pair(shape.pair(state, action)));
                    choose(step, state, each.collect())
                })
                .collect();
        }
        let weighted = self.initial.data().iter().zip(&values);
        weighted.map(|(&mu, value)| fraction(mu) * value).sum()
    }

    /// max over policies of V(g).
    pub fn largest(&self, signal: &Signal) -> BigRational {
        let exact = |step, pair| fraction(signal.at(step, pair));
        self.induction(exact, |_, _, values| largest(values))
    }

    /// max over policies of V(|g|): the size that rounding errors are measured against.
    pub fn size(&self, signal: &Signal) -> BigRational {
        let exact = |step, pair| fraction(signal.at(step, pair)).abs();
        self.induction(exact, |_, _, values| largest(values))
    }

    /// V(g) of a deterministic policy, of which `number` has the actions as digits.
    fn value_of(&self, signal: &Signal, number: usize) -> BigRational {
        let (shape, exact) = (self.shape, |step, pair| fraction(signal.at(step, pair)));
        self.induction(exact, |step, state, mut values| {
            let place = (step * shape.num_states() + state) as u32;
            let action = number / shape.num_actions().pow(place) % shape.num_actions();
            values.swap_remove(action)
        })
    }

    /// (V(c), V(r)) of every deterministic policy.
    pub fn points(&self, reward: &Signal, cost: &Signal) -> Vec<(BigRational, BigRational)> {
        let places = (self.shape.horizon() * self.shape.num_states()) as u32;
        let count = self.shape.num_actions().pow(places);
        let point = |number| (self.value_of(cost, number), self.value_of(reward, number));
        (0..count).map(point).collect()
    }
}

fn largest(values: Vec<BigRational>) -> BigRational {
    values.into_iter().max().expect("at least one action")
}

/// max V(r) over mixtures of these points with V(c) <= limit; None if there is none.
pub fn optimum(points: &[(BigRational, BigRational)], limit: &BigRational) -> Option<BigRational> {
    let (below, above): (Vec<_>, Vec<_>) = points.iter().partition(|(cost, _)| cost <= limit);
    let mut best = below.iter().map(|(_, reward)| reward.clone()).max()?;
    for (low_cost, low_reward) in &below {
        for (high_cost, high_reward) in &above {
            let weight = (limit - low_cost) / (high_cost - low_cost);
            let mixed = low_reward * (BigRational::one() - &weight) + high_reward * weight;
            best = best.max(mixed);
        }
    }
    Some(best)
}
