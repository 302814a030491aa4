//! Pure functions on slices of numbers. This folder has never heard of HTTP.
//!
//! To be read in this order, each with its sources:
//!
//! 1. `order` describes a few values: median, interquartile mean, spread.
//! 2. `signed_rank` tests whether values lie around zero, exactly and without assuming a distribution: only symmetry.
//! 3. `hodges_lehmann` estimates where they lie instead, and holds the interval of all centres that the test does not reject.
//! 4. `holm` takes many tests at once without more false alarms than one.
//! 5. `rank_sum` does what 2 and 3 do for two samples that nothing pairs.
//! 6. `binomial` bounds the chance of what happened so often in so many trials.
//! 7. `normal` says beforehand how small a shift so many values could show. It plans and never decides.
//!
//! One example through all of it, small enough for paper. Five values, all positive: of the 2^5 ways to sign their ranks one has
//! a sum as large, so p is 1/32. No wider family than m = 1 is decided at 5 % by that: with two such tests Holm doubles it.
//!
//! ```
//! use cargo_httpbench::stats::{hodges_lehmann, holm, p_greater, signed_rank_interval};
//!
//! let values = [1.0, 2.0, 3.0, 4.0, 5.0];
//! let p = p_greater(&values, 0.0).expect("five values");
//! assert_eq!(p, 1.0 / 32.0);
//! assert_eq!(hodges_lehmann(&values), Some(3.0));
//! // At 1/32 on either side nothing but the outermost means can be cut off.
//! let interval = signed_rank_interval(&values, 0.05).expect("five values");
//! assert_eq!((interval.low, interval.high), (1.0, 5.0));
//! assert_eq!(holm(&[p, p]), [2.0 / 32.0, 2.0 / 32.0]);
//! ```

mod binomial;
mod hodges_lehmann;
mod holm;
mod normal;
mod order;
mod rank_sum;
mod signed_rank;

pub use binomial::{chance_at_least, chance_at_most};
pub use hodges_lehmann::{Interval, hodges_lehmann, signed_rank_interval};
pub use holm::holm;
pub use normal::{detectable_shift, normal_quantile};
pub use order::{Spread, interquartile_mean, median, spread, standard_deviation};
pub use rank_sum::{hodges_lehmann_shift, rank_sum_interval, rank_sum_p_greater, rank_sum_p_less};
pub use signed_rank::{NullDistribution, p_greater, p_less};
