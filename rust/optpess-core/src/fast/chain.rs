//! The Markov chain of a deterministic policy, re-evaluated from the last step that changed.

use crate::error::Result;
use crate::fast::isa::with_small_constant;
use crate::fast::isa::{Job, vectorised};
use crate::fast::lanes::{LANES, Lanes, flat};
use crate::fast::packed::PackedRows;
use crate::model::InitialDistribution;
use crate::shape::Shape;
use crate::table::zeros;

/// P^pi and N signals g^pi of a policy, laid out so that one vector holds eight states. A change of the policy at one
/// (step, state) rewrites one column; values are computed again from the last step that changed. The bits are those of
/// [`crate::evaluate::evaluate()`].
#[derive(Debug, Clone)]
pub(crate) struct PolicyChain<const N: usize> {
    shape: Shape,
    blocks: usize,              // of eight states
    kernel: PackedRows,         // [H - 1, blocks], P^pi_h(.|s) with s in the lanes
    signals: Vec<Lanes>,        // [H, N, blocks]
    values: Vec<Lanes>,         // [H, N, blocks]
    stale_up_to: Option<usize>, // the last step whose values are out of date
}

impl<const N: usize> PolicyChain<N> {
    /// A chain with zero signals and empty rows; fill it with `set_row`. Rows are kept in full, or as lists of up to
    /// `list_width` successors.
    pub(crate) fn new(shape: Shape, list_width: Option<usize>) -> Result<Self> {
        let blocks = shape.num_states().div_ceil(LANES);
        let steps = shape.horizon();
        let wide = |what, len| zeros::<Lanes>(what, len);
        Ok(Self {
            shape,
            blocks,
            kernel: PackedRows::new((steps - 1) * blocks, shape.num_states(), list_width)?,
            signals: wide("the signals of a policy [H, S]", steps * N * blocks)?,
            values: wide("the values of a policy [H, S]", steps * N * blocks)?,
            stale_up_to: None,
        })
    }

    /// Sets the successors and signals of (step, state). [`PackedRows::set`] says what happens to successors that are
    /// left out.
    #[inline(always)]
    pub(crate) fn set_row(
        &mut self,
        step: usize,
        state: usize,
        successors: impl Iterator<Item = (usize, f64)>,
        signals: [f64; N],
    ) {
        if step + 1 < self.shape.horizon() {
            let block = step * self.blocks + state / LANES;
            self.kernel.set(block, state % LANES, successors);
        }
        self.set_signals(step, state, signals);
    }

    /// [`PolicyChain::set_row`] for a row with a probability for every state.
    #[inline(always)]
    pub(crate) fn set_full_row(
        &mut self,
        step: usize,
        state: usize,
        row: &[f64],
        signals: [f64; N],
    ) {
        if step + 1 < self.shape.horizon() {
            let block = step * self.blocks + state / LANES;
            self.kernel.set_full(block, state % LANES, row);
        }
        self.set_signals(step, state, signals);
    }

    #[inline(always)]
    fn set_signals(&mut self, step: usize, state: usize, signals: [f64; N]) {
        let (block, lane) = (state / LANES, state % LANES);
        for (which, signal) in signals.into_iter().enumerate() {
            self.signals[(step * N + which) * self.blocks + block].0[lane] = signal;
        }
        self.stale_up_to = self.stale_up_to.max(Some(step));
    }

    /// V^pi_1(mu; g, P) for each signal.
    #[inline]
    pub(crate) fn evaluate(&mut self, initial: &InitialDistribution) -> [f64; N] {
        with_small_constant!(self.shape.num_states(), S => vectorised(Reevaluate::<N, S>(self)));
        let states = self.shape.num_states();
        std::array::from_fn(|which| {
            let first = &self.values[which * self.blocks..][..self.blocks];
            initial.expectation(&flat(first)[..states])
        })
    }
}

/// `S` is the number of states, or 0 if it is not known at compile time.
struct Reevaluate<'a, const N: usize, const S: usize>(&'a mut PolicyChain<N>);

impl<const N: usize, const S: usize> Job for Reevaluate<'_, N, S> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let chain = self.0;
        let (steps, states) = (chain.shape.horizon(), chain.shape.num_states());
        let (states, blocks) = if S > 0 {
            (S, S.div_ceil(LANES))
        } else {
            (states, chain.blocks)
        };
        let Some(last) = chain.stale_up_to.take() else {
            return;
        };
        for step in (0..=last).rev() {
            let (here, next) = chain.values[step * N * blocks..].split_at_mut(N * blocks);
            let own = &chain.signals[step * N * blocks..][..N * blocks];
            if step + 1 == steps {
                here.copy_from_slice(own);
                continue;
            }
            let (here, own) = (here.chunks_exact_mut(blocks), own.chunks_exact(blocks));
            for ((here, own), next) in here.zip(own).zip(next.chunks_exact(blocks)) {
                let (kernel, following) = (&chain.kernel, &flat(next)[..states]);
                kernel.add_expectations::<S>(step * blocks, following, |block| own[block], here);
            }
        }
    }
}
