//! What OptPess-Mix has seen, and the confidence sets and tables that follow from it.

use serde::{Deserialize, Serialize};

use crate::actions::StandIns;
use crate::certify::{PolicyBounds, WorstCase};
use crate::confidence::{BetaMixture, ConfidenceRule, ConfidenceSets, LearningTerms, MAX_EPISODES};
use crate::confidence::{Guarantee, Observations, SubGaussianMixture};
use crate::error::{ArrayIndex, Error, Result};
use crate::estimate::{Estimates, Tally};
use crate::knowledge::Knowledge;
use crate::learn::mix_settings::SETS_SHARE;
use crate::learn::proposals::{Known, PlanTables};
use crate::learn::stored::check;
use crate::learn::{BiasedSignals, Experience, LimitedBaseline, MixSettings};
use crate::model::InitialDistribution;
use crate::number::from_count;
use crate::policy::{MarkovPolicy, Played};
use crate::table::Signal;
use crate::trajectory::Trajectory;

/// Declared means are refused when the interval of this threshold, ln(1/alpha), leaves them out.
const CONTRADICTION: f64 = 25.0;

/// Counts, confidence sets, and when to plan again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PlausibleModel {
    pub(super) experience: Experience,
    knowledge: Knowledge,
    observations: Observations,
    tally: Tally,
    sets: ConfidenceSets,
    replan_growth: f64,
    replan_at: Vec<u64>,    // [rows], visits at which a new plan is due
    refreshed_at: Vec<u64>, // [rows], visits when the sets were refreshed last
    threshold: f64,
    upper_cost: Signal,
    /// Follow from the counts; None until the next plan of a learner that was stored.
    #[serde(skip)]
    tables: Option<Box<PlanTables>>,
}

impl PlausibleModel {
    /// Refuses stored parts that do not fit each other.
    pub(super) fn check_stored(&self, num_limits: usize) -> Result<()> {
        let (shape, rows) = (self.experience.shape(), self.tally.num_rows());
        self.tally.check_stored()?;
        let fits = self.tally.shape() == shape
            && self.tally.num_costs() == num_limits
            && self.tally.is_pooled() == self.knowledge.stationary
            && self.sets.fits(&self.tally)
            && [&self.replan_at, &self.refreshed_at]
                .iter()
                .all(|list| list.len() == rows);
        check("the counts of a learner", fits)?;
        let bounds = &self.upper_cost;
        let signals = bounds.shape() == shape && !bounds.is_stationary();
        check("the signals of a learner", signals)?;
        self.knowledge.check(shape, num_limits)
    }

    /// Nothing seen yet.
    pub(super) fn new(
        initial: InitialDistribution,
        baseline: &LimitedBaseline,
        settings: MixSettings,
    ) -> Result<Self> {
        let (shape, num_constraints) = (baseline.policy().shape(), baseline.limits().len());
        let (knowledge, observations) = (settings.knowledge, settings.observations);
        let delta = settings.failure_probability;
        knowledge.check(shape, num_constraints)?;
        let terms = LearningTerms::new(MAX_EPISODES, delta, ConfidenceRule::Theorem)?;
        let tally = Tally::new(shape, knowledge.stationary, num_constraints)?;
        let levels = (SETS_SHARE * delta, settings.radius_factor);
        let sets = ConfidenceSets::new(&tally, &knowledge, observations, levels)?;
        Ok(Self {
            experience: Experience::new(Estimates::new(shape)?, initial, terms),
            sets,
            replan_at: vec![1; tally.num_rows()],
            refreshed_at: vec![0; tally.num_rows()],
            knowledge,
            observations,
            tally,
            replan_growth: settings.replan_growth,
            threshold: settings.exploration.threshold,
            upper_cost: Signal::new("costs", shape, vec![1.0; shape.triples()])?,
            tables: None,
        })
    }

    /// Counts.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The confidence sets as of the last plan.
    #[must_use]
    pub fn sets(&self) -> &ConfidenceSets {
        &self.sets
    }

    /// Counts one episode; returns whether a new plan is due. Refuses an episode out of turn, of another shape or that
    /// contradicts what was declared, and changes nothing then. Writes the total costs, by known means where costs are
    /// known.
    pub(super) fn observe(&mut self, seen: &Trajectory, totals: &mut Vec<f64>) -> Result<bool> {
        self.check(seen)?;
        self.experience.observe(seen)?;
        let (horizon, costs) = (seen.shape().horizon(), seen.costs());
        let (sets, known, replan_at) = (&mut self.sets, &self.knowledge.costs, &self.replan_at);
        let (num_costs, pairs) = (self.tally.num_costs(), seen.shape().pairs());
        let (mut due, mut observed) = (false, Ok(()));
        totals.clear();
        totals.resize(num_costs, 0.0);
        self.tally.count(seen, |row, step, visits| {
            due |= visits >= replan_at[row];
            let own = (0..num_costs).map(|m| costs[m * horizon + step]);
            if let Err(error) = sets.observe(row, own) {
                observed = Err(error);
            }
            for (m, total) in totals.iter_mut().enumerate() {
                *total += match known {
                    Some(known) => known[m].step(step)[row % pairs],
                    None => costs[m * horizon + step],
                };
            }
        })?;
        if let Some(actions) = self.experience.actions() {
            self.tally.count_stand_ins(seen, actions, |row, step| {
                let own = (0..num_costs).map(|m| costs[m * horizon + step]);
                if let Err(error) = sets.observe(row, own) {
                    observed = Err(error);
                }
            });
        }
        observed.map(|()| due)
    }

    /// Sets which actions exist, before the first plan.
    pub(super) fn restrict(&mut self, actions: &StandIns) {
        self.experience.restrict(actions);
        self.knowledge.restrict(actions);
        self.sets.restrict(actions);
    }

    fn check(&self, seen: &Trajectory) -> Result<()> {
        let shape = self.tally.shape();
        self.tally.check_costs(seen)?;
        if seen.shape() == shape {
            self.tally.check(seen)?;
        }
        self.sets.check(seen)?;
        if self.knowledge.support.is_none() || seen.shape() != shape {
            return Ok(());
        }
        for step in 0..shape.horizon() - 1 {
            let (state, action) = (seen.states()[step] as usize, seen.actions()[step] as usize);
            let (pair, next) = (shape.pair(state, action), seen.states()[step + 1]);
            self.knowledge
                .check_successor(step, pair, next, shape.num_actions())?;
        }
        Ok(())
    }

    /// Narrows the sets of all rows that were visited since the last plan, and brings the tables up to date.
    pub(super) fn refresh(&mut self) -> Result<()> {
        let stored = self.tables.is_none();
        let tables = match self.tables.take() {
            Some(tables) => tables,
            None => Box::new(PlanTables::new(&self.tally, self.threshold)?),
        };
        let tables = self.tables.insert(tables);
        for row in 0..self.tally.num_rows() {
            let visits = self.tally.visits(row);
            let changed = visits != self.refreshed_at[row];
            if changed {
                self.sets.refresh(row, &self.tally)?;
                self.refreshed_at[row] = visits;
                let grown = (from_count(visits) * (1.0 + self.replan_growth)).ceil();
                self.replan_at[row] = (grown as u64).max(visits + 1);
            }
            if changed || stored {
                tables.optimism.refresh(row, &self.tally, &self.knowledge);
            }
        }
        tables.refresh(&self.tally, &self.knowledge)?;
        self.check_declared_means()
    }

    /// Refuses declared means that the observations contradict.
    fn check_declared_means(&self) -> Result<()> {
        let tables = [(
            "rewards",
            self.knowledge.rewards.as_ref().map(std::slice::from_ref),
        )];
        let tables = tables
            .into_iter()
            .chain([("costs", self.knowledge.costs.as_deref())]);
        for (name, declared) in tables {
            for (m, declared) in declared.into_iter().flatten().enumerate() {
                for row in 0..self.tally.num_rows() {
                    self.check_declared(name, m, declared, row)?;
                }
            }
        }
        Ok(())
    }

    fn check_declared(
        &self,
        name: &'static str,
        m: usize,
        declared: &Signal,
        row: usize,
    ) -> Result<()> {
        let (visits, (step, pair)) = (from_count(self.tally.visits(row)), self.tally.place(row));
        let actions = self.tally.shape().num_actions();
        let index = [step, pair / actions, pair % actions];
        let exists = |actions: &StandIns| actions.exists(index[1], index[2]);
        if visits < 1.0 || !self.experience.actions().is_none_or(exists) {
            return Ok(());
        }
        let sum = if name == "rewards" {
            self.tally.reward_sum(row)
        } else {
            self.tally.cost_sum(row, m)
        };
        let (low, high) = match self.observations {
            Observations::Bounded => BetaMixture::from_threshold(CONTRADICTION, 0.0)?
                .interval(visits, sum.clamp(0.0, visits)),
            Observations::SubGaussian { variance_proxy } => {
                let sequence = SubGaussianMixture::from_threshold(variance_proxy, CONTRADICTION)?;
                sequence.interval(visits, sum, (f64::NEG_INFINITY, f64::INFINITY))
            }
        };
        let mean = declared.step(step)[pair];
        if low <= mean && mean <= high {
            return Ok(());
        }
        let place = if self.tally.is_pooled() {
            &index[1..]
        } else {
            &index[..]
        };
        Err(Error::KnowledgeContradicted {
            place: ArrayIndex::new(name, place),
            declared: format!("{mean}"),
            found: format!("{visits} observations average {}", sum / visits),
        })
    }

    /// The tables of the last refresh and what a plan starts from; the baseline's reward is left to be estimated.
    pub(super) fn plan_from<'a>(
        &'a mut self,
        limits: &'a [f64],
        safe_costs: &'a [f64],
    ) -> Option<(&'a mut PlanTables, Known<'a>)> {
        let known = Known {
            tally: &self.tally,
            sets: &self.sets,
            initial: self.experience.initial(),
            actions: self.experience.actions(),
            limits,
            safe_costs,
            safe_reward: 0.0,
        };
        self.tables.as_deref_mut().map(|tables| (tables, known))
    }

    /// Zero violation, with what was declared to be known; None if the radii were scaled.
    pub(super) fn guarantee(&self) -> Option<Guarantee> {
        let guarantee = Guarantee::SafeMixtures {
            probability: 1.0 - self.experience.terms().failure_probability(),
            stationary: self.knowledge.stationary,
            rewards: self.knowledge.rewards.is_some(),
            costs: self.knowledge.costs.is_some(),
            support: self.knowledge.support.is_some(),
        };
        self.sets.keep_guarantee().then_some(guarantee)
    }

    /// The upper ends of the first cost, as of the last refresh, and by how much they exceed the averages.
    pub(super) fn signals(&mut self) -> BiasedSignals<'_> {
        self.experience.estimates.refresh_with(|_| {}); // P-hat for each step, which no plan of this learner uses
        let (shape, tally) = (self.tally.shape(), &self.tally);
        for step in 0..shape.horizon() {
            for pair in 0..shape.pairs() {
                let upper = self.sets.cost(tally.row(step, pair), 0).1;
                self.upper_cost.set(step, pair, upper);
            }
        }
        let rows = (0..shape.triples()).map(|flat| {
            let (step, pair) = (flat / shape.pairs(), flat % shape.pairs());
            let row = tally.row(step, pair);
            self.upper_cost.step(step)[pair] - tally.mean_cost(row, 0)
        });
        let bonuses = rows.collect();
        BiasedSignals::new(None, &self.upper_cost, bonuses)
    }

    /// The sets narrowed by all that was seen, also since the last plan.
    fn sets_now(&self) -> Result<ConfidenceSets> {
        let mut sets = self.sets.clone();
        for row in 0..self.tally.num_rows() {
            sets.refresh(row, &self.tally)?;
        }
        Ok(sets)
    }

    /// The worst case of a policy's cost over the boxes, from all that was seen, and the kernel that attains it,
    /// `[H - 1, S, A, S]`. Refuses a policy that plays an action that does not exist.
    pub fn worst_kernel(
        &self,
        policy: &MarkovPolicy,
        constraint: usize,
    ) -> Result<(f64, Vec<f64>)> {
        self.experience.check_policy("policy", policy)?;
        let mut evaluator = WorstCase::new(self.tally.shape())?;
        let sets = self.sets_now()?;
        let initial = self.experience.initial();
        evaluator.worst_kernel(policy, (&sets, &self.tally), constraint, initial)
    }

    /// The bounds of a policy for every constraint, from all that was seen.
    pub(super) fn bounds_of(
        &self,
        policy: &MarkovPolicy,
        own: Option<Vec<(f64, u64)>>,
    ) -> Result<Vec<PolicyBounds>> {
        let sets = self.sets_now()?;
        let (mut evaluator, initial) = (
            WorstCase::new(self.tally.shape())?,
            self.experience.initial(),
        );
        let played = Played::Policy(policy);
        let constraints = 0..self.tally.num_costs();
        Ok(constraints
            .map(|m| PolicyBounds {
                upper: evaluator.upper(played, (&sets, &self.tally), m, initial),
                lower: evaluator.lower(played, (&sets, &self.tally), m, initial),
                own: own.as_ref().map(|own| own[m]),
            })
            .collect())
    }
}
