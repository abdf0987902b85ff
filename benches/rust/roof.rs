//! What this machine can do at most, measured: f64 multiplications with additions that are not fused (our
//! sums must not be), and loads from working sets of several sizes, both with the widest vectors there
//! are. The best of many short turns counts, because a roof is what is possible, not what is usual.
//! Prints one line of JSON; `benches/python/roof.py` makes the roofline of it.
#![allow(
    clippy::incompatible_msrv,
    reason = "512-bit vectors came to stable Rust after the version the library keeps to"
)]

use std::hint::black_box;
use std::time::Instant;

/// Turns a figure; the best counts.
const TURNS: usize = 300;
/// Vector operations of each chain in a turn.
const STEPS: usize = 2_000;
/// Independent chains, enough to hide the latency of an addition after a multiplication.
const CHAINS: usize = 12;
/// Loads in a turn, in bytes, whatever the working set.
const TRAFFIC: usize = 8 << 20;
/// Working sets, in KiB.
const SETS: [usize; 8] = [16, 32, 64, 256, 1024, 2048, 4096, 16_384];

/// The same two loops for vectors of one width.
macro_rules! width {
    ($name:ident, $feature:literal, $vector:ty, $lanes:literal,
     $set:ident, $mul:ident, $add:ident, $load:ident) => {
        mod $name {
            use super::{CHAINS, STEPS, TRAFFIC};
            use std::arch::x86_64::*;
            use std::hint::black_box;

            /// Does STEPS times CHAINS vector multiplications, each followed by an addition.
            #[target_feature(enable = $feature)]
            pub fn multiply_add() -> usize {
                let factor = black_box($set(0.999_999));
                let term = black_box($set(1e-6));
                let mut chains: [$vector; CHAINS] = black_box([$set(1.0); CHAINS]);
                for _ in 0..STEPS {
                    for chain in &mut chains {
                        *chain = $add($mul(*chain, factor), term);
                    }
                }
                black_box(chains);
                STEPS * CHAINS * $lanes
            }

            /// Reads the data as often as TRAFFIC asks for; how many bytes that were.
            #[target_feature(enable = $feature)]
            pub fn load(data: &[f64]) -> usize {
                let mut sums: [$vector; 8] = [$set(0.0); 8];
                let passes = (TRAFFIC / size_of_val(data)).max(1);
                for _ in 0..passes {
                    for block in black_box(data).chunks_exact(8 * $lanes) {
                        for (sum, part) in sums.iter_mut().zip(block.chunks_exact($lanes)) {
                            // SAFETY: the part has exactly as many numbers as the vector.
                            *sum = $add(*sum, unsafe { $load(part.as_ptr()) });
                        }
                    }
                }
                black_box(sums);
                passes * size_of_val(data)
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
width!(
    wide,
    "avx512f",
    __m512d,
    8,
    _mm512_set1_pd,
    _mm512_mul_pd,
    _mm512_add_pd,
    _mm512_loadu_pd
);
#[cfg(target_arch = "x86_64")]
width!(
    medium,
    "avx2",
    __m256d,
    4,
    _mm256_set1_pd,
    _mm256_mul_pd,
    _mm256_add_pd,
    _mm256_loadu_pd
);

/// The best rate of many turns: what a turn counts, for each nanosecond.
fn best(mut turn: impl FnMut() -> usize) -> f64 {
    let mut rate = 0.0_f64;
    for _ in 0..TURNS {
        let start = Instant::now();
        let done = black_box(turn());
        rate = rate.max(done as f64 / start.elapsed().as_nanos() as f64);
    }
    rate
}

/// One width: the rate of multiply-adds and that of loads by working set.
fn figures(bits: u32, multiply_add: impl FnMut() -> usize, load: impl Fn(&[f64]) -> usize) {
    let rate = best(multiply_add);
    let loads: Vec<String> = SETS
        .iter()
        .map(|&kib| {
            let numbers = kib * 1024 / size_of::<f64>();
            // Aligned to 64 bytes, as a careful program's data would be. Not zeros: fresh pages of
            // zeros are all one page, which never leaves the first cache.
            let room = vec![1.0_f64; numbers + 8];
            let skip = room.as_ptr().align_offset(64);
            let data = &room[skip..][..numbers];
            format!("\"{kib}\": {:.2}", best(|| load(data)))
        })
        .collect();
    println!(
        "{{\"vector_bits\": {bits}, \"multiply_adds_per_ns\": {rate:.2}, \
         \"load_bytes_per_ns_by_kib\": {{{}}}}}",
        loads.join(", ")
    );
}

fn main() {
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx512f") {
            // SAFETY: the feature has just been detected on this processor.
            figures(
                512,
                || unsafe { wide::multiply_add() },
                |data| unsafe { wide::load(data) },
            );
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the feature has just been detected on this processor.
            figures(
                256,
                || unsafe { medium::multiply_add() },
                |data| unsafe { medium::load(data) },
            );
            return;
        }
    }
    println!("{{\"error\": \"no roof is measured on processors without AVX2\"}}");
}
