//! Numbers that are one or several, and sums of them in a fixed order.

use std::fmt::Debug;

use crate::lanes::{LANES, Lanes};

/// One number, or several side by side that are treated alike.
pub(crate) trait Wide: Copy + Default + Debug + Send + Sync {
    /// How many numbers there are.
    const COUNT: usize;
    /// As many indices.
    type Indices: AsRef<[u32]> + Copy + Default + Debug + PartialEq + Send + Sync;
    /// The same number everywhere.
    fn all(number: f64) -> Self;
    /// f of each number.
    fn map(self, f: impl Fn(f64) -> f64) -> Self;
    /// f of each number and its partner.
    fn zip(self, other: Self, f: impl Fn(f64, f64) -> f64) -> Self;
    /// Where the first of `pair` is greater than the second the number of `yes`, else that of `no`.
    fn choose(pair: (Self, Self), yes: Self, no: Self) -> Self;
    /// The numbers, whole and not negative, as indices.
    fn to_indices(self) -> Self::Indices;
    /// Indices as numbers.
    fn from_indices(indices: &Self::Indices) -> Self;
    /// One of the numbers.
    fn lane(&self, lane: usize) -> f64;
    /// One of the numbers, to be written.
    fn lane_mut(&mut self, lane: usize) -> &mut f64;

    /// The sums.
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self.zip(other, |a, b| a + b)
    }
}

impl Wide for f64 {
    const COUNT: usize = 1;
    type Indices = [u32; 1];

    #[inline(always)]
    fn to_indices(self) -> Self::Indices {
        [self as u32]
    }

    #[inline(always)]
    fn from_indices(indices: &Self::Indices) -> Self {
        f64::from(indices[0])
    }

    #[inline(always)]
    fn all(number: f64) -> Self {
        number
    }

    #[inline(always)]
    fn map(self, f: impl Fn(f64) -> f64) -> Self {
        f(self)
    }

    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(f64, f64) -> f64) -> Self {
        f(self, other)
    }

    #[inline(always)]
    fn choose((x, y): (Self, Self), yes: Self, no: Self) -> Self {
        if x > y { yes } else { no }
    }

    #[inline(always)]
    fn lane(&self, _: usize) -> f64 {
        *self
    }

    #[inline(always)]
    fn lane_mut(&mut self, _: usize) -> &mut f64 {
        self
    }
}

impl Wide for Lanes {
    const COUNT: usize = LANES;
    type Indices = [u32; LANES];

    #[inline(always)]
    fn to_indices(self) -> Self::Indices {
        self.0.map(|number| number as u32)
    }

    #[inline(always)]
    fn from_indices(indices: &Self::Indices) -> Self {
        Self(indices.map(f64::from))
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
    fn choose((x, y): (Self, Self), yes: Self, mut no: Self) -> Self {
        for lane in 0..LANES {
            no.0[lane] = if x.0[lane] > y.0[lane] {
                yes.0[lane]
            } else {
                no.0[lane]
            };
        }
        no
    }

    #[inline(always)]
    fn lane(&self, lane: usize) -> f64 {
        self.0[lane]
    }

    #[inline(always)]
    fn lane_mut(&mut self, lane: usize) -> &mut f64 {
        &mut self.0[lane]
    }
}

/// sum over i of `columns[i]` times `values[i]`, lane by lane: the bits of [`crate::vectorised::dot`].
/// Where the number of columns is known beforehand, N says it and the loops are laid out flat; N = 0
/// says it is not.
#[inline(always)]
pub(crate) fn column_sums<const N: usize>(columns: &[Lanes], values: &[f64]) -> Lanes {
    products_in_order::<N, _, _, _>(columns, values, |column, value| column.map(|x| x * value))
}

/// [`column_sums`] for values that differ between the lanes.
#[inline(always)]
pub(crate) fn lane_sums<const N: usize, V: Wide>(columns: &[V], values: &[V]) -> V {
    products_in_order::<N, _, _, _>(columns, values, |column, value| {
        column.zip(*value, |x, y| x * y)
    })
}

/// [`column_sums`] for factors that are the same in all lanes and values that differ.
#[inline(always)]
pub(crate) fn row_sums<const N: usize, V: Wide>(row: &[f64], values: &[V]) -> V {
    products_in_order::<N, _, _, _>(row, values, |factor, value| value.map(|y| factor * y))
}

#[inline(always)]
fn products_in_order<const N: usize, A, B, V: Wide>(
    first: &[A],
    second: &[B],
    product: impl Fn(&A, &B) -> V,
) -> V {
    if N > 0
        && let Some(first) = first.first_chunk::<N>()
        && let Some(second) = second.first_chunk::<N>()
    {
        return sums_in_order(first, second, product);
    }
    sums_in_order(first, &second[..first.len()], product)
}

#[inline(always)]
fn sums_in_order<A, B, V: Wide>(first: &[A], second: &[B], product: impl Fn(&A, &B) -> V) -> V {
    const RUNNING: usize = 4;
    let (body, rest) = first.as_chunks::<RUNNING>();
    let (factors, last_factors) = second.as_chunks::<RUNNING>();
    let mut sum = V::default();
    if !body.is_empty() {
        let mut running = [V::default(); RUNNING];
        for (four, factor) in body.iter().zip(factors) {
            for (sum, (a, b)) in running.iter_mut().zip(four.iter().zip(factor)) {
                *sum = sum.plus(product(a, b));
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
