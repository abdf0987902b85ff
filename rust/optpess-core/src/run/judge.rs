//! True values of deployed policies: with the simulator, the only user of the truth.

use crate::error::Result;
use crate::estimate::MOST_STATES_IN_FULL;
use crate::evaluate::{Followed, PairEvaluator};
use crate::model::{ConstrainedMdp, Slices};
use crate::policy::{Actions, MarkovPolicy};
use crate::record::TrueValues;
use crate::table::StepSignal;

/// Evaluates each deployed policy exactly, once for as long as it stays the same.
#[derive(Debug)]
pub struct Judge<'m> {
    model: &'m ConstrainedMdp,
    evaluator: PairEvaluator,
    last_actions: LastActions<'m>,
    last: Option<(u64, TrueValues)>,
}

impl<'m> Judge<'m> {
    /// A judge who knows this model.
    pub fn new(model: &'m ConstrainedMdp) -> Result<Self> {
        Ok(Self {
            model,
            evaluator: PairEvaluator::new(model.shape())?,
            last_actions: LastActions::new(model)?,
            last: None,
        })
    }

    /// The true values of a policy whose version says whether it is the last one again.
    #[inline]
    pub fn assess(&mut self, policy: &MarkovPolicy, version: u64) -> TrueValues {
        match self.last {
            Some((seen, values)) if seen == version => values,
            _ => {
                let (kernel, initial) = (self.model.kernel(), self.model.initial());
                let signals = (self.model.reward(), &self.model.costs()[0]);
                let (reward, cost) = self.evaluator.evaluate(policy, signals, kernel, initial);
                self.keep(version, TrueValues { reward, cost })
            }
        }
    }

    /// [`Judge::assess`] for a policy that takes one action at each (step, state): of the next
    /// version, only what changed is looked up.
    #[inline]
    pub fn assess_actions(&mut self, actions: Actions<'_>, version: u64) -> TrueValues {
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
    followed: Followed<2>,
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
        let few = shape.num_states() <= MOST_STATES_IN_FULL;
        let rows = (0..slices).flat_map(|step| (0..shape.pairs()).map(move |pair| (step, pair)));
        let lengths = rows.map(|(step, pair)| possible(model, step, pair).count());
        let longest = if few { None } else { lengths.max() };
        Ok(Self {
            model,
            followed: Followed::new(shape, longest)?,
            rows: few.then(|| kernel.to_dense()).transpose()?,
            stride,
            version: None,
        })
    }

    /// The values of a policy; of the version after the last one, only what changed is looked up.
    #[inline(always)]
    fn values(&mut self, actions: Actions<'_>, version: u64) -> TrueValues {
        let last = self.version.replace(version);
        if last.is_some_and(|last| last + 1 == version) {
            for (step, state) in actions.changed() {
                self.follow(step, state, actions.at(step, state));
            }
        } else {
            let shape = self.model.shape();
            for step in 0..shape.horizon() {
                for state in 0..shape.num_states() {
                    self.follow(step, state, actions.at(step, state));
                }
            }
        }
        let [reward, cost] = self.followed.evaluate(self.model.initial());
        TrueValues { reward, cost }
    }

    #[inline(always)]
    fn follow(&mut self, step: usize, state: usize, action: usize) {
        let (model, shape) = (self.model, self.model.shape());
        let pair = shape.pair(state, action);
        let signals = [
            model.reward().at(step, pair),
            model.costs()[0].at(step, pair),
        ];
        if let Some(rows) = &self.rows {
            let states = shape.num_states();
            let row = &rows[(step * self.stride + pair) * states..][..states];
            let row = row.iter().copied().enumerate();
            self.followed.follow(step, state, row, signals);
        } else {
            let row = possible(model, step, pair);
            self.followed.follow(step, state, row, signals);
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
