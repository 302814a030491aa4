//! The metrics by the names that the attribute gives them, and what may be said of each.
//!
//! The names are those of `httpbench_core::model::Metric` with underscores; the expansion names its variants, so a metric
//! that is missing there does not compile.

/// What a limit on a metric is written in, and stored in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bound {
    /// `"1000/s"`, as exchanges per second.
    PerSecond,
    /// `"20ms"`, as nanoseconds.
    Duration,
    /// `"0.1%"`, as a fraction.
    Share,
    /// `"200MB"`, as bytes.
    Size,
}

/// Whether a relative change of the metric can be accepted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparable {
    Yes,
    No,
}

/// One metric.
pub(crate) struct Metric {
    /// In the attribute.
    pub(crate) name: &'static str,
    /// In `httpbench_core::model::Metric`.
    pub(crate) variant: &'static str,
    pub(crate) bound: Bound,
    pub(crate) comparable: Comparable,
}

const fn metric(name: &'static str, variant: &'static str, bound: Bound, comparable: Comparable) -> Metric {
    Metric { name, variant, bound, comparable }
}

/// All of them, in the order in which they are listed to the user.
pub(crate) const METRICS: [Metric; 8] = [
    metric("throughput", "Throughput", Bound::PerSecond, Comparable::Yes),
    metric("cpu_per_request", "CpuPerRequest", Bound::Duration, Comparable::Yes),
    metric("p50", "P50", Bound::Duration, Comparable::Yes),
    metric("p90", "P90", Bound::Duration, Comparable::Yes),
    metric("p95", "P95", Bound::Duration, Comparable::Yes),
    metric("p99", "P99", Bound::Duration, Comparable::Yes),
    metric("errors", "Errors", Bound::Share, Comparable::No),
    metric("peak_memory", "PeakMemory", Bound::Size, Comparable::No),
];
