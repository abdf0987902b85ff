//! The problems that the benches share.
#![allow(missing_docs, reason = "read by the benches beside it alone")]

pub mod grid;
pub mod instances;
