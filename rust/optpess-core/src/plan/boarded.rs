//! A trade-off whose data also stand on a board, where the questions of the chord method are answered faster.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::estimate::EmpiricalKernel;
use crate::evaluate::{Board, BoardWork, GROUP, Of};
use crate::lanes::flat;
use crate::model::StepKernel;
use crate::plan::lexicographic::extreme_on;
use crate::plan::mixing::Mixer;
use crate::plan::oracle::{Objective, Oracle, Storage};
use crate::plan::priced_induction::{best_for, set_rows};
use crate::plan::tradeoff::{StepValues, TIE_WIDTH, Tradeoff, Vertex};
use crate::policy::MarkovPolicy;
use crate::shape::Shape;
use crate::table::{StepSignal, zeros};

/// The same data twice. Best policies, and where policies lie, are found on the board; the rest is left to the
/// parts. Both give the same bits.
#[derive(Debug)]
pub(crate) struct Boarded<'a, R, C, K> {
    pub(crate) parts: Tradeoff<'a, R, C, K>,
    pub(crate) board: &'a Board,
}

/// A board for the data as they are.
#[cold]
pub(crate) fn board_of<R: StepSignal, C: StepSignal>(
    parts: &Tradeoff<'_, R, C, EmpiricalKernel>,
) -> Result<Board> {
    let (shape, kernel) = (parts.shape, parts.kernel);
    let mut board = Board::new(shape, kernel.list_width())?;
    for row in 0..shape.triples() {
        let (step, pair) = (row / shape.pairs(), row % shape.pairs());
        let (state, action) = (pair / shape.num_actions(), pair % shape.num_actions());
        let (reward, cost) = (parts.reward.at(step, pair), parts.cost.at(step, pair));
        board.set_signals(step, state, action, reward, cost);
    }
    set_rows(&mut board, kernel)?;
    Ok(board)
}

/// What its inductions write on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct BoardedWork {
    parts: StepValues,
    wide: BoardWork,
    actions: Vec<u32>, // [H, padded]
}

impl Storage for BoardedWork {
    fn for_shape(shape: Shape) -> Result<Self> {
        let padded = shape.num_states().next_multiple_of(GROUP);
        Ok(Self {
            parts: StepValues::new(shape)?,
            wide: BoardWork::new(shape, 4)?, // reward and cost of two policies
            actions: zeros("actions [H, S]", shape.horizon() * padded)?,
        })
    }
}

impl<R, C, K> Boarded<'_, R, C, K> {
    fn extreme<const COST_FIRST: bool>(
        &self,
        tie_width: f64,
        work: &mut BoardedWork,
        found: &mut Vertex,
    ) {
        let (board, initial) = (self.board, self.parts.initial);
        let (wide, actions) = (&mut work.wide, &mut work.actions);
        [found.reward, found.cost] =
            extreme_on::<COST_FIRST>(board, tie_width, initial, wide, actions);
        self.keep(&work.actions, found);
    }

    /// Copies actions `[H, padded]`.
    #[inline(always)]
    fn keep(&self, actions: &[u32], found: &mut Vertex) {
        let (states, padded) = (self.parts.shape.num_states(), self.board.padded_states());
        let steps = found.actions.chunks_exact_mut(states);
        for (kept, chosen) in steps.zip(actions.chunks_exact(padded)) {
            for (kept, chosen) in kept.iter_mut().zip(chosen) {
                *kept = *chosen;
            }
        }
    }
}

impl<R: StepSignal, C: StepSignal, K: StepKernel> Oracle for Boarded<'_, R, C, K> {
    type Point = Vertex;
    type Work = BoardedWork;

    fn shape(&self) -> Shape {
        self.parts.shape
    }

    fn solve(&self, objective: Objective, work: &mut BoardedWork, found: &mut Vertex) {
        match objective {
            Objective::Lagrangian(multiplier) => {
                self.best_for(multiplier, work, found);
                self.locate(work, found);
            }
            Objective::LeastCost => self.extreme::<true>(TIE_WIDTH, work, found),
            Objective::LeastCostAlone => self.extreme::<true>(0.0, work, found),
            Objective::MostReward => self.extreme::<false>(TIE_WIDTH, work, found),
        }
    }

    fn best_for(&self, multiplier: f64, work: &mut BoardedWork, found: &mut Vertex) -> f64 {
        best_for(self.board, multiplier, &mut work.wide, &mut work.actions);
        self.keep(&work.actions, found);
        let states = self.parts.shape.num_states();
        let values = &flat(&work.wide.values)[..states];
        self.parts.initial.expect(values)
    }

    fn locate(&self, work: &mut BoardedWork, point: &mut Vertex) {
        let tracks = [Of::Reward, Of::Cost].map(|of| (of, &point.actions[..]));
        let (initial, wide) = (self.parts.initial, &mut work.wide);
        [point.reward, point.cost] = self.board.evaluate_actions(tracks, initial, wide);
    }

    fn revive(&self, _: f64, work: &mut BoardedWork, ends: [&mut Vertex; 2]) {
        let [below, above] = ends;
        let tracks = [
            (Of::Reward, &below.actions[..]),
            (Of::Cost, &below.actions[..]),
            (Of::Reward, &above.actions[..]),
            (Of::Cost, &above.actions[..]),
        ];
        let (initial, wide) = (self.parts.initial, &mut work.wide);
        [below.reward, below.cost, above.reward, above.cost] =
            self.board.evaluate_actions(tracks, initial, wide);
    }

    fn cost_size(&self, work: &mut BoardedWork, point: &mut Vertex) -> f64 {
        self.parts.cost_size(&mut work.parts, point)
    }

    fn mix(
        &self,
        ends: [&Vertex; 2],
        weight: f64,
        completion: &MarkovPolicy,
        mixer: &mut Mixer,
        mixed: &mut MarkovPolicy,
    ) {
        self.parts.mix(ends, weight, completion, mixer, mixed);
    }
}
