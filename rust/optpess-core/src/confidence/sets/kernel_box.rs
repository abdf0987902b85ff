//! A set of plausible kernels: every probability between two ends, every row a distribution.

use serde::{Deserialize, Serialize};

use crate::error::{ArrayIndex, Error, Interval, Result};
use crate::evaluate::RowSet;
use crate::policy::{SUM_TOLERANCE, checked_sum};
use crate::shape::Shape;
use crate::table::zeros;

/// All kernels whose rows are distributions within a box; rows are chosen independently of each other.
///
/// Stored as the lower ends, the widths above them, and for each row 1 minus the sum of its lower ends: choosing a row
/// means placing that rest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KernelBox {
    shape: Shape,
    /// Between the rows of two steps: |S| |A|, or 0 if all steps share their rows.
    stride: usize,
    lower: Vec<f64>,           // [H - 1 or 1, S, A, S]
    width: Vec<f64>,           // [H - 1 or 1, S, A, S], upper end - lower end
    unassigned_mass: Vec<f64>, // [H - 1 or 1, S, A]
}

impl KernelBox {
    /// Whether stored tables are those of a problem of this shape, with rows for each step.
    pub(crate) fn fits(&self, shape: Shape) -> bool {
        let rows = (shape.horizon() - 1) * shape.pairs();
        let ends = [&self.lower, &self.width].map(|ends| ends.len() == rows * shape.num_states());
        self.shape == shape
            && self.stride == shape.pairs()
            && ends == [true, true]
            && self.unassigned_mass.len() == rows
    }

    /// The set of all kernels.
    pub fn everything(shape: Shape) -> Result<Self> {
        Self::all_rows(shape, shape.horizon() - 1, shape.pairs())
    }

    /// The set of all kernels, with one box for a pair at every step.
    pub fn pooled(shape: Shape) -> Result<Self> {
        Self::all_rows(shape, 1, 0)
    }

    fn all_rows(shape: Shape, slices: usize, stride: usize) -> Result<Self> {
        let rows = slices * shape.pairs();
        let Some(entries) = rows.checked_mul(shape.num_states()) else {
            return Err(Error::TooLarge {
                what: "a set of kernels [H, S, A, S]",
                sizes: shape.sizes().to_vec(),
                allowed: usize::MAX,
            });
        };
        let mut width = zeros("a set of kernels [H, S, A, S]", entries)?;
        width.fill(1.0);
        let mut unassigned_mass = zeros("a set of kernels [H, S, A]", rows)?;
        unassigned_mass.fill(1.0);
        Ok(Self {
            shape,
            stride,
            lower: zeros("a set of kernels [H, S, A, S]", entries)?,
            width,
            unassigned_mass,
        })
    }

    /// The kernels within `radius` of `centre`, both `[H, S, A, S]`; the last step is not read.
    ///
    /// Formula: p' in the simplex with |p'(s') - p(s')| <= b_p(s') for every s'. Citation: \[Efroni20\],
    /// OptCMDP. Deviation: none; a box that holds no distribution is refused.
    pub fn around(shape: Shape, centre: &[f64], radius: &[f64]) -> Result<Self> {
        let states = shape.num_states();
        let mut set = Self::everything(shape)?;
        for (array, data) in [("transitions", centre), ("radius", radius)] {
            if data.len() != shape.triples() * states {
                return Err(Error::ShapeMismatch {
                    array,
                    axes: "[H, S, A, S]",
                    expected: [&shape.sizes()[..], &[states]].concat(),
                    found: vec![data.len()],
                });
            }
        }
        for row in 0..set.unassigned_mass.len() {
            let [step, state, action] = shape.triple_index(row);
            let range = row * states..(row + 1) * states;
            let (centre, radius) = (&centre[range.clone()], &radius[range]);
            for (array, data) in [("transitions", centre), ("radius", radius)] {
                checked_sum(data, |entry| {
                    ArrayIndex::new(array, &[step, state, action, entry])
                })?;
            }
            if let Some(entry) = centre.iter().position(|&p| p > 1.0) {
                return Err(Error::OutOfRange {
                    place: ArrayIndex::new("transitions", &[step, state, action, entry]),
                    found: centre[entry],
                    allowed: Interval::closed(0.0, 1.0),
                });
            }
            set.set_row(step, shape.pair(state, action), centre, |entry, _| {
                radius[entry]
            });
            set.check_row(row)?;
        }
        Ok(set)
    }

    /// Replaces the box of a pair. The caller ensures that it holds a distribution; a box around a distribution does.
    pub(crate) fn set_row(
        &mut self,
        step: usize,
        pair: usize,
        centre: &[f64],
        radius: impl Fn(usize, f64) -> f64,
    ) {
        let (row, states) = (step * self.stride + pair, self.shape.num_states());
        let lower = &mut self.lower[row * states..][..states];
        let width = &mut self.width[row * states..][..states];
        let mut unassigned = 1.0;
        let ends = lower.iter_mut().zip(width).zip(centre);
        for (next_state, ((least, width), &probability)) in ends.enumerate() {
            let radius = radius(next_state, probability);
            *least = (probability - radius).max(0.0);
            *width = (probability + radius).min(1.0) - *least;
            unassigned -= *least;
        }
        self.unassigned_mass[row] = unassigned;
    }

    /// Replaces the box of a pair by these ends. The caller ensures that it holds a distribution.
    pub fn set_ends(&mut self, step: usize, pair: usize, ends: impl Iterator<Item = [f64; 2]>) {
        let (row, states) = (step * self.stride + pair, self.shape.num_states());
        let lower = &mut self.lower[row * states..][..states];
        let width = &mut self.width[row * states..][..states];
        let mut unassigned = 1.0;
        for ((least, width), [low, high]) in lower.iter_mut().zip(width).zip(ends) {
            *least = low;
            *width = high - low;
            unassigned -= low;
        }
        self.unassigned_mass[row] = unassigned;
    }

    /// Refuses a box that contains no distribution.
    fn check_row(&self, row: usize) -> Result<()> {
        let place = |name| ArrayIndex::new(name, &self.shape.triple_index(row));
        let states = self.shape.num_states();
        let width: f64 = self.width[row * states..][..states].iter().sum();
        let unassigned = self.unassigned_mass[row];
        if unassigned < -SUM_TOLERANCE {
            return Err(Error::NotADistribution {
                place: place("transitions - radius"),
                sum: 1.0 - unassigned,
                required: "at most 1, or no distribution is plausible",
            });
        }
        if width < unassigned - SUM_TOLERANCE {
            return Err(Error::NotADistribution {
                place: place("transitions + radius"),
                sum: 1.0 - unassigned + width,
                required: "at least 1, or no distribution is plausible",
            });
        }
        Ok(())
    }

    /// H, |S|, |A|.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }
}

/// All rows of a box have at least its lower ends.
impl RowSet for KernelBox {
    #[inline(always)]
    fn num_states(&self) -> usize {
        self.shape.num_states()
    }

    #[inline(always)]
    fn num_actions(&self) -> usize {
        self.shape.num_actions()
    }

    #[inline(always)]
    fn shared(&self, step: usize) -> &[f64] {
        let states = self.shape.num_states();
        &self.lower[step * self.stride * states..][..self.shape.pairs() * states]
    }

    /// Formula: argmax of <p', v> over the box within the simplex, for `order` from the most valuable state
    /// to the least (argmin, for the other way round): every state has its lower end, and the rest fills the
    /// first states up to their upper ends. Citation: \[Efroni20\], extended value iteration (after Jaksch,
    /// Ortner and Auer 2010, Figure 2). Deviation: none.
    #[inline(always)]
    fn place(&self, step: usize, pair: usize, order: &[u32], mut give: impl FnMut(usize, f64)) {
        let (row, states) = (step * self.stride + pair, self.shape.num_states());
        let width = &self.width[row * states..][..states];
        let mut unassigned = self.unassigned_mass[row];
        for &state in order {
            if unassigned <= 0.0 {
                break;
            }
            let state = state as usize;
            let given = width[state].min(unassigned);
            give(state, given);
            unassigned -= given;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The best value over all vertices of the box within the simplex: all coordinates but one at an end.
    fn by_vertices(centre: &[f64], radius: &[f64], values: &[f64]) -> f64 {
        let states = centre.len();
        let low = |s: usize| (centre[s] - radius[s]).max(0.0);
        let high = |s: usize| (centre[s] + radius[s]).min(1.0);
        let mut best = f64::NEG_INFINITY;
        for free in 0..states {
            for ends in 0..1_u32 << states {
                let end = |s: usize| if ends >> s & 1 == 1 { high(s) } else { low(s) };
                let mut row: Vec<f64> = (0..states).map(end).collect();
                row[free] = 0.0;
                row[free] = 1.0 - row.iter().sum::<f64>();
                if row[free] >= low(free) - 1e-12 && row[free] <= high(free) + 1e-12 {
                    best = best.max(row.iter().zip(values).map(|(p, v)| p * v).sum());
                }
            }
        }
        best
    }

    /// Pseudo-random numbers in [0, 1), the same on every machine.
    fn numbers(seed: u64) -> impl FnMut() -> f64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        }
    }

    #[test]
    fn the_best_row_is_the_best_vertex_of_the_box_within_the_simplex() {
        for seed in 0..4000 {
            let mut next = numbers(seed);
            let states = 1 + (5.0 * next()) as usize;
            let mut centre: Vec<f64> = (0..states).map(|_| next()).collect();
            let total: f64 = centre.iter().sum();
            centre.iter_mut().for_each(|p| *p /= total);
            let mut wide = 0.5 * next();
            if seed % 7 == 0 {
                centre.fill(0.0); // never visited: the box is wide
                wide = 5.0;
            }
            let radius: Vec<f64> = (0..states).map(|_| wide * (0.5 + next())).collect();
            let ties = seed % 3 == 0;
            let value = |number: f64| 10.0 * if ties { number.round() } else { number } - 5.0;
            let values: Vec<f64> = (0..states).map(|_| value(next())).collect();
            let mut order: Vec<u32> = (0..states as u32).collect();
            order.sort_by(|&a, &b| values[b as usize].total_cmp(&values[a as usize]));
            let shape = Shape::new(2, states, 1).unwrap();
            let repeated = |row: &[f64]| row.repeat(2 * states);
            let set = KernelBox::around(shape, &repeated(&centre), &repeated(&radius)).unwrap();
            let mut row = vec![0.0; states];
            set.write_row(0, states - 1, &order, &mut row);
            let found: f64 = row.iter().zip(&values).map(|(p, v)| p * v).sum();
            let best = by_vertices(&centre, &radius, &values);
            assert!(
                (found - best).abs() < 1e-12,
                "seed {seed}: {found} < {best}"
            );
            assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-14);
            for ((p, middle), width) in row.iter().zip(&centre).zip(&radius) {
                assert!((p - middle).abs() <= width + 1e-15);
            }
        }
    }

    #[test]
    fn a_box_without_a_distribution_is_refused_by_name() {
        let shape = Shape::new(2, 2, 1).unwrap();
        let refused = |centre: f64, radius: f64| {
            KernelBox::around(shape, &[centre; 8], &[radius; 8])
                .unwrap_err()
                .to_string()
        };
        let few = refused(0.0, 0.1);
        assert!(
            few.starts_with("transitions + radius[0, 0, 0] sums to 0.2"),
            "{few}"
        );
        let many = refused(0.9, 0.1);
        assert!(
            many.starts_with("transitions - radius[0, 0, 0] sums to 1.6"),
            "{many}"
        );
        let negative = refused(0.5, -0.1);
        assert!(
            negative.starts_with("radius[0, 0, 0, 0] is -0.1"),
            "{negative}"
        );
        assert!(refused(1.5, 0.1).starts_with("transitions[0, 0, 0, 0] is 1.5"));
    }
}
