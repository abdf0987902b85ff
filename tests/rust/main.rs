//! Integration tests of the core crate, all in one binary.

mod allocation;
mod architecture;
mod bits;
mod cases;
mod errors;
mod extended;
mod golden;
mod instances;
mod known_models;
mod learning;
mod lemmas;
mod missing_actions;
mod mixing;
mod mixtures;
mod net;
mod plain;
mod plain_planning;
mod planning;
mod problems;
mod properties;
mod sampling;
mod sharp;
mod sources;
mod sparse_rows;
mod traces;
