//! The noise of observations, within the paper's Assumption 2.1: E exp(l xi) <= exp(l^2 / 4) for every l, that is, a
//! variance proxy of at most 1/2. The constructors refuse any other.

use crate::error::{ArrayIndex, Error, Interval, Result};

/// The largest variance proxy Assumption 2.1 of \[Liu21\] allows.
pub const MAX_VARIANCE_PROXY: f64 = 0.5;

/// Observed reward = r + xi and observed cost = c + xi, with xi independent, zero-mean and of a
/// variance proxy of at most 1/2.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ObservationNoise {
    /// The observation is 1 with probability equal to its mean, else 0. Variance proxy 1/4.
    Bernoulli,
    /// The observation is its mean.
    Deterministic,
    /// Normal noise of this standard deviation; variance proxy sigma^2.
    Gaussian(GaussianNoise),
    /// Uniform noise on [-w, w]; variance proxy w^2 / 3.
    Uniform(UniformNoise),
}

/// A standard deviation with sigma^2 <= 1/2.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GaussianNoise(f64);

/// A half-width w with w^2 / 3 <= 1/2.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UniformNoise(f64);

impl GaussianNoise {
    /// The standard deviation sigma.
    #[must_use]
    pub fn sigma(&self) -> f64 {
        self.0
    }
}

impl UniformNoise {
    /// The half-width w.
    #[must_use]
    pub fn half_width(&self) -> f64 {
        self.0
    }
}

impl ObservationNoise {
    /// Normal noise. Formula: E exp(l xi) = exp(l^2 sigma^2 / 2), so Assumption 2.1 is
    /// sigma^2 <= 1/2. Deviation: none.
    pub fn gaussian(sigma: f64) -> Result<Self> {
        let sigma = in_range("sigma", sigma, MAX_VARIANCE_PROXY.sqrt())?;
        Ok(Self::Gaussian(GaussianNoise(sigma)))
    }

    /// Uniform noise on [-w, w]. Formula: E exp(l xi) = sinh(l w) / (l w) <= exp(l^2 w^2 / 6), term
    /// by term since (2n + 1)! >= 6^n n!; so Assumption 2.1 is w^2 / 3 <= 1/2. Deviation: none
    /// (sharper than the range bound w^2, which would refuse w > 0.71).
    pub fn uniform(half_width: f64) -> Result<Self> {
        let half_width = in_range("half_width", half_width, (3.0 * MAX_VARIANCE_PROXY).sqrt())?;
        Ok(Self::Uniform(UniformNoise(half_width)))
    }
}

fn in_range(name: &'static str, found: f64, high: f64) -> Result<f64> {
    let allowed = Interval::closed(0.0, high);
    if allowed.contains(found) {
        Ok(found)
    } else {
        Err(Error::OutOfRange {
            place: ArrayIndex::scalar(name),
            found,
            allowed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_outside_the_assumption_is_refused() {
        assert!(ObservationNoise::gaussian(0.5_f64.sqrt()).is_ok());
        assert!(ObservationNoise::gaussian(0.708).is_err());
        assert!(ObservationNoise::gaussian(f64::NAN).is_err());
        assert!(ObservationNoise::uniform(1.2247).is_ok());
        assert!(ObservationNoise::uniform(1.2248).is_err());
        assert!(ObservationNoise::uniform(-0.1).is_err());
    }

    #[test]
    fn the_moment_generating_function_of_the_uniform_noise_obeys_the_assumption() {
        let w = (3.0 * MAX_VARIANCE_PROXY).sqrt();
        for l in [0.01, 0.1, 1.0, 3.0, 10.0] {
            assert!((l * w).sinh() / (l * w) <= (l * l / 4.0).exp());
        }
    }
}
