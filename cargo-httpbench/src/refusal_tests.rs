//! Every kind of refusal, as a person reads it: each says what happened, why, and what to do next.
//!
//! Those of git are tested where repositories are made, in `tests/revision`. `INSTA_UPDATE=always` writes the snapshots anew.

use std::fs;
use std::path::Path;

use httpbench_core::model::{Metric, Nanos};

use crate::baseline::sample::{sample_baseline, server_spec};
use crate::baseline::{
    BaselineName, Ci, ExecutableRecord, Found, Kept, Missing, Saving, SetUp, Sha256Hex, Store, StoredBaseline,
    StoredExecutable, may_save,
};
use crate::baseline_arm::{Opponent, from_baseline};
use crate::bench::Selection;
use crate::cli::ComparisonOptions;
use crate::compare::refuse;
use crate::environment::Environment;
use crate::error::Error;
use crate::exit_code::ExitCode;
use crate::report::render_failure;
use crate::revision::NoServer;
use crate::verdict::Unsupported;

#[track_caller]
fn told(name: &str, exit: ExitCode, error: &Error) {
    assert_eq!(error.exit, exit, "{error:?}");
    assert!(error.help.is_some(), "it does not say what to do: {error:?}");
    told_somewhere(name, "", error);
}

/// With the folder of the test left out.
fn told_somewhere(name: &str, folder: &str, error: &Error) {
    let mut text = anstream::adapter::strip_str(&render_failure(error)).to_string();
    if !folder.is_empty() {
        text = text.replace(folder, "/w");
    }
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(name, text);
    });
}

fn name() -> BaselineName {
    "main".parse().expect("a name")
}

#[test]
fn baseline_that_is_missing() {
    let missing = Missing {
        name: name(),
        package: "shop".to_owned(),
        searched: "/w/target/httpbench/baselines/main/shop".into(),
        existing: vec!["before".parse().expect("a name")],
        other_packages: vec!["cart".to_owned()],
    };
    told("baseline_missing", ExitCode::NothingCompared, &missing.error(ExitCode::NothingCompared));
}

#[test]
fn executable_that_is_not_whole() {
    let hash = |text: &str| Sha256Hex::of_bytes(text.as_bytes());
    for (kind, executable) in [
        ("executable_missing", StoredExecutable::Missing),
        ("executable_not_stored", StoredExecutable::NotStored),
        ("executable_damaged", StoredExecutable::Corrupt { expected: hash("a"), found: hash("b") }),
    ] {
        let mut baseline = sample_baseline();
        baseline.set_up = SetUp::of(&server_spec(Path::new("/nowhere"))).expect("it copies nothing");
        baseline.executable = Some(ExecutableRecord { sha256: hash("a"), size: 1, kept: Kept::Whole });
        let found = Found::Stored(Box::new(StoredBaseline { baseline, executable, folder: "/nowhere".into() }));
        let candidate = server_spec(Path::new("/nowhere"));
        let opponent = from_baseline(found, &candidate, &ComparisonOptions::default()).expect("it is readable");
        let Opponent::Absent(error) = opponent else { panic!("{kind} is an arm") };
        told(kind, ExitCode::NothingCompared, &error);
    }
}

#[test]
fn baseline_that_cannot_be_read_or_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().to_str().expect("text");
    let store = Store::open(folder.path(), None);
    let text = store.save(&name(), &sample_baseline(), None).expect("saved").folder.join("baseline.json");
    let refused = |kind: &str, text_of: &str| {
        fs::write(&text, text_of).expect("written");
        let error = store.check_writable(&name(), "shop").expect_err("it is never overwritten");
        assert_eq!(error.exit, ExitCode::Configuration);
        told_somewhere(kind, place, &error);
    };
    refused("baseline_spoilt", "{");
    refused("baseline_newer", r#"{"schema": 99, "needs_httpbench": "9.0.0"}"#);

    // A file where the folder should be can be written by nobody, not even by root.
    let file = folder.path().join("file");
    fs::write(&file, "").expect("written");
    let error = Store::open(folder.path(), Some(&file)).check_writable(&name(), "shop").expect_err("it is a file");
    assert_eq!(error.exit, ExitCode::OutputFailed);
    told_somewhere("baselines_not_writable", place, &error);
}

#[test]
fn baseline_that_others_compare_with() {
    let environment: Environment =
        [("GITHUB_ACTIONS", "true"), ("GITHUB_EVENT_NAME", "pull_request"), ("GITHUB_REF", "refs/pull/7/merge")]
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
    let error = may_save(&name(), true, Ci::Yes, Saving::FromTheDefaultBranch, &environment).expect_err("refused");
    told("baseline_of_others", ExitCode::Configuration, &error);
}

#[test]
fn tolerance_that_the_plan_does_not_support() {
    let unsupported =
        Unsupported { scenario: "list".to_owned(), metric: Metric::P99, beyond: 10.0, duration: Nanos::from_secs(132) };
    told("tolerance_unsupported", ExitCode::Configuration, &refuse(&[unsupported]));
}

#[test]
fn revision_without_a_server() {
    let revision = "revision `main` (1a2b3c4d5e, its merge base with HEAD)";
    let failed = Error::new(ExitCode::BuildFailed, "cargo could not build binary `shop` (exit status: 101)");
    let there = || vec!["cart".to_owned()];
    for (kind, none) in [
        ("revision_does_not_build", NoServer::DoesNotBuild(failed)),
        ("revision_without_package", NoServer::NoSuchPackage { package: "shop".to_owned(), there: there() }),
        (
            "revision_without_binary",
            NoServer::NoSuchBinary { package: "shop".to_owned(), bin: "shop".to_owned(), there: there() },
        ),
    ] {
        told(kind, ExitCode::BuildFailed, &none.into_error(revision));
    }
}

#[test]
fn filter_that_selects_nothing() {
    let selection = Selection { filters: vec!["serch".to_owned()], ..Selection::default() };
    let listings = ["list", "search"].map(|name| crate::measure::sample::scenario(name, &[], Vec::new()).listing);
    let error = selection.takes_none(&listings);
    told("no_scenario", ExitCode::NothingSelected, &error);
}

#[test]
fn something_that_should_not_happen_asks_for_a_report() {
    let error = Error::unexpected("lost sight of `shop`", std::io::Error::other("no child processes"));
    told_somewhere("unexpected", "", &error);
}
