//! Stored learners: every flipped bit is found, and bytes that were forged give no learner that panics or has other
//! bonuses than its own.

use optpess_core::confidence::Observations;
use optpess_core::knowledge::Knowledge;
use optpess_core::learn::{
    AnyLearner, Exploration, Learner, LimitedBaseline, LiveLearner, MixSettings, OptPessMix,
};
use optpess_core::run::{Control, EngineChoice, Simulation, simulate};

use crate::cases::{Problem, Visitor, terms};

/// The header of stored bytes: a tag and a checksum of eight bytes each.
const TAG: usize = 8;
const HEADER: usize = 16;

/// The checksum of Fowler, Noll and Vo, variant 1a.
fn seal(bytes: &mut [u8]) {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for &byte in &bytes[HEADER..] {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    bytes[TAG..HEADER].copy_from_slice(&hash.to_le_bytes());
}

/// A learner after some episodes.
fn played(problem: &Problem, learner: &AnyLearner) -> AnyLearner {
    let asked = Simulation {
        replicates: vec![0],
        seed: 3,
        threads: 1,
        episodes: 40,
        trace: false,
        audit: false,
        learners: true,
        engine: EngineChoice::Plain,
    };
    let outcomes = simulate(&problem.model, learner, 1.0, &asked, &Control::default());
    outcomes.unwrap().swap_remove(0).learner.unwrap()
}

/// Every learner of the core on a tiny problem.
fn learners(problem: &Problem) -> Vec<AnyLearner> {
    struct Collect(Vec<AnyLearner>);
    impl Visitor for Collect {
        fn visit<L: Learner + Clone + Into<AnyLearner>>(&mut self, _: &str, learner: &L) {
            self.0.push(learner.clone().into());
        }
    }
    let mut collected = Collect(vec![
        problem.lp(terms(100, 1e-4)).into(),
        problem.primal_dual(terms(100, 1e-3)).into(),
        mix(problem),
    ]);
    problem.visit_peers(terms(100, 1e-3), &mut collected);
    collected.0
}

fn mix(problem: &Problem) -> AnyLearner {
    let baseline = LimitedBaseline::new(problem.safe.clone(), &[problem.margin]).unwrap();
    let settings = MixSettings {
        radius_factor: 0.02,
        failure_probability: 0.05,
        knowledge: Knowledge::default(),
        observations: Observations::Bounded,
        exploration: Exploration::default(),
        replan_growth: 0.05,
        seed: 3,
    };
    let initial = problem.model.initial().clone();
    OptPessMix::new(initial, baseline, settings).unwrap().into()
}

#[test]
fn every_flipped_bit_and_every_cut_is_refused() {
    let problem = Problem::random([2, 2, 2], 4);
    for learner in learners(&problem) {
        let bytes = LiveLearner::new(played(&problem, &learner))
            .to_bytes()
            .unwrap();
        let same = LiveLearner::from_bytes(&bytes).unwrap();
        assert_eq!(same.to_bytes().unwrap(), bytes);
        for place in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[place] ^= 1 << (place % 8);
            assert!(LiveLearner::from_bytes(&damaged).is_err(), "byte {place}");
            assert!(LiveLearner::from_bytes(&bytes[..place]).is_err());
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(LiveLearner::from_bytes(&longer).is_err());
    }
}

/// What is restored from one byte that was changed shows finite tables and plans, or says why it does not.
#[test]
fn forged_bytes_give_no_learner_that_panics_or_shows_what_is_no_number() {
    let problem = Problem::random([2, 2, 2], 4);
    for learner in learners(&problem) {
        let bytes = LiveLearner::new(played(&problem, &learner))
            .to_bytes()
            .unwrap();
        let mut restored = 0;
        for place in HEADER..bytes.len() {
            for bit in [0, 7] {
                let mut forged = bytes.clone();
                forged[place] ^= 1 << bit;
                seal(&mut forged);
                let Ok(mut live) = LiveLearner::from_bytes(&forged) else {
                    continue;
                };
                restored += 1;
                let signals = live.learner_mut().signals();
                let tables = signals.cost.data().iter().chain(&signals.bonuses);
                assert!(
                    tables.into_iter().all(|value| value.is_finite()),
                    "byte {place}"
                );
                let _ = live.learner().guarantee();
                let _ = live.next_policy();
            }
        }
        assert!(restored > 0, "nothing that was forged is a learner");
    }
}

/// 200 bytes claimed tables of gigabytes, which were allocated before the bytes were found to be too few.
#[test]
fn sizes_that_the_bytes_cannot_hold_are_refused_before_anything_is_allocated() {
    let problem = Problem::random([2, 2, 2], 4);
    for learner in learners(&problem) {
        let bytes = LiveLearner::new(learner).to_bytes().unwrap();
        // The sizes of the problem, as they stand in the stored form: three numbers of one byte.
        let shapes =
            (HEADER..bytes.len() - 2).filter(|&place| bytes[place..place + 3] == [2, 2, 2]);
        let shapes: Vec<usize> = shapes.collect();
        assert!(!shapes.is_empty());
        for place in shapes {
            let huge = [0xff, 0xff, 0x7f]; // 2^21 - 1 in place of 2
            let mut forged = [&bytes[..place], &huge[..], &bytes[place + 1..]].concat();
            seal(&mut forged);
            let before = std::time::Instant::now();
            assert!(LiveLearner::from_bytes(&forged).is_err());
            assert!(before.elapsed().as_millis() < 500, "byte {place}");
        }
    }
}

/// Bytes with a checksum of their own: what is restored plans, is told an episode and shows its tables.
#[test]
fn forged_bytes_give_no_learner_of_the_paper_that_panics_or_has_another_bonus() {
    let problem = Problem::random([2, 2, 2], 4);
    for learner in learners(&problem).into_iter().take(2) {
        let learner = played(&problem, &learner);
        let mut twin = learner.clone();
        let bytes = LiveLearner::new(learner).to_bytes().unwrap();
        let mut restored = 0;
        for place in HEADER..bytes.len() {
            for bit in [0, 3, 6, 7] {
                let mut forged = bytes.clone();
                forged[place] ^= 1 << bit;
                seal(&mut forged);
                let Ok(mut live) = LiveLearner::from_bytes(&forged) else {
                    continue;
                };
                restored += 1;
                let (terms, shape) = (*live.learner().terms(), live.learner().shape());
                let signals = live.learner_mut().signals();
                let bonuses = signals.bonuses.clone();
                let visits = live.learner().estimates().visits();
                for (bonus, &visits) in bonuses.iter().zip(visits) {
                    assert_eq!(bonus.to_bits(), terms.bonus(shape).at(visits).to_bits());
                }
                let _ = live.learner().guarantee();
                let _ = live.next_policy();
            }
        }
        assert!(restored > 0, "nothing that was forged is a learner");
        twin.signals();
    }
}
