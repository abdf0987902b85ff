//! The backward recursion over all signals of a known model at once: each row is walked once, and one load fetches the
//! next values of every signal. Steps of large models are shared among threads.
//!
//! The bits of every value are those of [`sweep`](super::sweep): the kernel decides the order of additions over the next
//! state, and g is added to that sum.

use crate::error::Result;
use crate::evaluate::sweep::Signals;
use crate::fast::isa::{Job, vectorised};
use crate::model::{InterleavedRows, JointRows, Kernel, ROWS_PER_BLOCK, Slices, WalkedRows};
use crate::parallel::{Parts, Workers, short_stages_may_be_shared};
use crate::shape::Shape;
use crate::table::{CompactActions, StateValues, StepSignal, untouched_zeros};

/// A part has about this many entries of rows: some tenths of a millisecond, so that a call that is stopped ends at once.
const ENTRIES_PER_PART: usize = 1 << 18;

/// A step with fewer entries of rows than this is not shared: threads would wait for each other for longer than they
/// work.
const SHARED_FROM: usize = 1 << 15;

/// A step with fewer entries than this is shared only if the cores are free.
const SHARED_ALWAYS: usize = 1 << 20;

/// So many numbers (a megabyte) fit the caches of a core; values of more are far away.
const NEAR_VALUES: usize = 1 << 17;

/// So many states are looked at together where rows are interleaved: their rows fill whole blocks.
const STATES_PER_BLOCK: usize = 2 * ROWS_PER_BLOCK;

/// How many parts a thread has of a step that is shared, so that a thread that is held up holds up few of them.
const PARTS_PER_THREAD: usize = 4;

/// What is done with the action values of a state.
pub trait JointChoice<const N: usize>: Sync {
    /// Whether the values of all actions are asked for.
    const NEEDS_ALL: bool = false;

    /// V_h(s) of each signal, and the action taken. `q` computes Q_h(s,a) of each; `room` has |A| entries.
    fn choose(
        &self,
        step: usize,
        state: usize,
        q: &impl Fn(usize) -> [f64; N],
        room: &mut [[f64; N]],
    ) -> ([f64; N], usize);
}

/// Values of N signals, side by side: of every step, or of the last step swept and the one after it.
#[derive(Debug, Clone)]
pub struct JointValues<const N: usize> {
    num_states: usize,
    steps: usize,   // H + 1, or 2
    data: Vec<f64>, // [steps, S, N]
}

impl<const N: usize> JointValues<N> {
    /// A store for the values of two steps.
    pub fn rolling(shape: Shape) -> Result<Self> {
        Self::of_steps(shape, 2)
    }

    /// A store for the values of every step.
    pub fn of_every_step(shape: Shape) -> Result<Self> {
        Self::of_steps(shape, shape.horizon() + 1)
    }

    fn of_steps(shape: Shape, steps: usize) -> Result<Self> {
        let num_states = shape.num_states();
        let len = steps.saturating_mul(num_states).saturating_mul(N);
        Ok(Self {
            num_states,
            steps,
            data: untouched_zeros("state values [H + 1, S]", len)?,
        })
    }

    /// V_0 of each signal, after a sweep.
    #[must_use]
    pub fn first_step(&self) -> &[[f64; N]] {
        &self.data.as_chunks().0[..self.num_states]
    }
}

impl JointValues<1> {
    /// The values of every step.
    #[must_use]
    pub fn into_state_values(self) -> StateValues {
        StateValues::from_data(self.num_states, self.data)
    }
}

/// N signals on a kernel.
#[derive(Debug, Clone, Copy)]
pub struct JointSweep<'a, G> {
    /// H, |S|, |A|.
    pub shape: Shape,
    /// g.
    pub signals: G,
    /// P.
    pub kernel: &'a Kernel,
    /// The threads.
    pub workers: Workers<'a>,
}

impl<G> JointSweep<'_, G> {
    /// Sweeps from the last step to the first; writes the actions taken if there is a table for them.
    pub fn run<const N: usize, C: JointChoice<N>>(
        &self,
        choice: &C,
        values: &mut JointValues<N>,
        actions: Option<&mut CompactActions>,
    ) -> Result<()>
    where
        G: Signals<N> + Sync,
    {
        // Loops over rows rely on it.
        assert!(self.kernel.check_shape(self.shape).is_ok());
        match self.kernel.rows_to_walk() {
            WalkedRows::Full(rows) => self.run_on::<N, _, _, false>(rows, choice, values, actions),
            WalkedRows::Lists(rows) if self.shape.num_states() * N > NEAR_VALUES => {
                self.run_on::<N, _, _, true>(rows, choice, values, actions)
            }
            WalkedRows::Lists(rows) => self.run_on::<N, _, _, false>(rows, choice, values, actions),
        }
    }

    fn run_on<const N: usize, R: JointRows + ?Sized, C: JointChoice<N>, const FAR: bool>(
        &self,
        rows: &R,
        choice: &C,
        values: &mut JointValues<N>,
        actions: Option<&mut CompactActions>,
    ) -> Result<()>
    where
        G: Signals<N> + Sync,
    {
        let (horizon, states) = (self.shape.horizon(), self.shape.num_states());
        let (threads, per_part) = self.division();
        let workers = Workers {
            threads,
            ..self.workers
        };
        // Choices that need all actions of a single signal.
        let strips = (N == 1 && C::NEEDS_ALL && !FAR)
            .then(|| self.kernel.interleaved())
            .flatten();
        let kept = values.steps;
        let values = Parts::new(values.data.as_chunks_mut::<N>().0);
        let actions = actions.map(ActionParts::new);
        workers.run(horizon, states.div_ceil(per_part), |stage, part| {
            let step = horizon - 1 - stage;
            let first = part * per_part;
            let last = (first + per_part).min(states);
            let place = |step: usize| step % kept * states;
            // SAFETY: the parts of a stage are disjoint, and V_{h+1} is stored elsewhere than V_h: there are at least
            // two steps. No part of another stage is in use.
            let (here, next) = unsafe {
                (
                    values.write(place(step) + first..place(step) + last),
                    values.read(place(step + 1)..place(step + 1) + states),
                )
            };
            vectorised(PartOfStep::<'_, '_, N, G, R, C, FAR> {
                sweep: self,
                rows,
                choice,
                step,
                first,
                here,
                next,
                actions: actions.as_ref(),
                strips,
            });
        })
    }

    /// How many threads share a step, and how many states a part of it has.
    fn division(&self) -> (usize, usize) {
        let states = self.shape.num_states();
        let entries = self.kernel.entries_per_state();
        let whole = ENTRIES_PER_PART.div_ceil(entries);
        // Parts begin where blocks of rows do.
        let in_blocks = |states: usize| states.next_multiple_of(STATES_PER_BLOCK);
        let work = entries.saturating_mul(states);
        let shared = self.workers.threads > 1
            && work >= SHARED_FROM
            && (work >= SHARED_ALWAYS || short_stages_may_be_shared());
        if !shared {
            return (1, in_blocks(whole));
        }
        let threads = self.workers.threads;
        let even = states.div_ceil(threads * PARTS_PER_THREAD);
        (threads, in_blocks(whole.min(even)))
    }
}

/// Some states of a step.
struct PartOfStep<'a, 's, const N: usize, G, R: ?Sized, C, const FAR: bool> {
    sweep: &'a JointSweep<'s, G>,
    rows: &'a R,
    choice: &'a C,
    step: usize,
    first: usize,
    here: &'a mut [[f64; N]],
    next: &'a [[f64; N]],
    actions: Option<&'a ActionParts<'a>>,
    /// The rows interleaved, if all of them are wanted for a single signal.
    strips: Option<&'a InterleavedRows>,
}

impl<const N: usize, G, R, C, const FAR: bool> Job for PartOfStep<'_, '_, N, G, R, C, FAR>
where
    G: Signals<N> + Sync,
    R: JointRows + ?Sized,
    C: JointChoice<N>,
{
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (shape, step) = (self.sweep.shape, self.step);
        let own = self.sweep.signals.at_step(step);
        if step + 1 == shape.horizon() {
            self.each_state(own);
            return;
        }
        let slice = match self.sweep.kernel.slices() {
            Slices::Stationary => 0,
            Slices::PerStep(_) => step * shape.pairs(),
        };
        let (rows, next) = (self.rows, self.next);
        if let Some(strips) = self.strips {
            self.in_blocks(strips, own);
            return;
        }
        self.each_state(|pair| {
            // SAFETY: `run` has checked that the kernel has the states, actions and steps of the shape.
            let expected = unsafe { rows.expectations::<N, FAR>(slice + pair, next) };
            let own = own(pair);
            std::array::from_fn(|n| expected[n] + own[n])
        });
    }
}

impl<const N: usize, G, R: JointRows + ?Sized, C: JointChoice<N>, const FAR: bool>
    PartOfStep<'_, '_, N, G, R, C, FAR>
{
    /// Chooses in each state, given Q_h as a function of the pair.
    #[inline(always)]
    fn each_state(mut self, q: impl Fn(usize) -> [f64; N]) {
        let mut room = vec![[0.0; N]; self.sweep.shape.num_actions()];
        for offset in 0..self.here.len() {
            self.choose(offset, &q, &mut room);
        }
    }

    /// The same for a single signal, given g_h as a function of the pair: expectations of the rows of a few states at
    /// once, in vectors.
    #[inline(always)]
    fn in_blocks(mut self, strips: &InterleavedRows, own: impl Fn(usize) -> [f64; N]) {
        debug_assert_eq!(N, 1);
        let shape = self.sweep.shape;
        let actions = shape.num_actions();
        let slice = match self.sweep.kernel.slices() {
            Slices::Stationary => 0,
            Slices::PerStep(_) => self.step,
        };
        let mut room = vec![[0.0; N]; actions];
        let mut expected = vec![0.0; STATES_PER_BLOCK * actions];
        for begin in (0..self.here.len()).step_by(STATES_PER_BLOCK) {
            let states = STATES_PER_BLOCK.min(self.here.len() - begin);
            let first_pair = shape.pair(self.first + begin, 0);
            let expected = &mut expected[..states * actions];
            let interleaved =
                (strips.rows_per_step().max(first_pair) - first_pair).min(expected.len());
            let interleaved = interleaved - interleaved % ROWS_PER_BLOCK;
            let (wide, rest) = expected.split_at_mut(interleaved);
            // SAFETY: a part has a next value for every state.
            unsafe {
                let next = self.next.as_flattened();
                strips.expectation(slice, first_pair / ROWS_PER_BLOCK, next, wide);
            }
            for (row, target) in (slice * shape.pairs() + first_pair + interleaved..).zip(rest) {
                // SAFETY: `run` has checked that the kernel has the states, actions and steps of the shape.
                *target = unsafe { self.rows.expectations::<N, FAR>(row, self.next)[0] };
            }
            let q = |pair: usize| {
                let own = own(pair);
                std::array::from_fn(|n| expected[pair - first_pair] + own[n])
            };
            for offset in begin..begin + states {
                self.choose(offset, &q, &mut room);
            }
        }
    }

    /// Chooses in one state of the part.
    #[inline(always)]
    fn choose(&mut self, offset: usize, q: &impl Fn(usize) -> [f64; N], room: &mut [[f64; N]]) {
        let (shape, step) = (self.sweep.shape, self.step);
        let state = self.first + offset;
        let pair = shape.pair(state, 0);
        let q = |action| q(pair + action);
        let (found, action) = self.choice.choose(step, state, &q, room);
        self.here[offset] = found;
        if let Some(table) = self.actions {
            // SAFETY: every state of every step is in one part, and a part is done once.
            unsafe { table.set(step * shape.num_states() + state, action) };
        }
    }
}

/// A table of actions that several threads write.
enum ActionParts<'a> {
    U8(Parts<'a, u8>),
    U16(Parts<'a, u16>),
    U32(Parts<'a, u32>),
}

impl<'a> ActionParts<'a> {
    fn new(actions: &'a mut CompactActions) -> Self {
        match actions {
            CompactActions::U8(actions) => Self::U8(Parts::new(actions)),
            CompactActions::U16(actions) => Self::U16(Parts::new(actions)),
            CompactActions::U32(actions) => Self::U32(Parts::new(actions)),
        }
    }

    /// # Safety
    ///
    /// No other thread may use the same place at the same time.
    #[inline(always)]
    unsafe fn set(&self, place: usize, action: usize) {
        // SAFETY: by this function's contract.
        unsafe {
            match self {
                Self::U8(parts) => parts.write(place..place + 1)[0] = action as u8,
                Self::U16(parts) => parts.write(place..place + 1)[0] = action as u16,
                Self::U32(parts) => parts.write(place..place + 1)[0] = action as u32,
            }
        }
    }
}

/// Takes the action whose values have the largest weighted sum; ties go to the lowest.
#[derive(Debug, Clone, Copy)]
pub struct Heaviest<const N: usize> {
    /// One weight a signal.
    pub weights: [f64; N],
}

impl<const N: usize> Heaviest<N> {
    /// The weighted sum, from the first signal to the last.
    #[inline(always)]
    pub fn weigh(&self, values: [f64; N]) -> f64 {
        let mut sum = self.weights[0] * values[0];
        for n in 1..N {
            sum += self.weights[n] * values[n];
        }
        sum
    }
}

impl<const N: usize> JointChoice<N> for Heaviest<N> {
    const NEEDS_ALL: bool = true;

    #[inline(always)]
    fn choose(
        &self,
        _: usize,
        _: usize,
        q: &impl Fn(usize) -> [f64; N],
        room: &mut [[f64; N]],
    ) -> ([f64; N], usize) {
        let (mut values, mut taken) = (q(0), 0);
        let mut best = self.weigh(values);
        for action in 1..room.len() {
            let found = q(action);
            let weight = self.weigh(found);
            // Without a branch: which action is best is close to random, and a wrong guess of the processor takes
            // longer than a row.
            let better = weight > best;
            best = select(better, weight, best);
            values = std::array::from_fn(|n| select(better, found[n], values[n]));
            taken = if better { action } else { taken };
        }
        (values, taken)
    }
}

/// One of two numbers, without a branch.
#[inline(always)]
pub(crate) fn select(is_new: bool, new: f64, old: f64) -> f64 {
    let mask = u64::from(is_new).wrapping_neg();
    f64::from_bits(new.to_bits() & mask | old.to_bits() & !mask)
}

/// Takes given actions, `[H, S]`.
#[derive(Debug, Clone, Copy)]
pub struct TakeCompact<'a> {
    /// |S|.
    pub states: usize,
    /// The actions.
    pub actions: &'a CompactActions,
}

impl<const N: usize> JointChoice<N> for TakeCompact<'_> {
    #[inline(always)]
    fn choose(
        &self,
        step: usize,
        state: usize,
        q: &impl Fn(usize) -> [f64; N],
        _: &mut [[f64; N]],
    ) -> ([f64; N], usize) {
        let action = self.actions.at(step * self.states + state);
        (q(action), action)
    }
}

/// Up to N signals of a known model; the first one takes the place of those that are missing.
#[derive(Debug, Clone, Copy)]
pub struct RewardAndCosts<'a, G, const N: usize>([&'a G; N]);

impl<'a, G, const N: usize> RewardAndCosts<'a, G, N> {
    /// The signals, at least one and at most N of them.
    #[must_use]
    pub fn new(signals: &[&'a G]) -> Self {
        debug_assert!(signals.len() <= N);
        Self(std::array::from_fn(|n| {
            *signals.get(n).unwrap_or(&signals[0])
        }))
    }
}

impl<G: StepSignal, const N: usize> Signals<N> for RewardAndCosts<'_, G, N> {
    #[inline(always)]
    fn at(&self, step: usize, pair: usize) -> [f64; N] {
        self.0.map(|signal| signal.at(step, pair))
    }

    #[inline(always)]
    fn at_step(&self, step: usize) -> impl Fn(usize) -> [f64; N] {
        let each = self.0.map(|signal| signal.at_step(step));
        move |pair| std::array::from_fn(|n| each[n](pair))
    }
}
