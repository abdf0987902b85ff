//! The deviation radii of the good event (Appendix A of \[Liu21\]), as functions of the visits of a row.

use crate::confidence::constants::confidence_radius;
use crate::number::from_count;

/// The radii of one row: how far each average may be from its mean on the good event.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeviationRadii {
    visits: f64,
    log_factor: f64,
}

impl DeviationRadii {
    /// The radii of a row visited N times; `log_factor` is Z.
    #[must_use]
    pub fn after(visits: u64, log_factor: f64) -> Self {
        let visits = from_count(visits.max(1));
        Self { visits, log_factor }
    }

    /// Of the average reward, the average cost and each frequency.
    ///
    /// Formula: beta = sqrt(Z / max(N, 1)). Citation: \[Liu21\], Appendix A. Deviation: none.
    #[must_use]
    pub fn plain(&self) -> f64 {
        confidence_radius(self.visits, self.log_factor)
    }

    /// Of the frequency of a successor whose true probability is P.
    ///
    /// Formula: sqrt(2 P Z / max(N, 1)) + Z / (3 max(N, 1)). Citation: \[Liu21\], Appendix A (Bernstein).
    /// Deviation: none.
    #[must_use]
    pub fn bernstein(&self, probability: f64) -> f64 {
        (2.0 * probability * self.log_factor / self.visits).sqrt()
            + self.log_factor / (3.0 * self.visits)
    }
}
