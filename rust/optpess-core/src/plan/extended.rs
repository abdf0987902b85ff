//! Backward induction that chooses the kernel too, among all that are plausible.
//!
//! A pair of a policy and a kernel is one point of a polytope: that of the extended occupancies
//! z_h(s,a,s') = q_h(s,a) p'_h(s'|s,a). So the chord method works on it as on policies alone, with extended
//! induction as its oracle.

use std::borrow::BorrowMut;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::model::{InitialDistribution, StepKernel};
use crate::plan::kernel_box::KernelBox;
use crate::plan::mixing::PolicyMixer;
use crate::plan::problem::{
    Objective, Oracle, Penalised, PlanningProblem, Point, StepValues, Vertex,
};
use crate::policy::MarkovPolicy;
use crate::shape::Shape;
use crate::table::{StateValues, StepSignal, zeros};
use crate::vectorised::{Job, dot, dot_rows, dot_two, vectorised};

/// A deterministic policy with a plausible kernel, and where the pair lies. Of the kernel there are only
/// the rows of the actions taken.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExtendedVertex {
    vertex: Vertex,
    rows: Vec<f64>, // [H - 1, S, S]
}

impl ExtendedVertex {
    /// Policy and place.
    #[must_use]
    pub fn vertex(&self) -> &Vertex {
        &self.vertex
    }

    /// The distribution of the next state under the policy, `[H - 1, S, S]`.
    #[must_use]
    pub fn rows(&self) -> &[f64] {
        &self.rows
    }

    /// The kernel, to be asked for actions of the policy only.
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

    #[inline(always)]
    fn actions(&self) -> &[u32] {
        &self.vertex.actions
    }
}

/// The kernel of a vertex: whatever the action, the row of the state's own one.
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

/// What extended inductions write on; re-used, so that they allocate nothing.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ExtendedWork {
    steps: StepValues,
    values: StateValues, // of what is maximised
    expected: Vec<f64>,  // [S, A]
    order: Vec<u32>,     // [S], states from the most valuable to the least
    mixer: PolicyMixer,
}

impl ExtendedWork {
    /// A workspace for problems of this shape.
    pub fn new(shape: Shape) -> Result<Self> {
        Ok(Self {
            steps: StepValues::new(shape)?,
            values: StateValues::zeros(shape)?,
            expected: zeros("expected values [S, A]", shape.pairs())?,
            order: (0..shape.num_states() as u32).collect(),
            mixer: PolicyMixer::new(shape)?,
        })
    }

    /// The values of the last induction, `[H + 1, S]`.
    #[must_use]
    pub fn values(&self) -> &StateValues {
        &self.values
    }
}

/// The best policy for one signal on the best of a set of kernels, the same policy's rows of that kernel,
/// and in `work` its values.
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
    vectorised(Induction {
        signal,
        kernels,
        choose: true,
        work,
        found,
    });
}

struct Induction<'a, G> {
    signal: &'a G,
    kernels: &'a KernelBox,
    /// Whether actions are chosen, or those of `found` are kept and only the kernel is.
    choose: bool,
    work: &'a mut ExtendedWork,
    found: &'a mut ExtendedVertex,
}

impl<G: StepSignal> Job for Induction<'_, G> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (kernels, shape) = (self.kernels, self.kernels.shape());
        let (states, actions) = (shape.num_states(), shape.num_actions());
        let ExtendedWork {
            values,
            expected,
            order,
            ..
        } = self.work;
        for step in (0..shape.horizon()).rev() {
            let (here, next) = values.step_and_next(step);
            let followed = step + 1 < shape.horizon();
            if followed {
                order.sort_unstable_by(|&a, &b| {
                    let (first, second) = (next[a as usize], next[b as usize]);
                    second.total_cmp(&first).then(a.cmp(&b))
                });
                dot_rows(kernels.lower_ends(step), next, expected);
            } else {
                expected.fill(0.0);
            }
            self.signal.add_to(step, expected);
            for (state, value) in here.iter_mut().enumerate() {
                let choice = &mut self.found.vertex.actions[step * states + state];
                let tried = if self.choose {
                    0..actions
                } else {
                    *choice as usize..*choice as usize + 1
                };
                let (mut best, mut best_action) = (f64::NEG_INFINITY, tried.start);
                for action in tried {
                    let pair = shape.pair(state, action);
                    let mut q = expected[pair];
                    if followed {
                        kernels.fill(step, pair, order, |successor, given| {
                            q += given * next[successor];
                        });
                    }
                    if q > best {
                        (best, best_action) = (q, action);
                    }
                }
                (*value, *choice) = (best, best_action as u32);
                if followed {
                    let row = &mut self.found.rows[(step * states + state) * states..][..states];
                    kernels.write_best(step, shape.pair(state, best_action), order, row);
                }
            }
        }
    }
}

/// -g, never stored.
struct Negated<'a, G>(&'a G);

impl<G: StepSignal> StepSignal for Negated<'_, G> {
    #[inline(always)]
    fn at(&self, step: usize, pair: usize) -> f64 {
        -self.0.at(step, pair)
    }
}

/// Two signals on a set of kernels: the data of a constrained problem, less its limit, in which the
/// kernel is chosen with the policy.
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

/// Pairs of a policy and a plausible kernel. At the two ends no second criterion tells ties apart; the
/// chord method arrives at the same envelope from any of them. `W` is its workspace: its own, or borrowed.
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
    /// An oracle that writes on a workspace made for the problem's shape; allocates nothing.
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
        let signal = Penalised::new(problem.reward, problem.cost, multiplier);
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
        let steps = &mut self.work.borrow_mut().steps;
        self.problem.on(&kernel).locate(steps, &mut point.vertex);
    }

    /// A kernel that was plausible need not be any more: the policies are kept and their kernels chosen
    /// anew, the best ones at the slope of the chord.
    fn relocate(&mut self, slope: f64, ends: [&mut ExtendedVertex; 2]) {
        let problem = self.problem;
        let signal = Penalised::new(problem.reward, problem.cost, slope);
        for end in ends {
            vectorised(Induction {
                signal: &signal,
                kernels: problem.kernels,
                choose: false,
                work: self.work.borrow_mut(),
                found: end,
            });
            self.locate(end);
        }
    }

    fn cost_magnitude(&mut self, point: &mut ExtendedVertex) -> f64 {
        let kernel = ChosenRows {
            shape: self.shape(),
            rows: &point.rows,
        };
        let steps = &mut self.work.borrow_mut().steps;
        let problem = self.problem.on(&kernel);
        problem.cost_magnitude(steps, &mut point.vertex)
    }

    /// Each end is followed on its own kernel.
    fn mix(
        &mut self,
        ends: [&ExtendedVertex; 2],
        weight: f64,
        completion: &MarkovPolicy,
        mixed: &mut MarkovPolicy,
    ) {
        let kernels = ends.map(|end| end.kernel(self.shape()));
        let [below, above] = ends.map(Point::actions);
        let ends = [(below, &kernels[0]), (above, &kernels[1])];
        let mixer = &mut self.work.borrow_mut().mixer;
        mixer.mix_each(ends, weight, self.problem.initial, completion, mixed);
    }
}
