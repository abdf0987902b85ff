//! Biased signals. Each is a type of its own, so that a pessimistic number cannot stand where an
//! optimistic one belongs; they are made here and nowhere else.

use serde::{Deserialize, Serialize};

use crate::confidence::SafetyMargin;
use crate::confidence::constants::reward_bonus_factor;
use crate::error::Result;
use crate::shape::Shape;
use crate::table::{Signal, StepSignal, zeros};

macro_rules! biased {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        pub struct $name {
            signal: Signal,
            /// The signal is estimate + factor * bonus.
            factor: f64,
        }

        impl $name {
            fn with_factor(shape: Shape, factor: f64, first_bonus: f64) -> Result<Self> {
                let mut data: Vec<f64> = zeros("a signal [H, S, A]", shape.triples())?;
                data.fill(factor * first_bonus);
                Ok(Self { signal: Signal::new("signal", shape, data)?, factor })
            }

            /// Sets the value of a pair from its estimate and its bonus, and returns it.
            #[inline(always)]
            pub fn update(&mut self, step: usize, pair: usize, estimate: f64, bonus: f64) -> f64 {
                let biased = estimate + self.factor * bonus;
                self.signal.set(step, pair, biased);
                biased
            }

            /// The biased values, `[H, S, A]`.
            #[must_use]
            pub fn signal(&self) -> &Signal {
                &self.signal
            }
        }

        impl StepSignal for $name {
            #[inline(always)]
            fn at(&self, step: usize, pair: usize) -> f64 {
                self.signal.at(step, pair)
            }

            #[inline(always)]
            fn stored(&self, step: usize) -> Option<&[f64]> {
                self.signal.stored(step)
            }

            #[inline(always)]
            fn add_to(&self, step: usize, out: &mut [f64]) {
                self.signal.add_to(step, out);
            }
        }
    };
}

biased!(
    /// c underbar = c-hat + b. \[Liu21\], Eq. (8).
    PessimisticCost
);
biased!(
    /// c tilde = c-hat - b. \[Liu21\], Eq. (11).
    OptimisticCost
);
biased!(
    /// r bar = r-hat + (1 + 4H/(tau - c0)) b (Algorithm 1, Eq. (6)) or r tilde = r-hat + b
    /// (Algorithm 2, Eq. (11)).
    OptimisticReward
);

impl PessimisticCost {
    /// Nothing observed: every estimate is 0 and every bonus `first_bonus`.
    pub fn new(shape: Shape, first_bonus: f64) -> Result<Self> {
        Self::with_factor(shape, 1.0, first_bonus)
    }
}

impl OptimisticCost {
    /// Nothing observed: every estimate is 0 and every bonus `first_bonus`.
    pub fn new(shape: Shape, first_bonus: f64) -> Result<Self> {
        Self::with_factor(shape, -1.0, first_bonus)
    }
}

impl OptimisticReward {
    /// r bar of Algorithm 1, with nothing observed.
    pub fn for_zero_violation(
        shape: Shape,
        margin: &SafetyMargin,
        first_bonus: f64,
    ) -> Result<Self> {
        Self::with_factor(shape, reward_bonus_factor(shape, margin), first_bonus)
    }

    /// r tilde of Algorithm 2, with nothing observed.
    pub fn for_bounded_violation(shape: Shape, first_bonus: f64) -> Result<Self> {
        Self::with_factor(shape, 1.0, first_bonus)
    }
}
