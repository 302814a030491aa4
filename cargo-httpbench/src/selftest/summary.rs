//! What many comparisons say together: counts, times, and how often it may go wrong at most.
//!
//! Chances are bounded by Clopper and Pearson's method at 95 % (see [`chance_at_most`]).

use std::fmt::Write;
use std::time::Duration;

use serde::Serialize;

use super::plan::{Change, Speed};
use super::{ArmOrder, Neighbour, Record};
use crate::report::quantity;
use crate::stats::{chance_at_least, chance_at_most, median, normal_quantile};
use crate::verdict::Verdict;

/// Bounds fail to hold with this chance.
const ALPHA: f64 = 0.05;

/// The chance with which the smallest change is found that the summary names: that of `detectable`.
const POWER: f64 = 0.9;

/// Comparisons of one kind, made by one plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    /// The servers.
    pub speed: Speed,
    /// What the candidate did more.
    pub change: Change,
    /// How the arms ran.
    pub order: ArmOrder,
    /// What else ran.
    pub neighbour: Neighbour,
    /// The plan, in words.
    pub plan: String,
    /// How many.
    pub comparisons: usize,
    /// Those with a `regressed` in any cell.
    pub regressed: usize,
    /// Those of them that were found at the first look.
    pub at_the_first_look: usize,
    /// Those whose throughput (in an open loop p50) was `unchanged`.
    pub unchanged: usize,
    /// Cells that were gated, and those of them that were `inconclusive`, by metric.
    pub cells: Vec<CellCount>,
    /// The chance of a `regressed`, at least.
    pub regressed_at_least: Option<f64>,
    /// The chance of a `regressed`, at most.
    pub regressed_at_most: Option<f64>,
    /// The median time of a comparison.
    pub seconds: Option<f64>,
    /// The smallest loss of throughput (in an open loop growth of p50) that such a comparison finds with a chance of 90 %, as the
    /// median over the comparisons.
    pub smallest_found: Option<f64>,
    /// The tolerance of throughput (in an open loop p50).
    pub tolerance: Option<f64>,
    /// The median of the changes that were estimated of it.
    pub estimated: Option<f64>,
    /// Rounds that were discarded because something disturbed them.
    pub discarded_rounds: usize,
    /// Rounds that counted.
    pub measured_rounds: usize,
}

/// How often a cell was gated and left open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CellCount {
    /// Its metric.
    pub metric: String,
    /// Comparisons in which it was gated.
    pub gated: usize,
    /// Those in which it was `inconclusive`.
    pub inconclusive: usize,
}

impl Group {
    fn key(record: &Record) -> (String, Change, ArmOrder, Neighbour, &str) {
        (record.speed.into(), record.change, record.order, record.neighbour, &record.plan)
    }

    fn of(records: &[&Record]) -> Option<Self> {
        let first = records.first()?;
        let comparisons = records.len();
        let count = |of: &dyn Fn(&Record) -> bool| records.iter().filter(|record| of(record)).count();
        let regressed = count(&Record::is_regressed);
        let is_unchanged =
            |record: &Record| record.main_cell().is_some_and(|cell| cell.verdict == Verdict::Unchanged.name());
        let medians = |of: &dyn Fn(&Record) -> Option<f64>| {
            median(&records.iter().filter_map(|record| of(record)).collect::<Vec<_>>())
        };
        let mut cells: Vec<CellCount> = Vec::new();
        for cell in records.iter().flat_map(|record| &record.cells) {
            let inconclusive = usize::from(cell.verdict == Verdict::Inconclusive.name());
            match cells.iter_mut().find(|counted| counted.metric == cell.metric) {
                Some(counted) => {
                    counted.gated += 1;
                    counted.inconclusive += inconclusive;
                }
                None => cells.push(CellCount { metric: cell.metric.clone(), gated: 1, inconclusive }),
            }
        }
        Some(Self {
            speed: first.speed,
            change: first.change,
            order: first.order,
            neighbour: first.neighbour,
            plan: first.plan.clone(),
            comparisons,
            regressed,
            at_the_first_look: count(&|record| record.is_regressed() && record.look == 1),
            unchanged: count(&is_unchanged),
            cells,
            regressed_at_least: chance_at_least(regressed, comparisons, ALPHA),
            regressed_at_most: chance_at_most(regressed, comparisons, ALPHA),
            seconds: medians(&|record| Some(record.seconds)),
            smallest_found: medians(&|record| {
                let cell = record.main_cell()?;
                Some(smallest_found(cell.detectable?, cell.alpha, cell.tolerance).exp_m1())
            }),
            tolerance: first.main_cell().map(|cell| cell.tolerance),
            estimated: medians(&|record| record.main_cell()?.change),
            discarded_rounds: records.iter().map(|record| record.discarded).sum(),
            measured_rounds: records.iter().map(|record| record.measured).sum(),
        })
    }
}

/// The smallest difference that is called `regressed` with a chance of 90 %. It must be significant, and the estimate must reach the
/// tolerance, on either side of which the estimate of a change as large as the tolerance falls equally often.
fn smallest_found(detectable: f64, alpha: f64, tolerance: f64) -> f64 {
    let standard_error = detectable / (normal_quantile(1.0 - alpha) + normal_quantile(POWER));
    detectable.max(tolerance.ln_1p() + normal_quantile(POWER) * standard_error)
}

/// Groups comparisons by kind and plan, in the order of speed and change.
#[must_use]
pub fn summarise(records: &[Record]) -> Vec<Group> {
    let mut groups: Vec<Vec<&Record>> = Vec::new();
    for record in records {
        match groups.iter_mut().find(|group| Group::key(group[0]) == Group::key(record)) {
            Some(group) => group.push(record),
            None => groups.push(vec![record]),
        }
    }
    let mut groups: Vec<Group> = groups.iter().filter_map(|group| Group::of(group)).collect();
    groups.sort_by(|a, b| {
        let open = |group: &Group| group.speed.arrival_rate.is_some();
        (open(a).cmp(&open(b)))
            .then(b.speed.capacity.total_cmp(&a.speed.capacity))
            .then(a.change.0.total_cmp(&b.change.0))
    });
    groups
}

/// All of it in plain words.
pub(super) fn render(groups: &[Group], elapsed: Duration, width: usize) -> String {
    if groups.is_empty() {
        return "\nno comparison was finished\n".to_owned();
    }
    let made: usize = groups.iter().map(|group| group.comparisons).sum();
    let mut text = format!("\n{made} comparisons; this call took {:.0} s\n\n", elapsed.as_secs_f64());
    text.push_str(&crate::report::render_selftest(groups, width));
    text.push('\n');
    for group in groups {
        let _ = writeln!(text, "{}", sentence(group));
    }
    let equal: Vec<&Group> = groups.iter().filter(|group| group.change.is_none()).collect();
    let (runs, alarms) =
        equal.iter().fold((0, 0), |(runs, alarms), group| (runs + group.comparisons, alarms + group.regressed));
    if let Some(bound) = chance_at_most(alarms, runs, ALPHA) {
        let _ = writeln!(
            text,
            "\nOf {runs} comparisons of equal servers {alarms} said `regressed`: the chance of a false alarm here is at most {} \
             (at a confidence of 95 %).",
            quantity::percent(bound)
        );
    }
    text
}

fn sentence(group: &Group) -> String {
    let metric = if group.speed.arrival_rate.is_some() { "p50" } else { "throughput" };
    let kind = format!("{}, {}", group.speed, group.change);
    let mut parts = Vec::new();
    if group.change.is_none() {
        if let (Some(change), Some(tolerance), Some(seconds)) = (group.smallest_found, group.tolerance, group.seconds) {
            parts.push(format!(
                "a change of {metric} by {} is found nine times in ten, in about {seconds:.0} s (tolerance {})",
                quantity::percent(change),
                quantity::percent(tolerance)
            ));
        }
        parts.push(format!("{} of {} were rightly `unchanged`", group.unchanged, group.comparisons));
    } else {
        parts.push(format!(
            "{} of {} were found, {} at the first look",
            group.regressed, group.comparisons, group.at_the_first_look
        ));
        if let Some(bound) = group.regressed_at_least {
            parts.push(format!("so at least {} of such changes are", quantity::percent(bound)));
        }
        if group.unchanged > 0 {
            parts.push(format!("{} were called `unchanged`", group.unchanged));
        }
    }
    if group.discarded_rounds > 0 {
        parts.push(format!(
            "rounds that something disturbed, and that were discarded: {}; rounds that counted: {}",
            group.discarded_rounds, group.measured_rounds
        ));
    }
    format!("{kind}: {}.", parts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::record;
    use super::*;

    fn records() -> Vec<Record> {
        use Verdict::{Inconclusive, Regressed, Unchanged};
        let mut records: Vec<Record> = (0..20).map(|_| record("3000", 0.05, Regressed, Unchanged)).collect();
        records[3] = record("3000", 0.05, Inconclusive, Inconclusive);
        records[4] = Record { look: 2, seconds: 50.0, ..record("3000", 0.05, Regressed, Inconclusive) };
        records.extend((0..40).map(|_| record("3000", 0.0, Unchanged, Unchanged)));
        records.push(record("100000", 0.0, Unchanged, Inconclusive));
        records
    }

    #[test]
    fn kinds_are_counted_apart_and_the_fastest_server_comes_first() {
        let groups = summarise(&records());
        let counts: Vec<(usize, usize, usize, usize)> = groups
            .iter()
            .map(|group| (group.comparisons, group.regressed, group.at_the_first_look, group.unchanged))
            .collect();
        assert_eq!(counts, [(1, 0, 0, 1), (40, 0, 0, 40), (20, 19, 18, 0)]);
        let p99 = CellCount { metric: "p99".to_owned(), gated: 20, inconclusive: 2 };
        assert_eq!(groups[2].cells[1], p99);
        assert_eq!(groups[2].seconds, Some(20.0));
    }

    #[test]
    fn bounds_are_those_of_clopper_and_pearson() {
        let groups = summarise(&records());
        assert!((groups[1].regressed_at_most.expect("40") - 0.0722).abs() < 1e-4);
        assert!((groups[2].regressed_at_least.expect("20") - 0.7839).abs() < 1e-4);
    }

    #[test]
    fn smallest_change_must_be_significant_and_beyond_the_tolerance() {
        // Detectable 2 % at α = 0.0125: a standard error of 0.02 / (2.2414 + 1.2816).
        let found = smallest_found(0.02, 0.0125, 0.03);
        assert!((found - (0.03_f64.ln_1p() + 1.2816 * 0.02 / 3.523)).abs() < 1e-5, "{found}");
        assert!((smallest_found(0.2, 0.0125, 0.03) - 0.2).abs() < 1e-12, "noise decides");
    }

    #[test]
    fn other_plans_are_other_groups() {
        let mut records = records();
        records[0].plan = "longer".to_owned();
        records[1].neighbour = Neighbour::Busy;
        assert_eq!(summarise(&records).len(), 5);
    }

    #[test]
    fn words_name_the_smallest_change_the_time_and_the_bound() {
        let text = render(&summarise(&records()), Duration::from_secs(100), 100);
        for part in [
            "61 comparisons",
            "by 3.8% is found nine times in ten, in about 20 s (tolerance 3.0%)",
            "19 of 20 were found, 18 at the first look",
            "at least 78.4%",
            "Of 41 comparisons of equal servers 0 said `regressed`",
            "at most 7.0%",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        assert!(render(&[], Duration::ZERO, 100).contains("no comparison"));
    }
}
