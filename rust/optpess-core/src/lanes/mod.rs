//! Owns the unit of wide storage: eight numbers side by side, on a cache line of their own. Refuses to
//! know what they stand for.
//!
//! A sum over the next state for eight rows of a kernel at once needs no horizontal addition: each
//! lane is one row. The order of additions within a lane is that of [`crate::vectorised::dot`], so a
//! layout may be chosen for speed alone.

mod rows;

pub(crate) use rows::RowBlocks;

use serde::{Deserialize, Serialize};

/// How many numbers stand side by side: the widest vector of x86-64, two or four of narrower machines.
pub(crate) const LANES: usize = 8;

/// Eight numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[repr(C, align(64))]
pub(crate) struct Lanes(pub(crate) [f64; LANES]);

/// The numbers one after the other.
#[inline(always)]
pub(crate) fn flat(lanes: &[Lanes]) -> &[f64] {
    // SAFETY: `Lanes` is eight f64 without padding (64 bytes, checked below), so `lanes.len() * LANES`
    // numbers lie there, initialised and borrowed for as long as the result.
    unsafe { std::slice::from_raw_parts(lanes.as_ptr().cast::<f64>(), lanes.len() * LANES) }
}

/// The numbers one after the other, to be written.
#[inline(always)]
pub(crate) fn flat_mut(lanes: &mut [Lanes]) -> &mut [f64] {
    // SAFETY: as in `flat`; the exclusive borrow passes on to the result.
    unsafe { std::slice::from_raw_parts_mut(lanes.as_mut_ptr().cast::<f64>(), lanes.len() * LANES) }
}

const _: () = assert!(size_of::<Lanes>() == LANES * size_of::<f64>());

/// For each lane, sum over i of `columns[i]` times `values[i]`: the bits of [`crate::vectorised::dot`].
/// Where the number of columns is known beforehand, N says it and the loops are laid out flat; N = 0
/// says it is not.
#[inline(always)]
pub(crate) fn column_sums<const N: usize>(columns: &[Lanes], values: &[f64]) -> [f64; LANES] {
    products_in_order::<N, _, _>(columns, values, |column, value| {
        column.0.map(|entry| entry * value)
    })
}

/// [`column_sums`] for values that differ between the lanes.
#[inline(always)]
pub(crate) fn lane_sums<const N: usize>(columns: &[Lanes], values: &[Lanes]) -> [f64; LANES] {
    products_in_order::<N, _, _>(columns, values, |column, value| {
        std::array::from_fn(|lane| column.0[lane] * value.0[lane])
    })
}

/// [`column_sums`] for factors that are the same in all lanes and values that differ.
#[inline(always)]
pub(crate) fn row_sums<const N: usize>(row: &[f64], values: &[Lanes]) -> [f64; LANES] {
    products_in_order::<N, _, _>(row, values, |factor, value| {
        value.0.map(|entry| factor * entry)
    })
}

#[inline(always)]
fn products_in_order<const N: usize, A, B>(
    first: &[A],
    second: &[B],
    product: impl Fn(&A, &B) -> [f64; LANES],
) -> [f64; LANES] {
    if N > 0
        && let Some(first) = first.first_chunk::<N>()
        && let Some(second) = second.first_chunk::<N>()
    {
        return sums_in_order(first, second, product);
    }
    sums_in_order(first, &second[..first.len()], product)
}

#[inline(always)]
fn sums_in_order<A, B>(
    first: &[A],
    second: &[B],
    product: impl Fn(&A, &B) -> [f64; LANES],
) -> [f64; LANES] {
    const RUNNING: usize = 4;
    let (body, rest) = first.as_chunks::<RUNNING>();
    let (factors, last_factors) = second.as_chunks::<RUNNING>();
    let mut sums = [0.0; LANES];
    if !body.is_empty() {
        let mut running = [[0.0; LANES]; RUNNING];
        for (four, factor) in body.iter().zip(factors) {
            for (sums, (a, b)) in running.iter_mut().zip(four.iter().zip(factor)) {
                add(sums, product(a, b));
            }
        }
        let [one, two, three, four] = running;
        for lane in 0..LANES {
            sums[lane] = (one[lane] + three[lane]) + (two[lane] + four[lane]);
        }
    }
    for (a, b) in rest.iter().zip(last_factors) {
        add(&mut sums, product(a, b));
    }
    sums
}

/// sums += addends, lane by lane.
#[inline(always)]
pub(crate) fn add(sums: &mut [f64; LANES], addends: [f64; LANES]) {
    for lane in 0..LANES {
        sums[lane] += addends[lane];
    }
}

/// Runs `$body` with the constant `$N` set to `$number` where that is small, else to 0.
macro_rules! with_small_constant {
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
    use super::*;
    use crate::vectorised::{Job, dot, vectorised};

    struct Sums<'a>(&'a [Lanes], &'a [f64]);

    impl Job for Sums<'_> {
        type Output = [f64; LANES];
        #[inline(always)]
        fn run(self) -> Self::Output {
            column_sums::<0>(self.0, self.1)
        }
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "identical bits are the claim")]
    fn every_lane_has_the_bits_of_a_dot_product() {
        for len in 0..23 {
            let mut columns = vec![Lanes::default(); len];
            for (place, entry) in flat_mut(&mut columns).iter_mut().enumerate() {
                *entry = (place as f64).sin();
            }
            let values: Vec<f64> = (0..len).map(|i| 1.0 / (i as f64 + 3.0) - 0.2).collect();
            let found = vectorised(Sums(&columns, &values));
            let known = with_small_constant!(len, N => column_sums::<N>(&columns, &values));
            assert_eq!(found, known);
            for (lane, sum) in found.iter().enumerate() {
                let row: Vec<f64> = columns.iter().map(|column| column.0[lane]).collect();
                assert_eq!(*sum, dot(&row, &values));
            }
        }
    }
}
