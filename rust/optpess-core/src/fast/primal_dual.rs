//! The engine of Algorithm 2. It finds the policy of line 6 on packed tables, of which an episode changes at most H
//! rows, and evaluates its cost from the last step that changed.

use crate::error::Result;
use crate::estimate::{EmpiricalKernel, RowEstimate};
use crate::fast::chain::PolicyChain;
use crate::fast::packed::{PackedProblem, PackedWork, STATES_PER_GROUP, maximise};
use crate::learn::{Deployment, Learner, OptPessPrimalDual, SignalListener};
use crate::model::InitialDistribution;
use crate::policy::{ActionTable, Changes};
use crate::shape::Shape;
use crate::table::{StepSignal, zeros};
use crate::trajectory::Trajectory;

/// A learner of Algorithm 2 with its engine.
#[derive(Debug)]
pub(crate) struct PrimalDualEngine {
    learner: OptPessPrimalDual,
    planner: LagrangianPlanner,
    /// Whether a policy has been planned.
    planned_before: bool,
    is_first: bool,
}

impl PrimalDualEngine {
    pub(crate) fn new(mut learner: OptPessPrimalDual) -> Result<Self> {
        let planner = LagrangianPlanner::of(&mut learner)?;
        Ok(Self {
            learner,
            planner,
            planned_before: false,
            is_first: true,
        })
    }

    #[inline]
    pub(crate) fn plan(&mut self) -> Result<Deployment> {
        self.planner.fit(self.learner.estimates().kernel())?;
        let price = self.learner.price(&mut self.planner)?; // lines 3 to 5: the learner
        self.planner.maximise(price); // line 6
        let initial = self.learner.experience().initial();
        let cost = self.planner.truncated_cost(initial); // V(c tilde) of the plan
        self.is_first = !std::mem::replace(&mut self.planned_before, true);
        self.learner.charge(cost) // line 7: the learner
    }

    #[inline]
    pub(crate) fn actions(&self) -> ActionTable<'_> {
        self.planner.actions()
    }

    #[inline]
    pub(crate) fn changes(&self) -> Changes<'_> {
        match self.planner.changed_places() {
            _ if self.is_first => Changes::Everything,
            [] => Changes::Nothing,
            places => Changes::These(places),
        }
    }

    #[inline]
    pub(crate) fn observe(&mut self, seen: &Trajectory) -> Result<()> {
        self.learner.observe(seen)
    }

    pub(crate) fn learner(&self) -> &OptPessPrimalDual {
        &self.learner
    }

    pub(crate) fn to_learner(&self) -> OptPessPrimalDual {
        let mut learner = self.learner.clone();
        if let Some(actions) = self.planned_actions() {
            learner.set_actions(&actions);
        }
        learner
    }

    pub(crate) fn into_learner(mut self) -> OptPessPrimalDual {
        if let Some(actions) = self.planned_actions() {
            self.learner.set_actions(&actions);
        }
        self.learner
    }

    /// The last plan, `[H, S]`, which is kept here alone; None before the first.
    fn planned_actions(&self) -> Option<Vec<u32>> {
        let shape = self.learner.shape();
        self.planned_before
            .then(|| self.planner.actions().to_vec(shape))
    }
}

/// Keeps a policy that is best for g_r - price g_c, and its cost.
#[derive(Debug)]
struct LagrangianPlanner {
    shape: Shape,
    packed: PackedProblem,
    work: PackedWork,
    found: Vec<u32>, // [H, padded], what the last induction chose
    kept: Vec<u32>,  // [H, padded], the policy kept
    /// Each (step, state) at which the last induction changed the policy; one entry longer than needed.
    changed: Vec<[u32; 2]>,
    num_changed: usize,
    chain: PolicyChain<1>,
    /// Whether `chain` is up to date; it is not used while no cost is positive.
    chain_is_current: bool,
}

impl LagrangianPlanner {
    /// Refreshes a learner and copies its tables; the policy takes action 0.
    fn of(learner: &mut OptPessPrimalDual) -> Result<Self> {
        let shape = learner.shape();
        let signals = learner.signals();
        let (reward, cost) = (signals.reward.cloned(), signals.cost.clone());
        let kernel = learner.estimates().kernel();
        let list_width = kernel.list_width();
        let mut packed = PackedProblem::new(shape, list_width, |step, pair| {
            let reward = reward.as_ref().map_or(0.0, |signal| signal.at(step, pair));
            [reward, cost.at(step, pair)]
        })?;
        packed.copy_rows(kernel)?;
        let places = shape.horizon() * packed.padded_states();
        Ok(Self {
            shape,
            found: zeros("actions [H, S]", places)?,
            kept: zeros("actions [H, S]", places)?,
            changed: zeros("changed actions [H, S]", places + 1)?,
            num_changed: 0,
            chain: PolicyChain::new(shape, list_width)?,
            chain_is_current: false,
            work: PackedWork::new(shape, 1)?,
            packed,
        })
    }

    /// The policy kept.
    #[inline(always)]
    fn actions(&self) -> ActionTable<'_> {
        ActionTable::new(&self.kept, self.packed.padded_states())
    }

    /// Each (step, state) at which the last induction changed the policy.
    #[inline(always)]
    fn changed_places(&self) -> &[[u32; 2]] {
        &self.changed[..self.num_changed]
    }

    /// Call it before rows of `kernel` are set: the kernel may have changed its storage.
    #[inline(always)]
    fn fit(&mut self, kernel: &EmpiricalKernel) -> Result<()> {
        if self.packed.fit(kernel)? {
            self.chain = PolicyChain::new(self.shape, kernel.list_width())?;
            self.chain_is_current = false;
        }
        Ok(())
    }

    /// Finds and keeps the best policy for g_r - price g_c.
    #[inline(always)]
    fn maximise(&mut self, price: f64) {
        maximise(&self.packed, price, &mut self.work, &mut self.found);
        let padded = self.packed.padded_states();
        let policies = (&self.found[..], &self.kept[..]);
        self.num_changed = changed_actions(policies, padded, &mut self.changed);
        std::mem::swap(&mut self.found, &mut self.kept);
        if self.chain_is_current {
            let actions = ActionTable::new(&self.kept, padded);
            for &[step, state] in &self.changed[..self.num_changed] {
                let (step, state) = (step as usize, state as usize);
                copy_row(
                    &self.packed,
                    &mut self.chain,
                    step,
                    state,
                    actions.at(step, state),
                );
            }
        }
    }

    /// max(0, V(g_c)) of the policy kept.
    #[inline(always)]
    fn truncated_cost(&mut self, initial: &InitialDistribution) -> f64 {
        if !self.packed.some_cost_is_positive() {
            self.chain_is_current = false;
            return 0.0; // no policy has a positive cost
        }
        if !self.chain_is_current {
            self.rebuild_chain();
        }
        let [cost] = self.chain.evaluate(initial);
        cost.max(0.0)
    }

    #[cold]
    fn rebuild_chain(&mut self) {
        let (packed, chain) = (&self.packed, &mut self.chain);
        let actions = ActionTable::new(&self.kept, packed.padded_states());
        for step in 0..self.shape.horizon() {
            for state in 0..self.shape.num_states() {
                copy_row(packed, chain, step, state, actions.at(step, state));
            }
        }
        self.chain_is_current = true;
    }
}

impl SignalListener for LagrangianPlanner {
    #[inline(always)]
    fn changed(&mut self, row: &RowEstimate<'_>, reward: Option<f64>, cost: f64) {
        self.packed.changed(row, reward, cost);
        if self.chain_is_current && self.actions().at(row.step, row.state) == row.action {
            let successors = row.successors.iter();
            self.chain.set_row(row.step, row.state, successors, [cost]);
        }
    }
}

#[inline(always)]
fn copy_row(
    packed: &PackedProblem,
    chain: &mut PolicyChain<1>,
    step: usize,
    state: usize,
    action: usize,
) {
    let cost = packed.cost(step, state, action);
    if step + 1 < packed.shape().horizon() {
        chain.set_row(step, state, packed.row(step, state, action), [cost]);
    } else {
        chain.set_row(step, state, std::iter::empty(), [cost]);
    }
}

/// Writes each (step, state) at which two policies `[H, padded]` differ into `places`, and returns their number.
/// Branches on single comparisons would be mispredicted, so a bit mask is computed first, without branches.
#[inline(always)]
fn changed_actions(
    (first, second): (&[u32], &[u32]),
    padded: usize,
    places: &mut [[u32; 2]],
) -> usize {
    const MARKS: usize = u64::BITS as usize;
    let (mut count, groups_a_step) = (0, (padded / STATES_PER_GROUP) as u32);
    let (first, second) = (
        first.as_chunks::<STATES_PER_GROUP>().0,
        second.as_chunks::<STATES_PER_GROUP>().0,
    );
    let parts = first.chunks(MARKS).zip(second.chunks(MARKS));
    for (part, (first, second)) in parts.enumerate() {
        let mut marks = 0_u64;
        for (place, (a, b)) in first.iter().zip(second).enumerate() {
            marks |= u64::from(a != b) << place;
        }
        while marks != 0 {
            let place = marks.trailing_zeros();
            marks &= marks - 1;
            let (a, b) = (&first[place as usize], &second[place as usize]);
            let group = (part * MARKS) as u32 + place;
            let (step, group) = (group / groups_a_step, group % groups_a_step);
            for lane in 0..STATES_PER_GROUP {
                places[count] = [step, group * STATES_PER_GROUP as u32 + lane as u32];
                count += usize::from(a[lane] != b[lane]);
            }
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_that_differs_is_found_in_order() {
        let (steps, padded) = (30, 12);
        let first: Vec<u32> = (0..steps * padded).map(|place| place % 3).collect();
        for stride in [1, 2, 7, 45, 359] {
            let mut second = first.clone();
            let mut expected = Vec::new();
            for place in (stride - 1..steps * padded).step_by(stride as usize) {
                second[place as usize] += 1;
                expected.push([place / padded, place % padded]);
            }
            let mut places = vec![[0; 2]; (steps * padded) as usize + 1];
            let policies = (&first[..], &second[..]);
            let count = changed_actions(policies, padded as usize, &mut places);
            assert_eq!(&places[..count], &expected[..]);
        }
    }
}
