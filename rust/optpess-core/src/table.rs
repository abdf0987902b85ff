//! Storage of signals over (step, state, action) and of values over (step, state). A [`Signal`] does not say whether it
//! is a reward or a cost, nor how it was biased.

use bytemuck::Zeroable;
use bytemuck::allocation::try_zeroed_vec;
use serde::{Deserialize, Serialize};

use crate::error::{ArrayIndex, Error, Interval, Result};
use crate::fast::isa::{Job, vectorised};
use crate::shape::{MAX_TRIPLES, Shape};

/// A vector of `len` zeros, or [`Error::TooLarge`] if there are more than [`MAX_TRIPLES`] or the allocation fails; a
/// plain `vec!` would end the process instead.
pub fn zeros<T: Clone + Default>(what: &'static str, len: usize) -> Result<Vec<T>> {
    let mut data = Vec::new();
    if len > MAX_TRIPLES || data.try_reserve_exact(len).is_err() {
        return Err(too_large(what, len));
    }
    data.resize(len, T::default());
    Ok(data)
}

/// [`zeros`] for results that may have gigabytes: the system hands out pages of zeros when they are first written, so no
/// time passes here in which a call could not be stopped.
pub fn untouched_zeros<T: Zeroable>(what: &'static str, len: usize) -> Result<Vec<T>> {
    if len > MAX_TRIPLES {
        return Err(too_large(what, len));
    }
    try_zeroed_vec(len).map_err(|()| too_large(what, len))
}

fn too_large(what: &'static str, len: usize) -> Error {
    Error::TooLarge {
        what,
        sizes: vec![len],
        allowed: MAX_TRIPLES,
    }
}

/// A number for each (step, state, action): a stored table, or a combination of tables that is never stored, such as a
/// Lagrangian.
pub trait StepSignal {
    /// g_h(s, a), where `pair` is the index of (s, a) within the step.
    fn at(&self, step: usize, pair: usize) -> f64;

    /// g_h as it is stored, `[S, A]`, or None for a signal that is not stored. Loops over whole steps can be
    /// vectorised if they read a slice.
    #[inline(always)]
    fn stored(&self, _step: usize) -> Option<&[f64]> {
        None
    }

    /// g_h as a function of the pair. A stored table finds its step once.
    #[inline(always)]
    fn at_step(&self, step: usize) -> impl Fn(usize) -> f64 {
        move |pair| self.at(step, pair)
    }

    /// Whether the numbers are known to be the same at every step.
    fn is_stationary(&self) -> bool {
        false
    }

    /// The least and the greatest number of the first H steps of `pairs` pairs each.
    fn range(&self, horizon: usize, pairs: usize) -> (f64, f64) {
        let each_step = (0..horizon).map(|step| {
            let own = self.at_step(step);
            range((0..pairs).map(own))
        });
        each_step.fold(NO_RANGE, |(least, greatest), (low, high)| {
            (least.min(low), greatest.max(high))
        })
    }

    /// out(s, a) += g_h(s, a), for every pair of a step. A stored table does this faster.
    #[inline(always)]
    fn add_to(&self, step: usize, out: &mut [f64]) {
        for (pair, target) in out.iter_mut().enumerate() {
            *target += self.at(step, pair);
        }
    }
}

/// The range of no numbers.
const NO_RANGE: (f64, f64) = (f64::INFINITY, f64::NEG_INFINITY);

fn range(numbers: impl Iterator<Item = f64>) -> (f64, f64) {
    numbers.fold(NO_RANGE, |(least, greatest), number| {
        (least.min(number), greatest.max(number))
    })
}

/// g_h(s, a), stored for each step, or once when it is the same at every step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "StoredSignal")]
pub struct Signal {
    shape: Shape,
    /// Distance between steps in `data`: |S| |A|, or 0 for a stationary signal.
    stride: usize,
    data: Vec<f64>, // [H, S, A] or [S, A]
}

/// The stored form of a [`Signal`], which is checked as a given one is.
#[derive(Deserialize)]
#[serde(rename = "Signal")]
struct StoredSignal {
    shape: Shape,
    stride: usize,
    data: Vec<f64>,
}

impl TryFrom<StoredSignal> for Signal {
    type Error = Error;

    fn try_from(stored: StoredSignal) -> Result<Self> {
        let (shape, stride) = (stored.shape, stored.stride);
        if stride != 0 && stride != shape.pairs() {
            return Err(Error::StoredState {
                what: "a signal of a learner",
            });
        }
        Self::labelled("a stored signal", &[], shape, stride, stored.data)
    }
}

impl Signal {
    /// A signal from its values `[H, S, A]`, each of them finite; the name is used in messages.
    pub fn new(name: &'static str, shape: Shape, data: Vec<f64>) -> Result<Self> {
        Self::labelled(name, &[], shape, shape.pairs(), data)
    }

    /// A signal that is the same at every step, from its values `[S, A]`.
    pub fn stationary(name: &'static str, shape: Shape, data: Vec<f64>) -> Result<Self> {
        Self::labelled(name, &[], shape, 0, data)
    }

    /// A signal whose steps are `stride` apart: |S| |A|, or 0 if it is the same at every step.
    /// Messages put `prefix` before the index, for an element of a list of signals.
    pub fn labelled(
        name: &'static str,
        prefix: &[usize],
        shape: Shape,
        stride: usize,
        data: Vec<f64>,
    ) -> Result<Self> {
        let expected = (shape.horizon() - 1) * stride + shape.pairs();
        if data.len() != expected {
            return Err(Error::ShapeMismatch {
                array: name,
                axes: "[H, S, A], or [S, A] if stationary",
                expected: vec![expected],
                found: vec![data.len()],
            });
        }
        let signal = Self {
            shape,
            stride,
            data,
        };
        if all_finite(&signal.data) {
            return Ok(signal);
        }
        match signal.data.iter().position(|value| !value.is_finite()) {
            Some(flat) => Err(Error::NotFinite {
                place: ArrayIndex::new(name, &[prefix, &signal.index(flat)].concat()),
                found: signal.data[flat],
            }),
            None => Ok(signal),
        }
    }

    /// The problem's sizes.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Whether the signal is stored once for all steps.
    #[must_use]
    pub fn is_stationary(&self) -> bool {
        self.stride == 0
    }

    /// The stored values, `[H, S, A]` or `[S, A]`.
    #[must_use]
    pub fn data(&self) -> &[f64] {
        &self.data
    }

    /// The stored values, to be overwritten by finite ones.
    pub(crate) fn data_mut(&mut self) -> &mut [f64] {
        &mut self.data
    }

    /// The values of one step, `[S, A]`.
    #[must_use]
    #[inline(always)]
    pub fn step(&self, step: usize) -> &[f64] {
        &self.data[step * self.stride..][..self.shape.pairs()]
    }

    /// Sets g_h(s, a) of a signal that is stored for each step.
    #[inline(always)]
    pub(crate) fn set(&mut self, step: usize, pair: usize, value: f64) {
        debug_assert!(!self.is_stationary());
        self.data[step * self.stride + pair] = value;
    }

    /// The caller's index of a stored value: (h, s, a), or (s, a) if stationary.
    #[must_use]
    pub fn index(&self, flat: usize) -> Vec<usize> {
        let triple = self.shape.triple_index(flat);
        if self.is_stationary() {
            triple[1..].to_vec()
        } else {
            triple.to_vec()
        }
    }
}

impl StepSignal for Signal {
    #[inline(always)]
    fn at(&self, step: usize, pair: usize) -> f64 {
        self.data[step * self.stride + pair]
    }

    #[inline(always)]
    fn stored(&self, step: usize) -> Option<&[f64]> {
        Some(self.step(step))
    }

    #[inline(always)]
    fn at_step(&self, step: usize) -> impl Fn(usize) -> f64 {
        let values = self.step(step);
        move |pair| values[pair]
    }

    fn is_stationary(&self) -> bool {
        Signal::is_stationary(self)
    }

    fn range(&self, _: usize, _: usize) -> (f64, f64) {
        range(self.data.iter().copied())
    }

    #[inline(always)]
    fn add_to(&self, step: usize, out: &mut [f64]) {
        for (target, value) in out.iter_mut().zip(self.step(step)) {
            *target += value;
        }
    }
}

/// V_h(s) for h = 0..=H; the last row is zero.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StateValues {
    num_states: usize,
    data: Vec<f64>, // [H + 1, S]
}

impl StateValues {
    /// All values zero.
    pub fn zeros(shape: Shape) -> Result<Self> {
        let num_states = shape.num_states();
        Ok(Self {
            num_states,
            data: untouched_zeros(
                "state values [H + 1, S]",
                (shape.horizon() + 1) * num_states,
            )?,
        })
    }

    /// Values `[H + 1, S]` whose last row is zero.
    pub(crate) fn from_data(num_states: usize, data: Vec<f64>) -> Self {
        debug_assert_eq!(data.len() % num_states, 0);
        Self { num_states, data }
    }

    /// V_h, one value a state.
    #[must_use]
    #[inline(always)]
    pub fn step(&self, step: usize) -> &[f64] {
        &self.data[step * self.num_states..][..self.num_states]
    }

    /// V_h to be written and V_{h+1} to be read.
    #[must_use]
    #[inline(always)]
    pub fn step_and_next(&mut self, step: usize) -> (&mut [f64], &[f64]) {
        let (head, tail) = self.data.split_at_mut((step + 1) * self.num_states);
        (
            &mut head[step * self.num_states..],
            &tail[..self.num_states],
        )
    }

    /// All values, `[H + 1, S]`.
    #[must_use]
    pub fn data(&self) -> &[f64] {
        &self.data
    }

    /// All values, `[H + 1, S]`, owned.
    #[must_use]
    pub fn into_data(self) -> Vec<f64> {
        self.data
    }
}

/// An action for each (step, state), `[H, S]`, in the smallest unsigned type that holds every action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompactActions {
    /// At most 2^8 actions.
    U8(Vec<u8>),
    /// At most 2^16 actions.
    U16(Vec<u16>),
    /// More.
    U32(Vec<u32>),
}

impl CompactActions {
    /// The lowest action everywhere.
    pub fn zeros(shape: Shape) -> Result<Self> {
        let (what, len) = ("actions [H, S]", shape.horizon() * shape.num_states());
        Ok(match shape.num_actions() {
            0..=0x100 => Self::U8(untouched_zeros(what, len)?),
            0x101..=0x1_0000 => Self::U16(untouched_zeros(what, len)?),
            _ => Self::U32(untouched_zeros(what, len)?),
        })
    }

    /// Sets every action; refuses numbers that are no action.
    pub fn fill_from(&mut self, given: &[i64], num_actions: usize) -> Result<()> {
        let most = num_actions as i64 - 1;
        if let Some(place) = given.iter().position(|action| !(0..=most).contains(action)) {
            return Err(Error::OutOfRange {
                place: ArrayIndex::new("actions", &[place]),
                found: given[place] as f64,
                allowed: Interval::closed(0.0, most as f64),
            });
        }
        match self {
            Self::U8(actions) => copy(given, actions, |action| action as u8),
            Self::U16(actions) => copy(given, actions, |action| action as u16),
            Self::U32(actions) => copy(given, actions, |action| action as u32),
        }
        Ok(())
    }

    /// The action at place h |S| + s.
    #[must_use]
    #[inline(always)]
    pub fn at(&self, place: usize) -> usize {
        match self {
            Self::U8(actions) => actions[place].into(),
            Self::U16(actions) => actions[place].into(),
            Self::U32(actions) => actions[place] as usize,
        }
    }

    /// H |S|.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::U8(actions) => actions.len(),
            Self::U16(actions) => actions.len(),
            Self::U32(actions) => actions.len(),
        }
    }

    /// Whether there is none; never so for a shape.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The actions, in the order of the places.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.len()).map(|place| self.at(place))
    }
}

fn copy<T>(given: &[i64], actions: &mut [T], convert: impl Fn(i64) -> T) {
    for (target, &action) in actions.iter_mut().zip(given) {
        *target = convert(action);
    }
}

/// Whether every entry is finite. Does not stop early, which is faster if all are.
fn all_finite(x: &[f64]) -> bool {
    vectorised(AllFinite(x))
}

struct AllFinite<'a>(&'a [f64]);

impl Job for AllFinite<'_> {
    type Output = bool;

    /// Zero times a finite number is zero, zero times NaN or an infinity is NaN, and a sum with NaN in it is NaN.
    #[inline(always)]
    fn run(self) -> bool {
        const LANES: usize = 8;
        let (body, rest) = self.0.as_chunks::<LANES>();
        let mut sums = [0.0_f64; LANES];
        for chunk in body {
            for lane in 0..LANES {
                sums[lane] += chunk[lane] * 0.0;
            }
        }
        sums.iter().chain(rest).all(|entry| entry.is_finite())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_not_finite_is_named_by_the_callers_index() {
        let shape = Shape::new(2, 2, 2).unwrap();
        let mut data = vec![0.0; 8];
        data[6] = f64::NAN;
        let error = Signal::new("rewards", shape, data).unwrap_err();
        assert!(error.to_string().starts_with("rewards[1, 1, 0] is NaN"));
        let error =
            Signal::stationary("rewards", shape, vec![0.0, 0.0, f64::INFINITY, 0.0]).unwrap_err();
        assert!(error.to_string().starts_with("rewards[1, 0] is inf"));
    }

    #[test]
    fn a_stationary_signal_is_stored_once_and_read_at_every_step() {
        let shape = Shape::new(3, 1, 2).unwrap();
        let signal = Signal::stationary("g", shape, vec![1.0, 2.0]).unwrap();
        assert!(signal.is_stationary());
        assert_eq!(signal.data().len(), 2);
        assert_eq!(signal.step(2), &[1.0, 2.0]);
    }
}
