//! The lexicographic inductions on packed tables: least cost and then most reward, or most reward and then least cost.

use crate::fast::isa::with_small_constant;
use crate::fast::isa::{Job, vectorised};
use crate::fast::lanes::{LANES, flat, flat_mut};
use crate::fast::packed::problem::{PackedProblem, PackedWork, STATES_PER_GROUP, SignalKind};
use crate::model::InitialDistribution;

/// Writes the policy of least cost and, among those, most reward (`COST_FIRST`), or the other way round, into
/// `actions`, `[H, padded]`. Returns its [reward, cost]. Values that differ by less than `tie_width`, relatively, are
/// ties. The bits are those of [`crate::plan::PlainOracle`].
#[inline]
pub(crate) fn extreme_on<const COST_FIRST: bool>(
    packed: &PackedProblem,
    tie_width: f64,
    initial: &InitialDistribution,
    work: &mut PackedWork,
    actions: &mut [u32],
) -> [f64; 2] {
    let states = packed.shape().num_states();
    with_small_constant!(states, S => vectorised(Lexicographic::<COST_FIRST, S> {
        packed,
        tie_width,
        work: &mut *work,
        actions,
    }));
    let wide = packed.padded_states().div_ceil(LANES);
    [0, 1].map(|track| initial.expectation(&flat(&work.values[track * wide..][..wide])[..states]))
}

/// `S` is the number of states, or 0 if it is not known at compile time.
struct Lexicographic<'a, const COST_FIRST: bool, const S: usize> {
    packed: &'a PackedProblem,
    tie_width: f64,
    work: &'a mut PackedWork,
    actions: &'a mut [u32],
}

impl<const COST_FIRST: bool, const S: usize> Job for Lexicographic<'_, COST_FIRST, S> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (packed, work) = (self.packed, self.work);
        let [steps, states, _] = packed.shape().sizes();
        let states = if S > 0 { S } else { states };
        let (groups, blocks) = (states.div_ceil(STATES_PER_GROUP), packed.blocks());
        let wide = (groups * STATES_PER_GROUP).div_ceil(LANES);
        let (chosen, _) = self.actions.as_chunks_mut::<STATES_PER_GROUP>();
        for step in (0..steps).rev() {
            for (track, of) in [SignalKind::Reward, SignalKind::Cost]
                .into_iter()
                .enumerate()
            {
                let action_values = &mut work.action_values[track * blocks..][..blocks];
                let values = flat(&work.values[track * wide..][..wide]);
                let own = packed.signal(of, step);
                packed.action_values::<S>(
                    step,
                    |block| own[block],
                    &values[..states],
                    action_values,
                );
            }
            let (rewards, costs) = flat(&work.action_values[..2 * blocks]).split_at(blocks * LANES);
            let (rewards, costs) = (rewards.as_chunks().0, costs.as_chunks().0);
            let (values, cost_values) =
                flat_mut(&mut work.values[..2 * wide]).split_at_mut(wide * LANES);
            let (values, cost_values) = (values.as_chunks_mut().0, cost_values.as_chunks_mut().0);
            let chosen = &mut chosen[step * groups..][..groups];
            let last = (packed.shape().num_actions() - 1) * groups + 1;
            for group in 0..groups {
                let rewards = &rewards[group..][..last];
                let costs = &costs[group..][..last];
                let best = best_of::<COST_FIRST>(rewards, costs, groups, self.tie_width);
                (values[group], cost_values[group], chosen[group]) = best;
            }
        }
    }
}

/// For four states, reward and cost of the best action, and the action. The candidates of two consecutive actions are
/// `groups` entries apart. Ties of both go to the lowest action.
#[inline(always)]
fn best_of<const COST_FIRST: bool>(
    rewards: &[[f64; STATES_PER_GROUP]],
    costs: &[[f64; STATES_PER_GROUP]],
    groups: usize,
    tie_width: f64,
) -> (
    [f64; STATES_PER_GROUP],
    [f64; STATES_PER_GROUP],
    [u32; STATES_PER_GROUP],
) {
    let criteria = || {
        let each = rewards.iter().zip(costs).step_by(groups);
        each.map(|(reward, cost)| {
            let saved = cost.map(|cost| -cost);
            if COST_FIRST {
                (saved, *reward)
            } else {
                (*reward, saved)
            }
        })
    };
    let (mut best, mut magnitude) = (
        [f64::NEG_INFINITY; STATES_PER_GROUP],
        [0.0_f64; STATES_PER_GROUP],
    );
    for (first, _) in criteria() {
        for lane in 0..STATES_PER_GROUP {
            best[lane] = best[lane].max(first[lane]);
            magnitude[lane] = magnitude[lane].max(first[lane].abs());
        }
    }
    let (mut found, mut found_action) = ([0.0; STATES_PER_GROUP], [0_u64; STATES_PER_GROUP]);
    let mut found_second = [f64::NEG_INFINITY; STATES_PER_GROUP];
    for (action, (first, second)) in criteria().enumerate() {
        for lane in 0..STATES_PER_GROUP {
            let acceptable = first[lane] >= best[lane] - tie_width * magnitude[lane];
            if acceptable && second[lane] > found_second[lane] {
                found[lane] = first[lane];
                found_second[lane] = second[lane];
                found_action[lane] = action as u64;
            }
        }
    }
    let actions = found_action.map(|action| action as u32);
    if COST_FIRST {
        (found_second, found.map(|saved| -saved), actions)
    } else {
        (found, found_second.map(|saved| -saved), actions)
    }
}
