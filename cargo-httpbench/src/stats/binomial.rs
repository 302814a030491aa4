//! How large a chance may be, given how often something happened.
//!
//! C. J. Clopper and E. S. Pearson, "The use of confidence or fiducial limits illustrated in the case of the binomial", Biometrika
//! 26 (1934), 404–413: the bound is never too low, whatever the chance is.

/// Halvings of the interval from 0 to 1; after 60, it is narrower than an f64 can tell near 1.
const HALVINGS: u32 = 60;

/// The largest chance that is compatible with `events` in `trials`, at a confidence of 1 − `alpha`. `None` without trials.
///
/// ```
/// use cargo_httpbench::stats::chance_at_most;
///
/// // The rule of three: nothing in 100 trials leaves a chance of about 3/100.
/// let bound = chance_at_most(0, 100, 0.05).expect("trials");
/// assert!((bound - 0.0295).abs() < 0.0001);
/// ```
#[must_use]
pub fn chance_at_most(events: usize, trials: usize, alpha: f64) -> Option<f64> {
    if trials == 0 {
        return None;
    }
    if events >= trials {
        return Some(1.0);
    }
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if at_most(events, trials, middle) > alpha { low = middle } else { high = middle }
    }
    Some(high)
}

/// The smallest chance that is compatible with `events` in `trials`, at a confidence of 1 − `alpha`. `None` without trials.
#[must_use]
pub fn chance_at_least(events: usize, trials: usize, alpha: f64) -> Option<f64> {
    chance_at_most(trials.checked_sub(events)?, trials, alpha).map(|bound| 1.0 - bound)
}

/// The probability of at most `events` in `trials` of this chance, strictly between 0 and 1.
#[expect(clippy::cast_precision_loss, reason = "counts of comparisons")]
fn at_most(events: usize, trials: usize, chance: f64) -> f64 {
    // Term by term, in logarithms: (1 − p)^n is below the smallest f64 for long soaks.
    let odds = chance.ln() - (-chance).ln_1p();
    let mut term = trials as f64 * (-chance).ln_1p();
    let mut sum = term.exp();
    for event in 0..events {
        term += ((trials - event) as f64 / (event + 1) as f64).ln() + odds;
        sum += term.exp();
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_those_of_the_tables() {
        // One-sided 97.5 %, which are the ends of the two-sided 95 % intervals of Clopper and Pearson.
        for (events, trials, upper) in [(0, 10, 0.3085), (1, 10, 0.4450), (5, 10, 0.8129), (2, 20, 0.3170)] {
            let bound = chance_at_most(events, trials, 0.025).expect("trials");
            assert!((bound - upper).abs() < 5e-5, "{events} of {trials}: {bound}");
        }
        let lower = chance_at_least(5, 10, 0.025).expect("trials");
        assert!((lower - 0.1871).abs() < 5e-5, "{lower}");
    }

    #[test]
    fn nothing_in_n_trials_has_the_closed_form() {
        for trials in [1_usize, 20, 40, 5_000] {
            let bound = chance_at_most(0, trials, 0.05).expect("trials");
            assert!((bound - (1.0 - 0.05_f64.powf(1.0 / trials as f64))).abs() < 1e-12, "{trials}: {bound}");
        }
    }

    #[test]
    fn no_trials_tell_nothing_and_all_of_them_leave_everything_possible() {
        assert_eq!(chance_at_most(0, 0, 0.05), None);
        assert_eq!(chance_at_least(0, 0, 0.05), None);
        assert_eq!(chance_at_most(3, 3, 0.05), Some(1.0));
        assert_eq!(chance_at_least(0, 3, 0.05), Some(0.0));
    }
}
