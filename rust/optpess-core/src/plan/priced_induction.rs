//! The priced induction of Algorithm 2, laid out for vectors.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::estimate::{EmpiricalKernel, Successors};
use crate::lanes::{LANES, Lanes, RowBlocks, flat, flat_mut, with_small_constant};
use crate::shape::Shape;
use crate::table::zeros;
use crate::vectorised::{Job, vectorised};

/// States are padded to a multiple of this, so that the best of several actions is found four states
/// at a time.
const GROUP: usize = 4;

/// The planner's own copy of two signals and a kernel. A slot is an (action, state); eight slots stand
/// side by side, so that the induction adds up eight rows at once and takes the maximum over actions
/// four states at once. An episode changes at most H of the slots.
///
/// Its answers are those of [`super::Tradeoff`] for [`super::Objective::Lagrangian`], bit for bit.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Board {
    shape: Shape,
    padded: usize,      // |S|, rounded up to a multiple of GROUP
    blocks: usize,      // of eight slots
    reward: Vec<Lanes>, // [H, blocks]
    cost: Vec<Lanes>,   // [H, blocks]
    kernel: RowBlocks,  // [H - 1, blocks]
    qualities: Vec<Lanes>,
    values: Vec<Lanes>,
    positive_costs: usize,
}

impl Board {
    /// A board on which every pair earns and costs the same and leads nowhere.
    pub(crate) fn new(
        shape: Shape,
        reward: f64,
        cost: f64,
        list_width: Option<usize>,
    ) -> Result<Self> {
        let [steps, states, actions] = shape.sizes();
        let padded = states.next_multiple_of(GROUP);
        let blocks = (actions * padded).div_ceil(LANES);
        let wide = |what, len| zeros::<Lanes>(what, len);
        let mut board = Self {
            shape,
            padded,
            blocks,
            reward: wide("rewards [H, A, S]", steps * blocks)?,
            cost: wide("costs [H, A, S]", steps * blocks)?,
            kernel: RowBlocks::new((steps - 1) * blocks, states, list_width)?,
            qualities: wide("qualities [A, S]", blocks)?,
            values: wide("values [S]", padded.div_ceil(LANES))?,
            positive_costs: 0,
        };
        for step in 0..steps {
            for state in 0..states {
                for action in 0..actions {
                    board.set_signals(step, state, action, reward, cost);
                }
            }
        }
        Ok(board)
    }

    /// |S| as the answers of [`Board::best_for`] are laid out.
    pub(crate) fn padded_states(&self) -> usize {
        self.padded
    }

    /// H.
    pub(crate) fn steps(&self) -> usize {
        self.shape.horizon()
    }

    #[inline(always)]
    fn slot(&self, state: usize, action: usize) -> (usize, usize) {
        let slot = action * self.padded + state;
        (slot / LANES, slot % LANES)
    }

    /// g_r and g_c of one pair.
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

    /// Makes room for the rows of `kernel`, which keeps longer lists than before, or none any more; true
    /// if there was anything to do.
    #[inline(always)]
    pub(crate) fn fit(&mut self, kernel: &EmpiricalKernel) -> Result<bool> {
        if kernel.list_width() == self.kernel.list_width() {
            return Ok(false);
        }
        self.lay_out_anew(kernel)?;
        Ok(true)
    }

    #[cold]
    fn lay_out_anew(&mut self, kernel: &EmpiricalKernel) -> Result<()> {
        let [steps, states, actions] = self.shape.sizes();
        let rows = (steps - 1) * self.blocks;
        self.kernel = RowBlocks::new(rows, states, kernel.list_width())?;
        for step in 0..steps - 1 {
            for pair in 0..self.shape.pairs() {
                let row = kernel.row(step, pair);
                self.set_row(step, pair / actions, pair % actions, row);
            }
        }
        Ok(())
    }

    /// P_h(.|s,a) of one pair; not for the last step, which has none.
    #[inline(always)]
    pub(crate) fn set_row(
        &mut self,
        step: usize,
        state: usize,
        action: usize,
        row: Successors<'_>,
    ) {
        let (block, lane) = self.slot(state, action);
        let block = step * self.blocks + block;
        match row {
            Successors::Full(row) => self.kernel.set_full(block, lane, row),
            listed @ Successors::Listed(..) => self.kernel.set(block, lane, listed.iter()),
        }
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

    /// Whether some pair has a cost above 0. If none has, no policy has: sums of products of
    /// probabilities and numbers at most 0 are at most 0, in floating point too.
    #[inline(always)]
    pub(crate) fn some_cost_is_positive(&self) -> bool {
        self.positive_costs > 0
    }

    /// Writes the best policy for g_r - price g_c into `actions`, `[H, padded]`; ties go to the lowest
    /// action.
    #[inline]
    pub(crate) fn best_for(&mut self, price: f64, actions: &mut [u32]) {
        with_small_constant!(self.shape.num_states(), S => vectorised(Induction::<S> {
            board: self,
            price,
            actions,
        }));
    }
}

/// `S` is the number of states, or 0 where it is not known beforehand.
struct Induction<'a, const S: usize> {
    board: &'a mut Board,
    price: f64,
    actions: &'a mut [u32],
}

impl<const S: usize> Job for Induction<'_, S> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (board, price) = (self.board, self.price);
        let [steps, states, num_actions] = board.shape.sizes();
        let (states, groups) = if S > 0 {
            (S, S.div_ceil(GROUP))
        } else {
            (states, board.padded / GROUP)
        };
        let blocks = board.blocks;
        let (chosen, _) = self.actions.as_chunks_mut::<GROUP>();
        for step in (0..steps).rev() {
            let gains = &board.reward[step * blocks..][..blocks];
            let losses = &board.cost[step * blocks..][..blocks];
            let qualities = &mut board.qualities[..blocks];
            let following = &flat(&board.values)[..states];
            for ((quality, gain), loss) in qualities.iter_mut().zip(gains).zip(losses) {
                let (mut own, loss) = (gain.0, loss.0);
                for lane in 0..LANES {
                    own[lane] -= price * loss[lane];
                }
                *quality = Lanes(own);
            }
            if step + 1 < steps {
                let (first, rows) = (step * blocks, &board.kernel);
                rows.add_expectations::<S>(first, following, qualities);
            }
            let (qualities, _) = flat(&board.qualities).as_chunks::<GROUP>();
            let (values, _) = flat_mut(&mut board.values).as_chunks_mut::<GROUP>();
            let chosen = &mut chosen[step * groups..][..groups];
            for group in 0..groups {
                let candidates = &qualities[group..][..(num_actions - 1) * groups + 1];
                (values[group], chosen[group]) = best_of(candidates, groups);
            }
        }
    }
}

/// For four states, the best quality and its action; the candidates of an action stand `groups` behind
/// those of the one before. Ties go to the lowest action.
#[inline(always)]
fn best_of(candidates: &[[f64; GROUP]], groups: usize) -> ([f64; GROUP], [u32; GROUP]) {
    let mut best = candidates[0];
    let mut best_action = [0_u64; GROUP]; // as wide as the qualities: one mask serves both
    let (mut place, mut action) = (groups, 1);
    while let Some(candidate) = candidates.get(place) {
        for lane in 0..GROUP {
            let better = candidate[lane] > best[lane];
            best[lane] = if better { candidate[lane] } else { best[lane] };
            best_action[lane] = if better { action } else { best_action[lane] };
        }
        place += groups;
        action += 1;
    }
    (best, best_action.map(|action| action as u32))
}
