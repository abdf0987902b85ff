//! A learner that is driven episode by episode from outside: what is observed is checked against what was deployed,
//! actions come from the learner's own stream, and an episode can be collected step by step.
//!
//! A deployment is pending from its plan until its episode has been observed. An abandoned one is deployed again by the
//! next plan, coin and actions included: abandoning cannot be used to toss again, and a run that stops within an episode
//! and goes on later is the run that never stopped.

use serde::{Deserialize, Serialize};

use crate::certify::Certificate;
use crate::error::{ArrayIndex, Error, Interval, Result};
use crate::learn::observations::{ObservationRanges, ValueRange};
use crate::learn::stored::check;
use crate::learn::{AnyLearner, Deployment, Learner, PolicySource};
use crate::policy::MarkovPolicy;
use crate::random::{action_uniforms, draw};
use crate::trajectory::Trajectory;

/// A learner with the ranges of its observations, its stream of actions and the deployment that is pending.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LiveLearner {
    learner: AnyLearner,
    ranges: ObservationRanges,
    /// Seed and replicate: the address of the stream of actions.
    stream: (u64, u64),
    pending: Option<Pending>,
    /// The episode that is being collected step by step. It is not stored: a stored learner plays it from its start.
    #[serde(skip)]
    collected: Option<Collected>,
    /// The ranges of an environment that states its rewards in other units than the learner; for collected episodes.
    #[serde(skip)]
    environment: Option<ObservationRanges>,
    /// The memory of an episode that is over, for the next one.
    #[serde(skip)]
    spare: Option<Collected>,
}

/// A deployment whose episode has not been observed.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Pending {
    deployment: Deployment,
    abandoned: bool,
    /// The number that draws the action of each step, `[H]`.
    uniforms: Vec<f64>,
}

/// An episode of which some steps have been played.
#[derive(Debug, Clone)]
struct Collected {
    seen: Trajectory,
    steps: usize,
    /// In the caller's units.
    total_reward: f64,
    total_costs: Vec<f64>, // [M]
}

/// What is told of an episode that was collected step by step, in the caller's units.
#[derive(Debug, Clone, PartialEq)]
pub struct EpisodeSummary {
    /// The number of the episode, from 0.
    pub episode: u64,
    /// Where the policy came from.
    pub source: PolicySource,
    /// The sum of the rewards.
    pub total_reward: f64,
    /// The sums of the costs, `[M]`.
    pub total_costs: Vec<f64>,
    /// The upper bounds on the expected costs of what was deployed, `[M]`, in parts of the ranges; None if the learner
    /// certifies none.
    pub certified_costs: Option<Vec<f64>>,
}

impl LiveLearner {
    /// A learner whose observations lie in [0, 1] and whose stream is that of replicate 0 of the seed 0.
    #[must_use]
    pub fn new(learner: AnyLearner) -> Self {
        let ranges = ObservationRanges::unit(learner.cost_limits().len());
        Self {
            learner,
            ranges,
            stream: (0, 0),
            pending: None,
            collected: None,
            environment: None,
            spare: None,
        }
    }

    /// Episodes that are collected from now on state their rewards in this range; None for that of the learner.
    pub fn drive(&mut self, reward: Option<ValueRange>) {
        self.environment = reward.map(|range| self.ranges.clone().with_reward(range));
    }

    /// Sets the ranges of the observations, and the replicate of a run whose actions are drawn: (seed, replicate).
    pub fn settle(&mut self, ranges: ObservationRanges, stream: (u64, u64)) -> Result<()> {
        let expected = self.learner.cost_limits().len();
        if ranges.num_costs() != expected {
            return Err(Error::ShapeMismatch {
                array: "cost_range",
                axes: "[M]",
                expected: vec![expected],
                found: vec![ranges.num_costs()],
            });
        }
        (self.ranges, self.stream) = (ranges, stream);
        Ok(())
    }

    /// Refuses stored parts that do not fit each other.
    pub(super) fn check_stored(&self) -> Result<()> {
        self.learner.check_stored()?;
        let costs = self.learner.cost_limits().len();
        check("the ranges of a learner", self.ranges.fits(costs))?;
        let is_played = self.learner.experience().protocol().check_observe().is_ok();
        let uniforms = self.pending.as_ref().is_none_or(|pending| {
            pending.uniforms.len() == self.learner.shape().horizon()
                && pending.deployment.episode == self.learner.episodes_observed()
        });
        let limit = self.learner.cost_limit();
        let certified = self
            .pending
            .as_ref()
            .and_then(|pending| pending.deployment.certificate);
        let certificate = certified.is_none_or(|certificate| {
            certificate.limit().to_bits() == limit.to_bits() && certificate.cost() <= limit
        });
        let pending = self.pending.is_some() == is_played && uniforms && certificate;
        check("the deployment of a learner", pending)
    }

    /// The ranges of the observations.
    #[must_use]
    pub fn ranges(&self) -> &ObservationRanges {
        &self.ranges
    }

    /// The learner inside.
    #[must_use]
    pub fn learner(&self) -> &AnyLearner {
        &self.learner
    }

    /// The learner inside, for calls that plan and count nothing.
    #[must_use]
    pub fn learner_mut(&mut self) -> &mut AnyLearner {
        &mut self.learner
    }

    /// A copy of the learner inside, for a simulation. It plans anew what was abandoned.
    pub fn for_simulation(&self) -> Result<AnyLearner> {
        self.learner.check_memory()?;
        let mut learner = self.learner.clone();
        if self
            .pending
            .as_ref()
            .is_some_and(|pending| pending.abandoned)
        {
            learner.protocol_mut().reopen();
        }
        Ok(learner)
    }

    /// The deployment whose episode has not been observed; None if there is none or it was abandoned.
    #[must_use]
    pub fn pending(&self) -> Option<&Deployment> {
        let pending = self.pending.as_ref()?;
        (!pending.abandoned).then_some(&pending.deployment)
    }

    /// Plans the next episode; deploys an abandoned policy again.
    pub fn next_policy(&mut self) -> Result<Deployment> {
        self.plan_by(Learner::next_policy)
    }

    /// Whether the next plan may take long, and may be stopped: it can then be made again, with the same result.
    #[must_use]
    pub fn next_plan_may_be_stopped(&self) -> bool {
        match &self.learner {
            AnyLearner::OptPessMix(learner) => {
                self.pending.is_none() && learner.plans_from_scratch()
            }
            _ => false,
        }
    }

    /// [`LiveLearner::next_policy`] with a plan of the caller's.
    pub fn plan_by(
        &mut self,
        plan: impl FnOnce(&mut AnyLearner) -> Result<Deployment>,
    ) -> Result<Deployment> {
        if let Some(again) = self.deploy_again() {
            return Ok(again);
        }
        let deployment = plan(&mut self.learner)?;
        let mut uniforms = vec![0.0; self.learner.shape().horizon()];
        action_uniforms(self.stream, deployment.episode, &mut uniforms);
        self.pending = Some(Pending {
            deployment,
            abandoned: false,
            uniforms,
        });
        Ok(deployment)
    }

    /// Deploys an abandoned policy again; None if there is none.
    pub fn deploy_again(&mut self) -> Option<Deployment> {
        let pending = self.pending.as_mut().filter(|pending| pending.abandoned)?;
        pending.abandoned = false;
        Some(pending.deployment)
    }

    /// Gives up the pending episode: nothing of it is counted, and the next plan deploys the same policy again.
    pub fn abandon(&mut self) -> Result<()> {
        match self.pending.as_mut().filter(|pending| !pending.abandoned) {
            Some(pending) => {
                pending.abandoned = true;
                self.collected = None;
                Ok(())
            }
            None => Err(out_of_turn("abandon")),
        }
    }

    /// The policy of the pending deployment and the numbers that draw its actions, `[H]`.
    pub fn deployed(&self) -> Result<(&MarkovPolicy, &[f64])> {
        match &self.pending {
            Some(pending) if !pending.abandoned => Ok((self.learner.policy(), &pending.uniforms)),
            _ => Err(out_of_turn("action")),
        }
    }

    /// Counts an episode in the caller's units. Refuses one that cannot have been played, and changes nothing then.
    pub fn observe(&mut self, mut seen: Trajectory) -> Result<()> {
        self.learner.experience().protocol().check_observe()?;
        if self.pending().is_none() {
            return Err(out_of_turn("observe")); // it was abandoned
        }
        self.ranges.map_into_unit(&mut seen)?;
        self.check_first_state(seen.states()[0])?;
        if let Some(actions) = self.learner.experience().actions() {
            actions.check_episode(&seen)?;
        }
        check_actions(self.learner.policy(), &seen)?;
        self.count(&seen)
    }

    fn count(&mut self, seen: &Trajectory) -> Result<()> {
        self.ranges.check_averages(&self.learner, seen)?;
        self.learner.observe(seen)?;
        (self.pending, self.collected) = (None, None);
        Ok(())
    }

    fn check_first_state(&self, state: u32) -> Result<()> {
        let start = self.learner.experience().initial().data();
        if start[state as usize] > 0.0 {
            return Ok(());
        }
        Err(Error::Impossible {
            place: ArrayIndex::new("states", &[0]),
            found: state,
            reason: "an episode starts there with probability 0 (initial)".to_owned(),
        })
    }

    /// Begins the pending episode in a state; returns the first action.
    pub fn begin(&mut self, state: usize) -> Result<usize> {
        let shape = self.learner.shape();
        self.deployed()?;
        check_state(0, state, shape.num_states())?;
        self.check_first_state(state as u32)?;
        let num_costs = self.ranges.num_costs();
        let mut collected = match self.collected.take().or_else(|| self.spare.take()) {
            Some(collected) => collected,
            None => Collected {
                seen: Trajectory::zeros(shape, num_costs)?,
                steps: 0,
                total_reward: 0.0,
                total_costs: vec![0.0; num_costs],
            },
        };
        collected.steps = 0;
        collected.total_reward = 0.0;
        collected.total_costs.fill(0.0);
        self.collected = Some(collected);
        self.enter(state)
    }

    /// The state of the next step; draws its action.
    #[inline]
    fn enter(&mut self, state: usize) -> Result<usize> {
        let (Some(collected), Some(pending)) = (&mut self.collected, &self.pending) else {
            return Err(out_of_turn("step"));
        };
        let step = collected.steps;
        let row = self.learner.policy().row(step, state);
        let action = draw(row.iter().copied().enumerate(), pending.uniforms[step]);
        let seen = collected.seen.parts_mut();
        (seen.states[step], seen.actions[step]) = (state as u32, action as u32);
        Ok(action)
    }

    /// What the action of the present step earned and cost, in the caller's units.
    #[inline]
    fn receive(&mut self, reward: f64, costs: &[f64]) -> Result<()> {
        let Some(collected) = &mut self.collected else {
            return Err(out_of_turn("step"));
        };
        let (step, horizon) = (collected.steps, collected.seen.shape().horizon());
        if step >= horizon {
            return Err(out_of_turn("step"));
        }
        if costs.len() != self.ranges.num_costs() {
            return Err(Error::ShapeMismatch {
                array: "the costs of a step",
                axes: "[M]",
                expected: vec![self.ranges.num_costs()],
                found: vec![costs.len()],
            });
        }
        let ranges = self.environment.as_ref().unwrap_or(&self.ranges);
        let seen = collected.seen.parts_mut();
        seen.rewards[step] = ranges.reward_in(step, reward)?;
        for (m, &cost) in costs.iter().enumerate() {
            seen.costs[m * horizon + step] = ranges.cost_in(m, step, cost)?;
        }
        collected.total_reward += reward;
        let totals = collected.total_costs.iter_mut();
        totals.zip(costs).for_each(|(total, cost)| *total += cost);
        collected.steps += 1;
        Ok(())
    }

    /// Takes what a step earned, cost and led to; returns the next action, None after the last step. A refused step may
    /// be given again.
    #[inline]
    pub fn step(&mut self, reward: f64, costs: &[f64], next_state: usize) -> Result<Option<usize>> {
        let shape = self.learner.shape();
        let next = self.steps_taken() + 1;
        let is_last = next >= shape.horizon();
        if !is_last {
            check_state(next, next_state, shape.num_states())?;
        }
        self.receive(reward, costs)?;
        if is_last {
            return Ok(None);
        }
        self.enter(next_state).map(Some)
    }

    /// Takes the last step of an episode that ends early: the steps that are left are spent in the last state, which is
    /// the absorbing end, without reward and cost.
    pub fn end_early(&mut self, reward: f64, costs: &[f64]) -> Result<()> {
        let shape = self.learner.shape();
        let step = self.steps_taken();
        let rest = if step + 1 < shape.horizon() {
            let ranges = self.environment.as_ref().unwrap_or(&self.ranges);
            Some(ranges.nothing(step + 1)?)
        } else {
            None
        };
        self.receive(reward, costs)?;
        let Some((no_reward, no_costs)) = rest else {
            return Ok(());
        };
        for step in step + 1..shape.horizon() {
            self.enter(shape.num_states() - 1)?;
            let Some(collected) = &mut self.collected else {
                return Err(out_of_turn("step"));
            };
            let seen = collected.seen.parts_mut();
            seen.rewards[step] = no_reward;
            for (m, &cost) in no_costs.iter().enumerate() {
                seen.costs[m * shape.horizon() + step] = cost;
            }
            collected.steps += 1;
        }
        Ok(())
    }

    /// How many steps of the episode have been taken.
    #[must_use]
    #[inline]
    pub fn steps_taken(&self) -> usize {
        self.collected.as_ref().map_or(0, |found| found.steps)
    }

    /// Counts the collected episode.
    pub fn finish(&mut self) -> Result<EpisodeSummary> {
        let horizon = self.learner.shape().horizon();
        let complete = |collected: &Collected| collected.steps == horizon;
        let deployment = self.pending().copied();
        let (Some(collected), Some(deployment)) =
            (self.collected.take_if(|c| complete(c)), deployment)
        else {
            return Err(out_of_turn("finish"));
        };
        let certified_costs = self.certified_costs(deployment.certificate.as_ref());
        self.learner.observe(&collected.seen)?;
        self.pending = None;
        let summary = EpisodeSummary {
            episode: deployment.episode,
            source: deployment.source,
            total_reward: collected.total_reward,
            total_costs: collected.total_costs.clone(),
            certified_costs,
        };
        self.spare = Some(collected);
        Ok(summary)
    }

    fn certified_costs(&self, certificate: Option<&Certificate>) -> Option<Vec<f64>> {
        match (self.learner.mixture(), certificate) {
            (Some(mixture), _) => Some(mixture.cost_bounds().to_vec()),
            (None, Some(certificate)) => Some(vec![certificate.cost()]),
            (None, None) => None,
        }
    }
}

fn out_of_turn(called: &'static str) -> Error {
    let expected = match called {
        "step" => "the beginning of an episode",
        "finish" => "the end of the episode",
        _ => "next_policy",
    };
    Error::OutOfTurn { called, expected }
}

fn check_state(step: usize, state: usize, num_states: usize) -> Result<()> {
    if state < num_states {
        return Ok(());
    }
    Err(Error::OutOfRange {
        place: ArrayIndex::new("states", &[step]),
        found: state as f64,
        allowed: Interval::closed(0.0, (num_states - 1) as f64),
    })
}

/// Refuses an action that the deployed policy never takes.
fn check_actions(policy: &MarkovPolicy, seen: &Trajectory) -> Result<()> {
    for (step, (&state, &action)) in seen.states().iter().zip(seen.actions()).enumerate() {
        if policy.row(step, state as usize)[action as usize] <= 0.0 {
            return Err(Error::Impossible {
                place: ArrayIndex::new("actions", &[step]),
                found: action,
                reason: format!(
                    "the deployed policy takes it in state {state} at step {step} with probability 0"
                ),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confidence::SafetyMargin;
    use crate::learn::SafeBaseline;
    use crate::learn::peers::AlwaysBaseline;
    use crate::model::InitialDistribution;
    use crate::shape::Shape;

    /// Two states and the end, two actions, three steps; a baseline that plays both actions, from state 0 on.
    fn learner() -> LiveLearner {
        let shape = Shape::new(3, 3, 2).unwrap();
        let policy = MarkovPolicy::uniform(shape).unwrap();
        let margin = SafetyMargin::new(2.0, 1.0).unwrap();
        let baseline = SafeBaseline::new(policy, margin).unwrap();
        let initial = InitialDistribution::new(3, vec![1.0, 0.0, 0.0]).unwrap();
        let learner = AlwaysBaseline::new(initial, baseline, 10).unwrap();
        let mut live = LiveLearner::new(AnyLearner::from(learner));
        live.settle(ObservationRanges::unit(1), (7, 0)).unwrap();
        live
    }

    #[test]
    fn an_abandoned_episode_is_deployed_again_with_the_same_actions() {
        let mut live = learner();
        assert!(live.abandon().is_err());
        let first = live.next_policy().unwrap();
        let uniforms = live.deployed().unwrap().1.to_vec();
        let action = live.begin(0).unwrap();
        assert!(live.step(0.5, &[0.5], 1).unwrap().is_some());
        live.abandon().unwrap();
        assert!(live.pending().is_none() && live.step(0.5, &[0.5], 1).is_err());
        assert_eq!(live.next_policy().unwrap(), first);
        assert_eq!(live.deployed().unwrap().1, uniforms);
        assert_eq!(live.begin(0).unwrap(), action);
    }

    #[test]
    fn an_early_end_fills_the_rest_with_the_last_state_and_nothing() {
        let mut live = learner();
        let range = ValueRange::new("reward_range", -4.0, 4.0).unwrap();
        live.drive(Some(range));
        live.next_policy().unwrap();
        live.begin(0).unwrap();
        live.end_early(2.0, &[1.0]).unwrap();
        let summary = live.finish().unwrap();
        assert_eq!(
            (summary.total_reward, summary.total_costs),
            (2.0, vec![1.0])
        );
        let estimates = live.learner().estimates();
        let shape = live.learner().shape();
        let visits = |step: usize, state: usize| -> u64 {
            let rows = (0..2).map(|action| step * shape.pairs() + shape.pair(state, action));
            rows.map(|row| estimates.visits()[row]).sum()
        };
        assert_eq!([visits(0, 0), visits(1, 2), visits(2, 2)], [1, 1, 1]);
        let end = (0..2).map(|action| 2 * shape.pairs() + shape.pair(2, action));
        let seen = end.filter(|&row| estimates.visits()[row] > 0);
        for row in seen {
            assert!((estimates.mean_reward(row) - 0.5).abs() < 1e-15); // 0 of [-4, 4]
            assert!(estimates.mean_cost(row).abs() < 1e-15);
        }
    }

    #[test]
    fn a_refused_step_changes_nothing_and_an_episode_is_counted_once() {
        let mut live = learner();
        live.next_policy().unwrap();
        assert!(live.finish().is_err() && live.begin(1).is_err()); // no episode starts in state 1
        live.begin(0).unwrap();
        for (reward, cost, state) in [(1.5, 0.0, 1), (0.5, -0.5, 1), (0.5, 0.5, 3)] {
            assert!(live.step(reward, &[cost], state).is_err());
            assert_eq!(live.steps_taken(), 0);
        }
        for _ in 0..2 {
            assert!(live.step(0.5, &[0.25], 1).unwrap().is_some());
        }
        assert!(live.step(0.5, &[0.25], 9).unwrap().is_none()); // no value uses the state after the last step
        assert!(live.step(0.5, &[0.25], 1).is_err());
        live.finish().unwrap();
        assert!(live.finish().is_err());
        assert_eq!(live.learner().episodes_observed(), 1);
    }
}
