//! Sets of what is plausible after some observations.

mod kernel_box;

pub use kernel_box::KernelBox;
