//! The packed copy of two signals and a kernel, and values of policies on it.

use crate::error::Result;
use crate::estimate::{EmpiricalKernel, RowEstimate, Successors};
use crate::fast::isa::with_small_constant;
use crate::fast::isa::{Job, vectorised};
use crate::fast::lanes::{LANES, Lanes, flat, flat_mut};
use crate::fast::packed::rows::PackedRows;
use crate::learn::SignalListener;
use crate::model::InitialDistribution;
use crate::plan::PlanningProblem;
use crate::policy::MarkovPolicy;
use crate::shape::Shape;
use crate::table::{StepSignal, zeros};

/// States are padded to a multiple of this, so that the best of several actions is found four states
/// at a time.
pub(crate) const STATES_PER_GROUP: usize = 4;

/// One of the two signals of a packed problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignalKind {
    /// g_r.
    Reward,
    /// g_c.
    Cost,
}

/// A copy of two signals and a kernel. A slot is an (action, state), at index action * padded + state. Eight
/// consecutive slots form a block, so that a recursion sums eight rows at once. An episode changes at most H of the
/// slots.
///
/// Values on it have the bits of [`crate::evaluate::evaluate()`].
#[derive(Debug, Clone)]
pub(crate) struct PackedProblem {
    shape: Shape,
    padded: usize,      // |S|, rounded up to a multiple of STATES_PER_GROUP
    blocks: usize,      // of eight slots
    reward: Vec<Lanes>, // [H, blocks]
    cost: Vec<Lanes>,   // [H, blocks]
    kernel: PackedRows, // [H - 1, blocks]
    positive_costs: usize,
}

/// The workspace of recursions over a packed problem: action values and values of up to N signals or policies at once.
#[derive(Debug, Clone)]
pub(crate) struct PackedWork {
    pub(crate) action_values: Vec<Lanes>, // [N, blocks]
    pub(crate) values: Vec<Lanes>,        // [N, S]
}

impl PackedWork {
    /// A workspace for recursions of up to `tracks` values at once.
    pub(crate) fn new(shape: Shape, tracks: usize) -> Result<Self> {
        let (padded, blocks) = layout(shape);
        Ok(Self {
            action_values: zeros("action_values [A, S]", tracks * blocks)?,
            values: zeros("values [S]", tracks * padded.div_ceil(LANES))?,
        })
    }
}

/// |S| padded, and how many blocks a step has.
fn layout(shape: Shape) -> (usize, usize) {
    let padded = shape.num_states().next_multiple_of(STATES_PER_GROUP);
    (padded, (shape.num_actions() * padded).div_ceil(LANES))
}

/// Receives every refreshed row, so that the copy stays up to date.
impl SignalListener for PackedProblem {
    #[inline(always)]
    fn changed(&mut self, row: &RowEstimate<'_>, reward: Option<f64>, cost: f64) {
        let Some(reward) = reward else {
            return; // nothing is planned before the reward signal exists
        };
        let (step, state, action) = (row.step, row.state, row.action);
        self.set_signals(step, state, action, reward, cost);
        if step + 1 < self.shape.horizon() {
            self.set_successors(step, state, action, row.successors);
        }
    }
}

impl PackedProblem {
    /// A packed copy of a problem on estimates.
    #[cold]
    pub(crate) fn of<R: StepSignal, C: StepSignal>(
        problem: &PlanningProblem<'_, R, C, EmpiricalKernel>,
    ) -> Result<Self> {
        let (shape, kernel) = (problem.shape, problem.kernel);
        let mut packed = Self::new(shape, kernel.list_width(), |step, pair| {
            [problem.reward.at(step, pair), problem.cost.at(step, pair)]
        })?;
        packed.copy_rows(kernel)?;
        Ok(packed)
    }

    /// Rebuilds the packed rows if the estimates changed their storage (longer lists, or full rows). Returns whether
    /// they did. Call it before rows of `kernel` are set.
    #[inline(always)]
    pub(crate) fn fit(&mut self, kernel: &EmpiricalKernel) -> Result<bool> {
        if kernel.list_width() == self.list_width() {
            return Ok(false);
        }
        self.copy_rows(kernel)?;
        Ok(true)
    }

    /// Copies every row of `kernel`.
    #[cold]
    pub(crate) fn copy_rows(&mut self, kernel: &EmpiricalKernel) -> Result<()> {
        let [steps, _, actions] = self.shape.sizes();
        self.clear_rows(kernel.list_width())?;
        for step in 0..steps - 1 {
            for pair in 0..self.shape.pairs() {
                let row = kernel.row(step, pair);
                self.set_successors(step, pair / actions, pair % actions, row);
            }
        }
        Ok(())
    }

    /// P_h(.|s,a) of one pair; not for the last step, which has none.
    #[inline(always)]
    fn set_successors(&mut self, step: usize, state: usize, action: usize, row: Successors<'_>) {
        match row {
            Successors::Full(row) => self.set_full_row(step, state, action, row),
            listed @ Successors::Listed(..) => self.set_row(step, state, action, listed.iter()),
        }
    }

    /// A packed problem with these signals, [g_r, g_c] of each (step, pair), and rows without mass. Rows are kept as
    /// lists of up to `list_width` successors, or in full.
    pub(crate) fn new(
        shape: Shape,
        list_width: Option<usize>,
        signals: impl Fn(usize, usize) -> [f64; 2],
    ) -> Result<Self> {
        let ([steps, _, actions], (padded, blocks)) = (shape.sizes(), layout(shape));
        let mut packed = Self {
            shape,
            padded,
            blocks,
            reward: zeros("rewards [H, A, S]", steps * blocks)?,
            cost: zeros("costs [H, A, S]", steps * blocks)?,
            kernel: PackedRows::new((steps - 1) * blocks, shape.num_states(), list_width)?,
            positive_costs: 0,
        };
        for step in 0..steps {
            for pair in 0..shape.pairs() {
                let [reward, cost] = signals(step, pair);
                packed.set_signals(step, pair / actions, pair % actions, reward, cost);
            }
        }
        Ok(packed)
    }

    /// H, |S|, |A|.
    #[inline(always)]
    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    /// |S|, rounded up to a multiple of [`STATES_PER_GROUP`].
    #[inline(always)]
    pub(crate) fn padded_states(&self) -> usize {
        self.padded
    }

    /// How many blocks of eight slots a step has.
    #[inline(always)]
    pub(crate) fn blocks(&self) -> usize {
        self.blocks
    }

    /// How many successors a list can hold; None if rows are kept in full.
    #[inline(always)]
    pub(crate) fn list_width(&self) -> Option<usize> {
        self.kernel.list_width()
    }

    /// Replaces all rows by rows without mass, in another storage.
    pub(crate) fn clear_rows(&mut self, list_width: Option<usize>) -> Result<()> {
        let rows = (self.shape.horizon() - 1) * self.blocks;
        self.kernel = PackedRows::new(rows, self.shape.num_states(), list_width)?;
        Ok(())
    }

    #[inline(always)]
    fn slot(&self, state: usize, action: usize) -> (usize, usize) {
        let slot = action * self.padded + state;
        (slot / LANES, slot % LANES)
    }

    /// Sets g_r and g_c of one pair.
    #[inline(always)]
    pub(crate) fn set_signals(
        &mut self,
        step: usize,
        state: usize,
        action: usize,
        reward: f64,
        cost: f64,
    ) {
        let (block, lane) = self.slot(state, action);
        let place = step * self.blocks + block;
        self.reward[place].0[lane] = reward;
        let stored = &mut self.cost[place].0[lane];
        self.positive_costs += usize::from(cost > 0.0);
        self.positive_costs -= usize::from(*stored > 0.0);
        *stored = cost;
    }

    /// Sets P_h(.|s,a) of one pair from pairs (successor, probability); not for the last step, which has none.
    /// [`PackedRows::set`] says what happens to successors that are left out.
    #[inline(always)]
    pub(crate) fn set_row(
        &mut self,
        step: usize,
        state: usize,
        action: usize,
        successors: impl Iterator<Item = (usize, f64)>,
    ) {
        let (block, lane) = self.slot(state, action);
        self.kernel
            .set(step * self.blocks + block, lane, successors);
    }

    /// [`PackedProblem::set_row`] for a row with a probability for every state.
    #[inline(always)]
    pub(crate) fn set_full_row(&mut self, step: usize, state: usize, action: usize, row: &[f64]) {
        let (block, lane) = self.slot(state, action);
        self.kernel.set_full(step * self.blocks + block, lane, row);
    }

    /// P_h(.|s,a) of one pair; not for the last step, which has none.
    #[inline(always)]
    pub(crate) fn row(
        &self,
        step: usize,
        state: usize,
        action: usize,
    ) -> impl Iterator<Item = (usize, f64)> + '_ {
        let (block, lane) = self.slot(state, action);
        self.kernel.row(step * self.blocks + block, lane)
    }

    /// The cost g_c of one pair.
    #[inline(always)]
    pub(crate) fn cost(&self, step: usize, state: usize, action: usize) -> f64 {
        let (block, lane) = self.slot(state, action);
        self.cost[step * self.blocks + block].0[lane]
    }

    /// Whether some pair has a cost above 0. If none has, no policy has a positive cost: sums of products of
    /// probabilities and numbers at most 0 are at most 0, in floating point too.
    #[inline(always)]
    pub(crate) fn some_cost_is_positive(&self) -> bool {
        self.positive_costs > 0
    }

    /// One signal at every slot of a step.
    #[inline(always)]
    pub(crate) fn signal(&self, of: SignalKind, step: usize) -> &[Lanes] {
        let signal = match of {
            SignalKind::Reward => &self.reward,
            SignalKind::Cost => &self.cost,
        };
        &signal[step * self.blocks..][..self.blocks]
    }

    /// The action values of a step: `own` at every slot and, except at the last step, the expectation of `following`,
    /// one value a state.
    #[inline(always)]
    pub(crate) fn action_values<const S: usize>(
        &self,
        step: usize,
        own: impl Fn(usize) -> Lanes,
        following: &[f64],
        action_values: &mut [Lanes],
    ) {
        if step + 1 < self.shape.horizon() {
            let first = step * self.blocks;
            self.kernel
                .add_expectations::<S>(first, following, own, action_values);
        } else {
            for (block, q) in action_values.iter_mut().enumerate() {
                *q = own(block);
            }
        }
    }

    /// V_1(mu) of a policy for each of these signals.
    #[inline]
    pub(crate) fn evaluate<const N: usize>(
        &self,
        policy: &MarkovPolicy,
        signals: [SignalKind; N],
        initial: &InitialDistribution,
        work: &mut PackedWork,
    ) -> [f64; N] {
        let [values] = self.follow([policy], signals, initial, work);
        values
    }

    /// V_1(mu) of deterministic policies, each an action at each (step, state), `[H, S]`, for each of these
    /// signals.
    #[inline]
    pub(crate) fn evaluate_actions<const P: usize, const N: usize>(
        &self,
        policies: [&[u32]; P],
        signals: [SignalKind; N],
        initial: &InitialDistribution,
        work: &mut PackedWork,
    ) -> [[f64; N]; P] {
        self.follow(policies, signals, initial, work)
    }

    #[inline(always)]
    fn follow<C: Choices, const P: usize, const N: usize>(
        &self,
        policies: [C; P],
        signals: [SignalKind; N],
        initial: &InitialDistribution,
        work: &mut PackedWork,
    ) -> [[f64; N]; P] {
        let states = self.shape.num_states();
        with_small_constant!(states, S => {
            vectorised(Recursion::<C, P, N, S> {
                packed: self,
                policies,
                signals,
                work: &mut *work,
            });
        });
        let wide = self.padded.div_ceil(LANES);
        let values = |track: usize| &flat(&work.values[track * wide..][..wide])[..states];
        std::array::from_fn(|policy| {
            std::array::from_fn(|signal| initial.expectation(values(policy * N + signal)))
        })
    }
}

/// State values from action values, by a policy.
trait Choices: Copy {
    /// Writes the values of a step's states for each of N signals; the action value of (s, a) is at a * padded + s.
    fn choose<const N: usize>(
        &self,
        step: usize,
        padded: usize,
        action_values: [&[f64]; N],
        values: [&mut [f64]; N],
    );
}

/// V(s) = sum over a of pi(a|s) Q(s, a).
impl Choices for &MarkovPolicy {
    #[inline(always)]
    fn choose<const N: usize>(
        &self,
        step: usize,
        padded: usize,
        action_values: [&[f64]; N],
        values: [&mut [f64]; N],
    ) {
        let (rows, num_actions) = (self.step(step), self.shape().num_actions());
        match num_actions {
            2 => weigh::<2, N>(num_actions, rows, padded, action_values, values),
            3 => weigh::<3, N>(num_actions, rows, padded, action_values, values),
            4 => weigh::<4, N>(num_actions, rows, padded, action_values, values),
            _ => weigh::<0, N>(num_actions, rows, padded, action_values, values),
        }
    }
}

/// `A` is the number of actions, or 0 if it is not known at compile time.
#[inline(always)]
fn weigh<const A: usize, const N: usize>(
    num_actions: usize,
    rows: &[f64],
    padded: usize,
    action_values: [&[f64]; N],
    values: [&mut [f64]; N],
) {
    let num_actions = if A > 0 { A } else { num_actions };
    let action_values = action_values.map(|own| &own[..num_actions * padded]);
    let states = values[0].len().min(padded);
    for (state, row) in rows.chunks_exact(num_actions).take(states).enumerate() {
        let mut sums = [0.0; N];
        for (action, probability) in row.iter().enumerate() {
            for signal in 0..N {
                sums[signal] += action_values[signal][action * padded + state] * probability;
            }
        }
        for signal in 0..N {
            values[signal][state] = sums[signal];
        }
    }
}

/// V(s) = Q(s, pi(s)).
impl Choices for &[u32] {
    #[inline(always)]
    fn choose<const N: usize>(
        &self,
        step: usize,
        padded: usize,
        action_values: [&[f64]; N],
        values: [&mut [f64]; N],
    ) {
        let states = values[0].len();
        let actions = &self[step * states..][..states];
        for (state, &action) in actions.iter().enumerate() {
            let slot = action as usize * padded + state;
            for signal in 0..N {
                values[signal][state] = action_values[signal][slot];
            }
        }
    }
}

/// The backward recursion for P policies and N signals at once. `S` is the number of states, or 0 if it is not known at
/// compile time. The values of all policies and signals are independent, so none waits for another.
struct Recursion<'a, C, const P: usize, const N: usize, const S: usize> {
    packed: &'a PackedProblem,
    policies: [C; P],
    signals: [SignalKind; N],
    work: &'a mut PackedWork,
}

impl<C: Choices, const P: usize, const N: usize, const S: usize> Job for Recursion<'_, C, P, N, S> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (packed, blocks) = (self.packed, self.packed.blocks);
        let states = if S > 0 { S } else { packed.shape.num_states() };
        let padded = states.next_multiple_of(STATES_PER_GROUP);
        let wide = padded.div_ceil(LANES);
        let work = self.work;
        for step in (0..packed.shape.horizon()).rev() {
            let own = self.signals.map(|of| packed.signal(of, step));
            let action_values = work.action_values.chunks_exact_mut(N * blocks);
            let values = work.values.chunks_exact_mut(N * wide);
            for ((policy, action_values), values) in
                self.policies.iter().zip(action_values).zip(values)
            {
                let action_values: [_; N] = split(action_values, blocks);
                let mut values: [_; N] = split(values, wide);
                for signal in 0..N {
                    let following = &flat(values[signal])[..states];
                    let own = |block: usize| own[signal][block];
                    packed.action_values::<S>(step, own, following, action_values[signal]);
                }
                let action_values = action_values.each_ref().map(|own| flat(own));
                let values = values.each_mut().map(|own| &mut flat_mut(own)[..states]);
                policy.choose(step, padded, action_values, values);
            }
        }
    }
}

/// The first N parts of this length.
#[inline(always)]
fn split<const N: usize>(mut whole: &mut [Lanes], len: usize) -> [&mut [Lanes]; N] {
    std::array::from_fn(|_| whole.split_off_mut(..len).unwrap_or_default())
}
