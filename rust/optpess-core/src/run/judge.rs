//! The judge: true values of the policies that are played. The judge, the simulator and the audit use the true model.

use crate::error::Result;
use crate::estimate::is_dense;
use crate::evaluate::Evaluator;
use crate::fast::FastJudge;
use crate::learn::{AnyLearner, Mixture};
use crate::model::{ConstrainedMdp, Kernel, Slices};
use crate::policy::{Changes, MarkovPolicy, Played};
use crate::record::TrueValues;
use crate::run::replicate::check_model;
use crate::shape::Shape;
use crate::table::Signal;

/// Evaluates policies and mixtures exactly in the true model.
#[derive(Debug)]
pub(crate) enum Judge<'m> {
    /// Compares with the policy of the episode before, and evaluates on plain tables.
    Plain(Box<PlainJudge<'m>>),
    /// Relies on the engine for what changed, and evaluates on packed tables.
    Fast(Box<FastJudge<'m>>),
    /// Evaluates the members of mixtures; takes the place of the others when the first mixture is deployed.
    Mixtures(Box<MixtureJudge<'m>>),
}

impl Judge<'_> {
    /// V(r) and V(c) of the mixture that is deployed.
    #[inline]
    pub(crate) fn assess_mixture(&mut self, mixture: &Mixture) -> Result<TrueValues> {
        let model = match self {
            Self::Mixtures(judge) => return judge.assess(mixture),
            Self::Plain(judge) => judge.model,
            Self::Fast(judge) => judge.model(),
        };
        let mut judge = MixtureJudge::new(model)?;
        let values = judge.assess(mixture)?;
        *self = Self::Mixtures(Box::new(judge));
        Ok(values)
    }

    /// V(c_m) of what was deployed last, `[M]`.
    #[inline]
    pub(crate) fn costs(&self) -> &[f64] {
        match self {
            Self::Plain(judge) => &judge.costs,
            Self::Fast(judge) => judge.costs(),
            Self::Mixtures(judge) => judge.costs(),
        }
    }

    /// The judge of mixtures, if a mixture has been deployed.
    #[inline]
    pub(crate) fn of_mixtures(&self) -> Option<&MixtureJudge<'_>> {
        match self {
            Self::Plain(_) | Self::Fast(_) => None,
            Self::Mixtures(judge) => Some(judge),
        }
    }

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
            Self::Mixtures(judge) => judge.assess_policy(played),
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
    /// V(c_m) of the last policy, `[M]`.
    costs: Vec<f64>,
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
            costs: Vec::with_capacity(model.costs().len()),
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
        let reward = value(model.reward());
        self.costs.clear();
        self.costs.extend(model.costs().iter().map(value));
        let values = TrueValues::new(reward, &self.costs, model.limits());
        self.last = Some((policy, draws, values));
        Ok(values)
    }
}

/// V(r) and V(c_m) of the policy that a learner was told to be safe, in the true model; None if it was given none.
pub fn baseline_values(
    model: &ConstrainedMdp,
    learner: &AnyLearner,
) -> Result<Option<(f64, Vec<f64>)>> {
    check_model(model, learner)?;
    let Some((policy, _)) = learner.claimed_baseline() else {
        return Ok(None);
    };
    let mut judge = PlainJudge::new(model)?;
    let reward = judge.assess(Played::Policy(policy))?.reward;
    Ok(Some((reward, judge.costs)))
}

/// The true values of a member of a mixture.
#[derive(Debug, Clone, PartialEq)]
pub struct MemberValues {
    /// The number of the member.
    pub number: u64,
    /// V(r).
    pub reward: f64,
    /// V(c_m), `[M]`.
    pub costs: Vec<f64>,
}

/// Evaluates mixtures: the values are the weighted sums of the members' values.
///
/// A member is evaluated once, a mixture is summed once: the numbers that learners give them tell whether they are new.
/// All engines use this judge, so that all have the same bits.
#[derive(Debug)]
pub struct MixtureJudge<'m> {
    judge: PlainJudge<'m>,
    /// The members of the last mixture, in its order.
    members: Vec<MemberValues>,
    last: Option<(u64, TrueValues)>,
    /// V(c_m) of the last mixture, `[M]`.
    costs: Vec<f64>,
}

impl<'m> MixtureJudge<'m> {
    /// A judge for this model.
    pub fn new(model: &'m ConstrainedMdp) -> Result<Self> {
        Ok(Self {
            judge: PlainJudge::new(model)?,
            members: Vec::new(),
            last: None,
            costs: Vec::with_capacity(model.costs().len()),
        })
    }

    /// V(r) and V(c) of a mixture. One with the number of the last is not looked at.
    #[inline]
    pub fn assess(&mut self, mixture: &Mixture) -> Result<TrueValues> {
        match self.last {
            Some((number, values)) if number == mixture.number() => Ok(values),
            _ => self.assess_new(mixture),
        }
    }

    #[cold]
    fn assess_new(&mut self, mixture: &Mixture) -> Result<TrueValues> {
        let mut members: Vec<MemberValues> = Vec::with_capacity(mixture.members().len());
        for member in mixture.members() {
            let mut known = members.iter().chain(&self.members);
            let values = match known.find(|known| known.number == member.number) {
                Some(values) => values.clone(),
                None => {
                    let reward = self.judge.assess(member.policy.played())?.reward;
                    MemberValues {
                        number: member.number,
                        reward,
                        costs: self.judge.costs.clone(),
                    }
                }
            };
            members.push(values);
        }
        self.members = members;
        let weighted = |value: &dyn Fn(&MemberValues) -> f64| -> f64 {
            let members = mixture.members().iter().zip(&self.members);
            members.fold(0.0, |sum, (member, values)| {
                sum + member.weight * value(values)
            })
        };
        let model = self.judge.model;
        let reward = weighted(&|values| values.reward);
        let costs = (0..model.costs().len()).map(|m| weighted(&|values| values.costs[m]));
        self.costs.clear();
        self.costs.extend(costs);
        let values = TrueValues::new(reward, &self.costs, model.limits());
        self.last = Some((mixture.number(), values));
        Ok(values)
    }

    /// V(r) and V(c) of a policy that is deployed alone.
    fn assess_policy(&mut self, played: Played<'_>) -> Result<TrueValues> {
        let values = self.judge.assess(played)?;
        self.costs.clone_from(&self.judge.costs);
        self.last = None;
        Ok(values)
    }

    /// The true values of the members of the last mixture, in its order.
    #[must_use]
    pub fn members(&self) -> &[MemberValues] {
        &self.members
    }

    /// V(c_m) of what was assessed last, `[M]`.
    #[must_use]
    pub fn costs(&self) -> &[f64] {
        &self.costs
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
