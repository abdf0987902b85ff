//! Deterministic policies as points (cost, reward), and the inductions that find the extreme ones.
//!
//! Everything about the problem `max V(g_r) subject to V(g_c) <= limit` that the chord method and the
//! frontier need is one question, asked for different multipliers: which policy is best for
//! g_r - l g_c, and where does it lie? The two ends, least cost and most reward, are lexicographic.

use std::borrow::BorrowMut;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::model::{InitialDistribution, StepKernel};
use crate::plan::mixing::PolicyMixer;
use crate::policy::MarkovPolicy;
use crate::shape::Shape;
use crate::table::{StepSignal, zeros};
use crate::vectorised::{Job, each_row, vectorised};

/// Relative width of a tie in a lexicographic induction: actions whose first criterion differs by
/// less than this are told apart by the second. Rounding breaks exact ties of integer-valued
/// problems by a few units of 1e-16; without a width the end points would be arbitrary among
/// policies that are equal on paper.
pub(crate) const TIE_WIDTH: f64 = 1e-13;

/// A deterministic policy and where it lies.
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

/// Two signals on one kernel: the data of a constrained problem with one constraint, less its limit.
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

/// g_r - l g_c, never stored.
#[derive(Debug)]
pub struct Penalised<'a, R, C> {
    reward: &'a R,
    cost: &'a C,
    multiplier: f64,
}

impl<'a, R, C> Penalised<'a, R, C> {
    pub(crate) fn new(reward: &'a R, cost: &'a C, multiplier: f64) -> Self {
        Self {
            reward,
            cost,
            multiplier,
        }
    }
}

impl<R: StepSignal, C: StepSignal> StepSignal for Penalised<'_, R, C> {
    #[inline(always)]
    fn at(&self, step: usize, pair: usize) -> f64 {
        self.reward.at(step, pair) - self.multiplier * self.cost.at(step, pair)
    }

    #[inline(always)]
    fn add_to(&self, step: usize, out: &mut [f64]) {
        if let (Some(reward), Some(cost)) = (self.reward.stored(step), self.cost.stored(step)) {
            for ((target, gain), loss) in out.iter_mut().zip(reward).zip(cost) {
                *target += gain - self.multiplier * loss;
            }
        } else {
            for (pair, target) in out.iter_mut().enumerate() {
                *target += self.at(step, pair);
            }
        }
    }
}

/// |g|, never stored.
#[derive(Debug)]
pub(crate) struct Magnitude<'a, G>(pub(crate) &'a G);

impl<G: StepSignal> StepSignal for Magnitude<'_, G> {
    #[inline(always)]
    fn at(&self, step: usize, pair: usize) -> f64 {
        self.0.at(step, pair).abs()
    }
}

/// Values of the next and of this step; re-used, so that an induction allocates nothing.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StepValues {
    objective: [Vec<f64>; 2],     // [S], of the Lagrangian
    reward: [Vec<f64>; 2],        // [S]
    cost: [Vec<f64>; 2],          // [S]
    kept: [Vec<f64>; 2],          // [S], reward and cost from which a second policy is evaluated
    action_values: [Vec<f64>; 2], // [A], first and second criterion of one state
    /// The expected objective of the next state, for the step at hand.
    expected: Vec<f64>, // [S, A]
}

impl StepValues {
    pub(crate) fn new(shape: Shape) -> Result<Self> {
        let states = || zeros("state values [S]", shape.num_states());
        let actions = || zeros("action values [A]", shape.num_actions());
        Ok(Self {
            objective: [states()?, states()?],
            reward: [states()?, states()?],
            cost: [states()?, states()?],
            kept: [states()?, states()?],
            action_values: [actions()?, actions()?],
            expected: zeros("expected values [S, A]", shape.pairs())?,
        })
    }
}

impl<R: StepSignal, C: StepSignal, K: StepKernel> PlanningProblem<'_, R, C, K> {
    /// The signal g_r - multiplier g_c.
    #[must_use]
    pub fn lagrangian(&self, multiplier: f64) -> Penalised<'_, R, C> {
        Penalised::new(self.reward, self.cost, multiplier)
    }

    /// Writes the policy at one end, and where it lies, into `found`.
    fn extreme(&self, objective: Objective, values: &mut StepValues, found: &mut Vertex) {
        match objective {
            Objective::LeastCost => vectorised(Lexicographic::<_, _, _, true> {
                tie_width: TIE_WIDTH,
                problem: self,
                values,
                found,
            }),
            Objective::LeastCostAlone => vectorised(Lexicographic::<_, _, _, true> {
                tie_width: 0.0,
                problem: self,
                values,
                found,
            }),
            Objective::MostReward => vectorised(Lexicographic::<_, _, _, false> {
                tie_width: TIE_WIDTH,
                problem: self,
                values,
                found,
            }),
        }
    }

    /// Writes the actions of the best policy for g_r - multiplier g_c into `found` and returns the
    /// maximum. Where the policy lies is left open: that takes a second pass, which the last induction
    /// of a search can do without.
    pub(crate) fn best_for(
        &self,
        multiplier: f64,
        values: &mut StepValues,
        found: &mut Vertex,
    ) -> f64 {
        vectorised(Lagrangian {
            problem: self,
            multiplier,
            values,
            found,
        })
    }

    /// Where a given deterministic policy lies.
    pub(crate) fn locate(&self, values: &mut StepValues, vertex: &mut Vertex) {
        let horizon = self.shape.horizon();
        self.locate_from(horizon, horizon, values, vertex);
    }

    /// [`PlanningProblem::locate`] for two policies. The ends of a chord differ in few places as a rule; the
    /// steps at the end of the episode in which they do not are evaluated once for both.
    pub(crate) fn locate_both(&self, values: &mut StepValues, ends: [&mut Vertex; 2]) {
        let [first, second] = ends;
        let (horizon, states) = (self.shape.horizon(), self.shape.num_states());
        let mut pairs = first.actions.iter().zip(&second.actions);
        let differing = pairs.rposition(|(a, b)| a != b);
        let split = differing.map_or(0, |place| place / states + 1);
        self.locate_from(horizon, split, values, first);
        if split < horizon {
            values.reward[0].copy_from_slice(&values.kept[0]);
            values.cost[0].copy_from_slice(&values.kept[1]);
        }
        self.locate_from(split, horizon, values, second);
    }

    /// Evaluates the steps before `end`, from the values of step `end` in `values`, and keeps those of
    /// the step `keep`.
    fn locate_from(&self, end: usize, keep: usize, values: &mut StepValues, vertex: &mut Vertex) {
        vectorised(Locate {
            problem: self,
            end,
            keep,
            values,
            vertex,
        });
    }

    /// Reward and cost to go of one pair, from those of the next step.
    #[inline(always)]
    fn to_go(&self, step: usize, pair: usize, reward: &[f64], cost: &[f64]) -> (f64, f64) {
        let (mut own_reward, mut own_cost) = (self.reward.at(step, pair), self.cost.at(step, pair));
        if step + 1 < self.shape.horizon() {
            let next = self.kernel.expectation_of_two(step, pair, reward, cost);
            own_reward += next.0;
            own_cost += next.1;
        }
        (own_reward, own_cost)
    }

    /// V(|g_c|) of a policy; its place stays as it is.
    pub(super) fn cost_magnitude(&self, values: &mut StepValues, point: &mut Vertex) -> f64 {
        let absolute = Magnitude(self.cost);
        let sizes = PlanningProblem {
            shape: self.shape,
            reward: &absolute,
            cost: &absolute,
            kernel: self.kernel,
            initial: self.initial,
        };
        let place = (point.cost, point.reward);
        sizes.locate(values, point);
        let size = point.cost;
        (point.cost, point.reward) = place;
        size
    }

    #[inline(always)]
    fn place(&self, values: &StepValues, vertex: &mut Vertex) {
        vertex.reward = self.initial.expectation(&values.reward[0]);
        vertex.cost = self.initial.expectation(&values.cost[0]);
    }
}

/// One end of the curve "best reward for a limit".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Objective {
    /// The least cost and, among policies of that cost, the most reward.
    LeastCost,
    /// The least cost and nothing else: no width of ties, whose price is a rounding error in the cost.
    LeastCostAlone,
    /// The most reward and, among policies of that reward, the least cost.
    MostReward,
}

/// An extreme point of the set that is searched, and where it lies.
pub trait Point: Sized {
    /// Room for a point of problems of this shape.
    fn for_shape(shape: Shape) -> Result<Self>;
    /// V(g_c).
    fn cost(&self) -> f64;
    /// V(g_r).
    fn reward(&self) -> f64;
    /// The action at each step and state, `[H, S]`.
    fn actions(&self) -> &[u32];
}

/// Answers what the chord method asks of a polytope of points (cost, reward). Owns or borrows the
/// workspace it needs for that, so that asking again allocates nothing.
pub trait Oracle {
    /// What its extreme points are made of.
    type Point: Point;

    /// H, |S|, |A|.
    fn shape(&self) -> Shape;

    /// Writes the best point for g_r - multiplier g_c into `found` and returns the maximum. Where the
    /// point lies is left open: that takes a second pass, which the last induction of a search can do
    /// without.
    fn maximise(&mut self, multiplier: f64, found: &mut Self::Point) -> f64;

    /// Writes the point at one end, and where it lies, into `found`.
    fn extreme(&mut self, objective: Objective, found: &mut Self::Point);

    /// Where a point lies.
    fn locate(&mut self, point: &mut Self::Point);

    /// Makes points of this problem of the ends of the last problem's chord, whose slope is given, and
    /// locates them.
    fn relocate(&mut self, slope: f64, ends: [&mut Self::Point; 2]);

    /// V(|g_c|) of a point: what rounding of its cost is relative to.
    fn cost_magnitude(&mut self, point: &mut Self::Point) -> f64;

    /// Writes the policy of the mixture (1 - weight) first + weight second; `completion` decides wherever
    /// neither arrives.
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

    #[inline(always)]
    fn actions(&self) -> &[u32] {
        &self.actions
    }
}

/// What [`PlainOracle`] writes on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PlanningWork {
    pub(super) values: StepValues,
    mixer: PolicyMixer,
}

impl PlanningWork {
    /// A workspace for problems of this shape.
    pub fn new(shape: Shape) -> Result<Self> {
        Ok(Self {
            values: StepValues::new(shape)?,
            mixer: PolicyMixer::new(shape)?,
        })
    }
}

/// Policies of one problem, on its tables as they are. `W` is its workspace: its own, or borrowed from
/// someone who asks about many problems.
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
    /// An oracle that writes on a workspace made for the problem's shape; allocates nothing.
    pub fn on(problem: &'a PlanningProblem<'a, R, C, K>, work: &'w mut PlanningWork) -> Self {
        Self { problem, work }
    }
}

/// A policy of the last problem is one of this problem too.
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
        let values = &mut self.work.borrow_mut().values;
        self.problem.best_for(multiplier, values, found)
    }

    fn extreme(&mut self, objective: Objective, found: &mut Vertex) {
        let values = &mut self.work.borrow_mut().values;
        self.problem.extreme(objective, values, found);
    }

    fn locate(&mut self, point: &mut Vertex) {
        self.problem
            .locate(&mut self.work.borrow_mut().values, point);
    }

    fn relocate(&mut self, _: f64, ends: [&mut Vertex; 2]) {
        self.problem
            .locate_both(&mut self.work.borrow_mut().values, ends);
    }

    fn cost_magnitude(&mut self, point: &mut Vertex) -> f64 {
        let values = &mut self.work.borrow_mut().values;
        self.problem.cost_magnitude(values, point)
    }

    fn mix(
        &mut self,
        [below, above]: [&Vertex; 2],
        weight: f64,
        completion: &MarkovPolicy,
        mixed: &mut MarkovPolicy,
    ) {
        let (kernel, initial) = (self.problem.kernel, self.problem.initial);
        let mixer = &mut self.work.borrow_mut().mixer;
        mixer.mix(below, above, weight, kernel, initial, completion, mixed);
    }
}

/// Splits the step values so that index 1 holds the next step's and index 0 is written.
macro_rules! turn {
    ($pair:expr) => {{
        $pair.swap(0, 1);
        let [here, next] = &mut $pair;
        (here, &*next)
    }};
}

struct Lagrangian<'a, 'p, R, C, K> {
    problem: &'a PlanningProblem<'p, R, C, K>,
    multiplier: f64,
    values: &'a mut StepValues,
    found: &'a mut Vertex,
}

impl<R: StepSignal, C: StepSignal, K: StepKernel> Job for Lagrangian<'_, '_, R, C, K> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let (problem, shape) = (self.problem, self.problem.shape);
        let signal = problem.lagrangian(self.multiplier);
        let expected = &mut self.values.expected;
        expected.fill(0.0); // nothing follows the last step
        for step in (0..shape.horizon()).rev() {
            let (objective, next_objective) = turn!(self.values.objective);
            if step + 1 < shape.horizon() {
                problem
                    .kernel
                    .all_expectations(step, next_objective, expected);
            }
            let chosen = &mut self.found.actions[step * shape.num_states()..][..shape.num_states()];
            signal.add_to(step, expected); // now Q_h(s,a)
            let mut targets = chosen.iter_mut().zip(objective.iter_mut());
            each_row(expected, shape.num_actions(), |action_values| {
                let (mut best, mut best_action) = (f64::NEG_INFINITY, 0);
                for (action, &q) in action_values.iter().enumerate() {
                    if q > best {
                        (best, best_action) = (q, action as u32);
                    }
                }
                if let Some((choice, value)) = targets.next() {
                    (*choice, *value) = (best_action, best);
                }
            });
        }
        problem.initial.expectation(&self.values.objective[0])
    }
}

/// `COST_FIRST`: least cost, then most reward; otherwise most reward, then least cost.
struct Lexicographic<'a, 'p, R, C, K, const COST_FIRST: bool> {
    tie_width: f64,
    problem: &'a PlanningProblem<'p, R, C, K>,
    values: &'a mut StepValues,
    found: &'a mut Vertex,
}

impl<R: StepSignal, C: StepSignal, K: StepKernel, const COST_FIRST: bool> Job
    for Lexicographic<'_, '_, R, C, K, COST_FIRST>
{
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (problem, shape) = (self.problem, self.problem.shape);
        for step in (0..shape.horizon()).rev() {
            let (reward, next_reward) = turn!(self.values.reward);
            let (cost, next_cost) = turn!(self.values.cost);
            let [first, second] = &mut self.values.action_values;
            let chosen = &mut self.found.actions[step * shape.num_states()..][..shape.num_states()];
            for (state, choice) in chosen.iter_mut().enumerate() {
                let (mut best, mut magnitude) = (f64::NEG_INFINITY, 0.0_f64);
                for action in 0..shape.num_actions() {
                    let pair = shape.pair(state, action);
                    let (gain, price) = problem.to_go(step, pair, next_reward, next_cost);
                    (first[action], second[action]) = if COST_FIRST {
                        (-price, gain)
                    } else {
                        (gain, -price)
                    };
                    best = best.max(first[action]);
                    magnitude = magnitude.max(first[action].abs());
                }
                let acceptable = best - self.tie_width * magnitude;
                let (mut best_second, mut best_action) = (f64::NEG_INFINITY, 0);
                for action in 0..shape.num_actions() {
                    if first[action] >= acceptable && second[action] > best_second {
                        (best_second, best_action) = (second[action], action);
                    }
                }
                *choice = best_action as u32;
                (reward[state], cost[state]) = if COST_FIRST {
                    (second[best_action], -first[best_action])
                } else {
                    (first[best_action], -second[best_action])
                };
            }
        }
        problem.place(self.values, self.found);
    }
}

struct Locate<'a, 'p, R, C, K> {
    problem: &'a PlanningProblem<'p, R, C, K>,
    end: usize,
    keep: usize,
    values: &'a mut StepValues,
    vertex: &'a mut Vertex,
}

impl<R: StepSignal, C: StepSignal, K: StepKernel> Job for Locate<'_, '_, R, C, K> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (problem, shape) = (self.problem, self.problem.shape);
        for step in (0..self.end).rev() {
            let (reward, next_reward) = turn!(self.values.reward);
            let (cost, next_cost) = turn!(self.values.cost);
            for state in 0..shape.num_states() {
                let action = self.vertex.actions[step * shape.num_states() + state] as usize;
                let pair = shape.pair(state, action);
                (reward[state], cost[state]) = problem.to_go(step, pair, next_reward, next_cost);
            }
            if step == self.keep {
                let [kept_reward, kept_cost] = &mut self.values.kept;
                kept_reward.copy_from_slice(reward);
                kept_cost.copy_from_slice(cost);
            }
        }
        problem.place(self.values, self.vertex);
    }
}
