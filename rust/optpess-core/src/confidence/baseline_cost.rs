//! The confidence radius of the average cost of pi0 in Appendix E of \[Liu21\].

use serde::{Deserialize, Serialize};

/// How far the average cost of k episodes of pi0 may be from its mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CostRadius {
    /// Valid for the paper's noise.
    ///
    /// Formula: sqrt((H^2/2 + H) log(2K/d) / k). Derivation: given its path, an episode's cost is a
    /// sum of H independent terms of variance proxy 1/2; its mean given the path lies in \[0, H\],
    /// proxy H^2/4; proxies add to H^2/4 + H/2, and Hoeffding's bound is taken over k <= K and both
    /// sides. Deviation from \[Liu21\], Appendix E: the paper's radius does not cover
    /// (docs/paper-notes.md).
    SubGaussian,
    /// The paper's, sqrt(log(2K/d) / (k H)); it under-covers, so it carries no guarantee.
    Paper,
}

impl CostRadius {
    /// The radius after k >= 1 episodes.
    #[must_use]
    pub fn at(self, k: u64, horizon: usize, num_episodes: u64, failure_probability: f64) -> f64 {
        let horizon = horizon as f64;
        let log = (2.0 * num_episodes as f64 / failure_probability).ln();
        match self {
            Self::SubGaussian => ((horizon * horizon / 2.0 + horizon) * log / k as f64).sqrt(),
            Self::Paper => (log / (k as f64 * horizon)).sqrt(),
        }
    }

    /// Whether the radius covers with the probability it claims.
    #[must_use]
    pub fn is_valid(self) -> bool {
        matches!(self, Self::SubGaussian)
    }
}
