//! ln Gamma next to z ln z - z, without the cancellation of two large numbers.

/// ln(2 pi) / 2.
const HALF_LN_TWO_PI: f64 = 0.918_938_533_204_672_8;
/// From here on the asymptotic series below are exact to 1e-15.
const SERIES_FROM: f64 = 10.0;

/// ln Gamma(z) - ((z - 1/2) ln z - z + ln(2 pi)/2) for z >= 10.
///
/// Formula: 1/(12 z) - 1/(360 z^3) + 1/(1260 z^5) - 1/(1680 z^7) + 1/(1188 z^9) - 691/(360360 z^11). Citation:
/// Stirling's series (Abramowitz and Stegun 6.1.41). Deviation: cut off; the error is below the first term left out,
/// 1/(156 z^13).
fn stirling_remainder(z: f64) -> f64 {
    let inverse = 1.0 / z;
    let square = inverse * inverse;
    let series = 1.0 / 1188.0 - square * (691.0 / 360_360.0);
    let series = 1.0 / 1260.0 - square * (1.0 / 1680.0 - square * series);
    inverse * (1.0 / 12.0 - square * (1.0 / 360.0 - square * series))
}

/// ln Gamma(z) for z > 0. Where the result matters next to z ln z, use [`gamma_excess`].
pub(crate) fn ln_gamma(z: f64) -> f64 {
    let (mut z, mut product) = (z, 1.0);
    while z < SERIES_FROM {
        product *= z;
        z += 1.0;
    }
    (z - 0.5) * z.ln() - z + HALF_LN_TWO_PI + stirling_remainder(z) - f64::ln(product)
}

/// ln Gamma(z + a) - (z ln z - z) for z >= 0 and a > 0, exact to about 1e-14 (1 + a) for all z.
///
/// Formula: with w = z + a >= 10, (a - 1/2) ln w + z ln(1 + a/z) - a + ln(2 pi)/2 + remainder(w). Derivation: ln w =
/// ln z + ln(1 + a/z) in Stirling's formula; the terms of size z ln z are gone before anything is rounded. Deviation:
/// none.
pub(crate) fn gamma_excess(z: f64, a: f64) -> f64 {
    let w = z + a;
    if z <= 0.0 {
        ln_gamma(a)
    } else if w >= SERIES_FROM {
        (a - 0.5) * w.ln() + z * (a / z).ln_1p() - a + HALF_LN_TWO_PI + stirling_remainder(w)
    } else {
        ln_gamma(w) - z * (z.ln() - 1.0)
    }
}

/// [`gamma_excess`] at a = 1/2; one division for z >= 10.
///
/// Formula: ln(2 pi)/2 - 1/(24 z) + 7/(2880 z^3) - 31/(40320 z^5) + 127/(215040 z^7) - 511/(608256 z^9) +
/// 1414477/(738017280 z^11). Citation: Hermite's form of Stirling's series, coefficients B_2k(1/2)/(2k(2k - 1)).
/// Deviation: cut off.
pub(crate) fn gamma_excess_half(z: f64) -> f64 {
    if z < SERIES_FROM {
        return gamma_excess(z, 0.5);
    }
    let inverse = 1.0 / z;
    let square = inverse * inverse;
    let series = 511.0 / 608_256.0 - square * (1_414_477.0 / 738_017_280.0);
    let series = 31.0 / 40_320.0 - square * (127.0 / 215_040.0 - square * series);
    HALF_LN_TWO_PI - inverse * (1.0 / 24.0 - square * (7.0 / 2880.0 - square * series))
}

/// [`gamma_excess`] at a = 1; one logarithm for z >= 10.
///
/// Formula: ln Gamma(z + 1) = ln z + ln Gamma(z), so ln(2 pi z)/2 + remainder(z). Deviation: none.
pub(crate) fn gamma_excess_one(z: f64) -> f64 {
    if z < SERIES_FROM {
        return gamma_excess(z, 1.0);
    }
    0.5 * z.ln() + HALF_LN_TWO_PI + stirling_remainder(z)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum of ln over the factors of Gamma(start + count)/Gamma(start), with compensation.
    fn ln_rising(start: f64, count: usize) -> f64 {
        let (mut sum, mut lost) = (0.0_f64, 0.0_f64);
        for step in 0..count {
            let term = (start + step as f64).ln() - lost;
            let next = sum + term;
            lost = (next - sum) - term;
            sum = next;
        }
        sum
    }

    #[test]
    fn the_logarithm_of_gamma_is_the_sum_of_the_logarithms_of_its_factors() {
        let half = 0.5 * std::f64::consts::PI.ln();
        assert!((ln_gamma(0.5) - half).abs() < 1e-14);
        assert!(ln_gamma(1.0).abs() < 1e-14);
        for count in [0, 1, 2, 5, 9, 10, 11, 40, 300, 4000] {
            let z = count as f64;
            let scale = 1e-15 * (10.0 + z * (1.0 + z).ln());
            let of_half = half + ln_rising(0.5, count);
            let of_one = ln_rising(1.0, count);
            assert!((ln_gamma(z + 0.5) - of_half).abs() < scale, "{z}");
            assert!((ln_gamma(z + 1.0) - of_one).abs() < scale, "{z}");
            let large = if count == 0 { 0.0 } else { z * z.ln() - z };
            for (found, expected) in [
                (gamma_excess(z, 0.5), of_half),
                (gamma_excess_half(z), of_half),
                (gamma_excess(z, 1.0), of_one),
                (gamma_excess_one(z), of_one),
            ] {
                assert!((found - (expected - large)).abs() < 3.0 * scale, "{z}");
            }
        }
    }

    #[test]
    fn the_forms_agree_at_all_sizes_and_the_recurrence_holds() {
        for power in 0..=48 {
            let z = 10_f64.powf(-2.0 + f64::from(power) / 4.0);
            assert!((gamma_excess(z, 0.5) - gamma_excess_half(z)).abs() < 2e-14);
            assert!((gamma_excess(z, 1.0) - gamma_excess_one(z)).abs() < 4e-14);
            for a in [0.01, 0.3, 2.5, 40.0] {
                // Gamma(z + a + 1) = (z + a) Gamma(z + a)
                let step = gamma_excess(z, a + 1.0) - gamma_excess(z, a) - (z + a).ln();
                assert!(step.abs() < 1e-13 * (1.0 + a), "{z} {a} {step}");
            }
        }
    }
}
