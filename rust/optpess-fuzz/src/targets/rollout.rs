//! Staged rollouts: made from any numbers, or read from bytes; either is refused or keeps to its rules.

use optpess_core::learn::{Constraint, StagedRollout};

use crate::input::Input;
use crate::targets::{HEADER, Target, sealed};

/// The first byte chooses between numbers (even) and bytes (odd).
pub const TARGET: Target = Target {
    name: "rollout",
    run,
    seeds,
};

fn run(bytes: &[u8]) {
    let Some((tag, rest)) = bytes.split_first() else {
        return;
    };
    let mut input = Input::new(rest);
    let made = if tag % 2 == 0 {
        from_numbers(&mut input)
    } else {
        StagedRollout::from_bytes(&sealed(rest)).ok()
    };
    if let Some(mut rollout) = made {
        drive(&mut rollout, &mut input);
    }
}

fn from_numbers(input: &mut Input<'_>) -> Option<StagedRollout> {
    let count = input.below(4);
    let constraints = (0..count).map(|_| Constraint {
        limit: input.float(),
        baseline_cost: input.float(),
        largest: input.float(),
    });
    let constraints = constraints.collect();
    StagedRollout::new(constraints, input.float(), input.word()).ok()
}

fn drive(rollout: &mut StagedRollout, input: &mut Input<'_>) {
    let stored = rollout.to_bytes().expect("a rollout can be stored");
    let again = StagedRollout::from_bytes(&stored).expect("what was stored can be read");
    assert_eq!(stored, again.to_bytes().expect("stored once more"));
    for episode in 0..40_u32 {
        check(rollout);
        let Ok(_) = rollout.use_candidate() else {
            let costs: Vec<f64> = rollout.constraints().iter().map(|_| 0.0).collect();
            rollout
                .record(&costs)
                .expect("a pending episode can be recorded");
            continue;
        };
        let share = f64::from(episode % 5) / 4.0;
        let costs = rollout
            .constraints()
            .iter()
            .map(|constraint| match input.byte() {
                0xf0.. => input.float(),
                _ => share * constraint.largest,
            });
        let costs: Vec<f64> = costs.collect();
        if rollout.record(&costs).is_err() {
            let none: Vec<f64> = costs.iter().map(|_| 0.0).collect();
            rollout
                .record(&none)
                .expect("an episode without costs can be recorded");
        }
        if input.byte() == 1 {
            rollout.replace_candidate().expect("nothing is pending");
        }
    }
}

fn check(rollout: &StagedRollout) {
    let weight = rollout.weight();
    assert!((0.0..=1.0).contains(&weight), "the weight is {weight}");
    let pairs = rollout.constraints().iter().zip(rollout.candidate());
    for (constraint, played) in pairs {
        let (lower, upper) = (played.lower(), played.upper());
        assert!(
            0.0 <= lower && upper <= constraint.largest,
            "[{lower}, {upper}]"
        );
        let mixed = weight * upper + (1.0 - weight) * constraint.baseline_cost;
        let most = constraint.limit * (1.0 + 1e-9);
        assert!(
            mixed <= most,
            "{mixed} above {} at weight {weight}",
            constraint.limit
        );
        assert!(played.level() > 0.0, "a level of {}", played.level());
    }
    assert_eq!(rollout.constraints().len(), rollout.candidate().len());
    assert_eq!(rollout.constraints().len(), rollout.baseline().len());
    let _ = rollout.contradicted_baseline();
}

fn seeds() -> Vec<Vec<u8>> {
    let one = Constraint {
        limit: 1.0,
        baseline_cost: 0.5,
        largest: 4.0,
    };
    let mut seeds = vec![[&[0, 1][..], &[2; 60]].concat(), vec![0; 40]];
    for constraints in [vec![one], vec![one; 3]] {
        let mut rollout = StagedRollout::new(constraints, 0.1, 5).expect("ordinary numbers");
        for episode in 0..30 {
            if episode % 10 == 0 {
                let bytes = rollout.to_bytes().expect("a rollout can be stored");
                seeds.push([&[1], &bytes[HEADER..]].concat());
            }
            rollout.use_candidate().expect("nothing is pending");
            if episode == 25 {
                let bytes = rollout.to_bytes().expect("a rollout can be stored");
                seeds.push([&[1], &bytes[HEADER..]].concat());
            }
            let costs: Vec<f64> = rollout.constraints().iter().map(|_| 0.2).collect();
            rollout.record(&costs).expect("a cost within its range");
        }
    }
    seeds
}
