//! Pure functions on slices of numbers. This folder has never heard of HTTP.

mod order;

pub use order::{Spread, median, spread};
