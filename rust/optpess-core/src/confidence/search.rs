//! Bisection for the first index where a monotone predicate holds.

use std::ops::Range;

/// The least number of the range for which `holds` is true; the end of the range if there is none. `holds` must be
/// monotone: false up to some number and true from there on. It is called only for numbers of the range, at most 64
/// times.
pub(crate) fn bisect_first(range: Range<u64>, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut start, mut end) = (range.start, range.end);
    while start < end {
        let middle = start + (end - start) / 2;
        if holds(middle) {
            end = middle;
        } else {
            start = middle + 1;
        }
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_number_is_found_wherever_it_is() {
        for first in 3..12 {
            let asked = |number: u64| {
                assert!((3..11).contains(&number));
                number >= first
            };
            assert_eq!(bisect_first(3..11, asked), first.min(11));
        }
        assert_eq!(bisect_first(5..5, |_| unreachable!()), 5);
        assert_eq!(
            bisect_first(0..u64::MAX, |number| number > 1 << 60),
            (1 << 60) + 1
        );
    }
}
