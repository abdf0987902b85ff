//! Sampling: streams of random numbers, and episodes drawn from a known model.

mod cumulative;
mod environment;
mod streams;

pub(crate) use cumulative::cumulate;
pub use environment::TabularEnvironment;
pub use streams::{PlainUniforms, StreamSet, Streams, Uniforms};
