//! The frontier: the curve "best reward for a limit", all of its vertices or as many as a tolerance asks for.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::control::Control;
use crate::error::{ArrayIndex, Error, Result};
use crate::parallel::Workers;
use crate::plan::known::{KnownOracle, KnownProblem, KnownVertex};
use crate::plan::problem::{Objective, Oracle, PlanningProblem, Point};
use crate::table::StepSignal;

/// How much of the curve is asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FrontierRequest {
    /// How far below the curve, at the same cost, the polygon through the vertices may lie; 0 asks for all vertices.
    pub tolerance: f64,
    /// The costs between which the curve is asked for.
    pub between: (f64, f64),
    /// The search ends when it has this many vertices, at least 2: a curve can have exponentially many.
    pub max_vertices: usize,
}

impl FrontierRequest {
    /// All vertices, up to some number of them.
    #[must_use]
    pub fn exact(max_vertices: usize) -> Self {
        Self {
            tolerance: 0.0,
            between: (f64::NEG_INFINITY, f64::INFINITY),
            max_vertices,
        }
    }
}

/// Vertices of the curve.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundFrontier {
    /// (cost, reward); costs and rewards increase, slopes decrease.
    pub vertices: Vec<(f64, f64)>,
    /// The polygon through the vertices lies at most this far below the curve, at the same cost; 0 if it is the curve,
    /// up to rounding.
    pub bound: f64,
    /// Whether the search was stopped before it came to the tolerance, by the stop flag.
    pub stopped: bool,
}

/// All vertices (cost, reward) of the upper concave envelope of policies, on one thread; an error if there are more
/// than `max_vertices`.
pub fn frontier<R: StepSignal + Sync, C: StepSignal + Sync>(
    problem: &KnownProblem<'_, R, C>,
    max_vertices: usize,
) -> Result<Vec<(f64, f64)>> {
    let control = Control::default();
    let request = FrontierRequest::exact(max_vertices);
    let found = frontier_to(problem, request, Workers::alone(&control))?;
    if found.bound > 0.0 {
        return Err(Error::NumericalTrouble {
            solver: "frontier",
            status: format!("more than {max_vertices} vertices"),
        });
    }
    Ok(found.vertices)
}

/// Vertices of the upper concave envelope of policies, from the least attainable cost to the least cost of the most
/// reward.
///
/// Finds the best policy at the slope of the chord between two neighbouring vertices, until none lies above it (after
/// Aneja and Nair 1979, for two criteria). The curve lies between the chord and the lines through its ends whose slopes
/// are the multipliers at which these are best, so that the distance between them bounds what is still unknown; the
/// chord with the largest such distance is next. Points that differ from a chord, or from another point of the same
/// cost, by rounding only are not vertices.
///
/// If the stop flag is set after the two ends were found, what was found until then is returned.
pub fn frontier_to<R: StepSignal + Sync, C: StepSignal + Sync>(
    problem: &KnownProblem<'_, R, C>,
    request: FrontierRequest,
    workers: Workers<'_>,
) -> Result<FoundFrontier> {
    let mut oracle = KnownOracle::new(problem, workers)?;
    let mut trial = KnownVertex::for_shape(problem.shape)?;
    let signed = has_signs(problem);
    let mut ask = |question| LocatedPolicy::by(&mut oracle, question, signed, &mut trial);
    let noise = 16.0 * f64::EPSILON * (problem.shape.horizon() as f64 + 8.0);
    let least = ask(Question::End(Objective::LeastCost))?;
    let most = ask(Question::End(Objective::MostReward))?;
    for found in [least.cost, least.reward, most.cost, most.reward] {
        if !found.is_finite() {
            let place = ArrayIndex::scalar("the value of a policy");
            return Err(Error::NotFinite { place, found });
        }
    }
    let mut curve = Polygon::new(noise, request, least, most);
    let mut stopped = false;
    while let Some(edge) = curve.next_edge() {
        match ask(Question::Best(edge.slope)) {
            Ok(found) => curve.insert(edge, found),
            Err(Error::Interrupted) => {
                curve.put_back(edge);
                stopped = true;
                break;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(FoundFrontier {
        vertices: curve.vertices(),
        bound: curve.bound(),
        stopped,
    })
}

/// A chord between two neighbouring points.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Edge {
    /// How far above the chord the curve may lie.
    gap: f64,
    left: usize,
    right: usize,
    slope: f64,
}

impl Eq for Edge {}

impl PartialOrd for Edge {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// By the gap; among equal ones, the leftmost point found first is the largest.
impl Ord for Edge {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_gap = self.gap.total_cmp(&other.gap);
        by_gap.then(other.left.cmp(&self.left))
    }
}

/// A point and its neighbour to the right.
#[derive(Debug, Clone, Copy)]
struct Node {
    point: LocatedPolicy,
    /// The multipliers at which the point is known to be best, the largest and the smallest.
    slopes: [f64; 2],
    next: Option<usize>,
}

/// The points found so far, and the edges that may not be edges of the curve.
struct Polygon {
    noise: f64,
    request: FrontierRequest,
    nodes: Vec<Node>,
    /// How many nodes belong to the polygon; others were replaced.
    count: usize,
    open: BinaryHeap<Edge>,
}

impl Polygon {
    fn new(
        noise: f64,
        request: FrontierRequest,
        least: LocatedPolicy,
        most: LocatedPolicy,
    ) -> Self {
        let node = |point, slope, next| Node {
            point,
            slopes: [slope; 2],
            next,
        };
        let mut made = Self {
            noise,
            request,
            nodes: vec![node(least, f64::INFINITY, Some(1)), node(most, 0.0, None)],
            count: 2,
            open: BinaryHeap::new(),
        };
        made.open_edge(0);
        made
    }

    /// The chord to look at next, if one is left that matters.
    fn next_edge(&mut self) -> Option<Edge> {
        if self.count >= self.request.max_vertices {
            return None;
        }
        let edge = self.open.pop()?;
        if edge.gap <= self.request.tolerance {
            self.open.push(edge);
            return None;
        }
        Some(edge)
    }

    fn put_back(&mut self, edge: Edge) {
        self.open.push(edge);
    }

    /// Looks at the chord to the right of a point. Neighbours that are equal up to rounding become one.
    fn open_edge(&mut self, left: usize) {
        while let Some(right) = self.nodes[left].next {
            let (from, to) = (self.nodes[left], self.nodes[right]);
            let (run, rise) = (
                to.point.cost - from.point.cost,
                to.point.reward - from.point.reward,
            );
            if rise <= self.noise * to.point.reward_size.max(from.point.reward_size) {
                self.nodes[left].next = to.next; // no better, up to rounding
                self.nodes[left].slopes[1] = to.slopes[1];
                self.count -= 1;
            } else if run <= self.noise * to.point.cost_magnitude.max(from.point.cost_magnitude) {
                self.nodes[left].point = to.point; // better at the same cost, up to rounding
                self.nodes[left].slopes[1] = to.slopes[1];
                self.nodes[left].next = to.next;
                self.count -= 1;
            } else {
                let (low, high) = self.request.between;
                if to.point.cost > low && from.point.cost < high {
                    self.open.push(edge(left, right, &from, &to));
                }
                return;
            }
        }
    }

    /// Takes in the best point at the slope of a chord.
    fn insert(&mut self, edge: Edge, found: LocatedPolicy) {
        let Edge {
            left, right, slope, ..
        } = edge;
        let (from, to) = (self.nodes[left].point, self.nodes[right].point);
        let height = |point: LocatedPolicy| point.reward - slope * point.cost;
        let size = |point: LocatedPolicy| point.reward_size + slope * point.cost_magnitude;
        let uncertain = self.noise * size(found).max(size(from)).max(size(to));
        let same_cost = |other: LocatedPolicy| {
            let magnitude = found.cost_magnitude.max(other.cost_magnitude);
            (found.cost - other.cost).abs() <= self.noise * magnitude
        };
        let improves = height(found) - height(from).max(height(to)) > uncertain;
        if !improves {
            // An edge of the curve: both ends are best at its slope.
            self.nodes[left].slopes[1] = slope;
            self.nodes[right].slopes[0] = slope;
        } else if found.cost <= from.cost || same_cost(from) {
            self.nodes[left].point = found; // a tie of costs that rounding had hidden
            self.open_edge(left);
        } else if found.cost >= to.cost || same_cost(to) {
            self.nodes[right].point = found;
            self.open_edge(left);
        } else {
            let middle = self.nodes.len();
            self.nodes.push(Node {
                point: found,
                slopes: [slope; 2],
                next: Some(right),
            });
            self.nodes[left].next = Some(middle);
            self.count += 1;
            self.open_edge(left);
            if self.nodes[left].next == Some(middle) {
                self.open_edge(middle);
            }
        }
    }

    /// The points from left to right, without those whose edges lie beyond what was asked for.
    fn vertices(&self) -> Vec<(f64, f64)> {
        let (low, high) = self.request.between;
        let mut found: Vec<(f64, f64)> = Vec::new();
        let mut at = Some(0);
        while let Some(node) = at.map(|index| self.nodes[index]) {
            let point = (node.point.cost, node.point.reward);
            if point.0 <= low {
                found.clear();
            }
            found.push(point);
            if point.0 >= high {
                break;
            }
            at = node.next;
        }
        found
    }

    /// How far above the polygon the curve may lie.
    fn bound(&self) -> f64 {
        self.open.peek().map_or(0.0, |edge| edge.gap)
    }
}

/// The chord between two neighbours. The lines through its ends, with the slopes at which these are best, meet above
/// it.
fn edge(left: usize, right: usize, from: &Node, to: &Node) -> Edge {
    let (run, rise) = (
        to.point.cost - from.point.cost,
        to.point.reward - from.point.reward,
    );
    // A slope that overflows is the steepest there is.
    let slope = (rise / run).min(f64::MAX);
    let (steep, flat) = (
        (from.slopes[1] - slope).max(0.0),
        (slope - to.slopes[0]).max(0.0),
    );
    let gap = if steep.is_finite() {
        // Slopes that rounding has put in the wrong order leave a gap of 0; such a chord is looked at once more.
        let sum = steep + flat;
        if sum > 0.0 {
            run * steep * (flat / sum)
        } else {
            0.0
        }
    } else {
        run * flat
    };
    Edge {
        gap: gap.max(f64::MIN_POSITIVE),
        left,
        right,
        slope,
    }
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
#[derive(Debug, Clone, Copy)]
struct LocatedPolicy {
    cost: f64,
    reward: f64,
    cost_magnitude: f64,
    reward_size: f64,
}

impl LocatedPolicy {
    /// Without signs, values are their own magnitudes.
    fn by<R: StepSignal + Sync, C: StepSignal + Sync>(
        oracle: &mut KnownOracle<'_, R, C>,
        question: Question,
        signed: bool,
        trial: &mut KnownVertex,
    ) -> Result<Self> {
        match question {
            Question::End(objective) => oracle.extreme(objective, trial),
            Question::Best(multiplier) => {
                oracle.maximise(multiplier, trial);
            }
        }
        let (cost, reward) = (trial.cost(), trial.reward());
        let [reward_size, cost_magnitude] = if signed {
            oracle.magnitudes(trial)
        } else {
            [reward, cost]
        };
        oracle.check()?;
        Ok(Self {
            cost,
            reward,
            cost_magnitude,
            reward_size,
        })
    }
}

/// Whether a number of either signal is negative.
fn has_signs<R: StepSignal, C: StepSignal, K>(problem: &PlanningProblem<'_, R, C, K>) -> bool {
    let (horizon, pairs) = (problem.shape.horizon(), problem.shape.pairs());
    (0..horizon).any(|step| {
        (0..pairs)
            .any(|pair| problem.reward.at(step, pair) < 0.0 || problem.cost.at(step, pair) < 0.0)
    })
}
