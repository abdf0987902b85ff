//! Pseudo-random numbers and simulated sequences for the unit tests of this module.

/// Numbers in [0, 1), the same on every machine.
pub(crate) fn numbers(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    for _ in 0..20 {
        next();
    }
    next
}

/// One observation in [0, 1] with this mean: 0/1 at spread 1, nearer to the mean below.
pub(crate) fn observation(uniform: f64, mean: f64, spread: f64) -> f64 {
    let bernoulli = if uniform < mean { 1.0 } else { 0.0 };
    mean + spread * (bernoulli - mean)
}

/// The share of simulated sequences in which `outside(n, sum, mean)` is ever true.
pub(crate) fn share_that_leaves(
    sequences: u64,
    length: u32,
    mean: f64,
    spread: f64,
    outside: impl Fn(f64, f64, f64) -> bool,
) -> f64 {
    let left = (0..sequences).filter(|&seed| {
        let (mut next, mut sum) = (numbers(seed + 1), 0.0);
        (1..=length).any(|visits| {
            sum += observation(next(), mean, spread);
            outside(f64::from(visits), sum.min(f64::from(visits)), mean)
        })
    });
    left.count() as f64 / sequences as f64
}
