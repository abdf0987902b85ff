//! The oracle over the policies of a known model: reward and costs of a policy come out of the sweep that finds it.

use crate::error::Result;
use crate::evaluate::{
    Heaviest, JointChoice, JointSweep, JointValues, MixedActions, Signals, TakeCompact,
};
use crate::model::Kernel;
use crate::parallel::Workers;
use crate::plan::action_gaps::ActionGaps;
use crate::plan::induction::{Magnitude, TIE_WIDTH, lexicographic_best};
use crate::plan::problem::{Objective, Oracle, PlanningProblem, Point};
use crate::shape::Shape;
use crate::table::{CompactActions, StepSignal};

/// A reward and a cost on a known kernel.
pub type KnownProblem<'a, R, C> = PlanningProblem<'a, R, C, Kernel>;

/// A deterministic policy of a known model and its (cost, reward).
#[derive(Debug, Clone)]
pub struct KnownVertex {
    cost: f64,
    reward: f64,
    actions: CompactActions,
}

impl KnownVertex {
    /// The action at each step and state, `[H, S]`.
    #[must_use]
    pub fn actions(&self) -> &CompactActions {
        &self.actions
    }

    /// The same, owned.
    #[must_use]
    pub fn into_actions(self) -> CompactActions {
        self.actions
    }
}

impl Point for KnownVertex {
    fn for_shape(shape: Shape) -> Result<Self> {
        Ok(Self {
            cost: f64::NAN,
            reward: f64::NAN,
            actions: CompactActions::zeros(shape)?,
        })
    }

    fn cost(&self) -> f64 {
        self.cost
    }

    fn reward(&self) -> f64 {
        self.reward
    }
}

/// Takes the action that is lexicographically best.
struct LexicographicBest<const COST_FIRST: bool> {
    tie_width: f64,
}

impl<const COST_FIRST: bool> JointChoice<2> for LexicographicBest<COST_FIRST> {
    #[inline(always)]
    fn choose(
        &self,
        _: usize,
        _: usize,
        q: &impl Fn(usize) -> [f64; 2],
        room: &mut [[f64; 2]],
    ) -> ([f64; 2], usize) {
        for (action, place) in room.iter_mut().enumerate() {
            *place = q(action);
        }
        let points = room.iter().map(|&[reward, cost]| (reward, cost));
        let best = lexicographic_best::<COST_FIRST>(self.tie_width, points);
        (room[best], best)
    }
}

/// The oracle over the policies of a known problem. A sweep that fails, because the call was stopped, is reported by
/// [`Oracle::check`].
#[derive(Debug)]
pub struct KnownOracle<'a, R, C> {
    problem: &'a KnownProblem<'a, R, C>,
    workers: Workers<'a>,
    values: JointValues<2>,
    /// Gaps of the last Lagrangian, if the search keeps them.
    gaps: Option<ActionGaps>,
    outcome: Result<()>,
}

impl<'a, R: StepSignal + Sync, C: StepSignal + Sync> KnownOracle<'a, R, C> {
    /// An oracle with its workspace.
    pub fn new(problem: &'a KnownProblem<'a, R, C>, workers: Workers<'a>) -> Result<Self> {
        Ok(Self {
            problem,
            workers,
            values: JointValues::rolling(problem.shape)?,
            gaps: None,
            outcome: Ok(()),
        })
    }

    /// The same oracle, faster for multipliers that come closer to each other, after the first `far` of them.
    #[must_use]
    pub(super) fn for_close_multipliers(mut self, far: usize) -> Self {
        let PlanningProblem {
            shape,
            reward,
            cost,
            kernel,
            ..
        } = *self.problem;
        let (horizon, pairs) = (shape.horizon(), shape.pairs());
        let ranges = vec![reward.range(horizon, pairs), cost.range(horizon, pairs)];
        self.gaps = ActionGaps::new(shape, ranges, kernel.leak(), far);
        self
    }

    /// (reward, cost) from the start of what a choice does; writes its actions.
    fn sweep(
        &mut self,
        choice: &impl JointChoice<2>,
        actions: Option<&mut CompactActions>,
    ) -> [f64; 2] {
        let signals = (self.problem.reward, self.problem.cost);
        self.sweep_signals(signals, choice, actions)
    }

    /// The same for any two signals.
    fn sweep_signals(
        &mut self,
        signals: impl Signals<2> + Sync,
        choice: &impl JointChoice<2>,
        actions: Option<&mut CompactActions>,
    ) -> [f64; 2] {
        let problem = self.problem;
        let sweep = JointSweep {
            shape: problem.shape,
            signals,
            kernel: problem.kernel,
            workers: self.workers,
        };
        let outcome = sweep.run(choice, &mut self.values, actions);
        self.outcome = std::mem::replace(&mut self.outcome, Ok(())).and(outcome);
        problem.initial.expectations(self.values.first_step())
    }

    /// (V(|g_r|), V(|g_c|)) of a policy, to which the rounding of its values is relative.
    pub(super) fn magnitudes(&mut self, point: &KnownVertex) -> [f64; 2] {
        let sizes = (Magnitude(self.problem.reward), Magnitude(self.problem.cost));
        let choice = TakeCompact {
            states: self.problem.shape.num_states(),
            actions: &point.actions,
        };
        self.sweep_signals((&sizes.0, &sizes.1), &choice, None)
    }

    /// (reward, cost) of a mixture.
    pub(super) fn evaluate(&mut self, mixed: &MixedActions) -> Result<[f64; 2]> {
        let found = self.sweep(mixed, None);
        self.check()?;
        Ok(found)
    }
}

impl<R: StepSignal + Sync, C: StepSignal + Sync> Oracle for KnownOracle<'_, R, C> {
    type Point = KnownVertex;

    fn shape(&self) -> Shape {
        self.problem.shape
    }

    fn check(&self) -> Result<()> {
        self.outcome.clone()
    }

    fn maximise(&mut self, multiplier: f64, found: &mut KnownVertex) -> f64 {
        let choice = Heaviest {
            weights: [1.0, -multiplier],
        };
        let actions = Some(&mut found.actions);
        let values = match self.gaps.take() {
            None => self.sweep(&choice, actions),
            Some(mut gaps) => {
                let problem = self.problem;
                let sweep = JointSweep {
                    shape: problem.shape,
                    signals: (problem.reward, problem.cost),
                    kernel: problem.kernel,
                    workers: self.workers,
                };
                let outcome = gaps.sweep(&sweep, choice.weights, &mut self.values, actions);
                self.gaps = Some(gaps);
                self.outcome = std::mem::replace(&mut self.outcome, Ok(())).and(outcome);
                problem.initial.expectations(self.values.first_step())
            }
        };
        [found.reward, found.cost] = values;
        choice.weigh(values)
    }

    fn extreme(&mut self, objective: Objective, found: &mut KnownVertex) {
        let cost_first = |tie_width| LexicographicBest::<true> { tie_width };
        let actions = Some(&mut found.actions);
        [found.reward, found.cost] = match objective {
            Objective::LeastCost => self.sweep(&cost_first(TIE_WIDTH), actions),
            Objective::LeastCostAlone => self.sweep(&cost_first(0.0), actions),
            Objective::MostReward => {
                let tie_width = TIE_WIDTH;
                self.sweep(&LexicographicBest::<false> { tie_width }, actions)
            }
        };
    }

    /// Every point that this oracle writes is located.
    fn locate(&mut self, _: &mut KnownVertex) {}

    fn relocate(&mut self, _: f64, ends: [&mut KnownVertex; 2]) {
        let states = self.problem.shape.num_states();
        for end in ends {
            let actions = &end.actions;
            [end.reward, end.cost] = self.sweep(&TakeCompact { states, actions }, None);
        }
    }

    fn cost_magnitude(&mut self, point: &mut KnownVertex) -> f64 {
        self.magnitudes(point)[1]
    }
}
