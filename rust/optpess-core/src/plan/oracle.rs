//! What the chord method asks of a problem: which point is best at a price, and where does it lie?

use crate::error::Result;
use crate::model::StepKernel;
use crate::plan::mixing::PolicyMixer;
use crate::plan::tradeoff::{Magnitude, PlanningProblem, StepValues, Vertex};
use crate::policy::MarkovPolicy;
use crate::shape::Shape;
use crate::table::StepSignal;

/// What an induction maximises.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Objective {
    /// V(g_r) - multiplier V(g_c).
    Lagrangian(f64),
    /// The least cost and, among policies of that cost, the most reward.
    LeastCost,
    /// The least cost and nothing else: no width of ties, whose price is a rounding error in the cost.
    LeastCostAlone,
    /// The most reward and, among policies of that reward, the least cost.
    MostReward,
}

/// Storage for problems of one shape, made once and used again.
pub trait Storage: Sized {
    /// Room for problems of this shape.
    fn for_shape(shape: Shape) -> Result<Self>;
}

/// An extreme point of the set that is searched, and where it lies.
pub trait Point: Storage {
    /// V(g_c).
    fn cost(&self) -> f64;
    /// V(g_r).
    fn reward(&self) -> f64;
    /// The action at each step and state, `[H, S]`.
    fn actions(&self) -> &[u32];
}

/// A polytope of points (cost, reward) with a way to its extreme points.
pub trait Oracle {
    /// What its extreme points are made of.
    type Point: Point;
    /// What its inductions write on.
    type Work: Storage;

    /// H, |S|, |A|.
    fn shape(&self) -> Shape;

    /// Writes the best point for an objective, and where it lies, into `found`.
    fn solve(&self, objective: Objective, work: &mut Self::Work, found: &mut Self::Point);

    /// Writes the best point for g_r - multiplier g_c into `found` and returns the maximum. Where the
    /// point lies is left open: that takes a second pass, which the last induction of a search can do
    /// without.
    fn best_for(&self, multiplier: f64, work: &mut Self::Work, found: &mut Self::Point) -> f64;

    /// Where a point lies.
    fn locate(&self, work: &mut Self::Work, point: &mut Self::Point);

    /// Makes points of this problem of the ends of the last problem's chord, whose slope is given, and
    /// locates them.
    fn relocate(&self, slope: f64, work: &mut Self::Work, ends: [&mut Self::Point; 2]);

    /// V(|g_c|) of a point: what rounding of its cost is relative to.
    fn cost_magnitude(&self, work: &mut Self::Work, point: &mut Self::Point) -> f64;

    /// Writes the policy of the mixture (1 - w) first + w second; `completion` decides wherever neither
    /// arrives.
    fn mix(
        &self,
        ends: [&Self::Point; 2],
        weight: f64,
        completion: &MarkovPolicy,
        mixer: &mut PolicyMixer,
        mixed: &mut MarkovPolicy,
    );
}

impl Storage for Vertex {
    fn for_shape(shape: Shape) -> Result<Self> {
        Self::new(shape)
    }
}

impl Point for Vertex {
    #[inline(always)]
    fn cost(&self) -> f64 {
        self.cost
    }

    #[inline(always)]
    fn reward(&self) -> f64 {
        self.reward
    }

    #[inline(always)]
    fn actions(&self) -> &[u32] {
        &self.actions
    }
}

impl Storage for StepValues {
    fn for_shape(shape: Shape) -> Result<Self> {
        Self::new(shape)
    }
}

/// Policies on one kernel: a policy of the last problem is one of this problem too.
impl<R: StepSignal, C: StepSignal, K: StepKernel> Oracle for PlanningProblem<'_, R, C, K> {
    type Point = Vertex;
    type Work = StepValues;

    fn shape(&self) -> Shape {
        self.shape
    }

    fn solve(&self, objective: Objective, work: &mut StepValues, found: &mut Vertex) {
        self.solve(objective, work, found);
    }

    fn best_for(&self, multiplier: f64, work: &mut StepValues, found: &mut Vertex) -> f64 {
        self.best_for(multiplier, work, found)
    }

    fn locate(&self, work: &mut StepValues, point: &mut Vertex) {
        self.locate(work, point);
    }

    fn relocate(&self, _: f64, work: &mut StepValues, ends: [&mut Vertex; 2]) {
        self.locate_both(work, ends);
    }

    fn cost_magnitude(&self, work: &mut StepValues, point: &mut Vertex) -> f64 {
        let absolute = Magnitude(self.cost);
        let sizes = PlanningProblem {
            shape: self.shape,
            reward: &absolute,
            cost: &absolute,
            kernel: self.kernel,
            initial: self.initial,
        };
        let place = (point.cost, point.reward);
        sizes.locate(work, point);
        let size = point.cost;
        (point.cost, point.reward) = place;
        size
    }

    fn mix(
        &self,
        [below, above]: [&Vertex; 2],
        weight: f64,
        completion: &MarkovPolicy,
        mixer: &mut PolicyMixer,
        mixed: &mut MarkovPolicy,
    ) {
        let (kernel, initial) = (self.kernel, self.initial);
        mixer.mix(below, above, weight, kernel, initial, completion, mixed);
    }
}
