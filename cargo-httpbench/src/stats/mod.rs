//! Pure functions on slices of numbers. This folder has never heard of HTTP.
//!
//! Order statistics describe a few values; the signed-rank test with its estimate and interval decides whether paired values
//! differ, the rank-sum test whether two independent samples do; Holm's correction joins several decisions; the binomial bounds how often
//! something happens; the normal distribution plans and never decides.

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
