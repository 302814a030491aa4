//! An arrival rate that changes evenly, and then stays: when a start is due is the root of a quadratic.

use super::nanos;
use crate::model::Nanos;

/// Starts per second: `from` at the beginning, `to` from `over` on. Neither is negative, and not both are zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::engine) struct Ramp {
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) over: Nanos,
}

impl Ramp {
    /// When start `number` is due. The integral of the arrival rate, `from·t + slope·t²/2`, is `number` then.
    pub(super) fn due(&self, number: u64) -> Nanos {
        #[expect(clippy::cast_precision_loss, reason = "exact up to 2^53 starts")]
        let number = number as f64;
        let over = self.over.as_secs_f64();
        let in_ramp = (self.from + self.to) / 2.0 * over;
        if number >= in_ramp {
            // A ramp down to zero has no more starts: infinite, and so never.
            let after = if number > in_ramp { (number - in_ramp) / self.to } else { 0.0 };
            return nanos(over + after);
        }
        if number == 0.0 {
            return Nanos::ZERO;
        }
        let slope = (self.to - self.from) / over;
        // The form of the root that subtracts nothing and holds for a slope of zero as well. Rounding alone makes the
        // discriminant negative, at the end of a ramp down to zero.
        let discriminant = (self.from * self.from + 2.0 * slope * number).max(0.0);
        nanos(2.0 * number / (self.from + discriminant.sqrt()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ramp_starts_are_where_the_integral_says() {
        // From 0 to 100 in 2 s: 100 starts, a quarter of them in the first second.
        let ramp = Ramp { from: 0.0, to: 100.0, over: Nanos::from_secs(2) };
        let due = |number| ramp.due(number).as_secs_f64();
        assert_eq!((due(0), due(25), due(100)), (0.0, 1.0, 2.0));
        assert_eq!((due(101), due(200)), (2.01, 3.0));
        // From 100 down to 50 in 2 s: 150 starts, 87.5 of them in the first second.
        let ramp = Ramp { from: 100.0, to: 50.0, over: Nanos::from_secs(2) };
        let due = |number| ramp.due(number).as_secs_f64();
        assert_eq!((due(0), due(150), due(151)), (0.0, 2.0, 2.02));
        assert!(due(87) < 1.0 && due(88) > 1.0);
    }

    #[test]
    fn ramp_down_to_zero_ends() {
        let ramp = Ramp { from: 100.0, to: 0.0, over: Nanos::from_secs(2) };
        assert!(ramp.due(99) < Nanos::from_secs(2));
        assert_eq!((ramp.due(100), ramp.due(101)), (Nanos::from_secs(2), Nanos(u64::MAX)));
    }

    #[test]
    fn ramp_that_takes_no_time_or_does_not_change_is_constant() {
        let step = Ramp { from: 1.0, to: 1_000.0, over: Nanos::ZERO };
        let flat = Ramp { from: 1_000.0, to: 1_000.0, over: Nanos::from_secs(1) };
        for number in 0..3_000 {
            assert_eq!((step.due(number), flat.due(number)), (Nanos::from_millis(number), Nanos::from_millis(number)));
        }
    }

    proptest! {
        #[test]
        fn ramp_has_as_many_starts_as_its_integral_and_never_goes_backwards(
            from in 0.0_f64..5_000.0,
            to in 0.1_f64..5_000.0,
            over in 1_u64..3_000_000_000,
            from_number in 0_u64..5_000,
        ) {
            let ramp = Ramp { from, to, over: Nanos(over) };
            for number in from_number..from_number + 50 {
                let t = ramp.due(number);
                prop_assert!(t <= ramp.due(number + 1));
                let (t, over) = (t.as_secs_f64(), Nanos(over).as_secs_f64());
                let ramped = t.min(over);
                let integral = from * ramped + (to - from) / over * ramped * ramped / 2.0 + to * (t - ramped);
                prop_assert!((integral - number as f64).abs() < 1e-3, "{integral} for {number}");
            }
        }
    }
}
