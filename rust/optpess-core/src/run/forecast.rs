//! The forecast of the episode at which Algorithm 1 leaves pi0, from expected counts instead of sampled ones.

use crate::error::Result;
use crate::evaluate::occupancy;
use crate::learn::{GateOpening, Learner, OptPessLp};
use crate::model::ConstrainedMdp;
use crate::run::replicate::check_model;
use crate::table::StepSignal;

/// The episode (from 0) at which Algorithm 1 is expected to leave pi0. None if that is not within the learner's K
/// episodes, if c0 is still to be estimated, or under the rule Sharp.
pub fn gate_forecast(model: &ConstrainedMdp, learner: &OptPessLp) -> Result<Option<u64>> {
    let found = gate_extrapolation(model, learner)?;
    Ok(found.filter(|&first| first < learner.terms().num_episodes()))
}

/// The episode (from 0) at which Algorithm 1 would leave pi0 if it played on, within or beyond its K episodes: the first
/// at which the pessimistic cost of pi0 with expected counts k q(h,s,a) falls below (tau + c0)/2. None if that is not
/// within 10^18 episodes, if c0 is still to be estimated, or under the rule Sharp, whose bonuses depend on what will be
/// observed.
///
/// The bonus keeps the learner's own K, which enters through the logarithm Z only: a learner that is given a larger K
/// leaves pi0 somewhat later, by the ratio of the two Z.
///
/// The forecast uses the true kernel instead of the empirical one and ignores the variance of the counts; both
/// have little effect by the time the gate opens.
pub fn gate_extrapolation(model: &ConstrainedMdp, learner: &OptPessLp) -> Result<Option<u64>> {
    check_model(model, learner)?;
    let (Some(margin), Some(bonus)) = (learner.margin(), learner.model().bonus_of_visits()) else {
        return Ok(None);
    };
    let pi0 = learner.baseline().policy();
    let opening = GateOpening {
        share: &occupancy(pi0, model.kernel(), model.initial())?,
        bonus,
        margin: &margin,
    };
    let (cost, pairs) = (&model.costs()[0], model.shape().pairs());
    Ok(opening.first(0, |row| cost.at(row / pairs, row % pairs), |_| 0.0))
}
