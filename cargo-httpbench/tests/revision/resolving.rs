//! From REV to a commit.

use cargo_httpbench::exit_code::ExitCode;
use cargo_httpbench::revision::{Against, Git, WhichCommit, WorkingTree, resolve};

use crate::repository::{Repository, built, deaf, git_in, prints};

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
    let itself = repository.resolve("main~1", WhichCommit::MergeBase).expect("resolved");
    assert!(!itself.is_merge_base, "HEAD stands on it: there is nothing to tell");
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
