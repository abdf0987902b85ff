//! Sets of rows, and backups that take the best or the worst row of a set at every pair.
//!
//! [`Best`] and [`Worst`] are the backups of extended induction and of worst-case evaluation. Both order the
//! states by value once a step; the order then determines every row of the step.

use crate::evaluate::sweep::Backup;
use crate::fast::isa::dot_rows;
use crate::sums::dot;

/// A set of distributions of the next state for each pair, chosen independently of each other. All rows of
/// a pair's set share some mass; they differ in where they place the rest.
pub trait RowSet {
    /// |S|.
    fn num_states(&self) -> usize;

    /// |A|.
    fn num_actions(&self) -> usize;

    /// The mass that all rows of a pair's set share, for every pair of a step, `[S, A, S]`.
    fn shared(&self, step: usize) -> &[f64];

    /// Places the rest of a pair's row on the first states of `order` as far as the set allows. `give` is
    /// called with every state that gets mass, and with the mass.
    fn place(&self, step: usize, pair: usize, order: &[u32], give: impl FnMut(usize, f64));

    /// Writes the row of a pair's set that is extreme for this order of states.
    #[inline(always)]
    fn write_row(&self, step: usize, pair: usize, order: &[u32], row: &mut [f64]) {
        row.copy_from_slice(&self.shared(step)[pair * row.len()..][..row.len()]);
        self.place(step, pair, order, |state, given| row[state] += given);
    }
}

/// Which of the chosen rows are stored, and where.
#[derive(Debug)]
pub enum Memory<'a> {
    /// None.
    Nothing,
    /// That of the action taken at each step and state, `[H - 1, S, S]`.
    RowPerState(&'a mut [f64]),
    /// That of every pair that is taken, `[H - 1, S, A, S]`.
    RowPerPair(&'a mut [f64]),
}

/// The row that is best (`BEST`) or worst for V_{h+1}; among equally valuable states the lowest comes first.
#[derive(Debug)]
pub struct Extreme<'a, R, const BEST: bool> {
    set: &'a R,
    order: &'a mut [u32], // [S], the states that get mass first
    memory: Memory<'a>,
}

/// The best row: Q_h(s,a) = g_h(s,a) + max over p of <p, V_{h+1}>.
pub type Best<'a, R> = Extreme<'a, R, true>;

/// The worst row: Q_h(s,a) = g_h(s,a) + min over p of <p, V_{h+1}>.
pub type Worst<'a, R> = Extreme<'a, R, false>;

impl<'a, R: RowSet, const BEST: bool> Extreme<'a, R, BEST> {
    /// `order` is workspace of |S| entries; it is filled here.
    pub fn new(set: &'a R, order: &'a mut [u32], memory: Memory<'a>) -> Self {
        for (state, place) in (0..).zip(order.iter_mut()) {
            *place = state;
        }
        Self { set, order, memory }
    }
}

impl<R: RowSet, const BEST: bool> Backup<1> for Extreme<'_, R, BEST> {
    const CHOOSES_ROWS: bool = true;

    #[inline(always)]
    fn begin_step(&mut self, _: usize, [next]: [&[f64]; 1]) {
        self.order.sort_unstable_by(|&a, &b| {
            let (first, second) = (next[a as usize], next[b as usize]);
            let by_value = if BEST {
                second.total_cmp(&first)
            } else {
                first.total_cmp(&second)
            };
            by_value.then(a.cmp(&b))
        });
    }

    #[inline(always)]
    fn pair(&self, step: usize, pair: usize, [next]: [&[f64]; 1]) -> [f64; 1] {
        let shared = &self.set.shared(step)[pair * next.len()..][..next.len()];
        [dot(shared, next)]
    }

    #[inline(always)]
    fn all(&self, step: usize, [next]: [&[f64]; 1], [out]: &mut [&mut [f64]; 1]) {
        dot_rows(self.set.shared(step), next, out);
    }

    #[inline(always)]
    fn add_chosen(
        &self,
        step: usize,
        pair: usize,
        [next]: [&[f64]; 1],
        [mut q]: [f64; 1],
    ) -> [f64; 1] {
        self.set.place(step, pair, self.order, |state, given| {
            q += given * next[state];
        });
        [q]
    }

    #[inline(always)]
    fn remember(&mut self, step: usize, state: usize, action: usize) {
        let (states, actions) = (self.set.num_states(), self.set.num_actions());
        let pair = state * actions + action;
        let (rows, row) = match &mut self.memory {
            Memory::Nothing => return,
            Memory::RowPerState(rows) => (rows, step * states + state),
            Memory::RowPerPair(rows) => (rows, step * states * actions + pair),
        };
        let row = &mut rows[row * states..][..states];
        self.set.write_row(step, pair, self.order, row);
    }
}
