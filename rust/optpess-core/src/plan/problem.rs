//! Two signals on one kernel, deterministic policies as points (cost, reward), and oracles for the extreme points.
//!
//! For `max V(g_r) subject to V(g_c) <= limit` the chord method and the frontier need an [`Oracle`]: the best policy
//! for g_r - l g_c for different multipliers l, and its (cost, reward). The two ends, least cost and most reward, are
//! lexicographic.

use std::borrow::BorrowMut;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::evaluate::{Choice, Expected, PolicyMixer, RollingValues, Sweep, Take};
use crate::model::{InitialDistribution, StepKernel};
use crate::plan::induction::{Lagrangian, Lexicographic, Magnitude, Maximise, TIE_WIDTH};
use crate::policy::MarkovPolicy;
use crate::shape::Shape;
use crate::table::{StepSignal, zeros};

/// A deterministic policy and its (cost, reward).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Vertex {
    pub(crate) cost: f64,
    pub(crate) reward: f64,
    pub(crate) actions: Vec<u32>, // [H, S]
}

impl Vertex {
    pub(crate) fn new(shape: Shape) -> Result<Self> {
        Ok(Self {
            cost: f64::NAN,
            reward: f64::NAN,
            actions: zeros("actions [H, S]", shape.horizon() * shape.num_states())?,
        })
    }

    /// V(g_c) of the policy.
    #[must_use]
    pub fn cost(&self) -> f64 {
        self.cost
    }

    /// V(g_r) of the policy.
    #[must_use]
    pub fn reward(&self) -> f64 {
        self.reward
    }

    /// The action at each step and state, `[H, S]`.
    #[must_use]
    pub fn actions(&self) -> &[u32] {
        &self.actions
    }

    /// The policy.
    pub fn policy(&self, shape: Shape) -> Result<MarkovPolicy> {
        MarkovPolicy::deterministic(shape, &self.actions)
    }
}

/// Two signals on one kernel: the data, without the limit, of a problem with one constraint.
#[derive(Debug)]
pub struct PlanningProblem<'a, R, C, K> {
    /// H, |S|, |A|.
    pub shape: Shape,
    /// g_r, to be maximised.
    pub reward: &'a R,
    /// g_c, to be limited.
    pub cost: &'a C,
    /// P, stochastic or not.
    pub kernel: &'a K,
    /// mu.
    pub initial: &'a InitialDistribution,
}

/// One end of the curve "best reward for a limit".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Objective {
    /// The least cost and, among policies of that cost, the most reward.
    LeastCost,
    /// The least cost alone: without a width of ties, which would add a rounding error to the cost.
    LeastCostAlone,
    /// The most reward and, among policies of that reward, the least cost.
    MostReward,
}

/// An extreme point of the polytope that is searched, and its (cost, reward).
pub trait Point: Sized {
    /// A point for problems of this shape, to be overwritten.
    fn for_shape(shape: Shape) -> Result<Self>;
    /// V(g_c).
    fn cost(&self) -> f64;
    /// V(g_r).
    fn reward(&self) -> f64;
}

/// A point whose policy is a table of 32-bit actions.
pub trait ActionPoint: Point {
    /// The action at each step and state, `[H, S]`.
    fn actions(&self) -> &[u32];

    /// Whether a stored point is one of a problem of this shape.
    fn fits(&self, shape: Shape) -> bool {
        let exists = |&action: &u32| (action as usize) < shape.num_actions();
        let actions = self.actions();
        actions.iter().all(exists) && actions.len() == shape.horizon() * shape.num_states()
    }
}

/// Finds extreme points of a polytope of points (cost, reward). Owns or borrows its workspace, so that its methods
/// allocate nothing.
pub trait Oracle {
    /// Its extreme points.
    type Point: Point;

    /// H, |S|, |A|.
    fn shape(&self) -> Shape;

    /// Writes the best point for g_r - multiplier g_c into `found` and returns the maximum. Does not compute the
    /// point's cost and reward: that takes a second pass, which the last induction of a search does not need.
    fn maximise(&mut self, multiplier: f64, found: &mut Self::Point) -> f64;

    /// Writes the point at one end, with its cost and reward, into `found`.
    fn extreme(&mut self, objective: Objective, found: &mut Self::Point);

    /// Computes the cost and reward of a point that [`Oracle::maximise`] has written; nothing is left to do if that
    /// computes them too.
    fn locate(&mut self, point: &mut Self::Point);

    /// [`Error::Interrupted`] if the call was stopped; then the last answer is worthless.
    #[inline(always)]
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Turns the ends of the last problem's chord, whose slope is given, into points of this problem, and computes
    /// their costs and rewards.
    fn relocate(&mut self, slope: f64, ends: [&mut Self::Point; 2]);

    /// V(|g_c|) of a point, to which the rounding of its cost is relative.
    fn cost_magnitude(&mut self, point: &mut Self::Point) -> f64;
}

/// An oracle that writes mixtures of its points as one policy.
pub trait MixingOracle: Oracle {
    /// Writes the policy of the mixture (1 - weight) first + weight second; `completion` is used where neither has
    /// mass.
    fn mix(
        &mut self,
        ends: [&Self::Point; 2],
        weight: f64,
        completion: &MarkovPolicy,
        mixed: &mut MarkovPolicy,
    );
}

impl Point for Vertex {
    fn for_shape(shape: Shape) -> Result<Self> {
        Self::new(shape)
    }

    #[inline(always)]
    fn cost(&self) -> f64 {
        self.cost
    }

    #[inline(always)]
    fn reward(&self) -> f64 {
        self.reward
    }
}

impl ActionPoint for Vertex {
    #[inline(always)]
    fn actions(&self) -> &[u32] {
        &self.actions
    }
}

/// The workspace in which reward and cost are evaluated together. Evaluations allocate nothing.
#[derive(Debug, Clone)]
pub(super) struct PairWork {
    values: RollingValues<2>,     // of reward and cost
    kept: RollingValues<2>,       // where the evaluation of a second policy starts
    action_values: [Vec<f64>; 2], // [S, A]
}

impl PairWork {
    pub(super) fn new(shape: Shape) -> Result<Self> {
        let pairs = || zeros("action values [S, A]", shape.pairs());
        Ok(Self {
            values: RollingValues::new(shape)?,
            kept: RollingValues::new(shape)?,
            action_values: [pairs()?, pairs()?],
        })
    }
}

impl<'a, R: StepSignal, C: StepSignal, K: StepKernel> PlanningProblem<'a, R, C, K> {
    /// The same kernel and start with |g_r| and |g_c|.
    pub(super) fn magnitudes<'b>(
        &self,
        reward: &'b Magnitude<'a, R>,
        cost: &'b Magnitude<'a, C>,
    ) -> PlanningProblem<'b, Magnitude<'a, R>, Magnitude<'a, C>, K>
    where
        'a: 'b,
    {
        PlanningProblem {
            shape: self.shape,
            reward,
            cost,
            kernel: self.kernel,
            initial: self.initial,
        }
    }

    /// Sweeps both signals over some steps.
    #[inline(always)]
    fn sweep<H: Choice<2>>(&self, steps: Range<usize>, choice: &mut H, work: &mut PairWork) {
        Sweep {
            shape: self.shape,
            steps,
            signals: (self.reward, self.cost),
            backup: &mut Expected(self.kernel),
            choice,
            values: &mut work.values,
            action_values: work.action_values.each_mut().map(|q| &mut q[..]),
        }
        .run();
    }

    /// (reward, cost) from the start, after step 0 has been swept.
    #[inline(always)]
    fn start_values(&self, work: &PairWork) -> (f64, f64) {
        let values = work.values.last();
        values.map(|values| self.initial.expectation(values)).into()
    }

    /// The policy at one end, with its reward and cost.
    fn lexicographic<const COST_FIRST: bool>(
        &self,
        tie_width: f64,
        work: &mut PairWork,
        found: &mut Vertex,
    ) {
        let mut choice = Lexicographic::<COST_FIRST> {
            tie_width,
            states: self.shape.num_states(),
            actions: &mut found.actions,
        };
        self.sweep(0..self.shape.horizon(), &mut choice, work);
        (found.reward, found.cost) = self.start_values(work);
    }

    /// (reward, cost) of the policy with these actions.
    pub(super) fn place(&self, work: &mut PairWork, actions: &[u32]) -> (f64, f64) {
        self.place_from(self.shape.horizon(), work, actions)
    }

    /// The same, starting from the values of step `end` in `work`.
    fn place_from(&self, end: usize, work: &mut PairWork, actions: &[u32]) -> (f64, f64) {
        let states = self.shape.num_states();
        self.sweep(0..end, &mut Take { states, actions }, work);
        self.start_values(work)
    }

    /// Computes the reward and cost of a given deterministic policy.
    pub(super) fn locate(&self, work: &mut PairWork, vertex: &mut Vertex) {
        (vertex.reward, vertex.cost) = self.place(work, &vertex.actions);
    }

    /// [`PlanningProblem::locate`] for two policies. The ends of a chord usually differ in few actions; the last
    /// steps, in which they agree, are evaluated once for both.
    fn locate_both(&self, work: &mut PairWork, [first, second]: [&mut Vertex; 2]) {
        let (horizon, states) = (self.shape.horizon(), self.shape.num_states());
        let mut pairs = first.actions.iter().zip(&second.actions);
        let differing = pairs.rposition(|(a, b)| a != b);
        let split = differing.map_or(0, |place| place / states + 1);
        let actions = &first.actions;
        self.sweep(split..horizon, &mut Take { states, actions }, work);
        work.kept.copy_last(&work.values);
        (first.reward, first.cost) = self.place_from(split, work, &first.actions);
        work.values.copy_last(&work.kept);
        (second.reward, second.cost) = self.place_from(split, work, &second.actions);
    }

    /// V(|g_c|) of the policy with these actions.
    pub(super) fn cost_magnitude(&self, work: &mut PairWork, actions: &[u32]) -> f64 {
        let sizes = (Magnitude(self.reward), Magnitude(self.cost));
        self.magnitudes(&sizes.0, &sizes.1).place(work, actions).1
    }
}

/// The workspace of [`PlainOracle`]. The stored form is its shape.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "Shape", into = "Shape")]
pub struct PlanningWork {
    shape: Shape,
    pair: PairWork,
    objective: RollingValues<1>,
    mixer: PolicyMixer,
}

impl PlanningWork {
    /// H, |S|, |A|.
    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    /// A workspace for problems of this shape.
    pub fn new(shape: Shape) -> Result<Self> {
        Ok(Self {
            shape,
            pair: PairWork::new(shape)?,
            objective: RollingValues::new(shape)?,
            mixer: PolicyMixer::new(shape)?,
        })
    }
}

impl TryFrom<Shape> for PlanningWork {
    type Error = Error;

    fn try_from(shape: Shape) -> Result<Self> {
        Self::new(shape)
    }
}

impl From<PlanningWork> for Shape {
    fn from(work: PlanningWork) -> Self {
        work.shape
    }
}

/// The oracle over the policies of one problem, on its plain tables. `W` is an owned workspace, or one that is borrowed
/// for many problems.
#[derive(Debug)]
pub struct PlainOracle<'a, R, C, K, W = PlanningWork> {
    problem: &'a PlanningProblem<'a, R, C, K>,
    work: W,
}

impl<'a, R, C, K> PlainOracle<'a, R, C, K> {
    /// An oracle with a workspace of its own.
    pub fn new(problem: &'a PlanningProblem<'a, R, C, K>) -> Result<Self> {
        let work = PlanningWork::new(problem.shape)?;
        Ok(Self { problem, work })
    }
}

impl<'a, 'w, R, C, K> PlainOracle<'a, R, C, K, &'w mut PlanningWork> {
    /// An oracle with a borrowed workspace of the problem's shape; allocates nothing.
    pub fn on(problem: &'a PlanningProblem<'a, R, C, K>, work: &'w mut PlanningWork) -> Self {
        Self { problem, work }
    }
}

/// Relocating needs no change of the points: a policy of the last problem is one of this problem too.
impl<R, C, K, W> Oracle for PlainOracle<'_, R, C, K, W>
where
    R: StepSignal,
    C: StepSignal,
    K: StepKernel,
    W: BorrowMut<PlanningWork>,
{
    type Point = Vertex;

    fn shape(&self) -> Shape {
        self.problem.shape
    }

    fn maximise(&mut self, multiplier: f64, found: &mut Vertex) -> f64 {
        let (problem, shape) = (self.problem, self.problem.shape);
        let work = self.work.borrow_mut();
        Sweep {
            shape,
            steps: 0..shape.horizon(),
            signals: &Lagrangian::of_one(problem.reward, problem.cost, &multiplier),
            backup: &mut Expected(problem.kernel),
            choice: &mut Maximise {
                states: shape.num_states(),
                actions: &mut found.actions,
            },
            values: &mut work.objective,
            action_values: [&mut work.pair.action_values[0]],
        }
        .run();
        let [values] = work.objective.last();
        problem.initial.expectation(values)
    }

    fn extreme(&mut self, objective: Objective, found: &mut Vertex) {
        let (problem, work) = (self.problem, &mut self.work.borrow_mut().pair);
        match objective {
            Objective::LeastCost => problem.lexicographic::<true>(TIE_WIDTH, work, found),
            Objective::LeastCostAlone => problem.lexicographic::<true>(0.0, work, found),
            Objective::MostReward => problem.lexicographic::<false>(TIE_WIDTH, work, found),
        }
    }

    fn locate(&mut self, point: &mut Vertex) {
        let work = &mut self.work.borrow_mut().pair;
        self.problem.locate(work, point);
    }

    fn relocate(&mut self, _: f64, ends: [&mut Vertex; 2]) {
        let work = &mut self.work.borrow_mut().pair;
        self.problem.locate_both(work, ends);
    }

    fn cost_magnitude(&mut self, point: &mut Vertex) -> f64 {
        let work = &mut self.work.borrow_mut().pair;
        self.problem.cost_magnitude(work, &point.actions)
    }
}

impl<R, C, K, W> MixingOracle for PlainOracle<'_, R, C, K, W>
where
    R: StepSignal,
    C: StepSignal,
    K: StepKernel,
    W: BorrowMut<PlanningWork>,
{
    fn mix(
        &mut self,
        ends: [&Vertex; 2],
        weight: f64,
        completion: &MarkovPolicy,
        mixed: &mut MarkovPolicy,
    ) {
        let (kernel, initial) = (self.problem.kernel, self.problem.initial);
        let ends = ends.map(|end| (&end.actions[..], kernel));
        let mixer = &mut self.work.borrow_mut().mixer;
        mixer.mix(ends, weight, initial, completion, mixed);
    }
}
