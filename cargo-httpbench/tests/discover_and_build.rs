//! Discovery and builds over real little projects, with the real cargo.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use cargo_httpbench::build::{self, RunFolder};
use cargo_httpbench::cargo::{Cargo, CargoOptions, PackageChoice, SupervisedCargo};
use cargo_httpbench::discover::{ServerTarget, Workspace};
use cargo_httpbench::environment::{self, Environment};
use cargo_httpbench::error::{Error, Result};
use cargo_httpbench::exit_code::ExitCode;
use cargo_httpbench::interrupt::Interrupt;
use cargo_httpbench::warning::Warning;

/// The source of a bench target that holds what `httpbench_core::main` puts into an executable, without that dependency.
const BENCH: &str = r#"
#[used]
static MARKER: [u8; 44] = *b"\0httpbench bench target, control protocol 1\0";
fn main() {
    std::hint::black_box(&MARKER);
}
"#;

const ENTRY: &str = "[[bench]]\nname = \"http\"\nharness = false\n";

/// A folder with a space in its name, and files in it.
struct Project {
    _dir: tempfile::TempDir,
    root: PathBuf,
}

impl Project {
    fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::Builder::new().prefix("httpbench test ").tempdir().expect("a folder");
        let root = dir.path().canonicalize().expect("it exists");
        for (name, text) in files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            fs::write(path, text).expect("written");
        }
        Self { _dir: dir, root }
    }

    /// A package `shop` with a binary and a bench target.
    fn shop() -> Self {
        Self::new(&[
            ("Cargo.toml", &package("shop", ENTRY)),
            ("src/main.rs", "fn main() { println!(\"shop\") }"),
            ("benches/http.rs", BENCH),
        ])
    }

    /// Two packages with a binary `server` and a bench target `http` each.
    fn virtual_workspace() -> Self {
        Self::new(&[
            ("Cargo.toml", "[workspace]\nmembers = [\"one\", \"two\"]\nresolver = \"3\"\n"),
            (
                "one/Cargo.toml",
                &package("one", &format!("[[bin]]\nname = \"server\"\npath = \"src/main.rs\"\n{ENTRY}")),
            ),
            ("one/src/main.rs", "fn main() { println!(\"one\") }"),
            ("one/benches/http.rs", BENCH),
            (
                "two/Cargo.toml",
                &package("two", &format!("[[bin]]\nname = \"server\"\npath = \"src/main.rs\"\n{ENTRY}")),
            ),
            ("two/src/main.rs", "fn main() { println!(\"two\") }"),
            ("two/benches/http.rs", BENCH),
        ])
    }

    fn cargo(&self, folder: &str, options: CargoOptions) -> Cargo {
        let own = environment::users_own(&Environment::inherited(), std::env::current_exe().ok().as_deref());
        Cargo::new(&self.root.join(folder), own, options)
    }
}

fn package(name: &str, more: &str) -> String {
    format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n{more}")
}

fn dev() -> CargoOptions {
    CargoOptions { profile: "dev".to_owned(), ..CargoOptions::default() }
}

fn named(packages: &[&str]) -> CargoOptions {
    CargoOptions { packages: PackageChoice::Named(packages.iter().map(|&name| name.to_owned()).collect()), ..dev() }
}

fn workspace(cargo: &Cargo) -> Result<Workspace> {
    Workspace::read(cargo, &mut runner())
}

/// `package::bench` of everything that a run would build, and the server of each.
fn found(cargo: &Cargo, configured: Option<&str>) -> Result<Vec<String>> {
    let workspace = workspace(cargo)?;
    let selected = workspace.selected(&cargo.options)?;
    let mut found = Vec::new();
    for one in workspace.benches(&cargo.options, &selected)? {
        let server = workspace.server(&cargo.options, &selected, &one.package, configured)?;
        for bench in one.benches {
            found.push(format!("{}::{} {}::{}", one.package.name, bench.name, server.package.name, server.bin));
        }
    }
    Ok(found)
}

fn server_of(cargo: &Cargo) -> Result<(Workspace, ServerTarget)> {
    let workspace = workspace(cargo)?;
    let selected = workspace.selected(&cargo.options)?;
    let package = selected.first().expect("a package is selected");
    let server = workspace.server(&cargo.options, &selected, package, None)?;
    Ok((workspace, server))
}

fn output(program: &Path) -> String {
    let output = Command::new(program).output().expect("it runs");
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

fn error(result: Result<Vec<String>>) -> Error {
    result.expect_err("it is refused")
}

/// Runs cargo as the command does. No signal reaches it.
fn runner() -> SupervisedCargo<'static> {
    static DEAF: LazyLock<Interrupt> = LazyLock::new(|| {
        cargo_httpbench::process::use_executable(env!("CARGO_BIN_EXE_cargo-httpbench"));
        Interrupt::deaf().expect("a pipe")
    });
    SupervisedCargo::new(&DEAF)
}

#[test]
fn virtual_workspace_is_the_same_from_everywhere() {
    let project = Project::virtual_workspace();
    let root = project.cargo("", dev());
    assert_eq!(found(&root, None).expect("found"), ["one::http one::server", "two::http two::server"]);
    let one = ["one::http one::server"];
    assert_eq!(found(&project.cargo("", named(&["one"])), None).expect("found"), one);
    assert_eq!(found(&project.cargo("one", dev()), None).expect("found"), one);
    assert_eq!(found(&project.cargo("one/src", dev()), None).expect("found"), one);
    let options = CargoOptions { manifest_path: Some(project.root.join("one/Cargo.toml")), ..dev() };
    let afar = project.cargo("/", options);
    assert_eq!(found(&afar, None).expect("found"), one);
    let results = project.root.join("target/httpbench");
    for cargo in [root, project.cargo("one/src", dev()), afar] {
        let workspace = workspace(&cargo).expect("read");
        assert_eq!((workspace.root(), workspace.results()), (project.root.as_path(), results.clone()));
    }
}

#[test]
fn packages_are_selected_by_specification_and_exclusion() {
    let project = Project::virtual_workspace();
    let workspace_but =
        |exclude: &str| CargoOptions { packages: PackageChoice::Workspace, exclude: vec![exclude.to_owned()], ..dev() };
    assert_eq!(found(&project.cargo("one", workspace_but("one")), None).expect("found"), ["two::http two::server"]);
    for spec in ["t*", "two@0.1.0"] {
        assert_eq!(
            found(&project.cargo("one", named(&[spec])), None).expect("found"),
            ["two::http two::server"],
            "{spec}"
        );
    }
    let error = error(found(&project.cargo("", named(&["oen"])), None));
    assert_eq!((error.exit, error.help.as_deref()), (ExitCode::Usage, Some("did you mean `-p one`?")));
}

#[test]
fn binary_of_the_same_name_in_two_packages_is_answered_with_the_choices() {
    let project = Project::virtual_workspace();
    let bin = |options: CargoOptions| CargoOptions { bin: Some("server".to_owned()), ..options };
    let error = error(found(&project.cargo("", bin(dev())), None));
    assert_eq!(error.exit, ExitCode::Usage);
    assert_eq!(error.details[0].lines, ["-p one --bin server", "-p two --bin server"]);
    assert_eq!(found(&project.cargo("", bin(named(&["two"]))), None).expect("found"), ["two::http two::server"]);
}

#[test]
fn one_of_two_binaries_is_chosen_by_flag_file_or_default_run() {
    let files = |more: &str| {
        Project::new(&[
            ("Cargo.toml", &package("shop", ENTRY).replace("edition", &format!("{more}\nedition"))),
            ("src/bin/front.rs", "fn main() {}"),
            ("src/bin/back.rs", "fn main() {}"),
            ("benches/http.rs", BENCH),
        ])
    };
    let project = files("");
    let refused = error(found(&project.cargo("", dev()), None));
    assert_eq!(refused.exit, ExitCode::Configuration);
    assert_eq!(refused.details[0].lines, ["back", "front"]);
    let help = refused.help.expect("a help");
    assert!(help.contains("`bin = \"back\"`") && help.contains("--bin back"), "{help}");
    assert_eq!(found(&project.cargo("", dev()), Some("front")).expect("found"), ["shop::http shop::front"]);
    let by_flag = CargoOptions { bin: Some("back".to_owned()), ..dev() };
    assert_eq!(found(&project.cargo("", by_flag), Some("front")).expect("found"), ["shop::http shop::back"]);
    let refused = error(found(&project.cargo("", dev()), Some("fornt")));
    assert_eq!(
        (refused.exit, refused.help.as_deref()),
        (ExitCode::Configuration, Some("did you mean `bin = \"front\"`?"))
    );
    let wrong = CargoOptions { bin: Some("fornt".to_owned()), ..dev() };
    let refused = error(found(&project.cargo("", wrong), None));
    assert_eq!((refused.exit, refused.help.as_deref()), (ExitCode::Usage, Some("did you mean `--bin front`?")));
    let project = files("default-run = \"front\"");
    assert_eq!(found(&project.cargo("", dev()), None).expect("found"), ["shop::http shop::front"]);
}

#[test]
fn configured_server_may_live_in_another_package() {
    let project = Project::new(&[
        ("Cargo.toml", "[workspace]\nmembers = [\"app\", \"load\"]\nresolver = \"3\"\n"),
        ("app/Cargo.toml", &package("app", "")),
        ("app/src/main.rs", "fn main() {}"),
        ("load/Cargo.toml", &package("load", ENTRY)),
        ("load/src/lib.rs", ""),
        ("load/benches/http.rs", BENCH),
    ]);
    assert_eq!(found(&project.cargo("load", dev()), Some("app")).expect("found"), ["load::http app::app"]);
    assert_eq!(found(&project.cargo("", dev()), Some("app")).expect("found"), ["load::http app::app"]);
    let refused = error(found(&project.cargo("load", dev()), None));
    assert_eq!(refused.exit, ExitCode::Configuration);
    assert_eq!(refused.details[0].lines, ["app (package `app`)"]);
}

#[test]
fn binary_behind_a_feature_is_refused_before_the_build_and_built_with_it() {
    let bin = "[features]\nx = []\n[[bin]]\nname = \"shop\"\npath = \"src/main.rs\"\nrequired-features = [\"x\"]\n";
    let project = Project::new(&[
        ("Cargo.toml", &package("shop", &format!("{bin}{ENTRY}"))),
        ("src/main.rs", "fn main() { println!(\"with x\") }"),
        ("benches/http.rs", BENCH),
    ]);
    let refused = error(found(&project.cargo("", dev()), None));
    assert_eq!((refused.exit, refused.help.as_deref()), (ExitCode::Usage, Some("add `--features x`")));
    assert!(!project.root.join("target/debug").exists());
    let cargo = project.cargo("", CargoOptions { features: vec!["x".to_owned()], ..dev() });
    let (workspace, target) = server_of(&cargo).expect("found");
    let folder = RunFolder::create(&workspace.results()).expect("a folder");
    let server = build::server(&cargo, &mut runner(), &target, &folder).expect("built");
    assert_eq!(output(&server.path), "with x");
}

#[test]
fn feature_of_a_server_in_another_package_is_named_with_that_package() {
    let bin = "[features]\nx = []\n[[bin]]\nname = \"app\"\npath = \"src/main.rs\"\nrequired-features = [\"x\"]\n";
    let project = Project::new(&[
        ("Cargo.toml", "[workspace]\nmembers = [\"app\", \"load\"]\nresolver = \"3\"\n"),
        ("app/Cargo.toml", &package("app", bin)),
        ("app/src/main.rs", "fn main() { println!(\"with x\") }"),
        ("load/Cargo.toml", &package("load", ENTRY)),
        ("load/src/lib.rs", ""),
        ("load/benches/http.rs", BENCH),
    ]);
    let refused = error(found(&project.cargo("load", dev()), Some("app")));
    assert_eq!((refused.exit, refused.help.as_deref()), (ExitCode::Usage, Some("add `--features app/x`")));
    let cargo = project.cargo("load", CargoOptions { features: vec!["app/x".to_owned()], ..dev() });
    let workspace = workspace(&cargo).expect("read");
    let selected = workspace.selected(&cargo.options).expect("selected");
    let packages = workspace.benches(&cargo.options, &selected).expect("found");
    let target = workspace.server(&cargo.options, &selected, &packages[0].package, Some("app")).expect("found");
    let folder = RunFolder::create(&workspace.results()).expect("a folder");
    let server = build::server(&cargo, &mut runner(), &target, &folder).expect("built");
    assert_eq!(output(&server.path), "with x");
    let built = build::benches(&cargo, &mut runner(), &packages[0].benches).expect("built");
    assert_eq!(built.executables.len(), 1);
}

#[test]
fn server_is_found_wherever_cargo_puts_it() {
    let project = Project::shop();
    let host = host();
    let mut relative = project.cargo("", dev());
    relative.environment.set("CARGO_TARGET_DIR", "else where");
    let flag = project.cargo("src", CargoOptions { target_dir: Some("given".into()), ..dev() });
    let configured =
        project.cargo("", CargoOptions { config: vec!["build.target-dir='configured'".to_owned()], ..dev() });
    let host = project.cargo("", CargoOptions { target: Some(host), ..dev() });
    let apart = project.cargo("", CargoOptions { config: vec!["build.build-dir='intermediate'".to_owned()], ..dev() });
    for (cargo, results) in [
        (relative, "else where/httpbench"),
        (flag, "src/given/httpbench"),
        (configured, "configured/httpbench"),
        (host, "target/httpbench"),
        (apart, "target/httpbench"),
    ] {
        let (workspace, target) = server_of(&cargo).expect("found");
        assert_eq!(workspace.results(), project.root.join(results));
        let folder = RunFolder::create(&workspace.results()).expect("a folder");
        let server = build::server(&cargo, &mut runner(), &target, &folder).expect("built");
        assert!(server.path.starts_with(project.root.join(results)), "{}", server.path.display());
        assert_eq!(output(&server.path), "shop");
        assert_eq!(server.warnings, [Warning::UnoptimisedServer { bin: "shop".to_owned(), profile: "dev".to_owned() }]);
    }
}

/// The measured server is the shipped one: a feature that only a dev-dependency switches on must not be in it.
#[test]
fn feature_of_a_dev_dependency_is_not_in_the_measured_server() {
    let dependencies = "[dependencies]\npart = { path = \"part\" }\n[dev-dependencies]\npart = { path = \"part\", features = [\"slow\"] }\n";
    let project = Project::new(&[
        ("Cargo.toml", &package("shop", &format!("{dependencies}{ENTRY}"))),
        ("src/main.rs", "fn main() { println!(\"{}\", part::SLOW) }"),
        ("benches/http.rs", BENCH),
        ("part/Cargo.toml", &package("part", "[features]\nslow = []\n")),
        ("part/src/lib.rs", "pub const SLOW: bool = cfg!(feature = \"slow\");"),
    ]);
    let cargo = project.cargo("", dev());
    let (workspace, target) = server_of(&cargo).expect("found");
    let folder = RunFolder::create(&workspace.results()).expect("a folder");
    let server = build::server(&cargo, &mut runner(), &target, &folder).expect("built");
    let selected = workspace.selected(&cargo.options).expect("selected");
    let packages = workspace.benches(&cargo.options, &selected).expect("found");
    build::benches(&cargo, &mut runner(), &packages[0].benches).expect("built");
    assert_eq!(output(&server.path), "false");
    assert_eq!(
        output(&server.built),
        "true",
        "the second call is expected to rebuild the server; if not, the copy is needless"
    );
}

#[test]
fn bench_binary_is_known_by_its_marker_and_a_foreign_one_is_never_taken() {
    let project = Project::new(&[
        ("Cargo.toml", &package("shop", &format!("{ENTRY}[[bench]]\nname = \"foreign\"\nharness = false\n"))),
        ("src/main.rs", "fn main() {}"),
        ("benches/http.rs", BENCH),
        ("benches/foreign.rs", "// not httpbench\nfn main() {}"),
    ]);
    let cargo = project.cargo("", dev());
    let read = workspace(&cargo).expect("read");
    let selected = read.selected(&cargo.options).expect("selected");
    let packages = read.benches(&cargo.options, &selected).expect("found");
    let built = build::benches(&cargo, &mut runner(), &packages[0].benches).expect("built");
    assert_eq!(built.executables.iter().map(|bench| bench.name.as_str()).collect::<Vec<_>>(), ["http"]);
    assert_eq!(built.warnings, [Warning::ForeignBench { package: "shop".to_owned(), bench: "foreign".to_owned() }]);

    let cargo = project.cargo("", CargoOptions { benches: vec!["foreign".to_owned()], ..dev() });
    let packages = read.benches(&cargo.options, &selected).expect("found");
    let refused = build::benches(&cargo, &mut runner(), &packages[0].benches).expect_err("it is foreign");
    assert_eq!(refused.exit, ExitCode::Configuration);

    let cargo = project.cargo("", CargoOptions { benches: vec!["htpp".to_owned()], ..dev() });
    let refused = error(found(&cargo, None));
    assert_eq!((refused.exit, refused.help.as_deref()), (ExitCode::Usage, Some("did you mean `--bench http`?")));
}

#[test]
fn bench_target_with_the_default_harness_is_refused_with_the_lines_to_add() {
    for (more, title) in [("[[bench]]\nname = \"http\"\n", "the `[[bench]]` entry in `"), ("", "lines to add to `")] {
        let project = Project::new(&[
            ("Cargo.toml", &package("shop", more)),
            ("src/main.rs", "fn main() {}"),
            ("benches/http.rs", BENCH),
        ]);
        let refused = error(found(&project.cargo("", dev()), None));
        assert_eq!(refused.exit, ExitCode::Configuration);
        assert!(refused.details[0].title.starts_with(title), "{}", refused.details[0].title);
        assert_eq!(refused.details[0].lines, ["[[bench]]", "name = \"http\"", "harness = false"]);
    }
}

#[test]
fn package_without_scenarios_is_answered_with_the_lines_to_add() {
    let project = Project::new(&[
        ("Cargo.toml", &package("shop", "[[bench]]\nname = \"sort\"\nharness = false\n")),
        ("src/main.rs", "fn main() {}"),
        ("benches/sort.rs", "fn main() {}"),
    ]);
    let refused = error(found(&project.cargo("", dev()), None));
    assert_eq!(refused.exit, ExitCode::NothingSelected);
    assert_eq!(refused.what, "package `shop` has no bench target with HTTP scenarios");
    assert_eq!(refused.details[0].lines[..2], ["[dev-dependencies]", "httpbench-core = \"0.1\""]);
}

#[test]
fn facade_that_re_exports_us_under_another_name_is_found_by_its_dependency() {
    let project = Project::new(&[
        ("Cargo.toml", &package("shop", &format!("[dev-dependencies]\nfacade = {{ path = \"facade\" }}\n{ENTRY}"))),
        ("src/main.rs", "fn main() {}"),
        ("benches/http.rs", "fn main() { facade::main() }"),
        ("facade/Cargo.toml", &package("facade", "[dependencies]\nhttpbench-core = { path = \"../core\" }\n")),
        ("facade/src/lib.rs", "pub use httpbench_core::main;"),
        ("core/Cargo.toml", &package("httpbench-core", "")),
        ("core/src/lib.rs", &BENCH.replace("fn main", "pub fn main")),
    ]);
    let cargo = project.cargo("", dev());
    assert_eq!(found(&cargo, None).expect("found"), ["shop::http shop::shop"]);
    let workspace = workspace(&cargo).expect("read");
    let packages =
        workspace.benches(&cargo.options, &workspace.selected(&cargo.options).expect("selected")).expect("found");
    let built = build::benches(&cargo, &mut runner(), &packages[0].benches).expect("built");
    assert_eq!((built.executables.len(), built.warnings), (1, Vec::new()));
}

#[test]
fn failures_of_cargo_have_their_own_exit_codes() {
    let project = Project::new(&[
        ("shop/Cargo.toml", &package("shop", "")),
        ("shop/src/main.rs", "fn main() { nonsense }"),
        ("empty/readme", ""),
    ]);
    let refused = workspace(&project.cargo("empty", dev())).expect_err("no package");
    assert_eq!(refused.exit, ExitCode::MetadataFailed);
    assert!(refused.details[0].lines.iter().any(|line| line.contains("could not find `Cargo.toml`")), "{refused:?}");
    let cargo = project.cargo("shop", dev());
    let (workspace, target) = server_of(&cargo).expect("found");
    let folder = RunFolder::create(&workspace.results()).expect("a folder");
    let refused = build::server(&cargo, &mut runner(), &target, &folder).expect_err("it does not compile");
    assert_eq!(refused.exit, ExitCode::BuildFailed);
    let mut cargo = cargo;
    cargo.program = "/nowhere/cargo".into();
    assert_eq!(Workspace::read(&cargo, &mut runner()).expect_err("no cargo").exit, ExitCode::MetadataFailed);
}

#[test]
#[cfg(unix)]
fn wrapper_in_the_variable_cargo_is_used_for_every_call() {
    use std::os::unix::fs::PermissionsExt;

    let project = Project::shop();
    let mut cargo = project.cargo("", dev());
    let wrapper = project.root.join("wrapper.sh");
    let log = project.root.join("log");
    let script = format!(
        "#!/bin/sh\necho \"$1\" >> '{}'\necho hello\nexec '{}' \"$@\"\n",
        log.display(),
        cargo.program.display()
    );
    fs::write(&wrapper, script).expect("written");
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).expect("executable");
    cargo.environment.set("CARGO", &wrapper);
    let cargo = Cargo::new(&project.root, cargo.environment, dev());
    let (workspace, target) = server_of(&cargo).expect("found");
    let folder = RunFolder::create(&workspace.results()).expect("a folder");
    build::server(&cargo, &mut runner(), &target, &folder).expect("built");
    assert_eq!(fs::read_to_string(log).expect("a log"), "metadata\nbuild\n");
}

#[test]
fn features_reach_only_the_packages_that_have_them() {
    let project = Project::new(&[
        ("Cargo.toml", "[workspace]\nmembers = [\"one\", \"two\"]\nresolver = \"3\"\n"),
        ("one/Cargo.toml", &package("one", "[features]\nx = []\n")),
        ("one/src/main.rs", "fn main() { println!(\"{}\", cfg!(feature = \"x\")) }"),
        ("two/Cargo.toml", &package("two", "")),
        ("two/src/main.rs", "fn main() { println!(\"two\") }"),
    ]);
    let cargo = project.cargo("", CargoOptions { features: vec!["x".to_owned()], ..dev() });
    let workspace = workspace(&cargo).expect("read");
    let selected = workspace.selected(&cargo.options).expect("selected");
    let folder = RunFolder::create(&workspace.results()).expect("a folder");
    for (package, said) in selected.iter().zip(["true", "two"]) {
        let target = workspace.server(&cargo.options, &selected, package, None).expect("found");
        let server = build::server(&cargo, &mut runner(), &target, &folder).expect("built");
        assert_eq!(output(&server.path), said);
    }
}

/// Cargo puts the toolchain's libraries on the path of everything that it runs; here they are only where they are needed.
#[test]
#[cfg(target_os = "linux")]
fn server_that_is_linked_to_the_shared_standard_library_finds_it() {
    let project = Project::shop();
    let flags = "build.rustflags=['-Cprefer-dynamic']".to_owned();
    for (config, needed) in [(vec![flags], true), (Vec::new(), false)] {
        let cargo = project.cargo("", CargoOptions { config, ..dev() });
        let (workspace, target) = server_of(&cargo).expect("found");
        let folder = RunFolder::create(&workspace.results()).expect("a folder");
        let server = build::server(&cargo, &mut runner(), &target, &folder).expect("built");
        let environment = cargo.environment_of(&target.package, &server.linked);
        let output = Command::new(&server.path).env_clear().envs(environment.iter()).output().expect("it runs");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "shop\n", "{output:?}");
        let listed = server
            .linked
            .libraries
            .iter()
            .any(|path| path.ends_with("lib") && path.to_string_lossy().contains("rustlib"));
        assert_eq!(listed, needed);
    }
}

#[test]
fn package_to_serve_is_the_only_one_with_that_binary() {
    let project = Project::virtual_workspace();
    let cargo = project.cargo("", dev());
    let read = workspace(&cargo).expect("read");
    let all = read.selected(&cargo.options).expect("selected");
    let refused = read.serving_package(&cargo.options, &all).expect_err("two servers");
    assert_eq!(
        (refused.exit, &refused.details[0].lines[..]),
        (ExitCode::Usage, &["-p one".to_owned(), "-p two".to_owned()][..])
    );
    let two = named(&["two"]);
    let selected = read.selected(&two).expect("selected");
    assert_eq!(read.serving_package(&two, &selected).expect("one").name.as_str(), "two");
}

#[test]
fn feature_that_nobody_has_is_refused_with_the_nearest_one() {
    let project = Project::new(&[
        ("Cargo.toml", &package("shop", &format!("[features]\nfast = []\n{ENTRY}"))),
        ("src/main.rs", "fn main() {}"),
        ("benches/http.rs", BENCH),
    ]);
    let cargo = project.cargo("", CargoOptions { features: vec!["fats".to_owned()], ..dev() });
    let refused = error(found(&cargo, None));
    assert_eq!((refused.exit, refused.help.as_deref()), (ExitCode::Usage, Some("did you mean `--features fast`?")));
}

#[test]
#[cfg(unix)]
fn member_is_found_through_a_symbolic_link() {
    let project = Project::virtual_workspace();
    let link = project.root.join("link");
    std::os::unix::fs::symlink(project.root.join("one"), &link).expect("a link");
    assert_eq!(found(&project.cargo("link", dev()), None).expect("found"), ["one::http one::server"]);
}

fn host() -> String {
    let output = Command::new("rustc").arg("-vV").output().expect("rustc");
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines().find_map(|line| line.strip_prefix("host: ")).expect("a host").to_owned()
}

/// Whatever `cargo run` sets, sets the run too; only the toolchain's own libraries are left out, which the server does not need.
#[test]
#[cfg(target_os = "linux")]
fn server_gets_the_environment_that_cargo_run_would_give_it() {
    let print = "fn main() { for (name, value) in std::env::vars() { println!(\"{name}={value:?}\") } }";
    let manifest = package("shop", "authors = [\"A <a@b>\", \"B\"]\nrust-version = \"1.85.1\"\ndescription = \"it\"\n");
    let project = Project::new(&[
        ("Cargo.toml", &manifest),
        ("src/main.rs", print),
        (
            "build.rs",
            "fn main() { println!(\"cargo::rustc-env=FROM_SCRIPT=1\"); println!(\"cargo::rustc-link-search=/usr/lib\") }",
        ),
        (
            "extra/more.toml",
            "[env]\nMORE = { value = \"data\", relative = true }\nHOME = { value = \"/forced\", force = true }\n",
        ),
        (".cargo/config.toml", "[env]\nFROM_CONFIG = \"1\"\nROOT = { value = \"data\", relative = true }\n"),
    ]);
    let config = ["env.FROM_FLAG='1'", "env.DIR.value='x'", "env.DIR.relative=true", "../extra/more.toml"];
    let cargo = project.cargo("src", CargoOptions { config: config.map(str::to_owned).to_vec(), ..dev() });
    let (workspace, target) = server_of(&cargo).expect("found");
    let folder = RunFolder::create(&workspace.results()).expect("a folder");
    let server = build::server(&cargo, &mut runner(), &target, &folder).expect("built");
    let run = |command: &mut Command, environment: &Environment| -> Vec<String> {
        let output =
            command.current_dir(&cargo.current_dir).env_clear().envs(environment.iter()).output().expect("it runs");
        let text = String::from_utf8(output.stdout).expect("text");
        let mut lines: Vec<String> = text
            .lines()
            // Where cargo is started through rustup, that adds its own count of recursions.
            .filter(|line| !line.starts_with("RUST_RECURSION_COUNT="))
            .map(str::to_owned)
            .collect();
        lines.sort();
        lines
    };
    let theirs = run(
        Command::new(&cargo.program)
            .args(["run", "--quiet"])
            .args(config.iter().flat_map(|value| ["--config", *value])),
        &cargo.environment,
    );
    let ours = run(&mut Command::new(&server.path), &cargo.environment_of(&target.package, &server.linked));
    let libraries = |lines: &[String]| -> Vec<String> {
        let line = lines.iter().find_map(|line| line.strip_prefix("LD_LIBRARY_PATH=")).unwrap_or_default();
        let paths = line
            .trim_matches('"')
            .split(':')
            .filter(|path| !path.contains("/lib/rustlib/") && !path.contains("/toolchains/"));
        paths.map(str::to_owned).collect()
    };
    let rest = |lines: &[String]| -> Vec<String> {
        lines.iter().filter(|line| !line.starts_with("LD_LIBRARY_PATH=")).cloned().collect()
    };
    assert_eq!(rest(&ours), rest(&theirs));
    assert_eq!(libraries(&ours), libraries(&theirs));
}
