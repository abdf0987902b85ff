//! The episodes at which curves are recorded.

/// Numbers of episodes, increasing, evenly spaced on a logarithmic scale, from 1 to `last`, about
/// `per_decade` a decade and each at most once.
#[must_use]
pub fn record_points(last: u64, per_decade: u32) -> Vec<u64> {
    let mut points: Vec<u64> = Vec::new();
    let mut exponent = 0_i32;
    loop {
        let point = 10_f64
            .powf(f64::from(exponent) / f64::from(per_decade))
            .round() as u64;
        if point >= last {
            break;
        }
        if points.last() != Some(&point) {
            points.push(point);
        }
        exponent += 1;
    }
    points.push(last);
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_increase_from_one_to_the_last_and_never_repeat() {
        for last in [1, 2, 9, 10, 11, 1000, 123_456_789, 4_000_000_000] {
            let points = record_points(last, 40);
            assert_eq!(points[0], 1.min(last));
            assert_eq!(points[points.len() - 1], last);
            assert!(points.windows(2).all(|pair| pair[0] < pair[1]));
            assert!(points.len() < 400);
        }
    }
}
