//! The induction of both algorithms, over a [`PackedProblem`]: the best policy for one signal minus a priced other.

use crate::error::Result;
use crate::estimate::{EmpiricalKernel, Successors};
use crate::evaluate::{PackedProblem, PackedWork, STATES_PER_GROUP, SignalKind};
use crate::lanes::{Lane, flat, flat_mut, with_small_constant};
use crate::vectorised::{Job, vectorised};

/// Makes room for the rows of `kernel` if it keeps longer lists than before, or none any more; true if there was
/// anything to do.
#[inline(always)]
pub(crate) fn fit(board: &mut PackedProblem, kernel: &EmpiricalKernel) -> Result<bool> {
    if kernel.list_width() == board.list_width() {
        return Ok(false);
    }
    set_rows(board, kernel)?;
    Ok(true)
}

/// Copies every row of `kernel`.
#[cold]
pub(crate) fn set_rows(board: &mut PackedProblem, kernel: &EmpiricalKernel) -> Result<()> {
    let shape = board.shape();
    let [steps, _, actions] = shape.sizes();
    board.clear_rows(kernel.list_width())?;
    for step in 0..steps - 1 {
        for pair in 0..shape.pairs() {
            let row = kernel.row(step, pair);
            set_row(board, step, pair / actions, pair % actions, row);
        }
    }
    Ok(())
}

/// P_h(.|s,a) of one pair; not for the last step, which has none.
#[inline(always)]
pub(crate) fn set_row(
    board: &mut PackedProblem,
    step: usize,
    state: usize,
    action: usize,
    row: Successors<'_>,
) {
    match row {
        Successors::Full(row) => board.set_full_row(step, state, action, row),
        listed @ Successors::Listed(..) => board.set_row(step, state, action, listed.iter()),
    }
}

/// Writes the best policy for g_r - price g_c into `actions`, `[H, padded]`, and its values at the first step into
/// `work`; ties go to the lowest action. The answers are those of [`super::PlainOracle`], bit for bit.
#[inline]
pub(crate) fn best_for(
    board: &PackedProblem,
    price: f64,
    work: &mut PackedWork,
    actions: &mut [u32],
) {
    with_small_constant!(board.shape().num_states(), S => vectorised(Induction::<S> {
        board,
        price,
        work,
        actions,
    }));
}

/// `S` is the number of states, or 0 where it is not known beforehand.
struct Induction<'a, const S: usize> {
    board: &'a PackedProblem,
    price: f64,
    work: &'a mut PackedWork,
    actions: &'a mut [u32],
}

impl<const S: usize> Job for Induction<'_, S> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (board, work, price) = (self.board, self.work, self.price);
        let [steps, states, num_actions] = board.shape().sizes();
        let (states, groups) = if S > 0 {
            (S, S.div_ceil(STATES_PER_GROUP))
        } else {
            (states, board.padded_states() / STATES_PER_GROUP)
        };
        let blocks = board.blocks();
        let (chosen, _) = self.actions.as_chunks_mut::<STATES_PER_GROUP>();
        for step in (0..steps).rev() {
            let [gains, losses] =
                [SignalKind::Reward, SignalKind::Cost].map(|of| board.signal(of, step));
            let priced =
                |block: usize| gains[block].zip(losses[block], |gain, loss| gain - price * loss);
            let following = &flat(&work.values)[..states];
            board.action_values::<S>(step, priced, following, &mut work.action_values[..blocks]);
            let (action_values, _) =
                flat(&work.action_values[..blocks]).as_chunks::<STATES_PER_GROUP>();
            let (values, _) = flat_mut(&mut work.values).as_chunks_mut::<STATES_PER_GROUP>();
            let chosen = &mut chosen[step * groups..][..groups];
            for group in 0..groups {
                let candidates = &action_values[group..][..(num_actions - 1) * groups + 1];
                (values[group], chosen[group]) = best_of(candidates, groups);
            }
        }
    }
}

/// For four states, the best quality and its action; the candidates of an action stand `groups` behind
/// those of the one before. Ties go to the lowest action.
#[inline(always)]
fn best_of(
    candidates: &[[f64; STATES_PER_GROUP]],
    groups: usize,
) -> ([f64; STATES_PER_GROUP], [u32; STATES_PER_GROUP]) {
    let mut best = candidates[0];
    let mut best_action = [0_u64; STATES_PER_GROUP]; // as wide as the action_values: one mask serves both
    let (mut place, mut action) = (groups, 1);
    while let Some(candidate) = candidates.get(place) {
        for lane in 0..STATES_PER_GROUP {
            let better = candidate[lane] > best[lane];
            best[lane] = if better { candidate[lane] } else { best[lane] };
            best_action[lane] = if better { action } else { best_action[lane] };
        }
        place += groups;
        action += 1;
    }
    (best, best_action.map(|action| action as u32))
}
