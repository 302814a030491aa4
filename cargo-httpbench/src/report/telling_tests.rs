//! Every kind of message of a report, as a person reads it: each says why, and what to do next.
//!
//! From made-up rounds, by way of the real verdict; nothing is measured. `INSTA_UPDATE=always` writes the snapshots anew.

use std::time::Duration;

use httpbench_core::model::{Metric, Nanos, Ratio};

use super::{ComparedReport, End, LoadAverage, PackageReport, Report, render_report};
use crate::baseline::Sha256Hex;
use crate::baseline::sample::fingerprint;
use crate::baseline_arm::{OneSided, Origin, Removed};
use crate::error::Error;
use crate::exit_code::ExitCode;
use crate::measure::sample::{beside, failing_round, package, round, scenario};
use crate::measure::{Disturbance, MeasuredPackage, MeasuredRound, MeasuredScenario};
use crate::verdict::{Comparison, Family, Judged, Looks};
use crate::warning::Warning;

/// Rounds in which the baseline completed about a thousand exchanges, and the candidate so many per mille of that, each of them as
/// much faster or slower.
fn rounds(per_mille: u64, count: u64) -> Vec<MeasuredRound> {
    let arm = |good: u64| round(good, Nanos(1_000_000_000 / good));
    (0..count).map(|index| beside(arm(per_mille + index % 3), arm(1_000 + index % 2))).collect()
}

/// Rounds that wander by this much from one to the next.
fn unsteady(by: u64, count: u64) -> Vec<MeasuredRound> {
    (0..count).map(|index| rounds(1_000 + by * (index % 4) - by * 3 / 2, 1).remove(0)).collect()
}

/// Rounds in which so many of each arm's exchanges failed.
fn failing(candidate: u64, baseline: u64) -> Vec<MeasuredRound> {
    (0..8).map(|_| beside(failing_round(1_000, candidate), failing_round(1_000, baseline))).collect()
}

/// A report, and what is to be said of it.
struct Told {
    package: MeasuredPackage,
    one_sided: OneSided,
    differences: Vec<String>,
    gaps: Vec<Warning>,
    end: End,
}

impl Told {
    fn of(scenarios: Vec<MeasuredScenario>) -> Self {
        let mut package = package(scenarios);
        package.rounds = 8;
        Self { package, one_sided: OneSided::default(), differences: Vec::new(), gaps: Vec::new(), end: End::Complete }
    }

    /// With the cells of all scenarios that had not failed by `failed`.
    fn compared(mut self, failed: impl FnOnce(&mut MeasuredPackage)) -> String {
        let family = Family::fix(&self.package, 1.0, &self.one_sided.new).expect("no tolerance was written");
        failed(&mut self.package);
        let comparison = Comparison::look(&self.package, &family, Looks::ONLY);
        let with = "baseline `main` (saved 2026-11-29T10:00:00Z, commit 1a2b3c4d5e)";
        let origin = Origin { commit: None, executable_sha256: Some(Sha256Hex::of_bytes(b"server")) };
        let (origin, fingerprint) = (&origin, &fingerprint());
        let (one_sided, differences) = (&self.one_sided, &self.differences);
        self.render(Some(ComparedReport {
            with,
            comparison: &comparison,
            one_sided,
            origin,
            fingerprint,
            differences,
            numbers_only: None,
        }))
    }

    fn render(&self, compared: Option<ComparedReport<'_>>) -> String {
        let report = Report {
            packages: vec![PackageReport {
                measured: &self.package,
                scenarios: self.package.scenarios.iter().map(|scenario| Judged::new(scenario, Some(1))).collect(),
                compared,
            }],
            profile: "release",
            elapsed: Duration::from_secs(34),
            load_average: LoadAverage::default(),
            end: self.end,
            gaps: &self.gaps,
        };
        anstream::adapter::strip_str(&render_report(&report, 100)).to_string()
    }
}

fn nothing(_: &mut MeasuredPackage) {}

macro_rules! told {
    ($name:literal, $text:expr) => {
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!($name, $text)
        })
    };
}

#[test]
fn regressed_and_improved_and_changed_within_the_tolerance() {
    let confirmed = |name: &str, per_mille: u64| {
        let mut scenario = scenario(name, &[], rounds(per_mille, 8));
        scenario.confirmation = rounds(per_mille, 8);
        // In two turns of either order, so that it shows whether coming second matters.
        for round in &mut scenario.rounds {
            let slices = &mut round.recording.slices;
            slices.extend(slices.clone().into_iter().rev());
        }
        scenario
    };
    let scenarios = vec![confirmed("list", 900), confirmed("search", 1_200), scenario("item", &[], rounds(985, 8))];
    told!("regressed_and_improved", Told::of(scenarios).compared(nothing));
}

#[test]
fn change_that_fresh_rounds_do_not_show_again() {
    let refuted = |name: &str, per_mille: u64| {
        let mut scenario = scenario(name, &[], rounds(per_mille, 8));
        scenario.confirmation = rounds(1_000, 8);
        scenario
    };
    told!("not_confirmed", Told::of(vec![refuted("list", 900), refuted("search", 1_100)]).compared(nothing));
}

#[test]
fn rounds_that_differ_too_much_for_their_number() {
    let scenarios = vec![scenario("few", &[], unsteady(20, 8)), scenario("wild", &[], unsteady(300, 8))];
    told!("unsteady", Told::of(scenarios).compared(nothing));
}

#[test]
fn rounds_that_were_disturbed_from_outside() {
    let mut disturbed = scenario("list", &[], rounds(900, 8));
    disturbed.discarded = vec![Disturbance::Foreign(0.4), Disturbance::Steal(0.1), Disturbance::Suspended];
    told!("disturbed", Told::of(vec![disturbed]).compared(nothing));
}

#[test]
fn exchanges_that_fail_in_one_arm_or_in_both() {
    let scenarios = vec![
        scenario("baseline_fails", &[], failing(0, 10)),
        scenario("both_fail", &[], failing(10, 10)),
        scenario("candidate_fails", &[], failing(10, 0)),
    ];
    told!("failing_exchanges", Told::of(scenarios).compared(nothing));
}

#[test]
fn arms_without_any_good_exchange() {
    let silent = scenario("list", &[(Metric::Errors, 1.0)], failing(1_000, 1_000));
    told!("no_values", Told::of(vec![silent]).compared(nothing));
}

#[test]
fn load_engine_that_was_the_bottleneck() {
    let mut rounds = rounds(900, 8);
    for round in &mut rounds {
        round.recording.engine.cpu = round.recording.engine.wall;
    }
    told!("saturated", Told::of(vec![scenario("list", &[], rounds)]).compared(nothing));
    let mut alone = round(20_000, Nanos::from_micros(400));
    alone.recording.engine.cpu = alone.recording.engine.wall;
    let mut told = Told::of(vec![scenario("list", &[], vec![alone])]);
    told.package.rounds = 1;
    told!("saturated_alone", told.render(None));
}

#[test]
fn scenario_that_broke_off() {
    let scenarios = vec![scenario("list", &[], rounds(1_000, 8)), scenario("search", &[], rounds(1_000, 3))];
    let died = Error::new(ExitCode::ServerFailed, "`shop` exited with status 3 while `search` was measured");
    let told = Told::of(scenarios).compared(|package| package.scenarios[1].failure = Some(died));
    told!("broke_off", told);
}

#[test]
fn quantiles_that_too_few_exchanges_lie_beyond() {
    let few = |name: &str, exchanges_a_round: f64| {
        let mut scenario = scenario(name, &[], rounds(1_000, 8));
        if let Some(pilot) = &mut scenario.pilot {
            pilot.exchanges_a_round = exchanges_a_round;
        }
        scenario
    };
    let scenarios = vec![few("item", 1_000.0), few("list", 2_500.0), few("search", 1_200.0), few("slow", 150.0)];
    told!("not_gated", Told::of(scenarios).compared(nothing));
}

#[test]
fn scenarios_that_only_one_side_has() {
    let mut told = Told::of(vec![scenario("find", &[], rounds(1_000, 8)), scenario("list", &[], rounds(1_000, 8))]);
    told.one_sided = OneSided {
        new: vec!["find".to_owned()],
        removed: vec![
            Removed { name: "search".to_owned(), looks_renamed_to: Some("find".to_owned()) },
            Removed { name: "cart".to_owned(), looks_renamed_to: None },
        ],
        redefined: vec!["list".to_owned()],
    };
    told.differences = vec!["profile: `release` here, `dev` there".to_owned()];
    told!("one_sided", told.compared(nothing));
    let mut told = Told::of(vec![scenario("find", &[], rounds(1_000, 8))]);
    told.one_sided.new = vec!["find".to_owned()];
    told!("nothing_compared", told.compared(nothing));
}

/// BG-40: a limit and a tolerance on one metric are told apart.
#[test]
fn limits_beside_tolerances() {
    let with_fresh = |name: &str, bound: f64, fresh: u64| {
        let mut scenario = scenario(name, &[(Metric::P99, bound)], rounds(900, 8));
        scenario.confirmation = rounds(fresh, 8);
        scenario.load.tolerance.insert(Metric::P99, Ratio(0.05));
        scenario
    };
    let mut silent = scenario("silent", &[(Metric::P99, 5e6), (Metric::Errors, 1.0)], failing(1_000, 0));
    silent.confirmation = failing(1_000, 0);
    let scenarios = vec![
        with_fresh("exceeds", 1.0e6, 900),
        with_fresh("holds", 5.0e6, 900),
        with_fresh("recovers", 1.05e6, 1_100),
        silent,
    ];
    told!("limits", Told::of(scenarios).compared(nothing));
}

#[test]
fn what_is_not_judged_as_it_was_asked_for() {
    let mut told = Told::of(vec![scenario("list", &[], rounds(1_000, 8))]);
    told.gaps = vec![
        Warning::UnknownKey {
            file: "/w/httpbench.toml".into(),
            line: 3,
            key: "limit.p9".to_owned(),
            nearest: Some("p99".to_owned()),
        },
        Warning::NotCompared { why: "there is no baseline `main` of package `shop`".to_owned() },
    ];
    told!("gaps", told.render(None));
}

#[test]
fn interrupted_run() {
    let mut told = Told::of(vec![scenario("list", &[], rounds(1_000, 3))]);
    told.end = End::Interrupted;
    told!("interrupted", told.render(None));
}

#[test]
fn loads_that_differ() {
    let mut open = scenario("search", &[], rounds(1_000, 8));
    (open.load.connections, open.load.arrival_rate) = (1, Some(200.0));
    let scenarios = vec![scenario("item", &[], rounds(1_000, 8)), scenario("list", &[], rounds(1_000, 8)), open];
    told!("loads", Told::of(scenarios).render(None));
}
