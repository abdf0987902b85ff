//! The oracle of the chord method on packed tables.

use crate::error::Result;
use crate::fast::lanes::flat;
use crate::fast::packed::lexicographic::extreme_on;
use crate::fast::packed::maximise::maximise;
use crate::fast::packed::problem::{PackedProblem, PackedWork, STATES_PER_GROUP, SignalKind};
use crate::model::StepKernel;
use crate::plan::{
    MixingOracle, Objective, Oracle, PlainOracle, PlanningProblem, PlanningWork, TIE_WIDTH, Vertex,
};
use crate::policy::MarkovPolicy;
use crate::shape::Shape;
use crate::table::{StepSignal, zeros};

/// An oracle that answers from the packed copy. Magnitudes and mixing use the plain tables. Both give the same bits.
#[derive(Debug)]
pub(crate) struct PackedOracle<'a, R, C, K> {
    pub(crate) problem: &'a PlanningProblem<'a, R, C, K>,
    pub(crate) packed: &'a PackedProblem,
    pub(crate) work: &'a mut PackedOracleWork,
}

/// The workspace of [`PackedOracle`].
#[derive(Debug, Clone)]
pub(crate) struct PackedOracleWork {
    plain: PlanningWork,
    wide: PackedWork,
    actions: Vec<u32>, // [H, padded]
}

impl PackedOracleWork {
    pub(crate) fn new(shape: Shape) -> Result<Self> {
        let padded = shape.num_states().next_multiple_of(STATES_PER_GROUP);
        Ok(Self {
            plain: PlanningWork::new(shape)?,
            wide: PackedWork::new(shape, 4)?, // reward and cost of two policies
            actions: zeros("actions [H, S]", shape.horizon() * padded)?,
        })
    }
}

impl<R, C, K> PackedOracle<'_, R, C, K> {
    fn lexicographic<const COST_FIRST: bool>(&mut self, tie_width: f64, found: &mut Vertex) {
        let (packed, initial) = (self.packed, self.problem.initial);
        let (wide, actions) = (&mut self.work.wide, &mut self.work.actions);
        [found.reward, found.cost] =
            extreme_on::<COST_FIRST>(packed, tie_width, initial, wide, actions);
        self.keep(found);
    }

    /// Copies the actions of the last induction, `[H, padded]`.
    #[inline(always)]
    fn keep(&self, found: &mut Vertex) {
        let (states, padded) = (self.problem.shape.num_states(), self.packed.padded_states());
        let steps = found.actions.chunks_exact_mut(states);
        for (kept, chosen) in steps.zip(self.work.actions.chunks_exact(padded)) {
            for (kept, chosen) in kept.iter_mut().zip(chosen) {
                *kept = *chosen;
            }
        }
    }
}

impl<R: StepSignal, C: StepSignal, K: StepKernel> Oracle for PackedOracle<'_, R, C, K> {
    type Point = Vertex;

    fn shape(&self) -> Shape {
        self.problem.shape
    }

    fn maximise(&mut self, multiplier: f64, found: &mut Vertex) -> f64 {
        let work = &mut *self.work;
        maximise(self.packed, multiplier, &mut work.wide, &mut work.actions);
        self.keep(found);
        let states = self.problem.shape.num_states();
        let values = &flat(&self.work.wide.values)[..states];
        self.problem.initial.expectation(values)
    }

    fn extreme(&mut self, objective: Objective, found: &mut Vertex) {
        match objective {
            Objective::LeastCost => self.lexicographic::<true>(TIE_WIDTH, found),
            Objective::LeastCostAlone => self.lexicographic::<true>(0.0, found),
            Objective::MostReward => self.lexicographic::<false>(TIE_WIDTH, found),
        }
    }

    fn locate(&mut self, point: &mut Vertex) {
        let (initial, wide) = (self.problem.initial, &mut self.work.wide);
        let both = [SignalKind::Reward, SignalKind::Cost];
        [[point.reward, point.cost]] =
            self.packed
                .evaluate_actions([&point.actions], both, initial, wide);
    }

    fn relocate(&mut self, _: f64, ends: [&mut Vertex; 2]) {
        let [below, above] = ends;
        let (initial, wide) = (self.problem.initial, &mut self.work.wide);
        let (policies, both) = (
            [&below.actions, &above.actions],
            [SignalKind::Reward, SignalKind::Cost],
        );
        let policies = policies.map(Vec::as_slice);
        [[below.reward, below.cost], [above.reward, above.cost]] =
            self.packed.evaluate_actions(policies, both, initial, wide);
    }

    fn cost_magnitude(&mut self, point: &mut Vertex) -> f64 {
        PlainOracle::on(self.problem, &mut self.work.plain).cost_magnitude(point)
    }
}

impl<R: StepSignal, C: StepSignal, K: StepKernel> MixingOracle for PackedOracle<'_, R, C, K> {
    fn mix(
        &mut self,
        ends: [&Vertex; 2],
        weight: f64,
        completion: &MarkovPolicy,
        mixed: &mut MarkovPolicy,
    ) {
        PlainOracle::on(self.problem, &mut self.work.plain).mix(ends, weight, completion, mixed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::Estimates;
    use crate::model::InitialDistribution;
    use crate::plan::ChordSearch;
    use crate::table::Signal;
    use crate::trajectory::Trajectory;

    /// Pseudo-random numbers in [0, 1).
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
            let states = (0..horizon).map(|step| pick(0, step, states)).collect();
            let actions = (0..horizon).map(|step| pick(1, step, actions)).collect();
            let zeros = vec![0.0; horizon];
            let seen = Trajectory::checked(shape, states, actions, zeros.clone(), zeros);
            estimates.count(&seen.unwrap()).unwrap();
        }
        estimates.refresh_with(|_| {});
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
    fn a_packed_oracle_answers_as_the_plain_one_to_the_bit() {
        for (states, actions, horizon) in
            [(1, 1, 1), (3, 2, 3), (10, 2, 10), (13, 3, 4), (70, 2, 3)]
        {
            let shape = Shape::new(horizon, states, actions).unwrap();
            let estimates = observed(shape, 40 * states);
            let initial =
                InitialDistribution::new(states, vec![1.0 / states as f64; states]).unwrap();
            for integers in [false, true] {
                let (reward, cost) = (signal(shape, 7, integers), signal(shape, 9_999, integers));
                let problem = PlanningProblem {
                    shape,
                    reward: &reward,
                    cost: &cost,
                    kernel: estimates.kernel(),
                    initial: &initial,
                };
                let packed = PackedProblem::of(&problem).unwrap();
                let mut plain = PlainOracle::new(&problem).unwrap();
                let mut work = PackedOracleWork::new(shape).unwrap();
                let mut packed = PackedOracle {
                    problem: &problem,
                    packed: &packed,
                    work: &mut work,
                };
                let mut ends = Vec::new();
                for objective in [
                    Objective::MostReward,
                    Objective::LeastCost,
                    Objective::LeastCostAlone,
                ] {
                    let [mut found, mut expected] = [0, 1].map(|_| Vertex::new(shape).unwrap());
                    packed.extreme(objective, &mut found);
                    plain.extreme(objective, &mut expected);
                    assert_eq!(found, expected, "{objective:?}");
                    let mut again = Vertex {
                        cost: f64::NAN,
                        ..found.clone()
                    };
                    packed.locate(&mut again);
                    assert_eq!(again, found);
                    ends.push(found);
                }
                for multiplier in [0.0, 0.7] {
                    let [mut found, mut expected] = [0, 1].map(|_| Vertex::new(shape).unwrap());
                    let most = packed.maximise(multiplier, &mut found);
                    let bits = plain.maximise(multiplier, &mut expected).to_bits();
                    assert_eq!(most.to_bits(), bits);
                    packed.locate(&mut found);
                    plain.locate(&mut expected);
                    assert_eq!(found, expected, "{multiplier}");
                }
                let [mut below, mut above] = [1, 0].map(|end: usize| Vertex {
                    reward: f64::NAN,
                    ..ends[end].clone()
                });
                packed.relocate(0.3, [&mut below, &mut above]);
                assert_eq!([below, above], [ends[1].clone(), ends[0].clone()]);
                // One warm chord is used with both oracles in turn.
                let limit = ends[1].cost.midpoint(ends[0].cost);
                let mut alone = ChordSearch::new(shape).unwrap();
                let mut shared = alone.clone();
                for round in 0..4 {
                    let limit = limit + 1e-3 * f64::from(round);
                    let expected = alone.solve(&mut plain, limit).unwrap();
                    let found = if round % 2 == 0 {
                        shared.solve(&mut plain, limit).unwrap()
                    } else {
                        shared.solve(&mut packed, limit).unwrap()
                    };
                    assert_eq!(found, expected);
                    assert_eq!(shared.chord().below(), alone.chord().below());
                    if found.weight_above > 0.0 {
                        assert_eq!(shared.chord().above(), alone.chord().above());
                    }
                }
                assert_eq!(shared.inductions(), alone.inductions());
            }
        }
    }
}
