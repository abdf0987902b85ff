//! The forecast of the episode at which Algorithm 1 leaves pi0, from expected counts instead of sampled ones.

use crate::confidence::bisect_first;
use crate::error::Result;
use crate::evaluate::occupancy;
use crate::learn::{Learner, OptPessLp};
use crate::model::ConstrainedMdp;
use crate::run::replicate::check_model;
use crate::table::StepSignal;

/// The episode (from 0) at which Algorithm 1 is expected to leave pi0: the first at which the
/// pessimistic cost of pi0 with expected counts k q(h,s,a) falls below (tau + c0)/2. None if that is
/// not within the learner's K episodes, or if c0 is still to be estimated.
///
/// The forecast uses the true kernel instead of the empirical one and ignores the variance of the counts; both
/// have little effect by the time the gate opens.
pub fn gate_forecast(model: &ConstrainedMdp, learner: &OptPessLp) -> Result<Option<u64>> {
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
    let num_episodes = learner.terms().num_episodes();
    let first = bisect_first(0..num_episodes, open);
    Ok((first < num_episodes).then_some(first))
}
