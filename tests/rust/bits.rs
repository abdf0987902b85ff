//! All bits of what a run comes to, for comparisons to the last bit. Shared with the bench `fingerprint`.

use optpess_core::record::{ReplicateRecord, SpreadCurve};
use optpess_core::run::{Outcome, Trace};

/// The words of each part, by its name.
pub type Bits = Vec<(&'static str, Vec<u64>)>;

/// A record. No field can be left out: one that is added does not compile until it is here.
pub fn record_bits(record: &ReplicateRecord) -> Bits {
    let ReplicateRecord {
        reward_regret,
        signed_violation,
        strong_violation,
        multiplier,
        deployed_value,
        deployed_cost,
        baseline_share,
        worst_violation,
        violating_episodes,
        first_violation,
        baseline_episodes,
        estimation_episodes,
        first_planned,
        least_slack,
        repairs,
        safe_cost,
        plays,
        weight,
        certified_cost,
        mixtures,
    } = record;
    vec![
        ("reward_regret", numbers(reward_regret)),
        ("signed_violation", numbers(signed_violation)),
        ("strong_violation", numbers(strong_violation)),
        ("multiplier", numbers(multiplier)),
        ("deployed_values", spread(deployed_value)),
        ("deployed_costs", spread(deployed_cost)),
        ("baseline_share", numbers(baseline_share)),
        ("worst_violation", numbers(&[*worst_violation])),
        ("violating_episodes", vec![*violating_episodes]),
        ("first_violation", optional(*first_violation)),
        ("baseline_episodes", vec![*baseline_episodes]),
        ("estimation_episodes", vec![*estimation_episodes]),
        ("first_planned", optional(*first_planned)),
        ("least_slack", numbers(&[*least_slack])),
        ("repairs", vec![repairs.0, repairs.1.to_bits()]),
        ("safe_cost", numbers(&[*safe_cost])),
        ("plays", plays.to_vec()),
        ("weight", numbers(weight)),
        ("certified_cost", numbers(certified_cost)),
        // No word for learners without mixtures.
        (
            "mixtures",
            Some(*mixtures)
                .filter(|&count| count > 0)
                .into_iter()
                .collect(),
        ),
    ]
}

/// A trace, likewise.
pub fn trace_bits(trace: &Trace) -> Bits {
    let Trace {
        states,
        actions,
        rewards,
        costs,
        deployed_value,
        deployed_cost,
        on_baseline,
        multiplier,
    } = trace;
    vec![
        ("states", indices(states)),
        ("actions", indices(actions)),
        ("rewards", numbers(rewards)),
        ("costs", numbers(costs)),
        ("deployed_value", numbers(deployed_value)),
        ("deployed_cost", numbers(deployed_cost)),
        (
            "on_baseline",
            on_baseline.iter().map(|&stayed| stayed.into()).collect(),
        ),
        ("multipliers", numbers(multiplier)),
    ]
}

/// The record, and the trace if there is one.
pub fn outcome_bits(outcome: &Outcome) -> Bits {
    let trace = outcome.trace.as_ref().map(trace_bits);
    let parts = [record_bits(&outcome.record), trace.unwrap_or_default()];
    parts.concat()
}

pub fn numbers(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

pub fn indices(values: &[u32]) -> Vec<u64> {
    values.iter().map(|&value| value.into()).collect()
}

fn spread(curve: &SpreadCurve) -> Vec<u64> {
    let SpreadCurve {
        mean,
        least,
        greatest,
    } = curve;
    [mean, least, greatest].map(|part| numbers(part)).concat()
}

/// Two words, so that no number stands for "none".
fn optional(value: Option<u64>) -> Vec<u64> {
    vec![value.is_some().into(), value.unwrap_or_default()]
}
