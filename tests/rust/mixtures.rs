//! Mixtures in runs: the judge scores the weighted sum of the members, evaluates each once, and the record keeps
//! plays, weights and certified costs.

use std::sync::Arc;

use optpess_core::evaluate::evaluate;
use optpess_core::learn::{Deployment, Member, MemberPolicy, Mixture, PolicySource};
use optpess_core::model::{ConstrainedMdp, UnitSignal};
use optpess_core::policy::MarkovPolicy;
use optpess_core::record::{Recorder, TrueValues};
use optpess_core::run::MixtureJudge;
use optpess_core::table::Signal;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use crate::cases::Problem;

/// A problem of this size with a second cost, the reward.
fn two_costs(sizes: [usize; 3], successors: usize) -> ConstrainedMdp {
    let model = Problem::random_with(sizes, successors, 5).model;
    let unit = |name, signal: &Signal| UnitSignal::new(name, &[], signal.clone()).unwrap();
    ConstrainedMdp::new(
        model.kernel().clone(),
        unit("rewards", model.reward()),
        vec![
            unit("costs", &model.costs()[0]),
            unit("costs", model.reward()),
        ],
        vec![model.limits()[0], 0.5],
        model.initial().clone(),
        model.noise(),
    )
    .unwrap()
}

/// A policy for each number: even ones draw their actions, odd ones do not.
fn policy(model: &ConstrainedMdp, number: u64) -> MemberPolicy {
    let (shape, mut generator) = (model.shape(), ChaCha8Rng::seed_from_u64(number));
    let [horizon, states, actions] = shape.sizes();
    if number % 2 == 1 {
        let actions: Vec<u32> = (0..horizon * states)
            .map(|_| generator.random_range(0..actions as u32))
            .collect();
        return MemberPolicy::deterministic(shape, &actions).unwrap();
    }
    let mut rows: Vec<f64> = (0..shape.triples()).map(|_| generator.random()).collect();
    for row in rows.chunks_exact_mut(actions) {
        let total: f64 = row.iter().sum();
        row.iter_mut().for_each(|entry| *entry /= total);
    }
    MarkovPolicy::new("policy", shape, rows).unwrap().into()
}

fn member(model: &ConstrainedMdp, number: u64, weight: f64) -> Member {
    Member {
        number,
        source: if number == 0 {
            PolicySource::Baseline
        } else {
            PolicySource::Explorer
        },
        weight,
        cost_bounds: vec![0.25; model.costs().len()],
        policy: Arc::new(policy(model, number)),
    }
}

fn mixture(model: &ConstrainedMdp, number: u64, parts: &[(u64, f64)]) -> Mixture {
    let members = parts
        .iter()
        .map(|&(number, weight)| member(model, number, weight));
    Mixture::new(number, members.collect(), model.limits().to_vec()).unwrap()
}

#[test]
fn the_judge_scores_the_weighted_sum_of_the_members() {
    // Few states, many states in lists, many states in full.
    for (sizes, successors) in [([3, 2, 3], 3), ([66, 2, 3], 3), ([66, 2, 3], 66)] {
        let model = two_costs(sizes, successors);
        let mut judge = MixtureJudge::new(&model).unwrap();
        // Members stay, leave and come back.
        let mixtures: [&[(u64, f64)]; 5] = [
            &[(0, 1.0)],
            &[(0, 0.5), (1, 0.25), (2, 0.25)],
            &[(2, 0.125), (0, 0.875)],
            &[(3, 0.5), (1, 0.5)],
            &[(1, 0.25), (1, 0.25), (4, 0.5)],
        ];
        for (number, parts) in mixtures.into_iter().enumerate() {
            let mixture = mixture(&model, number as u64, parts);
            let found = judge.assess(&mixture).unwrap();
            let expected = |signal: &Signal| -> f64 {
                let values = parts.iter().map(|&(number, weight)| {
                    let policy = policy(&model, number);
                    let kernel = model.kernel();
                    weight * evaluate(policy.policy(), signal, kernel, model.initial()).unwrap()
                });
                values.sum()
            };
            let [first, second] = [expected(&model.costs()[0]), expected(&model.costs()[1])];
            let excess = (first - model.limits()[0]).max(second - model.limits()[1]);
            let close = |found: f64, expected: f64| {
                assert!((found - expected).abs() < 1e-12, "{found} {expected}");
            };
            close(found.reward, expected(model.reward()));
            close(found.cost, first);
            close(found.excess, excess);
            close(judge.costs()[0], first);
            close(judge.costs()[1], second);
            assert!(second > model.limits()[1] && found.excess > 0.0);
            let numbers: Vec<u64> = judge.members().iter().map(|values| values.number).collect();
            let members: Vec<u64> = parts.iter().map(|&(number, _)| number).collect();
            assert_eq!(numbers, members, "members that left are dropped");
        }
    }
}

#[test]
fn a_member_is_evaluated_once_and_a_mixture_is_summed_once() {
    let model = two_costs([3, 2, 3], 3);
    let mut judge = MixtureJudge::new(&model).unwrap();
    let first = judge.assess(&mixture(&model, 1, &[(0, 1.0)])).unwrap();
    // What has the number of the last mixture is not looked at.
    let other = mixture(&model, 1, &[(5, 1.0)]);
    assert_eq!(judge.assess(&other).unwrap(), first);
    // Nor is the policy of a member whose number is known, until it has left.
    let disguised = |number| {
        let mut member = member(&model, 0, 1.0);
        member.policy = Arc::new(policy(&model, 5));
        Mixture::new(number, vec![member], model.limits().to_vec()).unwrap()
    };
    assert_eq!(judge.assess(&disguised(2)).unwrap(), first);
    let fifth = judge.assess(&mixture(&model, 3, &[(5, 1.0)])).unwrap();
    assert_ne!(fifth, first);
    assert_eq!(judge.assess(&disguised(4)).unwrap(), fifth);
}

#[test]
fn a_mixture_with_one_member_has_the_bits_of_its_policy() {
    let model = Problem::random([5, 3, 4], 1).model;
    for number in 0..6 {
        let mut judge = MixtureJudge::new(&model).unwrap();
        let found = judge.assess(&mixture(&model, 0, &[(number, 1.0)])).unwrap();
        let mut plain = optpess_core::run::PlainJudge::new(&model).unwrap();
        let expected = plain.assess(policy(&model, number).played()).unwrap();
        assert_eq!(found, expected);
        assert_eq!(
            found.excess.to_bits(),
            (found.cost - model.limits()[0]).to_bits()
        );
    }
}

#[test]
fn a_record_keeps_plays_weights_and_certified_costs() {
    let model = two_costs([3, 2, 3], 3);
    let points = [1, 2, 4, 6];
    let mut recorder = Recorder::new(&points, 1.0, model.limits(), 1);
    let deployed = [
        None, // a policy alone, before the first mixture
        Some(mixture(&model, 0, &[(0, 1.0)])),
        Some(mixture(&model, 0, &[(0, 1.0)])),
        Some(mixture(&model, 1, &[(0, 0.75), (1, 0.25)])),
        Some(mixture(&model, 1, &[(0, 0.75), (1, 0.25)])),
        Some(mixture(&model, 2, &[(1, 1.0)])),
    ];
    let sources = [
        PolicySource::Baseline,
        PolicySource::Baseline,
        PolicySource::Baseline,
        PolicySource::Explorer,
        PolicySource::Baseline,
        PolicySource::Explorer,
    ];
    let excesses = [-0.5, 0.0, 0.25, -0.25, 0.5, -1.0];
    for (episode, (mixture, source)) in deployed.iter().zip(sources).enumerate() {
        let deployment = Deployment {
            episode: episode as u64,
            source,
            certificate: None,
        };
        if let Some(mixture) = mixture {
            recorder.note_mixture(mixture);
        }
        recorder.note(&deployment);
        let excess = excesses[episode];
        // The first cost is no measure of the violation: the other may exceed its limit by more.
        let value = episode as f64;
        let truth = TrueValues {
            reward: value,
            cost: 2.0 * value,
            excess,
        };
        recorder.add_judged(episode as u64, truth, &[2.0 * value, -value], 0.0);
    }
    let record = recorder.finish(f64::NAN).swap_remove(0);
    assert_eq!(record.plays[PolicySource::Baseline as usize], 4);
    assert_eq!(record.plays[PolicySource::Explorer as usize], 2);
    assert_eq!(record.plays.iter().sum::<u64>(), 6);
    assert_eq!(
        (record.baseline_episodes, record.first_planned),
        (4, Some(3))
    );
    assert_eq!(record.mixtures, 3);
    assert!(record.weight[0].is_nan());
    assert_eq!(record.weight[1..], [0.0, 0.25, 1.0]);
    assert!(
        record.certified_cost[..2]
            .iter()
            .all(|bound| bound.is_nan())
    );
    assert_eq!(record.certified_cost[2..], [0.25; 6]);
    assert_eq!(record.signed_violation, [-0.5, -0.5, -0.5, -1.0]);
    assert_eq!(record.strong_violation, [0.0, 0.0, 0.25, 0.75]);
    assert_eq!(
        (record.violating_episodes, record.first_violation),
        (2, Some(2))
    );
    assert_eq!(record.worst_violation.to_bits(), 0.5_f64.to_bits());
    // Between the record points lie the episodes 0, 1, 2 and 3, 4 and 5.
    assert_eq!(record.deployed_value.mean, [0.0, 1.0, 2.5, 4.5]);
    assert_eq!(record.deployed_value.least, [0.0, 1.0, 2.0, 4.0]);
    assert_eq!(record.deployed_value.greatest, [0.0, 1.0, 3.0, 5.0]);
    let costs = record.deployed_cost;
    assert_eq!(costs.mean, [0.0, -0.0, 2.0, -1.0, 5.0, -2.5, 9.0, -4.5]);
    assert_eq!(costs.least, [0.0, 0.0, 2.0, -1.0, 4.0, -3.0, 8.0, -5.0]);
    assert_eq!(costs.greatest, [0.0, 0.0, 2.0, -1.0, 6.0, -2.0, 10.0, -4.0]);
    assert_eq!(record.baseline_share, [1.0, 1.0, 0.5, 0.5]);
}
