//! The transition kernel P of a model, whose rows sum to one.

use std::sync::Arc;

use crate::error::Result;
use crate::model::{Kernel, StepKernel};

/// P: a kernel each of whose rows (but those of the ignored last step) sums to one.
#[derive(Debug, Clone, PartialEq)]
pub struct TransitionKernel(Arc<Kernel>);

impl TransitionKernel {
    /// Checks the row sums of a kernel. The kernel is shared, not copied.
    pub fn new(kernel: Arc<Kernel>) -> Result<Self> {
        kernel.check_rows(1.0, "1 within 1e-9")?;
        Ok(Self(kernel))
    }

    /// The kernel, as one whose rows sum to at most one.
    #[must_use]
    pub fn kernel(&self) -> &Arc<Kernel> {
        &self.0
    }
}

impl StepKernel for TransitionKernel {
    #[inline(always)]
    fn expectation(&self, step: usize, pair: usize, values: &[f64]) -> f64 {
        self.0.expectation(step, pair, values)
    }

    #[inline(always)]
    fn expectation_of_two(
        &self,
        step: usize,
        pair: usize,
        first: &[f64],
        second: &[f64],
    ) -> (f64, f64) {
        self.0.expectation_of_two(step, pair, first, second)
    }

    #[inline(always)]
    fn propagate(&self, step: usize, pair: usize, mass: f64, next: &mut [f64]) {
        self.0.propagate(step, pair, mass, next);
    }

    #[inline(always)]
    fn all_expectations(&self, step: usize, values: &[f64], out: &mut [f64]) {
        self.0.all_expectations(step, values, out);
    }

    #[inline(always)]
    fn spread_all(&self, step: usize, masses: &[f64], next: &mut [f64]) {
        self.0.spread_all(step, masses, next);
    }
}
