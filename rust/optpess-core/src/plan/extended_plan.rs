//! The constrained optimum over policies and plausible kernels, as an extended occupancy.

use crate::error::{Error, Result};
use crate::evaluate::{OccupancyMeasure, occupancy};
use crate::plan::chord::ChordSearch;
use crate::plan::exact::VALUE_WIDTH;
use crate::plan::extended::{Extended, ExtendedOracle, ExtendedVertex};
use crate::plan::problem::{Oracle, Point};
use crate::policy::MarkovPolicy;
use crate::table::{StepSignal, zeros};

/// The best pair of a policy and a plausible kernel within a limit.
#[derive(Debug, Clone)]
pub struct ExtendedPlan {
    /// The policy, read off the occupancy; where nothing arrives, that of the end within the limit.
    pub policy: MarkovPolicy,
    /// z_h(s,a,s'), `[H - 1, S, A, S]`.
    pub flow: Vec<f64>,
    /// q_h(s,a).
    pub occupancy: OccupancyMeasure,
    /// V(g_r) on the kernel chosen.
    pub value: f64,
    /// V(g_c) on the kernel chosen.
    pub cost: f64,
    /// The optimal multiplier.
    pub multiplier: f64,
    /// An upper bound on the optimum: the Lagrangian at the multiplier.
    pub bound: f64,
    /// How many extended inductions finding it took; the one behind the bound comes on top.
    pub inductions: usize,
}

/// max V(g_r, p') subject to V(g_c, p') <= limit, over policies and plausible kernels p'.
///
/// Formula: the linear program over extended occupancies, whose optimum mixes two extreme points
/// (pi, p'); each is followed on its own p', and the mixed z holds both policy and kernel. Citation:
/// \[Efroni20\], OptCMDP (the extended linear program). Deviation: solved by the chord method.
pub fn solve_extended<R: StepSignal, C: StepSignal>(
    problem: &Extended<'_, R, C>,
    limit: f64,
) -> Result<ExtendedPlan> {
    let shape = problem.kernels.shape();
    let mut oracle = ExtendedOracle::new(problem)?;
    let mut search = ChordSearch::new(shape)?;
    let found = search.solve(&mut oracle, limit)?;
    let (below, above) = (search.chord().below(), search.chord().above());
    let (states, entries) = (shape.num_states(), shape.triples() * shape.num_states());
    let mut flow: Vec<f64> = zeros("an extended occupancy [H, S, A, S]", entries)?;
    flow.truncate(entries - shape.pairs() * states);
    let mut masses: Vec<f64> = zeros("an occupancy [H, S, A]", shape.triples())?;
    let weights = [1.0 - found.weight_above, found.weight_above];
    for (end, weight) in [below, above].into_iter().zip(weights) {
        if weight == 0.0 {
            continue; // without meaning there
        }
        let policy = end.vertex().policy(shape)?;
        let own = occupancy(&policy, &end.kernel(shape), problem.initial)?;
        for (row, (target, mass)) in masses.iter_mut().zip(own.data()).enumerate() {
            *target += weight * mass;
            let from = row / shape.num_actions() * states; // rows of the kernel are [H - 1, S]
            if *mass > 0.0 && from < end.rows().len() {
                let chosen = &end.rows()[from..][..states];
                for (target, probability) in flow[row * states..].iter_mut().zip(chosen) {
                    *target += weight * mass * probability;
                }
            }
        }
    }
    let occupancy = OccupancyMeasure::new("occupancy", shape, masses)?;
    let (value, cost) = (
        occupancy.expectation(problem.reward),
        occupancy.expectation(problem.cost),
    );
    let size = below.reward().abs().max(found.value.abs());
    if (value - found.value).abs() > VALUE_WIDTH * size.max(1.0) {
        return Err(Error::NumericalTrouble {
            solver: "parametric",
            status: format!("claimed the value {}, re-evaluated {value}", found.value),
        });
    }
    let completion = below.vertex().policy(shape)?;
    let mut best = ExtendedVertex::for_shape(shape)?;
    let most = oracle.maximise(found.multiplier, &mut best);
    Ok(ExtendedPlan {
        policy: occupancy.induced_policy(&completion)?,
        flow,
        occupancy,
        value,
        cost,
        multiplier: found.multiplier,
        bound: most + found.multiplier * limit,
        inductions: found.inductions,
    })
}
