//! Selection among lanes, and sums of lanes in a fixed order.

use std::fmt::Debug;

use crate::fast::lanes::{LANES, Lanes};
use crate::number::Number;

/// A [`Number`] with indices and masks of as many lanes.
pub(crate) trait Lane: Number + Debug + Send + Sync {
    /// One index a lane.
    type Indices: AsRef<[u32]> + Copy + Default + Debug + PartialEq + Send + Sync;
    /// One of the numbers, to be written.
    fn lane_mut(&mut self, lane: usize) -> &mut f64;

    /// A type that the compiler keeps in one register between two iterations of a loop. It splits eight floats and
    /// does not always join them again.
    type Register: Copy;
    /// The numbers as a register.
    fn to_register(self) -> Self::Register;
    /// The numbers of a register.
    fn from_register(held: Self::Register) -> Self;

    /// A set of lanes.
    type Mask: Copy;
    /// How many scans visit each lane's row of a table of `num_rows` rows.
    fn rows_to_scan(num_rows: usize) -> usize;
    /// Scan `visit` of [`Lane::rows_to_scan`]: a row, and the mask of the lanes whose index is that row. Every lane
    /// is in exactly one mask. Scans the table's rows or the lanes, whichever are fewer.
    fn scan_row(indices: &Self::Indices, num_rows: usize, visit: usize) -> (usize, Self::Mask);
    /// The numbers of `yes` in the lanes of the mask, those of `no` in the others.
    fn select(chosen: Self::Mask, yes: Self, no: Self) -> Self;
    /// Replaces the numbers in the lanes of the mask by those of `yes`.
    #[inline(always)]
    fn select_into(held: &mut Self::Register, chosen: Self::Mask, yes: Self) {
        *held = Self::select(chosen, yes, Self::from_register(*held)).to_register();
    }
    /// [`Lane::select`] for indices.
    fn select_indices(chosen: Self::Mask, yes: Self::Indices, no: Self::Indices) -> Self::Indices;
    /// [`Number::select_greater`] for indices.
    fn select_greater_indices(pair: (Self, Self), yes: u32, no: Self::Indices) -> Self::Indices;
    /// f of each index.
    fn from_indices(indices: &Self::Indices, f: impl Fn(u32) -> f64) -> Self;
    /// f of each lane's number.
    fn indices(f: impl Fn(usize) -> u32) -> Self::Indices;
}

impl Lane for f64 {
    type Indices = [u32; 1];

    #[inline(always)]
    fn lane_mut(&mut self, _: usize) -> &mut f64 {
        self
    }

    type Register = f64;

    #[inline(always)]
    fn to_register(self) -> f64 {
        self
    }

    #[inline(always)]
    fn from_register(held: f64) -> Self {
        held
    }

    type Mask = ();

    #[inline(always)]
    fn rows_to_scan(_: usize) -> usize {
        1
    }

    #[inline(always)]
    fn scan_row(indices: &Self::Indices, _: usize, _: usize) -> (usize, Self::Mask) {
        (indices[0] as usize, ())
    }

    #[inline(always)]
    fn select((): (), yes: Self, _: Self) -> Self {
        yes
    }

    #[inline(always)]
    fn select_indices((): (), yes: Self::Indices, _: Self::Indices) -> Self::Indices {
        yes
    }

    #[inline(always)]
    fn select_greater_indices((x, y): (Self, Self), yes: u32, no: Self::Indices) -> Self::Indices {
        [if x > y { yes } else { no[0] }]
    }

    #[inline(always)]
    fn from_indices(indices: &Self::Indices, f: impl Fn(u32) -> f64) -> Self {
        f(indices[0])
    }

    #[inline(always)]
    fn indices(f: impl Fn(usize) -> u32) -> Self::Indices {
        [f(0)]
    }
}

/// The lanes whose key is the wanted one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LaneMask {
    keys: [u32; LANES],
    wanted: u32,
}

impl Number for Lanes {
    const COUNT: usize = LANES;

    #[inline(always)]
    fn lane(&self, lane: usize) -> f64 {
        self.0[lane]
    }

    #[inline(always)]
    fn from_lanes(number: impl Fn(usize) -> f64) -> Self {
        Self(std::array::from_fn(number))
    }

    #[inline(always)]
    fn all(number: f64) -> Self {
        Self([number; LANES])
    }

    #[inline(always)]
    fn map(mut self, f: impl Fn(f64) -> f64) -> Self {
        for lane in 0..LANES {
            self.0[lane] = f(self.0[lane]);
        }
        self
    }

    #[inline(always)]
    fn zip(mut self, other: Self, f: impl Fn(f64, f64) -> f64) -> Self {
        for lane in 0..LANES {
            self.0[lane] = f(self.0[lane], other.0[lane]);
        }
        self
    }

    #[inline(always)]
    fn select_greater((x, y): (Self, Self), yes: Self, mut no: Self) -> Self {
        for lane in 0..LANES {
            no.0[lane] = if x.0[lane] > y.0[lane] {
                yes.0[lane]
            } else {
                no.0[lane]
            };
        }
        no
    }
}

impl Lane for Lanes {
    type Indices = [u32; LANES];

    #[inline(always)]
    fn lane_mut(&mut self, lane: usize) -> &mut f64 {
        &mut self.0[lane]
    }

    #[cfg(target_arch = "x86_64")]
    type Register = std::arch::x86_64::__m512d;
    #[cfg(not(target_arch = "x86_64"))]
    type Register = [f64; LANES];

    #[inline(always)]
    fn to_register(self) -> Self::Register {
        // SAFETY: both types are eight floats, of which any are valid.
        #[allow(clippy::useless_transmute, reason = "elsewhere it is the same type")]
        unsafe {
            std::mem::transmute::<[f64; LANES], Self::Register>(self.0)
        }
    }

    #[inline(always)]
    fn from_register(held: Self::Register) -> Self {
        // SAFETY: both types are eight floats, of which any are valid.
        #[allow(clippy::useless_transmute, reason = "elsewhere it is the same type")]
        Self(unsafe { std::mem::transmute::<Self::Register, [f64; LANES]>(held) })
    }

    type Mask = LaneMask;

    #[inline(always)]
    fn rows_to_scan(num_rows: usize) -> usize {
        num_rows.min(LANES)
    }

    #[inline(always)]
    fn scan_row(indices: &Self::Indices, num_rows: usize, visit: usize) -> (usize, Self::Mask) {
        let wanted = visit as u32;
        if num_rows <= LANES {
            let keys = *indices;
            return (visit, LaneMask { keys, wanted });
        }
        let keys = std::array::from_fn(|lane| lane as u32);
        (indices[visit] as usize, LaneMask { keys, wanted })
    }

    #[inline(always)]
    fn select(chosen: LaneMask, yes: Self, mut no: Self) -> Self {
        for lane in 0..LANES {
            no.0[lane] = if chosen.keys[lane] == chosen.wanted {
                yes.0[lane]
            } else {
                no.0[lane]
            };
        }
        no
    }

    #[inline(always)]
    fn select_indices(
        chosen: LaneMask,
        yes: Self::Indices,
        mut no: Self::Indices,
    ) -> Self::Indices {
        for lane in 0..LANES {
            no[lane] = if chosen.keys[lane] == chosen.wanted {
                yes[lane]
            } else {
                no[lane]
            };
        }
        no
    }

    #[inline(always)]
    fn select_greater_indices(
        (x, y): (Self, Self),
        yes: u32,
        mut no: Self::Indices,
    ) -> Self::Indices {
        for lane in 0..LANES {
            no[lane] = if x.0[lane] > y.0[lane] { yes } else { no[lane] };
        }
        no
    }

    #[inline(always)]
    fn from_indices(indices: &Self::Indices, f: impl Fn(u32) -> f64) -> Self {
        Self(indices.map(f))
    }

    #[inline(always)]
    fn indices(f: impl Fn(usize) -> u32) -> Self::Indices {
        std::array::from_fn(f)
    }
}

/// sum over i of `columns[i]` times `values[i]`, lane by lane: the bits of [`crate::sums::dot`].
/// N is the number of columns if it is known at compile time, so that the loops are unrolled; else 0.
#[inline(always)]
pub(crate) fn column_sums<const N: usize>(columns: &[Lanes], values: &[f64]) -> Lanes {
    products_in_order::<N, _, _, _>(columns, values, |column, value| column.map(|x| x * value))
}

/// [`column_sums`] for values that differ between the lanes.
#[inline(always)]
pub(crate) fn lane_sums<const N: usize, V: Lane>(columns: &[V], values: &[V]) -> V {
    products_in_order::<N, _, _, _>(columns, values, |column, value| {
        column.zip(*value, |x, y| x * y)
    })
}

/// [`column_sums`] for factors that are the same in all lanes and values that differ.
#[inline(always)]
pub(crate) fn row_sums<const N: usize, V: Lane>(row: &[f64], values: &[V]) -> V {
    products_in_order::<N, _, _, _>(row, values, |factor, value| value.map(|y| factor * y))
}

#[inline(always)]
fn products_in_order<const N: usize, A, B, V: Lane>(
    first: &[A],
    second: &[B],
    product: impl Fn(&A, &B) -> V,
) -> V {
    if N > 0
        && let Some(first) = first.first_chunk::<N>()
        && let Some(second) = second.first_chunk::<N>()
    {
        return sums_in_order::<true, _, _, _>(first, second, product);
    }
    sums_in_order::<false, _, _, _>(first, &second[..first.len()], product)
}

/// `UNROLLED` where the lengths are constants of the caller: the first five groups of four are then written out. Whether
/// the compiler unrolls a loop of that length by itself depends on its surroundings.
#[inline(always)]
fn sums_in_order<const UNROLLED: bool, A, B, V: Lane>(
    first: &[A],
    second: &[B],
    product: impl Fn(&A, &B) -> V,
) -> V {
    const RUNNING: usize = 4;
    let (body, rest) = first.as_chunks::<RUNNING>();
    let (factors, last_factors) = second.as_chunks::<RUNNING>();
    let mut sum = V::default();
    if !body.is_empty() {
        let mut running = [V::default(); RUNNING];
        macro_rules! add_group {
            ($group:expr) => {
                let (four, factor) = (&body[$group], &factors[$group]);
                for lane in 0..RUNNING {
                    running[lane] = running[lane].plus(product(&four[lane], &factor[lane]));
                }
            };
        }
        macro_rules! add_groups {
            ($($group:literal)*) => { $(if $group < body.len() { add_group!($group); })* };
        }
        let groups = body.len().min(factors.len());
        if UNROLLED && groups <= 5 {
            add_groups!(0 1 2 3 4);
        } else {
            for group in 0..groups {
                add_group!(group);
            }
        }
        let [one, two, three, four] = running;
        sum = one.plus(three).plus(two.plus(four));
    }
    for (a, b) in rest.iter().zip(last_factors) {
        sum = sum.plus(product(a, b));
    }
    sum
}
