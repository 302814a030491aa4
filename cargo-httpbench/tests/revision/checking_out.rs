//! Worktrees: what they hold, what they leave alone, and what becomes of them.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_httpbench::environment::Environment;
use cargo_httpbench::revision::{Against, Git, WhichCommit, WorkingTree, check_out, resolve};

use crate::repository::{Candidate, Repository, deaf, git_in, output, package, price, prints, runner};

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
        .args(["--exact", "checking_out::run_that_is_killed", "--ignored", "--nocapture"])
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
