//! Episodes of a known model, played with one policy.

use crate::control::Control;
use crate::error::Result;
use crate::fast::BatchedUniforms;
use crate::model::ConstrainedMdp;
use crate::policy::MarkovPolicy;
use crate::simulate::{StreamSet, TabularEnvironment};
use crate::table::untouched_zeros;
use crate::trajectory::Trajectory;

/// What was observed in N episodes of a problem with M costs.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// States, `[N, H]`.
    pub states: Vec<i64>,
    /// Actions, `[N, H]`.
    pub actions: Vec<i64>,
    /// Observed rewards, `[N, H]`.
    pub rewards: Vec<f64>,
    /// Observed costs, `[N, M, H]`.
    pub costs: Vec<f64>,
}

/// Plays episodes of a known model with one policy of its shape.
pub fn sample(
    model: &ConstrainedMdp,
    policy: &MarkovPolicy,
    num_episodes: usize,
    (seed, replicate): (u64, u64),
    control: &Control,
) -> Result<Sample> {
    let (shape, constraints) = (model.shape(), model.costs().len());
    let horizon = shape.horizon();
    let environment = TabularEnvironment::new(model)?;
    let mut streams = StreamSet::<BatchedUniforms>::new(seed, replicate);
    let mut seen = Trajectory::zeros(shape, constraints)?;
    let mut sample = Sample {
        states: untouched_zeros("states [N, H]", num_episodes * horizon)?,
        actions: untouched_zeros("actions [N, H]", num_episodes * horizon)?,
        rewards: untouched_zeros("rewards [N, H]", num_episodes * horizon)?,
        costs: untouched_zeros("costs [N, M, H]", num_episodes * constraints * horizon)?,
    };
    for episode in 0..num_episodes {
        control.begin_episode(episode as u64, num_episodes as u64)?;
        environment.rollout(policy, &mut streams, &mut seen);
        let row = episode * horizon..(episode + 1) * horizon;
        let copy = |targets: &mut [i64], values: &[u32]| {
            for (target, &value) in targets.iter_mut().zip(values) {
                *target = i64::from(value);
            }
        };
        copy(&mut sample.states[row.clone()], seen.states());
        copy(&mut sample.actions[row.clone()], seen.actions());
        sample.rewards[row].copy_from_slice(seen.rewards());
        let row = constraints * horizon;
        sample.costs[episode * row..][..row].copy_from_slice(seen.costs());
    }
    Ok(sample)
}
