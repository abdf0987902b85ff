//! Integration tests of the core crate, all in one binary.

mod architecture;
mod errors;
mod extended;
mod golden;
mod instances;
mod learning;
mod lemmas;
mod plain;
mod planning;
mod problems;
mod properties;
mod sampling;
mod sources;
mod traces;
