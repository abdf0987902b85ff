//! The whole curve "best reward for a limit", by its vertices.

use crate::error::{Error, Result};
use crate::model::StepKernel;
use crate::plan::oracle::Objective;
use crate::plan::tradeoff::{StepValues, Tradeoff, Vertex};
use crate::table::StepSignal;

/// All vertices (cost, reward) of the upper concave envelope of policies, from the least attainable
/// cost to the least cost of the most reward; costs and rewards increase, slopes decrease.
///
/// Between two neighbouring vertices asks for the best policy at the slope of their chord, until none
/// rises above it (after Aneja and Nair 1979, for two criteria). Points that rounding alone lifts off
/// a chord are no vertices. `max_vertices` bounds the memory: a curve may in theory have
/// exponentially many.
pub fn frontier<R: StepSignal, C: StepSignal, K: StepKernel>(
    problem: &Tradeoff<'_, R, C, K>,
    max_vertices: usize,
) -> Result<Vec<(f64, f64)>> {
    let mut values = StepValues::new(problem.shape)?;
    let mut trial = Vertex::new(problem.shape)?;
    let mut ask = |objective| {
        problem.solve(objective, &mut values, &mut trial);
        (trial.cost, trial.reward)
    };
    let noise = 16.0 * f64::EPSILON * (problem.shape.horizon() as f64 + 8.0);
    let least = ask(Objective::LeastCost);
    let most = ask(Objective::MostReward);
    let mut vertices = vec![least];
    // Neighbours to the right of the last vertex that are not settled yet, nearest last.
    let mut pending = vec![most];
    while let Some(&right) = pending.last() {
        let left = vertices[vertices.len() - 1];
        let (run, rise) = (right.0 - left.0, right.1 - left.1);
        if run <= noise * right.0.abs().max(left.0.abs())
            || rise <= noise * right.1.abs().max(left.1.abs())
        {
            pending.pop(); // the same point, up to rounding
            continue;
        }
        let slope = rise / run;
        let found = ask(Objective::Lagrangian(slope));
        let height = |point: (f64, f64)| point.1 - slope * point.0;
        let size = |point: (f64, f64)| point.1.abs() + slope * point.0.abs();
        let uncertain = noise * size(found).max(size(left)).max(size(right));
        let between = left.0 < found.0 && found.0 < right.0;
        if between && height(found) - height(left).max(height(right)) > uncertain {
            pending.push(found);
        } else {
            vertices.push(right);
            pending.pop();
        }
        if vertices.len() + pending.len() > max_vertices {
            return Err(Error::NumericalTrouble {
                solver: "frontier",
                status: format!("more than {max_vertices} vertices"),
            });
        }
    }
    Ok(vertices)
}
