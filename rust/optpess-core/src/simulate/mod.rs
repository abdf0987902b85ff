//! Owns sampling: randomness and episodes drawn from a known model. Refuses learning.

mod chacha;
mod cumulative;
mod seeds;
mod side_by_side;
mod tabular;

pub(crate) use seeds::WideStreams;
pub use seeds::{Streams, UniformStream};
pub(crate) use side_by_side::WideEnvironment;
pub use tabular::TabularEnvironment;
