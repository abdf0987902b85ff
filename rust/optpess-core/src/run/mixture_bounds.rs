//! The cost bounds of mixtures and of their members against the true costs, for the audit.

use serde::{Deserialize, Serialize};

use crate::learn::Mixture;
use crate::run::audit::Check;
use crate::run::judge::MixtureJudge;

/// The bounds of the last mixture, so that each bound is checked once.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct MixtureBounds {
    number: Option<u64>,
    /// The number and the cost bounds of each member.
    members: Vec<(u64, Vec<f64>)>,
}

impl MixtureBounds {
    /// Whether a mixture is another than the last.
    pub(crate) fn is_new(&self, mixture: &Mixture) -> bool {
        self.number != Some(mixture.number())
    }

    /// Passes each new bound to `note`, with its check and the true cost.
    pub(crate) fn check(
        &mut self,
        mixture: &Mixture,
        judged: &MixtureJudge<'_>,
        mut note: impl FnMut(Check, f64, f64),
    ) {
        if !self.is_new(mixture) {
            return;
        }
        let mut members = Vec::with_capacity(mixture.members().len());
        for (member, truth) in mixture.members().iter().zip(judged.members()) {
            let bounds = (member.number, member.cost_bounds.clone());
            if !self.members.contains(&bounds) && !members.contains(&bounds) {
                for (&cost, &bound) in truth.costs.iter().zip(&member.cost_bounds) {
                    note(Check::MemberCost, cost, bound);
                }
            }
            members.push(bounds);
        }
        for (&cost, &bound) in judged.costs().iter().zip(mixture.cost_bounds()) {
            note(Check::CostDominance, cost, bound);
        }
        self.number = Some(mixture.number());
        self.members = members;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::learn::{Member, MemberPolicy, PolicySource};
    use crate::model::{
        ConstrainedMdp, InitialDistribution, Kernel, ObservationNoise, Slices, TransitionKernel,
        UnitSignal,
    };
    use crate::shape::Shape;
    use crate::table::Signal;

    /// One state, one step, two actions, with two costs each.
    fn bandit() -> ConstrainedMdp {
        let shape = Shape::new(1, 1, 2).unwrap();
        let kernel = Kernel::dense(1, 2, Slices::Stationary, vec![1.0, 1.0]).unwrap();
        let signal = |name, values: [f64; 2]| {
            let signal = Signal::new(name, shape, values.to_vec()).unwrap();
            UnitSignal::new(name, &[], signal).unwrap()
        };
        ConstrainedMdp::new(
            TransitionKernel::new(Arc::new(kernel)).unwrap(),
            signal("rewards", [0.25, 1.0]),
            vec![signal("costs", [0.125, 0.75]), signal("costs", [0.25, 0.5])],
            vec![0.5, 0.5],
            InitialDistribution::new(1, vec![1.0]).unwrap(),
            ObservationNoise::Bernoulli,
        )
        .unwrap()
    }

    fn mixture(number: u64, weights: [f64; 2], bounds: [[f64; 2]; 2]) -> Mixture {
        let member = |action: u32| Member {
            number: action.into(),
            source: PolicySource::Bold,
            weight: weights[action as usize],
            cost_bounds: bounds[action as usize].to_vec(),
            policy: Arc::new(
                MemberPolicy::deterministic(Shape::new(1, 1, 2).unwrap(), &[action]).unwrap(),
            ),
        };
        Mixture::new(number, vec![member(0), member(1)], vec![0.5, 0.5]).unwrap()
    }

    #[test]
    fn every_bound_is_checked_once_and_against_the_true_cost() {
        let model = bandit();
        let mut judge = MixtureJudge::new(&model).unwrap();
        let mut bounds = MixtureBounds::default();
        let mut noted = |mixture: &Mixture| {
            let mut found = Vec::new();
            judge.assess(mixture).unwrap();
            bounds.check(mixture, &judge, |check, cost, bound| {
                found.push((check, cost, bound));
            });
            found
        };
        let [loose, tight] = [[0.25, 0.5], [0.125, 0.5]];
        let first = mixture(7, [0.5, 0.5], [loose, [0.75, 0.5]]);
        let expected = [
            (Check::MemberCost, 0.125, 0.25),
            (Check::MemberCost, 0.25, 0.5),
            (Check::MemberCost, 0.75, 0.75),
            (Check::MemberCost, 0.5, 0.5),
            (Check::CostDominance, 0.4375, 0.5),
            (Check::CostDominance, 0.375, 0.5),
        ];
        assert_eq!(noted(&first), expected);
        assert_eq!(noted(&first), []);
        // Other weights: the members are known. A new bound: that member is checked again.
        let reweighted = noted(&mixture(8, [0.75, 0.25], [loose, [0.75, 0.5]]));
        assert!(reweighted.iter().all(|note| note.0 == Check::CostDominance));
        assert_eq!(reweighted.len(), 2);
        let bounded = noted(&mixture(9, [0.75, 0.25], [tight, [0.75, 0.5]]));
        let checked = [
            (Check::MemberCost, 0.125, 0.125),
            (Check::MemberCost, 0.25, 0.5),
        ];
        assert_eq!(bounded[..2], checked);
        assert_eq!(bounded.len(), 4);
    }
}
