//! Maximising inductions: the choices `Maximise` and `Lexicographic` for the backward recursion, the Lagrangian signal,
//! and the best policy for one signal.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::evaluate::{Choice, Expected, Sweep, Wanted};
use crate::model::StepKernel;
use crate::policy::MarkovPolicy;
use crate::shape::Shape;
use crate::table::{StateValues, StepSignal, zeros};

/// Relative width of a tie in a lexicographic induction: actions whose first criterion differs by
/// less than this are compared by the second. Rounding breaks exact ties of integer-valued
/// problems by a few units of 1e-16; without a width the choice among policies of equal value would be
/// arbitrary.
pub(crate) const TIE_WIDTH: f64 = 1e-13;

/// Takes the best action; ties go to the lowest.
#[derive(Debug)]
pub(crate) struct Maximise<'a> {
    /// |S|.
    pub(crate) states: usize,
    /// Where the actions are written, `[H, S]`.
    pub(crate) actions: &'a mut [u32],
}

impl Choice<1> for Maximise<'_> {
    #[inline(always)]
    fn wanted(&self, _: usize) -> Wanted<'_> {
        Wanted::All
    }

    #[inline(always)]
    fn choose(&mut self, step: usize, state: usize, [q]: [&[f64]; 1]) -> [f64; 1] {
        let (mut best, mut best_action) = (f64::NEG_INFINITY, 0);
        for (action, &q) in q.iter().enumerate() {
            if q > best {
                (best, best_action) = (q, action as u32);
            }
        }
        self.actions[step * self.states + state] = best_action;
        [best]
    }

    fn each_taken(&self, step: usize, state: usize, mut visit: impl FnMut(usize)) {
        visit(self.actions[step * self.states + state] as usize);
    }
}

/// The action of least cost and, among those, of most reward (`COST_FIRST`), or of most reward and, among those, of
/// least cost, from the (reward, cost) of every action. First criteria that differ by less than `tie_width`,
/// relatively, are ties; ties of both go to the lowest action.
#[inline(always)]
pub(super) fn lexicographic_best<const COST_FIRST: bool>(
    tie_width: f64,
    points: impl Iterator<Item = (f64, f64)> + Clone,
) -> usize {
    let criteria = || {
        points.clone().map(|(gain, loss)| {
            if COST_FIRST {
                (-loss, gain)
            } else {
                (gain, -loss)
            }
        })
    };
    let (mut best, mut magnitude) = (f64::NEG_INFINITY, 0.0_f64);
    for (first, _) in criteria() {
        best = best.max(first);
        magnitude = magnitude.max(first.abs());
    }
    let acceptable = best - tie_width * magnitude;
    let (mut best_second, mut best_action) = (f64::NEG_INFINITY, 0);
    for (action, (first, second)) in criteria().enumerate() {
        if first >= acceptable && second > best_second {
            (best_second, best_action) = (second, action);
        }
    }
    best_action
}

/// Takes the action of least cost and, among those, of most reward (`COST_FIRST`), or of most reward and, among those,
/// of least cost. First criteria that differ by less than `tie_width`, relatively, are ties; ties of both go to the
/// lowest action.
#[derive(Debug)]
pub(super) struct Lexicographic<'a, const COST_FIRST: bool> {
    pub(super) tie_width: f64,
    pub(super) states: usize,
    pub(super) actions: &'a mut [u32], // [H, S]
}

impl<const COST_FIRST: bool> Choice<2> for Lexicographic<'_, COST_FIRST> {
    #[inline(always)]
    fn wanted(&self, _: usize) -> Wanted<'_> {
        Wanted::All
    }

    #[inline(always)]
    fn choose(&mut self, step: usize, state: usize, [reward, cost]: [&[f64]; 2]) -> [f64; 2] {
        let points = reward.iter().copied().zip(cost.iter().copied());
        let best_action = lexicographic_best::<COST_FIRST>(self.tie_width, points);
        self.actions[step * self.states + state] = best_action as u32;
        [reward[best_action], cost[best_action]]
    }

    fn each_taken(&self, step: usize, state: usize, mut visit: impl FnMut(usize)) {
        visit(self.actions[step * self.states + state] as usize);
    }
}

/// weight g_r - sum_m l_m c_m for any number of costs, never stored.
#[derive(Debug)]
pub struct Lagrangian<'a, R, C> {
    reward: &'a R,
    reward_weight: f64,
    costs: &'a [C],
    multipliers: &'a [f64],
}

impl<'a, R, C> Lagrangian<'a, R, C> {
    /// g_r - sum_m l_m c_m, with one multiplier a cost.
    pub fn new(reward: &'a R, costs: &'a [C], multipliers: &'a [f64]) -> Self {
        debug_assert_eq!(costs.len(), multipliers.len());
        Self {
            reward,
            reward_weight: 1.0,
            costs,
            multipliers,
        }
    }

    /// g_r - l g_c for one cost.
    pub fn of_one(reward: &'a R, cost: &'a C, multiplier: &'a f64) -> Self {
        let (costs, multipliers) = (std::slice::from_ref(cost), std::slice::from_ref(multiplier));
        Self::new(reward, costs, multipliers)
    }

    /// The same with a weight on the reward: 1, or 0 for the costs alone.
    #[must_use]
    pub fn with_reward_weight(self, reward_weight: f64) -> Self {
        Self {
            reward_weight,
            ..self
        }
    }
}

impl<R: StepSignal, C: StepSignal> StepSignal for Lagrangian<'_, R, C> {
    #[inline(always)]
    fn at(&self, step: usize, pair: usize) -> f64 {
        let mut sum = self.reward_weight * self.reward.at(step, pair);
        for (cost, multiplier) in self.costs.iter().zip(self.multipliers) {
            sum -= multiplier * cost.at(step, pair);
        }
        sum
    }

    #[inline(always)]
    fn add_to(&self, step: usize, out: &mut [f64]) {
        if let ([cost], [multiplier]) = (self.costs, self.multipliers)
            && let (Some(reward), Some(cost)) = (self.reward.stored(step), cost.stored(step))
        {
            for ((target, gain), loss) in out.iter_mut().zip(reward).zip(cost) {
                *target += self.reward_weight * gain - multiplier * loss;
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
pub(super) struct Magnitude<'a, G>(pub(super) &'a G);

impl<G: StepSignal> StepSignal for Magnitude<'_, G> {
    #[inline(always)]
    fn at(&self, step: usize, pair: usize) -> f64 {
        self.0.at(step, pair).abs()
    }
}

/// A deterministic policy with the values it attains; also the workspace of the next induction. The stored form is its
/// shape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(into = "Shape", try_from = "Shape")]
pub struct GreedyPlan {
    shape: Shape,
    actions: Vec<u32>, // [H, S]
    values: StateValues,
    action_values: Vec<f64>, // [S, A], of the current step
}

impl From<GreedyPlan> for Shape {
    fn from(plan: GreedyPlan) -> Self {
        plan.shape
    }
}

impl TryFrom<Shape> for GreedyPlan {
    type Error = Error;

    fn try_from(shape: Shape) -> Result<Self> {
        Self::new(shape)
    }
}

impl GreedyPlan {
    /// A workspace for problems of this shape.
    pub fn new(shape: Shape) -> Result<Self> {
        Ok(Self {
            shape,
            actions: zeros("actions [H, S]", shape.horizon() * shape.num_states())?,
            values: StateValues::zeros(shape)?,
            action_values: zeros("action values [S, A]", shape.pairs())?,
        })
    }

    /// The action taken at each step and state, `[H, S]`.
    #[must_use]
    pub fn actions(&self) -> &[u32] {
        &self.actions
    }

    /// max over policies of V^pi_h(s), `[H + 1, S]`.
    #[must_use]
    pub fn values(&self) -> &StateValues {
        &self.values
    }

    /// The plan as a policy.
    pub fn policy(&self) -> Result<MarkovPolicy> {
        MarkovPolicy::deterministic(self.shape, &self.actions)
    }

    /// Replaces the plan by the best policy for `signal` on `kernel`, without allocating.
    ///
    /// Formula: V_H = 0; Q_h(s,a) = g_h(s,a) + sum_s' P_h(s'|s,a) V_{h+1}(s'); V_h = max_a Q_h; ties
    /// go to the lowest action. Citation: \[Liu21\], Section 4. Deviation: none.
    pub fn maximise<G: StepSignal, K: StepKernel>(&mut self, signal: &G, kernel: &K) {
        let shape = self.shape;
        Sweep {
            shape,
            steps: 0..shape.horizon(),
            signals: signal,
            backup: &mut Expected(kernel),
            choice: &mut Maximise {
                states: shape.num_states(),
                actions: &mut self.actions,
            },
            values: &mut self.values,
            action_values: [&mut self.action_values],
        }
        .run();
    }
}

/// The best policy for one signal on one kernel, and its values.
pub fn backward_induction<G: StepSignal, K: StepKernel>(
    shape: Shape,
    signal: &G,
    kernel: &K,
) -> Result<GreedyPlan> {
    let mut plan = GreedyPlan::new(shape)?;
    plan.maximise(signal, kernel);
    Ok(plan)
}
