//! The Python class of learners.

use numpy::{PyArray, PyArrayDyn, PyReadonlyArrayDyn};
use optpess_core::actions::StandIns;
use optpess_core::certify::PolicyBounds;
use optpess_core::confidence::{
    ConfidenceRule, CostRadius, Guarantee, LearningTerms, MAX_EPISODES, Observations, SafetyMargin,
};
use optpess_core::error::{ArrayIndex, Error, Interval};
use optpess_core::knowledge::{Knowledge, Support};
use optpess_core::learn::peers::{
    AlwaysBaseline, Cucrl, KnownTransitions, Opdop, OptCmdp, OptCmdpBonus, OptDualCmdp,
    OptPrimalDualCmdp, Sops, UnconstrainedOptimistic,
};
use optpess_core::learn::{
    AnyLearner, Deployment, Learner as Verbs, Mixture, OptPessLp, OptPessPrimalDual, SafeBaseline,
};
use optpess_core::learn::{Exploration, LimitedBaseline, MixSettings, OptPessMix};
use optpess_core::learn::{LiveLearner, ObservationRanges, ValueRange};
use optpess_core::policy::MarkovPolicy;
use optpess_core::random::draw;
use optpess_core::run::{SafetyClaim, gate_extrapolation};
use optpess_core::shape::Shape;
use optpess_core::table::Signal;
use optpess_core::trajectory::Trajectory;
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::call;
use crate::convert::{Input, array_out, count_up_to, to_py, type_name};
use crate::error::{to_python, unknown_choice};
use crate::evaluate::{initial_in, policy_in, signal_in};
use crate::model::Model;
use crate::transitions::kernel_of_shape;

type FloatArray<'py> = Bound<'py, PyArrayDyn<f64>>;

/// The sums of rewards and costs of an episode, the source of its policy, and the certified costs.
type Summary = (f64, Vec<f64>, &'static str, Option<Vec<f64>>);

/// A learner of the core. `optpess.OptPessLP` and the other subclasses of `optpess.Learner` wrap it.
#[pyclass(module = "optpess._core")]
#[derive(Debug)]
pub struct Learner {
    pub live: LiveLearner,
}

impl From<AnyLearner> for Learner {
    fn from(learner: AnyLearner) -> Self {
        let live = LiveLearner::new(learner);
        Self { live }
    }
}

#[pymethods]
impl Learner {
    /// OptPess-LP; without a safe cost, it is estimated first with the named radius.
    #[staticmethod]
    #[expect(
        clippy::too_many_arguments,
        reason = "the Input line of the algorithm box"
    )]
    fn optpess_lp(
        initial: &Bound<'_, PyAny>,
        baseline: &Bound<'_, PyAny>,
        cost_limit: f64,
        safe_cost: Option<f64>,
        radius: &str,
        num_episodes: &Bound<'_, PyAny>,
        failure_probability: f64,
        factor: Option<f64>,
        sharp: bool,
    ) -> PyResult<Self> {
        let mut terms = terms(num_episodes, failure_probability, factor)?;
        if sharp {
            let (episodes, delta) = (terms.num_episodes(), terms.failure_probability());
            terms = to_py(LearningTerms::new(episodes, delta, ConfidenceRule::Sharp))?;
        }
        let baseline = baseline_in(baseline, cost_limit, safe_cost, radius)?;
        let initial = initial_in(initial, baseline.policy().shape().num_states())?;
        let learner = to_py(OptPessLp::new(initial, baseline, terms))?;
        Ok(AnyLearner::from(learner).into())
    }

    /// Plans the next episode.
    fn next_policy<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let deployment = plan_next(py, &mut self.live)?;
        self.deployment_dict(py, &deployment)
    }

    /// Deploys pi0 if the gate is shut, or again what was abandoned. Otherwise returns None, and a policy must be passed
    /// to `deploy`.
    fn assess<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let deployment = match self.live.deploy_again() {
            Some(again) => Some(again),
            None => {
                let AnyLearner::OptPessLp(learner) = self.live.learner_mut() else {
                    return Err(PyValueError::new_err("only OptPess-LP has a gate"));
                };
                match call::run(py, || learner.assess())? {
                    Some(made) => Some(to_py(self.live.plan_by(|_| Ok(made)))?),
                    None => None,
                }
            }
        };
        deployment
            .map(|deployment| self.deployment_dict(py, &deployment))
            .transpose()
    }

    /// Certifies and deploys a policy that was planned elsewhere.
    fn deploy<'py>(
        &mut self,
        py: Python<'py>,
        policy: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let mut policy = policy_of_shape(policy, self.live.learner().shape())?;
        let AnyLearner::OptPessLp(learner) = self.live.learner_mut() else {
            return Err(PyValueError::new_err(
                "only OptPess-LP takes plans from outside",
            ));
        };
        let made = call::run(py, || learner.deploy(&mut policy))?;
        let deployment = to_py(self.live.plan_by(|_| Ok(made)))?;
        self.deployment_dict(py, &deployment)
    }

    /// States the ranges of observations, the variance proxy of noise that may leave them, and the seed of the stream of
    /// actions. For a learner that has just been made.
    fn settle(
        &mut self,
        reward_range: (f64, f64),
        cost_ranges: Vec<(f64, f64)>,
        variance_proxy: Option<f64>,
        seed: u64,
    ) -> PyResult<()> {
        let range = |name, (low, high)| ValueRange::new(name, low, high);
        let costs = cost_ranges
            .into_iter()
            .map(|pair| range("cost_range", pair))
            .collect::<Result<Vec<_>, _>>();
        let reward = to_py(range("reward_range", reward_range))?;
        let ranges = ObservationRanges::new(reward, to_py(costs)?, variance_proxy);
        to_py(self.live.settle(ranges, (seed, 0)))
    }

    /// Episodes that are collected from now on state their rewards in this range; None for that of the learner.
    fn drive(&mut self, reward_range: Option<(f64, f64)>) -> PyResult<()> {
        let range = reward_range.map(|(low, high)| ValueRange::new("reward_range", low, high));
        self.live.drive(to_py(range.transpose())?);
        Ok(())
    }

    /// The deployment that has not been observed; None if there is none.
    fn pending<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let deployment = self.live.pending().copied();
        deployment
            .map(|deployment| self.deployment_dict(py, &deployment))
            .transpose()
    }

    /// Gives up the pending episode.
    fn abandon(&mut self) -> PyResult<()> {
        to_py(self.live.abandon())
    }

    /// Begins an episode in a state, planned if no deployment is pending; returns the first action.
    fn begin_episode(&mut self, py: Python<'_>, state: &Bound<'_, PyAny>) -> PyResult<usize> {
        let state = state_in(0, state, &self.live)?;
        let live = &mut self.live;
        if live.pending().is_none() {
            plan_next(py, live)?;
        }
        to_py(live.begin(state))
    }

    /// Takes what a step earned, cost and led to; returns the next action, None after the last step.
    fn take_step(
        &mut self,
        reward: &Bound<'_, PyAny>,
        cost: &Bound<'_, PyAny>,
        state: &Bound<'_, PyAny>,
    ) -> PyResult<Option<usize>> {
        let reward = number_in("the reward of a step", reward)?;
        let costs = costs_in(cost)?;
        let state = state_in(self.live.steps_taken() + 1, state, &self.live)?;
        to_py(self.live.step(reward, costs.as_ref(), state))
    }

    /// Takes the last step of an episode that ends early.
    fn end_early(&mut self, reward: &Bound<'_, PyAny>, cost: &Bound<'_, PyAny>) -> PyResult<()> {
        let reward = number_in("the reward of a step", reward)?;
        let costs = costs_in(cost)?;
        to_py(self.live.end_early(reward, costs.as_ref()))
    }

    /// Counts the collected episode: the sums of its rewards and costs, the source of its policy, and the certified
    /// costs, if there are any, in parts of the ranges.
    fn finish_episode(&mut self) -> PyResult<Summary> {
        let summary = to_py(self.live.finish())?;
        let source: &'static str = summary.source.into();
        Ok((
            summary.total_reward,
            summary.total_costs,
            source,
            summary.certified_costs,
        ))
    }

    /// mu, pi0 and tau of OptPess-LP, for plans from outside.
    fn start<'py>(&self, py: Python<'py>) -> PyResult<(FloatArray<'py>, FloatArray<'py>, f64)> {
        let learner = self.live.learner();
        let Some((baseline, _)) = learner.claimed_baseline() else {
            return Err(PyValueError::new_err("this learner has no baseline"));
        };
        let initial = learner.experience().initial().data().to_vec();
        let states = initial.len();
        Ok((
            array_out(py, initial, &[states])?,
            policy_out(py, baseline)?,
            learner.cost_limit(),
        ))
    }

    /// Tells the learner which actions exist, by a mask `[S, A]`, before its first plan.
    fn restrict(&mut self, actions: &Bound<'_, PyAny>) -> PyResult<()> {
        let shape = self.live.learner().shape();
        let mask = Input::new("actions", actions)?.with_shape(&shape.sizes()[1..], "[S, A]")?;
        let mask = mask.floats()?.iter().map(|&entry| entry > 0.0).collect();
        let learner = self.live.learner_mut();
        to_py(StandIns::new(shape, mask).and_then(|actions| learner.restrict(&actions)))
    }

    /// Counts one episode.
    fn observe(
        &mut self,
        states: &Bound<'_, PyAny>,
        actions: &Bound<'_, PyAny>,
        rewards: &Bound<'_, PyAny>,
        costs: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let shape = self.live.learner().shape();
        let horizon = shape.horizon();
        let mut states = indices("states", states, shape.num_states())?;
        if states.len() == horizon + 1 {
            states.truncate(horizon); // no value uses the state after the last step
        }
        let actions = indices("actions", actions, shape.num_actions())?;
        let floats = |name, object| Input::new(name, object)?.with_rank(1, "[H]")?.floats();
        let rewards = floats("rewards", rewards)?;
        let num_costs = self.live.learner().cost_limits().len();
        let seen = if num_costs == 1 {
            let costs = floats("costs", costs)?;
            to_py(Trajectory::checked(shape, states, actions, rewards, costs))?
        } else {
            let costs = Input::new("costs", costs)?.with_shape(&[num_costs, horizon], "[M, H]")?;
            let costs = costs.floats()?;
            to_py(Trajectory::with_costs(
                shape, num_costs, states, actions, rewards, costs,
            ))?
        };
        to_py(self.live.observe(seen))
    }

    /// Counts, averages and the bonus, as arrays. Actions that do not exist were never played, so their counts are 0;
    /// their averages and bonuses are those of the action they stand in for.
    fn estimates<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let bonuses = self.live.learner_mut().signals().bonuses; // refreshes P-hat
        let estimates = self.live.learner().estimates();
        let triple = estimates.shape().sizes();
        let rows = [triple[0] - 1, triple[1], triple[2], triple[1]];
        let actions = self.live.learner().experience().actions();
        let count = |counts: &[u64], width: usize| {
            let mut counts: Vec<i64> = counts.iter().map(|&n| n as i64).collect();
            if let Some(actions) = actions {
                actions.clear_rows(&mut counts, width);
            }
            counts
        };
        let means = |mean: &dyn Fn(usize) -> f64| {
            let data = (0..estimates.shape().triples()).map(mean).collect();
            array_out::<f64>(py, data, &triple)
        };
        let (transition_counts, kernel) = to_py(estimates.kernel().in_full())?;
        let answer = PyDict::new(py);
        answer.set_item(
            "visits",
            array_out(py, count(estimates.visits(), 1), &triple)?,
        )?;
        answer.set_item(
            "transition_counts",
            array_out(py, count(&transition_counts, triple[1]), &rows)?,
        )?;
        answer.set_item("transitions", array_out(py, kernel, &rows)?)?;
        answer.set_item("rewards", means(&|row| estimates.mean_reward(row))?)?;
        answer.set_item("costs", means(&|row| estimates.mean_cost(row))?)?;
        answer.set_item("bonus", array_out::<f64>(py, bonuses, &triple)?)?;
        Ok(answer)
    }

    /// The biased reward (None while the safe cost is being estimated) and cost of the next plan.
    fn signals<'py>(
        &mut self,
        py: Python<'py>,
    ) -> PyResult<(Option<FloatArray<'py>>, FloatArray<'py>)> {
        let signals = self.live.learner_mut().signals();
        let (reward, cost) = (signals.reward, signals.cost);
        let shape = cost.shape().sizes();
        let reward = reward
            .map(|signal| array_out(py, signal.data().to_vec(), &shape))
            .transpose()?;
        Ok((reward, array_out(py, cost.data().to_vec(), &shape)?))
    }

    /// lambda.
    #[getter]
    fn multiplier(&self) -> f64 {
        self.live.learner().multiplier()
    }

    /// How many episodes have been observed.
    #[getter]
    fn episodes_observed(&self) -> u64 {
        self.live.learner().episodes_observed()
    }

    /// How many backward inductions the plans of OptPess-LP took.
    #[getter]
    fn inductions(&self) -> u64 {
        self.live.learner().inductions()
    }

    /// c0 as used now; None while it is being estimated.
    #[getter]
    fn safe_cost(&self) -> Option<f64> {
        self.live
            .learner()
            .margin()
            .map(|margin| margin.safe_cost())
    }

    /// The logarithm in every radius.
    #[getter]
    fn log_factor(&self) -> f64 {
        self.live.learner().log_factor()
    }

    /// What its paper proves, for the learners that OptPess is compared with; else None.
    #[getter]
    fn promise(&self) -> Option<&'static str> {
        self.live.learner().promise()
    }

    /// ("zero", probability, whether observations must lie in [0, 1]), or ("bounded", probability, C'' or None, K), or ("mixture", probability, names of what was
    /// declared to be known), or None.
    #[getter]
    fn guarantee<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let found = match self.live.learner().guarantee() {
            Some(Guarantee::ZeroViolation {
                probability,
                bounded_observations,
            }) => ("zero", probability, bounded_observations).into_pyobject(py)?,
            Some(Guarantee::BoundedViolation {
                probability,
                tightening_horizon,
                num_episodes,
            }) => ("bounded", probability, tightening_horizon, num_episodes).into_pyobject(py)?,
            Some(Guarantee::SafeMixtures {
                probability,
                stationary,
                rewards,
                costs,
                support,
            }) => {
                let facts = [
                    ("stationary", stationary),
                    ("rewards", rewards),
                    ("costs", costs),
                    ("support", support),
                ];
                let known = facts.into_iter().filter(|(_, known)| *known);
                let names: Vec<&str> = known.map(|(name, _)| name).collect();
                ("mixture", probability, names).into_pyobject(py)?
            }
            None => return Ok(None),
        };
        Ok(Some(found))
    }

    /// The episode at which pi0 is expected to be left, also beyond the last one; None if there is none.
    fn gate_extrapolation(
        &self,
        py: Python<'_>,
        model: &Bound<'_, Model>,
    ) -> PyResult<Option<u64>> {
        let model = &model.get().model;
        match self.live.learner() {
            AnyLearner::OptPessLp(learner) => call::run(py, || gate_extrapolation(model, learner)),
            _ => Ok(None),
        }
    }

    /// How far the learner is; it does not change.
    fn progress<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let learner = self.live.learner();
        let found = call::run(py, || learner.progress())?;
        let answer = PyDict::new(py);
        answer.set_item("episodes_observed", found.episodes_observed)?;
        answer.set_item("num_episodes", found.num_episodes)?;
        answer.set_item("on_baseline", found.on_baseline)?;
        answer.set_item("certified_cost", found.certified_cost)?;
        answer.set_item("cost_limit", found.cost_limit)?;
        answer.set_item("gate_cost", found.gate.map(|gate| gate.cost))?;
        let threshold = found.gate.and_then(|gate| gate.threshold);
        answer.set_item("gate_threshold", threshold)?;
        answer.set_item("gate_open", found.gate.map(|gate| gate.open))?;
        answer.set_item("tightening_horizon", found.tightening_horizon)?;
        answer.set_item("weight", found.weight)?;
        answer.set_item("episodes_left", found.episodes_left)?;
        Ok(answer)
    }

    /// How a model contradicts what the learner was told of a safe policy, in words; None if it does not.
    fn broken_safety_claim(
        &self,
        py: Python<'_>,
        model: &Bound<'_, Model>,
    ) -> PyResult<Option<String>> {
        let (model, learner) = (&model.get().model, self.live.learner());
        let claim = call::run(py, || SafetyClaim::of(model, learner))?;
        Ok(claim
            .filter(|claim| !claim.holds())
            .map(|claim| claim.to_string()))
    }

    /// Bounds on the costs of a policy by OptPess-Mix's confidence sets: upper, lower, by its own episodes (NaN if it has
    /// played none on trial), and the number of these; each `[M]`.
    #[expect(clippy::type_complexity, reason = "four arrays")]
    fn certify<'py>(
        &self,
        py: Python<'py>,
        policy: &Bound<'py, PyAny>,
    ) -> PyResult<(Vec<f64>, Vec<f64>, Vec<f64>, Vec<u64>)> {
        let AnyLearner::OptPessMix(learner) = self.live.learner() else {
            return Err(PyValueError::new_err(
                "only OptPess-Mix has confidence sets to certify with",
            ));
        };
        let policy = policy_of_shape(policy, learner.shape())?;
        let bounds = call::run(py, || learner.certify(&policy))?;
        let own = |bound: &PolicyBounds| bound.own.unwrap_or((f64::NAN, 0));
        Ok((
            bounds.iter().map(|bound| bound.upper).collect(),
            bounds.iter().map(|bound| bound.lower).collect(),
            bounds.iter().map(|bound| own(bound).0).collect(),
            bounds.iter().map(|bound| own(bound).1).collect(),
        ))
    }

    /// The worst case of a policy's cost over OptPess-Mix's boxes, and the kernel that attains it, `[H - 1, S, A, S]`.
    fn worst_kernel<'py>(
        &self,
        py: Python<'py>,
        policy: &Bound<'py, PyAny>,
        constraint: usize,
    ) -> PyResult<(f64, FloatArray<'py>)> {
        let AnyLearner::OptPessMix(learner) = self.live.learner() else {
            return Err(PyValueError::new_err(
                "only OptPess-Mix has confidence sets",
            ));
        };
        let policy = policy_of_shape(policy, learner.shape())?;
        let constraints = learner.cost_limits().len();
        if constraint >= constraints {
            return Err(to_python(&Error::OutOfRange {
                place: ArrayIndex::scalar("constraint"),
                found: constraint as f64,
                allowed: Interval::closed(0.0, constraints as f64 - 1.0),
            }));
        }
        let (cost, rows) = call::run(py, || learner.model().worst_kernel(&policy, constraint))?;
        let [horizon, states, actions] = learner.shape().sizes();
        Ok((
            cost,
            array_out(py, rows, &[horizon - 1, states, actions, states])?,
        ))
    }

    /// Whether a deployment's episode has not been observed. Several threads may ask at once.
    #[getter]
    fn is_pending(&self) -> bool {
        self.live.pending().is_some()
    }

    /// What it was told, to be compared with what a file says: the sizes, K, and the limits in parts of the ranges.
    fn told(&self) -> ((usize, usize, usize), Option<u64>, Vec<f64>) {
        let learner = self.live.learner();
        let last = learner.terms().num_episodes();
        let last = learner.needs_num_episodes().then_some(last);
        (learner.shape().sizes().into(), last, learner.cost_limits())
    }

    /// An independent copy.
    fn copy(&self) -> PyResult<Self> {
        let live = to_py(self.live.try_clone())?;
        Ok(Self { live })
    }

    /// The state of the learner, to be restored by `from_bytes`.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = to_py(self.live.to_bytes())?;
        PyBytes::new_with(py, bytes.len(), |place| {
            place.copy_from_slice(&bytes);
            Ok(())
        })
    }

    /// A learner from `to_bytes`.
    #[staticmethod]
    fn from_bytes(stored: &[u8]) -> PyResult<Self> {
        match LiveLearner::from_bytes(stored) {
            Ok(live) => Ok(Self { live }),
            Err(error) => Err(PyValueError::new_err(format!(
                "not a stored learner: {error}"
            ))),
        }
    }
}

impl Learner {
    /// A deployment with its policy and what the learner claims of it.
    fn deployment_dict<'py>(
        &mut self,
        py: Python<'py>,
        deployment: &Deployment,
    ) -> PyResult<Bound<'py, PyDict>> {
        let figures = self.live.learner_mut().figures();
        let (policy, uniforms) = to_py(self.live.deployed())?;
        let source: &'static str = deployment.source.into();
        let certificate = deployment.certificate;
        let certificate = certificate.map(|c| (c.cost(), c.limit(), c.repair()));
        let answer = PyDict::new(py);
        answer.set_item("episode", deployment.episode)?;
        answer.set_item("policy", policy_out(py, policy)?)?;
        answer.set_item("uniforms", PyArray::from_slice(py, uniforms))?;
        answer.set_item("source", source)?;
        answer.set_item("certificate", certificate)?;
        let or_nan = |figure: Option<f64>| figure.unwrap_or(f64::NAN);
        answer.set_item("optimistic_reward", or_nan(figures.optimistic_reward))?;
        answer.set_item("biased_cost", or_nan(figures.biased_cost))?;
        let mixture = self.live.learner().mixture();
        let mixture = mixture
            .map(|mixture| mixture_dict(py, mixture))
            .transpose()?;
        answer.set_item("mixture", mixture)?;
        Ok(answer)
    }
}

/// A policy of a learner's shape, `[H, S, A]`.
/// Plans the next episode of a learner. Ctrl-C ends a plan that can be made again; others come to their end before it.
fn plan_next(py: Python<'_>, live: &mut LiveLearner) -> PyResult<Deployment> {
    if live.next_plan_may_be_stopped() {
        let shape = live.learner().shape();
        return call::stoppable(py, shape, || live.next_policy());
    }
    call::run(py, || live.next_policy())
}

fn policy_of_shape(policy: &Bound<'_, PyAny>, shape: Shape) -> PyResult<MarkovPolicy> {
    let input = Input::new("policy", policy)?
        .with_policy_axes()?
        .with_shape(&shape.sizes(), "[H, S, A]")?;
    to_py(MarkovPolicy::new("policy", shape, input.floats()?))
}

/// A copy of a policy, `[H, S, A]`.
fn policy_out<'py>(py: Python<'py>, policy: &MarkovPolicy) -> PyResult<FloatArray<'py>> {
    array_out(py, policy.data().to_vec(), &policy.shape().sizes())
}

/// A mixture with its members, and which of them the coin chose.
fn mixture_dict<'py>(py: Python<'py>, mixture: &Mixture) -> PyResult<Bound<'py, PyDict>> {
    let members = mixture.members().iter().map(|member| {
        let source: &'static str = member.source.into();
        let answer = PyDict::new(py);
        answer.set_item("number", member.number)?;
        answer.set_item("source", source)?;
        answer.set_item("weight", member.weight)?;
        answer.set_item("cost_bounds", member.cost_bounds.clone())?;
        answer.set_item("policy", policy_out(py, member.policy.policy())?)?;
        Ok(answer)
    });
    let members = members.collect::<PyResult<Vec<_>>>()?;
    let answer = PyDict::new(py);
    answer.set_item("number", mixture.number())?;
    answer.set_item("members", members)?;
    answer.set_item("chosen", mixture.chosen())?;
    answer.set_item("limits", mixture.limits().to_vec())?;
    answer.set_item("cost_bounds", mixture.cost_bounds().to_vec())?;
    Ok(answer)
}

/// A safe policy `[H, S, A]`; without a safe cost, that is estimated with the named radius.
fn baseline_in(
    policy: &Bound<'_, PyAny>,
    cost_limit: f64,
    safe_cost: Option<f64>,
    radius: &str,
) -> PyResult<SafeBaseline> {
    let policy = policy_in("baseline", policy)?;
    let radius = match radius {
        "sub-gaussian" => CostRadius::SubGaussian,
        "paper" => CostRadius::Paper,
        other => {
            let allowed = "\"sub-gaussian\" or \"paper\"";
            return Err(unknown_choice("radius", other, allowed));
        }
    };
    to_py(match safe_cost {
        Some(safe) => {
            SafetyMargin::new(cost_limit, safe).and_then(|margin| SafeBaseline::new(policy, margin))
        }
        None => SafeBaseline::estimated(policy, cost_limit, radius),
    })
}

/// K.
fn episodes_in(object: &Bound<'_, PyAny>) -> PyResult<u64> {
    count_up_to("num_episodes", object, MAX_EPISODES as f64).map(|count| count as u64)
}

/// K, delta and the rule.
fn terms(
    num_episodes: &Bound<'_, PyAny>,
    failure_probability: f64,
    factor: Option<f64>,
) -> PyResult<LearningTerms> {
    let num_episodes = episodes_in(num_episodes)?;
    let rule = factor.map_or(Ok(ConfidenceRule::Theorem), ConfidenceRule::scaled);
    to_py(rule.and_then(|rule| LearningTerms::new(num_episodes, failure_probability, rule)))
}

/// State or action numbers; a number that does not fit 32 bits is out of range.
fn indices(name: &'static str, object: &Bound<'_, PyAny>, count: usize) -> PyResult<Vec<u32>> {
    let values = Input::new(name, object)?.with_rank(1, "[H]")?.integers()?;
    let allowed = Interval::closed(0.0, (count - 1) as f64);
    let each = values
        .iter()
        .enumerate()
        .map(|(step, &value)| match u32::try_from(value) {
            Ok(index) if (index as usize) < count => Ok(index),
            _ => Err(to_python(&Error::OutOfRange {
                place: ArrayIndex::new(name, &[step]),
                found: value as f64,
                allowed,
            })),
        });
    each.collect()
}

/// The state that a step leads to, counted from 0. Any state is taken after the last step.
#[inline]
fn state_in(step: usize, state: &Bound<'_, PyAny>, live: &LiveLearner) -> PyResult<usize> {
    let place = || ArrayIndex::new("states", &[step]);
    index_in(state, "the state of a step", place, || {
        live.learner().shape().num_states()
    })
}

/// A state, a step or an action, counted from 0. What fits a word is returned as it is; the core compares it.
#[inline]
fn index_in(
    object: &Bound<'_, PyAny>,
    what: &'static str,
    place: impl Fn() -> ArrayIndex,
    count: impl Fn() -> usize,
) -> PyResult<usize> {
    if let Ok(index) = object.extract::<usize>() {
        return Ok(index);
    }
    let integer = object.call_method0(intern!(object.py(), "__index__"));
    Err(to_python(&match integer {
        Ok(integer) => Error::OutOfRange {
            place: place(),
            found: integer.extract().unwrap_or(f64::INFINITY),
            allowed: Interval::closed(0.0, count() as f64 - 1.0),
        },
        Err(_) => Error::WrongType {
            what,
            found: type_name(object),
            allowed: "a whole number",
        },
    }))
}

/// A real number.
#[inline]
fn number_in(what: &'static str, object: &Bound<'_, PyAny>) -> PyResult<f64> {
    object.extract().map_err(|_| {
        to_python(&Error::WrongType {
            what,
            found: type_name(object),
            allowed: "a number",
        })
    })
}

/// The cost of a step, or several costs.
enum StepCosts {
    One([f64; 1]),
    Several(Vec<f64>),
}

impl AsRef<[f64]> for StepCosts {
    fn as_ref(&self) -> &[f64] {
        match self {
            Self::One(cost) => cost,
            Self::Several(costs) => costs,
        }
    }
}

#[inline]
fn costs_in(object: &Bound<'_, PyAny>) -> PyResult<StepCosts> {
    if let Ok(cost) = object.extract() {
        return Ok(StepCosts::One([cost]));
    }
    match object.extract() {
        Ok(costs) => Ok(StepCosts::Several(costs)),
        Err(_) => number_in("the cost of a step", object).map(|cost| StepCosts::One([cost])),
    }
}

/// The action of a deployment: drawn by the number of its step from the row of its policy.
#[pyfunction]
pub fn draw_action(
    policy: PyReadonlyArrayDyn<'_, f64>,
    uniforms: PyReadonlyArrayDyn<'_, f64>,
    step: &Bound<'_, PyAny>,
    state: &Bound<'_, PyAny>,
) -> PyResult<usize> {
    let (policy, uniforms) = (policy.as_array(), uniforms.as_array());
    let [horizon, num_states, _] = *policy.shape() else {
        return Err(PyValueError::new_err("policy must have the axes [H, S, A]"));
    };
    let index = |name, object: &Bound<'_, PyAny>, count: usize| {
        let place = || ArrayIndex::scalar(name);
        match index_in(object, name, place, || count)? {
            found if found < count => Ok(found),
            found => Err(to_python(&Error::OutOfRange {
                place: place(),
                found: found as f64,
                allowed: Interval::closed(0.0, count as f64 - 1.0),
            })),
        }
    };
    let step = index("step", step, horizon.min(uniforms.len()))?;
    let state = index("state", state, num_states)?;
    let row = policy.slice(numpy::ndarray::s![step, state, ..]);
    Ok(draw(row.iter().copied().enumerate(), uniforms[[step]]))
}

/// The seed of one episode of an environment.
#[pyfunction]
pub fn episode_seed(seed: u64, episode: u64) -> u64 {
    optpess_core::random::episode_seed(seed, episode)
}

/// Refuses a safe cost that is not below the limit.
#[pyfunction]
pub fn check_margin(cost_limit: f64, safe_cost: f64) -> PyResult<()> {
    to_py(SafetyMargin::new(cost_limit, safe_cost)).map(|_| ())
}

/// A learner that is given only its margin, by the name of its algorithm.
#[pyfunction]
#[expect(
    clippy::too_many_arguments,
    reason = "the Input line of the algorithm boxes"
)]
pub fn margin_learner(
    algorithm: &str,
    sizes: (usize, usize, usize),
    initial: &Bound<'_, PyAny>,
    cost_limit: f64,
    safe_cost: f64,
    num_episodes: &Bound<'_, PyAny>,
    failure_probability: f64,
    factor: Option<f64>,
) -> PyResult<Learner> {
    let terms = terms(num_episodes, failure_probability, factor)?;
    let shape = to_py(Shape::new(sizes.0, sizes.1, sizes.2))?;
    let initial = initial_in(initial, shape.num_states())?;
    let margin = to_py(SafetyMargin::new(cost_limit, safe_cost))?;
    let learner: Result<AnyLearner, Error> = match algorithm {
        "optpess-primaldual" => {
            OptPessPrimalDual::new(shape, initial, margin, terms).map(Into::into)
        }
        "unconstrained" => {
            UnconstrainedOptimistic::new(shape, initial, margin, terms).map(Into::into)
        }
        "optcmdp" => OptCmdp::new(shape, initial, margin, terms).map(Into::into),
        "optcmdp-bonus" => OptCmdpBonus::new(shape, initial, margin, terms).map(Into::into),
        "optdual-cmdp" => OptDualCmdp::new(shape, initial, margin, terms).map(Into::into),
        "optprimaldual-cmdp" => {
            OptPrimalDualCmdp::new(shape, initial, margin, terms).map(Into::into)
        }
        "opdop" => Opdop::new(shape, initial, margin, terms).map(Into::into),
        other => return Err(unknown_choice("algorithm", other, "those of optpess")),
    };
    to_py(learner).map(Learner::from)
}

/// OptPess-Mix; `settings` holds the arguments that have names.
#[pyfunction]
pub fn optpess_mix(
    initial: &Bound<'_, PyAny>,
    baseline: &Bound<'_, PyAny>,
    cost_limits: Vec<f64>,
    safe_costs: Option<Vec<f64>>,
    settings: &Bound<'_, PyDict>,
) -> PyResult<Learner> {
    let policy = policy_in("baseline", baseline)?;
    let shape = policy.shape();
    let initial = initial_in(initial, shape.num_states())?;
    let baseline = match &safe_costs {
        Some(costs) => {
            let margins = cost_limits.iter().zip(costs);
            let margins = margins.map(|(&limit, &safe)| SafetyMargin::new(limit, safe));
            to_py(
                margins
                    .collect::<Result<Vec<_>, _>>()
                    .and_then(|m| LimitedBaseline::new(policy, &m)),
            )
        }
        None => to_py(LimitedBaseline::estimated(policy, &cost_limits)),
    }?;
    let given = |name: &str| {
        settings
            .get_item(name)
            .map(|found| found.filter(|value| !value.is_none()))
    };
    let number = |name: &str| match given(name)? {
        Some(value) => value.extract::<f64>(),
        None => Err(PyValueError::new_err(format!("{name} is missing"))),
    };
    let costs = given("costs")?.map(|costs| -> PyResult<Vec<Signal>> {
        let each = costs.try_iter()?;
        each.map(|cost| signal_in("costs", &cost?, shape)).collect()
    });
    let support = given("support")?.map(|mask| -> PyResult<Support> {
        let (mask, sizes) = (Input::new("support", &mask)?, shape.sizes());
        let rank = mask.shape().len();
        let per_step = [sizes[0], sizes[1], sizes[2], sizes[1]];
        let expected = if rank == 3 {
            &per_step[1..]
        } else {
            &per_step[..]
        };
        let mask = mask.with_shape(expected, "[H, S, A, S] or [S, A, S]")?;
        let mask: Vec<bool> = mask.floats()?.iter().map(|&entry| entry > 0.0).collect();
        to_py(Support::new(shape, &mask))
    });
    let rewards = given("rewards")?.map(|rewards| signal_in("rewards", &rewards, shape));
    let settings = MixSettings {
        failure_probability: number("failure_probability")?,
        radius_factor: number("radius_factor")?,
        knowledge: Knowledge {
            stationary: number("stationary")? > 0.0,
            rewards: rewards.transpose()?,
            costs: costs.transpose()?,
            support: support.transpose()?,
        },
        observations: match given("variance_proxy")? {
            None => Observations::Bounded,
            Some(proxy) => Observations::SubGaussian {
                variance_proxy: proxy.extract()?,
            },
        },
        exploration: Exploration {
            share: number("share")?,
            least_share: number("least_share")?,
            threshold: number("threshold")?,
        },
        replan_growth: number("replan_growth")?,
        seed: match given("seed")? {
            Some(seed) => seed.extract()?,
            None => 0,
        },
    };
    let learner = to_py(OptPessMix::new(initial, baseline, settings))?;
    Ok(AnyLearner::from(learner).into())
}

/// The learner that always plays the baseline.
#[pyfunction]
pub fn always_baseline(
    initial: &Bound<'_, PyAny>,
    baseline: &Bound<'_, PyAny>,
    cost_limit: f64,
    safe_cost: Option<f64>,
    radius: &str,
    num_episodes: &Bound<'_, PyAny>,
) -> PyResult<Learner> {
    let num_episodes = episodes_in(num_episodes)?;
    let baseline = baseline_in(baseline, cost_limit, safe_cost, radius)?;
    let initial = initial_in(initial, baseline.policy().shape().num_states())?;
    let learner = to_py(AlwaysBaseline::new(initial, baseline, num_episodes))?;
    Ok(AnyLearner::from(learner).into())
}

/// C-UCRL, which is given the transitions.
#[pyfunction]
#[expect(
    clippy::too_many_arguments,
    reason = "the Input line of the algorithm box"
)]
pub fn cucrl(
    transitions: &Bound<'_, PyAny>,
    initial: &Bound<'_, PyAny>,
    baseline: &Bound<'_, PyAny>,
    cost_limit: f64,
    safe_cost: f64,
    num_episodes: &Bound<'_, PyAny>,
    failure_probability: f64,
    factor: Option<f64>,
) -> PyResult<Learner> {
    let terms = terms(num_episodes, failure_probability, factor)?;
    let baseline = baseline_in(baseline, cost_limit, Some(safe_cost), "sub-gaussian")?;
    let shape = baseline.policy().shape();
    let initial = initial_in(initial, shape.num_states())?;
    let kernel = kernel_of_shape(transitions, shape)?;
    let transitions = to_py(KnownTransitions::new(shape, &kernel))?;
    let learner = to_py(Cucrl::new(transitions, initial, baseline, terms))?;
    Ok(AnyLearner::from(learner).into())
}

/// S-OPS in its stochastic form.
#[pyfunction]
#[expect(
    clippy::too_many_arguments,
    reason = "the Input line of the algorithm box"
)]
pub fn sops(
    initial: &Bound<'_, PyAny>,
    baseline: &Bound<'_, PyAny>,
    cost_limit: f64,
    safe_cost: f64,
    num_episodes: &Bound<'_, PyAny>,
    failure_probability: f64,
    factor: Option<f64>,
    replan_growth: f64,
    seed: u64,
) -> PyResult<Learner> {
    let terms = terms(num_episodes, failure_probability, factor)?;
    let baseline = policy_in("baseline", baseline)?;
    let initial = initial_in(initial, baseline.shape().num_states())?;
    let margin = to_py(SafetyMargin::new(cost_limit, safe_cost))?;
    let learner = to_py(Sops::new(
        initial,
        baseline,
        margin,
        terms,
        replan_growth,
        seed,
    ))?;
    Ok(AnyLearner::from(learner).into())
}
