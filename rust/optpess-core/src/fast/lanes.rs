//! Eight numbers side by side, on a cache line of their own: the unit of packed storage.
//!
//! A sum over the next state for eight rows of a kernel at once needs no horizontal addition: each
//! lane is one row. The order of additions within a lane is that of [`crate::sums::dot`], so a
//! layout may be chosen for speed alone.

/// The number of lanes: one of the widest vectors of x86-64, two or four vectors of narrower machines.
pub(crate) const LANES: usize = 8;

/// Eight numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fast::isa::{Job, vectorised, with_small_constant};
    use crate::fast::lane::{column_sums, lane_sums, row_sums};
    use crate::number::Number;
    use crate::sums::dot;

    struct Sums<'a>(&'a [Lanes], &'a [f64]);

    impl Job for Sums<'_> {
        type Output = Lanes;
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
            let spread: Vec<Lanes> = values.iter().map(|&value| Lanes::all(value)).collect();
            assert_eq!(found, lane_sums::<0, Lanes>(&columns, &spread));
            for (lane, sum) in found.0.iter().enumerate() {
                let row: Vec<f64> = columns.iter().map(|column| column.0[lane]).collect();
                assert_eq!(*sum, dot(&row, &values));
                assert_eq!(*sum, row_sums::<0, f64>(&row, &values));
            }
        }
    }
}
