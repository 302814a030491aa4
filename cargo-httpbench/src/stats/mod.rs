//! Pure functions on slices of numbers. This folder has never heard of HTTP.
//!
//! Order statistics describe a few values; the signed-rank test with its estimate and interval decides whether paired values
//! differ; Holm's correction joins several decisions; the normal distribution plans and never decides.

mod hodges_lehmann;
mod holm;
mod normal;
mod order;
mod signed_rank;

pub use hodges_lehmann::{Interval, hodges_lehmann, signed_rank_interval};
pub use holm::holm;
pub use normal::{detectable_shift, normal_quantile};
pub use order::{Spread, interquartile_mean, median, spread, standard_deviation};
pub use signed_rank::{NullDistribution, p_greater, p_less};
