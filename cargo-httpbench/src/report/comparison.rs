//! Two arms side by side, for a person: which cells changed, by how much, and what that rests on.

use std::fmt::Write;

use super::table::{Align, Cell, Column, Weight, render};
use super::{ComparedReport, quantity};
use crate::baseline::Severity;
use crate::measure::{Arms, MeasuredPackage, ONE_AT_A_TIME_COST};
use crate::numbers_only::NumbersOnly;
use crate::server::PortPolicy;
use crate::style::{self, paint};
use crate::verdict::{ALPHA, CellReport, Comparison, Difference, LEAST_TOLERANCE, Reason, Verdict};
use anstyle::Style;

const COLUMNS: [Column; 8] = [
    Column { head: "scenario", align: Align::Left, weight: Weight::Essential },
    Column { head: "metric", align: Align::Left, weight: Weight::Essential },
    Column { head: "baseline", align: Align::Right, weight: Weight::Usual },
    Column { head: "candidate", align: Align::Right, weight: Weight::Usual },
    Column { head: "change", align: Align::Right, weight: Weight::Essential },
    Column { head: "interval", align: Align::Right, weight: Weight::Usual },
    Column { head: "tolerance", align: Align::Right, weight: Weight::Extra },
    Column { head: "verdict", align: Align::Left, weight: Weight::Essential },
];

/// The table of all gated cells, with the legend and what needs a look.
#[must_use]
pub(super) fn render_comparison(package: &MeasuredPackage, compared: &ComparedReport<'_>, width: usize) -> String {
    let comparison = compared.comparison;
    let mut rows = Vec::new();
    for (index, scenario) in package.scenarios.iter().enumerate() {
        for (place, cell) in comparison.of_scenario(index).enumerate() {
            rows.push(row(if place == 0 { scenario.name() } else { "" }, cell));
        }
    }
    let mut text = render(&COLUMNS, &rows, width);
    text.push('\n');
    for line in legend(comparison, &package.arms_run) {
        let _ = writeln!(text, "  {}", paint(style::QUIET, &line));
    }
    for line in compared.numbers.iter().flat_map(|numbers| told_of_numbers(numbers, package)) {
        let _ = writeln!(text, "  {}", paint(style::WARNING, &line));
    }
    for name in &compared.one_sided.new {
        let _ = writeln!(text, "  {}", paint(style::QUIET, &format!("new, not compared: {name}")));
    }
    for removed in &compared.one_sided.removed {
        let renamed = removed.looks_renamed_to.as_ref().map(|name| format!(", looks like a rename to {name}"));
        let line = format!("removed since the baseline: {}{}", removed.name, renamed.unwrap_or_default());
        let _ = writeln!(text, "  {}", paint(style::WARNING, &line));
    }
    for (index, scenario) in package.scenarios.iter().enumerate() {
        text.push_str(&explanations(scenario.name(), comparison.of_scenario(index)));
    }
    text
}

/// That numbers alone were compared, why, and what is different there.
fn told_of_numbers(numbers: &NumbersOnly, package: &MeasuredPackage) -> Vec<String> {
    let mut lines = vec![format!(
        "numbers only, for {}: ratios to the built-in reference server, measured at different times; weaker, and no change below \
         {LEAST_TOLERANCE} is decided",
        numbers.why
    )];
    if package.has_results() {
        lines.push(format!(
            "`cargo httpbench --save-baseline {}` on the code of that baseline keeps its server again",
            numbers.baseline.name.as_str()
        ));
    }
    lines.extend(numbers.differences.iter().map(|difference| match difference.severity {
        Severity::NotComparable => format!("not comparable: {difference}"),
        Severity::Note => format!("worth knowing: {difference}"),
    }));
    lines
}

/// How many cells came to which verdict, the gravest first: `1 regressed, 8 unchanged`.
#[must_use]
pub(super) fn tally<'run>(cells: impl Iterator<Item = &'run CellReport> + Clone) -> String {
    let order = [Verdict::Regressed, Verdict::Invalid, Verdict::Inconclusive, Verdict::Improved, Verdict::Unchanged];
    let parts: Vec<String> = order
        .into_iter()
        .map(|verdict| (verdict, cells.clone().filter(|cell| cell.verdict == verdict).count()))
        .filter(|(_, count)| *count > 0)
        .map(|(verdict, count)| paint(role_of(verdict), &format!("{count} {}", verdict.name())))
        .collect();
    if parts.is_empty() { "nothing could be compared".to_owned() } else { parts.join(", ") }
}

fn row(scenario: &str, cell: &CellReport) -> Vec<Cell> {
    let compared = cell.gated.compared;
    let value = |value: Option<f64>| {
        value.map_or_else(|| "–".to_owned(), |value| quantity::of_metric(compared.metric(), value))
    };
    let change = |difference: Difference| signed(difference.change(compared));
    let interval = cell.decision.interval.map(|interval| {
        // Positive differences are worse, so for throughput the ends change places.
        let mut ends = [interval.low, interval.high].map(|end| Difference(end).change(compared));
        ends.sort_by(f64::total_cmp);
        format!("{} to {}", signed(ends[0]), signed(ends[1]))
    });
    let role = role_of(cell.verdict);
    vec![
        Cell::styled(scenario, style::HEADING),
        Cell::plain(compared.name()),
        Cell::plain(value(cell.baseline)),
        Cell::plain(value(cell.candidate)),
        Cell::styled(cell.decision.estimate.map_or_else(|| "–".to_owned(), change), role),
        Cell::styled(interval.unwrap_or_else(|| "–".to_owned()), style::QUIET),
        Cell::styled(format!("±{}", cell.gated.tolerance), style::QUIET),
        Cell::styled(cell.verdict.name(), role),
    ]
}

fn role_of(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Regressed => style::ERROR,
        Verdict::Invalid | Verdict::Inconclusive => style::WARNING,
        Verdict::Improved => style::GOOD,
        Verdict::Unchanged => Style::new(),
    }
}

fn signed(fraction: f64) -> String {
    let percent = (fraction * 1_000.0).round() / 10.0;
    format!("{}{:.1}%", if percent > 0.0 { "+" } else { "" }, if percent == 0.0 { 0.0 } else { percent })
}

fn legend(comparison: &Comparison, arms: &Arms) -> Vec<String> {
    let level = 100.0 * (1.0 - 2.0 * comparison.looks.alpha(ALPHA));
    let mut lines = vec![format!(
        "change is candidate / baseline − 1 with its exact {level:.0} % interval; stalls: mean throughput, slow slices in full"
    )];
    let stand_ins: Vec<String> = comparison
        .cells
        .iter()
        .filter_map(|cell| cell.gated.stands_for.map(|metric| format!("{} for {metric}", cell.gated.compared)))
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .collect();
    if !stand_ins.is_empty() {
        lines.push(format!(
            "judged in place of a quantile that fewer than 100 exchanges of a round lie beyond: {}",
            stand_ins.join(", ")
        ));
    }
    let detectable = comparison.cells.iter().filter_map(|cell| cell.detectable).map(|difference| difference.0);
    if let (Some(low), Some(high)) = (detectable.clone().min_by(f64::total_cmp), detectable.max_by(f64::total_cmp)) {
        lines.push(format!(
            "smallest change that these rounds find with a chance of 90 %: {} to {}, by cell",
            quantity::percent(low.exp_m1()),
            quantity::percent(high.exp_m1())
        ));
    }
    match arms {
        Arms::Together { ports: PortPolicy::Ask } => {}
        Arms::Together { ports: PortPolicy::Redirect } => {
            lines.push("fixed ports redirected; costs about 0.1 µs per system call on both arms".to_owned());
        }
        Arms::OneAtATime { why } => lines.push(format!(
            "the arms ran one at a time, for both insist on the same port, which cannot be redirected here ({why}); \
             {ONE_AT_A_TIME_COST}"
        )),
    }
    lines
}

/// More rounds than this are no advice: the change is too close to its tolerance to be told from it.
const MOST_ROUNDS: usize = 500;

/// Why a scenario's cells need a look, and what to do. What more rounds would settle is told in one line.
fn explanations<'run>(scenario: &str, cells: impl Iterator<Item = &'run CellReport>) -> String {
    let mut text = String::new();
    let mut unsteady: Vec<(&'static str, usize, usize)> = Vec::new();
    for cell in cells {
        match cell.reason {
            Some(Reason::Unsteady { rounds_needed }) => {
                unsteady.push((cell.gated.compared.name(), cell.rounds, rounds_needed));
            }
            Some(reason) => {
                if let Some(sentence) = sentence(cell, reason) {
                    let name = paint(role_of(cell.verdict), scenario);
                    let _ = writeln!(text, "\n{name}: {} {sentence}", cell.gated.compared);
                }
            }
            None => {}
        }
    }
    if let Some(&(_, rounds, _)) = unsteady.first() {
        let names = unsteady.iter().map(|(name, ..)| *name).collect::<Vec<_>>().join(", ");
        let needed = unsteady.iter().map(|(_, _, needed)| *needed).max().unwrap_or(rounds);
        let advice = if needed > MOST_ROUNDS {
            "too close to the tolerance, or too unsteady here, for any sensible number".to_owned()
        } else {
            format!("about {needed} would do (--rounds {needed})")
        };
        let _ =
            writeln!(text, "\n{}: {names} not settled by {rounds} rounds; {advice}", paint(style::WARNING, scenario));
    }
    text
}

fn sentence(cell: &CellReport, reason: Reason) -> Option<String> {
    let rounds = cell.rounds;
    Some(match reason {
        Reason::NotConfirmed => {
            format!("was worse in {rounds} rounds, and {} fresh ones did not confirm it", cell.fresh_rounds)
        }
        Reason::Disturbed { discarded } => {
            format!("was disturbed from outside: {discarded} rounds were discarded; let nothing else run beside it")
        }
        Reason::BaselineFails => {
            "cannot be compared: exchanges failed in the baseline; does that revision answer this scenario?".to_owned()
        }
        Reason::CandidateFails => "cannot be compared: exchanges failed in the candidate".to_owned(),
        Reason::BothFail => "cannot be compared: exchanges failed in both arms".to_owned(),
        Reason::Saturated => {
            "is the load engine's and not the servers': it was busy throughout; give it more cores with --threads"
                .to_owned()
        }
        Reason::NotMeasured => "was not measured to its end, see above".to_owned(),
        Reason::NoValues => "has no round with a value in both arms".to_owned(),
        Reason::NotComparable => {
            "cannot be compared by numbers alone: the machine or the build is another one".to_owned()
        }
        Reason::ScenarioChanged => {
            "cannot be compared by numbers alone: the scenario changed, it sends something else or under another load"
                .to_owned()
        }
        Reason::NoReference => {
            "cannot be compared by numbers alone: the baseline was not measured beside the reference server".to_owned()
        }
        Reason::OtherReference => {
            "cannot be compared by numbers alone: another version of cargo-httpbench has another reference server"
                .to_owned()
        }
        Reason::ReferenceFails => "cannot be compared: exchanges with the reference server failed".to_owned(),
        Reason::ReferenceUnsteady => {
            "cannot be compared: the reference server itself was unsteady; let nothing else run beside it".to_owned()
        }
        Reason::WithinTolerance | Reason::Unsteady { .. } => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Looks;

    /// What the legend says of the arms.
    fn told(arms: &Arms) -> Vec<String> {
        let comparison = Comparison { cells: Vec::new(), looks: Looks { planned: 1, this: 1 } };
        legend(&comparison, arms).split_off(1)
    }

    #[test]
    fn legend_says_what_redirected_ports_cost_and_nothing_of_arms_that_obey() {
        assert_eq!(told(&Arms::default()), Vec::<String>::new());
        assert_eq!(
            told(&Arms::Together { ports: PortPolicy::Redirect }),
            ["fixed ports redirected; costs about 0.1 µs per system call on both arms"]
        );
    }

    #[test]
    fn legend_says_why_arms_ran_one_at_a_time_and_what_that_costs_in_numbers() {
        let lines = told(&Arms::OneAtATime { why: "a sandbox".to_owned() });
        let [line] = &lines[..] else { panic!("{lines:?}") };
        for part in ["one at a time", "(a sandbox)", "4.8 %", "instead of 1.0 %"] {
            assert!(line.contains(part), "{line}");
        }
    }
}
