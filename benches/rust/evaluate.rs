//! Timings of policy evaluation. The measurements are added with the code they time.

fn main() {}
