//! What `cargo httpbench baseline …` says: texts for people and objects for programs. Writes nothing itself.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use httpbench_core::model::{Metric, Unit};
use jiff::Timestamp;
use serde::Serialize;

use super::executable::StoredExecutable;
use super::format::{Baseline, Commit, ExecutableRecord, Kept, WorkingTree};
use super::set_up::{EnvValue, SetUp};
use super::store::Listed;
use crate::report::quantity;
use crate::stats::median;

/// `reason: "baseline"`: one baseline of one package. Without its rounds: those are in its file.
#[derive(Debug, Serialize)]
pub(super) struct BaselineObject<'run> {
    name: &'run str,
    package: &'run str,
    folder: String,
    /// Why it cannot be read; then everything below is `null`.
    unreadable: Option<String>,
    baseline_schema: Option<u32>,
    server: Option<&'run str>,
    saved_at: Option<Timestamp>,
    commit: Option<&'run Commit>,
    fingerprint: Option<&'run super::Fingerprint>,
    set_up: Option<&'run SetUp>,
    executable: Option<&'run ExecutableRecord>,
    executable_state: Option<&'static str>,
    scenarios: Option<Vec<ScenarioObject<'run>>>,
}

#[derive(Debug, Serialize)]
struct ScenarioObject<'run> {
    name: &'run str,
    rounds: usize,
    definition: &'run str,
    metrics: BTreeMap<Metric, MedianObject>,
}

#[derive(Debug, Serialize)]
struct MedianObject {
    unit: Unit,
    median: f64,
}

/// The object of a baseline, readable or not.
pub(super) fn object<'run>(listed: &'run Listed, executable: Option<&StoredExecutable>) -> BaselineObject<'run> {
    let baseline = listed.baseline.as_ref().ok();
    BaselineObject {
        name: &listed.name,
        package: &listed.package,
        folder: listed.folder.display().to_string(),
        unreadable: listed.baseline.as_ref().err().map(|error| match &error.cause {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        }),
        baseline_schema: baseline.map(|baseline| baseline.schema),
        server: baseline.map(|baseline| baseline.server.as_str()),
        saved_at: baseline.map(|baseline| baseline.saved_at),
        commit: baseline.and_then(|baseline| baseline.commit.as_ref()),
        fingerprint: baseline.map(|baseline| &baseline.fingerprint),
        set_up: baseline.map(|baseline| &baseline.set_up),
        executable: baseline.and_then(|baseline| baseline.executable.as_ref()),
        executable_state: executable.map(state),
        scenarios: baseline.map(|baseline| {
            let scenarios = baseline.scenarios.iter();
            scenarios
                .map(|scenario| ScenarioObject {
                    name: &scenario.name,
                    rounds: scenario.rounds.len(),
                    definition: scenario.definition.as_str(),
                    metrics: Metric::ALL
                        .into_iter()
                        .filter_map(|metric| Some((metric, median_of(scenario, metric)?)))
                        .map(|(metric, median)| (metric, MedianObject { unit: metric.unit(), median }))
                        .collect(),
                })
                .collect()
        }),
    }
}

const fn state(executable: &StoredExecutable) -> &'static str {
    match executable {
        StoredExecutable::Whole(_) => "whole",
        StoredExecutable::Missing => "missing",
        StoredExecutable::Corrupt { .. } => "corrupt",
        StoredExecutable::NotStored => "not-stored",
    }
}

fn median_of(scenario: &super::BaselineScenario, metric: Metric) -> Option<f64> {
    let values: Vec<f64> = scenario.rounds.iter().filter_map(|round| round.0.get(&metric).copied()).collect();
    median(&values)
}

/// One line of the list.
pub(super) fn line(listed: &Listed) -> String {
    match &listed.baseline {
        Err(error) => {
            let cause = error.cause.as_ref().map(ToString::to_string).unwrap_or_default();
            format!("{} of {}: cannot be read: {cause}\n", listed.name, listed.package)
        }
        Ok(baseline) => {
            let count = baseline.scenarios.len();
            let scenarios = if count == 1 { "1 scenario".to_owned() } else { format!("{count} scenarios") };
            let executable = match &baseline.executable {
                None => "no executable".to_owned(),
                Some(record) => match record.kept {
                    Kept::Whole => format!("executable of {}", quantity::bytes(record.size)),
                    Kept::TooLarge => "no executable (too large)".to_owned(),
                },
            };
            format!(
                "{} of {}: {scenarios}, saved {:.0}{}, {executable}\n",
                baseline.name,
                baseline.package,
                baseline.saved_at,
                commit(baseline.commit.as_ref()).map(|commit| format!(" at {commit}")).unwrap_or_default(),
            )
        }
    }
}

fn commit(commit: Option<&Commit>) -> Option<String> {
    let commit = commit?;
    let short = commit.sha.get(..10).unwrap_or(&commit.sha);
    Some(match commit.tree {
        WorkingTree::Clean => short.to_owned(),
        WorkingTree::Modified => format!("{short} with uncommitted changes"),
    })
}

/// Everything that a person may want to know of a baseline.
pub(super) fn page(baseline: &Baseline, executable: &StoredExecutable) -> String {
    let mut page = format!("{} of {}\n", baseline.name, baseline.package);
    let mut row = |label: &str, text: &str| {
        let _ = writeln!(page, "  {label:<12}{text}");
    };
    row("saved", &format!("{:.0}", baseline.saved_at));
    row("commit", &commit(baseline.commit.as_ref()).unwrap_or_else(|| "unknown".to_owned()));
    row("server", &baseline.server);
    row("executable", &executable_text(baseline, executable));
    let fingerprint = &baseline.fingerprint;
    let build = &fingerprint.build;
    row(
        "built",
        &format!("{}, profile {}, features {}, {}", build.target, build.profile, build.features, build.toolchain),
    );
    row(
        "machine",
        &format!(
            "{}, {} cores, {}, kernel {}",
            fingerprint.cpu_model.as_deref().unwrap_or("unknown CPU"),
            fingerprint.cores,
            fingerprint.os,
            fingerprint.kernel.as_deref().unwrap_or("unknown")
        ),
    );
    if let Some(millicores) = fingerprint.quota_millicores {
        row("CPU quota", &format!("{}.{:03} cores", millicores / 1_000, millicores % 1_000));
    }
    let set_up = &baseline.set_up;
    if !set_up.args.is_empty() {
        row("arguments", &set_up.args.join(" "));
    }
    for (name, value) in &set_up.env {
        match value {
            EnvValue::Value(value) => row("variable", &format!("{name}={value}")),
            EnvValue::Sha256(_) => row("variable", &format!("{name} (its value is not kept)")),
        }
    }
    for path in set_up.copied.keys() {
        row("copied", path);
    }
    for scenario in &baseline.scenarios {
        let request = scenario.request.as_ref();
        let request = request.map(|request| format!(": {} {}", request.method, request.target)).unwrap_or_default();
        let _ = writeln!(page, "\n  {}{request}", scenario.name);
        for metric in Metric::ALL {
            if let Some(median) = median_of(scenario, metric) {
                let _ = writeln!(page, "    {:<16}{}", metric.name(), quantity::of_metric(metric, median));
            }
        }
        let count = quantity::count(scenario.counts.started);
        let _ = writeln!(page, "    {:<16}{count} in {} rounds", "exchanges", scenario.rounds.len());
    }
    page
}

fn executable_text(baseline: &Baseline, executable: &StoredExecutable) -> String {
    let Some(record) = &baseline.executable else { return "none".to_owned() };
    let known = format!("{}, sha256 {}", quantity::bytes(record.size), record.sha256);
    match executable {
        StoredExecutable::Whole(_) => known,
        StoredExecutable::Missing => format!("missing ({known})"),
        StoredExecutable::Corrupt { found, .. } => format!("damaged: its sha256 is {found} ({known})"),
        StoredExecutable::NotStored => format!("not kept, too large ({known})"),
    }
}

/// Where an executable comes from that `--baseline` would start.
pub(super) fn origin(baseline: &Baseline, record: &ExecutableRecord) -> String {
    let fingerprint = &baseline.fingerprint;
    format!(
        "executable of server `{}`, package `{}`, {}\n  sha256 {}\n  built for {} by {}, from commit {}\n  saved {:.0} on {}, {}\n",
        baseline.server,
        baseline.package,
        quantity::bytes(record.size),
        record.sha256,
        fingerprint.build.target,
        fingerprint.build.toolchain,
        commit(baseline.commit.as_ref()).unwrap_or_else(|| "unknown".to_owned()),
        baseline.saved_at,
        fingerprint.cpu_model.as_deref().unwrap_or("an unknown CPU"),
        fingerprint.os
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::baseline::Sha256Hex;
    use crate::baseline::sample::sample_baseline;
    use crate::error::Error;
    use crate::exit_code::ExitCode;

    fn with_executable() -> Baseline {
        let record = ExecutableRecord { sha256: Sha256Hex::of_bytes(b"x"), size: 12_300_000, kept: Kept::Whole };
        Baseline { executable: Some(record), ..sample_baseline() }
    }

    #[test]
    fn list_says_what_when_and_from_where() {
        let listed = |baseline| Listed {
            name: "main".to_owned(),
            package: "shop".to_owned(),
            folder: "/b/main/shop".into(),
            baseline,
        };
        assert_eq!(
            line(&listed(Ok(with_executable()))),
            "main of shop: 2 scenarios, saved 2026-03-04T05:06:07Z at 0123456789, executable of 12.3 MB\n"
        );
        let broken = Error::new(ExitCode::Configuration, "x").caused_by("it is no baseline");
        assert_eq!(line(&listed(Err(broken))), "main of shop: cannot be read: it is no baseline\n");
    }

    #[test]
    fn page_names_build_machine_and_each_scenarios_medians() {
        let mut baseline = with_executable();
        baseline.set_up.env.insert("TOKEN".to_owned(), EnvValue::Sha256(Sha256Hex::of_bytes(b"y")));
        let page = page(&baseline, &StoredExecutable::Missing);
        for text in [
            "main of shop",
            "missing (12.3 MB, sha256 2d711642",
            "profile release, features default, rustc 1.95.0",
            "AMD EPYC 7763",
            "--port={port}",
            "TOKEN (its value is not kept)",
            "http::search: GET /search?q=rust",
            "throughput      40,750/s",
            "2,000 in 2 rounds",
        ] {
            assert!(page.contains(text), "`{text}` is not in:\n{page}");
        }
    }
}
