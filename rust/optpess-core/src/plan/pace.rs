//! Which multipliers a chord search asks for, and when it ends: always the slope of the chord, until the optimum is
//! found, or predictions of the slope at the limit, until a gap is small enough.

/// An end of a chord.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The one within the limit.
    Below,
    /// The one above it.
    Above,
}

/// Chooses multipliers.
pub(crate) trait Pace {
    /// A multiplier that may be close to the optimal one, above 0.
    #[inline(always)]
    fn guess(&self) -> Option<f64> {
        None
    }

    /// The multiplier to ask for next, given the slope of the chord and the costs of its ends. The search ends if it
    /// asks for the slope and no policy lies above the chord.
    fn next(&mut self, slope: f64, ends: [f64; 2], limit: f64) -> f64;

    /// Called after every induction that did not end the search: `end` is best at the multiplier, and if it `moved` it
    /// is a new policy. The optimum is at most `bound` and at least `reached`. Returns a multiplier if the search may
    /// end: that of the least bound.
    fn learn(
        &mut self,
        multiplier: f64,
        end: End,
        moved: bool,
        bound: f64,
        reached: impl FnOnce() -> f64,
    ) -> Option<f64>;
}

/// Asks for the slope of the chord, every time.
#[derive(Debug)]
pub(crate) struct Chords;

impl Pace for Chords {
    #[inline(always)]
    fn next(&mut self, slope: f64, _: [f64; 2], _: f64) -> f64 {
        slope
    }

    #[inline(always)]
    fn learn(&mut self, _: f64, _: End, _: bool, _: f64, _: impl FnOnce() -> f64) -> Option<f64> {
        None
    }
}

/// A moved end this much closer to the limit than the other end makes the next multiplier aim beyond the limit.
const LOPSIDED: f64 = 0.5;

/// How far beyond the limit it then aims, in distances of the closer end from the limit.
const OVERSHOOT: f64 = 1.0;

/// Asks for the slope that the curve "best reward for a limit" probably has at the limit.
///
/// The slope at an end is the multiplier at which that end is best. A cubic with the values and slopes of both ends
/// approximates a curve with many vertices well, so that the distance of the nearer end from the limit falls
/// quadratically, where the slopes of chords halve it. Where the vertices can be told apart a prediction finds no new
/// one, and from then on chords are asked for.
#[derive(Debug)]
pub(crate) struct Predictions {
    tolerance: f64,
    guess: Option<f64>,
    /// The multipliers at which the lower and the upper end are best.
    slopes: [f64; 2],
    /// The least bound on the optimum so far, and its multiplier.
    bound: (f64, f64),
    /// Whether predictions have stopped finding new policies.
    exhausted: bool,
}

impl Predictions {
    /// A pace for a search that may end when the optimum is known to `tolerance`, 0 for exactly; a guess decides where
    /// it begins.
    pub(crate) fn new(tolerance: f64, guess: Option<f64>) -> Self {
        Self {
            tolerance,
            guess,
            slopes: [f64::INFINITY, 0.0],
            bound: (f64::INFINITY, 0.0),
            exhausted: false,
        }
    }

    /// The cost to aim at: the limit or, if one end is much closer to it than the other, a little beyond it, so that
    /// the other end moves too.
    fn aim([below, above]: [f64; 2], limit: f64) -> f64 {
        let (under, over) = (limit - below, above - limit);
        if over < LOPSIDED * under {
            limit - OVERSHOOT * over
        } else if under < LOPSIDED * over {
            limit + OVERSHOOT * under
        } else {
            limit
        }
    }
}

impl Pace for Predictions {
    fn guess(&self) -> Option<f64> {
        self.guess
    }

    fn next(&mut self, slope: f64, ends: [f64; 2], limit: f64) -> f64 {
        if self.exhausted {
            return slope;
        }
        let [steep, flat] = self.slopes;
        // How far the aim is from the lower end, in widths of the chord.
        let part = (Self::aim(ends, limit) - ends[0]) / (ends[1] - ends[0]);
        let predicted = if steep.is_finite() {
            let rest = 1.0 - part;
            6.0 * part * rest * slope
                + rest * (1.0 - 3.0 * part) * steep
                + part * (3.0 * part - 2.0) * flat
        } else {
            // A parabola: its slope is that of the chord in the middle.
            slope + (flat - slope) * (2.0 * part - 1.0)
        };
        if flat < predicted && predicted < steep {
            predicted
        } else {
            slope
        }
    }

    fn learn(
        &mut self,
        multiplier: f64,
        end: End,
        moved: bool,
        bound: f64,
        reached: impl FnOnce() -> f64,
    ) -> Option<f64> {
        self.slopes[end as usize] = multiplier;
        self.exhausted |= !moved;
        if bound < self.bound.0 {
            self.bound = (bound, multiplier);
        }
        (self.tolerance > 0.0 && self.bound.0 - reached() <= self.tolerance).then_some(self.bound.1)
    }
}
