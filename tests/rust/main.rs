//! Integration tests of the core crate, all in one binary.

mod architecture;
mod errors;
mod golden;
mod instances;
mod problems;
mod properties;
mod sampling;
mod sources;
