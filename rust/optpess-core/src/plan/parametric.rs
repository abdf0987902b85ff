//! The exact solution of a problem with one constraint, without a linear program.
//!
//! Plotting every policy as a point (cost, reward), the best reward for a limit is the upper concave
//! envelope of the deterministic ones. The chord method keeps one policy within the limit and one
//! above it, takes the slope of the chord between them as the multiplier l, and asks backward
//! induction for the best policy of g_r - l g_c. If that policy does not rise above the chord, the
//! chord is an edge of the envelope and the answer is the mixture of its two ends that meets the
//! limit exactly; otherwise the new policy replaces the end on its side. Every new policy is a vertex
//! of the envelope strictly between the ends, so the method ends; 5 to 15 inductions are usual.
//!
//! Nothing in this is about policies: the method works on any polytope of points (cost, reward) with an
//! [`Oracle`] for its extreme points, such as pairs of a policy and a plausible kernel.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::plan::oracle::{Objective, Oracle, Point, Storage};
use crate::plan::tradeoff::{StepValues, Vertex};
use crate::shape::Shape;

/// By how much, relative to its size, the least attainable cost may exceed the limit through rounding
/// alone and still count as attaining it.
const FEASIBILITY_WIDTH: f64 = 1e-12;

/// More inductions than any envelope met so far needed, by three orders of magnitude; reaching it
/// means that rounding makes the method run in a circle.
const MAX_INDUCTIONS: usize = 20_000;

/// The solver with its workspace: solves any number of problems of one shape and keeps the ends of
/// the last chord, from which the next, similar problem is solved in one or two inductions.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ChordSolver<P = Vertex, W = StepValues> {
    shape: Shape,
    work: W,
    below: P,
    above: P,
    trial: P,
    /// Whether the ends of the last chord stand in `below` and `above`.
    warm: bool,
}

/// Where the answer lies: the mixture of two extreme points.
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

impl<P: Point, W: Storage> ChordSolver<P, W> {
    /// A solver for problems of this shape.
    pub fn new(shape: Shape) -> Result<Self> {
        Ok(Self {
            shape,
            work: W::for_shape(shape)?,
            below: P::for_shape(shape)?,
            above: P::for_shape(shape)?,
            trial: P::for_shape(shape)?,
            warm: false,
        })
    }

    /// The point within the limit that the last answer mixes.
    #[must_use]
    pub fn below(&self) -> &P {
        &self.below
    }

    /// The point above the limit that the last answer mixes; without meaning where its weight is 0.
    #[must_use]
    pub fn above(&self) -> &P {
        &self.above
    }

    /// Forgets the last problem, so that the next is solved from scratch.
    pub fn forget(&mut self) {
        self.warm = false;
    }

    /// max V(g_r) subject to V(g_c) <= limit, over all policies. Allocates nothing.
    ///
    /// Starts from the last answer where that helps; the answer is the same to rounding.
    /// [`Error::Infeasible`] carries the least attainable cost.
    pub fn solve<O: Oracle<Point = P, Work = W>>(
        &mut self,
        problem: &O,
        limit: f64,
    ) -> Result<ChordSolution> {
        debug_assert_eq!(problem.shape(), self.shape);
        let warm = std::mem::replace(&mut self.warm, false);
        let mut inductions = 0;
        if !(warm && self.last_chord_brackets(problem, limit)) {
            problem.solve(Objective::MostReward, &mut self.work, &mut self.above);
            inductions += 1;
            if self.above.cost() <= limit {
                std::mem::swap(&mut self.below, &mut self.above);
                return Ok(self.mixture(limit, 0.0, inductions));
            }
            problem.solve(Objective::LeastCost, &mut self.work, &mut self.below);
            inductions += 1;
            self.check_feasible(problem, limit)?;
        }
        let multiplier = self.narrow(problem, limit, &mut inductions)?;
        self.warm = true;
        Ok(self.mixture(limit, multiplier, inductions))
    }

    /// Whether the ends of the last chord lie on the two sides of the limit in this problem too.
    fn last_chord_brackets<O: Oracle<Point = P, Work = W>>(
        &mut self,
        problem: &O,
        limit: f64,
    ) -> bool {
        let slope = self.slope();
        let ends = [&mut self.below, &mut self.above];
        problem.relocate(slope, &mut self.work, ends);
        self.below.cost() <= limit && limit < self.above.cost()
    }

    fn check_feasible<O: Oracle<Point = P, Work = W>>(
        &mut self,
        problem: &O,
        limit: f64,
    ) -> Result<()> {
        if self.below.cost() <= limit {
            return Ok(());
        }
        problem.solve(Objective::LeastCostAlone, &mut self.work, &mut self.below);
        let least_cost = self.below.cost();
        if least_cost <= limit + self.cost_rounding(problem, limit) {
            Ok(())
        } else {
            Err(Error::Infeasible { least_cost, limit })
        }
    }

    /// By how much rounding may have put the cost of the policy within the limit above it. Where costs
    /// of both signs cancel, the cost itself says nothing about that; their absolute values do.
    pub(crate) fn cost_rounding<O: Oracle<Point = P, Work = W>>(
        &mut self,
        problem: &O,
        limit: f64,
    ) -> f64 {
        let size = problem.cost_magnitude(&mut self.work, &mut self.below);
        let relative = FEASIBILITY_WIDTH * self.below.cost().abs().max(limit.abs());
        relative.max(self.noise() * size)
    }

    /// What rounding can make of a value of size 1 over the steps of an episode.
    fn noise(&self) -> f64 {
        4.0 * f64::EPSILON * (self.shape.horizon() as f64 + 8.0)
    }

    /// Moves the ends of the chord until no policy lies above it; returns its slope.
    fn narrow<O: Oracle<Point = P, Work = W>>(
        &mut self,
        problem: &O,
        limit: f64,
        inductions: &mut usize,
    ) -> Result<f64> {
        let noise = self.noise();
        while *inductions < MAX_INDUCTIONS {
            let multiplier = self.slope();
            let most = problem.best_for(multiplier, &mut self.work, &mut self.trial);
            *inductions += 1;
            let height = |point: &P| point.reward() - multiplier * point.cost();
            let size = |point: &P| point.reward().abs() + multiplier * point.cost().abs();
            let chord = height(&self.below).max(height(&self.above));
            let size_of_ends = size(&self.below).max(size(&self.above));
            if most - chord <= noise * size_of_ends {
                return Ok(multiplier);
            }
            problem.locate(&mut self.work, &mut self.trial);
            let uncertain = noise * size(&self.trial).max(size_of_ends);
            if height(&self.trial) - chord <= uncertain {
                return Ok(multiplier);
            }
            // Where rounding has put the least cost above the limit, what costs less than that end
            // belongs on its side too; on the other it would turn the chord around.
            let end = if self.trial.cost() <= limit.max(self.below.cost()) {
                &mut self.below
            } else {
                &mut self.above
            };
            std::mem::swap(&mut self.trial, end);
        }
        Err(Error::NumericalTrouble {
            solver: "parametric",
            status: format!("no end after {MAX_INDUCTIONS} inductions"),
        })
    }

    /// The slope of the chord, or 0 where the policy within the limit is the better one anyway.
    fn slope(&self) -> f64 {
        let rise = self.above.reward() - self.below.reward();
        let run = self.above.cost() - self.below.cost();
        if rise > 0.0 && run > 0.0 {
            rise / run
        } else {
            0.0
        }
    }

    fn mixture(&self, limit: f64, multiplier: f64, inductions: usize) -> ChordSolution {
        let (below, above) = (&self.below, &self.above);
        let weight_above = if multiplier > 0.0 {
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
            multiplier,
            weight_above,
            inductions,
        }
    }
}
