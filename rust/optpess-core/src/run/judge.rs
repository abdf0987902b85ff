//! True values of deployed policies: with the simulator, the only user of the truth.

use crate::error::Result;
use crate::estimate::MAX_DENSE_STATES;
use crate::evaluate::{PackedProblem, PackedWork, PairEvaluator, PolicyChain, SignalKind};
use crate::model::{ConstrainedMdp, Slices};
use crate::policy::{ActionTable, MarkovPolicy};
use crate::record::TrueValues;
use crate::table::StepSignal;

/// What policies that draw actions are evaluated with.
#[derive(Debug)]
enum Evaluator {
    /// Few states: the model laid out for vectors.
    OnBoard(PackedProblem, PackedWork),
    /// Many states: the model as it is.
    OnModel(PairEvaluator),
}

impl Evaluator {
    fn new(model: &ConstrainedMdp) -> Result<Self> {
        let (shape, kernel) = (model.shape(), model.kernel().kernel());
        if shape.num_states() > MAX_DENSE_STATES {
            return Ok(Self::OnModel(PairEvaluator::new(shape)?));
        }
        let (reward, cost) = (model.reward(), &model.costs()[0]);
        let mut board = PackedProblem::new(shape, None, |step, pair| {
            [reward.at(step, pair), cost.at(step, pair)]
        })?;
        for step in 0..shape.horizon() - 1 {
            for pair in 0..shape.pairs() {
                let (state, action) = (pair / shape.num_actions(), pair % shape.num_actions());
                board.set_row(step, state, action, kernel.successors(step, pair));
            }
        }
        Ok(Self::OnBoard(board, PackedWork::new(shape, 2)?))
    }

    fn evaluate(&mut self, model: &ConstrainedMdp, policy: &MarkovPolicy) -> TrueValues {
        let initial = model.initial();
        let (reward, cost) = match self {
            Self::OnBoard(board, work) => {
                let signals = [SignalKind::Reward, SignalKind::Cost];
                board.evaluate(policy, signals, initial, work).into()
            }
            Self::OnModel(evaluator) => {
                let signals = (model.reward(), &model.costs()[0]);
                evaluator.evaluate(policy, signals, model.kernel(), initial)
            }
        };
        TrueValues { reward, cost }
    }
}

/// Evaluates each deployed policy exactly, once for as long as it stays the same.
#[derive(Debug)]
pub struct Judge<'m> {
    model: &'m ConstrainedMdp,
    evaluator: Option<Evaluator>, // from the first of them on
    last_actions: LastActions<'m>,
    last: Option<(u64, TrueValues)>,
}

impl<'m> Judge<'m> {
    /// A judge who knows this model.
    pub fn new(model: &'m ConstrainedMdp) -> Result<Self> {
        Ok(Self {
            model,
            evaluator: None,
            last_actions: LastActions::new(model)?,
            last: None,
        })
    }

    /// The true values of a policy whose version says whether it is the last one again.
    #[inline]
    pub fn assess(&mut self, policy: &MarkovPolicy, version: u64) -> Result<TrueValues> {
        match self.last {
            Some((seen, values)) if seen == version => Ok(values),
            _ => {
                let evaluator = match &mut self.evaluator {
                    Some(evaluator) => evaluator,
                    none_yet => none_yet.insert(Evaluator::new(self.model)?),
                };
                let values = evaluator.evaluate(self.model, policy);
                Ok(self.keep(version, values))
            }
        }
    }

    /// [`Judge::assess`] for a policy that takes one action at each (step, state): of the next
    /// version, only what changed is looked up.
    #[inline]
    pub fn assess_actions(&mut self, actions: ActionTable<'_>, version: u64) -> TrueValues {
        if let Some((seen, values)) = self.last
            && seen == version
        {
            return values;
        }
        let values = self.last_actions.values(actions, version);
        self.keep(version, values)
    }

    #[inline(always)]
    fn keep(&mut self, version: u64, values: TrueValues) -> TrueValues {
        self.last = Some((version, values));
        values
    }
}

/// Deterministic policies of a known model: the rows of the last one, and where to look up others.
#[derive(Debug)]
struct LastActions<'m> {
    model: &'m ConstrainedMdp,
    chain: PolicyChain<2>,
    /// The true kernel in full, for few states; many are looked up in the model.
    rows: Option<Vec<f64>>, // [H, S, A, S] or [S, A, S]
    stride: usize, // between the rows of two steps; 0 for a stationary kernel
    version: Option<u64>,
}

impl<'m> LastActions<'m> {
    fn new(model: &'m ConstrainedMdp) -> Result<Self> {
        let (shape, kernel) = (model.shape(), model.kernel().kernel());
        let (stride, slices) = match kernel.slices() {
            Slices::Stationary => (0, 1),
            Slices::PerStep(horizon) => (shape.pairs(), horizon - 1),
        };
        let few = shape.num_states() <= MAX_DENSE_STATES;
        let rows = (0..slices).flat_map(|step| (0..shape.pairs()).map(move |pair| (step, pair)));
        let lengths = rows.map(|(step, pair)| possible(model, step, pair).count());
        let longest = if few { None } else { lengths.max() };
        Ok(Self {
            model,
            chain: PolicyChain::new(shape, longest)?,
            rows: few.then(|| kernel.to_dense()).transpose()?,
            stride,
            version: None,
        })
    }

    /// The values of a policy; of the version after the last one, only what changed is looked up.
    #[inline(always)]
    fn values(&mut self, actions: ActionTable<'_>, version: u64) -> TrueValues {
        let last = self.version.replace(version);
        if last.is_some_and(|last| last + 1 == version) {
            for (step, state) in actions.changed() {
                self.set_row(step, state, actions.at(step, state));
            }
        } else {
            let shape = self.model.shape();
            for step in 0..shape.horizon() {
                for state in 0..shape.num_states() {
                    self.set_row(step, state, actions.at(step, state));
                }
            }
        }
        let [reward, cost] = self.chain.evaluate(self.model.initial());
        TrueValues { reward, cost }
    }

    #[inline(always)]
    fn set_row(&mut self, step: usize, state: usize, action: usize) {
        let (model, shape) = (self.model, self.model.shape());
        let pair = shape.pair(state, action);
        let signals = [
            model.reward().at(step, pair),
            model.costs()[0].at(step, pair),
        ];
        if let Some(rows) = &self.rows {
            let states = shape.num_states();
            let row = &rows[(step * self.stride + pair) * states..][..states];
            self.chain.set_full_row(step, state, row, signals);
        } else {
            let row = possible(model, step, pair);
            self.chain.set_row(step, state, row, signals);
        }
    }
}

/// The successors that a pair can have.
fn possible(
    model: &ConstrainedMdp,
    step: usize,
    pair: usize,
) -> impl Iterator<Item = (usize, f64)> + '_ {
    let successors = model.kernel().kernel().successors(step, pair);
    successors.filter(|&(_, probability)| probability > 0.0)
}
