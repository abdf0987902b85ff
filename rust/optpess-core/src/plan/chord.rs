//! The chord method: the exact solution of a problem with one constraint, without a linear program.
//!
//! Plotting every policy as a point (cost, reward), the best reward for a limit is the upper concave
//! envelope of the deterministic ones. The method keeps one policy within the limit and one above it,
//! takes the slope of the chord between them as the multiplier l, and finds the best policy for
//! g_r - l g_c. If that policy does not rise above the chord, the chord is an edge of the envelope and
//! the answer is the mixture of its two ends that meets the limit exactly; otherwise the new policy
//! replaces the end on its side. Every new policy is a vertex of the envelope strictly between the
//! ends, so the method ends; 5 to 15 inductions are usual.
//!
//! The method works on any polytope of points (cost, reward) with an [`Oracle`] for its extreme points: policies, or
//! pairs of a policy and a plausible kernel.

use serde::{Deserialize, Serialize};

use crate::certify::within;
use crate::control::check_stopped;
use crate::error::{Error, Result};
use crate::plan::pace::{Chords, End, Pace};
use crate::plan::problem::{MixingOracle, Objective, Oracle, Point, Vertex};
use crate::policy::MarkovPolicy;
use crate::shape::Shape;

/// Relative distance from the limit that plans aim for. Re-evaluation rounds differently and would otherwise often find
/// them above the limit. Over 10^9 episodes this loses 10^-3 of one episode's reward.
pub const PLANNING_MARGIN: f64 = 1e-12;

/// How far, relative to its size, the least attainable cost may exceed the limit and still count as meeting it:
/// rounding.
const FEASIBILITY_WIDTH: f64 = 1e-12;

/// A bound on inductions, three orders of magnitude above the most seen so far. Reaching it means that rounding makes
/// the method cycle.
const MAX_INDUCTIONS: usize = 20_000;

/// The two ends of the last chord, from which the next, similar problem is solved in one or two inductions. It is
/// state: a warm start and a cold one give the same answer to rounding only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Chord<P = Vertex> {
    pub(super) below: P,
    pub(super) above: P,
    /// Whether the ends are those of the last answer.
    warm: bool,
}

impl<P: Point> Chord<P> {
    /// No chord yet: the first search starts from scratch.
    pub fn new(shape: Shape) -> Result<Self> {
        Ok(Self {
            below: P::for_shape(shape)?,
            above: P::for_shape(shape)?,
            warm: false,
        })
    }

    /// The point within the limit that the last answer mixes.
    #[must_use]
    pub fn below(&self) -> &P {
        &self.below
    }

    /// The point above the limit that the last answer mixes; undefined if its weight is 0.
    #[must_use]
    pub fn above(&self) -> &P {
        &self.above
    }

    /// The slope of the chord, or 0 if the policy within the limit has no less reward.
    fn slope(&self) -> f64 {
        let rise = self.above.reward() - self.below.reward();
        let run = self.above.cost() - self.below.cost();
        if rise > 0.0 && run > 0.0 {
            (rise / run).min(f64::MAX) // a slope that overflows is the steepest there is
        } else {
            0.0
        }
    }

    /// The mixture of the two ends that meets the limit, or if the chord does not rise the lower end alone.
    fn solution(&self, limit: f64, found: Found, inductions: usize) -> ChordSolution {
        let (below, above) = (&self.below, &self.above);
        let weight_above = if found.slope > 0.0 {
            ((limit - below.cost()) / (above.cost() - below.cost())).clamp(0.0, 1.0)
        } else {
            0.0
        };
        let mix = |low: f64, high: f64| {
            if weight_above > 0.0 {
                (1.0 - weight_above) * low + weight_above * high
            } else {
                low
            }
        };
        ChordSolution {
            value: mix(below.reward(), above.reward()),
            cost: mix(below.cost(), above.cost()),
            multiplier: found.multiplier,
            weight_above,
            inductions,
        }
    }
}

/// Where a search ended.
#[derive(Debug, Clone, Copy)]
struct Found {
    /// The slope of the last chord.
    slope: f64,
    /// The multiplier of the best bound; the slope, if the search was for the optimum.
    multiplier: f64,
    /// Whether the lower end moved.
    below_moved: bool,
}

impl Found {
    /// The policy of most reward is within the limit.
    const UNLIMITED: Self = Self {
        slope: 0.0,
        multiplier: 0.0,
        below_moved: false,
    };
}

/// The answer: a mixture of two extreme points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChordSolution {
    /// V(g_r) of the mixture, the optimum.
    pub value: f64,
    /// V(g_c) of the mixture.
    pub cost: f64,
    /// The optimal multiplier of the constraint, at least 0.
    pub multiplier: f64,
    /// The weight of the point above the limit; the rest is on the one within it.
    pub weight_above: f64,
    /// How many inductions it took.
    pub inductions: usize,
}

/// The chord method for problems of one shape: keeps the last chord and counts inductions. Any oracle
/// with points of this kind may answer, and another one the next time.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(
    from = "StoredSearch<P>",
    bound(deserialize = "P: Clone + Deserialize<'de>")
)]
pub struct ChordSearch<P = Vertex> {
    pub(super) chord: Chord<P>,
    inductions: u64,
    /// Workspace: the point that the oracle writes.
    #[serde(skip_serializing)]
    pub(super) trial: P,
}

/// [`ChordSearch`] without its workspace.
#[derive(Deserialize)]
struct StoredSearch<P> {
    chord: Chord<P>,
    inductions: u64,
}

impl<P: Clone> From<StoredSearch<P>> for ChordSearch<P> {
    fn from(stored: StoredSearch<P>) -> Self {
        Self {
            trial: stored.chord.below.clone(),
            chord: stored.chord,
            inductions: stored.inductions,
        }
    }
}

impl<P: Point> ChordSearch<P> {
    /// A search for problems of this shape.
    pub fn new(shape: Shape) -> Result<Self> {
        Ok(Self {
            chord: Chord::new(shape)?,
            inductions: 0,
            trial: P::for_shape(shape)?,
        })
    }

    /// The last chord.
    #[must_use]
    pub fn chord(&self) -> &Chord<P> {
        &self.chord
    }

    /// How many inductions all searches so far took.
    #[must_use]
    pub fn inductions(&self) -> u64 {
        self.inductions
    }

    /// Forgets the last chord, so that the next problem is solved from scratch.
    pub fn forget(&mut self) {
        self.chord.warm = false;
    }

    /// max V(g_r) subject to V(g_c) <= limit (1 - [`PLANNING_MARGIN`]), written into `out` as one policy;
    /// `completion` is used where the mixture has no mass. Allocates nothing.
    ///
    /// For callers that know some policy to be within the limit. If the search finds none, the cause is rounding and
    /// the error [`Error::NumericalTrouble`].
    pub fn best_within<O: MixingOracle<Point = P>>(
        &mut self,
        oracle: &mut O,
        limit: f64,
        completion: &MarkovPolicy,
        out: &mut MarkovPolicy,
    ) -> Result<ChordSolution> {
        self.find_within(oracle, limit, completion, out)
            .map_err(|error| match error {
                Error::Infeasible { .. } => Error::NumericalTrouble {
                    solver: "parametric",
                    status: format!("past the gate, but {error}"),
                },
                other => other,
            })
    }

    /// [`ChordSearch::best_within`] for callers that do not know whether a policy is within the limit;
    /// [`Error::Infeasible`] if none is.
    pub fn find_within<O: MixingOracle<Point = P>>(
        &mut self,
        oracle: &mut O,
        limit: f64,
        completion: &MarkovPolicy,
        out: &mut MarkovPolicy,
    ) -> Result<ChordSolution> {
        let found = self.solve(oracle, limit * (1.0 - PLANNING_MARGIN))?;
        let ends = [&self.chord.below, &self.chord.above];
        oracle.mix(ends, found.weight_above, completion, out);
        Ok(found)
    }

    /// Whether the next search starts from the last chord.
    pub(crate) fn is_warm(&self) -> bool {
        self.chord.warm
    }

    /// Makes the next search start from scratch, as if only so many inductions had been made.
    pub(crate) fn restart(&mut self, inductions: u64) {
        (self.chord.warm, self.inductions) = (false, inductions);
    }

    /// max V(g_r) subject to V(g_c) <= limit, as a mixture of the two ends of the chord. Allocates nothing.
    ///
    /// Starts from the last answer if that brackets the limit; the answer is the same to rounding.
    /// [`Error::Infeasible`] carries the least attainable cost, and leaves the policy that attains it below.
    pub fn solve<O: Oracle<Point = P>>(
        &mut self,
        oracle: &mut O,
        limit: f64,
    ) -> Result<ChordSolution> {
        self.solve_at(&mut Chords, oracle, limit)
    }

    /// [`ChordSearch::solve`], with the multipliers and the end of the search chosen by a pace.
    pub(crate) fn solve_at<O: Oracle<Point = P>>(
        &mut self,
        pace: &mut impl Pace,
        oracle: &mut O,
        limit: f64,
    ) -> Result<ChordSolution> {
        let warm = std::mem::replace(&mut self.chord.warm, false);
        let mut inductions = 0;
        if !(warm && self.last_chord_brackets(oracle, limit)) {
            let [has_below, has_above] = self.bracket_near(pace, oracle, limit, &mut inductions)?;
            let Chord { below, above, .. } = &mut self.chord;
            if !has_above {
                oracle.extreme(Objective::MostReward, above);
                oracle.check()?;
                inductions += 1;
                if within(above.cost(), limit) {
                    std::mem::swap(below, above);
                    self.inductions += inductions as u64;
                    return Ok(self.chord.solution(limit, Found::UNLIMITED, inductions));
                }
            }
            if !has_below {
                oracle.extreme(Objective::LeastCost, below);
                oracle.check()?;
                inductions += 1;
                self.check_feasible(oracle, limit)?;
            }
        }
        let found = self.search(pace, oracle, limit, &mut inductions)?;
        self.chord.warm = true;
        self.inductions += inductions as u64;
        Ok(self.chord.solution(limit, found, inductions))
    }

    /// Whether the ends of the last chord lie on both sides of the limit in this problem too.
    fn last_chord_brackets<O: Oracle<Point = P>>(&mut self, oracle: &mut O, limit: f64) -> bool {
        let slope = self.chord.slope();
        let Chord { below, above, .. } = &mut self.chord;
        oracle.relocate(slope, [&mut *below, &mut *above]);
        within(below.cost(), limit) && limit < above.cost()
    }

    fn check_feasible<O: Oracle<Point = P>>(&mut self, oracle: &mut O, limit: f64) -> Result<()> {
        let below = &mut self.chord.below;
        if within(below.cost(), limit) {
            return Ok(());
        }
        let (least_cost, rounding) = least_cost_with(oracle, limit, below);
        oracle.check()?;
        if within(least_cost, limit + rounding) {
            Ok(())
        } else {
            Err(Error::Infeasible { least_cost, limit })
        }
    }

    /// The two ends of the last chord.
    pub(super) fn into_ends(self) -> [P; 2] {
        [self.chord.below, self.chord.above]
    }

    /// Moves the ends of the chord until no policy lies above it, or until the pace is content.
    fn search<O: Oracle<Point = P>>(
        &mut self,
        pace: &mut impl Pace,
        oracle: &mut O,
        limit: f64,
        inductions: &mut usize,
    ) -> Result<Found> {
        let noise = noise(oracle.shape());
        let mut below_moved = false;
        while *inductions < MAX_INDUCTIONS {
            check_stopped()?;
            let slope = self.chord.slope();
            let ends = [self.chord.below.cost(), self.chord.above.cost()];
            let multiplier = pace.next(slope, ends, limit);
            let most = oracle.maximise(multiplier, &mut self.trial);
            oracle.check()?;
            *inductions += 1;
            let Chord { below, above, .. } = &mut self.chord;
            let height = |point: &P| point.reward() - multiplier * point.cost();
            let size = |point: &P| point.reward().abs() + multiplier * point.cost().abs();
            let highest_end = height(below).max(height(above));
            let size_of_ends = size(below).max(size(above));
            let mut improves = most - highest_end > noise * size_of_ends;
            if improves {
                oracle.locate(&mut self.trial);
                let uncertain = noise * size(&self.trial).max(size_of_ends);
                improves = height(&self.trial) - highest_end > uncertain;
            }
            // A chord that no policy lies above is an edge. Another multiplier shows only at which end it is best.
            let is_chord = multiplier.to_bits() == slope.to_bits();
            if !improves && is_chord {
                return Ok(Found {
                    slope,
                    multiplier,
                    below_moved,
                });
            }
            // If rounding has put the least cost above the limit, a point that costs less than that end
            // belongs on its side too; on the other side it would reverse the chord.
            let end = if improves {
                let is_below = within(self.trial.cost(), limit.max(below.cost()));
                below_moved |= is_below;
                std::mem::swap(&mut self.trial, if is_below { below } else { above });
                if is_below { End::Below } else { End::Above }
            } else if height(below) >= height(above) {
                End::Below
            } else {
                End::Above
            };
            let found = |multiplier| Found {
                slope: self.chord.slope(),
                multiplier,
                below_moved,
            };
            let reached = || self.chord.solution(limit, found(multiplier), 0).value;
            let bound = most + multiplier * limit;
            if let Some(multiplier) = pace.learn(multiplier, end, improves, bound, reached) {
                return Ok(found(multiplier));
            }
        }
        Err(Error::NumericalTrouble {
            solver: "parametric",
            status: format!("no end after {MAX_INDUCTIONS} inductions"),
        })
    }
}

/// The best mixture of two points of which one may be a partner from outside.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PartneredSolution {
    /// Whether the lower end of the chord belongs to the answer; otherwise the partner takes its place.
    pub below: bool,
    /// Whether the upper end of the chord belongs to the answer.
    pub above: bool,
    /// V(g_r) of the mixture.
    pub value: f64,
}

impl ChordSearch<Vertex> {
    /// max V(g_r) subject to V(g_c) <= limit over mixtures of policies and a partner whose (cost, reward) are given, the
    /// cost within the limit and the reward not above that of every policy. The ends of the chord are left to be read.
    ///
    /// The chord method with the partner as its first lower end: as long as no policy within the limit lies above the
    /// chord, its other end follows the tangent from the partner to the curve. So a weight of the partner is part of the
    /// plan, and the plan exists even if no policy is within the limit.
    pub fn solve_with_partner<O: Oracle<Point = Vertex>>(
        &mut self,
        oracle: &mut O,
        limit: f64,
        [cost, reward]: [f64; 2],
    ) -> Result<PartneredSolution> {
        let Chord { below, above, warm } = &mut self.chord;
        *warm = false;
        oracle.extreme(Objective::MostReward, above);
        self.inductions += 1;
        if within(above.cost(), limit) {
            std::mem::swap(below, above);
            let value = below.reward();
            return Ok(PartneredSolution {
                below: true,
                above: false,
                value,
            });
        }
        (below.cost, below.reward) = (cost, reward);
        if above.reward() <= reward {
            return Ok(PartneredSolution {
                below: false,
                above: false,
                value: reward,
            });
        }
        let mut inductions = 0;
        let searched = self.search(&mut Chords, oracle, limit, &mut inductions)?;
        self.inductions += inductions as u64;
        let found = self.chord.solution(limit, searched, inductions);
        Ok(PartneredSolution {
            below: searched.below_moved,
            above: found.weight_above > 0.0,
            value: found.value,
        })
    }
}

/// The least attainable cost of a problem, and by how much rounding may have put it above the limit. The limit counts
/// as attainable if the least cost is at most limit + rounding.
pub fn least_cost_and_rounding<O: Oracle>(oracle: &mut O, limit: f64) -> Result<(f64, f64)> {
    let mut found = O::Point::for_shape(oracle.shape())?;
    let found = least_cost_with(oracle, limit, &mut found);
    oracle.check()?;
    Ok(found)
}

fn least_cost_with<O: Oracle>(oracle: &mut O, limit: f64, found: &mut O::Point) -> (f64, f64) {
    oracle.extreme(Objective::LeastCostAlone, found);
    let least_cost = found.cost();
    (least_cost, cost_rounding(oracle, limit, found))
}

/// By how much rounding may have put the cost of a point above the limit. It is relative to the absolute costs, because
/// costs of both signs can cancel.
pub(super) fn cost_rounding<O: Oracle>(oracle: &mut O, limit: f64, point: &mut O::Point) -> f64 {
    let magnitude = oracle.cost_magnitude(point);
    let relative = FEASIBILITY_WIDTH * point.cost().abs().max(limit.abs());
    relative.max(noise(oracle.shape()) * magnitude)
}

/// The rounding error of a value of size 1 over the steps of an episode.
fn noise(shape: Shape) -> f64 {
    4.0 * f64::EPSILON * (shape.horizon() as f64 + 8.0)
}
