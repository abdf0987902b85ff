//! Reads the golden instances, `tests/golden/*.toml`; the format is described beside them.

use std::fs;
use std::path::PathBuf;

use optpess_core::model::{InitialDistribution, Kernel, Slices};
use optpess_core::policy::MarkovPolicy;
use optpess_core::shape::Shape;
use optpess_core::table::Signal;
use serde::Deserialize;
use toml::Value;

use crate::cases::sparse_kernel;

/// A problem with everything that is known about it.
pub struct Instance {
    pub name: String,
    pub shape: Shape,
    pub stationary: bool,
    pub transitions: Vec<f64>, // [H, S, A, S] or, if stationary, [S, A, S]
    pub rewards: Vec<f64>,     // [H, S, A] or [S, A]
    pub costs: Vec<f64>,       // [H, S, A] or [S, A]
    pub initial: InitialDistribution,
    pub limit: f64,
    pub policies: Vec<KnownPolicy>,
    pub unconstrained: KnownOptimum,
    pub constrained: ConstrainedOptimum,
}

/// A policy with its exact values and occupancy.
pub struct KnownPolicy {
    pub name: String,
    pub policy: MarkovPolicy,
    pub reward: f64,
    pub cost: f64,
    pub reward_values: Vec<f64>, // [H + 1, S]
    pub cost_values: Vec<f64>,   // [H + 1, S]
    pub occupancy: Vec<f64>,     // [H, S, A]
}

/// The best that can be done without the limit.
pub struct KnownOptimum {
    pub value: f64,
    pub values: Vec<f64>,  // [H + 1, S]
    pub choices: Vec<u32>, // [H, S]
}

/// The best that can be done within the limit.
pub struct ConstrainedOptimum {
    pub value: f64,
    pub cost: f64,
    pub multiplier: f64,
    /// Deterministic policies whose mixture attains the optimum; others may attain it too.
    pub mixture: Vec<Part>,
}

/// One policy of a mixture.
pub struct Part {
    pub weight: f64,
    pub policy: MarkovPolicy,
    pub reward: f64,
    pub cost: f64,
}

impl Instance {
    /// The kernel in every way in which it can be stored, with the name of that way.
    pub fn kernels(&self) -> Vec<(&'static str, Kernel)> {
        let [horizon, states, actions] = self.shape.sizes();
        let per_step = self.repeated(&self.transitions);
        let slices = Slices::PerStep(horizon);
        let mut kernels = vec![
            (
                "sparse, per step",
                sparse_kernel(states, actions, slices, &per_step),
            ),
            (
                "dense, per step",
                Kernel::dense(states, actions, slices, per_step).unwrap(),
            ),
        ];
        if self.stationary {
            let once = &self.transitions;
            let slices = Slices::Stationary;
            let dense = Kernel::dense(states, actions, slices, once.clone()).unwrap();
            kernels.push(("dense, stationary", dense));
            kernels.push((
                "sparse, stationary",
                sparse_kernel(states, actions, slices, once),
            ));
        }
        kernels
    }

    /// The reward in every way in which it can be stored.
    pub fn reward_signals(&self) -> Vec<Signal> {
        self.signals("rewards", &self.rewards)
    }

    /// The cost in every way in which it can be stored.
    pub fn cost_signals(&self) -> Vec<Signal> {
        self.signals("costs", &self.costs)
    }

    fn signals(&self, name: &'static str, data: &[f64]) -> Vec<Signal> {
        let mut signals = vec![Signal::new(name, self.shape, self.repeated(data)).unwrap()];
        if self.stationary {
            signals.push(Signal::stationary(name, self.shape, data.to_vec()).unwrap());
        }
        signals
    }

    /// A stationary table repeated for every step; any other as it is.
    fn repeated(&self, data: &[f64]) -> Vec<f64> {
        data.repeat(if self.stationary {
            self.shape.horizon()
        } else {
            1
        })
    }
}

/// Every golden instance, in the order of the file names.
pub fn load_all() -> Vec<Instance> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
        .collect();
    files.sort();
    files
        .iter()
        .map(|path| parse(&fs::read_to_string(path).unwrap()))
        .collect()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawInstance {
    name: String,
    derivation: String,
    horizon: usize,
    states: usize,
    actions: usize,
    stationary: bool,
    transitions: Value,
    rewards: Value,
    costs: Value,
    initial: Value,
    limit: Value,
    policies: Vec<RawPolicy>,
    unconstrained: RawOptimum,
    constrained: RawConstrained,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPolicy {
    name: String,
    probabilities: Value,
    reward: Value,
    cost: Value,
    reward_values: Value,
    cost_values: Value,
    occupancy: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawOptimum {
    value: Value,
    values: Value,
    choices: Vec<Vec<u32>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawConstrained {
    value: Value,
    cost: Value,
    multiplier: Value,
    mixture: Vec<RawPart>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPart {
    weight: Value,
    choices: Vec<Vec<u32>>,
    reward: Value,
    cost: Value,
}

fn parse(text: &str) -> Instance {
    let raw: RawInstance = toml::from_str(text).unwrap();
    assert!(!raw.derivation.trim().is_empty(), "{}", raw.name);
    let shape = Shape::new(raw.horizon, raw.states, raw.actions).unwrap();
    let [horizon, states, actions] = shape.sizes();
    let skipped = usize::from(raw.stationary); // a stationary table lacks the step axis
    let axes = [horizon, states, actions, states];
    let (kernel_axes, signal_axes) = (&axes[skipped..], &axes[skipped..3]);
    let triples = [horizon, states, actions];
    let step_states = [horizon + 1, states];
    let known = |policy: RawPolicy| KnownPolicy {
        policy: MarkovPolicy::new("policy", shape, numbers(&policy.probabilities, &triples))
            .unwrap(),
        reward: number(&policy.reward),
        cost: number(&policy.cost),
        reward_values: numbers(&policy.reward_values, &step_states),
        cost_values: numbers(&policy.cost_values, &step_states),
        occupancy: numbers(&policy.occupancy, &triples),
        name: policy.name,
    };
    let part = |part: RawPart| Part {
        weight: number(&part.weight),
        policy: MarkovPolicy::deterministic(shape, &choices(&part.choices, shape)).unwrap(),
        reward: number(&part.reward),
        cost: number(&part.cost),
    };
    let initial = numbers(&raw.initial, &[states]);
    Instance {
        name: raw.name,
        shape,
        stationary: raw.stationary,
        transitions: numbers(&raw.transitions, kernel_axes),
        rewards: numbers(&raw.rewards, signal_axes),
        costs: numbers(&raw.costs, signal_axes),
        initial: InitialDistribution::new(states, initial).unwrap(),
        limit: number(&raw.limit),
        policies: raw.policies.into_iter().map(known).collect(),
        unconstrained: KnownOptimum {
            value: number(&raw.unconstrained.value),
            values: numbers(&raw.unconstrained.values, &step_states),
            choices: choices(&raw.unconstrained.choices, shape),
        },
        constrained: ConstrainedOptimum {
            value: number(&raw.constrained.value),
            cost: number(&raw.constrained.cost),
            multiplier: number(&raw.constrained.multiplier),
            mixture: raw.constrained.mixture.into_iter().map(part).collect(),
        },
    }
}

/// One action a step and state, flattened.
fn choices(rows: &[Vec<u32>], shape: Shape) -> Vec<u32> {
    assert_eq!(rows.len(), shape.horizon());
    assert!(rows.iter().all(|row| row.len() == shape.num_states()));
    rows.concat()
}

/// A nested list of fractions, flattened; its nesting must be exactly `axes`.
fn numbers(value: &Value, axes: &[usize]) -> Vec<f64> {
    match axes {
        [] => vec![number(value)],
        [length, inner @ ..] => {
            let entries = value.as_array().unwrap_or_else(|| panic!("{value}"));
            assert_eq!(entries.len(), *length, "{value}");
            entries
                .iter()
                .flat_map(|entry| numbers(entry, inner))
                .collect()
        }
    }
}

/// "p/q" or "p". Numerator and denominator are exact in double precision, so their quotient is the
/// double nearest to the fraction.
fn number(value: &Value) -> f64 {
    let text = value.as_str().unwrap_or_else(|| panic!("{value}"));
    let (above, below) = text.split_once('/').unwrap_or((text, "1"));
    let whole = |digits: &str| f64::from(digits.parse::<i32>().unwrap());
    whole(above) / whole(below)
}
