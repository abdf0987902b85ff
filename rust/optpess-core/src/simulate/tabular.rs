//! Episodes of a known model.

use rand::{Rng, RngExt};
use rand_distr::{Distribution, StandardNormal};

use crate::error::Result;
use crate::model::{ConstrainedMdp, ObservationNoise, Slices};
use crate::policy::MarkovPolicy;
use crate::simulate::Streams;
use crate::table::{StepSignal, zeros};
use crate::trajectory::Trajectory;

/// Samples a [`ConstrainedMdp`].
#[derive(Debug, Clone)]
pub struct TabularEnvironment<'m> {
    model: &'m ConstrainedMdp,
    rows: CumulativeRows,
}

impl<'m> TabularEnvironment<'m> {
    /// An environment that behaves as the model says.
    pub fn new(model: &'m ConstrainedMdp) -> Result<Self> {
        let rows = CumulativeRows::new(model)?;
        Ok(Self { model, rows })
    }

    /// Plays one episode and writes what is observed into `seen`.
    pub fn rollout(&self, policy: &MarkovPolicy, streams: &mut Streams, seen: &mut Trajectory) {
        let model = self.model;
        let (shape, noise) = (model.shape(), model.noise());
        let mut state = draw(
            model.initial().data().iter().copied().enumerate(),
            &mut streams.states,
        );
        for step in 0..shape.horizon() {
            let choices = policy.row(step, state).iter().copied().enumerate();
            let action = draw(choices, &mut streams.actions);
            let pair = shape.pair(state, action);
            seen.states[step] = state as u32;
            seen.actions[step] = action as u32;
            seen.rewards[step] = observe(noise, model.reward().at(step, pair), &mut streams.noise);
            for (constraint, cost) in model.costs().iter().enumerate() {
                let observed = observe(noise, cost.at(step, pair), &mut streams.noise);
                seen.costs[constraint * shape.horizon() + step] = observed;
            }
            if step + 1 < shape.horizon() {
                state = self.rows.draw(step, pair, &mut streams.states);
            }
        }
    }
}

/// The possible successors of every row with their cumulative probabilities, added up once in the order
/// in which [`draw`] would add them up at every draw, so that the same numbers give the same states.
#[derive(Debug, Clone)]
struct CumulativeRows {
    /// Distance between the rows of two steps: |S| |A|, or 0 for a stationary kernel.
    stride: usize,
    offsets: Vec<usize>, // [rows + 1]
    cumulative: Vec<f64>,
    successors: Vec<u32>,
}

impl CumulativeRows {
    fn new(model: &ConstrainedMdp) -> Result<Self> {
        let (shape, kernel) = (model.shape(), model.kernel().kernel());
        let (stride, slices) = match kernel.slices() {
            Slices::Stationary => (0, usize::from(shape.horizon() > 1)),
            Slices::PerStep(horizon) => (shape.pairs(), horizon - 1), // the last is never drawn from
        };
        let rows = || (0..slices).flat_map(|step| (0..shape.pairs()).map(move |pair| (step, pair)));
        let possible = |(step, pair)| {
            let all = kernel.successors(step, pair);
            all.filter(|&(_, probability)| probability > 0.0)
        };
        let mut offsets = zeros("row offsets [H, S, A]", slices * shape.pairs() + 1)?;
        for (row, place) in rows().enumerate() {
            offsets[row + 1] = offsets[row] + possible(place).count();
        }
        let entries = offsets[slices * shape.pairs()];
        let mut cumulative = zeros("cumulative probabilities [H, S, A, S]", entries)?;
        let mut successors = zeros("successors [H, S, A, S]", entries)?;
        let mut entry = 0;
        for place in rows() {
            let mut sum = 0.0;
            for (successor, probability) in possible(place) {
                sum += probability;
                (cumulative[entry], successors[entry]) = (sum, successor as u32);
                entry += 1;
            }
        }
        Ok(Self {
            stride,
            offsets,
            cumulative,
            successors,
        })
    }

    /// Draws as [`draw`] does. Sums of probabilities do not fall, so the first that exceeds the number
    /// stands behind as many as do not; counting those needs no branch and vectorises.
    #[inline(always)]
    fn draw<R: Rng>(&self, step: usize, pair: usize, generator: &mut R) -> usize {
        let uniform: f64 = generator.random();
        let row = step * self.stride + pair;
        let (start, end) = (self.offsets[row], self.offsets[row + 1]);
        let sums = &self.cumulative[start..end];
        // Long rows are searched; a short one is counted in fewer cycles than a search mispredicts.
        let passed = if sums.len() > 64 {
            sums.partition_point(|&sum| sum <= uniform)
        } else {
            sums.iter().map(|&sum| usize::from(sum <= uniform)).sum()
        };
        self.successors[start + passed.min(sums.len() - 1)] as usize
    }
}

/// Draws an outcome with its probability: the first whose cumulative probability exceeds a uniform
/// number. Rounding may leave the total a little short of that number; the last possible outcome
/// then stands.
fn draw<R: Rng>(outcomes: impl Iterator<Item = (usize, f64)>, generator: &mut R) -> usize {
    let uniform: f64 = generator.random();
    let (mut cumulative, mut last) = (0.0, 0);
    for (outcome, probability) in outcomes {
        if probability > 0.0 {
            cumulative += probability;
            last = outcome;
            if uniform < cumulative {
                break;
            }
        }
    }
    last
}

/// An observation of a quantity with this mean.
fn observe<R: Rng>(noise: ObservationNoise, mean: f64, generator: &mut R) -> f64 {
    match noise {
        ObservationNoise::Deterministic => mean,
        ObservationNoise::Bernoulli => f64::from(generator.random::<f64>() < mean),
        ObservationNoise::Gaussian(normal) => {
            let standard: f64 = StandardNormal.sample(generator);
            mean + normal.sigma() * standard
        }
        ObservationNoise::Uniform(uniform) => {
            mean + uniform.half_width() * (2.0 * generator.random::<f64>() - 1.0)
        }
    }
}
