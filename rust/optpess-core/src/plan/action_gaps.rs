//! Which actions can be best for a weighted sum of signals, known from the sweep for other weights: the others need not
//! be evaluated.
//!
//! Formula: let b be the best action at (h, s) for the weights w_0, and gap(a) = Q(b) - Q(a) for them. For weights w, with
//! D(s') the change of the weighted value V_{h+1}(s'),
//!
//! Q_w(a) - Q_w(b) <= -gap(a) + sum_n |w_n - w_0n| (max g_n - min g_n) + max D - min D,
//!
//! so an action whose gap exceeds the last three terms is not best for w. Citation: MacQueen 1967, "A test for suboptimal
//! actions in Markovian decision problems", in the form for two weights. Deviation: rows may leak mass, and numbers are
//! rounded; both widen the bound.
//!
//! The multipliers of a search come closer to each other, so that after a few sweeps most states have one action left.
//! An action that is left out could not have been taken, ties included: every number is that of a sweep over all actions.
//! Measured with the guess of `exact.rs` at 1,000 states, 10 actions and 100 steps: a third of the time of a plan.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Result;
use crate::evaluate::{Heaviest, JointChoice, JointSweep, JointValues, Signals, select};
use crate::parallel::Parts;
use crate::shape::Shape;
use crate::table::{CompactActions, zeros};

/// Problems with more triples than this keep no gaps. Their values are far away, and are asked for in advance for all
/// actions; measured at 10^6 states and 2 actions, nothing is gained.
const MOST_TRIPLES: usize = 1 << 24;

/// With fewer actions, little could be left out.
const LEAST_ACTIONS: usize = 3;

/// How many actions are looked at together: the bits of a mask.
const BLOCK: usize = 64;

/// What is known of the action values of a problem at the last weights.
#[derive(Debug)]
pub(crate) struct ActionGaps {
    shape: Shape,
    /// The gap of an action is at least its entry, plus the offset of the state, minus the margin of the step.
    gaps: Vec<f32>, // [H, S, A]
    leaders: Vec<Leader>,   // [H, S]
    steps: Vec<StepChange>, // [H + 1]
    /// The last weights; None if nothing is known.
    weights: Option<Vec<f64>>,
    /// How many sweeps are to be done before the first that records anything.
    unrecorded: usize,
    /// By how much the sum of a row differs from one, at most.
    leak: f64,
    /// The least and the greatest number of each signal.
    ranges: Vec<(f64, f64)>,
}

/// The best action of a state.
#[derive(Debug, Clone, Copy, Default)]
struct Leader {
    /// The weighted value.
    value: f64,
    action: u32,
    /// The gaps of all other actions are at least this, minus the margin of the step.
    second: f32,
    /// What entries of the state lack, because better actions have become known.
    offset: f32,
}

/// What has become of the values of a step.
#[derive(Debug, Default)]
struct StepChange {
    /// By how much the gaps of the step may have shrunk in all sweeps since the first that was recorded.
    margin: f64,
    /// The least and the greatest change of the weighted values by the last sweep, as bits.
    least: AtomicU64,
    greatest: AtomicU64,
}

impl ActionGaps {
    /// Nothing is known yet. The first sweeps, whose weights are far from each other, record nothing. None if gaps would
    /// not be worth the memory.
    pub(crate) fn new(
        shape: Shape,
        ranges: Vec<(f64, f64)>,
        leak: f64,
        unrecorded: usize,
    ) -> Option<Self> {
        let (horizon, states) = (shape.horizon(), shape.num_states());
        if shape.num_actions() < LEAST_ACTIONS || shape.triples() > MOST_TRIPLES {
            return None;
        }
        Some(Self {
            shape,
            gaps: zeros("gaps [H, S, A]", shape.triples()).ok()?,
            leaders: zeros("leaders [H, S]", horizon * states).ok()?,
            steps: (0..=horizon).map(|_| StepChange::default()).collect(),
            weights: None,
            unrecorded,
            leak,
            ranges,
        })
    }

    /// The sweep for some weights; the values, actions and bits of [`Heaviest`].
    pub(crate) fn sweep<const N: usize, G: Signals<N> + Sync>(
        &mut self,
        sweep: &JointSweep<'_, G>,
        weights: [f64; N],
        values: &mut JointValues<N>,
        actions: Option<&mut CompactActions>,
    ) -> Result<()> {
        let horizon = self.shape.horizon();
        let (own, rounding) = self.allowances(&weights);
        if self.unrecorded > 0 || !rounding.is_finite() {
            self.unrecorded = self.unrecorded.saturating_sub(1);
            return sweep.run(&Heaviest { weights }, values, actions);
        }
        let allowance = own + rounding;
        for step in &mut self.steps[..horizon] {
            step.forget();
        }
        let choice = NarrowedHeaviest {
            heaviest: Heaviest { weights },
            shape: self.shape,
            gaps: Parts::new(&mut self.gaps),
            leaders: Parts::new(&mut self.leaders),
            steps: &self.steps,
            allowance,
            leak: self.leak,
        };
        // A sweep that is stopped leaves gaps of two sorts.
        self.weights = None;
        sweep.run(&choice, values, actions)?;
        self.weights = Some(weights.to_vec());
        for step in 0..horizon {
            let shrunk = allowance + self.steps[step + 1].spread(self.leak);
            let margin = &mut self.steps[step].margin;
            *margin = if shrunk.is_finite() {
                *margin + shrunk
            } else {
                0.0
            };
        }
        Ok(())
    }

    /// What the own numbers of a step add to the bound, infinite if there are no last weights, and what rounding adds.
    fn allowances<const N: usize>(&self, weights: &[f64; N]) -> (f64, f64) {
        let last = self.weights.as_deref();
        let (mut own, mut size) = (if last.is_none() { f64::INFINITY } else { 0.0 }, 0.0);
        for (n, &(least, greatest)) in self.ranges.iter().enumerate() {
            let before = last.map_or(0.0, |last| last[n]);
            own += (weights[n] - before).abs() * (greatest - least);
            size += (weights[n].abs() + before.abs()) * greatest.abs().max(least.abs());
        }
        // An action value is a sum of at most |S| + 2 N + 2 products and sums a step, over at most H steps; four of
        // them are compared. Signals are bounded by `size`, values by H times as much.
        let (horizon, states) = (self.shape.horizon() as f64, self.shape.num_states() as f64);
        let roundings = 8.0 * horizon * (states + 2.0 * N as f64 + 2.0);
        (own, roundings * f64::EPSILON * (horizon * size))
    }
}

impl StepChange {
    fn forget(&mut self) {
        *self.least.get_mut() = f64::INFINITY.to_bits();
        *self.greatest.get_mut() = f64::NEG_INFINITY.to_bits();
    }

    #[inline(always)]
    fn include(&self, change: f64) {
        // Most numbers are within the range already, so that nothing is written.
        widen(&self.least, change, |change, bound| change < bound);
        widen(&self.greatest, change, |change, bound| change > bound);
    }

    /// By how much the expectations of the changes for two rows may differ, given that the sums of rows differ from one
    /// by at most `leak`.
    #[inline(always)]
    fn spread(&self, leak: f64) -> f64 {
        let [least, greatest] = [&self.least, &self.greatest]
            .map(|bound| f64::from_bits(bound.load(Ordering::Relaxed)));
        greatest - least + 2.0 * leak * greatest.abs().max(least.abs())
    }
}

#[inline(always)]
fn widen(bound: &AtomicU64, number: f64, wider: impl Fn(f64, f64) -> bool) {
    let mut found = bound.load(Ordering::Relaxed);
    while wider(number, f64::from_bits(found)) {
        let bits = number.to_bits();
        match bound.compare_exchange_weak(found, bits, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return,
            Err(other) => found = other,
        }
    }
}

/// [`Heaviest`], which evaluates only the actions that can be best.
struct NarrowedHeaviest<'a, const N: usize> {
    heaviest: Heaviest<N>,
    shape: Shape,
    gaps: Parts<'a, f32>,
    leaders: Parts<'a, Leader>,
    steps: &'a [StepChange],
    allowance: f64,
    leak: f64,
}

impl<const N: usize> JointChoice<N> for NarrowedHeaviest<'_, N> {
    #[inline(always)]
    fn choose(
        &self,
        step: usize,
        state: usize,
        q: &impl Fn(usize) -> [f64; N],
        _: &mut [[f64; N]],
    ) -> ([f64; N], usize) {
        let place = step * self.shape.num_states() + state;
        let (here, next) = (&self.steps[step], &self.steps[step + 1]);
        let margin = here.margin + (self.allowance + next.spread(self.leak));
        // SAFETY: every state of every step is in one part of the sweep, and chosen in once.
        let leader = unsafe { &mut self.leaders.write(place..place + 1)[0] };
        let action = leader.action as usize;
        let values = q(action);
        let mut best = Best {
            weight: self.heaviest.weigh(values),
            values,
            action,
        };
        // A margin that is not a number leaves nothing out.
        let is_settled = f64::from(leader.second) > margin;
        if !is_settled {
            let actions = self.shape.num_actions();
            // SAFETY: as above.
            let gaps = unsafe { self.gaps.write(place * actions..(place + 1) * actions) };
            self.compare(gaps, leader, margin, q, &mut best);
        }
        here.include(best.weight - leader.value);
        leader.value = best.weight;
        (best.values, best.action)
    }
}

/// The best action so far.
struct Best<const N: usize> {
    weight: f64,
    values: [f64; N],
    action: usize,
}

impl<const N: usize> NarrowedHeaviest<'_, N> {
    /// Compares the leader with the actions whose gap may have closed.
    #[inline(always)]
    fn compare(
        &self,
        gaps: &mut [f32],
        leader: &mut Leader,
        margin: f64,
        q: &impl Fn(usize) -> [f64; N],
        best: &mut Best<N>,
    ) {
        let (before, former) = (best.weight, best.action);
        // Without a bound nothing is left out, and all entries are made anew.
        let bounded = margin < f64::INFINITY;
        let offset = if bounded {
            f64::from(leader.offset)
        } else {
            0.0
        };
        let entry_of_zero = if bounded { margin - offset } else { 0.0 };
        let bound = if bounded {
            rounded_up(entry_of_zero)
        } else {
            f32::INFINITY
        };
        let mut second = f64::NEG_INFINITY;
        let mut least_left_out = f32::INFINITY;
        for (block, gaps) in gaps.chunks_mut(BLOCK).enumerate() {
            let mut left = 0_u64;
            for (place, &gap) in gaps.iter().enumerate() {
                let is_out = gap > bound;
                left |= u64::from(!is_out) << place;
                least_left_out = if is_out & (gap < least_left_out) {
                    gap
                } else {
                    least_left_out
                };
            }
            if former / BLOCK == block {
                left &= !(1 << (former % BLOCK));
            }
            while left != 0 {
                let place = left.trailing_zeros() as usize;
                left &= left - 1;
                let action = block * BLOCK + place;
                let found = q(action);
                let weight = self.heaviest.weigh(found);
                gaps[place] = rounded_down(before - weight + entry_of_zero);
                let better =
                    weight > best.weight || (weight >= best.weight && action < best.action);
                second = second.max(select(better, best.weight, weight));
                best.weight = select(better, weight, best.weight);
                best.values = std::array::from_fn(|n| select(better, found[n], best.values[n]));
                best.action = if better { action } else { best.action };
            }
        }
        gaps[former] = rounded_down(entry_of_zero);
        let offset = rounded_down(offset + (best.weight - before));
        let left_out = f64::from(least_left_out) + f64::from(offset);
        let compared = best.weight - second + if bounded { margin } else { 0.0 };
        *leader = Leader {
            value: leader.value,
            action: best.action as u32,
            second: rounded_down(left_out.min(compared)),
            offset,
        };
    }
}

/// At most a number.
#[inline(always)]
fn rounded_down(number: f64) -> f32 {
    // What is taken away exceeds the rounding error.
    let less = number - (number.abs() * 1e-6 + 1e-30);
    less.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32
}

/// At least a number.
#[inline(always)]
fn rounded_up(number: f64) -> f32 {
    (number + (number.abs() * 1e-6 + 1e-30)) as f32
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use rand::rngs::ChaCha8Rng;
    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::control::Control;
    use crate::model::{Kernel, Slices};
    use crate::parallel::Workers;
    use crate::table::{Signal, StepSignal};

    /// Two signals, and how many action values were asked for.
    #[derive(Debug, Clone, Copy)]
    struct Counted<'a>([&'a Signal; 2], &'a AtomicUsize);

    impl Signals<2> for Counted<'_> {
        fn at(&self, step: usize, pair: usize) -> [f64; 2] {
            self.1.fetch_add(1, Ordering::Relaxed);
            self.0.map(|signal| signal.at(step, pair))
        }
    }

    struct Problem {
        shape: Shape,
        kernel: Kernel,
        signals: [Signal; 2],
    }

    impl Problem {
        /// Rows of up to four successors, which may leak; numbers of a grid, so that there are ties, or of both signs.
        fn random(generator: &mut ChaCha8Rng) -> Self {
            let mut up_to = |most: usize| generator.random_range(1..=most);
            let many = up_to(8) == 1;
            let sizes = [up_to(12), up_to(9), if many { 70 } else { 2 + up_to(6) }];
            let (leaks, ties, stationary) = (up_to(3) == 1, up_to(2) == 1, up_to(2) == 1);
            let size = 10.0_f64.powi(3 * up_to(5) as i32 - 9);
            let shape = Shape::new(sizes[0], sizes[1], sizes[2]).unwrap();
            let (slices, rows) = if stationary {
                (Slices::Stationary, shape.pairs())
            } else {
                (Slices::PerStep(sizes[0]), shape.triples())
            };
            let mut data = vec![0.0; rows * sizes[1]];
            for row in data.chunks_exact_mut(sizes[1]) {
                let mut left = if leaks { generator.random() } else { 1.0 };
                for _ in 0..3 {
                    let part = left * generator.random::<f64>();
                    row[generator.random_range(0..sizes[1])] += part;
                    left -= part;
                }
                row[generator.random_range(0..sizes[1])] += left;
            }
            let mut signal = || {
                let number = || {
                    let number: f64 = generator.random();
                    size * if ties {
                        (3.0 * number).floor()
                    } else {
                        number - 0.3
                    }
                };
                let numbers = std::iter::repeat_with(number);
                Signal::new("g", shape, numbers.take(shape.triples()).collect()).unwrap()
            };
            Self {
                shape,
                signals: [signal(), signal()],
                kernel: Kernel::dense(sizes[1], sizes[2], slices, data).unwrap(),
            }
        }

        fn gaps(&self) -> ActionGaps {
            let (horizon, pairs) = (self.shape.horizon(), self.shape.pairs());
            let ranges = self
                .signals
                .iter()
                .map(|signal| signal.range(horizon, pairs));
            ActionGaps::new(self.shape, ranges.collect(), self.kernel.leak(), 0).unwrap()
        }
    }

    /// Weights that jump, come closer to each other, and stay.
    fn sequence(generator: &mut ChaCha8Rng) -> Vec<[f64; 2]> {
        let mut weights: [f64; 2] = [1.0, -2.0 * generator.random::<f64>()];
        let mut width = 1.0;
        let mut found = vec![weights];
        for _ in 0..12 {
            width *= [0.1, 0.5, 1.0, 0.0][generator.random_range(0..4)];
            weights = weights.map(|weight| weight + width * (generator.random::<f64>() - 0.5));
            found.push(weights);
            if width == 0.0 || generator.random_range(0..6) == 0 {
                width = 1.0;
            }
        }
        found
    }

    #[test]
    fn what_is_left_out_changes_no_bit() {
        let mut generator = ChaCha8Rng::seed_from_u64(1);
        let (control, unused) = (Control::default(), AtomicUsize::new(0));
        for _ in 0..400 {
            let problem = Problem::random(&mut generator);
            let shape = problem.shape;
            let mut gaps = problem.gaps();
            let [mut plain, mut narrowed] = [(); 2].map(|()| JointValues::rolling(shape).unwrap());
            for weights in sequence(&mut generator) {
                let threads = generator.random_range(1..3);
                let sweep = JointSweep {
                    shape,
                    signals: Counted(problem.signals.each_ref(), &unused),
                    kernel: &problem.kernel,
                    workers: Workers {
                        threads,
                        control: &control,
                    },
                };
                let [mut expected, mut found] =
                    [(); 2].map(|()| CompactActions::zeros(shape).unwrap());
                sweep
                    .run(&Heaviest { weights }, &mut plain, Some(&mut expected))
                    .unwrap();
                gaps.sweep(&sweep, weights, &mut narrowed, Some(&mut found))
                    .unwrap();
                assert_eq!(found, expected);
                let bits = |values: &JointValues<2>| {
                    let all = values
                        .first_step()
                        .iter()
                        .flatten()
                        .map(|value| value.to_bits());
                    all.collect::<Vec<_>>()
                };
                assert_eq!(bits(&narrowed), bits(&plain));
            }
        }
    }

    #[test]
    fn close_weights_leave_most_actions_out_and_far_ones_none() {
        let mut generator = ChaCha8Rng::seed_from_u64(2);
        let control = Control::default();
        let mut problem = Problem::random(&mut generator);
        while problem.shape.sizes().iter().product::<usize>() < 300
            || problem.shape.num_actions() > 8
        {
            problem = Problem::random(&mut generator);
        }
        let triples = problem.shape.triples();
        let places = triples / problem.shape.num_actions();
        let size = problem.signals[0].range(0, 0).1;
        let mut gaps = problem.gaps();
        let mut values = JointValues::rolling(problem.shape).unwrap();
        let mut asked = |weights| {
            let asked = AtomicUsize::new(0);
            let sweep = JointSweep {
                shape: problem.shape,
                signals: Counted(problem.signals.each_ref(), &asked),
                kernel: &problem.kernel,
                workers: Workers::alone(&control),
            };
            gaps.sweep(&sweep, weights, &mut values, None).unwrap();
            asked.into_inner()
        };
        assert!(size > 0.0);
        assert_eq!(asked([1.0, -0.5]), triples);
        assert!(asked([1.0, -0.5 - 1e-9]) < places + places / 2);
        assert_eq!(asked([1.0, -500.0]), triples);
        assert!(asked([1.0, -500.0]) < places + places / 2);
    }

    #[test]
    fn a_sweep_that_was_stopped_leaves_nothing_known() {
        let mut generator = ChaCha8Rng::seed_from_u64(3);
        let problem = Problem::random(&mut generator);
        let (control, unused) = (Control::default(), AtomicUsize::new(0));
        let sweep = JointSweep {
            shape: problem.shape,
            signals: Counted(problem.signals.each_ref(), &unused),
            kernel: &problem.kernel,
            workers: Workers::alone(&control),
        };
        let mut gaps = problem.gaps();
        let mut values = JointValues::rolling(problem.shape).unwrap();
        gaps.sweep(&sweep, [1.0, 0.0], &mut values, None).unwrap();
        assert!(gaps.weights.is_some());
        control.stop.store(true, Ordering::Relaxed);
        assert!(gaps.sweep(&sweep, [1.0, 0.0], &mut values, None).is_err());
        assert!(gaps.weights.is_none());
    }
}
