//! From REV to one commit.

use std::path::{Path, PathBuf};

use super::git::{Git, GitOutput};
use super::{Against, WhichCommit};
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::nearest;

/// References that are looked through for a name that was probably meant.
const REFERENCES: &str = "--count=5000";

/// The commit that `--against` means, and the repository that holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision {
    /// REV as the user wrote it.
    pub asked: String,
    /// The whole object name of the commit to compare with.
    pub commit: String,
    /// The whole object name of HEAD, on which the candidate stands.
    pub head: String,
    /// Whether `commit` is REV's merge base with HEAD, and not REV itself.
    pub is_merge_base: bool,
    /// What the candidate is beside HEAD.
    pub working_tree: WorkingTree,
    /// The root of the user's checkout.
    pub toplevel: PathBuf,
}

/// What stands in the user's checkout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkingTree {
    /// HEAD.
    Clean,
    /// HEAD with changes that are not committed. They are part of the candidate.
    Uncommitted,
}

/// Finds the commit that is meant. `folder` is any in the user's checkout, such as the root of the workspace.
///
/// # Errors
///
/// When there is no git or no repository, when REV is unknown (2), or when history is missing (96), with the command that fetches
/// it.
pub fn resolve(folder: &Path, against: &Against, git: &Git) -> Result<Revision> {
    let toplevel = toplevel(folder, git)?;
    let head = git.call(&toplevel, ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])?;
    let head = head.text().ok_or_else(|| {
        Error::new(ExitCode::Usage, format!("`{}` has no commit yet", toplevel.display()))
            .help("commit once, or compare with a baseline: `--save-baseline`, then `--baseline`")
    })?;
    let asked = &against.rev;
    let exact = commit_of(&toplevel, asked, git)?.map_or_else(|| Err(unknown(&toplevel, asked, git)?), Ok)?;
    let commit = match against.commit {
        WhichCommit::Exact => exact.clone(),
        WhichCommit::MergeBase => merge_base(&toplevel, asked, &exact, &head, git)?,
    };
    let status =
        git.call(&toplevel, ["status", "--porcelain", "--untracked-files=normal", "--ignore-submodules=none"])?;
    if !status.ended.is_success() {
        return Err(status.error(ExitCode::Configuration, "git cannot tell the state of the working tree"));
    }
    Ok(Revision {
        asked: asked.clone(),
        is_merge_base: commit != exact,
        commit,
        head,
        working_tree: if status.stdout.is_empty() { WorkingTree::Clean } else { WorkingTree::Uncommitted },
        toplevel,
    })
}

impl Revision {
    /// As many digits of the commit as people read.
    #[must_use]
    pub fn short(&self) -> &str {
        self.commit.get(..10).unwrap_or(&self.commit)
    }
}

fn toplevel(folder: &Path, git: &Git) -> Result<PathBuf> {
    let said = git.call(folder, ["rev-parse", "--show-toplevel"])?;
    if let Some(line) = said.line() {
        return Ok(PathBuf::from(line));
    }
    if said.words.iter().any(|line| line.contains("not a git repository")) {
        return Err(Error::new(ExitCode::Usage, format!("`{}` is in no git repository", folder.display()))
            .help("`--against` compares with a git revision; without git keep a baseline: `--save-baseline`, then `--baseline`"));
    }
    Err(said
        .error(ExitCode::Configuration, format!("git does not read the repository of `{}`", folder.display()))
        .help("git's own words tell what it needs"))
}

/// The commit of a revision, if there is one.
fn commit_of(toplevel: &Path, rev: &str, git: &Git) -> Result<Option<String>> {
    // What begins with a dash is an option for git; no reference does.
    if rev.is_empty() || rev.starts_with('-') {
        return Ok(None);
    }
    let peeled = format!("{rev}^{{commit}}");
    Ok(git.call(toplevel, ["rev-parse", "--verify", "--quiet", &peeled])?.text())
}

fn unknown(toplevel: &Path, rev: &str, git: &Git) -> Result<Error> {
    let error = Error::new(ExitCode::Usage, format!("git knows no revision `{rev}`"));
    let list = git.call(
        toplevel,
        ["for-each-ref", REFERENCES, "--format=%(refname:short)", "refs/heads", "refs/remotes", "refs/tags"],
    )?;
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    let near = nearest::several(rev, list.lines(), 3);
    let error =
        if near.is_empty() { error } else { error.details("similar ones", near.into_iter().map(str::to_owned)) };
    let deepen = if is_shallow(toplevel, git)? { " --unshallow" } else { "" };
    let remotes = remotes(toplevel, git)?;
    // A checkout of one branch only, as continuous integration makes it, has no other branch of its remote.
    let tracking = remotes.iter().find_map(|remote| Some((remote, rev.strip_prefix(&format!("{remote}/"))?)));
    let help = match (tracking, remotes.first()) {
        (Some((remote, branch)), _) if is_plain(branch) => {
            format!(
                "if `{remote}` has it, `git fetch{deepen} {remote} +refs/heads/{branch}:refs/remotes/{rev}` brings it here"
            )
        }
        (_, Some(remote)) if !deepen.is_empty() => {
            format!("this clone is shallow: `git fetch --unshallow --tags {remote}` brings the rest of its history")
        }
        (_, Some(remote)) => format!("if it is new, `git fetch --tags {remote}` brings it here"),
        (_, None) => "choose a branch, a tag or a commit: `git branch -a`, `git tag`, `git log`".to_owned(),
    };
    Ok(error.help(help))
}

/// Whether a branch's name can be typed in a shell as it is.
fn is_plain(branch: &str) -> bool {
    !branch.is_empty() && branch.chars().all(|letter| letter.is_alphanumeric() || "-_./".contains(letter))
}

fn merge_base(toplevel: &Path, asked: &str, commit: &str, head: &str, git: &Git) -> Result<String> {
    let said = git.call(toplevel, ["merge-base", commit, head])?;
    if let Some(base) = said.text() {
        return Ok(base.lines().next().unwrap_or(&base).to_owned());
    }
    if !matches!(said.ended, crate::process::Ended::Exited { code: 1 }) {
        return Err(
            said.error(ExitCode::Configuration, format!("git cannot tell the merge base of `{asked}` and HEAD"))
        );
    }
    let exact = "or compare with the commit itself by `--exact-rev`";
    if is_shallow(toplevel, git)? {
        let remotes = remotes(toplevel, git)?;
        let remote = remotes.iter().find(|remote| asked.starts_with(&format!("{remote}/"))).or(remotes.first());
        let fetch = remote
            .map_or_else(|| "git fetch --unshallow".to_owned(), |remote| format!("git fetch --unshallow {remote}"));
        return Err(Error::new(
            ExitCode::Configuration,
            format!("this clone is shallow: the merge base of `{asked}` and HEAD is not in it"),
        )
        .help(format!("run `{fetch}` (with the checkout action of GitHub, set `fetch-depth: 0`), {exact}")));
    }
    Err(Error::new(ExitCode::Usage, format!("`{asked}` and HEAD have no common history"))
        .help(format!("choose another revision, {exact}")))
}

fn is_shallow(toplevel: &Path, git: &Git) -> Result<bool> {
    Ok(git.call(toplevel, ["rev-parse", "--is-shallow-repository"])?.text().as_deref() == Some("true"))
}

/// The names of the remotes, `origin` first.
fn remotes(toplevel: &Path, git: &Git) -> Result<Vec<String>> {
    let said: GitOutput = git.call(toplevel, ["remote"])?;
    let mut names: Vec<String> = String::from_utf8_lossy(&said.stdout).lines().map(str::to_owned).collect();
    names.sort_by_key(|name| name != "origin");
    Ok(names)
}
