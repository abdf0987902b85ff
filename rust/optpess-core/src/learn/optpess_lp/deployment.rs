//! How a policy of Algorithm 1 is put into play: nothing above the limit leaves this file.

use crate::error::Result;
use crate::learn::optpess_lp::{Knowledge, OptPessLp};
use crate::learn::{Deployment, PessimisticSet, PolicySource};
use crate::plan::{Certificate, certified};
use crate::policy::MarkovPolicy;

impl OptPessLp {
    /// The first half of [`crate::learn::Learner::next_policy`] for a planner outside the core: deploys pi0 if the
    /// gate is shut, else waits for [`OptPessLp::deploy`].
    pub fn assess(&mut self) -> Result<Option<Deployment>> {
        self.turn.check_plan()?;
        self.lazy = false;
        let (source, set) = self.pessimistic_set()?;
        match set {
            (PessimisticSet::BaselineOnly, cost) => Ok(Some(self.deploy_baseline(source, cost))),
            (PessimisticSet::CostBounded, _) => {
                self.turn.await_candidate();
                Ok(None)
            }
        }
    }

    /// The second half: certifies a policy planned outside and deploys it.
    pub fn deploy(&mut self, policy: MarkovPolicy) -> Result<Deployment> {
        self.turn.check_awaiting()?;
        self.candidate = policy;
        self.deploy_planned()
    }

    pub(super) fn deploy_baseline(
        &mut self,
        source: PolicySource,
        pessimistic_cost: f64,
    ) -> Deployment {
        let version = match self.last {
            Some(last) if last.source != PolicySource::PessimisticSet => last.version,
            last => last.map_or(0, |last| last.version + 1),
        };
        self.deployed(Deployment {
            episode: self.turn.observed(),
            source,
            certificate: None,
            optimistic_reward: f64::NAN,
            biased_cost: pessimistic_cost,
            version,
        })
    }

    /// Re-evaluates the candidate and deploys it only within the limit.
    pub(super) fn deploy_planned(&mut self) -> Result<Deployment> {
        let deployment = self.deploy_certified()?;
        let optimistic_reward = match &self.knowledge {
            Knowledge::Margin(_, reward) => {
                let (kernel, initial) = (self.estimates.kernel(), &self.initial);
                self.evaluator
                    .evaluate(&self.planned, reward, kernel, initial)
            }
            Knowledge::Estimating(_) => f64::NAN,
        };
        Ok(Deployment {
            optimistic_reward,
            ..deployment
        })
    }

    /// The same without the policy's optimistic reward, which no record holds.
    pub(super) fn deploy_certified(&mut self) -> Result<Deployment> {
        let (kernel, initial) = (self.estimates.kernel(), &self.initial);
        let limit = self.baseline.cost_limit();
        let cost =
            self.evaluator
                .evaluate(&self.candidate, &self.pessimistic_cost, kernel, initial);
        let certificate = if cost <= limit {
            Certificate {
                cost,
                limit,
                repair: 0.0,
            }
        } else {
            let (repaired, certificate) = certified(
                self.candidate.clone(),
                self.baseline.policy(),
                &self.pessimistic_cost,
                kernel,
                initial,
                limit,
            )?;
            self.candidate = repaired;
            certificate
        };
        let version = self.put_into_play();
        Ok(self.deployed(Deployment {
            episode: self.turn.observed(),
            source: PolicySource::PessimisticSet,
            certificate: Some(certificate),
            optimistic_reward: f64::NAN,
            biased_cost: certificate.cost,
            version,
        }))
    }

    /// Makes the candidate the policy that is played; its version.
    fn put_into_play(&mut self) -> u64 {
        let planned_last = |last: Deployment| last.source == PolicySource::PessimisticSet;
        let again =
            self.last.is_some_and(planned_last) && self.candidate.has_entries_of(&self.planned);
        std::mem::swap(&mut self.candidate, &mut self.planned);
        let last_version = self.last.map(|last| last.version);
        last_version.map_or(0, |version| version + u64::from(!again))
    }

    #[inline(always)]
    fn deployed(&mut self, deployment: Deployment) -> Deployment {
        self.last = Some(deployment);
        self.turn.planned();
        deployment
    }
}
