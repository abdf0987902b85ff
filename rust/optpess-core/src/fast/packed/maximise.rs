//! The maximising induction of both algorithms on packed tables: the best policy for g_r - multiplier g_c.

use crate::fast::isa::with_small_constant;
use crate::fast::isa::{Job, vectorised};
use crate::fast::lanes::{flat, flat_mut};
use crate::fast::packed::problem::{PackedProblem, PackedWork, STATES_PER_GROUP, SignalKind};
use crate::number::Number;

/// Writes the best policy for g_r - multiplier g_c into `actions`, `[H, padded]`, and its values at the first step into
/// `work`; ties go to the lowest action. The bits are those of [`crate::plan::PlainOracle`].
#[inline]
pub(crate) fn maximise(
    packed: &PackedProblem,
    multiplier: f64,
    work: &mut PackedWork,
    actions: &mut [u32],
) {
    with_small_constant!(packed.shape().num_states(), S => vectorised(Induction::<S> {
        packed,
        multiplier,
        work,
        actions,
    }));
}

/// `S` is the number of states, or 0 if it is not known at compile time.
struct Induction<'a, const S: usize> {
    packed: &'a PackedProblem,
    multiplier: f64,
    work: &'a mut PackedWork,
    actions: &'a mut [u32],
}

impl<const S: usize> Job for Induction<'_, S> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (packed, work, multiplier) = (self.packed, self.work, self.multiplier);
        let [steps, states, num_actions] = packed.shape().sizes();
        let (states, groups) = if S > 0 {
            (S, S.div_ceil(STATES_PER_GROUP))
        } else {
            (states, packed.padded_states() / STATES_PER_GROUP)
        };
        let blocks = packed.blocks();
        let (chosen, _) = self.actions.as_chunks_mut::<STATES_PER_GROUP>();
        for step in (0..steps).rev() {
            let [gains, losses] =
                [SignalKind::Reward, SignalKind::Cost].map(|of| packed.signal(of, step));
            let lagrangian = |block: usize| {
                gains[block].zip(losses[block], |gain, loss| gain - multiplier * loss)
            };
            let following = &flat(&work.values)[..states];
            packed.action_values::<S>(
                step,
                lagrangian,
                following,
                &mut work.action_values[..blocks],
            );
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

/// For four states, the best action value and its action. The candidates of two consecutive actions are `groups`
/// entries apart. Ties go to the lowest action.
#[inline(always)]
fn best_of(
    candidates: &[[f64; STATES_PER_GROUP]],
    groups: usize,
) -> ([f64; STATES_PER_GROUP], [u32; STATES_PER_GROUP]) {
    let mut best = candidates[0];
    let mut best_action = [0_u64; STATES_PER_GROUP]; // as wide as the action values: one mask selects both
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
