//! P-hat with a biased reward and a biased cost: the tables on which the algorithms of \[Liu21\] plan and certify.

use serde::{Deserialize, Serialize};

use crate::actions::StandIns;
use crate::certify::{Certificate, certify};
use crate::confidence::{Bonus, LearningTerms, OptimisticCost, OptimisticReward};
use crate::confidence::{PessimisticCost, SharpBonus};
use crate::error::Result;
use crate::estimate::{EmpiricalKernel, Estimates, RowEstimate, RowListener};
use crate::evaluate::Evaluator;
use crate::learn::BiasedSignals;
use crate::learn::experience::Experience;
use crate::learn::stored::check;
use crate::model::InitialDistribution;
use crate::plan::{ChordSearch, PlanningProblem};
use crate::policy::MarkovPolicy;
use crate::table::{Signal, StateValues, StepSignal};
use crate::trajectory::Trajectory;

/// Observations, P-hat and the biased signals. Only the counts are state; [`BiasedModel::refresh`] updates P-hat and
/// both signals.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BiasedModel<C> {
    pub(super) experience: Experience,
    bonus: Bonus,
    /// Takes the place of the bonus under the rule Sharp.
    sharp: Option<SharpBonus>,
    /// None until its scale is known.
    reward: Option<OptimisticReward>,
    cost: C,
    evaluator: Evaluator,
}

/// Both signals on P-hat.
pub(crate) type BiasedProblem<'a, C> = PlanningProblem<'a, OptimisticReward, C, EmpiricalKernel>;

/// A problem, the search for its best policy within a limit, the policy for states without mass, and the limit.
pub(crate) type SearchTask<'a, C> = (
    BiasedProblem<'a, C>,
    &'a mut ChordSearch,
    &'a MarkovPolicy,
    f64,
);

impl<C: BiasedCost> BiasedModel<C> {
    /// Nothing seen yet.
    pub(super) fn new(
        initial: InitialDistribution,
        terms: LearningTerms,
        reward: Option<OptimisticReward>,
        cost: C,
    ) -> Result<Self> {
        let shape = cost.signal().shape();
        let (mut estimates, sharp) = (Estimates::new(shape)?, terms.sharp_bonus(shape)?);
        if sharp.is_some() {
            estimates.mark_all(); // the bonus of a row never visited depends on its step
        }
        Ok(Self {
            experience: Experience::new(estimates, initial, terms),
            bonus: terms.bonus(shape),
            sharp,
            reward,
            cost,
            evaluator: Evaluator::new(shape)?,
        })
    }

    /// Refuses stored parts that differ from those of a model with these signals that was made anew. To be called
    /// before the first refresh.
    pub(super) fn check_stored(&self, reward: Option<&OptimisticReward>, cost: &C) -> Result<()>
    where
        C: PartialEq,
    {
        let (shape, terms) = (self.experience.shape(), self.experience.terms());
        let bonuses = self.bonus == terms.bonus(shape) && self.sharp == terms.sharp_bonus(shape)?;
        check("the bonus of a learner", bonuses)?;
        let signals = self.reward.as_ref() == reward && self.cost == *cost;
        check("the signals of a learner", signals)?;
        check(
            "the workspace of a learner",
            self.evaluator.shape() == shape,
        )
    }

    /// What has been seen.
    #[inline(always)]
    pub(crate) fn experience(&self) -> &Experience {
        &self.experience
    }

    /// b, if it is a function of visits alone; None under the rule Sharp.
    #[inline(always)]
    pub(crate) fn bonus_of_visits(&self) -> Option<&Bonus> {
        self.sharp.is_none().then_some(&self.bonus)
    }

    /// The biased cost, as of the last refresh.
    #[inline(always)]
    pub(crate) fn cost(&self) -> &C {
        &self.cost
    }

    /// V_h of the last policy evaluated.
    pub(crate) fn last_values(&self) -> &StateValues {
        self.evaluator.values()
    }

    /// Sets which actions exist. Refused after the first plan, a second time, and if `safe` plays one that does not.
    pub(super) fn restrict(
        &mut self,
        actions: &StandIns,
        safe: Option<&MarkovPolicy>,
    ) -> Result<()> {
        self.experience.check_restriction(actions)?;
        if let Some(safe) = safe {
            actions.check_policy("baseline", safe)?;
        }
        self.experience.restrict(actions);
        Ok(())
    }

    /// Counts one episode. Refuses one of another shape, out of turn, or with observations that the rule Sharp leaves
    /// out, and changes nothing then.
    #[inline(always)]
    pub(super) fn observe(&mut self, seen: &Trajectory) -> Result<()> {
        if self.sharp.is_some() {
            SharpBonus::check(seen)?;
        }
        self.experience.observe(seen)
    }

    /// Updates P-hat, r-hat, c-hat (Eq. 3-5) and both biased signals of every row counted since the last refresh.
    /// `listener` receives each row.
    #[inline(always)]
    pub(super) fn refresh(&mut self, listener: &mut impl SignalListener) {
        self.experience.estimates.refresh(BiasRows {
            bonus: self.bonus,
            sharp: self.sharp.as_ref(),
            reward: self.reward.as_mut(),
            cost: &mut self.cost,
            listener,
        });
    }

    /// Sets the reward signal; the next refresh computes it for every row.
    pub(super) fn set_reward(&mut self, reward: OptimisticReward) {
        self.reward = Some(reward);
        self.experience.estimates.mark_all();
    }

    /// V of a policy for the biased cost on P-hat.
    #[inline(always)]
    pub(super) fn cost_of(&mut self, policy: &MarkovPolicy) -> f64 {
        let (kernel, initial) = (self.experience.kernel(), self.experience.initial());
        self.evaluator.evaluate(policy, &self.cost, kernel, initial)
    }

    /// V of a policy for the biased reward on P-hat, if that exists.
    pub(super) fn reward_of(&mut self, policy: &MarkovPolicy) -> Option<f64> {
        let (kernel, initial) = (self.experience.kernel(), self.experience.initial());
        let reward = self.reward.as_ref()?;
        Some(self.evaluator.evaluate(policy, reward, kernel, initial))
    }

    /// Both signals on P-hat, if both exist.
    #[inline(always)]
    pub(super) fn problem(&self) -> Option<BiasedProblem<'_, C>> {
        Some(PlanningProblem {
            shape: self.experience.shape(),
            reward: self.reward.as_ref()?,
            cost: &self.cost,
            kernel: self.experience.kernel(),
            initial: self.experience.initial(),
        })
    }

    /// Both signals and the bonuses, brought up to date.
    pub(super) fn signals(&mut self) -> BiasedSignals<'_> {
        self.refresh(&mut ());
        let reward = self.reward.as_ref().map(OptimisticReward::signal);
        let estimates = self.experience.estimates();
        let bonuses = match self.sharp {
            None => self.bonus.of_all(estimates),
            Some(_) => {
                let costs = self.cost.signal().data().iter().enumerate();
                costs
                    .map(|(row, cost)| cost - estimates.mean_cost(row))
                    .collect()
            }
        };
        BiasedSignals::new(reward, self.cost.signal(), bonuses)
    }
}

impl BiasedModel<PessimisticCost> {
    /// Certifies that the pessimistic cost of a policy on P-hat is at most the limit; if rounding put it above, mixes
    /// in `safe` until it is not. First moves the probability of actions that do not exist to those they stand in for,
    /// which changes no value.
    pub(super) fn certify(
        &mut self,
        policy: &mut MarkovPolicy,
        safe: &MarkovPolicy,
        limit: f64,
    ) -> Result<Certificate> {
        self.experience.fold(policy);
        let (kernel, initial) = (self.experience.kernel(), self.experience.initial());
        let evaluator = &mut self.evaluator;
        certify(evaluator, policy, safe, &self.cost, kernel, initial, limit)
    }
}

/// A biased cost.
pub trait BiasedCost: StepSignal {
    /// The biased values, `[H, S, A]`.
    fn signal(&self) -> &Signal;
    /// Sets the value of a row from its estimate and its bonus, and returns it.
    fn update(&mut self, row: &RowEstimate<'_>, bonus: f64) -> f64;
}

impl BiasedCost for PessimisticCost {
    fn signal(&self) -> &Signal {
        self.signal()
    }

    #[inline(always)]
    fn update(&mut self, row: &RowEstimate<'_>, bonus: f64) -> f64 {
        self.update(row, bonus)
    }
}

impl BiasedCost for OptimisticCost {
    fn signal(&self) -> &Signal {
        self.signal()
    }

    #[inline(always)]
    fn update(&mut self, row: &RowEstimate<'_>, bonus: f64) -> f64 {
        self.update(row, bonus)
    }
}

/// Receives every refreshed row with its biased signals; an engine keeps a copy of them. `()` ignores them.
pub(crate) trait SignalListener {
    /// Called once for each row; the reward is None while its signal does not exist.
    fn changed(&mut self, row: &RowEstimate<'_>, reward: Option<f64>, cost: f64);
}

impl SignalListener for () {
    #[inline(always)]
    fn changed(&mut self, _: &RowEstimate<'_>, _: Option<f64>, _: f64) {}
}

impl<L: SignalListener> SignalListener for Option<L> {
    #[inline(always)]
    fn changed(&mut self, row: &RowEstimate<'_>, reward: Option<f64>, cost: f64) {
        if let Some(listener) = self {
            listener.changed(row, reward, cost);
        }
    }
}

struct BiasRows<'a, C, L> {
    bonus: Bonus,
    sharp: Option<&'a SharpBonus>,
    reward: Option<&'a mut OptimisticReward>,
    cost: &'a mut C,
    listener: &'a mut L,
}

impl<C: BiasedCost, L: SignalListener> RowListener for BiasRows<'_, C, L> {
    #[inline(always)]
    fn changed(&mut self, row: &RowEstimate<'_>) {
        let reward = self.reward.as_mut();
        let (reward, cost) = if let Some(sharp) = self.sharp {
            let bonuses = sharp.of(row);
            let reward = reward.map(|signal| signal.update_sharply(row, &bonuses));
            (reward, self.cost.update(row, bonuses.cost))
        } else {
            let bonus = self.bonus.of(row);
            let reward = reward.map(|signal| signal.update(row, bonus));
            (reward, self.cost.update(row, bonus))
        };
        self.listener.changed(row, reward, cost);
    }
}
