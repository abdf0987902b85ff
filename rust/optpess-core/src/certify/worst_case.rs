//! Bounds on the value of a policy over all problems that are plausible: the worst case, the best case, and the kernel
//! that attains it.
//!
//! Formula: U_H = 0; Q_h(s,a) = c_up_h(s,a) + max over p in C_h(s,a) of <p, U_{h+1}>; U_h(s) = sum_a pi_h(a|s) Q_h(s,a). The
//! rows are chosen independently of each other, so this recursion is the exact worst case over the box (Iyengar 2005;
//! Nilim and El Ghaoui 2005). With a box and a ball at every row the smaller of the two maxima is taken, which is at
//! least the maximum over their intersection. Downwards (c_low, min) it is a lower bound.

use std::cell::RefCell;

use crate::confidence::{ConfidenceSets, PlausibleRow};
use crate::error::Result;
use crate::estimate::Tally;
use crate::evaluate::{Backup, Choice, Follow, Sweep, Take, Wanted};
use crate::model::InitialDistribution;
use crate::policy::{MarkovPolicy, Played};
use crate::shape::Shape;
use crate::table::{StateValues, StepSignal, zeros};

/// What is added to an upper bound, relative to the horizon, and taken off a lower one: more than the rounding of the
/// recursion.
const ROUNDING: f64 = 1e-13;

/// The end of a mean cost of every row, upper or lower.
#[derive(Debug)]
struct CostEnd<'a> {
    sets: &'a ConfidenceSets,
    tally: &'a Tally,
    constraint: usize,
    upper: bool,
}

impl StepSignal for CostEnd<'_> {
    #[inline(always)]
    fn at(&self, step: usize, pair: usize) -> f64 {
        let row = self.tally.row(step, pair);
        let (lower, upper) = self.sets.cost(row, self.constraint);
        if self.upper { upper } else { lower }
    }
}

/// The extreme expectation over the plausible rows: the largest (`UP`) or the least. Sorts the states once a step.
#[derive(Debug)]
struct ExtremeRows<'a, const UP: bool> {
    sets: &'a ConfidenceSets,
    tally: &'a Tally,
    order: Vec<u32>,                  // states, the extreme one first
    rank: Vec<u32>,                   // of every state in that order
    running: Vec<f64>, // running[i] = sum of the values of the first i states of the order
    ranked: RefCell<Vec<(u32, f64)>>, // workspace: (rank, room) of a row's entries
}

impl<'a, const UP: bool> ExtremeRows<'a, UP> {
    fn new(sets: &'a ConfidenceSets, tally: &'a Tally) -> Self {
        let states = tally.shape().num_states();
        Self {
            sets,
            tally,
            order: (0..states as u32).collect(),
            rank: vec![0; states],
            running: vec![0.0; states + 1],
            ranked: RefCell::new(Vec::new()),
        }
    }

    /// The extreme expectation over the box: every successor has its lower end, and the rest fills the first states of
    /// the order up to their upper ends. Successors that were never seen share one upper end, so a run of them between
    /// two entries is filled at once.
    #[inline(always)]
    fn over_box(&self, row: &PlausibleRow, values: &[f64], give: &mut impl FnMut(u32, f64)) -> f64 {
        let mut ranked = self.ranked.borrow_mut();
        ranked.clear();
        let (mut rest, mut sum) = (1.0, 0.0);
        for entry in &row.entries {
            rest -= entry.lower;
            sum += entry.lower * values[entry.state as usize];
            ranked.push((self.rank[entry.state as usize], entry.upper - entry.lower));
        }
        ranked.sort_unstable_by_key(|&(rank, _)| rank);
        let mut from = 0;
        let end = [(values.len() as u32, 0.0)];
        for &(rank, room) in ranked.iter().chain(&end) {
            if rest <= 0.0 {
                break;
            }
            let gap = rank as usize - from;
            if row.unseen > 0.0 && gap > 0 {
                let whole = ((rest / row.unseen) as usize).min(gap);
                sum += row.unseen * (self.running[from + whole] - self.running[from]);
                rest -= row.unseen * whole as f64;
                for &state in &self.order[from..from + whole] {
                    give(state, row.unseen);
                }
                if whole < gap && rest > 0.0 {
                    let state = self.order[from + whole];
                    sum += rest * values[state as usize];
                    give(state, rest);
                    break;
                }
            }
            if (rank as usize) < values.len() && rest > 0.0 {
                let (state, given) = (self.order[rank as usize], room.min(rest));
                sum += given * values[state as usize];
                give(state, given);
                rest -= given;
            }
            from = rank as usize + 1;
        }
        sum
    }

    /// The value of the first state of the order that may follow the row.
    #[inline(always)]
    fn extreme_value(&self, row: &PlausibleRow, values: &[f64]) -> f64 {
        if row.unseen > 0.0 {
            return values[self.order[0] as usize];
        }
        let possible = row.entries.iter().map(|entry| values[entry.state as usize]);
        if UP {
            possible.fold(f64::NEG_INFINITY, f64::max)
        } else {
            possible.fold(f64::INFINITY, f64::min)
        }
    }
}

impl<const UP: bool> Backup<1> for ExtremeRows<'_, UP> {
    fn begin_step(&mut self, _: usize, [next]: [&[f64]; 1]) {
        self.order.sort_unstable_by(|&a, &b| {
            let (first, second) = (next[a as usize], next[b as usize]);
            let by_value = if UP {
                second.total_cmp(&first)
            } else {
                first.total_cmp(&second)
            };
            by_value.then(a.cmp(&b))
        });
        for (rank, &state) in (0..).zip(&self.order) {
            self.rank[state as usize] = rank;
            self.running[rank as usize + 1] = self.running[rank as usize] + next[state as usize];
        }
    }

    #[inline(always)]
    fn pair(&self, step: usize, pair: usize, [next]: [&[f64]; 1]) -> [f64; 1] {
        let row = self.sets.row(self.tally.row(step, pair));
        let within_box = self.over_box(row, next, &mut |_, _| {});
        if !row.ball.radius().is_finite() {
            return [within_box];
        }
        let extreme = self.extreme_value(row, next);
        [if UP {
            within_box.min(row.ball.most(row.seen(next), extreme))
        } else {
            within_box.max(row.ball.least(row.seen(next), extreme))
        }]
    }

    #[inline(always)]
    fn all(&self, step: usize, next: [&[f64]; 1], [out]: &mut [&mut [f64]; 1]) {
        for (pair, target) in out.iter_mut().enumerate() {
            [*target] = self.pair(step, pair, next);
        }
    }
}

/// Keeps the action values of every pair, taken or not, and weighs them by a policy.
struct KeepAll<'a> {
    policy: &'a MarkovPolicy,
    kept: &'a mut [f64], // [H, S, A]
}

impl Choice<1> for KeepAll<'_> {
    fn wanted(&self, _: usize) -> Wanted<'_> {
        Wanted::All
    }

    fn choose(&mut self, step: usize, state: usize, [q]: [&[f64]; 1]) -> [f64; 1] {
        let shape = self.policy.shape();
        let first = step * shape.pairs() + shape.pair(state, 0);
        self.kept[first..][..q.len()].copy_from_slice(q);
        let weights = self.policy.row(step, state);
        [q.iter().zip(weights).fold(0.0, |sum, (q, p)| sum + q * p)]
    }

    fn each_taken(&self, step: usize, state: usize, visit: impl FnMut(usize)) {
        Choice::<1>::each_taken(&Follow::new(self.policy), step, state, visit);
    }
}

/// What is certified of a policy's cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PolicyBounds {
    /// The worst case over the confidence sets.
    pub upper: f64,
    /// The best case over the confidence sets.
    pub lower: f64,
    /// The bound from the policy's own episodes, with their number, if it was on trial.
    pub own: Option<(f64, u64)>,
}

/// Evaluates policies over the confidence sets, with its workspace.
#[derive(Debug, Clone)]
pub struct WorstCase {
    shape: Shape,
    values: StateValues,
    action_values: Vec<f64>, // [S, A]
}

impl WorstCase {
    /// A workspace for policies of this shape.
    pub fn new(shape: Shape) -> Result<Self> {
        Ok(Self {
            shape,
            values: StateValues::zeros(shape)?,
            action_values: zeros("action values [S, A]", shape.pairs())?,
        })
    }

    /// An upper bound on V(pi; c_m, P) that holds whenever the sets contain the truth; at most H.
    pub fn upper(
        &mut self,
        played: Played<'_>,
        (sets, tally): (&ConfidenceSets, &Tally),
        constraint: usize,
        initial: &InitialDistribution,
    ) -> f64 {
        self.follow::<true>(played, (sets, tally), constraint);
        let most = self.shape.horizon() as f64;
        (initial.expectation(self.values.step(0)) + ROUNDING * most).min(most)
    }

    /// A lower bound on V(pi; c_m, P) that holds whenever the sets contain the truth; at least 0.
    pub fn lower(
        &mut self,
        played: Played<'_>,
        (sets, tally): (&ConfidenceSets, &Tally),
        constraint: usize,
        initial: &InitialDistribution,
    ) -> f64 {
        self.follow::<false>(played, (sets, tally), constraint);
        let most = self.shape.horizon() as f64;
        (initial.expectation(self.values.step(0)) - ROUNDING * most).max(0.0)
    }

    fn follow<const UP: bool>(
        &mut self,
        played: Played<'_>,
        (sets, tally): (&ConfidenceSets, &Tally),
        constraint: usize,
    ) {
        match played {
            Played::Policy(policy) => {
                let choice = &mut Follow::new(policy);
                self.sweep::<UP, _>(choice, (sets, tally), constraint);
            }
            Played::Actions(actions) => {
                let actions = actions.to_vec(self.shape);
                let states = self.shape.num_states();
                let choice = &mut Take {
                    states,
                    actions: &actions,
                };
                self.sweep::<UP, _>(choice, (sets, tally), constraint);
            }
        }
    }

    fn sweep<const UP: bool, C: Choice<1>>(
        &mut self,
        choice: &mut C,
        (sets, tally): (&ConfidenceSets, &Tally),
        constraint: usize,
    ) {
        let signal = CostEnd {
            sets,
            tally,
            constraint,
            upper: UP,
        };
        Sweep {
            shape: self.shape,
            steps: 0..self.shape.horizon(),
            signals: &signal,
            backup: &mut ExtremeRows::<UP>::new(sets, tally),
            choice,
            values: &mut self.values,
            action_values: [&mut self.action_values],
        }
        .run();
    }

    /// The costs c_up + b on P-hat under which the policy costs what its upper bound says:
    /// b_h(s,a) = Q_h(s,a) - c_up_h(s,a) - <P-hat, U_{h+1}>, so that Q = (c_up + b) + <P-hat, U_{h+1}> and the recursion of the
    /// bound is that of a value on P-hat (docs/mixing.md, the identity of the linearisation). Written into `signal`,
    /// `[H, S, A]`; `expectation` gives <P-hat_h(.|s,a), v>.
    pub fn linearise(
        &mut self,
        policy: &MarkovPolicy,
        (sets, tally): (&ConfidenceSets, &Tally),
        constraint: usize,
        expectation: impl Fn(usize, usize, &[f64]) -> f64,
        signal: &mut [f64],
    ) {
        let choice = &mut KeepAll {
            policy,
            kept: signal,
        };
        self.sweep::<true, _>(choice, (sets, tally), constraint);
        for step in 0..self.shape.horizon() - 1 {
            let next = self.values.step(step + 1);
            for pair in 0..self.shape.pairs() {
                signal[step * self.shape.pairs() + pair] -= expectation(step, pair, next);
            }
        }
    }

    /// The rows that attain the upper bound of a policy over the boxes, `[H - 1, S, A, S]`; rows of actions that are not
    /// taken are written too. The balls are left out: the bound over boxes alone may be larger.
    pub fn worst_kernel(
        &mut self,
        policy: &MarkovPolicy,
        (sets, tally): (&ConfidenceSets, &Tally),
        constraint: usize,
        initial: &InitialDistribution,
    ) -> Result<(f64, Vec<f64>)> {
        let (shape, states) = (self.shape, self.shape.num_states());
        let entries = (shape.horizon() - 1) * shape.pairs() * states;
        let mut kernel: Vec<f64> = zeros("a kernel [H, S, A, S]", entries)?;
        let mut backup = ExtremeRows::<true>::new(sets, tally);
        let mut next = vec![0.0; states];
        for step in (0..shape.horizon()).rev() {
            backup.begin_step(step, [&next]);
            let mut here = vec![0.0; states];
            for pair in 0..shape.pairs() {
                let row = tally.row(step, pair);
                let mut value = sets.cost(row, constraint).1;
                if step + 1 < shape.horizon() {
                    let plausible = sets.row(row);
                    let target = &mut kernel[(step * shape.pairs() + pair) * states..][..states];
                    for entry in &plausible.entries {
                        target[entry.state as usize] = entry.lower;
                    }
                    value += backup.over_box(plausible, &next, &mut |state, given| {
                        target[state as usize] += given;
                    });
                }
                let weight = policy.step(step)[pair];
                here[pair / shape.num_actions()] += weight * value;
            }
            next = here;
        }
        Ok((initial.expectation(&next), kernel))
    }
}
