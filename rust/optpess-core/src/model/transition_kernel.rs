//! The true P: a kernel that loses no mass.

use std::sync::Arc;

use crate::error::Result;
use crate::model::{Kernel, StepKernel};

/// P: a kernel each of whose rows (but those of the ignored last step) sums to one.
#[derive(Debug, Clone, PartialEq)]
pub struct TransitionKernel(Arc<Kernel>);

impl TransitionKernel {
    /// Checks the row sums of a kernel, which stays shared.
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
    fn expect(&self, step: usize, pair: usize, values: &[f64]) -> f64 {
        self.0.expect(step, pair, values)
    }

    #[inline(always)]
    fn expect_two(&self, step: usize, pair: usize, first: &[f64], second: &[f64]) -> (f64, f64) {
        self.0.expect_two(step, pair, first, second)
    }

    #[inline(always)]
    fn spread(&self, step: usize, pair: usize, mass: f64, next: &mut [f64]) {
        self.0.spread(step, pair, mass, next);
    }

    #[inline(always)]
    fn expect_all(&self, step: usize, values: &[f64], out: &mut [f64]) {
        self.0.expect_all(step, values, out);
    }

    #[inline(always)]
    fn spread_all(&self, step: usize, masses: &[f64], next: &mut [f64]) {
        self.0.spread_all(step, masses, next);
    }
}
