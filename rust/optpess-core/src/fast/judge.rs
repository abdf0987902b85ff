//! True values of deployed policies, on packed tables. A policy that did not change is not evaluated again, and of an
//! action table only the rows that changed are copied. The bits are those of [`crate::run::PlainJudge`].

use crate::error::Result;
use crate::estimate::is_dense;
use crate::evaluate::PairEvaluator;
use crate::fast::chain::PolicyChain;
use crate::fast::packed::{PackedProblem, PackedWork, SignalKind};
use crate::model::{ConstrainedMdp, Slices};
use crate::policy::{ActionTable, Changes, MarkovPolicy, Played};
use crate::record::TrueValues;
use crate::table::StepSignal;

/// Evaluates each deployed policy of a problem with one constraint, and again only when it changes.
#[derive(Debug)]
pub(crate) struct FastJudge<'m> {
    model: &'m ConstrainedMdp,
    policies: Option<PolicyJudge>, // None before the first policy that draws actions
    actions: ActionJudge<'m>,
    last: Option<TrueValues>,
}

impl<'m> FastJudge<'m> {
    pub(crate) fn new(model: &'m ConstrainedMdp) -> Result<Self> {
        Ok(Self {
            model,
            policies: None,
            actions: ActionJudge::new(model)?,
            last: None,
        })
    }

    /// V(c) of the policy played last, one number; nothing before the first.
    pub(crate) fn costs(&self) -> &[f64] {
        self.last
            .as_ref()
            .map_or(&[], |values| std::slice::from_ref(&values.cost))
    }

    pub(crate) fn model(&self) -> &'m ConstrainedMdp {
        self.model
    }

    /// The true values of the policy that is played; relies on `changes`.
    #[inline]
    pub(crate) fn assess(
        &mut self,
        played: Played<'_>,
        changes: Changes<'_>,
    ) -> Result<TrueValues> {
        if let (Some(values), Changes::Nothing) = (self.last, changes) {
            return Ok(values);
        }
        let values = match played {
            Played::Actions(actions) => self.actions.values(actions, changes),
            Played::Policy(policy) => {
                self.actions.is_current = false;
                let judge = match &mut self.policies {
                    Some(judge) => judge,
                    none => none.insert(PolicyJudge::new(self.model)?),
                };
                judge.evaluate(self.model, policy)
            }
        };
        self.last = Some(values);
        Ok(values)
    }
}

/// Evaluates policies that draw actions.
#[derive(Debug)]
enum PolicyJudge {
    /// Few states: the model in packed form.
    Packed(PackedProblem, PackedWork),
    /// Many states: the model's own tables.
    Plain(PairEvaluator),
}

impl PolicyJudge {
    fn new(model: &ConstrainedMdp) -> Result<Self> {
        let (shape, kernel) = (model.shape(), model.kernel().kernel());
        if !is_dense(shape.num_states()) {
            return Ok(Self::Plain(PairEvaluator::new(shape)?));
        }
        let (reward, cost) = (model.reward(), &model.costs()[0]);
        let mut packed = PackedProblem::new(shape, None, |step, pair| {
            [reward.at(step, pair), cost.at(step, pair)]
        })?;
        for step in 0..shape.horizon() - 1 {
            for pair in 0..shape.pairs() {
                let (state, action) = (pair / shape.num_actions(), pair % shape.num_actions());
                packed.set_row(step, state, action, kernel.successors(step, pair));
            }
        }
        Ok(Self::Packed(packed, PackedWork::new(shape, 2)?))
    }

    fn evaluate(&mut self, model: &ConstrainedMdp, policy: &MarkovPolicy) -> TrueValues {
        let initial = model.initial();
        let (reward, cost): (f64, f64) = match self {
            Self::Packed(packed, work) => {
                let signals = [SignalKind::Reward, SignalKind::Cost];
                packed.evaluate(policy, signals, initial, work).into()
            }
            Self::Plain(evaluator) => {
                let signals = (model.reward(), &model.costs()[0]);
                evaluator.evaluate(policy, signals, model.kernel(), initial)
            }
        };
        TrueValues::new(reward, &[cost], model.limits())
    }
}

/// Evaluates action tables: the chain of the last one, and the rows for others.
#[derive(Debug)]
struct ActionJudge<'m> {
    model: &'m ConstrainedMdp,
    chain: PolicyChain<2>,
    /// Whether the chain is the one of the episode before.
    is_current: bool,
    /// The true kernel in full, for few states; None for many, whose rows are read from the model.
    rows: Option<Vec<f64>>, // [H, S, A, S] or [S, A, S]
    stride: usize, // between the rows of two steps; 0 for a stationary kernel
}

impl<'m> ActionJudge<'m> {
    fn new(model: &'m ConstrainedMdp) -> Result<Self> {
        let (shape, kernel) = (model.shape(), model.kernel().kernel());
        let (stride, slices) = match kernel.slices() {
            Slices::Stationary => (0, 1),
            Slices::PerStep(horizon) => (shape.pairs(), horizon - 1),
        };
        let few = is_dense(shape.num_states());
        let rows = (0..slices).flat_map(|step| (0..shape.pairs()).map(move |pair| (step, pair)));
        let lengths = rows.map(|(step, pair)| kernel.possible_successors(step, pair).count());
        let longest = if few { None } else { lengths.max() };
        Ok(Self {
            model,
            chain: PolicyChain::new(shape, longest)?,
            is_current: false,
            rows: few.then(|| kernel.to_dense()).transpose()?,
            stride,
        })
    }

    #[inline(always)]
    fn values(&mut self, actions: ActionTable<'_>, changes: Changes<'_>) -> TrueValues {
        match changes {
            Changes::These(places) if self.is_current => {
                for &[step, state] in places {
                    let (step, state) = (step as usize, state as usize);
                    self.set_row(step, state, actions.at(step, state));
                }
            }
            Changes::Nothing | Changes::Everything | Changes::These(_) => {
                let shape = self.model.shape();
                for step in 0..shape.horizon() {
                    for state in 0..shape.num_states() {
                        self.set_row(step, state, actions.at(step, state));
                    }
                }
            }
        }
        self.is_current = true;
        let [reward, cost] = self.chain.evaluate(self.model.initial());
        TrueValues::new(reward, &[cost], self.model.limits())
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
            let row = model.kernel().kernel().possible_successors(step, pair);
            self.chain.set_row(step, state, row, signals);
        }
    }
}
