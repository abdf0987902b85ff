//! Owns sampling: randomness and episodes drawn from a known model. Refuses learning.

mod seeds;
mod tabular;

pub use seeds::Streams;
pub use tabular::TabularEnvironment;
