//! OptPess-Mix: explore like an optimist, certify like a pessimist, toss a coin.
//!
//! Promise: with probability at least 1 - delta, in every episode the expected cost given the past, over the coin too, is
//! at most tau. Rests on Assumption 2.2 (the expected cost of pi0 is at most c0 < tau), on what is declared of the
//! observations and on the knowledge declared. It needs no number of episodes.
//!
//! The box in words: before each episode toss a coin between policies whose certified costs, weighted, are within the
//! limits. A certificate is the smaller of two upper bounds: the worst case over confidence sets that hold at all times,
//! and a bound from the episodes the policy has played itself. When some count has grown enough, plan again: an explorer,
//! cautious policies and bold ones become candidates, and old candidates stay.
//!
//! Why it is safe: a mixture leaves this file through `deploy` alone, and `Mixture::new` refuses members whose weighted
//! bounds exceed a limit. Who proposes and who weighs does not matter. docs/mixing.md has the proofs.

use serde::{Deserialize, Serialize};

use crate::actions::StandIns;
use crate::certify::PolicyBounds;
use crate::confidence::{Guarantee, SafetyMargin};
use crate::error::Result;
use crate::learn::plausible_model::PlausibleModel;
use crate::learn::portfolio::Portfolio;
use crate::learn::proposals::Proposers;
use crate::learn::{BiasedSignals, Deployment, Experience, Figures, Learner};
use crate::learn::{LimitedBaseline, MixSettings, Mixture, Protocol};
use crate::model::InitialDistribution;
use crate::policy::{MarkovPolicy, Played};
use crate::random::Coin;
use crate::trajectory::Trajectory;

/// The learner.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OptPessMix {
    // Input: pi0, c0, tau; delta, knowledge and observations are in the model.
    pub(super) baseline: LimitedBaseline,
    // What has been seen, and the sets that follow from it.
    pub(super) model: PlausibleModel,
    // The candidates, and who proposes them.
    pub(super) portfolio: Portfolio,
    pub(super) proposers: Proposers,
    // What is deployed.
    mixture: Mixture,
    coin: Coin,
    pub(super) plan_is_due: bool,
    weights_are_due: bool,
    pub(super) totals: Vec<f64>, // of the last episode
}

impl OptPessMix {
    /// A learner that has seen nothing.
    pub fn new(
        initial: InitialDistribution,
        baseline: LimitedBaseline,
        settings: MixSettings,
    ) -> Result<Self> {
        settings.check()?;
        let limits = baseline.limits().to_vec();
        let portfolio = Portfolio::new(&baseline, &settings)?;
        let mixture = Mixture::new(0, vec![portfolio.member((0, 1.0))], limits)?;
        Ok(Self {
            proposers: Proposers::new(baseline.policy(), baseline.limits().len())?,
            coin: Coin::new(settings.seed, 0),
            plan_is_due: true,
            weights_are_due: false,
            totals: Vec::new(),
            model: PlausibleModel::new(initial, &baseline, settings)?,
            baseline,
            portfolio,
            mixture,
        })
    }

    /// New proposals from all that was seen; candidates that may enter the mixture are certified again.
    pub(super) fn plan(&mut self) -> Result<()> {
        self.model.refresh()?;
        let (safe_costs, limits) = (self.portfolio.bounds_of(0), self.baseline.limits().to_vec());
        let Some((tables, mut known)) = self.model.plan_from(&limits, &safe_costs) else {
            return Ok(());
        };
        let pi0 = Played::Policy(self.baseline.policy());
        (known.safe_reward, _) = tables.estimate(pi0, known.initial);
        let mut proposals = self.proposers.propose(tables, &known)?;
        if let Some(actions) = known.actions {
            proposals.fold(actions); // no value changes, and no policy is a candidate twice
        }
        self.portfolio.add(proposals)?;
        self.portfolio
            .estimate(|played| tables.estimate(played, known.initial))?;
        self.portfolio
            .certify(|played| tables.worst_case(played, &known))
    }

    /// Deploys the best mixture of the candidates, as certified now.
    fn deploy(&mut self) -> Result<()> {
        let members = self.portfolio.weigh(self.episodes_observed())?;
        let (number, limits) = (self.mixture.number() + 1, self.baseline.limits().to_vec());
        self.mixture = Mixture::new(number, members, limits)?;
        (self.plan_is_due, self.weights_are_due) = (false, false);
        Ok(())
    }

    /// The bounds of any policy: the worst case over the sets, from above and below, and the bound from own episodes if
    /// it is a candidate on trial. Refuses a policy that plays an action that does not exist.
    pub fn certify(&self, policy: &MarkovPolicy) -> Result<Vec<PolicyBounds>> {
        self.model.experience.check_policy("policy", policy)?;
        let own = self.portfolio.own_bounds(policy);
        self.model.bounds_of(policy, own)
    }

    /// pi0 and its limits.
    pub(crate) fn baseline(&self) -> &LimitedBaseline {
        &self.baseline
    }

    /// Counts, plausible rows and mean costs, for audits.
    #[must_use]
    pub fn model(&self) -> &PlausibleModel {
        &self.model
    }
}

impl Learner for OptPessMix {
    fn next_policy(&mut self) -> Result<Deployment> {
        self.model.experience.protocol.check_plan()?;
        if self.plan_is_due {
            self.plan_or_go_back()?;
        }
        if self.plan_is_due || self.weights_are_due {
            self.deploy()?;
        }
        let source = self.mixture.choose(&mut self.coin).source;
        let episode = self.model.experience.protocol.deploy()?;
        Ok(Deployment::new(episode, source))
    }

    fn observe(&mut self, seen: &Trajectory) -> Result<()> {
        self.plan_is_due |= self.model.observe(seen, &mut self.totals)?;
        let number = self.mixture.chosen_member().number;
        self.weights_are_due |= self.portfolio.record(number, &self.totals)?;
        Ok(())
    }

    fn restrict(&mut self, actions: &StandIns) -> Result<()> {
        self.model.experience.check_restriction(actions)?;
        actions.check_policy("baseline", self.baseline.policy())?;
        self.model.restrict(actions);
        Ok(())
    }

    fn policy(&self) -> &MarkovPolicy {
        self.mixture.chosen_member().policy.policy()
    }

    fn mixture(&self) -> Option<&Mixture> {
        Some(&self.mixture)
    }

    fn set_coin(&mut self, seed: u64, replicate: u64) {
        self.coin = Coin::new(seed, replicate);
    }

    /// The mixture's certified cost bounds its true cost.
    fn figures(&mut self) -> Figures {
        Figures::pessimistic(self.mixture.cost_bounds()[0], None)
    }

    fn guarantee(&self) -> Option<Guarantee> {
        self.model.guarantee()
    }

    fn experience(&self) -> &Experience {
        &self.model.experience
    }

    fn protocol_mut(&mut self) -> &mut Protocol {
        &mut self.model.experience.protocol
    }

    fn margin(&self) -> Option<SafetyMargin> {
        let cost = self.baseline.costs()?[0];
        SafetyMargin::new(self.baseline.limits()[0], cost).ok()
    }

    fn cost_limit(&self) -> f64 {
        self.baseline.limits()[0]
    }

    fn cost_limits(&self) -> Vec<f64> {
        self.baseline.limits().to_vec()
    }

    fn signals(&mut self) -> BiasedSignals<'_> {
        self.model.signals()
    }

    fn inductions(&self) -> u64 {
        self.proposers.inductions()
    }
}
