//! A trade-off whose data also stand on a board, where the questions of the chord method are answered faster.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::estimate::EmpiricalKernel;
use crate::evaluate::{PackedProblem, PackedWork, STATES_PER_GROUP, SignalKind};
use crate::lanes::flat;
use crate::model::StepKernel;
use crate::plan::lexicographic::extreme_on;
use crate::plan::mixing::PolicyMixer;
use crate::plan::oracle::{Objective, Oracle, Storage};
use crate::plan::priced_induction::{best_for, set_rows};
use crate::plan::tradeoff::{PlanningProblem, StepValues, TIE_WIDTH, Vertex};
use crate::policy::MarkovPolicy;
use crate::shape::Shape;
use crate::table::{StepSignal, zeros};

/// The same data twice. Best policies, and where policies lie, are found on the board; the rest is left to the
/// parts. Both give the same bits.
#[derive(Debug)]
pub(crate) struct PackedOracle<'a, R, C, K> {
    pub(crate) parts: PlanningProblem<'a, R, C, K>,
    pub(crate) board: &'a PackedProblem,
}

/// A board for the data as they are.
#[cold]
pub(crate) fn pack<R: StepSignal, C: StepSignal>(
    parts: &PlanningProblem<'_, R, C, EmpiricalKernel>,
) -> Result<PackedProblem> {
    let (shape, kernel) = (parts.shape, parts.kernel);
    let mut board = PackedProblem::new(shape, kernel.list_width(), |step, pair| {
        [parts.reward.at(step, pair), parts.cost.at(step, pair)]
    })?;
    set_rows(&mut board, kernel)?;
    Ok(board)
}

/// What its inductions write on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PackedOracleWork {
    parts: StepValues,
    wide: PackedWork,
    actions: Vec<u32>, // [H, padded]
}

impl Storage for PackedOracleWork {
    fn for_shape(shape: Shape) -> Result<Self> {
        let padded = shape.num_states().next_multiple_of(STATES_PER_GROUP);
        Ok(Self {
            parts: StepValues::new(shape)?,
            wide: PackedWork::new(shape, 4)?, // reward and cost of two policies
            actions: zeros("actions [H, S]", shape.horizon() * padded)?,
        })
    }
}

impl<R, C, K> PackedOracle<'_, R, C, K> {
    fn extreme<const COST_FIRST: bool>(
        &self,
        tie_width: f64,
        work: &mut PackedOracleWork,
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

impl<R: StepSignal, C: StepSignal, K: StepKernel> Oracle for PackedOracle<'_, R, C, K> {
    type Point = Vertex;
    type Work = PackedOracleWork;

    fn shape(&self) -> Shape {
        self.parts.shape
    }

    fn solve(&self, objective: Objective, work: &mut PackedOracleWork, found: &mut Vertex) {
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

    fn best_for(&self, multiplier: f64, work: &mut PackedOracleWork, found: &mut Vertex) -> f64 {
        best_for(self.board, multiplier, &mut work.wide, &mut work.actions);
        self.keep(&work.actions, found);
        let states = self.parts.shape.num_states();
        let values = &flat(&work.wide.values)[..states];
        self.parts.initial.expectation(values)
    }

    fn locate(&self, work: &mut PackedOracleWork, point: &mut Vertex) {
        let (initial, wide) = (self.parts.initial, &mut work.wide);
        let both = [SignalKind::Reward, SignalKind::Cost];
        [[point.reward, point.cost]] =
            self.board
                .evaluate_actions([&point.actions], both, initial, wide);
    }

    fn relocate(&self, _: f64, work: &mut PackedOracleWork, ends: [&mut Vertex; 2]) {
        let [below, above] = ends;
        let (initial, wide) = (self.parts.initial, &mut work.wide);
        let (policies, both) = (
            [&below.actions, &above.actions],
            [SignalKind::Reward, SignalKind::Cost],
        );
        let policies = policies.map(Vec::as_slice);
        [[below.reward, below.cost], [above.reward, above.cost]] =
            self.board.evaluate_actions(policies, both, initial, wide);
    }

    fn cost_magnitude(&self, work: &mut PackedOracleWork, point: &mut Vertex) -> f64 {
        self.parts.cost_magnitude(&mut work.parts, point)
    }

    fn mix(
        &self,
        ends: [&Vertex; 2],
        weight: f64,
        completion: &MarkovPolicy,
        mixer: &mut PolicyMixer,
        mixed: &mut MarkovPolicy,
    ) {
        self.parts.mix(ends, weight, completion, mixer, mixed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::Estimates;
    use crate::model::InitialDistribution;
    use crate::table::Signal;
    use crate::trajectory::Trajectory;

    /// Numbers that look random, in [0, 1).
    fn scattered(place: usize) -> f64 {
        ((place as f64 * 12.9898).sin() * 43_758.545).rem_euclid(1.0)
    }

    fn observed(shape: Shape, episodes: usize) -> Estimates {
        let [horizon, states, actions] = shape.sizes();
        let mut estimates = Estimates::new(shape).unwrap();
        for episode in 0..episodes {
            let pick = |which: usize, step: usize, count: usize| {
                let place = (episode * horizon + step) * 2 + which;
                (scattered(place) * count as f64) as u32
            };
            let seen = Trajectory {
                states: (0..horizon).map(|step| pick(0, step, states)).collect(),
                actions: (0..horizon).map(|step| pick(1, step, actions)).collect(),
                rewards: vec![0.0; horizon],
                costs: vec![0.0; horizon],
            };
            estimates.update(&seen, |_| {}).unwrap();
        }
        estimates
    }

    /// Integers make ties, real numbers do not.
    fn signal(shape: Shape, start: usize, integers: bool) -> Signal {
        let numbers = (0..shape.triples()).map(|place| {
            let number = 4.0 * scattered(start + place) - 2.0;
            if integers { number.round() } else { number }
        });
        Signal::new("signal", shape, numbers.collect()).unwrap()
    }

    #[test]
    fn a_board_answers_as_its_parts_do_to_the_bit() {
        for (states, actions, horizon) in
            [(1, 1, 1), (3, 2, 3), (10, 2, 10), (13, 3, 4), (70, 2, 3)]
        {
            let shape = Shape::new(horizon, states, actions).unwrap();
            let estimates = observed(shape, 40 * states);
            let initial =
                InitialDistribution::new(states, vec![1.0 / states as f64; states]).unwrap();
            for integers in [false, true] {
                let (reward, cost) = (signal(shape, 7, integers), signal(shape, 9_999, integers));
                let parts = PlanningProblem {
                    shape,
                    reward: &reward,
                    cost: &cost,
                    kernel: estimates.kernel(),
                    initial: &initial,
                };
                let board = pack(&parts).unwrap();
                let boarded = PackedOracle {
                    parts,
                    board: &board,
                };
                let mut work = PackedOracleWork::for_shape(shape).unwrap();
                let mut values = StepValues::new(shape).unwrap();
                let mut ends = Vec::new();
                for objective in [
                    Objective::MostReward,
                    Objective::LeastCost,
                    Objective::LeastCostAlone,
                    Objective::Lagrangian(0.0),
                    Objective::Lagrangian(0.7),
                ] {
                    let [mut found, mut expected] = [0, 1].map(|_| Vertex::new(shape).unwrap());
                    boarded.solve(objective, &mut work, &mut found);
                    boarded.parts.solve(objective, &mut values, &mut expected);
                    assert_eq!(found, expected, "{objective:?}");
                    let mut again = Vertex {
                        cost: f64::NAN,
                        ..found.clone()
                    };
                    boarded.locate(&mut work, &mut again);
                    assert_eq!(again, found);
                    ends.push(found);
                }
                let [mut below, mut above] = [1, 0].map(|end: usize| Vertex {
                    reward: f64::NAN,
                    ..ends[end].clone()
                });
                boarded.relocate(0.3, &mut work, [&mut below, &mut above]);
                assert_eq!([below, above], [ends[1].clone(), ends[0].clone()]);
            }
        }
    }
}
