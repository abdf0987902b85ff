//! The frontier: all vertices of the curve "best reward for a limit".

use crate::error::{Error, Result};
use crate::model::StepKernel;
use crate::plan::induction::Magnitude;
use crate::plan::problem::{Objective, Oracle, PlainOracle, PlanningProblem, PlanningWork, Vertex};
use crate::table::StepSignal;

/// All vertices (cost, reward) of the upper concave envelope of policies, from the least attainable
/// cost to the least cost of the most reward; costs and rewards increase, slopes decrease.
///
/// Finds the best policy at the slope of the chord between two neighbouring vertices, until none lies above it (after
/// Aneja and Nair 1979, for two criteria). Points that differ from a chord, or from another point of the same cost, by
/// rounding only are not vertices. `max_vertices` bounds the memory: a curve can have exponentially many.
pub fn frontier<R: StepSignal, C: StepSignal, K: StepKernel>(
    problem: &PlanningProblem<'_, R, C, K>,
    max_vertices: usize,
) -> Result<Vec<(f64, f64)>> {
    let mut work = PlanningWork::new(problem.shape)?;
    let mut trial = Vertex::new(problem.shape)?;
    let mut ask = |question| LocatedPolicy::by(problem, question, &mut work, &mut trial);
    let noise = 16.0 * f64::EPSILON * (problem.shape.horizon() as f64 + 8.0);
    let least = ask(Question::End(Objective::LeastCost));
    let most = ask(Question::End(Objective::MostReward));
    let mut settled = vec![least];
    // Neighbours to the right of the last settled point, nearest last.
    let mut pending = vec![most];
    while let Some(&right) = pending.last() {
        let last = settled.len() - 1;
        let left = settled[last];
        let (run, rise) = (right.cost - left.cost, right.reward - left.reward);
        if rise <= noise * right.reward_size.max(left.reward_size) {
            pending.pop(); // no better, up to rounding
            continue;
        }
        if run <= noise * right.cost_magnitude.max(left.cost_magnitude) {
            settled[last] = right; // better at the same cost, up to rounding
            pending.pop();
            continue;
        }
        let slope = rise / run;
        let found = ask(Question::Best(slope));
        let height = |point: LocatedPolicy| point.reward - slope * point.cost;
        let size = |point: LocatedPolicy| point.reward_size + slope * point.cost_magnitude;
        let uncertain = noise * size(found).max(size(left)).max(size(right));
        let same_cost = |other: LocatedPolicy| {
            (found.cost - other.cost).abs()
                <= noise * found.cost_magnitude.max(other.cost_magnitude)
        };
        if height(found) - height(left).max(height(right)) <= uncertain {
            settled.push(right);
            pending.pop();
        } else if found.cost <= left.cost || same_cost(left) {
            settled[last] = found; // a tie of costs that rounding had hidden
        } else if found.cost >= right.cost || same_cost(right) {
            pending.pop();
            pending.push(found);
        } else {
            pending.push(found);
        }
        if settled.len() + pending.len() > max_vertices {
            return Err(Error::NumericalTrouble {
                solver: "frontier",
                status: format!("more than {max_vertices} vertices"),
            });
        }
    }
    let vertices = settled.iter().map(|point| (point.cost, point.reward));
    Ok(vertices.collect())
}

/// A policy to be found.
enum Question {
    /// One end of the curve.
    End(Objective),
    /// The best policy for g_r - multiplier g_c.
    Best(f64),
}

/// (cost, reward) of a policy, and the magnitudes to which rounding is relative: if numbers of both signs cancel, the
/// value says nothing about its rounding error, but the value of the absolute numbers does.
#[derive(Clone, Copy)]
struct LocatedPolicy {
    cost: f64,
    reward: f64,
    cost_magnitude: f64,
    reward_size: f64,
}

impl LocatedPolicy {
    fn by<R: StepSignal, C: StepSignal, K: StepKernel>(
        problem: &PlanningProblem<'_, R, C, K>,
        question: Question,
        work: &mut PlanningWork,
        trial: &mut Vertex,
    ) -> Self {
        let mut oracle = PlainOracle::on(problem, work);
        match question {
            Question::End(objective) => oracle.extreme(objective, trial),
            Question::Best(multiplier) => {
                oracle.maximise(multiplier, trial);
                oracle.locate(trial);
            }
        }
        let (cost, reward) = (trial.cost, trial.reward);
        let magnitudes = (Magnitude(problem.reward), Magnitude(problem.cost));
        let sizes = problem.magnitudes(&magnitudes.0, &magnitudes.1);
        PlainOracle::on(&sizes, work).locate(trial);
        Self {
            cost,
            reward,
            cost_magnitude: trial.cost,
            reward_size: trial.reward,
        }
    }
}
