//! Two arms side by side, for a person: which cells changed, by how much, and what that rests on.

use std::fmt::Write;

use super::table::{Align, Cell, Column, Weight, render};
use super::terminal::saturated;
use super::{ComparedReport, quantity};
use crate::measure::{Arms, BASELINE, CANDIDATE, MeasuredPackage, MeasuredScenario, ONE_AT_A_TIME_COST};
use crate::numbers_only::NumbersOnlyBecause;
use crate::server::PortPolicy;
use crate::style::{self, paint};
use crate::verdict::{
    CellReport, Comparison, Difference, LEAST_TOLERANCE, NotGated, Reason, SUPPORT, Verdict, judge_saturation,
};
use anstyle::Style;
use httpbench_core::model::{Metric, Nanos};

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
    let mut text = String::new();
    if rows.is_empty() {
        let _ = writeln!(text, "  {}", paint(style::WARNING, nothing_compared(package, compared)));
    } else {
        text.push_str(&render(&COLUMNS, &rows, width));
        text.push('\n');
        for line in legend(comparison, &package.arms_run) {
            let _ = writeln!(text, "  {}", paint(style::QUIET, &line));
        }
    }
    for line in not_gated(package, &comparison.not_gated) {
        let _ = writeln!(text, "  {}", paint(style::WARNING, &line));
    }
    for line in compared.numbers_only.into_iter().flat_map(weaker) {
        let _ = writeln!(text, "  {}", paint(style::WARNING, &line));
    }
    for name in &compared.one_sided.new {
        let _ = writeln!(text, "  {}", paint(style::QUIET, &format!("new, not compared: {name}")));
    }
    for name in &compared.one_sided.redefined {
        let line = format!("changed since the baseline: {name}; its present request and load drive both arms");
        let _ = writeln!(text, "  {}", paint(style::WARNING, &line));
    }
    for removed in &compared.one_sided.removed {
        let renamed = removed.looks_renamed_to.as_ref().map(|name| format!(", looks like a rename to {name}"));
        let line = format!(
            "removed since the baseline: {}{}; if that is meant, save the baseline again",
            removed.name,
            renamed.unwrap_or_default()
        );
        let _ = writeln!(text, "  {}", paint(style::WARNING, &line));
    }
    for (index, scenario) in package.scenarios.iter().enumerate() {
        let cores = package.cores.are_apart().then_some(package.cores.server.len());
        text.push_str(&explanations(scenario, cores, comparison.of_scenario(index)));
    }
    text
}

/// That numbers alone were compared, why, and what would be better.
fn weaker(because: &NumbersOnlyBecause) -> impl Iterator<Item = String> {
    let why = format!(
        "numbers only, for {}: ratios to the built-in reference server, measured at different times; weaker, and no change below \
         {LEAST_TOLERANCE} is decided",
        because.why
    );
    std::iter::once(why).chain(because.help.clone())
}

/// Why there is no cell, and what to do.
fn nothing_compared(package: &MeasuredPackage, compared: &ComparedReport<'_>) -> &'static str {
    let is_new = |scenario: &MeasuredScenario| compared.one_sided.new.iter().any(|name| name == scenario.name());
    if package.scenarios.iter().all(is_new) {
        "nothing could be compared: no scenario of this run is in the baseline; save it again with --save-baseline"
    } else {
        "nothing could be compared: no scenario came as far as to be judged; mend what is told below, and run again"
    }
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
    // To the tenth, for packages that share α: 97.5 %, and 90 % all the same.
    let level = (1_000.0 * comparison.confidence()).round() / 10.0;
    let mut lines = vec![format!(
        "change is candidate / baseline − 1 with its exact {level} % interval; stalls are intermittent stalls: mean throughput, slow slices in full"
    )];
    let detectable = comparison.cells.iter().filter_map(|cell| cell.detectable).map(|difference| difference.0);
    if let (Some(low), Some(high)) = (detectable.clone().min_by(f64::total_cmp), detectable.max_by(f64::total_cmp)) {
        lines.push(format!(
            "smallest change that these rounds find with a chance of 90 %: {} to {}, by cell",
            quantity::percent(low.exp_m1()),
            quantity::percent(high.exp_m1())
        ));
    }
    let order = comparison.cells.iter().filter(|cell| cell.gated.compared.metric() == Metric::Throughput);
    if let Some(effect) = order.filter_map(|cell| cell.order_effect).max_by(|a, b| a.abs().total_cmp(&b.abs())) {
        lines.push(format!(
            "order effect on throughput, of the second of two slices in a row: {}; both arms come second equally often",
            signed(effect)
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

/// What is not gated, and what is judged in its place: one line for each pair of quantiles, with the scenarios that it concerns.
fn not_gated(package: &MeasuredPackage, not_gated: &[NotGated]) -> Vec<String> {
    let mut groups: Vec<(Metric, Option<Metric>, Vec<String>)> = Vec::new();
    for &NotGated { scenario, metric, beyond, instead } in not_gated {
        let told = format!("{} ({beyond:.0})", package.scenarios[scenario].name());
        match groups.iter_mut().find(|group| (group.0, group.1) == (metric, instead)) {
            Some(group) => group.2.push(told),
            None => groups.push((metric, instead, vec![told])),
        }
    }
    let line = |(metric, instead, scenarios): (Metric, Option<Metric>, Vec<String>)| {
        let place = instead.map_or_else(
            || ", nor is any lower quantile".to_owned(),
            |instead| format!("; {instead} is, in its place"),
        );
        format!(
            "{metric} is not gated where fewer than {SUPPORT} exchanges of a round lie beyond it{place}: {}; a longer --duration \
             brings more",
            scenarios.join(", ")
        )
    };
    groups.into_iter().map(line).collect()
}

/// More rounds than this are no advice: the change is too close to its tolerance to be told from it.
const MOST_ROUNDS: usize = 500;

/// Why a scenario's cells need a look, and what to do. What more rounds would settle is told in one line, and so is what changed
/// within its tolerance.
fn explanations<'run>(
    scenario: &MeasuredScenario,
    cores: Option<usize>,
    cells: impl Iterator<Item = &'run CellReport>,
) -> String {
    let mut text = String::new();
    let mut unsteady: Vec<(&CellReport, usize)> = Vec::new();
    let mut all = 0;
    let mut accepted: Vec<String> = Vec::new();
    // What concerns the arms and not a metric is the same for all of a scenario's cells.
    let mut shared: Vec<(Vec<&'static str>, Style, String)> = Vec::new();
    for cell in cells {
        let name = cell.gated.compared.name();
        all += 1;
        match cell.reason {
            // The scenario itself says it, with what its numbers rest on.
            Some(Reason::NotMeasured) | None => {}
            Some(Reason::Unsteady { rounds_needed }) => unsteady.push((cell, rounds_needed)),
            Some(Reason::WithinTolerance) => accepted.extend(change_of(cell).map(|change| format!("{name} {change}"))),
            Some(reason) => {
                let sentence = sentence(scenario, cores, cell, reason);
                match shared.iter_mut().find(|(_, _, said)| *said == sentence) {
                    Some((names, ..)) => names.push(name),
                    None => shared.push((vec![name], role_of(cell.verdict), sentence)),
                }
            }
        }
    }
    for (names, role, sentence) in shared {
        let which = if names.len() == all { String::new() } else { format!("{}: ", names.join(", ")) };
        let _ = writeln!(text, "\n{}: {which}{sentence}", paint(role, scenario.name()));
    }
    if let Some(told) = not_settled(scenario, &unsteady) {
        let _ = writeln!(text, "\n{}: {told}", paint(style::WARNING, scenario.name()));
    }
    if !accepted.is_empty() {
        let _ = writeln!(
            text,
            "\n{}: changed significantly, within the tolerance: {}",
            paint(style::HEADING, scenario.name()),
            accepted.join(", ")
        );
    }
    text
}

fn change_of(cell: &CellReport) -> Option<String> {
    cell.decision.estimate.map(|estimate| signed(estimate.change(cell.gated.compared)))
}

/// What more rounds of the same length would do for cells that the rounds did not settle.
fn not_settled(scenario: &MeasuredScenario, cells: &[(&CellReport, usize)]) -> Option<String> {
    let &(first, _) = cells.first()?;
    let rounds = first.rounds.max(1);
    let names = cells.iter().map(|(cell, _)| cell.gated.compared.name()).collect::<Vec<_>>().join(", ");
    let needed = cells.iter().map(|(_, needed)| *needed).max().unwrap_or(rounds);
    let advice = if needed > MOST_ROUNDS {
        "too close to the tolerance or too unsteady here for a sensible number; accept a larger tolerance, or measure on a quieter \
         machine"
            .to_owned()
    } else {
        // The duration is that of all rounds together: more of them must not become shorter.
        let length = scenario.scheme().map_or(Nanos::ZERO, |scheme| scheme.loaded());
        let duration = std::time::Duration::from_secs((length * needed as u64).as_duration().as_secs() + 1);
        let duration = humantime::format_duration(duration).to_string().replace(' ', "");
        format!("run again with --rounds {needed} --duration {duration}")
    };
    let needs = format!("{rounds} rounds do not settle it, about {} would", quantity::count(needed as u64));
    Some(format!("{names}: the rounds differ too much for their number: {needs}; {advice}"))
}

/// Why a cell is not decided, and what to do next.
fn sentence(scenario: &MeasuredScenario, cores: Option<usize>, cell: &CellReport, reason: Reason) -> String {
    let rounds = cell.rounds;
    match reason {
        Reason::NotConfirmed => {
            let way = if cell.decision.estimate.is_some_and(|estimate| estimate.0 < 0.0) { "better" } else { "worse" };
            format!(
                "{way} in {rounds} rounds, and {} fresh ones did not confirm it, so it may have been chance; run again to be surer",
                scenario.confirmation.len()
            )
        }
        Reason::Disturbed { discarded } => {
            let first = scenario.discarded.first().map(|cause| format!(" ({cause})")).unwrap_or_default();
            format!(
                "disturbed from outside: {discarded} rounds were discarded{first}, more than one in four; let nothing else run \
                 beside it, and run again"
            )
        }
        Reason::BaselineFails => format!(
            "cannot be compared: exchanges failed in the baseline{}; if the old server does not know this request, the scenario \
             counts from the next baseline on",
            first_failure(scenario, BASELINE)
        ),
        Reason::CandidateFails => format!(
            "cannot be compared: exchanges failed in the candidate{}; mend that first, or accept it with a limit on `errors`",
            first_failure(scenario, CANDIDATE)
        ),
        Reason::BothFail => format!(
            "cannot be compared: exchanges failed in both arms{}; mend the scenario or the server, or accept it with a limit on \
             `errors`",
            first_failure(scenario, CANDIDATE)
        ),
        Reason::Saturated => match judge_saturation(&scenario.rounds, cores) {
            Some(saturation) => saturated(saturation),
            None => "the load engine was the bottleneck".to_owned(),
        },
        Reason::NotMeasured => "not measured to its end".to_owned(),
        Reason::NoValues => {
            let failing = [CANDIDATE, BASELINE].into_iter().find(|&arm| scenario.counts_of(arm).failed() > 0);
            let failed = failing.map(|arm| first_failure(scenario, arm)).unwrap_or_default();
            let advice = if failed.is_empty() {
                "a longer --duration gives each round more exchanges"
            } else {
                "mend what fails"
            };
            format!("no round has a value in both arms{failed}; {advice}")
        }
        Reason::TooFewRounds { rounds_needed } => {
            format!(
                "{rounds} rounds cannot decide about so many cells, {rounds_needed} can; run again with --rounds {rounds_needed}"
            )
        }
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
        Reason::WithinTolerance => "changed significantly, within the tolerance".to_owned(),
        Reason::Unsteady { rounds_needed } => format!("about {rounds_needed} rounds would settle it"),
    }
}

/// The first of an arm's exchanges that failed, in brackets.
fn first_failure(scenario: &MeasuredScenario, arm: usize) -> String {
    let counts = scenario.counts_of(arm);
    let error = || {
        let (class, _) = counts.errors.counts.iter().next()?;
        Some(counts.errors.examples.get(class).cloned().unwrap_or_else(|| class.to_string()))
    };
    let example = counts.check_example.clone().or_else(error);
    let total = quantity::count(counts.failed());
    let started = quantity::count(counts.started);
    example.map_or_else(String::new, |example| format!(" ({total} of {started}, the first: {example})"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::{ALPHA, Looks};

    /// What the legend says of the arms.
    fn told(arms: &Arms) -> Vec<String> {
        let comparison = Comparison { cells: Vec::new(), not_gated: Vec::new(), looks: Looks::ONLY, alpha: ALPHA };
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
