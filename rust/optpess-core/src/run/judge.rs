//! The judge: true values of the policies that are played. The judge, the simulator and the audit use the true model.

use crate::error::Result;
use crate::estimate::is_dense;
use crate::evaluate::Evaluator;
use crate::fast::FastJudge;
use crate::model::{ConstrainedMdp, Kernel, Slices};
use crate::policy::{Changes, MarkovPolicy, Played};
use crate::record::TrueValues;
use crate::shape::Shape;
use crate::table::Signal;

/// Evaluates policies exactly in the true model.
#[derive(Debug)]
pub(crate) enum Judge<'m> {
    /// Compares with the policy of the episode before, and evaluates on plain tables.
    Plain(Box<PlainJudge<'m>>),
    /// Relies on the engine for what changed, and evaluates on packed tables.
    Fast(Box<FastJudge<'m>>),
}

impl Judge<'_> {
    /// V(r) and V(c) of the policy that is played.
    #[inline]
    pub(crate) fn assess(
        &mut self,
        played: Played<'_>,
        changes: Changes<'_>,
    ) -> Result<TrueValues> {
        match self {
            Self::Plain(judge) => judge.assess(played),
            Self::Fast(judge) => judge.assess(played, changes),
        }
    }
}

/// Evaluates each deployed policy on plain tables, and again only when it changes.
///
/// The order of sums is fixed by the number of states ([`is_dense`]). Few states: every row in full. Many states:
/// policies that draw actions on the rows as the model stores them, action tables on lists of the possible successors.
#[derive(Debug)]
pub struct PlainJudge<'m> {
    model: &'m ConstrainedMdp,
    /// The rows for policies that draw actions, and those for action tables.
    kernels: [Option<Kernel>; 2],
    evaluator: Evaluator,
    last: Option<(MarkovPolicy, bool, TrueValues)>,
}

impl<'m> PlainJudge<'m> {
    /// A judge for this model.
    pub fn new(model: &'m ConstrainedMdp) -> Result<Self> {
        let (shape, kernel) = (model.shape(), model.kernel().kernel());
        let kernels = if is_dense(shape.num_states()) {
            let [_, states, actions] = shape.sizes();
            let dense = Kernel::dense(states, actions, kernel.slices(), kernel.to_dense()?)?;
            [Some(dense.clone()), Some(dense)]
        } else {
            [None, Some(possible_rows(shape, kernel)?)]
        };
        Ok(Self {
            model,
            kernels,
            evaluator: Evaluator::new(shape)?,
            last: None,
        })
    }

    /// V(r) and V(c) of the policy that is played.
    pub fn assess(&mut self, played: Played<'_>) -> Result<TrueValues> {
        let (policy, draws) = match played {
            Played::Policy(policy) => (policy.clone(), true),
            Played::Actions(actions) => {
                let shape = self.model.shape();
                let actions = actions.to_vec(shape);
                (MarkovPolicy::deterministic(shape, &actions)?, false)
            }
        };
        if let Some((last, drew, values)) = &self.last
            && *drew == draws
            && last.has_entries_of(&policy)
        {
            return Ok(*values);
        }
        let (model, [drawing, acting]) = (self.model, &self.kernels);
        let kernel = if draws { drawing } else { acting };
        let kernel = kernel.as_ref().unwrap_or(model.kernel().kernel());
        let mut value = |signal: &Signal| {
            let evaluator = &mut self.evaluator;
            evaluator.evaluate(&policy, signal, kernel, model.initial())
        };
        let values = TrueValues {
            reward: value(model.reward()),
            cost: value(&model.costs()[0]),
        };
        self.last = Some((policy, draws, values));
        Ok(values)
    }
}

/// The possible successors of every pair, as lists.
fn possible_rows(shape: Shape, kernel: &Kernel) -> Result<Kernel> {
    let slices = match kernel.slices() {
        Slices::Stationary => 1,
        Slices::PerStep(horizon) => horizon,
    };
    let (mut offsets, mut states, mut probabilities) = (vec![0], Vec::new(), Vec::new());
    for step in 0..slices {
        for pair in 0..shape.pairs() {
            for (state, probability) in kernel.possible_successors(step, pair) {
                states.push(state as i64);
                probabilities.push(probability);
            }
            offsets.push(states.len() as i64);
        }
    }
    let [_, num_states, num_actions] = shape.sizes();
    let slices = kernel.slices();
    Kernel::sparse(
        num_states,
        num_actions,
        slices,
        &offsets,
        &states,
        probabilities,
    )
}
