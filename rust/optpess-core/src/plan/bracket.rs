//! The beginning of a search that has a guess of the optimal multiplier: policies on both sides of the limit, found near
//! the guess instead of at the ends of the curve.

use crate::certify::within;
use crate::error::Result;
use crate::plan::chord::{Chord, ChordSearch};
use crate::plan::pace::{End, Pace};
use crate::plan::problem::{Oracle, Point};

/// How far from a guess, in parts of it, ends of the first chord are looked for.
const WIDENINGS: [f64; 3] = [0.0, 0.03, 0.15];

impl<P: Point> ChordSearch<P> {
    /// Looks for ends of a chord at multipliers near the guess of a pace; which of the two were found.
    pub(super) fn bracket_near<O: Oracle<Point = P>>(
        &mut self,
        pace: &mut impl Pace,
        oracle: &mut O,
        limit: f64,
        inductions: &mut usize,
    ) -> Result<[bool; 2]> {
        let mut has = [false; 2];
        let Some(guess) = pace.guess() else {
            return Ok(has);
        };
        for widening in WIDENINGS {
            let multiplier = guess
                * if has[0] {
                    1.0 - widening
                } else {
                    1.0 + widening
                };
            let most = oracle.maximise(multiplier, &mut self.trial);
            oracle.check()?;
            *inductions += 1;
            oracle.locate(&mut self.trial);
            let Chord { below, above, .. } = &mut self.chord;
            let (end, place) = if within(self.trial.cost(), limit) {
                (End::Below, below)
            } else {
                (End::Above, above)
            };
            std::mem::swap(&mut self.trial, place);
            has[end as usize] = true;
            let bound = most + multiplier * limit;
            pace.learn(multiplier, end, true, bound, || f64::NEG_INFINITY);
            if has == [true; 2] {
                break;
            }
        }
        Ok(has)
    }
}
