//! Best pairs of a policy and a kernel, for a set of plausible kernels: extended induction, and the optimum within a
//! limit.
//!
//! A pair of a policy and a kernel is a point of the polytope of extended occupancies
//! z_h(s,a,s') = q_h(s,a) p'_h(s'|s,a). So the chord method applies as it does to policies alone, with extended
//! induction as its oracle.

use std::borrow::BorrowMut;

use serde::{Deserialize, Serialize};

use crate::confidence::KernelBox;
use crate::error::{Error, Result};
use crate::evaluate::{
    Best, Choice, Memory, OccupancyMeasure, PolicyMixer, Sweep, Take, occupancy,
};
use crate::model::{InitialDistribution, StepKernel};
use crate::plan::chord::ChordSearch;
use crate::plan::exact::VALUE_WIDTH;
use crate::plan::induction::{Lagrangian, Maximise};
use crate::plan::problem::{
    ActionPoint, MixingOracle, Objective, Oracle, PairWork, PlanningProblem, Point, Vertex,
};
use crate::policy::MarkovPolicy;
use crate::shape::Shape;
use crate::sums::{dot, dot_two};
use crate::table::{StateValues, StepSignal, zeros};

/// A deterministic policy with a plausible kernel, and the (cost, reward) of the pair. Only the rows of the actions
/// taken are stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExtendedVertex {
    vertex: Vertex,
    rows: Vec<f64>, // [H - 1, S, S]
}

impl ExtendedVertex {
    /// The policy and its (cost, reward).
    #[must_use]
    pub fn vertex(&self) -> &Vertex {
        &self.vertex
    }

    /// The distribution of the next state under the policy, `[H - 1, S, S]`.
    #[must_use]
    pub fn rows(&self) -> &[f64] {
        &self.rows
    }

    /// The kernel, valid for the actions of the policy only.
    pub(crate) fn kernel(&self, shape: Shape) -> ChosenRows<'_> {
        ChosenRows {
            shape,
            rows: &self.rows,
        }
    }
}

impl Point for ExtendedVertex {
    fn for_shape(shape: Shape) -> Result<Self> {
        let states = shape.num_states();
        let entries = (shape.horizon() - 1) * states * states;
        Ok(Self {
            vertex: Vertex::new(shape)?,
            rows: zeros("the kernel of a policy [H, S, S]", entries)?,
        })
    }

    #[inline(always)]
    fn cost(&self) -> f64 {
        self.vertex.cost
    }

    #[inline(always)]
    fn reward(&self) -> f64 {
        self.vertex.reward
    }
}

impl ActionPoint for ExtendedVertex {
    #[inline(always)]
    fn actions(&self) -> &[u32] {
        &self.vertex.actions
    }

    fn fits(&self, shape: Shape) -> bool {
        let rows = (shape.horizon() - 1) * shape.num_states() * shape.num_states();
        self.vertex.fits(shape) && self.rows.len() == rows
    }
}

/// The kernel of a vertex: for any action, the row of the action that the policy takes.
#[derive(Debug)]
pub(crate) struct ChosenRows<'a> {
    shape: Shape,
    rows: &'a [f64], // [H - 1, S, S]
}

impl ChosenRows<'_> {
    #[inline(always)]
    fn row(&self, step: usize, pair: usize) -> &[f64] {
        let states = self.shape.num_states();
        let state = pair / self.shape.num_actions();
        &self.rows[(step * states + state) * states..][..states]
    }
}

impl StepKernel for ChosenRows<'_> {
    #[inline(always)]
    fn expectation(&self, step: usize, pair: usize, values: &[f64]) -> f64 {
        dot(self.row(step, pair), values)
    }

    #[inline(always)]
    fn expectation_of_two(
        &self,
        step: usize,
        pair: usize,
        first: &[f64],
        second: &[f64],
    ) -> (f64, f64) {
        dot_two(self.row(step, pair), first, second)
    }

    #[inline(always)]
    fn propagate(&self, step: usize, pair: usize, mass: f64, next: &mut [f64]) {
        for (target, &probability) in next.iter_mut().zip(self.row(step, pair)) {
            *target += mass * probability;
        }
    }
}

/// The workspace of extended inductions; they allocate nothing. The stored form is its shape.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "Shape", into = "Shape")]
pub struct ExtendedWork {
    shape: Shape,
    pair: PairWork,
    values: StateValues,     // of the signal that is maximised
    action_values: Vec<f64>, // [S, A]
    order: Vec<u32>,         // [S], states from the most valuable to the least
    mixer: PolicyMixer,
}

impl ExtendedWork {
    /// H, |S|, |A|.
    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    /// A workspace for problems of this shape.
    pub fn new(shape: Shape) -> Result<Self> {
        Ok(Self {
            shape,
            pair: PairWork::new(shape)?,
            values: StateValues::zeros(shape)?,
            action_values: zeros("action values [S, A]", shape.pairs())?,
            order: zeros("an order of states [S]", shape.num_states())?,
            mixer: PolicyMixer::new(shape)?,
        })
    }

    /// The values of the last induction, `[H + 1, S]`.
    #[must_use]
    pub fn values(&self) -> &StateValues {
        &self.values
    }

    /// Sweeps over the best rows for one signal; writes the rows of the actions taken into `rows`.
    fn sweep<G: StepSignal, C: Choice<1>>(
        &mut self,
        signal: &G,
        kernels: &KernelBox,
        choice: &mut C,
        rows: &mut [f64],
    ) {
        Sweep {
            shape: self.shape,
            steps: 0..self.shape.horizon(),
            signals: signal,
            backup: &mut Best::new(kernels, &mut self.order, Memory::RowPerState(rows)),
            choice,
            values: &mut self.values,
            action_values: [&mut self.action_values],
        }
        .run();
    }
}

impl TryFrom<Shape> for ExtendedWork {
    type Error = Error;

    fn try_from(shape: Shape) -> Result<Self> {
        Self::new(shape)
    }
}

impl From<ExtendedWork> for Shape {
    fn from(work: ExtendedWork) -> Self {
        work.shape
    }
}

/// The best policy for one signal on the best of a set of kernels, and the rows of that kernel for its actions. Leaves
/// the values in `work`.
///
/// Formula: V_H = 0; Q_h(s,a) = g_h(s,a) + max over p' in B of <p', V_{h+1}>; V_h = max_a Q_h. Ties go to
/// the lowest action, and among equally valuable states to the lowest. Citation: \[Efroni20\], extended
/// value iteration. Deviation: none.
pub fn extended_induction<G: StepSignal>(
    signal: &G,
    kernels: &KernelBox,
    work: &mut ExtendedWork,
    found: &mut ExtendedVertex,
) {
    let mut choice = Maximise {
        states: kernels.shape().num_states(),
        actions: &mut found.vertex.actions,
    };
    work.sweep(signal, kernels, &mut choice, &mut found.rows);
}

/// -g, never stored.
struct Negated<'a, G>(&'a G);

impl<G: StepSignal> StepSignal for Negated<'_, G> {
    #[inline(always)]
    fn at(&self, step: usize, pair: usize) -> f64 {
        -self.0.at(step, pair)
    }
}

/// Two signals on a set of kernels: the data, without the limit, of a constrained problem in which the kernel is chosen
/// together with the policy.
#[derive(Debug)]
pub struct Extended<'a, R, C> {
    /// g_r, to be maximised.
    pub reward: &'a R,
    /// g_c, to be limited.
    pub cost: &'a C,
    /// B, the plausible kernels.
    pub kernels: &'a KernelBox,
    /// mu.
    pub initial: &'a InitialDistribution,
}

impl<'a, R: StepSignal, C: StepSignal> Extended<'a, R, C> {
    /// The problem on one kernel.
    fn on<'b, K>(&'b self, kernel: &'b K) -> PlanningProblem<'b, R, C, K>
    where
        'a: 'b,
    {
        PlanningProblem {
            shape: self.kernels.shape(),
            reward: self.reward,
            cost: self.cost,
            kernel,
            initial: self.initial,
        }
    }
}

/// The oracle over pairs of a policy and a plausible kernel. At the two ends of the envelope ties are not broken by a
/// second criterion; the chord method finds the same envelope from any of them. `W` is an owned or a borrowed
/// workspace.
#[derive(Debug)]
pub struct ExtendedOracle<'a, R, C, W = ExtendedWork> {
    problem: &'a Extended<'a, R, C>,
    work: W,
}

impl<'a, R, C> ExtendedOracle<'a, R, C> {
    /// An oracle with a workspace of its own.
    pub fn new(problem: &'a Extended<'a, R, C>) -> Result<Self> {
        let work = ExtendedWork::new(problem.kernels.shape())?;
        Ok(Self { problem, work })
    }
}

impl<'a, 'w, R, C> ExtendedOracle<'a, R, C, &'w mut ExtendedWork> {
    /// An oracle with a borrowed workspace of the problem's shape; allocates nothing.
    pub fn on(problem: &'a Extended<'a, R, C>, work: &'w mut ExtendedWork) -> Self {
        Self { problem, work }
    }
}

impl<R, C, W> Oracle for ExtendedOracle<'_, R, C, W>
where
    R: StepSignal,
    C: StepSignal,
    W: BorrowMut<ExtendedWork>,
{
    type Point = ExtendedVertex;

    fn shape(&self) -> Shape {
        self.problem.kernels.shape()
    }

    fn maximise(&mut self, multiplier: f64, found: &mut ExtendedVertex) -> f64 {
        let (problem, work) = (self.problem, self.work.borrow_mut());
        let signal = Lagrangian::of_one(problem.reward, problem.cost, &multiplier);
        extended_induction(&signal, problem.kernels, work, found);
        problem.initial.expectation(work.values.step(0))
    }

    fn extreme(&mut self, objective: Objective, found: &mut ExtendedVertex) {
        let (problem, work) = (self.problem, self.work.borrow_mut());
        match objective {
            Objective::LeastCost | Objective::LeastCostAlone => {
                extended_induction(&Negated(problem.cost), problem.kernels, work, found);
            }
            Objective::MostReward => {
                extended_induction(problem.reward, problem.kernels, work, found);
            }
        }
        self.locate(found);
    }

    fn locate(&mut self, point: &mut ExtendedVertex) {
        let kernel = ChosenRows {
            shape: self.shape(),
            rows: &point.rows,
        };
        let work = &mut self.work.borrow_mut().pair;
        self.problem.on(&kernel).locate(work, &mut point.vertex);
    }

    /// A kernel of the last problem may no longer be plausible. Keeps the policies and chooses new kernels, the best
    /// ones at the slope of the chord.
    fn relocate(&mut self, slope: f64, ends: [&mut ExtendedVertex; 2]) {
        let problem = self.problem;
        let signal = Lagrangian::of_one(problem.reward, problem.cost, &slope);
        for end in ends {
            let mut choice = Take {
                states: problem.kernels.shape().num_states(),
                actions: &end.vertex.actions,
            };
            let work = self.work.borrow_mut();
            work.sweep(&signal, problem.kernels, &mut choice, &mut end.rows);
            self.locate(end);
        }
    }

    fn cost_magnitude(&mut self, point: &mut ExtendedVertex) -> f64 {
        let kernel = ChosenRows {
            shape: self.shape(),
            rows: &point.rows,
        };
        let work = &mut self.work.borrow_mut().pair;
        let problem = self.problem.on(&kernel);
        problem.cost_magnitude(work, &point.vertex.actions)
    }
}

impl<R, C, W> MixingOracle for ExtendedOracle<'_, R, C, W>
where
    R: StepSignal,
    C: StepSignal,
    W: BorrowMut<ExtendedWork>,
{
    /// Each end is followed on its own kernel.
    fn mix(
        &mut self,
        ends: [&ExtendedVertex; 2],
        weight: f64,
        completion: &MarkovPolicy,
        mixed: &mut MarkovPolicy,
    ) {
        let kernels = ends.map(|end| end.kernel(self.shape()));
        let [below, above] = ends.map(|end| &end.vertex.actions[..]);
        let ends = [(below, &kernels[0]), (above, &kernels[1])];
        let mixer = &mut self.work.borrow_mut().mixer;
        mixer.mix(ends, weight, self.problem.initial, completion, mixed);
    }
}

/// The best pair of a policy and a plausible kernel within a limit.
#[derive(Debug, Clone)]
pub struct ExtendedPlan {
    /// The policy of the occupancy; where that has no mass, the policy of the end within the limit.
    pub policy: MarkovPolicy,
    /// z_h(s,a,s'), `[H - 1, S, A, S]`.
    pub flow: Vec<f64>,
    /// q_h(s,a).
    pub occupancy: OccupancyMeasure,
    /// V(g_r) on the kernel chosen.
    pub value: f64,
    /// V(g_c) on the kernel chosen.
    pub cost: f64,
    /// The optimal multiplier.
    pub multiplier: f64,
    /// An upper bound on the optimum: the Lagrangian at the multiplier.
    pub bound: f64,
    /// How many extended inductions the search took, without the one for the bound.
    pub inductions: usize,
}

/// max V(g_r, p') subject to V(g_c, p') <= limit, over policies and plausible kernels p'.
///
/// Formula: the linear program over extended occupancies, whose optimum mixes two extreme points
/// (pi, p'); each is followed on its own p', and the mixed z holds both policy and kernel. Citation:
/// \[Efroni20\], OptCMDP (the extended linear program). Deviation: solved by the chord method.
pub fn solve_extended<R: StepSignal, C: StepSignal>(
    problem: &Extended<'_, R, C>,
    limit: f64,
) -> Result<ExtendedPlan> {
    let shape = problem.kernels.shape();
    let mut oracle = ExtendedOracle::new(problem)?;
    let mut search = ChordSearch::new(shape)?;
    let found = search.solve(&mut oracle, limit)?;
    let (below, above) = (search.chord().below(), search.chord().above());
    let (states, entries) = (shape.num_states(), shape.triples() * shape.num_states());
    let mut flow: Vec<f64> = zeros("an extended occupancy [H, S, A, S]", entries)?;
    flow.truncate(entries - shape.pairs() * states);
    let mut masses: Vec<f64> = zeros("an occupancy [H, S, A]", shape.triples())?;
    let weights = [1.0 - found.weight_above, found.weight_above];
    for (end, weight) in [below, above].into_iter().zip(weights) {
        if weight == 0.0 {
            continue; // not defined there
        }
        let policy = end.vertex().policy(shape)?;
        let own = occupancy(&policy, &end.kernel(shape), problem.initial)?;
        for (row, (target, mass)) in masses.iter_mut().zip(own.data()).enumerate() {
            *target += weight * mass;
            let from = row / shape.num_actions() * states; // rows of the kernel are [H - 1, S]
            if *mass > 0.0 && from < end.rows().len() {
                let chosen = &end.rows()[from..][..states];
                for (target, probability) in flow[row * states..].iter_mut().zip(chosen) {
                    *target += weight * mass * probability;
                }
            }
        }
    }
    let occupancy = OccupancyMeasure::new("occupancy", shape, masses)?;
    let (value, cost) = (
        occupancy.expectation(problem.reward),
        occupancy.expectation(problem.cost),
    );
    let size = below.reward().abs().max(found.value.abs());
    if (value - found.value).abs() > VALUE_WIDTH * size.max(1.0) {
        return Err(Error::NumericalTrouble {
            solver: "parametric",
            status: format!("claimed the value {}, re-evaluated {value}", found.value),
        });
    }
    let completion = below.vertex().policy(shape)?;
    let mut best = ExtendedVertex::for_shape(shape)?;
    let most = oracle.maximise(found.multiplier, &mut best);
    Ok(ExtendedPlan {
        policy: occupancy.induced_policy(&completion)?,
        flow,
        occupancy,
        value,
        cost,
        multiplier: found.multiplier,
        bound: most + found.multiplier * limit,
        inductions: found.inductions,
    })
}
