//! Integration tests of the core crate.
