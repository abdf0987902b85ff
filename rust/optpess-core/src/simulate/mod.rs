//! Owns sampling: randomness and episodes drawn from a known model. Refuses learning.

mod chacha;
mod cumulative;
mod seeds;
mod side_by_side;
mod tabular;

pub(crate) use seeds::BatchStreams;
pub use seeds::{Streams, UniformStream};
pub(crate) use side_by_side::BatchEnvironment;
pub use tabular::TabularEnvironment;
