//! Sets of plausible kernels.

mod kernel_box;

pub use kernel_box::KernelBox;
