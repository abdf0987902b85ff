//! Dot products and sums in a fixed order of additions. The order decides the bits of every value, so it is part of
//! what a result means. No fused multiply-add.

/// <x, y> over the shorter length, in a fixed order: four running sums over the positions modulo 4,
/// the upper two added to the lower two (the order in which the compiler keeps all four in one
/// register; adding neighbours costs three times the time), then the remainder from left to right.
/// The order depends on the length only.
#[inline(always)]
pub(crate) fn dot(x: &[f64], y: &[f64]) -> f64 {
    const LANES: usize = 4;
    let len = x.len().min(y.len());
    let (x, y) = (&x[..len], &y[..len]);
    let mut sums = [0.0_f64; LANES];
    let (x_body, x_rest) = x.as_chunks::<LANES>();
    let (y_body, y_rest) = y.as_chunks::<LANES>();
    for (a, b) in x_body.iter().zip(y_body) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let mut sum = (sums[0] + sums[2]) + (sums[1] + sums[3]);
    for (a, b) in x_rest.iter().zip(y_rest) {
        sum += a * b;
    }
    sum
}

/// (<x, y>, <x, z>), each to the bits of [`dot`]; x is read once for both. The three have one length.
#[inline(always)]
pub(crate) fn dot_two(x: &[f64], y: &[f64], z: &[f64]) -> (f64, f64) {
    const LANES: usize = 4;
    let len = x.len();
    let (y, z) = (&y[..len], &z[..len]);
    let mut sums = ([0.0_f64; LANES], [0.0_f64; LANES]);
    let (x_body, x_rest) = x.as_chunks::<LANES>();
    let (y_body, y_rest) = y.as_chunks::<LANES>();
    let (z_body, z_rest) = z.as_chunks::<LANES>();
    for ((a, b), c) in x_body.iter().zip(y_body).zip(z_body) {
        for lane in 0..LANES {
            sums.0[lane] += a[lane] * b[lane];
        }
        for lane in 0..LANES {
            sums.1[lane] += a[lane] * c[lane];
        }
    }
    let total = |sums: [f64; LANES]| (sums[0] + sums[2]) + (sums[1] + sums[3]);
    let (mut first, mut second) = (total(sums.0), total(sums.1));
    for ((a, b), c) in x_rest.iter().zip(y_rest).zip(z_rest) {
        first += a * b;
        second += a * c;
    }
    (first, second)
}

/// <x, y_n> for each of N vectors that are stored side by side, each to the bits of [`dot`]; over the shorter length.
#[inline(always)]
pub(crate) fn dot_each<const N: usize>(x: &[f64], y: &[[f64; N]]) -> [f64; N] {
    const LANES: usize = 4;
    let len = x.len().min(y.len());
    let (x, y) = (&x[..len], &y[..len]);
    let mut sums = [[0.0_f64; N]; LANES];
    let (x_body, x_rest) = x.as_chunks::<LANES>();
    let (y_body, y_rest) = y.as_chunks::<LANES>();
    for (a, b) in x_body.iter().zip(y_body) {
        for lane in 0..LANES {
            for n in 0..N {
                sums[lane][n] += a[lane] * b[lane][n];
            }
        }
    }
    let mut total: [f64; N] =
        std::array::from_fn(|n| (sums[0][n] + sums[2][n]) + (sums[1][n] + sums[3][n]));
    for (a, b) in x_rest.iter().zip(y_rest) {
        for n in 0..N {
            total[n] += a * b[n];
        }
    }
    total
}

/// next += mass times row, for each row that has mass, in order. Four rows go together, so that
/// the targets are read and written once for all of them.
#[inline(always)]
pub(crate) fn propagate_rows<'a>(rows: impl Iterator<Item = (f64, &'a [f64])>, next: &mut [f64]) {
    let mut waiting = [(0.0, &[][..]); 4];
    let mut count = 0;
    for (mass, row) in rows.filter(|&(mass, _)| mass > 0.0) {
        waiting[count] = (mass, &row[..next.len()]);
        count += 1;
        if count == waiting.len() {
            let [(m, p), (n, q), (o, r), (u, s)] = waiting;
            for (state, target) in next.iter_mut().enumerate() {
                *target = *target + m * p[state] + n * q[state] + o * r[state] + u * s[state];
            }
            count = 0;
        }
    }
    for (mass, row) in &waiting[..count] {
        for (target, probability) in next.iter_mut().zip(*row) {
            *target += mass * probability;
        }
    }
}

/// The sum of x, in the order of [`dot`], and whether every entry has its sign bit clear; a row of
/// probabilities is read once for both.
#[inline(always)]
pub(crate) fn sum_and_signs(x: &[f64]) -> (f64, bool) {
    const LANES: usize = 4;
    let (body, rest) = x.as_chunks::<LANES>();
    let mut sums = [0.0_f64; LANES];
    let mut bits = [0_u64; LANES];
    for chunk in body {
        for lane in 0..LANES {
            sums[lane] += chunk[lane];
            bits[lane] |= chunk[lane].to_bits();
        }
    }
    let mut sum = (sums[0] + sums[2]) + (sums[1] + sums[3]);
    let mut signs = (bits[0] | bits[2]) | (bits[1] | bits[3]);
    for entry in rest {
        sum += entry;
        signs |= entry.to_bits();
    }
    (sum, signs >> 63 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_sign_is_enough_to_be_noticed() {
        for len in 1..12 {
            let mut x = vec![0.5; len];
            let (sum, clear) = sum_and_signs(&x);
            assert!((sum - 0.5 * len as f64).abs() < 1e-15 && clear);
            for place in 0..len {
                x[place] = -0.5;
                assert!(!sum_and_signs(&x).1);
                x[place] = 0.5;
            }
        }
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "identical bits are the claim")]
    fn several_at_once_have_the_bits_of_each_alone() {
        for len in 0..23 {
            let x: Vec<f64> = (0..len).map(|i| f64::from(i).sin()).collect();
            let y: Vec<[f64; 3]> = (0..len)
                .map(|i| [0.3, 1.7, -2.9].map(|scale| scale / f64::from(i + 1)))
                .collect();
            let found = dot_each(&x, &y);
            for n in 0..3 {
                let alone: Vec<f64> = y.iter().map(|y| y[n]).collect();
                assert_eq!(found[n], dot(&x, &alone));
            }
        }
    }

    #[test]
    fn a_dot_product_is_what_it_says() {
        let x = [1.0, 2.0, 3.0, 4.0, 5.0];
        assert!((dot(&x, &x) - 55.0).abs() < 1e-12);
        assert!(dot(&x[..0], &x).abs() < 1e-300);
    }
}
