//! Servers of other git revisions, over real repositories with the real git and the real cargo.

use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use cargo_httpbench::build::{self, RunFolder, ServerExecutable};
use cargo_httpbench::cargo::{Cargo, CargoCall, CargoOptions, RunCargo, SupervisedCargo};
use cargo_httpbench::discover::{ServerTarget, Workspace};
use cargo_httpbench::environment::{self, Environment};
use cargo_httpbench::error::{Error, Result};
use cargo_httpbench::exit_code::ExitCode;
use cargo_httpbench::interrupt::Interrupt;
use cargo_httpbench::revision::{
    Against, Checkout, Counterpart, Git, LockOrigin, NoServer, Revision, RevisionServer, WhichCommit, WorkingTree,
    check_out, resolve,
};

static COMMITS: AtomicU32 = AtomicU32::new(0);

/// A repository in a folder with a space in its name.
struct Repository {
    dir: tempfile::TempDir,
    root: PathBuf,
    variables: Vec<(String, OsString)>,
}

impl Repository {
    /// With a first commit of these files and the lock file that goes with them, on `main`.
    fn new(files: &[(&str, &str)]) -> Self {
        let repository = Self::bare_of_files();
        repository.write(files);
        repository.write(&[(".gitignore", "target\n.env\n*.db\n/local\n")]);
        if repository.root.join("Cargo.toml").is_file() {
            let status = Command::new("cargo")
                .args(["generate-lockfile", "--offline", "--quiet"])
                .current_dir(&repository.root)
                .status();
            assert!(status.expect("cargo runs").success());
        }
        repository.commit();
        repository
    }

    fn bare_of_files() -> Self {
        let dir = tempfile::Builder::new().prefix("httpbench test ").tempdir().expect("a folder");
        let root = dir.path().canonicalize().expect("it exists").join("shop it");
        fs::create_dir(&root).expect("a folder");
        let repository = Self { dir, root, variables: Vec::new() };
        repository.git(&["init", "--quiet", "--initial-branch=main"]);
        repository
    }

    /// A package `shop` that prints one word.
    fn shop(word: &str) -> Self {
        Self::new(&[("Cargo.toml", &package("shop", "")), ("src/main.rs", &prints(word))])
    }

    /// A workspace whose server `shop` prints the number that its library `price` holds.
    fn with_library(number: u32) -> Self {
        Self::new(&[
            ("Cargo.toml", "[workspace]\nmembers = [\"shop\", \"price\"]\nresolver = \"3\"\n"),
            ("shop/Cargo.toml", &package("shop", "[dependencies]\nprice = { path = \"../price\" }\n")),
            ("shop/src/main.rs", "fn main() { println!(\"{}\", price::price()) }"),
            ("price/Cargo.toml", &package("price", "")),
            ("price/src/lib.rs", &price(number)),
        ])
    }

    fn write(&self, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = self.root.join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            fs::write(path, text).expect("written");
        }
    }

    fn git(&self, args: &[&str]) -> String {
        git_in(&self.root, args)
    }

    fn commit(&self) -> String {
        self.git(&["add", "--all"]);
        // Commits of one second with the same content would be one commit.
        let message = format!("change {}", COMMITS.fetch_add(1, Ordering::Relaxed));
        self.git(&["commit", "--quiet", "--allow-empty", "--message", &message]);
        self.head()
    }

    fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"])
    }

    fn environment(&self) -> Environment {
        let mut own = environment::users_own(&Environment::inherited(), std::env::current_exe().ok().as_deref());
        for name in ["CARGO_TARGET_DIR", "RUSTFLAGS"] {
            own.remove(name);
        }
        own.set("GIT_CONFIG_GLOBAL", "/dev/null");
        for (name, value) in &self.variables {
            own.set(name, value);
        }
        own
    }

    fn caller(&self) -> Git {
        Git::new(&self.environment(), deaf())
    }

    fn resolve(&self, rev: &str, commit: WhichCommit) -> Result<Revision> {
        resolve(&self.root, &Against { rev: rev.to_owned(), commit }, &self.caller())
    }

    fn cargo(&self) -> Cargo {
        Cargo::new(
            &self.root,
            self.environment(),
            CargoOptions { profile: "dev".to_owned(), ..CargoOptions::default() },
        )
    }

    fn check_out(&self, rev: &str) -> Checkout {
        let revision = self.resolve(rev, WhichCommit::Exact).expect("resolved");
        check_out(&revision, &self.root.join("target/httpbench"), &self.caller()).expect("checked out")
    }

    fn records(&self) -> usize {
        self.git(&["worktree", "list", "--porcelain"]).lines().filter(|line| line.starts_with("worktree ")).count()
    }

    /// Everything of the user's that must stay as it is.
    fn untouchable(&self) -> (String, Vec<u8>, Vec<u8>, Vec<u8>, String) {
        let read = |name: &str| fs::read(self.root.join(".git").join(name)).expect("readable");
        let status = self.git(&["--no-optional-locks", "status", "--porcelain=v2", "--branch"]);
        (status, read("index"), read("HEAD"), read("config"), self.git(&["for-each-ref"]))
    }
}

fn git_in(folder: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always"])
        .args(args)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .expect("git runs");
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text").trim_end().to_owned()
}

fn package(name: &str, more: &str) -> String {
    format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n{more}")
}

fn prints(word: &str) -> String {
    format!("fn main() {{ println!(\"{word}\") }}")
}

fn price(number: u32) -> String {
    format!("pub fn price() -> u32 {{ {number} }}")
}

fn deaf() -> &'static Interrupt {
    static DEAF: LazyLock<Interrupt> = LazyLock::new(|| {
        cargo_httpbench::process::use_executable(env!("CARGO_BIN_EXE_cargo-httpbench"));
        Interrupt::deaf().expect("a pipe")
    });
    &DEAF
}

fn runner() -> SupervisedCargo<'static> {
    SupervisedCargo::new(deaf())
}

/// What a candidate consists of, as a run finds it.
struct Candidate {
    workspace: Workspace,
    server: ServerTarget,
    folder: RunFolder,
}

impl Candidate {
    fn of(cargo: &Cargo) -> Self {
        let workspace = Workspace::read(cargo, &mut runner()).expect("a workspace");
        let selected = workspace.selected(&cargo.options).expect("packages");
        let package = selected.iter().find(|package| package.name.as_str() == "shop").expect("the shop");
        let server = workspace.server(&cargo.options, &selected, package, None).expect("a server");
        let folder = RunFolder::create(&workspace.results()).expect("a folder");
        Self { server, folder, workspace }
    }

    fn build(&self, cargo: &Cargo) -> ServerExecutable {
        build::server(cargo, &mut runner(), &self.server, &self.folder).expect("it builds")
    }

    fn revision(
        &self,
        checkout: &Checkout,
        cargo: &Cargo,
        runner: &mut dyn RunCargo,
    ) -> Result<RevisionServer, NoServer> {
        let counterpart =
            Counterpart { workspace_root: self.workspace.root(), package: &self.server.package, server: &self.server };
        checkout.build_server(cargo, runner, counterpart, &self.folder)
    }
}

/// The revision's server, built with the options of `cargo`.
fn built(repository: &Repository, rev: &str, cargo: &Cargo) -> Result<(RevisionServer, String), NoServer> {
    let candidate = Candidate::of(cargo);
    let checkout = repository.check_out(rev);
    let server = candidate.revision(&checkout, cargo, &mut runner())?;
    let said = output(&server.executable.path);
    Ok((server, said))
}

fn output(program: &Path) -> String {
    let output = Command::new(program).output().expect("it runs");
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

#[test]
fn branch_behind_main_is_compared_with_where_it_left() {
    let repository = Repository::shop("base");
    let base = repository.head();
    repository.git(&["checkout", "--quiet", "-b", "feature"]);
    repository.write(&[("src/main.rs", &prints("feature"))]);
    let head = repository.commit();
    repository.git(&["checkout", "--quiet", "main"]);
    repository.write(&[("src/main.rs", &prints("main"))]);
    let main = repository.commit();
    repository.git(&["checkout", "--quiet", "feature"]);

    let merge_base = repository.resolve("main", WhichCommit::MergeBase).expect("resolved");
    assert_eq!((merge_base.commit, merge_base.head.as_str(), merge_base.is_merge_base), (base, head.as_str(), true));
    let exact = repository.resolve("main", WhichCommit::Exact).expect("resolved");
    assert_eq!((exact.commit, exact.is_merge_base, exact.asked.as_str()), (main, false, "main"));
    assert_eq!(exact.working_tree, WorkingTree::Clean);
    assert_eq!(exact.toplevel, repository.root);

    let (_, said) = built(&repository, "main", &repository.cargo()).expect("built");
    assert_eq!(said, "main");
    let (_, said) = built(&repository, "main~1", &repository.cargo()).expect("built");
    assert_eq!(said, "base");
}

#[test]
fn unknown_revision_is_answered_with_similar_ones_and_what_to_fetch() {
    let repository = Repository::shop("x");
    repository.git(&["branch", "feature/search"]);
    let error = repository.resolve("feature/serch", WhichCommit::MergeBase).expect_err("unknown");
    assert_eq!((error.exit, error.details[0].lines.as_slice()), (ExitCode::Usage, &["feature/search".to_owned()][..]));
    for rev in ["", "--all", "-n1", "no such thing"] {
        let error = repository.resolve(rev, WhichCommit::Exact).expect_err("unknown");
        assert_eq!(error.what, format!("git knows no revision `{rev}`"));
    }
    repository.git(&["remote", "add", "origin", "/nowhere"]);
    let error = repository.resolve("origin/main", WhichCommit::MergeBase).expect_err("unknown");
    let help = error.help.expect("a help");
    assert!(help.contains("`git fetch origin +refs/heads/main:refs/remotes/origin/main`"), "{help}");
}

#[test]
fn shallow_clone_is_told_what_to_fetch() {
    let repository = Repository::shop("base");
    repository.git(&["checkout", "--quiet", "-b", "feature"]);
    repository.commit();
    repository.git(&["checkout", "--quiet", "main"]);
    repository.commit();
    let url = format!("file://{}", repository.root.display());
    let clone = |name: &str, more: &[&str]| {
        let mut args = vec!["clone", "--quiet", "--depth=1", "--branch=feature"];
        args.extend(more);
        args.extend([url.as_str(), name]);
        git_in(repository.dir.path(), &args);
        repository.dir.path().join(name)
    };
    let against = Against { rev: "origin/main".to_owned(), commit: WhichCommit::MergeBase };

    let both = clone("both", &["--no-single-branch"]);
    let error = resolve(&both, &against, &repository.caller()).expect_err("no history");
    assert_eq!(error.exit, ExitCode::Configuration);
    assert_eq!(error.what, "this clone is shallow: the merge base of `origin/main` and HEAD is not in it");
    assert!(error.help.as_deref().is_some_and(|help| help.contains("`git fetch --unshallow origin`")), "{error:?}");
    git_in(&both, &["fetch", "--quiet", "--unshallow", "origin"]);
    resolve(&both, &against, &repository.caller()).expect("the command helps");

    let single = clone("single", &[]);
    let error = resolve(&single, &against, &repository.caller()).expect_err("no such branch");
    let help = error.help.expect("a help");
    let command = "git fetch --unshallow origin +refs/heads/main:refs/remotes/origin/main";
    assert!(help.contains(command), "{help}");
    git_in(&single, &command.split(' ').skip(1).collect::<Vec<_>>());
    resolve(&single, &against, &repository.caller()).expect("the command helps");
}

#[test]
fn folder_without_git_or_commit_or_common_history_is_refused_in_plain_words() {
    let empty = tempfile::tempdir().expect("a folder");
    let repository = Repository::shop("x");
    let against = Against { rev: "main".to_owned(), commit: WhichCommit::MergeBase };
    let error = resolve(empty.path(), &against, &repository.caller()).expect_err("no repository");
    assert_eq!((error.exit, error.what.contains("is in no git repository")), (ExitCode::Usage, true));

    let unborn = Repository::bare_of_files();
    let error = unborn.resolve("HEAD", WhichCommit::Exact).expect_err("no commit");
    assert!(error.what.ends_with("has no commit yet"), "{error}");

    repository.git(&["checkout", "--quiet", "--orphan", "other"]);
    repository.commit();
    let error = repository.resolve("main", WhichCommit::MergeBase).expect_err("nothing in common");
    assert_eq!(error.what, "`main` and HEAD have no common history");

    let mut nowhere = repository.environment();
    nowhere.set("PATH", empty.path());
    let error = resolve(&repository.root, &against, &Git::new(&nowhere, deaf())).expect_err("no git");
    assert_eq!(error.exit, ExitCode::Configuration);
    assert!(error.help.as_deref().is_some_and(|help| help.contains("install git")), "{error:?}");
}

#[test]
fn dirty_tree_is_the_candidate_and_is_left_as_it_is() {
    let repository = Repository::shop("committed");
    repository.write(&[("src/main.rs", &prints("edited")), ("src/new.rs", ""), ("staged.txt", "x")]);
    repository.git(&["add", "staged.txt"]);
    // Hooks write where they please.
    repository.write(&[(".git/hooks/post-checkout", "#!/bin/sh\ntouch \"$PWD/hook-has-run\"\nexit 1\n")]);
    let hook = repository.root.join(".git/hooks/post-checkout");
    fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("made executable");

    let before = repository.untouchable();
    let revision = repository.resolve("HEAD", WhichCommit::MergeBase).expect("resolved");
    assert_eq!((&revision.commit, revision.working_tree), (&revision.head, WorkingTree::Uncommitted));
    let cargo = repository.cargo();
    let candidate = Candidate::of(&cargo);
    assert_eq!(output(&candidate.build(&cargo).path), "edited");
    let checkout = repository.check_out("HEAD");
    let server = candidate.revision(&checkout, &cargo, &mut runner()).expect("built");
    assert_eq!(output(&server.executable.path), "committed");
    assert_eq!(server.package_root, checkout.root());
    assert!(!checkout.root().join("hook-has-run").exists());
    assert_eq!(repository.records(), 2);
    assert_eq!(repository.untouchable(), before);
    let tree = checkout.root();
    drop(checkout);
    assert!(!tree.exists());
    assert_eq!(repository.records(), 1);
    assert_eq!(repository.untouchable(), before);
}

#[test]
fn variables_that_git_sets_for_hooks_do_not_lead_elsewhere() {
    let mut repository = Repository::shop("here");
    let other = Repository::shop("elsewhere");
    for (name, value) in
        [("GIT_DIR", other.root.join(".git")), ("GIT_WORK_TREE", other.root.clone()), ("GIT_INDEX_FILE", "x".into())]
    {
        repository.variables.push((name.to_owned(), value.into_os_string()));
    }
    let revision = repository.resolve("HEAD", WhichCommit::MergeBase).expect("resolved");
    assert_eq!((revision.commit, revision.toplevel.clone()), (repository.head(), repository.root.clone()));
    assert_eq!(built(&repository, "HEAD", &repository.cargo()).expect("built").1, "here");
}

#[test]
fn library_of_the_workspace_is_each_revisions_own_in_both_orders_and_wherever_cargo_builds() {
    for elsewhere in [None, Some("CARGO_TARGET_DIR"), Some("CARGO_BUILD_BUILD_DIR")] {
        let mut repository = Repository::with_library(1);
        repository.write(&[("price/src/lib.rs", &price(2))]);
        if let Some(name) = elsewhere {
            let shared = repository.dir.path().join("shared target");
            repository.variables.push((name.to_owned(), shared.into_os_string()));
        }
        let cargo = repository.cargo();
        let candidate = Candidate::of(&cargo);
        let checkout = repository.check_out("HEAD");
        let there = |what: &str| {
            let server = candidate.revision(&checkout, &cargo, &mut runner()).expect("built");
            assert_eq!(output(&server.executable.path), "1", "{what} {elsewhere:?}");
            assert_eq!(server.package_root, checkout.root().join("shop"));
        };
        let here = |number: &str| assert_eq!(output(&candidate.build(&cargo).path), number, "{elsewhere:?}");
        there("first");
        here("2");
        fs::remove_dir_all(repository.root.join("target/httpbench/revisions/cache")).expect("forgotten");
        there("second");
        here("2");
        drop(checkout);
        // The other way round: what was the candidate is now the revision.
        repository.commit();
        repository.write(&[("price/src/lib.rs", &price(3))]);
        let (server, said) = built(&repository, "HEAD", &cargo).expect("built");
        assert_eq!((said.as_str(), server.lock), ("2", LockOrigin::Revision));
        here("3");
        let (_, said) = built(&repository, "HEAD~1", &cargo).expect("built");
        assert_eq!(said, "1");
        let target = repository.root.join("target/httpbench/revisions/0000000000000000/target");
        assert!(server.executable.built.starts_with(target), "{}", server.executable.built.display());
    }
}

#[test]
fn equal_sources_give_equal_executables() {
    let repository = Repository::with_library(1);
    let main = r#"mod made { include!(concat!(env!("OUT_DIR"), "/made.rs")); }
        fn main() { println!("{}", made::pick(price::price() as usize)) }"#;
    let script = r#"fn main() {
        let folder = std::path::PathBuf::from(std::env::var_os("OUT_DIR").unwrap());
        std::fs::write(folder.join("made.rs"), "pub fn pick(at: usize) -> u8 { [1, 2, 3][at] }").unwrap();
    }"#;
    let config = "[build]\nrustflags = [\"--cfg\", \"special\"]\n";
    let root = fs::read_to_string(repository.root.join("Cargo.toml")).expect("readable");
    let root = format!("{root}\n[profile.release]\ndebug = true\n");
    repository.write(&[
        ("shop/src/main.rs", main),
        ("shop/build.rs", script),
        (".cargo/config.toml", config),
        ("Cargo.toml", &root),
    ]);
    repository.commit();
    let mut cargo = repository.cargo();
    cargo.options.profile = "release".to_owned();
    let candidate = Candidate::of(&cargo);
    let here = candidate.build(&cargo);
    let checkout = repository.check_out("HEAD");
    let there = candidate.revision(&checkout, &cargo, &mut runner()).expect("built");
    assert_eq!(output(&there.executable.path), "2");
    let (here, there) = (fs::read(here.path).expect("readable"), fs::read(there.executable.path).expect("readable"));
    assert!(here == there, "{} and {} bytes", here.len(), there.len());
}

#[test]
fn revision_that_was_built_before_costs_no_cargo_call() {
    let repository = Repository::shop("old");
    repository.write(&[("src/main.rs", &prints("new"))]);
    let cargo = repository.cargo();
    let calls = Cell::new(0);
    let mut counting = |call: &CargoCall| {
        if !call.program.ends_with("rustc") {
            calls.set(calls.get() + 1);
        }
        runner().run(call)
    };
    let candidate = Candidate::of(&cargo);
    let mut build = |cargo: &Cargo| {
        calls.set(0);
        let checkout = repository.check_out("HEAD");
        let server = candidate.revision(&checkout, cargo, &mut counting).expect("built");
        assert_eq!(output(&server.executable.path), "old");
        assert!(server.executable.path.starts_with(candidate.folder.path()));
        (calls.get(), server.environment, server.executable.linked)
    };
    let first = build(&cargo);
    assert!(first.0 > 0);
    let second = build(&cargo);
    assert_eq!((second.0, &second.1, &second.2), (0, &first.1, &first.2));
    let mut flags = cargo.clone();
    flags.environment.set("RUSTFLAGS", "--cfg other");
    assert!(build(&flags).0 > 0);
    let mut profile = cargo.clone();
    profile.options.profile = "release".to_owned();
    assert!(build(&profile).0 > 0);
    assert_eq!(build(&cargo).0, 0);
}

#[test]
fn executable_that_depends_on_more_than_the_commit_is_not_kept() {
    let elsewhere = Repository::shop("x");
    elsewhere.write(&[("Cargo.toml", &package("price", "")), ("src/lib.rs", &price(1))]);
    let outside = format!("[dependencies]\nprice = {{ path = \"{}\" }}\n", elsewhere.root.display());
    let plain = "fn main() { println!(\"{}\", 1) }";
    let script = |what: &str| format!("fn main() {{ {what} }}");
    let writes_beside_sources = script(r#"std::fs::write("made.txt", "1").unwrap();"#);
    let writes =
        script(r#"std::fs::write(std::path::Path::new(&std::env::var("OUT_DIR").unwrap()).join("a"), "1").unwrap();"#);
    let reads_what_was_built =
        r#"fn main() { println!("{}", std::fs::read_to_string(concat!(env!("OUT_DIR"), "/a")).unwrap()) }"#;
    let embeds = r#"fn main() { println!("{}", include_str!(concat!(env!("OUT_DIR"), "/a"))) }"#;
    let uses = "fn main() { println!(\"{}\", price::price()) }";
    for (name, more, main, script, is_kept) in [
        ("path dependency elsewhere", outside.as_str(), uses, "fn main() {}", false),
        ("assets beside the sources", "", plain, writes_beside_sources.as_str(), false),
        ("files of the build folder", "", reads_what_was_built, writes.as_str(), false),
        ("embedded files of the build folder", "", embeds, writes.as_str(), true),
        ("nothing", "", plain, "fn main() {}", true),
    ] {
        let repository =
            Repository::new(&[("Cargo.toml", &package("shop", more)), ("src/main.rs", main), ("build.rs", script)]);
        assert_eq!(built(&repository, "HEAD", &repository.cargo()).expect("built").1, "1", "{name}");
        let kept = fs::read_dir(repository.root.join("target/httpbench/revisions/cache")).map_or(0, Iterator::count);
        assert_eq!(kept == 1, is_kept, "{name}");
    }
}

#[test]
fn target_directory_may_be_shared_by_repositories() {
    let (mut one, mut two) = (Repository::with_library(1), Repository::with_library(2));
    let shared = one.dir.path().canonicalize().expect("it exists").join("shared");
    for repository in [&mut one, &mut two] {
        repository.variables.push(("CARGO_TARGET_DIR".to_owned(), shared.clone().into_os_string()));
    }
    let results = shared.join("httpbench");
    for (repository, number) in [(&one, "1"), (&two, "2"), (&one, "1")] {
        let cargo = repository.cargo();
        let candidate = Candidate::of(&cargo);
        let revision = repository.resolve("HEAD", WhichCommit::Exact).expect("resolved");
        let checkout = check_out(&revision, &results, &repository.caller()).expect("checked out");
        let _ = fs::remove_dir_all(results.join("revisions/cache"));
        let server = candidate.revision(&checkout, &cargo, &mut runner()).expect("built");
        assert_eq!(output(&server.executable.path), number);
    }
    // A killed run of one repository is cleaned up by the next run of the other.
    let tree = results.join("revisions/0000000000000000/target/package/tree");
    one.git(&["worktree", "add", "--quiet", "--detach", tree.to_str().expect("text")]);
    assert_eq!(one.records(), 2);
    let revision = two.resolve("HEAD", WhichCommit::Exact).expect("resolved");
    let checkout = check_out(&revision, &results, &two.caller()).expect("checked out");
    assert_eq!((one.records(), two.records(), checkout.root()), (1, 2, tree));
}

#[test]
fn revision_without_such_a_server_says_what_it_has() {
    let repository = Repository::new(&[("Cargo.toml", &package("store", "")), ("src/main.rs", &prints("x"))]);
    let rev = |repository: &Repository, rev: &str| built(repository, rev, &repository.cargo()).expect_err("no server");
    repository.write(&[("Cargo.toml", &package("shop", "")), ("src/bin/shop.rs", "fn main( {")]);
    fs::remove_file(repository.root.join("src/main.rs")).expect("removed");
    repository.git(&["rm", "--quiet", "--cached", "Cargo.lock"]);
    repository.commit();
    repository.write(&[("src/bin/shop.rs", &prints("x"))]);
    let Some(NoServer::NoSuchPackage { package: name, there }) = Some(rev(&repository, "HEAD~1")) else {
        panic!("it has no such package")
    };
    assert_eq!((name.as_str(), there.as_slice()), ("shop", &["store".to_owned()][..]));

    let NoServer::DoesNotBuild(error) = rev(&repository, "HEAD") else { panic!("it does not build") };
    assert_eq!(error.exit, ExitCode::BuildFailed);
    let error = NoServer::DoesNotBuild(error).into_error("1a2b");
    assert!(error.what.starts_with("`1a2b` does not build: cargo could not build server `shop`"), "{error}");

    repository.write(&[("src/bin/shop.rs", &prints("x"))]);
    repository.commit();
    fs::rename(repository.root.join("src/bin/shop.rs"), repository.root.join("src/bin/front.rs")).expect("renamed");
    let NoServer::NoSuchBinary { bin, there, .. } = rev(&repository, "HEAD") else { panic!("it has no such binary") };
    assert_eq!((bin.as_str(), there.as_slice()), ("front", &["shop".to_owned()][..]));
}

#[test]
fn revision_without_a_lock_file_gets_the_candidates() {
    let repository = Repository::with_library(1);
    repository.git(&["rm", "--quiet", "--cached", "Cargo.lock"]);
    repository.git(&["commit", "--quiet", "--message", "no lock file"]);
    let lock = fs::read(repository.root.join("Cargo.lock")).expect("readable");
    // Its list of packages is not the revision's: cargo adapts it.
    repository.write(&[("price/Cargo.toml", &package("price", "").replace("0.1.0", "0.2.0"))]);
    let cargo = repository.cargo();
    let (server, said) = built(&repository, "HEAD", &cargo).expect("built");
    assert_eq!((said.as_str(), server.lock), ("1", LockOrigin::Candidate));
    assert_eq!(server.warnings.iter().map(|warning| warning.code()).collect::<Vec<_>>(), ["revision-without-lock"]);
    assert_eq!(fs::read(repository.root.join("Cargo.lock")).expect("readable"), lock);
}

#[test]
fn stale_lock_file_of_a_revision_is_not_mended_behind_its_back() {
    let repository = Repository::with_library(1);
    repository.write(&[("price/Cargo.toml", &package("price", "").replace("0.1.0", "0.2.0"))]);
    repository.commit();
    let NoServer::DoesNotBuild(_) = built(&repository, "HEAD", &repository.cargo()).expect_err("--locked") else {
        panic!("it does not build")
    };
}

#[test]
fn features_that_a_revision_does_not_have_are_left_out_and_said() {
    let repository = Repository::shop("old");
    repository
        .write(&[("Cargo.toml", &package("shop", "[features]\nregression = []\n")), ("src/main.rs", &prints("new"))]);
    let mut cargo = repository.cargo();
    cargo.options.features = vec!["regression".to_owned()];
    let (server, said) = built(&repository, "HEAD", &cargo).expect("built");
    assert_eq!(said, "old");
    assert_eq!(server.warnings.iter().map(|warning| warning.code()).collect::<Vec<_>>(), ["revision-without-features"]);
}

#[test]
fn each_revision_has_the_flags_of_its_own_configuration_but_ignored_files_are_the_machines() {
    let print = r#"fn main() {
        println!("{}{}{}", if cfg!(old) { "old" } else { "" }, if cfg!(new) { "new" } else { "" }, if cfg!(machine) { " machine" } else { "" })
    }"#;
    let config = |flag: &str| format!("[build]\nrustflags = [\"--cfg\", \"{flag}\"]\n");
    let repository = Repository::new(&[
        ("Cargo.toml", "[workspace]\nmembers = [\"shop\"]\nresolver = \"3\"\n"),
        ("shop/Cargo.toml", &package("shop", "")),
        ("shop/src/main.rs", print),
        (".cargo/config.toml", &config("old")),
        (".gitignore", "target\n/shop/.cargo\n"),
    ]);
    repository.write(&[(".cargo/config.toml", &config("new")), ("shop/.cargo/config.toml", &config("machine"))]);
    repository.write(&[(".gitignore", "target\n/shop/.cargo\n")]);
    let mut cargo = repository.cargo();
    cargo.current_dir = repository.root.join("shop");
    let candidate = Candidate::of(&cargo);
    assert_eq!(output(&candidate.build(&cargo).path), "new machine");
    let (_, said) = built(&repository, "HEAD", &cargo).expect("built");
    assert_eq!(said, "old machine");
}

#[test]
fn root_package_that_became_a_workspace_is_built_as_it_was() {
    let repository = Repository::shop("alone");
    repository.write(&[
        ("Cargo.toml", &package("shop", "[workspace]\nmembers = [\"price\"]\n")),
        ("price/Cargo.toml", &package("price", "")),
        ("price/src/lib.rs", ""),
    ]);
    assert_eq!(built(&repository, "HEAD", &repository.cargo()).expect("built").1, "alone");
}

#[test]
fn submodules_are_checked_out_and_the_users_configuration_does_not_know() {
    let library = Repository::bare_of_files();
    library.write(&[("Cargo.toml", &package("price", "")), ("src/lib.rs", &price(1))]);
    library.commit();
    let unused = Repository::shop("unused");
    let mut repository = Repository::bare_of_files();
    let allow =
        [("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", "protocol.file.allow"), ("GIT_CONFIG_VALUE_0", "always")];
    repository.variables.extend(allow.map(|(name, value)| (name.to_owned(), value.into())));
    for (module, path) in [(&library, "libs/price it"), (&unused, "docs")] {
        repository.git(&["submodule", "--quiet", "add", module.root.to_str().expect("text"), path]);
    }
    repository.write(&[
        (".gitignore", "target\nCargo.lock\n"),
        (
            "Cargo.toml",
            &package(
                "shop",
                "[dependencies]\nprice = { path = \"libs/price it\" }\n[workspace]\nexclude = [\"libs\", \"docs\"]\n",
            ),
        ),
        ("src/main.rs", "fn main() { println!(\"{}\", price::price()) }"),
    ]);
    repository.commit();
    // The library goes on in its own repository, and the candidate follows.
    library.write(&[("src/lib.rs", &price(2))]);
    library.commit();
    let own = repository.root.join("libs/price it");
    git_in(&own, &["pull", "--quiet"]);
    repository.git(&["submodule", "--quiet", "deinit", "docs"]);
    let before = repository.untouchable();
    let cargo = repository.cargo();
    let candidate = Candidate::of(&cargo);
    assert_eq!(output(&candidate.build(&cargo).path), "2");
    let checkout = repository.check_out("HEAD");
    assert!(!checkout.root().join("docs/Cargo.toml").exists(), "the user does without it");
    let server = candidate.revision(&checkout, &cargo, &mut runner()).expect("built");
    assert_eq!(output(&server.executable.path), "1");
    drop(checkout);
    assert_eq!((repository.untouchable(), repository.records()), (before, 1));
}

#[test]
fn linked_worktree_with_the_package_in_a_subfolder_is_followed() {
    let repository = Repository::new(&[
        ("services/shop/Cargo.toml", &package("shop", "")),
        ("services/shop/Cargo.lock", "version = 4\n\n[[package]]\nname = \"shop\"\nversion = \"0.1.0\"\n"),
        ("services/shop/src/main.rs", &prints("old")),
    ]);
    let linked = repository.dir.path().canonicalize().expect("it exists").join("linked tree");
    repository.git(&["worktree", "add", "--quiet", "-b", "feature", linked.to_str().expect("text")]);
    fs::write(linked.join("services/shop/src/main.rs"), prints("new")).expect("written");
    let mut cargo = repository.cargo();
    cargo.current_dir = linked.join("services/shop/src");
    let candidate = Candidate::of(&cargo);
    let against = Against { rev: "main".to_owned(), commit: WhichCommit::MergeBase };
    let revision = resolve(candidate.workspace.root(), &against, &repository.caller()).expect("resolved");
    assert_eq!(revision.toplevel, linked);
    let checkout = check_out(&revision, &candidate.workspace.results(), &repository.caller()).expect("checked out");
    let server = candidate.revision(&checkout, &cargo, &mut runner()).expect("built");
    assert_eq!(output(&server.executable.path), "old");
    assert_eq!(output(&candidate.build(&cargo).path), "new");
    assert_eq!(server.package_root, checkout.root().join("services/shop"));
    assert_eq!(server.environment.get("CARGO_MANIFEST_DIR"), Some(server.package_root.as_os_str()));
    assert_eq!(server.environment.get("RUSTC_WRAPPER"), cargo.environment.get("RUSTC_WRAPPER"));
    drop(checkout);
    assert_eq!(repository.records(), 2);
}

#[test]
fn two_runs_at_once_have_a_worktree_each() {
    let repository = Repository::shop("x");
    let (one, two) = (repository.check_out("HEAD"), repository.check_out("HEAD"));
    assert_ne!(one.root(), two.root());
    assert_eq!(one.root().as_os_str().len(), two.root().as_os_str().len());
    let first = one.root();
    drop(one);
    assert!(two.root().join("src/main.rs").is_file() && !first.exists());
    // The lowest free one is taken, so that its target directory is used again.
    assert_eq!(repository.check_out("HEAD").root(), first);
}

/// Not a test of its own: the run that [`worktree_of_a_killed_run_is_removed_by_the_next`] kills.
#[test]
#[ignore = "started by another test"]
fn run_that_is_killed() {
    let Some(root) = std::env::var_os("REVISION_TEST_ROOT") else { return };
    let root = PathBuf::from(root);
    let git = Git::new(&Environment::inherited(), deaf());
    let against = Against { rev: "HEAD".to_owned(), commit: WhichCommit::Exact };
    let revision = resolve(&root, &against, &git).expect("resolved");
    let _checkout = check_out(&revision, &root.join("target/httpbench"), &git).expect("checked out");
    println!("checked out");
    std::thread::sleep(std::time::Duration::from_secs(60));
}

#[test]
fn worktree_of_a_killed_run_is_removed_by_the_next() {
    use std::io::{BufRead, BufReader};

    let repository = Repository::shop("x");
    // It takes the second slot, so the next run removes what it does not need itself.
    let first = repository.check_out("HEAD");
    let mut killed = Command::new(std::env::current_exe().expect("our path"))
        .args(["--exact", "run_that_is_killed", "--ignored", "--nocapture"])
        .env("REVISION_TEST_ROOT", &repository.root)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("it starts");
    let lines = BufReader::new(killed.stdout.take().expect("a pipe")).lines();
    assert!(lines.map_while(std::io::Result::ok).any(|line| line.contains("checked out")));
    killed.kill().expect("killed");
    killed.wait().expect("it ends");
    assert_eq!(repository.records(), 3);
    drop(first);
    assert_eq!(repository.records(), 2);
    let before = repository.untouchable();
    let next = repository.check_out("HEAD");
    assert_eq!(repository.records(), 2);
    let second = next.root().to_str().map(|path| path.replace("0000000000000000", "0000000000000001"));
    assert!(!Path::new(&second.expect("text")).exists());
    drop(next);
    assert_eq!((repository.records(), repository.untouchable()), (1, before));
}

#[test]
fn worktree_whose_folder_somebody_has_removed_is_no_obstacle() {
    let repository = Repository::shop("x");
    let checkout = repository.check_out("HEAD");
    fs::remove_dir_all(checkout.root()).expect("removed");
    std::mem::forget(checkout);
    fs::remove_dir_all(repository.root.join("target")).expect("cargo clean");
    let checkout = repository.check_out("HEAD");
    assert!(checkout.root().join("src/main.rs").is_file());
    drop(checkout);
    assert_eq!(repository.records(), 1);
}

#[test]
fn ignored_files_that_the_worktree_lacks_are_named() {
    let repository = Repository::new(&[
        ("Cargo.toml", &package("shop", "")),
        ("src/main.rs", ""),
        ("config/default.toml", ""),
        ("deep/er/a", ""),
    ]);
    repository.write(&[
        (".env", "DATABASE_URL=x"),
        ("todo.db", ""),
        ("config/todo.db", ""),
        ("deep/er/todo.db", ""),
        ("local/a", ""),
        ("local/b.db", ""),
        ("target/CACHEDIR.TAG", ""),
    ]);
    let checkout = repository.check_out("HEAD");
    let missing = checkout.ignored_files_missing_there(&repository.root).expect("listed");
    let names: Vec<&OsStr> =
        missing.iter().map(|path| path.strip_prefix(&repository.root).expect("inside").as_os_str()).collect();
    assert_eq!(names, [".env", "config/todo.db", "local", "todo.db"]);
}

/// So that a failing test shows why.
impl std::fmt::Debug for Repository {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}", self.root.display())
    }
}

#[test]
fn failure_that_is_not_the_revisions_ends_the_run() {
    let signal = NoServer::from(Error::new(ExitCode::Signal(2), "interrupted"));
    assert_eq!(signal.into_error("1a2b").exit, ExitCode::Signal(2));
}
