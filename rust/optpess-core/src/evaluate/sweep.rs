//! The backward recursion: V_h from V_{h+1}, for one signal or several at once.
//!
//! V_H = 0; for h = H-1, ..., 0: Q_h(s,a) = g_h(s,a) + backup(V_{h+1}) and V_h(s) = choice(Q_h(s,.)).
//!
//! Evaluating a policy, maximising, breaking ties lexicographically, clipping, and choosing the transitions
//! together with the actions are all this recursion. They differ in how V_{h+1} enters ([`Backup`]) and in
//! what is done with the action values of a state ([`Choice`]). The bits of every value follow from three
//! rules: the kernel decides the order of additions over the next state, g is added to that sum in one
//! addition, and a choice reads the actions from the lowest to the highest.

use std::ops::Range;

use crate::error::Result;
use crate::fast::isa::{Job, vectorised, with_small_constant};
use crate::model::StepKernel;
use crate::shape::Shape;
use crate::table::{StateValues, StepSignal, zeros};

/// N signals that are evaluated together.
pub trait Signals<const N: usize> {
    /// g_h(s,a) of each.
    fn at(&self, step: usize, pair: usize) -> [f64; N];
    /// g_h of each as a function of the pair.
    #[inline(always)]
    fn at_step(&self, step: usize) -> impl Fn(usize) -> [f64; N] {
        move |pair| self.at(step, pair)
    }

    /// out(s,a) += g_h(s,a), for each and every pair. Stored tables do this faster.
    #[inline(always)]
    fn add_to(&self, step: usize, out: &mut [&mut [f64]; N]) {
        for pair in 0..out[0].len() {
            let own = self.at(step, pair);
            for (out, own) in out.iter_mut().zip(own) {
                out[pair] += own;
            }
        }
    }
}

impl<G: StepSignal> Signals<1> for &G {
    #[inline(always)]
    fn at(&self, step: usize, pair: usize) -> [f64; 1] {
        [StepSignal::at(*self, step, pair)]
    }

    #[inline(always)]
    fn at_step(&self, step: usize) -> impl Fn(usize) -> [f64; 1] {
        let own = StepSignal::at_step(*self, step);
        move |pair| [own(pair)]
    }

    #[inline(always)]
    fn add_to(&self, step: usize, [out]: &mut [&mut [f64]; 1]) {
        StepSignal::add_to(*self, step, out);
    }
}

impl<F: StepSignal, G: StepSignal> Signals<2> for (&F, &G) {
    #[inline(always)]
    fn at(&self, step: usize, pair: usize) -> [f64; 2] {
        [self.0.at(step, pair), self.1.at(step, pair)]
    }

    #[inline(always)]
    fn at_step(&self, step: usize) -> impl Fn(usize) -> [f64; 2] {
        let (first, second) = (self.0.at_step(step), self.1.at_step(step));
        move |pair| [first(pair), second(pair)]
    }

    #[inline(always)]
    fn add_to(&self, step: usize, [first, second]: &mut [&mut [f64]; 2]) {
        self.0.add_to(step, first);
        self.1.add_to(step, second);
    }
}

/// How V_{h+1} enters Q_h: an expectation under a kernel, or the best or worst over a set of rows.
pub trait Backup<const N: usize> {
    /// Whether sweeps over it run so often that they are compiled for each small number of states.
    const FOR_EACH_SIZE: bool = false;
    /// Whether it chooses among rows, so that [`Backup::add_chosen`] and [`Backup::remember`] do something.
    const CHOOSES_ROWS: bool = false;

    /// Called once a step, before the other methods are called for that step.
    fn begin_step(&mut self, _step: usize, _next: [&[f64]; N]) {}

    /// What is added to g_h(s,a), for each signal.
    fn pair(&self, step: usize, pair: usize, next: [&[f64]; N]) -> [f64; N];

    /// [`Backup::pair`] for every pair; may be faster, to the same bits.
    fn all(&self, step: usize, next: [&[f64]; N], out: &mut [&mut [f64]; N]);

    /// Q_h(s,a), from the sum of g_h(s,a) and [`Backup::pair`]: a set of rows adds the part of the expectation in
    /// which its rows differ.
    #[inline(always)]
    fn add_chosen(&self, _step: usize, _pair: usize, _next: [&[f64]; N], q: [f64; N]) -> [f64; N] {
        q
    }

    /// Called for an action that is taken: a set of rows stores the row it chose for it.
    #[inline(always)]
    fn remember(&mut self, _step: usize, _state: usize, _action: usize) {}
}

/// The expectation under a kernel.
#[derive(Debug)]
pub struct Expected<'a, K>(pub &'a K);

impl<K: StepKernel> Backup<1> for Expected<'_, K> {
    const FOR_EACH_SIZE: bool = K::ASKED_OFTEN;

    #[inline(always)]
    fn pair(&self, step: usize, pair: usize, [next]: [&[f64]; 1]) -> [f64; 1] {
        [self.0.expectation(step, pair, next)]
    }

    #[inline(always)]
    fn all(&self, step: usize, [next]: [&[f64]; 1], [out]: &mut [&mut [f64]; 1]) {
        self.0.all_expectations(step, next, out);
    }
}

impl<K: StepKernel> Backup<2> for Expected<'_, K> {
    #[inline(always)]
    fn pair(&self, step: usize, pair: usize, [first, second]: [&[f64]; 2]) -> [f64; 2] {
        self.0.expectation_of_two(step, pair, first, second).into()
    }

    #[inline(always)]
    fn all(&self, step: usize, next: [&[f64]; 2], out: &mut [&mut [f64]; 2]) {
        for (next, out) in next.into_iter().zip(out) {
            self.0.all_expectations(step, next, out);
        }
    }
}

/// Which action values of a step a choice reads.
#[derive(Debug, Clone, Copy)]
pub enum Wanted<'a> {
    /// Those of every pair.
    All,
    /// Those of the pairs with a positive weight, `[S, A]`.
    Weighted(&'a [f64]),
    /// Those of one action for each state, `[S]`.
    One(&'a [u32]),
}

/// What is done with the action values of a state.
pub trait Choice<const N: usize> {
    /// Whether sweeps with it run so often that they are compiled for each small number of states.
    const FOR_EACH_SIZE: bool = false;

    /// Called once a step, before the other methods are called for that step.
    #[inline(always)]
    fn begin_step(&mut self, _step: usize) {}

    /// Which action values [`Choice::choose`] will read.
    fn wanted(&self, step: usize) -> Wanted<'_>;

    /// V_h(s) of each signal, from Q_h(s,.) of each. Called for the states in ascending order.
    fn choose(&mut self, step: usize, state: usize, q: [&[f64]; N]) -> [f64; N];

    /// Calls `visit` with every action that is taken; called after [`Choice::choose`].
    fn each_taken(&self, step: usize, state: usize, visit: impl FnMut(usize));
}

/// The storage of the values of a sweep.
pub trait ValueStore<const N: usize> {
    /// V_h of each signal, to be written, and V_{h+1}. Called for descending steps.
    fn step_and_next(&mut self, step: usize) -> ([&mut [f64]; N], [&[f64]; N]);
}

/// Keeps the values of every step.
impl ValueStore<1> for StateValues {
    #[inline(always)]
    fn step_and_next(&mut self, step: usize) -> ([&mut [f64]; 1], [&[f64]; 1]) {
        let (here, next) = StateValues::step_and_next(self, step);
        ([here], [next])
    }
}

/// Keeps only the values of the last step swept and of the one after it.
#[derive(Debug, Clone)]
pub struct RollingValues<const N: usize> {
    rows: [[Vec<f64>; 2]; N], // [signal][this step, next step][S]
}

impl<const N: usize> RollingValues<N> {
    /// A store for problems of this shape.
    pub fn new(shape: Shape) -> Result<Self> {
        let mut rows = [const { [const { Vec::new() }; 2] }; N];
        for row in rows.as_flattened_mut() {
            *row = zeros("state values [S]", shape.num_states())?;
        }
        Ok(Self { rows })
    }

    /// The values of the last step swept, one row a signal.
    #[must_use]
    #[inline(always)]
    pub fn last(&self) -> [&[f64]; N] {
        self.rows.each_ref().map(|[here, _]| &here[..])
    }

    /// Copies the values of the last step swept from another store.
    pub fn copy_last(&mut self, other: &Self) {
        for ([here, _], [from, _]) in self.rows.iter_mut().zip(&other.rows) {
            here.copy_from_slice(from);
        }
    }
}

impl<const N: usize> ValueStore<N> for RollingValues<N> {
    #[inline(always)]
    fn step_and_next(&mut self, _step: usize) -> ([&mut [f64]; N], [&[f64]; N]) {
        let mut next = [&[][..]; N];
        let mut count = 0;
        let here = self.rows.each_mut().map(|rows| {
            rows.swap(0, 1);
            let [here, old] = rows;
            next[count] = &old[..];
            count += 1;
            &mut here[..]
        });
        (here, next)
    }
}

/// One run of the recursion over some steps.
#[derive(Debug)]
pub struct Sweep<'a, const N: usize, G, B, C, V> {
    /// H, |S|, |A|.
    pub shape: Shape,
    /// The steps; they are swept from the last to the first. If they end before H, `values` must hold the values of the
    /// step after them.
    pub steps: Range<usize>,
    /// g.
    pub signals: G,
    /// How V_{h+1} enters.
    pub backup: &'a mut B,
    /// What is done with the action values of a state.
    pub choice: &'a mut C,
    /// Where V is written.
    pub values: &'a mut V,
    /// Workspace: Q of the step at hand, `[S, A]`, for each signal.
    pub action_values: [&'a mut [f64]; N],
}

impl<const N: usize, G, B, C, V> Sweep<'_, N, G, B, C, V>
where
    G: Signals<N>,
    B: Backup<N>,
    C: Choice<N>,
    V: ValueStore<N>,
{
    /// Runs the sweep, without allocating.
    #[inline(always)]
    pub fn run(self) {
        let often = const { B::FOR_EACH_SIZE && C::FOR_EACH_SIZE };
        let states = self.shape.num_states();
        with_small_constant!(if often, states, S => vectorised(OfSize::<'_, N, S, G, B, C, V>(self)));
    }
}

/// A sweep over `S` states, or over any number if `S` is 0.
struct OfSize<'a, const N: usize, const S: usize, G, B, C, V>(Sweep<'a, N, G, B, C, V>);

impl<const N: usize, const S: usize, G, B, C, V> Job for OfSize<'_, N, S, G, B, C, V>
where
    G: Signals<N>,
    B: Backup<N>,
    C: Choice<N>,
    V: ValueStore<N>,
{
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Sweep {
            shape,
            steps,
            signals,
            backup,
            choice,
            values,
            action_values: mut q,
        } = self.0;
        let states = if S > 0 { S } else { shape.num_states() };
        for step in steps.rev() {
            let (here, next) = values.step_and_next(step);
            let next = next.map(|values| &values[..states]);
            let here = here.map(|values| &mut values[..states]);
            let followed = step + 1 < shape.horizon();
            if followed {
                backup.begin_step(step, next);
            }
            choice.begin_step(step);
            let next = followed.then_some(next);
            fill(
                shape,
                step,
                next,
                &signals,
                backup,
                choice.wanted(step),
                &mut q,
            );
            let q = q.each_ref().map(|q| &**q);
            let mut here = here;
            each_state(q, shape.num_actions(), |state, q| {
                let found = choice.choose(step, state, q);
                for (here, found) in here.iter_mut().zip(found) {
                    here[state] = found;
                }
            });
            if B::CHOOSES_ROWS && followed {
                for state in 0..states {
                    choice.each_taken(step, state, |action| backup.remember(step, state, action));
                }
            }
        }
    }
}

/// Writes Q_h(s,a) for the pairs that are wanted. `next` is None at the last step.
#[inline(always)]
fn fill<const N: usize, G: Signals<N>, B: Backup<N>>(
    shape: Shape,
    step: usize,
    next: Option<[&[f64]; N]>,
    signals: &G,
    backup: &B,
    wanted: Wanted<'_>,
    q: &mut [&mut [f64]; N],
) {
    let actions = shape.num_actions();
    match (wanted, next) {
        (Wanted::One(taken), _) => {
            for (state, &action) in taken.iter().enumerate() {
                let pair = shape.pair(state, action as usize);
                let own = signals.at(step, pair);
                let found = match next {
                    None => own,
                    Some(next) => {
                        let expected = backup.pair(step, pair, next);
                        let sum: [f64; N] = std::array::from_fn(|n| expected[n] + own[n]);
                        backup.add_chosen(step, pair, next, sum)
                    }
                };
                set(q, pair, found);
            }
            return;
        }
        (_, None) => q.iter_mut().for_each(|q| q.fill(0.0)),
        (Wanted::Weighted(weights), Some(next)) if !mostly_positive(weights) => {
            // Cut to the length of the weights, so that no index needs a check.
            let mut q = q.each_mut().map(|q| &mut q[..weights.len()]);
            for (pair, &weight) in weights.iter().enumerate() {
                let expected = if weight > 0.0 {
                    backup.pair(step, pair, next)
                } else {
                    [0.0; N]
                };
                set(&mut q, pair, expected);
            }
        }
        (_, Some(next)) => backup.all(step, next, q),
    }
    signals.add_to(step, q);
    if let (true, Some(next)) = (B::CHOOSES_ROWS, next) {
        for pair in 0..shape.num_states() * actions {
            if !matches!(wanted, Wanted::Weighted(weights) if weights[pair] <= 0.0) {
                let sum = q.each_ref().map(|q| q[pair]);
                set(q, pair, backup.add_chosen(step, pair, next, sum));
            }
        }
    }
}

#[inline(always)]
fn set<const N: usize>(q: &mut [&mut [f64]; N], pair: usize, found: [f64; N]) {
    for (q, found) in q.iter_mut().zip(found) {
        q[pair] = found;
    }
}

/// Whether computing all pairs at once is less work than computing each wanted pair on its own. A deterministic policy
/// needs one row in |A|, and single rows are then faster.
#[inline(always)]
fn mostly_positive(weights: &[f64]) -> bool {
    let positive = weights.iter().filter(|&&weight| weight > 0.0).count();
    2 * positive > weights.len()
}

/// Calls `visit` with each state and its rows of `width` entries. Policies have short rows; a length that is known at
/// compile time makes loops over them three times as fast.
#[inline(always)]
fn each_state<const N: usize>(
    data: [&[f64]; N],
    width: usize,
    mut visit: impl FnMut(usize, [&[f64]; N]),
) {
    macro_rules! of_width {
        ($($known:literal)*) => {
            match width {
                $($known => {
                    let rows = data.map(|data| data.as_chunks::<$known>().0);
                    for state in 0..rows[0].len() {
                        visit(state, rows.map(|rows| &rows[state][..]));
                    }
                })*
                _ => for state in 0..data[0].len() / width {
                    visit(state, data.map(|data| &data[state * width..][..width]));
                }
            }
        };
    }
    of_width!(2 3 4 5 6 7 8);
}
