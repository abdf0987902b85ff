//! Learners from bytes: what is read is refused or behaves as a learner.

use optpess_core::confidence::{ConfidenceRule, LearningTerms};
use optpess_core::learn::LiveLearner;

use crate::learners::{EPISODES, bytes_of, drive, every_learner, problem, restricted};
use crate::targets::{HEADER, Target, sealed};

/// The bytes are those of a stored learner, without its header.
pub const TARGET: Target = Target {
    name: "learner",
    run,
    seeds,
};

fn run(bytes: &[u8]) {
    if let Ok(mut live) = LiveLearner::from_bytes(&sealed(bytes)) {
        drive(&mut live, 4);
    }
}

/// Every kind, fresh, pending, abandoned and after some episodes.
fn seeds() -> Vec<Vec<u8>> {
    let rule = ConfidenceRule::scaled(0.01).expect("a positive factor");
    let terms = LearningTerms::new(EPISODES, 0.1, rule).expect("ordinary terms");
    let mut seeds = Vec::new();
    for learner in every_learner(&problem(), terms) {
        let some_actions = restricted(learner.clone());
        for learner in [Some(learner), some_actions].into_iter().flatten() {
            let mut live = LiveLearner::new(learner);
            seeds.push(bytes_of(&live).split_off(HEADER));
            drive(&mut live, 25);
            seeds.push(bytes_of(&live).split_off(HEADER));
            if live.next_policy().is_ok() {
                seeds.push(bytes_of(&live).split_off(HEADER));
                if live.abandon().is_ok() {
                    seeds.push(bytes_of(&live).split_off(HEADER));
                }
            }
        }
    }
    seeds
}
