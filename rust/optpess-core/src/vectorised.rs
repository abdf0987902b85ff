//! Owns the choice of instruction set at run time, so that one portable build uses the wide vectors
//! of the machine it finds itself on. Refuses to change results: no fused multiply-add and no
//! reordering of sums, so every path gives the same bits.

/// A computation to be compiled once for each instruction set. Implementations mark `run` as
/// `#[inline(always)]`, so that the body (and what it inlines) is compiled inside the wrapper that
/// enables the features.
pub(crate) trait Job {
    /// What the computation returns.
    type Output;
    /// The computation.
    fn run(self) -> Self::Output;
}

/// Runs a job with the widest vectors this machine has.
#[inline]
pub(crate) fn vectorised<J: Job>(job: J) -> J::Output {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the feature has just been detected on this processor.
        return unsafe { with_avx2(job) };
    }
    job.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn with_avx2<J: Job>(job: J) -> J::Output {
    job.run()
}

/// <x, y> over the shorter length, in a fixed order: four running sums over the positions modulo 4,
/// added in pairs, then the remainder from left to right. The order depends on the length only.
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
    let mut sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    for (a, b) in x_rest.iter().zip(y_rest) {
        sum += a * b;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Dot<'a>(&'a [f64], &'a [f64]);

    impl Job for Dot<'_> {
        type Output = f64;
        #[inline(always)]
        fn run(self) -> f64 {
            dot(self.0, self.1)
        }
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "identical bits are the claim")]
    fn every_path_gives_the_same_bits() {
        for len in 0..70 {
            let x: Vec<f64> = (0..len).map(|i| 1.0 / f64::from(i + 3)).collect();
            let y: Vec<f64> = (0..len).map(|i| f64::from(i * i) * 0.37 - 1.0).collect();
            assert_eq!(vectorised(Dot(&x, &y)), dot(&x, &y));
        }
    }

    #[test]
    fn a_dot_product_is_what_it_says() {
        let x = [1.0, 2.0, 3.0, 4.0, 5.0];
        assert!((dot(&x, &x) - 55.0).abs() < 1e-12);
        assert!(dot(&x[..0], &x).abs() < 1e-300);
    }
}
