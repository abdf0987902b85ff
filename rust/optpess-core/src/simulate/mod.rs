//! Owns sampling: randomness and episodes drawn from a known model. Refuses learning.

mod cumulative;
mod seeds;
mod tabular;

pub use seeds::{Streams, UniformStream};
pub use tabular::TabularEnvironment;
