//! Biased signals: an estimate plus a multiple of the bonus. Each is a type of its own, so that a pessimistic signal
//! cannot be passed for an optimistic one. They are made here and nowhere else.

use serde::{Deserialize, Serialize};

use crate::confidence::constants::reward_bonus_factor;
use crate::confidence::{RowBonuses, SafetyMargin};
use crate::error::{Error, Result};
use crate::estimate::RowEstimate;
use crate::number::Number;
use crate::shape::Shape;
use crate::table::{Signal, StepSignal, zeros};

/// An estimate made optimistic or pessimistic.
///
/// Formula: estimate + factor b. Citation: \[Liu21\], Eq. (6), (8), (11). Deviation: none.
#[inline(always)]
pub(crate) fn biased<V: Number>(estimate: V, factor: f64, bonus: V) -> V {
    estimate.zip(bonus, |estimate, bonus| estimate + factor * bonus)
}

/// estimate + factor * bonus for every (step, pair). The stored form has no values: they follow from the counts of the
/// learner that owns the signal, and the next plan refreshes them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(into = "StoredSignal", try_from = "StoredSignal")]
struct BiasedSignal {
    signal: Signal,
    factor: f64,
    first_bonus: f64,
}

/// The stored form of a [`BiasedSignal`].
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct StoredSignal {
    shape: Shape,
    factor: f64,
    first_bonus: f64,
}

impl From<BiasedSignal> for StoredSignal {
    fn from(biased: BiasedSignal) -> Self {
        Self {
            shape: biased.signal.shape(),
            factor: biased.factor,
            first_bonus: biased.first_bonus,
        }
    }
}

impl TryFrom<StoredSignal> for BiasedSignal {
    type Error = Error;

    fn try_from(stored: StoredSignal) -> Result<Self> {
        Self::new(stored.shape, stored.factor, stored.first_bonus)
    }
}

impl BiasedSignal {
    /// Nothing observed: every estimate is 0 and every bonus `first_bonus`.
    fn new(shape: Shape, factor: f64, first_bonus: f64) -> Result<Self> {
        let mut data: Vec<f64> = zeros("a signal [H, S, A]", shape.triples())?;
        data.fill(factor * first_bonus);
        Ok(Self {
            signal: Signal::new("signal", shape, data)?,
            factor,
            first_bonus,
        })
    }

    #[inline(always)]
    fn set(&mut self, step: usize, pair: usize, estimate: f64, bonus: f64) -> f64 {
        let biased = biased(estimate, self.factor, bonus);
        self.signal.set(step, pair, biased);
        biased
    }
}

macro_rules! biased_signal {
    ($(#[$doc:meta])* $name:ident, $estimate:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        pub struct $name(BiasedSignal);

        impl $name {
            /// Sets the value of a row from its estimate and its bonus, and returns it.
            #[inline(always)]
            pub fn update(&mut self, row: &RowEstimate<'_>, bonus: f64) -> f64 {
                self.0.set(row.step, row.pair, row.$estimate, bonus)
            }

            /// Sets the value of a pair from its estimate and its bonus, and returns it.
            #[inline(always)]
            pub fn set(&mut self, step: usize, pair: usize, estimate: f64, bonus: f64) -> f64 {
                self.0.set(step, pair, estimate, bonus)
            }

            /// The biased values, `[H, S, A]`.
            #[must_use]
            pub fn signal(&self) -> &Signal {
                &self.0.signal
            }
        }

        impl StepSignal for $name {
            #[inline(always)]
            fn at(&self, step: usize, pair: usize) -> f64 {
                self.0.signal.at(step, pair)
            }

            #[inline(always)]
            fn stored(&self, step: usize) -> Option<&[f64]> {
                self.0.signal.stored(step)
            }

            #[inline(always)]
            fn add_to(&self, step: usize, out: &mut [f64]) {
                self.0.signal.add_to(step, out);
            }
        }
    };
}

biased_signal!(
    /// c underbar = c-hat + b. \[Liu21\], Eq. (8).
    PessimisticCost,
    cost
);
biased_signal!(
    /// c tilde = c-hat - b. \[Liu21\], Eq. (11).
    OptimisticCost,
    cost
);
biased_signal!(
    /// r bar = r-hat + (1 + 4H/(tau - c0)) b (Algorithm 1, Eq. (6)) or r tilde = r-hat + b
    /// (Algorithm 2, Eq. (11)).
    OptimisticReward,
    reward
);

impl PessimisticCost {
    /// Nothing observed: every estimate is 0 and every bonus `first_bonus`.
    pub fn new(shape: Shape, first_bonus: f64) -> Result<Self> {
        BiasedSignal::new(shape, 1.0, first_bonus).map(Self)
    }
}

impl OptimisticCost {
    /// The multiple of the bonus in c tilde.
    pub(crate) const FACTOR: f64 = -1.0;

    /// Nothing observed: every estimate is 0 and every bonus `first_bonus`.
    pub fn new(shape: Shape, first_bonus: f64) -> Result<Self> {
        BiasedSignal::new(shape, Self::FACTOR, first_bonus).map(Self)
    }
}

impl OptimisticReward {
    /// The multiple of the bonus in r tilde.
    pub(crate) const FACTOR: f64 = 1.0;

    /// r bar of Algorithm 1, with nothing observed.
    pub fn for_zero_violation(
        shape: Shape,
        margin: &SafetyMargin,
        first_bonus: f64,
    ) -> Result<Self> {
        BiasedSignal::new(shape, reward_bonus_factor(shape, margin), first_bonus).map(Self)
    }

    /// Sets r bar of a row from its estimate and the bonuses of Sharp, and returns it.
    ///
    /// Formula: r-hat + b^r + (4H/(tau - c0)) e. Derivation: docs/guarantees.md, "Sharp". Deviation: none; with b^r =
    /// e = b it is Eq. (6) of \[Liu21\].
    pub fn update_sharply(&mut self, row: &RowEstimate<'_>, bonuses: &RowBonuses) -> f64 {
        let value = row.reward + (bonuses.reward + (self.0.factor - 1.0) * bonuses.error);
        self.0.signal.set(row.step, row.pair, value);
        value
    }

    /// r tilde of Algorithm 2, with nothing observed.
    pub fn for_bounded_violation(shape: Shape, first_bonus: f64) -> Result<Self> {
        BiasedSignal::new(shape, Self::FACTOR, first_bonus).map(Self)
    }
}
