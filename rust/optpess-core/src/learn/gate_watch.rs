//! How long the gate of Algorithm 1 surely stays as it is, without looking.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::estimate::Estimates;
use crate::shape::Shape;
use crate::table::{StateValues, StepSignal, zeros};
use crate::trajectory::Trajectory;

/// Relative allowance for rounding in two evaluations, far above what they can lose.
const ROUNDING: f64 = 1e-9;

/// Bounds how far V^{pi0}(c underbar, P-hat) can have moved since it was last computed. While it cannot have
/// crossed (tau + c0)/2 the gate is as it was, whatever the value is, and the value is not computed.
///
/// Formula: by the value-difference lemma an episode that adds one visit to the rows x_h, h < H, moves the
/// value of every (step, state) by at most sum_h |change of c underbar(x_h)| + |change of P-hat(x_h) V_{h+1}|,
/// V being the values before it. With N >= 1 earlier visits c-hat moves by at most 2 C/(N+1), where C bounds
/// the costs ever observed, the bonus by at most b/(2N) with b <= c underbar + C, and P-hat V by at most
/// (max V - min V)/(N+1), over states seen before: P-hat leads to no others.
/// Citation: \[Liu21\], Lemma D.2. Deviation: none; the decisions are those of Algorithm 1.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct GateWatch {
    /// How far the value may still move; not positive if the next plan must look.
    slack: f64,
    /// Whether the gate was open at the last look.
    open: bool,
    /// What any value may have moved since the last look.
    moved: f64,
    /// max V_h over the states seen, at the last look.
    highest: Vec<f64>, // [H + 1]
    /// The largest size of a cost ever observed.
    largest_cost: f64,
}

impl GateWatch {
    pub(crate) fn new(shape: Shape) -> Result<Self> {
        Ok(Self {
            slack: 0.0,
            open: false,
            moved: 0.0,
            highest: zeros("highest values [H + 1]", shape.horizon() + 1)?,
            largest_cost: 0.0,
        })
    }

    /// Whether the gate is surely shut.
    #[inline(always)]
    pub(crate) fn is_shut(&self) -> bool {
        self.is_sure() && !self.open
    }

    /// Whether the gate is surely open.
    #[inline(always)]
    pub(crate) fn is_open(&self) -> bool {
        self.is_sure() && self.open
    }

    #[inline(always)]
    fn is_sure(&self) -> bool {
        self.slack > 0.0
    }

    /// Someone must look before the next plan.
    #[inline(always)]
    fn doubt(&mut self) {
        self.slack = 0.0;
    }

    /// The gate was looked at: pi0 has these values, and from the start `value`, which the gate holds
    /// against `midpoint`.
    pub(crate) fn looked(
        &mut self,
        value: f64,
        midpoint: f64,
        values: &StateValues,
        estimates: &Estimates,
    ) {
        let shape = estimates.shape();
        self.moved = 0.0;
        self.open = value < midpoint;
        self.slack = (value - midpoint).abs() - ROUNDING * (1.0 + value.abs());
        if !self.is_sure() {
            return; // also for a value that is not a number
        }
        let rows = estimates.visits().chunks_exact(shape.num_actions());
        self.highest.fill(0.0);
        for (place, visits) in rows.enumerate() {
            if visits.iter().any(|&count| count > 0) {
                let (step, state) = (place / shape.num_states(), place % shape.num_states());
                let value = values.step(step)[state];
                if value < 0.0 {
                    return self.doubt(); // the bound is for values in [0, max V]
                }
                self.highest[step] = self.highest[step].max(value);
            }
        }
    }

    /// An episode has been counted, and `cost` is c underbar as it was at the last look.
    #[inline(always)]
    pub(crate) fn seen<G: StepSignal>(
        &mut self,
        seen: &Trajectory,
        estimates: &Estimates,
        cost: &G,
    ) {
        let shape = estimates.shape();
        for observed in &seen.costs[..shape.horizon()] {
            self.largest_cost = self.largest_cost.max(observed.abs());
        }
        if !self.is_sure() {
            return;
        }
        let fixed = 3.0 * self.largest_cost + 2.0 * self.moved;
        let mut change = 0.0;
        for step in 0..shape.horizon() {
            let pair = shape.pair(seen.states[step] as usize, seen.actions[step] as usize);
            let visits_before = estimates.visits()[step * shape.pairs() + pair] - 1;
            if visits_before == 0 {
                return self.doubt(); // a state or an action that was not among those looked at
            }
            let range = fixed + cost.at(step, pair) + self.highest[step + 1];
            change += range / f64::from(visits_before);
        }
        self.moved += change;
        self.slack -= change;
    }
}
