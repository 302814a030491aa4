//! The normal distribution, for planning: how large a shift some rounds could have shown. Verdicts are exact and do not use it.
//!
//! A test at level α finds a shift δ with the chance 1 − β if δ is as large as (z₁₋α + z₁₋β) standard errors of its estimate; for
//! the signed-rank test that error is the mean's, divided by the square root of the test's efficiency.

/// The asymptotic efficiency of the signed-rank test for normal values, 3/π (E. L. Lehmann, "Nonparametrics", 1975, section 2.4).
const SIGNED_RANK_EFFICIENCY: f64 = 3.0 / std::f64::consts::PI;

/// The chance of finding a shift that is called detectable.
const POWER: f64 = 0.9;

/// The quantile of the standard normal distribution at `p`, strictly between 0 and 1; otherwise infinite.
///
/// M. J. Wichura, "Algorithm AS 241", Applied Statistics 37 (1988), the version of seven digits.
#[must_use]
pub fn normal_quantile(p: f64) -> f64 {
    let horner =
        |coefficients: &[f64], x: f64| coefficients.iter().rev().fold(0.0, |sum, coefficient| sum * x + coefficient);
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180_625 - q * q;
        return q * horner(&[3.387_132_7, 50.434_271_9, 159.291_132, 59.109_374_7], r)
            / horner(&[1.0, 17.895_169_5, 78.757_757_7, 67.187_563_6], r);
    }
    let tail = if q < 0.0 { p } else { 1.0 - p };
    if tail <= 0.0 {
        return q.signum() * f64::INFINITY;
    }
    let r = (-tail.ln()).sqrt();
    let value = if r <= 5.0 {
        let r = r - 1.6;
        horner(&[1.423_437_28, 2.756_815_39, 1.306_728_48, 0.170_238_21], r)
            / horner(&[1.0, 0.737_001_64, 0.120_211_33], r)
    } else {
        let r = r - 5.0;
        horner(&[6.657_905_2, 3.081_226_39, 0.428_682_95, 0.017_337_203], r)
            / horner(&[1.0, 0.241_978_94, 0.012_258_202], r)
    };
    value.copysign(q)
}

/// The smallest shift that a one-sided signed-rank test at level `alpha` finds with a chance of 90 % in `rounds` values of this
/// standard deviation, approximately.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a number of rounds")]
pub fn detectable_shift(standard_deviation: f64, rounds: usize, alpha: f64) -> f64 {
    let error = standard_deviation / (rounds as f64 * SIGNED_RANK_EFFICIENCY).sqrt();
    (normal_quantile(1.0 - alpha) + normal_quantile(POWER)) * error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (p, z) in [
            (0.5, 0.0),
            (0.9, 1.281_552),
            (0.95, 1.644_854),
            (0.975, 1.959_964),
            (0.999_5, 3.290_527),
            (0.1, -1.281_552),
        ] {
            assert!((normal_quantile(p) - z).abs() < 1e-5, "{p}: {}", normal_quantile(p));
        }
        assert!((normal_quantile(1e-12) - -7.034_484).abs() < 1e-4);
        assert_eq!(normal_quantile(0.0), f64::NEG_INFINITY);
    }

    #[test]
    fn four_times_the_rounds_halve_what_is_detectable() {
        let few = detectable_shift(0.02, 8, 0.01);
        let many = detectable_shift(0.02, 32, 0.01);
        assert!((few / many - 2.0).abs() < 1e-9);
    }
}
