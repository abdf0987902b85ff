//! The forecast of the episode at which Algorithm 1 leaves pi0, from expected counts instead of sampled ones.

use crate::confidence::bisect_first;
use crate::error::Result;
use crate::evaluate::occupancy;
use crate::learn::{Learner, OptPessLp};
use crate::model::ConstrainedMdp;
use crate::run::replicate::check_model;
use crate::table::StepSignal;

/// The largest episode number that is searched.
const LAST: u64 = 1_000_000_000_000_000_000;

/// The episode (from 0) at which Algorithm 1 is expected to leave pi0. None if that is not within the learner's K
/// episodes, or if c0 is still to be estimated.
pub fn gate_forecast(model: &ConstrainedMdp, learner: &OptPessLp) -> Result<Option<u64>> {
    let found = gate_extrapolation(model, learner)?;
    Ok(found.filter(|&first| first < learner.terms().num_episodes()))
}

/// The episode (from 0) at which Algorithm 1 would leave pi0 if it played on, within or beyond its K episodes: the first
/// at which the pessimistic cost of pi0 with expected counts k q(h,s,a) falls below (tau + c0)/2. None if that is not
/// within 10^18 episodes, or if c0 is still to be estimated.
///
/// The bonus keeps the learner's own K, which enters through the logarithm Z only: a learner that is given a larger K
/// leaves pi0 somewhat later, by the ratio of the two Z.
///
/// The forecast uses the true kernel instead of the empirical one and ignores the variance of the counts; both
/// have little effect by the time the gate opens.
pub fn gate_extrapolation(model: &ConstrainedMdp, learner: &OptPessLp) -> Result<Option<u64>> {
    check_model(model, learner)?;
    let Some(margin) = learner.margin() else {
        return Ok(None);
    };
    let visits = occupancy(learner.baseline().policy(), model.kernel(), model.initial())?;
    let cost = &model.costs()[0];
    let pairs = model.shape().pairs();
    let pessimistic_cost = |episodes: u64| -> f64 {
        let rows = visits.data().iter().enumerate();
        let terms = rows.filter(|&(_, &mass)| mass > 0.0).map(|(row, &mass)| {
            let expected = episodes as f64 * mass;
            let bonus = learner.model().bonus().after(expected);
            mass * (cost.at(row / pairs, row % pairs) + bonus)
        });
        terms.sum()
    };
    let open = |episodes| pessimistic_cost(episodes) < margin.midpoint();
    let first = bisect_first(0..LAST + 1, open);
    Ok((first <= LAST).then_some(first))
}
