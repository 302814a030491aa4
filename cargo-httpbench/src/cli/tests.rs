//! The command line as users type it.

use std::ffi::OsString;
use std::time::Duration;

use clap::error::ErrorKind;

use super::{
    ComparisonOptions, IdenticalServers, Invocation, MessageFormat, OnInconclusive, OnMissing, OnRegression, Task,
    command, parse_in,
};
use crate::baseline::{BaselineCommand, BaselineName, Ci, Replacing};
use crate::bench::{Ignored, Matching};
use crate::cargo::{Color, FeatureBase, LockFlag, PackageChoice, Verbosity};
use crate::config::LoadLayer;
use crate::revision::{Against, WhichCommit};

fn read(line: &str) -> Result<Invocation, clap::Error> {
    read_in(line, Ci::No)
}

fn read_in(line: &str, ci: Ci) -> Result<Invocation, clap::Error> {
    parse_in(std::iter::once("cargo-httpbench").chain(line.split_whitespace()).map(OsString::from), ci)
}

fn right(line: &str) -> Invocation {
    read(line).unwrap_or_else(|error| panic!("`{line}`: {error}"))
}

#[test]
fn clap_finds_no_contradiction_in_the_flags() {
    command().debug_assert();
}

#[test]
fn cargos_own_first_word_makes_no_difference() {
    for line in ["", "list", "--quick search", "serve --bin x", "run list"] {
        assert_eq!(right(line), right(&format!("httpbench {line}")), "{line}");
    }
}

#[test]
fn run_is_the_default_command() {
    assert_eq!(right("search --exact"), right("run search --exact"));
    assert_eq!(right("").task, Task::Run);
    assert_eq!(right("run list").selection.filters, ["list"]);
}

#[test]
fn subcommand_after_options_is_refused_and_never_taken_as_a_filter() {
    for line in ["-p shop list", "search list", "--quick serve"] {
        let error = read(line).expect_err(line);
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("put it first"), "{error}");
    }
}

#[test]
fn each_task_is_told_from_the_others() {
    assert_eq!(right("--list --format terse").task, Task::List);
    assert_eq!(right("list --format pretty x").task, Task::List);
    assert_eq!(right("--no-run").task, Task::BuildOnly);
    assert_eq!(right("--trace-one http::index").task, Task::TraceOne("http::index".to_owned()));
    assert_eq!(right("serve").task, Task::Serve);
}

#[test]
fn selection_flags_mean_what_libtest_means_by_them() {
    let selection = right("a b --exact --skip c --skip d --ignored").selection;
    assert_eq!(
        (selection.filters, selection.skip),
        (vec!["a".to_owned(), "b".to_owned()], vec!["c".to_owned(), "d".to_owned()])
    );
    assert_eq!((selection.matching, selection.ignored), (Matching::Exact, Ignored::Only));
    assert_eq!(right("--include-ignored").selection.ignored, Ignored::Included);
    assert_eq!(right("").selection.ignored, Ignored::LeftOut);
}

#[test]
fn cargos_flags_are_passed_through() {
    let cargo = right(
        "-p a -p b --bench http --bin shop -F x,y --features z --no-default-features --profile dev --target t --target-dir d \
         --manifest-path m/Cargo.toml --locked --offline --frozen -j -1 --config a=1 --config b=2 -Z q -q --color never",
    )
    .cargo;
    assert_eq!(cargo.packages, PackageChoice::Named(vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!((cargo.benches, cargo.bin), (vec!["http".to_owned()], Some("shop".to_owned())));
    assert_eq!(
        (cargo.features, cargo.feature_base),
        (vec!["x".to_owned(), "y".to_owned(), "z".to_owned()], FeatureBase::None)
    );
    assert_eq!((cargo.profile.as_str(), cargo.target.as_deref()), ("dev", Some("t")));
    assert_eq!(cargo.target_dir, Some("d".into()));
    assert_eq!(cargo.manifest_path, Some("m/Cargo.toml".into()));
    assert_eq!(cargo.lock, [LockFlag::Locked, LockFlag::Offline, LockFlag::Frozen]);
    assert_eq!(cargo.jobs.as_deref(), Some("-1"));
    assert_eq!((cargo.config, cargo.unstable), (vec!["a=1".to_owned(), "b=2".to_owned()], vec!["q".to_owned()]));
    assert_eq!((cargo.verbosity, cargo.color), (Verbosity::Quiet, Color::Never));

    let cargo = right("--all --exclude a --all-features").cargo;
    assert_eq!((cargo.packages, cargo.exclude), (PackageChoice::Workspace, vec!["a".to_owned()]));
    assert_eq!((cargo.feature_base, cargo.profile.as_str()), (FeatureBase::All, "release"));
}

#[test]
fn load_flags_fill_the_last_layer() {
    let invocation = right(
        "--connections 1 --arrival-rate 1.5 --threads 2 --duration 3s --warm-up 0s --rounds 5 --slice 60ms --request-timeout 7s \
         --connect-timeout 8s --seed 9",
    );
    assert_eq!(
        invocation.load,
        LoadLayer {
            connections: Some(1),
            arrival_rate: Some(1.5),
            threads: Some(2),
            duration: Some(Duration::from_secs(3)),
            warm_up: Some(Duration::ZERO),
            rounds: Some(5),
            slice: Some(Duration::from_millis(60)),
            request_timeout: Some(Duration::from_secs(7)),
            connect_timeout: Some(Duration::from_secs(8)),
        }
    );
    assert_eq!(invocation.seed, Some(9));
}

#[test]
fn revision_means_its_merge_base_unless_it_is_wanted_exactly() {
    let against = |line: &str| right(line).comparison.against;
    let rev = "origin/main".to_owned();
    assert_eq!(against(""), None);
    assert_eq!(against("--against origin/main"), Some(Against { rev: rev.clone(), commit: WhichCommit::MergeBase }));
    assert_eq!(against("run --exact-rev --against=origin/main"), Some(Against { rev, commit: WhichCommit::Exact }));
}

#[test]
fn quick_yields_to_what_is_said_beside_it() {
    assert_eq!(right("--quick").load, LoadLayer::QUICK);
    let load = right("--rounds 4 --quick").load;
    assert_eq!((load.rounds, load.duration), (Some(4), LoadLayer::QUICK.duration));
}

#[test]
fn output_flags_mean_what_they_say() {
    let output = right("--message-format json --color always -v").output;
    assert_eq!(
        (output.format, output.color, output.verbosity),
        (MessageFormat::Json, Color::Always, Verbosity::Verbose)
    );
    let output = right("list").output;
    assert_eq!((output.format, output.color, output.verbosity), (MessageFormat::Human, Color::Auto, Verbosity::Normal));
}

#[test]
fn wrong_usage_ends_with_two_and_says_what_is_accepted() {
    for (line, said) in [
        ("--connections 0", "`0` is not a whole number from 1"),
        ("--arrival-rate 0", "`0` is not an arrival rate: write starts per second above 0"),
        ("--arrival-rate -5", "`-5` is not an arrival rate: write starts per second above 0"),
        ("--arrival-rate NaN", "`NaN` is not an arrival rate: write starts per second above 0"),
        ("--rounds 0", "`0` is not a whole number from 1"),
        ("--threads x", "`x` is not a whole number from 1"),
        ("--duration 0s", "write a duration above zero, such as `500ms`"),
        ("--duration soon", "`soon` is not a duration"),
        ("--warm-up 5", "`5` is not a duration"),
        ("--slice 1ms", "at least `10ms`"),
        ("--conections 3", "--connections"),
        ("--format terse", "--list"),
        ("--exclude a", "--workspace"),
        ("-q -v", "cannot be used with"),
        ("-p a --workspace", "cannot be used with"),
        ("--list --no-run", "cannot be used with"),
        ("--trace-one x --no-run", "cannot be used with"),
        ("search --trace-one x", "cannot be used with"),
        ("--against main --list", "cannot be used with"),
        ("--against main --trace-one x", "cannot be used with"),
        ("--against main --no-run", "cannot be used with"),
        ("--exact-rev", "--against"),
        ("--against", "a value is required"),
        ("serve --against main", "unexpected argument"),
        ("list --against main", "unexpected argument"),
        ("serve --rounds 3", "unexpected argument"),
        ("serve search", "unexpected argument"),
        ("list --rounds 3", "unexpected argument"),
        ("--color maybe", "always"),
    ] {
        let error = read(line).expect_err(line);
        assert_eq!(error.exit_code(), 2, "{line}");
        assert!(error.to_string().contains(said), "`{line}` does not say `{said}`: {error}");
    }
}

#[test]
fn help_is_worth_reading_and_names_every_exit_code() {
    let error = read("--help").expect_err("help");
    assert_eq!((error.kind(), error.exit_code()), (ErrorKind::DisplayHelp, 0));
    let help = error.to_string();
    for word in ["Examples:", "Exit codes:", "HTTPBENCH_WARM_UP", "cargo httpbench run list"] {
        assert!(help.contains(word), "{word}: {help}");
    }
    for code in [0, 1, 2, 4, 96, 100, 101, 102, 104, 105, 107, 108, 110, 130] {
        assert!(help.contains(&format!("\n  {code:>3}  ")), "{code}: {help}");
    }
    assert!(help.contains("100  something regressed, or a limit is exceeded"), "{help}");
    let undocumented: Vec<_> =
        command().get_arguments().filter(|arg| arg.get_help().is_none()).map(|arg| arg.get_id().to_string()).collect();
    assert_eq!(undocumented, Vec::<String>::new());
}

#[test]
fn only_what_a_slip_of_the_fingers_makes_of_a_flag_is_suggested() {
    for (line, suggestion) in [
        ("--bogus", None),
        ("--x", None),
        ("--conections 3", Some("'--connections'")),
        ("--message-format jsn", Some("'json'")),
        ("--message-format xml", None),
        ("baseline lst", Some("'list'")),
        ("baseline frobnicate", None),
    ] {
        let told = read(line).expect_err(line).to_string();
        match suggestion {
            Some(suggestion) => assert!(told.contains("similar") && told.contains(suggestion), "{line}: {told}"),
            None => assert!(!told.contains("similar"), "{line}: {told}"),
        }
    }
}

fn name(text: &str) -> BaselineName {
    text.parse().expect("a name")
}

#[test]
fn baselines_have_a_default_name_and_do_not_depend_on_each_other() {
    let comparison = |line| right(line).comparison;
    assert_eq!(comparison(""), ComparisonOptions::default());
    assert_eq!(comparison("--save-baseline").save, Some(name("main")));
    let both = comparison("--baseline main --save-baseline feature/x");
    assert_eq!((both.baseline, both.save), (Some(name("main")), Some(name("feature/x"))));
    assert_eq!(comparison("search --baseline").baseline, Some(name("main")));
}

#[test]
fn policies_mean_what_they_say_and_continuous_integration_is_strict_about_what_is_missing() {
    let comparison = |line: &str, ci| read_in(line, ci).expect("right").comparison;
    assert_eq!(comparison("", Ci::No).on_missing, OnMissing::Warn);
    for (line, ci) in [("--ci", Ci::No), ("", Ci::Yes), ("--ci", Ci::Yes)] {
        let strict = comparison(line, ci);
        assert_eq!(
            (strict.ci, strict.on_missing, strict.on_inconclusive),
            (Ci::Yes, OnMissing::Fail, OnInconclusive::Warn)
        );
    }
    assert_eq!(comparison("--baseline --on-missing ignore", Ci::Yes).on_missing, OnMissing::Ignore);
    assert_eq!(comparison("--baseline --on-missing warn --ci", Ci::No).on_missing, OnMissing::Warn);
    let all = comparison("--baseline --on-inconclusive fail --no-fail-on-regression --force-aa", Ci::No);
    assert_eq!(
        (all.on_inconclusive, all.on_regression, all.identical),
        (OnInconclusive::Fail, OnRegression::Tell, IdenticalServers::Measured)
    );
}

#[test]
fn subcommand_baseline_has_its_own_commands() {
    let task = |line| right(line).task;
    assert_eq!(task("baseline list"), Task::Baseline(BaselineCommand::List));
    assert_eq!(task("baseline show feature/x"), Task::Baseline(BaselineCommand::Show(name("feature/x"))));
    assert_eq!(task("baseline rm a b"), Task::Baseline(BaselineCommand::Remove(vec![name("a"), name("b")])));
    let export = BaselineCommand::Export { name: name("a"), file: Some("x.tar".into()), replacing: Replacing::Yes };
    assert_eq!(task("baseline export a x.tar --force"), Task::Baseline(export));
    let import = BaselineCommand::Import { file: "x.tar".into(), replacing: Replacing::No };
    assert_eq!(task("baseline import x.tar"), Task::Baseline(import));
    let invocation = right("baseline list -p shop --target-dir t --message-format json");
    assert_eq!(invocation.cargo.packages, PackageChoice::Named(vec!["shop".to_owned()]));
    assert_eq!((invocation.cargo.target_dir, invocation.output.format), (Some("t".into()), MessageFormat::Json));
}

#[test]
fn policies_of_a_comparison_without_one_and_impossible_names_are_refused() {
    for (line, said) in [
        ("--force-aa", "--baseline"),
        ("--on-missing fail", "--baseline"),
        ("--on-inconclusive fail", "--baseline"),
        ("--list --baseline", "cannot be used with"),
        ("--no-run --save-baseline", "cannot be used with"),
        ("--baseline --on-missing maybe", "ignore"),
        ("baseline", "list"),
        ("baseline rm", "NAME"),
        ("--save-baseline=", "must not be empty"),
    ] {
        let error = read(line).expect_err(line);
        assert_eq!(error.exit_code(), 2, "{line}");
        assert!(error.to_string().contains(said), "`{line}` does not say `{said}`: {error}");
    }
}
