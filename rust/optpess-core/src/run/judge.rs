//! True values of deployed policies: with the simulator, the only user of the truth.

use crate::error::Result;
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
        let values = match self.last {
            Some((seen, values)) if seen == version => return values,
            Some((seen, _)) if seen + 1 == version => {
                self.last_actions.change(actions.changed(), actions);
                self.last_actions.values()
            }
            _ => {
                let shape = self.model.shape();
                let steps = 0..shape.horizon();
                let all = steps.flat_map(|step| (0..shape.num_states()).map(move |s| (step, s)));
                self.last_actions.change(all, actions);
                self.last_actions.values()
            }
        };
        self.keep(version, values)
    }

    #[inline(always)]
    fn keep(&mut self, version: u64, values: TrueValues) -> TrueValues {
        self.last = Some((version, values));
        values
    }
}

/// The deterministic policy judged last.
#[derive(Debug)]
struct LastActions<'m> {
    model: &'m ConstrainedMdp,
    followed: Followed<2>,
    rows: Vec<f64>, // the true kernel, dense
    stride: usize,  // between the rows of two steps; 0 for a stationary kernel
}

impl<'m> LastActions<'m> {
    fn new(model: &'m ConstrainedMdp) -> Result<Self> {
        let (shape, kernel) = (model.shape(), model.kernel().kernel());
        Ok(Self {
            model,
            followed: Followed::new(shape)?,
            rows: kernel.to_dense()?,
            stride: match kernel.slices() {
                Slices::Stationary => 0,
                Slices::PerStep(_) => shape.pairs(),
            },
        })
    }

    #[inline(always)]
    fn change(&mut self, places: impl Iterator<Item = (usize, usize)>, actions: Actions<'_>) {
        let (model, shape) = (self.model, self.model.shape());
        let states = shape.num_states();
        for (step, state) in places {
            let pair = shape.pair(state, actions.at(step, state));
            let row = &self.rows[(step * self.stride + pair) * states..][..states];
            let signals = [
                model.reward().at(step, pair),
                model.costs()[0].at(step, pair),
            ];
            let row = row.iter().copied().enumerate();
            self.followed.follow(step, state, row, signals);
        }
    }

    #[inline(always)]
    fn values(&mut self) -> TrueValues {
        let [reward, cost] = self.followed.evaluate(self.model.initial());
        TrueValues { reward, cost }
    }
}
