//! The trait that evaluation and planning use for kernels of any storage: expectations over the next state, and their
//! transpose.

use crate::sums::dot_each;

/// A kernel as two operations: an expectation over the next state, and its transpose.
pub trait StepKernel {
    /// Whether recursions over this kernel run so often that they are compiled for each small number of states.
    const ASKED_OFTEN: bool = false;

    /// sum over s' of P_h(s'|s,a) v(s').
    fn expectation(&self, step: usize, pair: usize, values: &[f64]) -> f64;
    /// next(s') += mass P_h(s'|s,a), for every s'.
    fn propagate(&self, step: usize, pair: usize, mass: f64, next: &mut [f64]);

    /// [`StepKernel::expectation`] of two functions of the next state, to the same bits.
    #[inline(always)]
    fn expectation_of_two(
        &self,
        step: usize,
        pair: usize,
        first: &[f64],
        second: &[f64],
    ) -> (f64, f64) {
        (
            self.expectation(step, pair, first),
            self.expectation(step, pair, second),
        )
    }

    /// [`StepKernel::expectation`] for every pair of a step: out(s,a) = sum over s' of P_h(s'|s,a) v(s').
    /// A kernel may do this faster, to the same bits.
    #[inline(always)]
    fn all_expectations(&self, step: usize, values: &[f64], out: &mut [f64]) {
        for (pair, target) in out.iter_mut().enumerate() {
            *target = self.expectation(step, pair, values);
        }
    }

    /// next(s') = sum over pairs of mass(s,a) P_h(s'|s,a), for every s', in the order of the pairs.
    #[inline(always)]
    fn spread_all(&self, step: usize, masses: &[f64], next: &mut [f64]) {
        next.fill(0.0);
        for (pair, &mass) in masses.iter().enumerate() {
            if mass > 0.0 {
                self.propagate(step, pair, mass, next);
            }
        }
    }
}

/// Rows of a kernel, for the expectations of several functions of the next state at once.
pub trait JointRows: Sync {
    /// sum over s' of P(s'|row) v_n(s') for each of N functions, side by side in `values`; each sum has the order of
    /// additions, hence the bits, of [`StepKernel::expectation`]. `FAR` says that the values do not fit the caches of a
    /// core, so that those of later rows are worth asking for in advance.
    ///
    /// # Safety
    ///
    /// The row must exist, and `values` must have an entry for every state.
    unsafe fn expectations<const N: usize, const FAR: bool>(
        &self,
        row: usize,
        values: &[[f64; N]],
    ) -> [f64; N];
}

/// Rows in full, one after the other.
impl JointRows for [f64] {
    /// # Safety
    ///
    /// That of the trait.
    #[inline(always)]
    unsafe fn expectations<const N: usize, const FAR: bool>(
        &self,
        row: usize,
        values: &[[f64; N]],
    ) -> [f64; N] {
        dot_each(&self[row * values.len()..][..values.len()], values)
    }
}
