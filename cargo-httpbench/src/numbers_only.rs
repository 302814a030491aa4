//! Baselines whose server cannot be started any more, or not here: all that is left of them is their numbers.
//!
//! The numbers were measured beside the reference server, and so is the candidate now, or was it when it was saved; the two are compared
//! by their ratios to it. What must agree first is told here; how the ratios are judged is [`Numbers`]' affair.

use httpbench_core::model::Metric;

use crate::baseline::{
    Baseline, BaselineScenario, Difference, Fingerprint, Severity, StoredBaseline, StoredExecutable, definition,
};
use crate::baseline_arm::{Origin, told};
use crate::measure::{MeasuredPackage, MeasuredScenario, values};
use crate::stats::median;
use crate::verdict::{
    AgainstReference, Numbers, Reason, Side, Verdict, disturbed, errors_limit, judge_saturation, too_many_failed,
};

/// A baseline of which only numbers are used.
#[derive(Clone, Debug, PartialEq)]
pub struct NumbersOnly {
    /// What a person calls it.
    pub with: String,
    /// Why its server is not measured again.
    pub because: NumbersOnlyBecause,
    /// Which server it was.
    pub origin: Origin,
    /// What was kept of it.
    pub baseline: Baseline,
    /// What differs between its machine and build and those of the candidate.
    pub differences: Vec<Difference>,
}

/// Why numbers alone are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumbersOnlyBecause {
    /// What keeps the server from being measured again, to follow a "for".
    pub why: String,
    /// What would bring it back.
    pub help: Option<String>,
}

/// A stored baseline whose server cannot be started here, as numbers: if there are any, or if nothing of this build could be
/// compared with it anyway. `None`: its server can be started, or there is nothing to compare with at all.
#[must_use]
pub fn numbers_of(stored: &StoredBaseline, here: &Fingerprint) -> Option<NumbersOnly> {
    let baseline = &stored.baseline;
    let other_target = baseline.fingerprint.build.target != here.build.target;
    let why = match &stored.executable {
        StoredExecutable::Whole(_) if other_target => {
            format!("its server was built for {}", baseline.fingerprint.build.target)
        }
        StoredExecutable::Whole(_) if baseline.executable.is_some() => return None,
        StoredExecutable::Corrupt { expected, found } => {
            format!("its executable was damaged: its SHA-256 is {}, not {}", found.short(), expected.short())
        }
        StoredExecutable::Missing => "its executable is missing".to_owned(),
        StoredExecutable::NotStored | StoredExecutable::Whole(_) => "it was saved without its executable".to_owned(),
    };
    let help = format!(
        "`cargo httpbench --save-baseline {}` on the code of that baseline keeps its server again",
        baseline.name.as_str()
    );
    let has_ratios = baseline.scenarios.iter().any(|scenario| !scenario.against_reference.is_empty());
    (has_ratios || other_target).then(|| NumbersOnly::new(stored, NumbersOnlyBecause { why, help: Some(help) }, here))
}

impl NumbersOnly {
    /// Of a stored baseline, for a candidate that was measured on `here`.
    #[must_use]
    pub fn new(stored: &StoredBaseline, because: NumbersOnlyBecause, here: &Fingerprint) -> Self {
        let baseline = &stored.baseline;
        Self {
            with: told(stored),
            because,
            origin: Origin {
                commit: baseline.commit.as_ref().map(|commit| commit.sha.clone()),
                executable_sha256: baseline.executable.as_ref().map(|record| record.sha256.clone()),
            },
            baseline: baseline.clone(),
            differences: here.compare(&baseline.fingerprint),
        }
    }

    /// What differs, in words, and whether it forbids to compare the numbers.
    #[must_use]
    pub fn told_differences(&self) -> Vec<String> {
        let told = |difference: &Difference| match difference.severity {
            Severity::NotComparable => format!("not comparable: {difference}"),
            Severity::Note => format!("worth knowing: {difference}"),
        };
        self.differences.iter().map(told).collect()
    }

    /// What forbids to compare the numbers at all.
    pub fn obstacles(&self) -> impl Iterator<Item = &Difference> {
        self.differences.iter().filter(|difference| difference.severity == Severity::NotComparable)
    }

    /// Every scenario of the candidate beside what the baseline kept of it.
    #[must_use]
    pub fn beside(&self, measured: &MeasuredPackage) -> Vec<Numbers> {
        measured.scenarios.iter().map(|scenario| self.beside_one(measured, scenario)).collect()
    }

    fn beside_one(&self, measured: &MeasuredPackage, scenario: &MeasuredScenario) -> Numbers {
        let against =
            |rounds: &[crate::measure::MeasuredRound]| rounds.iter().filter_map(AgainstReference::of).collect();
        let value = |metric: Metric| Some((metric, median(&values(&scenario.rounds, metric))?));
        let candidate =
            Side { rounds: against(&scenario.rounds), medians: Metric::ALL.into_iter().filter_map(value).collect() };
        let mut numbers = Numbers { candidate, fresh: against(&scenario.confirmation), ..Numbers::default() };
        let kept = self.baseline.scenarios.iter().find(|kept| kept.name == scenario.name());
        if let Some(kept) = kept {
            numbers.baseline = side_of(kept);
            let counts = scenario.counts();
            let limit = errors_limit(scenario).bound;
            let definition = definition(scenario.listing.request.as_ref().ok(), &scenario.load);
            let failing = (fails_of(kept, limit), too_many_failed(counts.failed(), counts.started, limit));
            numbers.obstacle = self.obstacle(definition == kept.definition, failing);
        }
        let cores = measured.cores.are_apart().then_some(measured.cores.server.len());
        numbers.saturation = judge_saturation(&scenario.rounds, cores);
        numbers.obstacle = numbers.obstacle.or(disturbed(scenario).map(|reason| (Verdict::Inconclusive, reason)));
        if scenario.failure.is_some() {
            numbers.obstacle = Some((Verdict::Invalid, Reason::NotMeasured));
        }
        numbers
    }

    /// What forbids to compare a scenario, the gravest first. `failing`: whether more exchanges of baseline and candidate failed than
    /// the limit accepts.
    pub(crate) fn obstacle(&self, same_scenario: bool, failing: (bool, bool)) -> Option<(Verdict, Reason)> {
        let inconclusive = |reason| Some((Verdict::Inconclusive, reason));
        if self.obstacles().next().is_some() {
            return inconclusive(Reason::NotComparable);
        }
        if !same_scenario {
            return inconclusive(Reason::ScenarioChanged);
        }
        match failing {
            (true, true) => Some((Verdict::Invalid, Reason::BothFail)),
            (true, false) => inconclusive(Reason::BaselineFails),
            (false, true) => inconclusive(Reason::CandidateFails),
            (false, false) => None,
        }
    }
}

/// What was kept of a scenario, as one side of a comparison.
pub(crate) fn side_of(kept: &BaselineScenario) -> Side {
    let value = |metric: Metric| {
        let values: Vec<f64> = kept.rounds.iter().filter_map(|round| round.0.get(&metric).copied()).collect();
        Some((metric, median(&values)?))
    };
    Side { rounds: kept.against_reference.clone(), medians: Metric::ALL.into_iter().filter_map(value).collect() }
}

/// Whether more of its exchanges failed than the limit accepts.
pub(crate) fn fails_of(kept: &BaselineScenario, limit: f64) -> bool {
    let counts = &kept.counts;
    let failed = counts.check_failures + counts.errors.values().sum::<u64>();
    too_many_failed(failed, counts.started, limit)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use httpbench_core::model::Nanos;

    use crate::baseline::sample::{fingerprint, sample_baseline};
    use crate::baseline::{BuildFacts, ExecutableRecord, Field, Kept, Sha256Hex};
    use crate::measure::sample::{package, round, scenario};
    use crate::reference;
    use crate::verdict::{Compared, Comparison, Family, Looks, ReferenceState};

    /// The sample baseline, measured beside the reference server, with this executable.
    fn stored(executable: StoredExecutable) -> StoredBaseline {
        let mut baseline = sample_baseline();
        for scenario in &mut baseline.scenarios {
            let ratios = |index: u32| {
                let value = 0.1 * f64::from(index) / 100.0;
                let metrics = [Metric::Throughput, Metric::CpuPerRequest, Metric::P99].map(Compared::Metric);
                metrics.into_iter().chain([Compared::Stalls]).map(|compared| (compared, value)).collect()
            };
            let reference = ReferenceState { version: reference::VERSION, throughput: 9e4, failed: 0 };
            scenario.against_reference =
                (0..5).map(|index| AgainstReference { log_ratios: ratios(index), reference }).collect();
        }
        let sha256 = Sha256Hex::of_bytes(b"server");
        baseline.executable = Some(ExecutableRecord { sha256, size: 6, kept: Kept::Whole });
        StoredBaseline { baseline, executable, folder: "/nowhere".into() }
    }

    fn whole() -> StoredExecutable {
        StoredExecutable::Whole("/nowhere/server".into())
    }

    /// What is said of every cell of a candidate that needs so much longer than the reference server, with these fingerprints.
    fn said(numbers: &NumbersOnly, target: &str, slower: u64) -> Vec<(Verdict, Option<Reason>)> {
        let rounds = (0..8).map(|index| {
            let mut candidate = round(20_000 / slower + index % 3, Nanos(1_000_000 * slower));
            candidate.reference = Some(round(20_000 + index % 2, Nanos(1_000_000)).recording);
            candidate
        });
        let mut candidate = scenario("http::index", &[], rounds.collect());
        let kept = sample_baseline().scenarios.remove(0);
        candidate.load = crate::config::Layers::default().settings().load;
        candidate.listing.request = kept.request.ok_or_else(String::new);
        if let Ok(request) = &mut candidate.listing.request {
            request.target = target.to_owned();
        }
        let package = package(vec![candidate]);
        let family = Family::fix(&package, 1.0, &[]).expect("supported").for_numbers();
        let looks = Looks::ONLY;
        let comparison = Comparison::look_at_numbers(&numbers.beside(&package), &family, looks);
        comparison.cells.iter().map(|cell| (cell.verdict, cell.reason)).collect()
    }

    #[test]
    fn baseline_whose_server_can_be_started_is_no_affair_of_numbers() {
        assert_eq!(numbers_of(&stored(whole()), &fingerprint()), None);
        let elsewhere = Fingerprint { cpu_model: Some("EPYC 9V74".to_owned()), ..fingerprint() };
        assert_eq!(numbers_of(&stored(whole()), &elsewhere), None, "both are simply measured");
    }

    #[test]
    fn damaged_missing_and_foreign_executables_leave_the_numbers_and_say_why() {
        let hash = |text: &str| Sha256Hex::of_bytes(text.as_bytes());
        for (executable, word) in [
            (StoredExecutable::Missing, "is missing"),
            (StoredExecutable::NotStored, "without its executable"),
            (StoredExecutable::Corrupt { expected: hash("a"), found: hash("b") }, "was damaged"),
        ] {
            let numbers = numbers_of(&stored(executable), &fingerprint()).expect("it has ratios");
            assert!(numbers.because.why.contains(word), "{}", numbers.because.why);
            assert_eq!(numbers.differences, []);
        }
        let build = BuildFacts { target: "aarch64-unknown-linux-gnu".to_owned(), ..fingerprint().build };
        let numbers =
            numbers_of(&stored(whole()), &Fingerprint { build, ..fingerprint() }).expect("it cannot run here");
        assert_eq!(numbers.obstacles().next().map(|it| it.field), Some(Field::Target));
        let mut without = stored(StoredExecutable::Missing);
        without.baseline.scenarios.iter_mut().for_each(|scenario| scenario.against_reference.clear());
        assert_eq!(numbers_of(&without, &fingerprint()), None, "there is nothing to compare with");
    }

    #[test]
    fn equal_machine_and_scenario_are_compared_by_their_ratios() {
        let numbers = numbers_of(&stored(StoredExecutable::Missing), &fingerprint()).expect("it has ratios");
        let slow = said(&numbers, "/", 4);
        assert_eq!(slow[0], (Verdict::Regressed, None));
        assert_eq!(slow[3], (Verdict::Regressed, None), "p99, too");
        let same = said(&numbers, "/", 1);
        assert_eq!(same[0].0, Verdict::Unchanged, "{same:?}");
    }

    #[test]
    fn other_processor_or_build_is_never_regressed_and_both_are_named() {
        for (here, text) in [
            (
                Fingerprint { cpu_model: Some("AMD EPYC 9V74".to_owned()), ..fingerprint() },
                "CPU model: `AMD EPYC 9V74` here, `AMD EPYC 7763 64-Core Processor` there",
            ),
            (Fingerprint { cpu_model: None, ..fingerprint() }, "CPU model: `unknown` here"),
            (
                Fingerprint {
                    build: BuildFacts { features: "default, fast".to_owned(), ..fingerprint().build },
                    ..fingerprint()
                },
                "features: `default, fast` here, `default` there",
            ),
        ] {
            let numbers = numbers_of(&stored(StoredExecutable::Missing), &here).expect("it has ratios");
            assert!(numbers.obstacles().any(|difference| difference.to_string().contains(text)), "{text}");
            let cells = said(&numbers, "/", 4);
            assert!(
                cells.iter().all(|cell| *cell == (Verdict::Inconclusive, Some(Reason::NotComparable))),
                "{cells:?}"
            );
        }
    }

    #[test]
    fn scenario_that_sends_something_else_is_not_compared() {
        let numbers = numbers_of(&stored(StoredExecutable::Missing), &fingerprint()).expect("it has ratios");
        let cells = said(&numbers, "/other", 4);
        assert!(cells.iter().all(|cell| *cell == (Verdict::Inconclusive, Some(Reason::ScenarioChanged))), "{cells:?}");
    }

    #[test]
    fn failures_are_judged_by_the_side_that_has_them() {
        let mut stored = stored(StoredExecutable::Missing);
        stored.baseline.scenarios[0].counts.check_failures = 1;
        let numbers = numbers_of(&stored, &fingerprint()).expect("it has ratios");
        assert_eq!(said(&numbers, "/", 4)[0], (Verdict::Inconclusive, Some(Reason::BaselineFails)));
        stored.baseline.scenarios[0].counts.check_failures = 0;
        stored.baseline.scenarios[0].counts.errors = BTreeMap::from([("timeout".to_owned(), 1)]);
        let numbers = numbers_of(&stored, &fingerprint()).expect("it has ratios");
        assert_eq!(said(&numbers, "/", 4)[0].1, Some(Reason::BaselineFails));
    }
}
