//! The bonuses of [`ConfidenceRule::Sharp`](super::ConfidenceRule): how far a row can be from its estimates, from
//! confidence sets that hold at all times at once. docs/guarantees.md ("Sharp") has the proof.

use serde::{Deserialize, Serialize};

use crate::confidence::sets::{BetaMixture, DirichletSet, ENDPOINT_MASS, Levels, deviation};
use crate::error::{ArrayIndex, Error, Interval, Result};
use crate::estimate::RowEstimate;
use crate::number::from_count;
use crate::shape::Shape;
use crate::trajectory::Trajectory;

/// The mean reward and the mean cost of a row are unknown.
const UNKNOWN_MEANS: usize = 2;
/// Up to so many successors every subset of them is tried; beyond, Pinsker's inequality loses little.
const MAX_SUBSET_STATES: usize = 4;

/// The confidence sets of all rows, as a function of a row's counts. Each row has the same share of delta, which
/// [`Levels`] splits: a quarter for the mean reward, a quarter for the mean cost and half for the transitions; at the
/// last step, which has none, a half for each mean.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SharpBonus {
    horizon: usize,
    num_states: usize,
    mean: BetaMixture,
    last_mean: BetaMixture,
    entry: Option<BetaMixture>, // None with one state
    ball: f64,                  // ln(1/level); used with three states or more
}

/// The bonuses of one row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowBonuses {
    /// b^c: c-hat + b^c covers the cost of the step and of everything after it.
    pub cost: f64,
    /// b^r: r-hat + b^r does the same for the reward.
    pub reward: f64,
    /// e: 2 e is the most by which the pessimistic cost can exceed the true one because of this row.
    pub error: f64,
}

impl SharpBonus {
    /// Sets that all hold, at all times, with probability at least 1 - delta.
    pub fn new(shape: Shape, delta: f64) -> Result<Self> {
        let (row_share, states) = (delta / shape.triples() as f64, shape.num_states());
        let levels = Levels::of_row(row_share, states, UNKNOWN_MEANS);
        let last = Levels::of_row(row_share, 0, UNKNOWN_MEANS);
        let sequence = |level| BetaMixture::with_endpoint_mass(level, ENDPOINT_MASS);
        let entry = (states > 1).then(|| sequence(levels.entry));
        Ok(Self {
            horizon: shape.horizon(),
            num_states: states,
            mean: sequence(levels.cost)?,
            last_mean: sequence(last.cost)?,
            entry: entry.transpose()?,
            ball: -levels.ball.ln(),
        })
    }

    /// The bonuses of a row.
    ///
    /// Formula: with D = H - 1 - h, the most that the steps after h can cost, and T the largest total variation between
    /// P-hat and a plausible row: b^c = (c_up - c-hat) + D T, b^r = (r_up - r-hat) + D T, e = (c_up - c_low)/2 + D T.
    /// Of a row never visited, of which P-hat is 0: b^c = b^r = 2 e = H - h. Derivation: docs/guarantees.md, "Sharp",
    /// after \[Liu21\], Lemmas 5.1 and 5.3. Deviation: none.
    #[must_use]
    #[inline(never)]
    pub fn of(&self, row: &RowEstimate<'_>) -> RowBonuses {
        let after = (self.horizon - 1 - row.step) as f64;
        if row.visits == 0 {
            let all = 1.0 + after;
            return RowBonuses {
                cost: all,
                reward: all,
                error: 0.5 * all,
            };
        }
        let visits = from_count(row.visits);
        let (mean, variation) = if after > 0.0 {
            (&self.mean, self.variation(row, visits))
        } else {
            (&self.last_mean, 0.0)
        };
        let steps = after * variation;
        let (cost_low, cost_up) = mean.interval(visits, row.cost_sum.clamp(0.0, visits));
        let reward_up = mean.upper(visits, row.reward_sum.clamp(0.0, visits));
        RowBonuses {
            cost: outwards(cost_up - row.cost + steps, after),
            reward: outwards(reward_up - row.reward + steps, after),
            error: outwards(0.5 * (cost_up - cost_low) + steps, after),
        }
    }

    /// T: at least the total variation between P-hat and any row of the box and of the ball.
    fn variation(&self, row: &RowEstimate<'_>, visits: f64) -> f64 {
        let Some(entry) = &self.entry else {
            return 0.0; // one state
        };
        let seen = row.successors.iter().map(|(_, frequency)| frequency);
        let seen = seen.filter(|&frequency| frequency > 0.0);
        // A frequency is a count over the visits; the product is within 2^-19 of the count.
        let counts = seen.clone().map(|frequency| (frequency * visits).round());
        if self.num_states == 2 {
            let count = counts.clone().next().unwrap_or(visits);
            let (lower, upper) = entry.interval(visits, count);
            return (count / visits - lower).max(upper - count / visits);
        }
        let ball = DirichletSet::new(self.ball, self.num_states, counts.clone().map(as_count));
        let box_bound = box_variation(entry, visits, counts, self.num_states);
        ball_variation(ball.radius(), seen).min(box_bound).min(1.0)
    }

    /// Refuses an episode with a reward or a cost outside \[0, 1\]: the sets are for such observations only.
    pub fn check(seen: &Trajectory) -> Result<()> {
        let allowed = Interval::closed(0.0, 1.0);
        let horizon = seen.shape().horizon();
        let lists = [
            ("rewards", seen.rewards()),
            ("costs", &seen.costs()[..horizon]),
        ];
        for (name, numbers) in lists {
            if let Some(step) = numbers.iter().position(|&x| !allowed.contains(x)) {
                return Err(Error::OutOfRange {
                    place: ArrayIndex::new(name, &[step]),
                    found: numbers[step],
                    allowed,
                });
            }
        }
        Ok(())
    }
}

/// A count that was computed as a float.
fn as_count(count: f64) -> u64 {
    count as u64
}

/// A bonus that rounding cannot have made too small.
fn outwards(bonus: f64, after: f64) -> f64 {
    bonus + 16.0 * f64::EPSILON * (1.0 + after)
}

/// At least the total variation between P-hat and a row of the box.
///
/// Formula: min(sum_i (u_i - P-hat_i), sum_i (P-hat_i - l_i)). Derivation: both rows add up to 1, so the total
/// variation is the mass that one has above the other, and that which it has below. Deviation: none.
fn box_variation(
    entry: &BetaMixture,
    visits: f64,
    counts: impl Iterator<Item = f64>,
    num_states: usize,
) -> f64 {
    let (mut above, mut below, mut seen) = (0.0, 0.0, 0);
    for count in counts {
        let (lower, upper) = entry.interval(visits, count);
        above += upper - count / visits;
        below += count / visits - lower;
        seen += 1;
    }
    above += (num_states - seen) as f64 * entry.upper(visits, 0.0);
    f64::min(above, below)
}

/// At least the total variation between P-hat and a row p with KL(P-hat, p) <= b.
///
/// Formula: the largest d with kl(q, q - d) <= b over the masses q = P-hat(A) of sets A of seen successors; sqrt(b/2)
/// if there are many. Derivation: the total variation is P-hat(A) - p(A) for some A, and kl(P-hat(A), p(A)) <=
/// KL(P-hat, p) (data processing); A may leave out what was never seen, where P-hat is not above p. The second is
/// Pinsker's inequality and never smaller. Deviation: none.
fn ball_variation(radius: f64, seen: impl Iterator<Item = f64> + Clone) -> f64 {
    if seen.clone().count() > MAX_SUBSET_STATES {
        return (0.5 * radius).sqrt();
    }
    let mut masses = [0.0; 1 << MAX_SUBSET_STATES];
    let mut filled = 1; // the empty set
    for frequency in seen {
        for subset in 0..filled {
            masses[filled + subset] = masses[subset] + frequency;
        }
        filled *= 2;
    }
    let masses = masses[1..filled].iter().map(|mass| mass.min(1.0));
    masses.fold(0.0, |most, mass| {
        f64::max(most, deviation(1.0 - mass, mass, radius))
    })
}
