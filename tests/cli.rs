//! The command line, the configuration file, and the exit codes that need no server.

use httpbench_tests::{Outcome, Project};

#[test]
fn unknown_flag_is_wrong_usage_and_is_named() {
    let project = Project::copy("plain");
    project.httpbench().arg("--conections").run().assert_code(2).assert_stderr(&["--conections", "--connections"]);
}

#[test]
fn impossible_values_are_wrong_usage() {
    let project = Project::copy("plain");
    for arguments in [["--connections", "0"], ["--rounds", "0"], ["--duration", "soon"], ["--message-format", "xml"]] {
        project.httpbench().args(arguments).run().assert_code(2).assert_stderr(&[arguments[0], arguments[1]]);
    }
}

#[test]
fn help_is_on_standard_output_and_shows_flags_and_exit_codes() {
    let project = Project::copy("plain");
    let outcome = project.httpbench().arg("--help").run();
    outcome.assert_code(0).assert_stdout(&["--message-format", "--quick", "--list", "serve", " 105 "]);
    assert_eq!(outcome.stderr, "");
}

#[test]
fn called_directly_and_through_cargo_it_behaves_alike() {
    let project = Project::copy("plain");
    let through_cargo = project.httpbench().arg("--list").run();
    let directly = project.httpbench().without_subcommand().arg("--list").run();
    through_cargo.assert_code(0);
    directly.assert_code(0);
    assert_eq!(through_cargo.stdout, directly.stdout);
}

#[test]
fn list_has_one_line_for_each_scenario_and_starts_no_server() {
    let project = Project::copy("plain");
    let started = project.beside("started");
    for arguments in [&["--list"][..], &["--list", "--format", "terse"], &["list"]] {
        let outcome = project.httpbench().args(arguments).env("STARTED_FILE", &started).run();
        outcome.assert_code(0);
        let listed = outcome.listed();
        assert_eq!(names_without_module(&listed), ["index", "page[1]", "page[10]", "slow"], "{outcome}");
        assert!(!started.exists(), "a server was started\n{outcome}");
    }
}

#[test]
fn list_says_what_is_ignored_only_when_asked() {
    let project = Project::copy("plain");
    let outcome = project.httpbench().args(["--list", "--ignored"]).run();
    outcome.assert_code(0);
    let mut listed = outcome.listed();
    listed.sort_unstable();
    assert_eq!(names_without_module(&listed), ["asked", "missing", "panics", "too_ambitious"], "{outcome}");
}

#[test]
fn filters_select_by_part_of_the_name_and_skip_takes_away() {
    let project = Project::copy("plain");
    let list = |arguments: &[&str]| {
        let outcome = project.httpbench().arg("--list").args(arguments).run();
        outcome.assert_code(0);
        names_without_module(&outcome.listed()).into_iter().map(ToOwned::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(list(&["page"]), ["page[1]", "page[10]"]);
    assert_eq!(list(&["page[1]"]), ["page[1]"]);
    assert_eq!(list(&["page", "slow", "--skip", "10"]).len(), 2);
    assert_eq!(list(&["--skip", "page", "--skip", "index"]), ["slow"]);
}

#[test]
fn exact_wants_the_whole_name() {
    let project = Project::copy("plain");
    let all = project.httpbench().args(["--list", "page[10]"]).run();
    let name = all.listed()[0].to_owned();
    let outcome = project.httpbench().args(["--list", "--exact", &name]).run();
    outcome.assert_code(0);
    assert_eq!(outcome.listed(), [name]);
    project.httpbench().args(["--list", "--exact", "pag"]).run().assert_code(4);
}

#[test]
fn filter_that_matches_nothing_is_4_and_suggests_close_names() {
    let project = Project::copy("plain");
    let outcome = project.httpbench().short().arg("indxe").run();
    outcome.assert_code(4).assert_stderr(&["indxe", "index"]);
}

#[test]
fn filter_that_matches_only_ignored_scenarios_says_so() {
    let project = Project::copy("plain");
    let outcome = project.httpbench().short().arg("missing").run();
    outcome.assert_code(4).assert_stderr_any(&["--ignored", "--include-ignored"]);
    let outcome = project.httpbench().args(["--list", "--include-ignored"]).run();
    outcome.assert_code(0);
    assert_eq!(outcome.listed().len(), 8, "{outcome}");
}

#[test]
fn unknown_key_is_a_warning_with_the_nearest_key() {
    let project = Project::copy("plain");
    // A server that does not see its port ignores it, which is its own affair.
    let text = "[defaults]\nconections = 3\n[limit]\np9 = \"20ms\"\n[server]\nargs = [\"{prot}\"]\n";
    project.write("httpbench.toml", text);
    let outcome = project.httpbench().short().arg("index").run();
    outcome.assert_code(0).assert_stderr(&["warning", "conections", "connections", "httpbench.toml"]);
    outcome.assert_stderr(&["httpbench.toml:6: `{prot}` in `server.args`", "`{port}`"]);
    // A limit that does not exist is not passed over in the report, nor in JSON.
    outcome.assert_stdout(&["not judged as asked", "httpbench.toml:4: unknown key `limit.p9`"]);
    let json = project.httpbench().short().args(["index", "--message-format", "json"]).run();
    json.assert_code(0);
    let warned = |code: &str| json.json_lines().iter().any(|line| line["reason"] == "warning" && line["code"] == code);
    assert!(warned("unknown-key") && warned("unknown-placeholder"), "{json}");
}

#[test]
fn unknown_key_in_the_manifest_is_a_warning_too() {
    let project = Project::copy("plain");
    project.edit(
        "Cargo.toml",
        "[workspace]",
        "[package.metadata.httpbench.server]\nstop-timout = \"1s\"\n\n[workspace]",
    );
    let outcome = project.httpbench().short().arg("index").run();
    outcome.assert_code(0).assert_stderr(&["warning", "stop-timout", "stop-timeout"]);
}

#[test]
fn wrong_type_is_96_with_file_and_line() {
    let project = Project::copy("plain");
    project.write("httpbench.toml", "[defaults]\n# how many\nconnections = \"many\"\n");
    let outcome = project.httpbench().short().run();
    outcome.assert_code(96).assert_stderr(&["httpbench.toml", "connections"]);
    outcome.assert_stderr_any(&["httpbench.toml:3", "line 3"]);
}

#[test]
fn file_that_is_not_toml_is_96_with_its_line() {
    let project = Project::copy("plain");
    project.write("httpbench.toml", "[defaults]\nconnections 3\n");
    let outcome = project.httpbench().short().run();
    outcome.assert_code(96).assert_stderr_any(&["httpbench.toml:2", "line 2"]);
}

#[test]
fn configuration_in_two_places_is_an_error_that_names_both() {
    let project = Project::copy("plain");
    project.write("httpbench.toml", "[defaults]\nconnections = 3\n");
    project.edit("Cargo.toml", "[workspace]", "[package.metadata.httpbench.defaults]\nconnections = 4\n\n[workspace]");
    let outcome = project.httpbench().short().run();
    outcome.assert_code(96).assert_stderr(&["httpbench.toml", "package.metadata.httpbench"]);
}

#[test]
fn broken_manifest_is_102_with_the_words_of_cargo() {
    let project = Project::copy("plain");
    project.edit("Cargo.toml", "edition = \"2024\"", "edition = \"1066\"");
    project.httpbench().short().run().assert_code(102).assert_stderr(&["1066"]);
}

#[test]
fn folder_without_a_package_is_102() {
    let project = Project::copy("plain");
    project.httpbench().current_dir(project.temporary()).run().assert_code(102).assert_stderr(&["Cargo.toml"]);
}

#[test]
fn server_that_does_not_compile_is_101_with_the_words_of_the_compiler() {
    let project = Project::copy("plain");
    project.edit("src/main.rs", "fixture_server::run();", "fixture_server::walk();");
    project.httpbench().short().run().assert_code(101).assert_stderr(&["walk"]);
}

#[test]
fn bench_target_that_does_not_compile_is_101_with_the_words_of_the_compiler() {
    let project = Project::copy("plain");
    project.edit("benches/http.rs", "Request::get(\"/slow\")", "Request::get(slow)");
    project.httpbench().short().run().assert_code(101).assert_stderr(&["slow", "benches/http.rs"]);
}

#[test]
fn package_without_bench_targets_is_told_how_to_begin() {
    let project = Project::copy("plain");
    project.edit("Cargo.toml", "[[bench]]\nname = \"http\"\nharness = false\n", "");
    std::fs::remove_dir_all(project.root().join("benches")).unwrap();
    project.httpbench().short().run().assert_code(4).assert_stderr(&["[[bench]]", "harness = false"]);
}

#[test]
fn no_run_builds_and_starts_nothing() {
    let project = Project::copy("plain");
    let started = project.beside("started");
    let outcome = project.httpbench().arg("--no-run").env("STARTED_FILE", &started).run();
    outcome.assert_code(0);
    assert!(!started.exists(), "{outcome}");
}

#[test]
fn duplicate_names_are_refused_when_listing() {
    let project = Project::copy("plain");
    project.edit("benches/http.rs", "args = [1, 10]", "args = [1, 1]");
    project.httpbench().arg("--list").run().assert_code(104).assert_stderr(&["page[1]"]);
}

/// `http::index` or `index`: whether the bench target's own name is part of it is not the matter here.
fn names_without_module<'a>(listed: &[&'a str]) -> Vec<&'a str> {
    listed.iter().map(|name| name.rsplit("::").next().unwrap_or(name)).collect()
}

#[test]
fn trace_one_shows_the_exchange_as_it_went_over_the_wire() {
    let project = Project::copy("plain");
    let outcome: Outcome = project.httpbench().args(["--trace-one", "index"]).run();
    outcome.assert_code(0).assert_stdout(&["GET / HTTP/1.1", "HTTP/1.1 200", "Content-Length: 14", "Hello, world!"]);
}
