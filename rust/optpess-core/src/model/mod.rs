//! A finite-horizon constrained Markov decision process: transitions, reward, costs, limits, start and noise. The
//! constructors check everything.

use serde::{Deserialize, Serialize};

mod kernel;
mod noise;
mod sparse_rows;
mod step_kernel;
mod transition_kernel;

pub(crate) use kernel::{InterleavedRows, ROWS_PER_BLOCK};
pub use kernel::{Kernel, RowStorage, Slices, WalkedRows};
pub use noise::{GaussianNoise, MAX_VARIANCE_PROXY, ObservationNoise, UniformNoise};
pub use sparse_rows::SparseRows;
pub use step_kernel::{JointRows, StepKernel};
pub use transition_kernel::TransitionKernel;

use crate::error::{ArrayIndex, Error, Interval, Result};
use crate::policy::check_distribution;
use crate::shape::Shape;
use crate::table::{Signal, StepSignal, zeros};

/// mu, the distribution of the first state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<f64>")]
pub struct InitialDistribution(Vec<f64>);

/// A stored distribution is checked as a given one is.
impl TryFrom<Vec<f64>> for InitialDistribution {
    type Error = Error;

    fn try_from(data: Vec<f64>) -> Result<Self> {
        Self::new(data.len(), data)
    }
}

impl InitialDistribution {
    /// A distribution over states from its probabilities `[S]`.
    pub fn new(num_states: usize, data: Vec<f64>) -> Result<Self> {
        if data.len() != num_states {
            return Err(Error::ShapeMismatch {
                array: "initial",
                axes: "[S]",
                expected: vec![num_states],
                found: vec![data.len()],
            });
        }
        check_distribution(&data, |entry| match entry {
            Some(state) => ArrayIndex::new("initial", &[state]),
            None => ArrayIndex::scalar("initial"),
        })?;
        Ok(Self(data))
    }

    /// The distribution of an episode that starts in one state.
    pub fn at(num_states: usize, state: i64) -> Result<Self> {
        let inside = usize::try_from(state).ok().filter(|&s| s < num_states);
        let state = inside.ok_or(Error::OutOfRange {
            place: ArrayIndex::scalar("initial"),
            found: state as f64,
            allowed: Interval::closed(0.0, num_states as f64 - 1.0),
        })?;
        let mut data = zeros("initial", num_states)?;
        data[state] = 1.0;
        Ok(Self(data))
    }

    /// mu(s), one probability a state.
    #[must_use]
    pub fn data(&self) -> &[f64] {
        &self.0
    }

    /// sum over s of mu(s) v(s).
    #[must_use]
    #[inline(always)]
    pub fn expectation(&self, values: &[f64]) -> f64 {
        crate::sums::dot(&self.0, values)
    }

    /// sum over s of mu(s) v_n(s) for each of N functions, side by side; to the bits of each alone.
    #[must_use]
    pub fn expectations<const N: usize>(&self, values: &[[f64; N]]) -> [f64; N] {
        crate::sums::dot_each(&self.0, values)
    }
}

/// A reward or a cost: a signal with values in [0, 1].
#[derive(Debug, Clone, PartialEq)]
pub struct UnitSignal(Signal);

impl UnitSignal {
    /// Checks a signal's values; messages put `prefix` (the constraint, say) before the index.
    pub fn new(name: &'static str, prefix: &[usize], signal: Signal) -> Result<Self> {
        let allowed = Interval::closed(0.0, 1.0);
        let outside = |&value: &f64| !allowed.contains(value);
        match signal.data().iter().position(outside) {
            None => Ok(Self(signal)),
            Some(flat) => Err(Error::OutOfRange {
                place: ArrayIndex::new(name, &[prefix, &signal.index(flat)].concat()),
                found: signal.data()[flat],
                allowed,
            }),
        }
    }
}

/// (P, r, c, tau, mu) and the noise of observations; M >= 1 costs, each with its limit.
#[derive(Debug, Clone, PartialEq)]
pub struct ConstrainedMdp {
    shape: Shape,
    kernel: TransitionKernel,
    reward: Signal,
    costs: Vec<Signal>,
    limits: Vec<f64>,
    initial: InitialDistribution,
    noise: ObservationNoise,
}

impl ConstrainedMdp {
    /// Checks that sizes agree and that limits lie in (0, H].
    pub fn new(
        kernel: TransitionKernel,
        reward: UnitSignal,
        costs: Vec<UnitSignal>,
        limits: Vec<f64>,
        initial: InitialDistribution,
        noise: ObservationNoise,
    ) -> Result<Self> {
        let shape = reward.0.shape();
        kernel.kernel().check_shape(shape)?;
        if costs.is_empty() {
            return Err(Error::NothingGiven { what: "costs" });
        }
        if let Some(other) = costs.iter().find(|cost| cost.0.shape() != shape) {
            return Err(Error::ShapeMismatch {
                array: "costs",
                axes: "[H, S, A]",
                expected: shape.sizes().to_vec(),
                found: other.0.shape().sizes().to_vec(),
            });
        }
        if limits.len() != costs.len() {
            return Err(Error::ShapeMismatch {
                array: "cost_limit",
                axes: "[M]",
                expected: vec![costs.len()],
                found: vec![limits.len()],
            });
        }
        if initial.0.len() != shape.num_states() {
            return Err(Error::ShapeMismatch {
                array: "initial",
                axes: "[S]",
                expected: vec![shape.num_states()],
                found: vec![initial.0.len()],
            });
        }
        let allowed = Interval::open_closed(0.0, shape.horizon() as f64);
        for (constraint, &limit) in limits.iter().enumerate() {
            if !allowed.contains(limit) {
                return Err(Error::OutOfRange {
                    place: ArrayIndex::new("cost_limit", &[constraint]),
                    found: limit,
                    allowed,
                });
            }
        }
        Ok(Self {
            shape,
            kernel,
            reward: reward.0,
            costs: costs.into_iter().map(|cost| cost.0).collect(),
            limits,
            initial,
            noise,
        })
    }

    /// H, |S|, |A|.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// P.
    #[must_use]
    pub fn kernel(&self) -> &TransitionKernel {
        &self.kernel
    }

    /// r, in [0, 1].
    #[must_use]
    pub fn reward(&self) -> &Signal {
        &self.reward
    }

    /// The costs c, each in [0, 1].
    #[must_use]
    pub fn costs(&self) -> &[Signal] {
        &self.costs
    }

    /// tau, one limit a cost, each in (0, H].
    #[must_use]
    pub fn limits(&self) -> &[f64] {
        &self.limits
    }

    /// mu.
    #[must_use]
    pub fn initial(&self) -> &InitialDistribution {
        &self.initial
    }

    /// The expected reward and first cost of every pair, side by side, `[H, S, A]`.
    pub(crate) fn means(&self) -> Result<Vec<[f64; 2]>> {
        let pairs = self.shape().pairs();
        let mut means = zeros("means [H, S, A]", self.shape().triples())?;
        for (row, means) in means.iter_mut().enumerate() {
            let (step, pair) = (row / pairs, row % pairs);
            *means = [self.reward().at(step, pair), self.costs()[0].at(step, pair)];
        }
        Ok(means)
    }

    /// How observations differ from their means.
    #[must_use]
    pub fn noise(&self) -> ObservationNoise {
        self.noise
    }
}
