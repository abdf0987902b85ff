//! Random instances for the benches: the same numbers on every machine and in every run.

use optpess_core::model::{InitialDistribution, Kernel, Slices};
use optpess_core::policy::MarkovPolicy;
use optpess_core::shape::Shape;
use optpess_core::table::Signal;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

/// What evaluation needs, for transitions that differ from step to step.
#[derive(Debug)]
pub struct Instance {
    /// The sizes, as the id of a measurement.
    pub id: String,
    pub shape: Shape,
    pub policy: MarkovPolicy,
    pub signal: Signal,
    pub kernel: Kernel,
    pub initial: InitialDistribution,
}

impl Instance {
    /// Every state follows every state; rows are stored in full.
    pub fn dense(num_states: usize, num_actions: usize, horizon: usize) -> Self {
        let mut generator = ChaCha8Rng::seed_from_u64(0);
        let rows = horizon * num_states * num_actions;
        let data = distributions(&mut generator, rows, num_states);
        let slices = Slices::PerStep(horizon);
        let kernel = Kernel::dense(num_states, num_actions, slices, data).expect("a valid kernel");
        Self::around(kernel, "dense", horizon, &mut generator)
    }

    /// Every row has `successors` random successors; stored sparse.
    pub fn sparse(
        num_states: usize,
        num_actions: usize,
        horizon: usize,
        successors: usize,
    ) -> Self {
        let mut generator = ChaCha8Rng::seed_from_u64(0);
        let kernel = sparse_kernel(&mut generator, num_states, num_actions, horizon, successors);
        let kind = format!("sparse{successors}");
        Self::around(kernel, &kind, horizon, &mut generator)
    }

    /// The same problem with its rows stored in full.
    pub fn in_full(&self) -> Self {
        let (states, actions) = (self.shape.num_states(), self.shape.num_actions());
        let data = self.kernel.to_dense().expect("it fits");
        let kernel = Kernel::dense(states, actions, self.kernel.slices(), data).expect("as before");
        Self {
            id: format!("{}-in-full", self.id),
            shape: self.shape,
            policy: self.policy.clone(),
            signal: self.signal.clone(),
            kernel,
            initial: self.initial.clone(),
        }
    }

    fn around(kernel: Kernel, kind: &str, horizon: usize, generator: &mut ChaCha8Rng) -> Self {
        let (num_states, num_actions) = (kernel.num_states(), kernel.num_actions());
        let shape = Shape::new(horizon, num_states, num_actions).expect("sizes above zero");
        let choices = distributions(generator, horizon * num_states, num_actions);
        let rewards = (0..shape.triples()).map(|_| generator.random()).collect();
        let start = distributions(generator, 1, num_states);
        Self {
            id: format!("{num_states},{num_actions},{horizon}-{kind}"),
            shape,
            policy: MarkovPolicy::new("policy", shape, choices).expect("rows are distributions"),
            signal: Signal::new("signal", shape, rewards).expect("finite numbers"),
            kernel,
            initial: InitialDistribution::new(num_states, start).expect("a distribution"),
        }
    }
}

/// The playback buffer of `optpess.zoo.media`: ten states, two actions, ten steps; the signal is the
/// reward, and the cost comes beside it. The policy takes the fast link half the time.
pub fn media() -> (Instance, Vec<f64>) {
    let (size, horizon) = (10, 10);
    let shape = Shape::new(horizon, size, 2).expect("sizes above zero");
    let mut rows = vec![0.0; size * 2 * size];
    let (mut reward, mut cost) = (vec![], vec![]);
    for buffer in 0..size {
        for (action, arrival) in [0.9, 0.1].into_iter().enumerate() {
            let row = &mut rows[(buffer * 2 + action) * size..][..size];
            let (up, down) = (arrival * 0.2, (1.0 - arrival) * 0.8);
            row[(buffer + 1).min(size - 1)] += up;
            row[buffer.saturating_sub(1)] += down;
            row[buffer] += 1.0 - up - down;
            reward.push(f64::from(u8::from(buffer > 0)));
            cost.push(f64::from(u8::from(action == 0)));
        }
    }
    let kernel = Kernel::dense(size, 2, Slices::PerStep(horizon), rows.repeat(horizon));
    let mut start = vec![0.0; size];
    start[0] = 1.0;
    let instance = Instance {
        id: "10,2,10-media".to_owned(),
        shape,
        policy: MarkovPolicy::uniform(shape).expect("it fits"),
        signal: Signal::new("signal", shape, reward.repeat(horizon)).expect("finite numbers"),
        kernel: kernel.expect("a valid kernel"),
        initial: InitialDistribution::new(size, start).expect("a distribution"),
    };
    (instance, cost.repeat(horizon))
}

fn sparse_kernel(
    generator: &mut ChaCha8Rng,
    num_states: usize,
    num_actions: usize,
    horizon: usize,
    successors: usize,
) -> Kernel {
    let rows = horizon * num_states * num_actions;
    let mut states = Vec::with_capacity(rows * successors);
    for _ in 0..rows {
        let start = states.len();
        while states.len() < start + successors {
            let candidate = generator.random_range(0..num_states) as i64;
            if !states[start..].contains(&candidate) {
                states.push(candidate);
            }
        }
        states[start..].sort_unstable();
    }
    let offsets: Vec<i64> = (0..=rows).map(|row| (row * successors) as i64).collect();
    let probabilities = distributions(generator, rows, successors);
    let slices = Slices::PerStep(horizon);
    Kernel::sparse(
        num_states,
        num_actions,
        slices,
        &offsets,
        &states,
        probabilities,
    )
    .expect("a valid kernel")
}

/// `rows` random distributions over `len` outcomes, row after row.
fn distributions(generator: &mut ChaCha8Rng, rows: usize, len: usize) -> Vec<f64> {
    let mut data: Vec<f64> = (0..rows * len)
        .map(|_| generator.random::<f64>() + 1e-3)
        .collect();
    for row in data.chunks_exact_mut(len) {
        let total: f64 = row.iter().sum();
        row.iter_mut().for_each(|entry| *entry /= total);
    }
    data
}
