//! Deterministic policies as points (cost, reward), and the inductions that find the extreme ones.
//!
//! Everything about the problem `max V(g_r) subject to V(g_c) <= limit` that the chord method and the
//! frontier need is one question, asked for different multipliers: which policy is best for
//! g_r - l g_c, and where does it lie? The two ends, least cost and most reward, are lexicographic.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::model::{InitialDistribution, StepKernel};
use crate::policy::MarkovPolicy;
use crate::shape::Shape;
use crate::table::{StepSignal, zeros};
use crate::vectorised::{Job, vectorised};

/// Relative width of a tie in a lexicographic induction: actions whose first criterion differs by
/// less than this are told apart by the second. Rounding breaks exact ties of integer-valued
/// problems by a few units of 1e-16; without a width the end points would be arbitrary among
/// policies that are equal on paper.
const TIE_WIDTH: f64 = 1e-13;

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

/// What an induction maximises.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Objective {
    /// V(g_r) - multiplier V(g_c).
    Lagrangian(f64),
    /// The least cost and, among policies of that cost, the most reward.
    LeastCost,
    /// The most reward and, among policies of that reward, the least cost.
    MostReward,
}

/// Two signals on one kernel: the data of a constrained problem with one constraint, less its limit.
#[derive(Debug)]
pub struct Tradeoff<'a, R, C, K> {
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

impl<R: StepSignal, C: StepSignal> StepSignal for Penalised<'_, R, C> {
    #[inline(always)]
    fn at(&self, step: usize, pair: usize) -> f64 {
        self.reward.at(step, pair) - self.multiplier * self.cost.at(step, pair)
    }
}

/// |g|, never stored.
#[derive(Debug)]
pub(crate) struct Absolute<'a, G>(pub(crate) &'a G);

impl<G: StepSignal> StepSignal for Absolute<'_, G> {
    #[inline(always)]
    fn at(&self, step: usize, pair: usize) -> f64 {
        self.0.at(step, pair).abs()
    }
}

/// Values of the next and of this step; re-used, so that an induction allocates nothing.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StepValues {
    objective: [Vec<f64>; 2], // [S], of the Lagrangian
    reward: [Vec<f64>; 2],    // [S]
    cost: [Vec<f64>; 2],      // [S]
    qualities: [Vec<f64>; 2], // [A], first and second criterion of one state
}

impl StepValues {
    pub(crate) fn new(shape: Shape) -> Result<Self> {
        let states = || zeros("state values [S]", shape.num_states());
        let actions = || zeros("action values [A]", shape.num_actions());
        Ok(Self {
            objective: [states()?, states()?],
            reward: [states()?, states()?],
            cost: [states()?, states()?],
            qualities: [actions()?, actions()?],
        })
    }
}

impl<R: StepSignal, C: StepSignal, K: StepKernel> Tradeoff<'_, R, C, K> {
    /// The signal g_r - multiplier g_c.
    #[must_use]
    pub fn lagrangian(&self, multiplier: f64) -> Penalised<'_, R, C> {
        Penalised {
            reward: self.reward,
            cost: self.cost,
            multiplier,
        }
    }

    /// Writes the best policy for an objective, and where it lies, into `found`.
    pub(crate) fn solve(&self, objective: Objective, values: &mut StepValues, found: &mut Vertex) {
        match objective {
            Objective::Lagrangian(multiplier) => vectorised(Lagrangian {
                problem: self,
                multiplier,
                values,
                found,
            }),
            Objective::LeastCost => vectorised(Lexicographic::<_, _, _, true> {
                problem: self,
                values,
                found,
            }),
            Objective::MostReward => vectorised(Lexicographic::<_, _, _, false> {
                problem: self,
                values,
                found,
            }),
        }
    }

    /// Where a given deterministic policy lies.
    pub(crate) fn locate(&self, values: &mut StepValues, vertex: &mut Vertex) {
        vectorised(Locate {
            problem: self,
            values,
            vertex,
        });
    }

    /// Reward and cost to go of one pair, from those of the next step.
    #[inline(always)]
    fn to_go(&self, step: usize, pair: usize, reward: &[f64], cost: &[f64]) -> (f64, f64) {
        let (mut own_reward, mut own_cost) = (self.reward.at(step, pair), self.cost.at(step, pair));
        if step + 1 < self.shape.horizon() {
            own_reward += self.kernel.expect(step, pair, reward);
            own_cost += self.kernel.expect(step, pair, cost);
        }
        (own_reward, own_cost)
    }

    #[inline(always)]
    fn place(&self, values: &StepValues, vertex: &mut Vertex) {
        vertex.reward = self.initial.expect(&values.reward[0]);
        vertex.cost = self.initial.expect(&values.cost[0]);
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
    problem: &'a Tradeoff<'p, R, C, K>,
    multiplier: f64,
    values: &'a mut StepValues,
    found: &'a mut Vertex,
}

impl<R: StepSignal, C: StepSignal, K: StepKernel> Job for Lagrangian<'_, '_, R, C, K> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (problem, shape) = (self.problem, self.problem.shape);
        let signal = problem.lagrangian(self.multiplier);
        for step in (0..shape.horizon()).rev() {
            let last = step + 1 == shape.horizon();
            let (objective, next_objective) = turn!(self.values.objective);
            let (reward, next_reward) = turn!(self.values.reward);
            let (cost, next_cost) = turn!(self.values.cost);
            let chosen = &mut self.found.actions[step * shape.num_states()..][..shape.num_states()];
            for (state, choice) in chosen.iter_mut().enumerate() {
                let (mut best, mut best_action) = (f64::NEG_INFINITY, 0);
                for action in 0..shape.num_actions() {
                    let pair = shape.pair(state, action);
                    let mut quality = signal.at(step, pair);
                    if !last {
                        quality += problem.kernel.expect(step, pair, next_objective);
                    }
                    if quality > best {
                        (best, best_action) = (quality, action);
                    }
                }
                let pair = shape.pair(state, best_action);
                *choice = best_action as u32;
                objective[state] = best;
                (reward[state], cost[state]) = problem.to_go(step, pair, next_reward, next_cost);
            }
        }
        problem.place(self.values, self.found);
    }
}

/// `COST_FIRST`: least cost, then most reward; otherwise most reward, then least cost.
struct Lexicographic<'a, 'p, R, C, K, const COST_FIRST: bool> {
    problem: &'a Tradeoff<'p, R, C, K>,
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
            let [first, second] = &mut self.values.qualities;
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
                let acceptable = best - TIE_WIDTH * magnitude;
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
    problem: &'a Tradeoff<'p, R, C, K>,
    values: &'a mut StepValues,
    vertex: &'a mut Vertex,
}

impl<R: StepSignal, C: StepSignal, K: StepKernel> Job for Locate<'_, '_, R, C, K> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (problem, shape) = (self.problem, self.problem.shape);
        for step in (0..shape.horizon()).rev() {
            let (reward, next_reward) = turn!(self.values.reward);
            let (cost, next_cost) = turn!(self.values.cost);
            for state in 0..shape.num_states() {
                let action = self.vertex.actions[step * shape.num_states() + state] as usize;
                let pair = shape.pair(state, action);
                (reward[state], cost[state]) = problem.to_go(step, pair, next_reward, next_cost);
            }
        }
        problem.place(self.values, self.vertex);
    }
}
