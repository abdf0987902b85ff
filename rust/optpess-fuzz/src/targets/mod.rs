//! One file a target: what is done with an input, and valid inputs to begin with.

mod checkpoint;
mod learner;
mod model;
mod plan;
mod rollout;
mod trajectory;

/// One place where numbers or bytes from outside come in.
pub struct Target {
    /// On the command line.
    pub name: &'static str,
    /// Panics if the input is a finding.
    pub run: fn(&[u8]),
    /// Valid inputs.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All of them.
pub const TARGETS: [Target; 6] = [
    model::TARGET,
    learner::TARGET,
    trajectory::TARGET,
    rollout::TARGET,
    plan::TARGET,
    checkpoint::TARGET,
];

/// The length of what stands before a stored value: a tag with a version, and a checksum.
const HEADER: usize = 16;

/// A value with the header that the core reads before it: an input that is changed has a right checksum, so that what
/// comes after is reached. The hash is that of Fowler, Noll and Vo, variant 1a.
fn sealed(value: &[u8]) -> Vec<u8> {
    let checksum = value.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    [b"optpess\x02", &checksum.to_le_bytes()[..], value].concat()
}

/// Inputs of all the same byte and of counted ones, for targets that read numbers one by one.
fn plain_seeds() -> Vec<Vec<u8>> {
    let counted = |factor: u8| {
        (0..=255_u8)
            .map(move |byte| byte.wrapping_mul(factor))
            .collect()
    };
    let plain = [0, 1, 5].map(|byte| vec![byte; 200]);
    plain
        .into_iter()
        .chain([1, 3, 7, 29].map(counted))
        .collect()
}
