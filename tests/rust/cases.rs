//! Problems with a safe policy of known cost, and every learner of the core on them. Shared with the bench
//! `fingerprint`, so it uses the public interface of the core and nothing else.

use std::sync::Arc;

use optpess_core::confidence::{ConfidenceRule, CostRadius, LearningTerms, SafetyMargin};
use optpess_core::evaluate::evaluate;
use optpess_core::learn::peers::{
    AlwaysBaseline, Cucrl, KnownTransitions, Opdop, OptCmdp, OptCmdpBonus, OptDualCmdp,
    OptPrimalDualCmdp, Sops, UnconstrainedOptimistic,
};
use optpess_core::learn::{AnyLearner, Learner, OptPessLp, OptPessPrimalDual, SafeBaseline};
use optpess_core::model::{
    ConstrainedMdp, InitialDistribution, Kernel, ObservationNoise, Slices, TransitionKernel,
    UnitSignal,
};
use optpess_core::plan::backward_induction;
use optpess_core::policy::MarkovPolicy;
use optpess_core::shape::Shape;
use optpess_core::table::Signal;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

/// One problem with a safe policy of known cost.
pub struct Problem {
    pub model: ConstrainedMdp,
    pub safe: MarkovPolicy,
    pub margin: SafetyMargin,
}

impl Problem {
    pub fn new(
        (kernel, reward, cost): (Kernel, Signal, Signal),
        limit: Option<f64>,
        initial: InitialDistribution,
        noise: ObservationNoise,
    ) -> Self {
        let shape = reward.shape();
        let gain = |sign: f64| {
            let data = cost.data().iter().map(|value| sign * value).collect();
            let stride = if cost.is_stationary() {
                0
            } else {
                shape.pairs()
            };
            Signal::labelled("gain", &[], shape, stride, data).unwrap()
        };
        let extreme = |sign| {
            let plan = backward_induction(shape, &gain(sign), &kernel).unwrap();
            let policy = plan.policy().unwrap();
            let found = evaluate(&policy, &cost, &kernel, &initial).unwrap();
            (policy, found)
        };
        let ((safe, least), (_, most)) = (extreme(-1.0), extreme(1.0));
        let limit = limit.unwrap_or(0.5 * (least + most));
        let margin = SafetyMargin::new(limit, least).unwrap();
        let unit = |name, signal| UnitSignal::new(name, &[], signal).unwrap();
        let model = ConstrainedMdp::new(
            TransitionKernel::new(Arc::new(kernel)).unwrap(),
            unit("rewards", reward),
            vec![unit("costs", cost)],
            vec![limit],
            initial,
            noise,
        );
        Self {
            model: model.unwrap(),
            safe,
            margin,
        }
    }

    /// Every state follows every state, at other probabilities at every step.
    pub fn random(sizes: [usize; 3], seed: u64) -> Self {
        Self::random_with(sizes, sizes[0], seed)
    }

    /// Every pair has this many successors, in a row, at other probabilities at every step.
    pub fn random_with(sizes: [usize; 3], num_successors: usize, seed: u64) -> Self {
        let [states, actions, horizon] = sizes;
        let shape = Shape::new(horizon, states, actions).unwrap();
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        let mut numbers = |count| -> Vec<f64> { (0..count).map(|_| generator.random()).collect() };
        let mut rows = numbers(shape.triples() * states);
        for (index, row) in rows.chunks_exact_mut(states).enumerate() {
            for (state, entry) in row.iter_mut().enumerate() {
                if (state + 7 * index) % states >= num_successors {
                    *entry = 0.0;
                }
            }
            let total: f64 = row.iter().sum();
            row.iter_mut().for_each(|entry| *entry /= total);
        }
        let kernel = Kernel::dense(states, actions, Slices::PerStep(horizon), rows).unwrap();
        let reward = Signal::new("rewards", shape, numbers(shape.triples())).unwrap();
        let cost = Signal::new("costs", shape, numbers(shape.triples())).unwrap();
        let start = vec![1.0 / states as f64; states];
        let initial = InitialDistribution::new(states, start).unwrap();
        Self::new(
            (kernel, reward, cost),
            None,
            initial,
            ObservationNoise::Bernoulli,
        )
    }

    /// The same problem, observed with other noise.
    pub fn with_noise(self, noise: ObservationNoise) -> Self {
        let unit = |name, signal: &Signal| UnitSignal::new(name, &[], signal.clone()).unwrap();
        let model = ConstrainedMdp::new(
            self.model.kernel().clone(),
            unit("rewards", self.model.reward()),
            vec![unit("costs", &self.model.costs()[0])],
            self.model.limits().to_vec(),
            self.model.initial().clone(),
            noise,
        );
        Self {
            model: model.unwrap(),
            ..self
        }
    }

    fn baseline(&self) -> SafeBaseline {
        SafeBaseline::new(self.safe.clone(), self.margin).unwrap()
    }

    pub fn lp(&self, terms: LearningTerms) -> OptPessLp {
        OptPessLp::new(self.model.initial().clone(), self.baseline(), terms).unwrap()
    }

    pub fn primal_dual(&self, terms: LearningTerms) -> OptPessPrimalDual {
        let initial = self.model.initial().clone();
        OptPessPrimalDual::new(self.model.shape(), initial, self.margin, terms).unwrap()
    }
    /// OptPess-LP that estimates the cost of pi0 first.
    pub fn lp_with_estimated_cost(&self, terms: LearningTerms, radius: CostRadius) -> OptPessLp {
        let limit = self.margin.cost_limit();
        let baseline = SafeBaseline::estimated(self.safe.clone(), limit, radius).unwrap();
        OptPessLp::new(self.model.initial().clone(), baseline, terms).unwrap()
    }

    /// Calls the visitor with each learner that the paper's two are compared with.
    pub fn visit_peers(&self, terms: LearningTerms, visitor: &mut impl Visitor) {
        let (shape, margin) = (self.model.shape(), self.margin);
        let initial = || self.model.initial().clone();
        let learner = AlwaysBaseline::new(initial(), self.baseline(), terms.num_episodes());
        visitor.visit("always-baseline", &learner.unwrap());
        macro_rules! visit {
            ($($name:literal $kind:ident)*) => {
                $(visitor.visit($name, &$kind::new(shape, initial(), margin, terms).unwrap());)*
            };
        }
        visit!(
            "unconstrained" UnconstrainedOptimistic
            "optcmdp" OptCmdp
            "optcmdp-bonus" OptCmdpBonus
            "optdual" OptDualCmdp
            "optprimaldual" OptPrimalDualCmdp
            "opdop" Opdop
        );
        let known = KnownTransitions::new(shape, self.model.kernel().kernel()).unwrap();
        let learner = Cucrl::new(known, initial(), self.baseline(), terms);
        visitor.visit("cucrl", &learner.unwrap());
        let learner = Sops::new(initial(), self.safe.clone(), margin, terms, 0.0, 7);
        visitor.visit("sops", &learner.unwrap());
    }
}

/// Something to be done with a learner, whichever it is.
pub trait Visitor {
    fn visit<L: Learner + Clone + Into<AnyLearner>>(&mut self, name: &str, learner: &L);
}

/// K episodes, and a bonus that is a factor of the theorem's.
pub fn terms(num_episodes: u64, factor: f64) -> LearningTerms {
    LearningTerms::new(num_episodes, 0.05, ConfidenceRule::scaled(factor).unwrap()).unwrap()
}

/// Dense rows as a sparse kernel; entries that are zero are left out.
pub fn sparse_kernel(states: usize, actions: usize, slices: Slices, data: &[f64]) -> Kernel {
    let (mut offsets, mut successors, mut probabilities) = (vec![0], vec![], vec![]);
    for row in data.chunks_exact(states) {
        for (successor, &probability) in row.iter().enumerate() {
            // A NaN in the ignored slice is kept.
            if probability != 0.0 {
                successors.push(successor as i64);
                probabilities.push(probability);
            }
        }
        offsets.push(successors.len() as i64);
    }
    Kernel::sparse(
        states,
        actions,
        slices,
        &offsets,
        &successors,
        probabilities,
    )
    .unwrap()
}
