//! The sizes the loops and learners are measured at, and a problem with a constraint for each. To
//! measure another size, add it to [`GRID`].

use std::sync::Arc;

use optpess_core::confidence::{ConfidenceRule, LearningTerms, MAX_EPISODES, SafetyMargin};
use optpess_core::estimate::MAX_DENSE_STATES;
use optpess_core::evaluate::evaluate;
use optpess_core::learn::{OptPessLp, OptPessPrimalDual, SafeBaseline};
use optpess_core::model::{ConstrainedMdp, ObservationNoise, TransitionKernel, UnitSignal};
use optpess_core::plan::backward_induction;
use optpess_core::policy::MarkovPolicy;
use optpess_core::table::Signal;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use crate::instances::{Instance, media};

/// |S|, |A|, H and how many successors every row has; None if every state follows every state.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub states: usize,
    pub actions: usize,
    pub horizon: usize,
    pub successors: Option<usize>,
}

const fn dense(states: usize, actions: usize, horizon: usize) -> Size {
    Size {
        states,
        actions,
        horizon,
        successors: None,
    }
}

const fn sparse(states: usize, actions: usize, horizon: usize, successors: usize) -> Size {
    Size {
        states,
        actions,
        horizon,
        successors: Some(successors),
    }
}

/// From the smallest problem anyone plays with to the largest one would simulate.
pub const GRID: [Size; 8] = [
    dense(3, 2, 3),
    dense(10, 2, 10),
    dense(10, 4, 10),
    dense(20, 4, 10),
    dense(50, 5, 20),
    sparse(100, 5, 20, 4),
    sparse(300, 8, 30, 8),
    sparse(1000, 8, 50, 8),
];

/// A learner that would need more memory than this is not measured, in bytes.
const ROOM: usize = 1_500_000_000;
/// A bonus with which the gate opens within a few thousand episodes while the limit still binds, as a factor of the
/// theorem's; the same as in the table of ratios.
const OPEN: f64 = 0.01;
/// A bonus with which it stays shut: the theorem's lets it open after some 10^6 episodes at 3,2,3.
const SHUT: f64 = 10.0;

impl Size {
    /// Multiply-adds of one backward induction.
    pub fn multiply_adds(&self) -> usize {
        let wide = self.successors.unwrap_or(self.states);
        (self.horizon - 1) * self.states * self.actions * wide
    }

    /// About what the estimates take, in bytes: a 64-bit average and a 64-bit count for every
    /// (h, s, a, s'), or, where successors are kept in lists, for every place of a list, with its state
    /// and the coefficients of a plan beside them.
    pub fn learner_bytes(&self) -> usize {
        let rows = (self.horizon - 1) * self.states * self.actions;
        match self.successors {
            Some(successors) if self.states > MAX_DENSE_STATES => {
                rows * successors.next_power_of_two() * 2 * (8 + 4 + 4)
            }
            _ => rows * self.states * (8 + 4),
        }
    }

    /// Whether learners of this size are measured; says so if they are not.
    pub fn learner_fits(&self) -> bool {
        let bytes = self.learner_bytes();
        if bytes > ROOM {
            println!(
                "skipped at {},{},{}: estimates would take {:.1} GB, and at most {:.1} are allowed here",
                self.states,
                self.actions,
                self.horizon,
                bytes as f64 * 1e-9,
                ROOM as f64 * 1e-9,
            );
        }
        bytes <= ROOM
    }

    fn instance(&self) -> Instance {
        let (states, actions, horizon) = (self.states, self.actions, self.horizon);
        match self.successors {
            None => Instance::dense(states, actions, horizon),
            Some(successors) => Instance::sparse(states, actions, horizon, successors),
        }
    }
}

/// A problem with a constraint, its policy of least cost and the margin that policy leaves.
#[derive(Debug)]
pub struct Case {
    pub id: String,
    pub model: ConstrainedMdp,
    pub safe: MarkovPolicy,
    pub margin: SafetyMargin,
}

impl Case {
    /// A random cost beside the instance's signal; the limit is halfway between the least cost and H.
    pub fn new(size: Size) -> Self {
        let instance = size.instance();
        let mut generator = ChaCha8Rng::seed_from_u64(1);
        let costs = (0..instance.shape.triples())
            .map(|_| generator.random())
            .collect();
        Self::around(instance, costs, None)
    }

    /// The playback buffer, with its limit of 5.
    pub fn media() -> Self {
        let (instance, costs) = media();
        Self::around(instance, costs, Some(5.0))
    }

    fn around(instance: Instance, costs: Vec<f64>, limit: Option<f64>) -> Self {
        let (shape, kernel, initial) = (instance.shape, instance.kernel, instance.initial);
        let gains = costs.iter().map(|cost| -cost).collect();
        let signal = |name, data| Signal::new(name, shape, data).expect("finite numbers");
        let (cost, gain) = (signal("costs", costs), signal("gains", gains));
        let plan = backward_induction(shape, &gain, &kernel).expect("it fits");
        let safe = plan.policy().expect("it fits");
        let least = evaluate(&safe, &cost, &kernel, &initial).expect("it fits");
        let dear = backward_induction(shape, &instance.signal, &kernel).expect("it fits");
        let dear = dear.policy().expect("it fits");
        let most = evaluate(&dear, &cost, &kernel, &initial).expect("it fits");
        let limit = limit.unwrap_or(least.midpoint(most));
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

    /// OptPess-LP with a bonus so large that its gate stays shut in the longest measurement.
    pub fn shut_lp(&self) -> OptPessLp {
        self.lp(ConfidenceRule::scaled(SHUT).expect("a positive factor"))
    }

    /// OptPess-LP with a bonus so small that its gate opens early.
    pub fn open_lp(&self) -> OptPessLp {
        self.lp(ConfidenceRule::scaled(OPEN).expect("a positive factor"))
    }

    /// OptPess-LP with a bonus so small that it cannot keep the gate shut, whatever the size: H b = (tau - c0)/4.
    pub fn open_at_once_lp(&self) -> OptPessLp {
        let shape = self.model.shape();
        let theorem = terms(ConfidenceRule::Theorem).bonus(shape).at(0);
        let factor = self.margin.gap() / (4.0 * shape.horizon() as f64 * theorem);
        self.lp(ConfidenceRule::scaled(factor).expect("a positive factor"))
    }

    fn lp(&self, rule: ConfidenceRule) -> OptPessLp {
        let baseline = SafeBaseline::new(self.safe.clone(), self.margin).expect("known cost");
        OptPessLp::new(self.model.initial().clone(), baseline, terms(rule)).expect("it fits")
    }

    /// OptPess-PrimalDual with the theorem's bonus.
    pub fn primal_dual(&self) -> OptPessPrimalDual {
        let (shape, initial) = (self.model.shape(), self.model.initial().clone());
        let terms = terms(ConfidenceRule::Theorem);
        OptPessPrimalDual::new(shape, initial, self.margin, terms).expect("it fits")
    }
}

/// As many episodes as there can be, so that a measurement never runs out of them.
pub fn terms(rule: ConfidenceRule) -> LearningTerms {
    LearningTerms::new(MAX_EPISODES, 0.05, rule).expect("within bounds")
}
