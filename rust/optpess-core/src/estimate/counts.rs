//! Counts and sums of observations: the state of [`crate::estimate::Estimates`], and the form in which it is stored.

use serde::ser::SerializeSeq;
use serde::{Deserialize, Serialize, Serializer};

use crate::error::{ArrayIndex, Error, Interval, Result};
use crate::estimate::kernel::EmpiricalKernel;
use crate::number::{MAX_COUNT, from_count};
use crate::shape::Shape;
use crate::table::zeros;

/// N_h(s,a), N_h(s,a,s') and the sums of rewards and costs. Averages and P-hat follow from them
/// ([`crate::estimate::Estimates`]).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    pub(super) shape: Shape,
    /// Whether P-hat is kept in full for any number of states.
    pub(super) in_full: bool,
    pub(super) visits: Vec<u64>,      // [H, S, A]
    pub(super) reward_sums: Vec<f64>, // [H, S, A]
    pub(super) cost_sums: Vec<f64>,   // [H, S, A]
    pub(super) successors: Vec<SuccessorCount>,
}

/// [`Counts`] by reference, in the same stored form.
#[derive(Serialize)]
#[serde(rename = "Counts")]
pub(super) struct StoredCounts<'a> {
    pub(super) shape: Shape,
    pub(super) in_full: bool,
    pub(super) visits: &'a [u64],
    pub(super) reward_sums: &'a [f64],
    pub(super) cost_sums: &'a [f64],
    pub(super) successors: StoredSuccessors<'a>,
}

/// The successors of a kernel, as a list.
pub(super) struct StoredSuccessors<'a>(pub(super) &'a EmpiricalKernel);

impl Serialize for StoredSuccessors<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let count = self.0.successor_counts().count();
        let mut list = serializer.serialize_seq(Some(count))?;
        for successor in self.0.successor_counts() {
            list.serialize_element(&successor)?;
        }
        list.end()
    }
}

/// How often a state followed a row; the last step has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SuccessorCount {
    pub(super) row: u32,
    pub(super) state: u32,
    pub(super) count: u64,
}

/// The largest size of an average observation, in parts of a range.
const LARGEST_AVERAGE: f64 = 1e100;

/// Refuses sums that are not those of so many observations.
fn check_sums(array: &'static str, sums: &[f64], visits: &[u64], shape: Shape) -> Result<()> {
    for (row, (&sum, &visits)) in sums.iter().zip(visits).enumerate() {
        let most = LARGEST_AVERAGE * from_count(visits);
        let allowed = Interval::closed(-most, most);
        if !allowed.contains(sum) {
            return Err(Error::OutOfRange {
                place: ArrayIndex::new(array, &shape.triple_index(row)),
                found: sum,
                allowed,
            });
        }
    }
    Ok(())
}

impl Counts {
    /// Refuses tables of the wrong length, states that do not exist, and rows whose
    /// successors do not add up to their visits.
    pub(super) fn check(&self) -> Result<()> {
        let (shape, rows) = (self.shape, self.shape.triples());
        let lengths = [
            ("stored visits", self.visits.len()),
            ("stored reward sums", self.reward_sums.len()),
            ("stored cost sums", self.cost_sums.len()),
        ];
        for (array, found) in lengths {
            if found != rows {
                return Err(Error::ShapeMismatch {
                    array,
                    axes: "[H, S, A]",
                    expected: shape.sizes().to_vec(),
                    found: vec![found],
                });
            }
        }
        if let Some(row) = self.visits.iter().position(|&visits| visits > MAX_COUNT) {
            return Err(Error::OutOfRange {
                place: ArrayIndex::new("stored visits", &shape.triple_index(row)),
                found: self.visits[row] as f64,
                allowed: Interval::closed(0.0, from_count(MAX_COUNT)),
            });
        }
        for (array, sums) in [
            ("stored reward sums", &self.reward_sums),
            ("stored cost sums", &self.cost_sums),
        ] {
            check_sums(array, sums, &self.visits, shape)?;
        }
        let followed = rows - shape.pairs();
        let mut sums: Vec<u64> = zeros("sums of successors", followed)?;
        for (entry, successor) in self.successors.iter().enumerate() {
            let (row, state) = (successor.row as usize, successor.state as usize);
            if row >= followed || state >= shape.num_states() {
                let (found, most) = if row >= followed {
                    (row, followed)
                } else {
                    (state, shape.num_states())
                };
                return Err(Error::OutOfRange {
                    place: ArrayIndex::new("stored successors", &[entry]),
                    found: found as f64,
                    allowed: Interval::closed(0.0, most as f64 - 1.0),
                });
            }
            sums[row] = sums[row].saturating_add(successor.count);
        }
        for (row, (&sum, &visits)) in sums.iter().zip(&self.visits).enumerate() {
            if sum != visits {
                let visits = from_count(visits);
                return Err(Error::OutOfRange {
                    place: ArrayIndex::new(
                        "the sum of stored successors",
                        &shape.triple_index(row),
                    ),
                    found: sum as f64,
                    allowed: Interval::closed(visits, visits),
                });
            }
        }
        Ok(())
    }
}
