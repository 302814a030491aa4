//! One format, one file. A format lays out what is handed to it; it measures, judges and prints nothing.

mod comparison;
mod failure;
pub mod json;
mod load;
pub mod load_json;
pub mod quantity;
mod selftest;
mod table;
#[cfg(test)]
mod telling_tests;
mod terminal;
mod trace;

use std::time::Duration;

pub use failure::{render_details, render_failure};
pub use load::{Detail, render_load};
pub use selftest::render_selftest;
pub use terminal::render_report;
pub use trace::render_trace;

use crate::baseline::Fingerprint;
use crate::baseline_arm::{OneSided, Origin};
use crate::measure::MeasuredPackage;
use crate::numbers_only::NumbersOnlyBecause;
use crate::verdict::{Comparison, Judged};
use crate::warning::Warning;

/// Everything that a report tells.
#[derive(Debug)]
pub struct Report<'run> {
    /// In the order in which they were measured.
    pub packages: Vec<PackageReport<'run>>,
    /// The cargo profile of server and bench target.
    pub profile: &'run str,
    /// From the first server's start to the last one's stop.
    pub elapsed: Duration,
    /// How busy the machine was with other work.
    pub load_average: LoadAverage,
    /// Whether a signal ended it before its end: what is told is what there was until then.
    pub end: End,
    /// The warnings that say that something is not judged as it was asked for: a limit that was misspelt, a baseline that is missing.
    pub gaps: &'run [Warning],
}

/// How a measurement ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// With all its rounds.
    #[default]
    Complete,
    /// By a signal.
    Interrupted,
}

/// The one-minute load average around the measurement; `None` where the system does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LoadAverage {
    /// Before the first round.
    pub at_start: Option<f64>,
    /// After the last one, our own load included.
    pub at_end: Option<f64>,
}

/// One package's part.
#[derive(Debug)]
pub struct PackageReport<'run> {
    /// What was measured.
    pub measured: &'run MeasuredPackage,
    /// In the order of their names.
    pub scenarios: Vec<Judged<'run>>,
    /// What two arms say, where there are two.
    pub compared: Option<ComparedReport<'run>>,
}

/// A comparison and what it was with.
#[derive(Debug)]
pub struct ComparedReport<'run> {
    /// The baseline, as a person calls it: ``revision `main` (1a2b3c4)``.
    pub with: &'run str,
    /// Which server that is, exactly.
    pub origin: &'run Origin,
    /// Where its server was not measured again: why.
    pub numbers_only: Option<&'run NumbersOnlyBecause>,
    /// What is different about its server or, by numbers only, its machine, in words.
    pub differences: &'run [String],
    /// The machine, and how the candidate was built.
    pub fingerprint: &'run Fingerprint,
    /// What the two arms say.
    pub comparison: &'run Comparison,
    /// The scenarios that only one side has.
    pub one_sided: &'run OneSided,
}
