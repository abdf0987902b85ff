//! One episode of each algorithm: plan, play, judge, learn. OptPess-PrimalDual has the theorem's
//! constants; OptPess-LP is measured before its gate with them, and past it with a bonus so small that the
//! gate is open from the first episode.

#[allow(dead_code, reason = "the other benches use more of it")]
mod instances;

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use instances::Instance;
use optpess_core::confidence::{ConfidenceRule, LearningTerms, MAX_EPISODES, SafetyMargin};
use optpess_core::evaluate::evaluate;
use optpess_core::learn::{Learner, OptPessLp, OptPessPrimalDual, SafeBaseline};
use optpess_core::model::{ConstrainedMdp, ObservationNoise, TransitionKernel, UnitSignal};
use optpess_core::plan::backward_induction;
use optpess_core::policy::MarkovPolicy;
use optpess_core::run::Judge;
use optpess_core::simulate::{Streams, TabularEnvironment};
use optpess_core::table::Signal;
use optpess_core::trajectory::Trajectory;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

/// Episodes before the first one that is timed.
const WARM_UP: usize = 1000;
/// A bonus with which the gate is open at once.
const OPEN: f64 = 1e-6;

struct Case {
    id: String,
    model: ConstrainedMdp,
    safe: MarkovPolicy,
    margin: SafetyMargin,
}

impl Case {
    /// A random cost beside the instance's signal; the limit is halfway between the least cost and H.
    fn new([states, actions, horizon]: [usize; 3]) -> Self {
        let instance = Instance::dense(states, actions, horizon);
        let (shape, kernel, initial) = (instance.shape, instance.kernel, instance.initial);
        let mut generator = ChaCha8Rng::seed_from_u64(1);
        let costs: Vec<f64> = (0..shape.triples()).map(|_| generator.random()).collect();
        let gains = costs.iter().map(|cost| -cost).collect();
        let signal = |name, data| Signal::new(name, shape, data).expect("finite numbers");
        let (cost, gain) = (signal("costs", costs), signal("gains", gains));
        let plan = backward_induction(shape, &gain, &kernel).expect("it fits");
        let safe = plan.policy().expect("it fits");
        let least = evaluate(&safe, &cost, &kernel, &initial).expect("it fits");
        let limit = least.midpoint(horizon as f64);
        let unit = |name, signal| UnitSignal::new(name, &[], signal).expect("in [0, 1]");
        let model = ConstrainedMdp::new(
            TransitionKernel::new(Arc::new(kernel)).expect("rows sum to one"),
            unit("rewards", instance.signal),
            vec![unit("costs", cost)],
            vec![limit],
            initial,
            ObservationNoise::Bernoulli,
        );
        Self {
            id: instance.id,
            model: model.expect("shapes agree"),
            safe,
            margin: SafetyMargin::new(limit, least).expect("below the limit"),
        }
    }

    fn lp(&self, rule: ConfidenceRule) -> OptPessLp {
        let baseline = SafeBaseline::new(self.safe.clone(), self.margin).expect("known cost");
        OptPessLp::new(self.model.initial().clone(), baseline, terms(rule)).expect("it fits")
    }

    fn primal_dual(&self) -> OptPessPrimalDual {
        let (shape, initial) = (self.model.shape(), self.model.initial().clone());
        let terms = terms(ConfidenceRule::Theorem);
        OptPessPrimalDual::new(shape, initial, self.margin, terms).expect("it fits")
    }

    fn measure<L: Learner>(&self, criterion: &mut Criterion, name: &str, mut learner: L) {
        let model = &self.model;
        let environment = TabularEnvironment::new(model).expect("it fits");
        let mut judge = Judge::new(model).expect("it fits");
        let mut seen = Trajectory::new(model.shape(), 1).expect("it fits");
        let mut streams = Streams::new(0, 0);
        let mut episode = || {
            let deployment = learner.next_policy().expect("its turn");
            environment.rollout(learner.policy(), &mut streams, &mut seen);
            black_box(judge.assess(learner.policy(), deployment.version));
            learner.absorb(&seen).expect("its turn");
        };
        (0..WARM_UP).for_each(|_| episode());
        criterion.bench_function(&format!("{name}/{}", self.id), |bencher| {
            bencher.iter(&mut episode);
        });
    }
}

fn terms(rule: ConfidenceRule) -> LearningTerms {
    LearningTerms::new(MAX_EPISODES, 0.05, rule).expect("within bounds")
}

fn episodes(criterion: &mut Criterion) {
    for sizes in [
        [3, 2, 3],
        [10, 2, 10],
        [10, 4, 10],
        [20, 4, 10],
        [100, 5, 20],
    ] {
        let case = Case::new(sizes);
        case.measure(criterion, "primal-dual", case.primal_dual());
        let shut = case.lp(ConfidenceRule::Theorem);
        case.measure(criterion, "lp-before-gate", shut);
        let open = ConfidenceRule::scaled(OPEN).expect("a positive factor");
        case.measure(criterion, "lp-past-gate", case.lp(open));
    }
}

criterion_group!(benches, episodes);
criterion_main!(benches);
