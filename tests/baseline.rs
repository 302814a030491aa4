//! `cargo httpbench baseline …`: what a user does with stored baselines, without measuring anything.

use std::fs;
use std::path::{Path, PathBuf};

use httpbench_tests::{Outcome, Project};

/// A baseline as another machine wrote it.
const TEXT: &str = include_str!("../cargo-httpbench/src/baseline/schema_1.json");

/// An executable, and its SHA-256.
const EXECUTABLE: (&str, &str) = ("#!/bin/sh\n", "a8076d3d28d21e02012b20eaf7dbf75409a6277134439025f282e368e3305abf");

/// A project whose baselines lie beside it, because all tests share one target directory.
struct Kept {
    project: Project,
    folder: PathBuf,
}

impl Kept {
    fn empty() -> Self {
        let project = Project::copy("plain");
        let folder = project.beside("kept");
        Self { project, folder }
    }

    /// With baseline `main`, which has an executable.
    fn with_main() -> Self {
        let kept = Self::empty();
        kept.write(&text_with_executable(), Some(EXECUTABLE.0));
        kept
    }

    fn write(&self, text: &str, executable: Option<&str>) {
        let folder = self.package();
        fs::create_dir_all(&folder).expect("a folder can be made");
        fs::write(folder.join("baseline.json"), text).expect("written");
        if let Some(bytes) = executable {
            fs::write(folder.join(EXECUTABLE.1), bytes).expect("written");
        }
    }

    fn package(&self) -> PathBuf {
        self.folder.join("main/shop")
    }

    fn run(&self, arguments: &[&str]) -> Outcome {
        self.run_in(&self.folder, arguments)
    }

    fn run_in(&self, folder: &Path, arguments: &[&str]) -> Outcome {
        self.project.httpbench().arg("baseline").args(arguments).env("HTTPBENCH_BASELINE_DIR", folder).run()
    }
}

fn text_with_executable() -> String {
    let record = format!(
        r#""executable": {{ "sha256": "{}", "size_bytes": {}, "kept": "whole" }}"#,
        EXECUTABLE.1,
        EXECUTABLE.0.len()
    );
    let text = TEXT.replace(r#""executable": null"#, &record);
    assert_ne!(text, TEXT);
    text
}

#[test]
fn list_names_each_baseline_in_one_line_and_says_where_none_is() {
    let kept = Kept::empty();
    let outcome = kept.run(&["list"]);
    outcome.assert_code(0).assert_stderr(&["no baseline", "kept"]);
    assert_eq!(outcome.stdout, "");
    assert!(!kept.folder.exists(), "looking made a folder");

    kept.write(&text_with_executable(), Some(EXECUTABLE.0));
    let outcome = kept.run(&["list"]);
    outcome.assert_code(0);
    assert_eq!(
        outcome.stdout,
        "main of shop: 2 scenarios, saved 2026-03-04T05:06:07Z at 0123456789, executable of 10 B\n"
    );
}

#[test]
fn list_and_show_are_json_lines_when_asked() {
    let kept = Kept::with_main();
    let outcome = kept.run(&["show", "main", "--message-format", "json"]);
    outcome.assert_code(0);
    let [object] = &outcome.json_lines()[..] else { panic!("{outcome}") };
    assert_eq!((object["reason"].as_str(), object["schema"].as_u64()), (Some("baseline"), Some(1)));
    assert_eq!(object["executable_state"], "whole");
    assert_eq!(object["executable"]["sha256"], EXECUTABLE.1);
    assert_eq!(object["scenarios"][0]["metrics"]["throughput"]["median"], 40_750.25);
    assert_eq!(object["scenarios"][0]["metrics"]["throughput"]["unit"], "per-second");
    let listed = kept.run(&["list", "--message-format", "json"]);
    assert_eq!(listed.json_lines()[0]["name"], "main");
}

#[test]
fn show_tells_build_machine_and_medians_and_that_an_executable_is_damaged() {
    let kept = Kept::with_main();
    kept.run(&["show", "main"]).assert_code(0).assert_stdout(&[
        "main of shop",
        "AMD EPYC 7763",
        "rustc 1.95.0",
        "http::search: GET /search?q=rust",
        "1.98 ms",
        EXECUTABLE.1,
    ]);
    fs::write(kept.package().join(EXECUTABLE.1), "#!/bin/Sh\n").expect("written");
    kept.run(&["show", "main"]).assert_code(0).assert_stdout(&["damaged"]);
}

#[test]
fn name_that_nobody_saved_is_96_and_the_near_one_is_suggested() {
    let kept = Kept::with_main();
    for arguments in [&["show", "mian"][..], &["rm", "main", "mian"], &["export", "mian"]] {
        kept.run(arguments).assert_code(96).assert_stderr(&["no baseline `mian`", "did you mean `main`?"]);
    }
    assert!(kept.package().join("baseline.json").exists(), "a typing error removed something");
}

#[test]
fn export_and_import_on_another_machine_give_equal_bytes_and_print_the_origin() {
    let kept = Kept::with_main();
    let there = kept.project.beside("there");
    let file = kept.project.beside("main.tar");
    let path = file.to_str().expect("text");
    kept.run(&["export", "main", path]).assert_code(0).assert_stderr(&["Exported", "main.tar"]);
    kept.run(&["export", "main", path]).assert_code(110).assert_stderr(&["--force"]);
    kept.run(&["export", "main", path, "--force"]).assert_code(0);

    let outcome = kept.run_in(&there, &["import", path]);
    outcome
        .assert_code(0)
        .assert_stdout(&["server `shop`", EXECUTABLE.1, "commit 0123456789", "AMD EPYC 7763"])
        .assert_stderr(&["Imported", "only if you trust"]);
    for file in ["baseline.json", EXECUTABLE.1] {
        let read = |folder: &Path| fs::read(folder.join("main/shop").join(file)).expect("it is there");
        assert_eq!(read(&there), read(&kept.folder), "{file}");
    }
    kept.run_in(&there, &["import", path]).assert_code(96).assert_stderr(&["already", "--force"]);
    kept.run_in(&there, &["import", path, "--force"]).assert_code(0);
}

#[test]
fn default_file_of_an_export_is_named_after_the_baseline() {
    let kept = Kept::with_main();
    kept.run(&["export", "main"]).assert_code(0);
    assert!(kept.project.root().join("main.tar").is_file());
}

#[test]
fn file_that_is_no_archive_is_96_and_changes_nothing() {
    let kept = Kept::with_main();
    let file = kept.project.beside("x.tar");
    fs::write(&file, "nothing of the kind").expect("written");
    kept.run(&["import", file.to_str().expect("text")]).assert_code(96).assert_stderr(&["archive", "export"]);
    kept.run(&["import", "/nowhere/x.tar"]).assert_code(96).assert_stderr(&["/nowhere/x.tar"]);
    assert_eq!(fs::read_to_string(kept.package().join("baseline.json")).expect("it is there"), text_with_executable());
}

#[test]
fn removed_baseline_is_gone_with_its_executable() {
    let kept = Kept::with_main();
    kept.run(&["rm", "main"]).assert_code(0).assert_stderr(&["Removed", "main"]);
    assert!(!kept.folder.join("main").exists());
    kept.run(&["rm", "main"]).assert_code(96);
}

#[test]
fn baseline_of_a_later_version_is_96_and_says_which_version_reads_it() {
    let kept = Kept::empty();
    kept.write(r#"{ "schema": 9, "needs_httpbench": "3.1.0" }"#, None);
    kept.run(&["show", "main"]).assert_code(96).assert_stderr(&["cargo-httpbench ≥ 3.1.0", "baseline rm main"]);
    kept.run(&["list"]).assert_code(0).assert_stdout(&["main of shop: cannot be read", "3.1.0"]);
    kept.run(&["rm", "main"]).assert_code(0);
}

#[test]
fn configuration_says_where_baselines_are_kept() {
    let project = Project::copy("plain");
    project.write("httpbench.toml", "[defaults]\nbaseline-dir = \"kept here\"\n");
    project.write("kept here/main/shop/baseline.json", TEXT);
    let outcome = project.httpbench().args(["baseline", "list"]).run();
    outcome.assert_code(0).assert_stdout(&["main of shop"]);
    project.write("httpbench.toml", "[defaults]\nallow-save-in-ci = \"yes\"\n");
    project
        .httpbench()
        .args(["baseline", "list"])
        .run()
        .assert_code(96)
        .assert_stderr(&["httpbench.toml:2", "`true` or `false`"]);
}

#[test]
fn packages_with_different_folders_are_told_apart_by_choosing_one() {
    let project = Project::copy("workspace");
    project.write("alpha/httpbench.toml", "[defaults]\nbaseline-dir = \"kept\"\n");
    project.write("alpha/kept/main/shop/baseline.json", TEXT);
    project.httpbench().args(["baseline", "list", "-p", "alpha"]).run().assert_code(0).assert_stdout(&["main of shop"]);
    project.httpbench().args(["baseline", "list"]).run().assert_code(96).assert_stderr(&["alpha", "-p"]);
}
