//! Workspaces, packages, paths, features, target directories, and which cargo is called.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use httpbench_tests::{Folder, Project, cargo, fixtures_target, host};
use nix::sys::signal::Signal;

fn sorted(mut names: Vec<&str>) -> Vec<String> {
    names.sort_unstable();
    names.into_iter().map(ToOwned::to_owned).collect()
}

#[test]
fn both_packages_of_a_virtual_workspace_run_with_their_own_servers() {
    let project = Project::copy("workspace");
    let outcome = project.httpbench().short().run();
    outcome.assert_code(0).assert_stdout(&["alpha_index", "beta_index"]);
}

#[test]
fn scenario_ids_are_the_same_from_root_member_and_elsewhere() {
    let project = Project::copy("workspace");
    let manifest = project.root().join("Cargo.toml");
    let list = |folder: PathBuf, arguments: &[&str]| {
        let outcome = project.httpbench().arg("--list").args(arguments).current_dir(folder).run();
        outcome.assert_code(0);
        sorted(outcome.listed())
    };
    let manifest = manifest.to_str().expect("the path is UTF-8");
    let from_root = list(project.root().to_owned(), &["-p", "alpha"]);
    assert_eq!(from_root.len(), 1);
    assert_eq!(list(project.root().join("alpha"), &[]), from_root);
    assert_eq!(list(project.root().join("alpha/src"), &[]), from_root);
    assert_eq!(list("/".into(), &["--manifest-path", manifest, "-p", "alpha"]), from_root);
    assert_eq!(list(project.root().to_owned(), &[]).len(), 2);
}

#[test]
fn package_and_exclude_select_as_cargo_does() {
    let project = Project::copy("workspace");
    let list = |arguments: &[&str]| {
        let outcome = project.httpbench().arg("--list").args(arguments).run();
        outcome.assert_code(0);
        sorted(outcome.listed()).join(" ")
    };
    let names = list(&["--workspace", "--exclude", "gamma", "--exclude", "beta"]);
    assert!(names.contains("alpha_index") && !names.contains("beta_index"), "{names}");
    let names = list(&["-p", "beta"]);
    assert!(names.contains("beta_index") && !names.contains("alpha_index"), "{names}");
}

#[test]
fn unknown_package_is_refused_by_name() {
    let project = Project::copy("workspace");
    let outcome = project.httpbench().args(["--list", "-p", "alpah"]).run();
    assert!(matches!(outcome.code(), Some(2 | 4 | 96)), "{outcome}");
    outcome.assert_stderr(&["alpah", "alpha"]).assert_nothing_left();
}

#[test]
fn ambiguous_bin_is_refused_with_the_packages_to_choose_from() {
    let project = Project::copy("workspace");
    let outcome = project.httpbench().short().args(["--bin", "server"]).run();
    assert!(matches!(outcome.code(), Some(2 | 96)), "{outcome}");
    outcome.assert_stderr(&["server", "-p alpha", "-p beta"]).assert_nothing_left();
}

#[test]
fn bin_with_one_package_is_not_ambiguous() {
    let project = Project::copy("workspace");
    let outcome = project.httpbench().short().args(["--bin", "server", "-p", "beta"]).run();
    outcome.assert_code(0).assert_stdout(&["beta_index"]);
}

#[test]
fn bin_behind_a_feature_asks_for_the_feature() {
    let project = Project::copy("workspace");
    let outcome = project.httpbench().short().args(["-p", "gamma"]).run();
    assert!(matches!(outcome.code(), Some(2 | 96 | 101)), "{outcome}");
    outcome.assert_stderr(&["gated", "--features gate"]).assert_nothing_left();
}

#[test]
fn bin_behind_a_feature_runs_with_it() {
    let project = Project::copy("workspace");
    let outcome = project.httpbench().short().args(["-p", "gamma", "--features", "gate"]).run();
    outcome.assert_code(0).assert_stdout(&["gamma_index"]);
}

#[test]
fn path_with_a_space_is_a_path() {
    let project = Project::copy_into("plain", Folder::Spaced);
    project.write("httpbench.toml", "[server]\nenv = { WHERE = \"{dir}\" }\n");
    let run = project.httpbench().short().args(["--ignored", "asked"]);
    let outcome = run.env("ASK", "/cwd").env("EXPECT", project.root()).run();
    outcome.assert_code(0).assert_stdout(&["asked"]);
}

/// Everything named `httpbench` below a folder, but for cargo's own artifacts.
fn result_folders(below: &Path) -> Vec<PathBuf> {
    fn walk(folder: &Path, depth: u32, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.path().is_dir() && depth > 0 {
                if entry.file_name() == "httpbench" {
                    found.push(entry.path());
                } else {
                    walk(&entry.path(), depth - 1, found);
                }
            }
        }
    }
    let mut found = Vec::new();
    walk(below, 4, &mut found);
    found
}

#[test]
fn target_directories_of_every_kind_are_found_through_cargo() {
    let project = Project::copy("plain");
    // Intermediate artifacts lie where those of all fixtures lie, so that nothing is compiled anew but for a target of its own.
    let shared = fixtures_target().to_str().expect("the path is UTF-8");
    let short = || project.httpbench().short().arg("index");

    // Relative to the folder in which the command is called.
    let relative = short().env("CARGO_TARGET_DIR", "somewhere/target").env("CARGO_BUILD_BUILD_DIR", shared).run();
    relative.assert_code(0);
    assert!(project.root().join("somewhere/target/release").exists(), "{relative}");
    assert!(!project.root().join("somewhere/target/release/deps").exists(), "{relative}");

    // The flag wins over the variable; the target's own folder is in between. A server alone, because the engine would be compiled
    // anew for a target.
    let flags = ["serve", "--target-dir", "somewhere/target", "--target", &host()];
    let mut server = project.httpbench().args(flags).start();
    server.wait_for_text("http://");
    server.signal_group(Signal::SIGINT);
    server.wait().assert_code(130);
    assert!(project.root().join("somewhere/target").join(host()).join("release/plain").exists());

    // From the configuration of cargo, which wants a path without a quotation mark here.
    let config = format!("[build]\ntarget-dir = \"somewhere/other/target\"\nbuild-dir = '{shared}'\n");
    project.write(".cargo/config.toml", &config);
    let configured = short().env_remove("CARGO_TARGET_DIR").run();
    configured.assert_code(0);
    assert!(project.root().join("somewhere/other/target/release").exists(), "{configured}");
    assert!(!project.root().join("target").exists(), "results went where nothing is built");

    for folder in ["somewhere/target", "somewhere/other/target"] {
        let results = result_folders(&project.root().join(folder));
        assert_eq!(results.len(), 1, "results are in several folders: {results:?}");
    }
}

#[test]
fn every_call_goes_to_the_cargo_that_called_us() {
    let project = Project::copy("plain");
    let log = project.beside("calls");
    let wrapper = project.beside("wrapper");
    fs::write(
        &wrapper,
        format!("#!/bin/sh\necho \"$@\" >> '{}'\nexec '{}' \"$@\"\n", log.display(), cargo().display()),
    )
    .unwrap();
    let trap_folder = project.beside("trap");
    let trap = trap_folder.join("cargo");
    let trapped = project.beside("trapped");
    fs::create_dir(&trap_folder).unwrap();
    fs::write(&trap, format!("#!/bin/sh\necho \"$@\" >> '{}'\nexit 77\n", trapped.display())).unwrap();
    for script in [&wrapper, &trap] {
        fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = std::env::var("PATH").unwrap();
    let outcome = project
        .httpbench()
        .short()
        .arg("index")
        .env("CARGO", &wrapper)
        .env("PATH", format!("{}:{path}", trap_folder.display()))
        .run();
    outcome.assert_code(0);
    assert!(!trapped.exists(), "the cargo in PATH was called: {}\n{outcome}", fs::read_to_string(&trapped).unwrap());
    let calls = fs::read_to_string(&log).unwrap();
    let with = |word: &str| calls.lines().filter(|line| line.split(' ').any(|part| part == word)).count();
    assert!(with("metadata") >= 1, "{calls}");
    // The server and the bench target, by calls of their own.
    assert!(with("build") + with("bench") + with("test") >= 2, "{calls}");
}

#[test]
fn offline_and_locked_are_passed_on() {
    let project = Project::copy("plain");
    let outcome = project.httpbench().args(["--list", "--offline"]).run();
    outcome.assert_code(0);
    // The copied lock file is the workspace's, so cargo would have to change it.
    fs::remove_file(project.root().join("Cargo.lock")).unwrap();
    let outcome = project.httpbench().args(["--list", "--locked"]).run();
    assert!(matches!(outcome.code(), Some(101 | 102)), "{outcome}");
    outcome.assert_stderr(&["--locked"]);
}
