//! Instruction sets: which one is used, and functions compiled for each of them, so that one portable build uses the
//! wide vectors of the machine it runs on. No fused multiply-add and no reordering of sums: every set gives the same
//! bits. Tests can force each set ([`force`]).

use std::sync::atomic::{AtomicU8, Ordering};

use crate::sums::dot;

/// A computation to be compiled once for each instruction set. Implementations mark `run` as
/// `#[inline(always)]`, so that the body (and what it inlines) is compiled inside the wrapper that
/// enables the features.
pub(crate) trait Job {
    /// What the computation returns.
    type Output;
    /// The computation.
    fn run(self) -> Self::Output;
}

/// The instruction sets that jobs are compiled for, from the narrowest vectors to the widest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum InstructionSet {
    /// What every processor of the architecture has.
    Portable = 1,
    /// 256-bit vectors of x86-64.
    Avx2 = 2,
    /// 512-bit vectors of x86-64: the parts F, VL and DQ.
    Avx512 = 3,
}

/// The error for an instruction set that this processor lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this processor lacks the instruction set {0:?}")]
pub struct Unavailable(pub InstructionSet);

/// The instruction set in use, as its number; 0 until it is detected. Only sets that this processor has are stored.
static IN_USE: AtomicU8 = AtomicU8::new(0);

/// The instruction sets of this processor, the narrowest first.
#[must_use]
pub fn available() -> &'static [InstructionSet] {
    use InstructionSet::{Avx2, Avx512, Portable};
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx2") {
            return if std::arch::is_x86_feature_detected!("avx512f")
                && std::arch::is_x86_feature_detected!("avx512vl")
                && std::arch::is_x86_feature_detected!("avx512dq")
            {
                &[Portable, Avx2, Avx512]
            } else {
                &[Portable, Avx2]
            };
        }
    }
    &[Portable]
}

/// For tests: makes the whole process use one instruction set, or with None the widest again. Results have the same
/// bits with every set, so computations in other threads are not disturbed. Refuses a set that this processor lacks.
pub fn force(set: Option<InstructionSet>) -> Result<(), Unavailable> {
    let number = match set {
        None => 0,
        Some(set) if available().contains(&set) => set as u8,
        Some(set) => return Err(Unavailable(set)),
    };
    IN_USE.store(number, Ordering::Relaxed);
    Ok(())
}

/// The number of the instruction set to use: the widest, unless another was forced.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
#[inline(always)]
fn in_use() -> u8 {
    match IN_USE.load(Ordering::Relaxed) {
        0 => detect(),
        number => number,
    }
}

#[cold]
fn detect() -> u8 {
    // No indexing: if this could panic, loops around it would keep their state in memory.
    let widest = available()
        .last()
        .map_or(InstructionSet::Portable as u8, |&set| set as u8);
    // A set that was forced in the meantime is kept.
    let stored = IN_USE.compare_exchange(0, widest, Ordering::Relaxed, Ordering::Relaxed);
    stored.map_or_else(|forced| forced, |_| widest)
}

/// Runs a job with the widest vectors this machine has.
#[inline]
pub(crate) fn vectorised<J: Job>(job: J) -> J::Output {
    #[cfg(target_arch = "x86_64")]
    {
        let set = in_use();
        if set == InstructionSet::Avx512 as u8 {
            // SAFETY: `in_use` names only sets that were detected on this processor.
            return unsafe { with_avx512(job) };
        }
        if set == InstructionSet::Avx2 as u8 {
            // SAFETY: `in_use` names only sets that were detected on this processor.
            return unsafe { with_avx2(job) };
        }
    }
    job.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn with_avx2<J: Job>(job: J) -> J::Output {
    job.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512dq")]
fn with_avx512<J: Job>(job: J) -> J::Output {
    job.run()
}

/// Asks for an element that will soon be read or written, so that it is in the caches by then. Does nothing on
/// processors other than x86-64.
#[inline(always)]
pub(crate) fn ask_for<T>(slice: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let place = slice.as_ptr().wrapping_add(index);
        // SAFETY: asking for memory reads none of it; any address will do.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, index);
}

/// out(i) = <row i, y> for `rows` laid out row after row, to the same bits as [`dot`].
#[inline]
pub(crate) fn dot_rows(rows: &[f64], y: &[f64], out: &mut [f64]) {
    #[cfg(target_arch = "x86_64")]
    if in_use() >= InstructionSet::Avx2 as u8 {
        // SAFETY: `in_use` names only sets that were detected on this processor; every one from AVX2 on has it.
        unsafe { dot_rows_with_avx2(rows, y, out) };
        return;
    }
    for (target, row) in out.iter_mut().zip(rows.chunks_exact(y.len())) {
        *target = dot(row, y);
    }
}

/// Four rows at a time: each part of y is read once for all of them, and their four lane sums are reduced together.
/// Written by hand, because the compiler does neither; measured at 20 states, two thirds of the time.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn dot_rows_with_avx2(rows: &[f64], y: &[f64], out: &mut [f64]) {
    use std::arch::x86_64::*;
    const LANES: usize = 4;
    let len = y.len();
    let (blocks, last_targets) = out.as_chunks_mut::<4>();
    let mut four_rows = rows.chunks_exact(4 * len);
    for (targets, block) in blocks.iter_mut().zip(&mut four_rows) {
        let (upper, lower) = block.split_at(2 * len);
        let (first, second) = upper.split_at(len);
        let (third, fourth) = lower.split_at(len);
        let mut sums = [_mm256_setzero_pd(); 4];
        let whole = len - len % LANES;
        let mut start = 0;
        while start < whole {
            let part = four_of(y, start);
            let products = _mm256_mul_pd(four_of(first, start), part);
            sums[0] = _mm256_add_pd(sums[0], products);
            let products = _mm256_mul_pd(four_of(second, start), part);
            sums[1] = _mm256_add_pd(sums[1], products);
            let products = _mm256_mul_pd(four_of(third, start), part);
            sums[2] = _mm256_add_pd(sums[2], products);
            let products = _mm256_mul_pd(four_of(fourth, start), part);
            sums[3] = _mm256_add_pd(sums[3], products);
            start += LANES;
        }
        // Lanes 0 + 2 and 1 + 3 of each row, then both of them: rows 0, 2, 1, 3.
        let upper = _mm256_add_pd(
            _mm256_permute2f128_pd::<0x20>(sums[0], sums[1]),
            _mm256_permute2f128_pd::<0x31>(sums[0], sums[1]),
        );
        let lower = _mm256_add_pd(
            _mm256_permute2f128_pd::<0x20>(sums[2], sums[3]),
            _mm256_permute2f128_pd::<0x31>(sums[2], sums[3]),
        );
        let mut total = _mm256_permute4x64_pd::<0b11_01_10_00>(_mm256_hadd_pd(upper, lower));
        for at in whole..len {
            let column = _mm256_set_pd(fourth[at], third[at], second[at], first[at]);
            total = _mm256_add_pd(total, _mm256_mul_pd(column, _mm256_set1_pd(y[at])));
        }
        // SAFETY: an array of four elements has room for an unaligned store of four.
        unsafe { _mm256_storeu_pd(targets.as_mut_ptr(), total) };
    }
    let done = 4 * blocks.len();
    let last_rows = rows.chunks_exact(len).skip(done);
    for (target, row) in last_targets.iter_mut().zip(last_rows) {
        *target = dot(row, y);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
fn four_of(x: &[f64], start: usize) -> std::arch::x86_64::__m256d {
    let part = &x[start..][..4];
    // SAFETY: four elements are what an unaligned load reads.
    unsafe { std::arch::x86_64::_mm256_loadu_pd(part.as_ptr()) }
}

/// Calls `visit` with each row of `width` entries. Policies have short rows; a length that is known at compile time
/// makes loops over them three times as fast.
#[inline(always)]
pub(crate) fn each_row(data: &[f64], width: usize, mut visit: impl FnMut(&[f64])) {
    macro_rules! of_width {
        ($($known:literal)*) => {
            match width {
                $($known => for row in data.as_chunks::<$known>().0 { visit(row); })*
                _ => for row in data.chunks_exact(width) { visit(row); }
            }
        };
    }
    of_width!(2 3 4 5 6 7 8);
}

/// Runs `$body` with the constant `$N` set to `$number` if that is small, else to 0. With `if`, the condition decides
/// whether the body is compiled for each small number at all.
macro_rules! with_small_constant {
    (if $worth:expr, $number:expr, $N:ident => $body:expr) => {
        if $worth {
            with_small_constant!($number, $N => $body)
        } else {
            const $N: usize = 0;
            $body
        }
    };
    ($number:expr, $N:ident => $body:expr) => {
        with_small_constant!(@arms $number, $N => $body; 1 2 3 4 5 6 7 8 9 10 11 12 16 20)
    };
    (@arms $number:expr, $N:ident => $body:expr; $($small:literal)*) => {
        match $number {
            $($small => { const $N: usize = $small; $body })*
            _ => { const $N: usize = 0; $body }
        }
    };
}
pub(crate) use with_small_constant;

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, PoisonError};

    use super::*;
    use crate::sums::dot_two;

    /// Calls `body` with each instruction set of this processor in use, one test at a time.
    fn under_each_set(body: impl Fn()) {
        static FORCING: Mutex<()> = Mutex::new(());
        let forcing = FORCING.lock().unwrap_or_else(PoisonError::into_inner);
        for &set in available() {
            assert_eq!(force(Some(set)), Ok(()));
            body();
        }
        assert_eq!(force(None), Ok(()));
        drop(forcing);
    }

    struct Dot<'a>(&'a [f64], &'a [f64]);

    impl Job for Dot<'_> {
        type Output = f64;
        #[inline(always)]
        fn run(self) -> f64 {
            dot(self.0, self.1)
        }
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "identical bits are the claim")]
    fn every_path_gives_the_same_bits() {
        for len in 0..70 {
            let x: Vec<f64> = (0..len).map(|i| 1.0 / f64::from(i + 3)).collect();
            let y: Vec<f64> = (0..len).map(|i| f64::from(i * i) * 0.37 - 1.0).collect();
            under_each_set(|| assert_eq!(vectorised(Dot(&x, &y)), dot(&x, &y)));
            assert_eq!(dot_two(&x, &y, &x), (dot(&x, &y), dot(&x, &x)));
        }
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "identical bits are the claim")]
    fn many_rows_at_once_give_the_bits_of_each_alone() {
        for len in 1..23 {
            let y: Vec<f64> = (0..len).map(|i| 1.0 / f64::from(i + 3)).collect();
            for num_rows in 0..10 {
                let rows: Vec<f64> = (0..len * num_rows).map(|i| f64::from(i).sin()).collect();
                under_each_set(|| {
                    let mut out = vec![0.0; num_rows as usize];
                    dot_rows(&rows, &y, &mut out);
                    for (found, row) in out.iter().zip(rows.chunks_exact(y.len())) {
                        assert_eq!(*found, dot(row, &y));
                    }
                });
            }
        }
    }

    #[test]
    fn a_set_that_the_processor_lacks_is_refused() {
        use InstructionSet::{Avx2, Avx512, Portable};
        for set in [Portable, Avx2, Avx512] {
            let found = force(Some(set));
            let expected = available().contains(&set);
            assert_eq!(
                found,
                if expected {
                    Ok(())
                } else {
                    Err(Unavailable(set))
                }
            );
        }
        assert_eq!(force(None), Ok(()));
        // Other tests may force another set meanwhile, but never one that is lacking.
        assert!(available().iter().any(|&set| set as u8 == in_use()));
    }
}
