//! A revision checked out in a worktree of its own, for as long as the run needs it.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

use super::git::Git;
use super::resolve::Revision;
use super::slot::Slot;
use crate::error::Result;
use crate::exit_code::ExitCode;

/// Ignored files that a message names at most.
const NAMED: usize = 20;

/// A revision's worktree. Dropping it removes the worktree, and its record in the repository.
#[derive(Debug)]
pub struct Checkout {
    pub(super) revision: Revision,
    pub(super) git: Git,
    pub(super) slot: Slot,
    /// The folder of everything that runs of this workspace leave behind.
    pub(super) results: PathBuf,
}

/// Checks a revision out below `<results>/revisions`, with its submodules. No hook is run.
///
/// # Errors
///
/// When git cannot do it, with its own words: a full disk or a read-only one (110), a submodule that cannot be fetched (96).
pub fn check_out(revision: &Revision, results: &Path, git: &Git) -> Result<Checkout> {
    let toplevel = &revision.toplevel;
    let said = git.call(toplevel, ["rev-parse", "--git-common-dir"])?;
    let Some(common) = said.line() else {
        return Err(said.error(ExitCode::Configuration, "git cannot tell where it keeps the repository"));
    };
    let slot = Slot::take(&results.join("revisions"), &toplevel.join(common))?;
    // From here on its drop removes what git may have begun.
    let checkout = Checkout { revision: revision.clone(), git: git.clone(), slot, results: results.to_owned() };
    let tree = checkout.slot.tree();
    // By force: git may remember a worktree there whose folder somebody has removed.
    let mut args: Vec<&OsStr> = ["worktree", "add", "--detach", "--force", "--quiet"].map(OsStr::new).to_vec();
    args.extend([tree.as_os_str(), OsStr::new(&revision.commit)]);
    let said = git.call(toplevel, args)?;
    if !said.ended.is_success() {
        return Err(said
            .error(ExitCode::OutputFailed, format!("git cannot check out `{}`", revision.short()))
            .help("git's own words tell what it needs"));
    }
    checkout.fill_submodules()?;
    Ok(checkout)
}

impl Checkout {
    /// What is checked out.
    #[must_use]
    pub const fn revision(&self) -> &Revision {
        &self.revision
    }

    /// The root of the worktree. Its length does not depend on the commit.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.slot.tree()
    }

    /// Where a folder or file of the user's checkout is in the worktree, whether it exists there or not. `None`: it lies outside of
    /// the repository.
    pub(super) fn counterpart(&self, path: &Path) -> Option<PathBuf> {
        let real = path.canonicalize();
        let inside = real.as_deref().unwrap_or(path).strip_prefix(&self.revision.toplevel).ok()?;
        // Joining nothing would add a slash.
        Some(if inside.as_os_str().is_empty() { self.root() } else { self.root().join(inside) })
    }

    /// Checks submodules out, without a word in the user's configuration: all are active, and their addresses are taken from
    /// `.gitmodules`. Those that the user's checkout does without are left out here too.
    fn fill_submodules(&self) -> Result<()> {
        let tree = self.root();
        if !tree.join(".gitmodules").is_file() {
            return Ok(());
        }
        let toplevel = &self.revision.toplevel;
        let unused: BTreeSet<PathBuf> = submodules(toplevel, &self.git)?
            .into_iter()
            .filter(|path| !toplevel.join(path).join(".git").exists())
            .collect();
        let wanted: Vec<PathBuf> =
            submodules(&tree, &self.git)?.into_iter().filter(|path| !unused.contains(path)).collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let mut args: Vec<OsString> =
            ["-c", "submodule.active=.", "submodule", "update", "--checkout", "--recursive", "--quiet", "--"]
                .map(OsString::from)
                .to_vec();
        // A path that a revision no longer has would be refused, and a pattern in a name must not be one.
        args.extend(wanted.into_iter().map(|path| {
            let mut literal = OsString::from(":(literal)");
            literal.push(path);
            literal
        }));
        let said = self.git.call(&tree, args)?;
        if said.ended.is_success() {
            return Ok(());
        }
        Err(said
            .error(
                ExitCode::Configuration,
                format!("git cannot check out the submodules of `{}`", self.revision.short()),
            )
            .help("let `git submodule update --init --recursive` pass in a fresh clone of this repository"))
    }

    /// Whether nothing stands in the worktree but the commit and a lock file: a build script may write assets beside its sources.
    pub(super) fn is_pristine(&self) -> Result<bool> {
        let said =
            self.git.call(&self.root(), ["status", "--porcelain", "-z", "--ignored", "--untracked-files=normal"])?;
        // Each entry is two letters, a space and a path.
        let changed = said
            .paths()
            .into_iter()
            .filter_map(|entry| entry.to_str().and_then(|entry| entry.get(3..).map(PathBuf::from)));
        Ok(said.ended.is_success() && changed.into_iter().all(|path| path.ends_with("Cargo.lock")))
    }

    /// Files and folders at the top of the package and of the repository, and in their `config` folders, that git ignores and that
    /// the worktree does not have: `.env`, a database, built assets. They may be why an old server does not start. At most 20.
    ///
    /// # Errors
    ///
    /// When a signal came.
    pub fn ignored_files_missing_there(&self, package_root: &Path) -> Result<Vec<PathBuf>> {
        let mut missing = Vec::new();
        for folder in BTreeSet::from([package_root, self.revision.toplevel.as_path()]) {
            let Some(there) = self.counterpart(folder) else { continue };
            let list = ["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"].map(OsStr::new);
            let said = self.git.call(folder, list)?;
            for path in said.paths().into_iter().filter(|path| may_matter(path, folder)) {
                let own = folder.join(&path);
                if !there.join(&path).exists() && !missing.contains(&own) {
                    missing.push(own);
                }
            }
        }
        // What is within a folder that is missing as a whole says nothing more.
        let folders = missing.clone();
        missing.retain(|path| !path.ancestors().skip(1).any(|above| folders.iter().any(|folder| folder == above)));
        missing.truncate(NAMED);
        Ok(missing)
    }
}

/// Whether a server may read an ignored file at its start: no build output, and nothing far down.
fn may_matter(path: &Path, folder: &Path) -> bool {
    let parts: Vec<&OsStr> = path
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name),
            _ => None,
        })
        .collect();
    let is_near = match parts[..] {
        [_] => true,
        [first, _] => first == "config" || first == ".config",
        _ => false,
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_rubbish = name == "node_modules" || name == ".DS_Store" || name.ends_with(".log") || name.ends_with(".swp");
    // Target directories carry it, and so do most caches.
    is_near && !is_rubbish && !folder.join(path).join("CACHEDIR.TAG").exists()
}

/// The paths that `.gitmodules` of a checkout names.
fn submodules(checkout: &Path, git: &Git) -> Result<Vec<PathBuf>> {
    let list = ["config", "-z", "--file", ".gitmodules", "--get-regexp", r"^submodule\..*\.path$"];
    // Each entry is the key, a line feed and the value.
    let said = git.call(checkout, list)?;
    let values = said.paths().into_iter().filter_map(|entry| {
        let entry = entry.into_os_string().into_string().ok()?;
        entry.split_once('\n').map(|(_, path)| PathBuf::from(path))
    });
    Ok(values.collect())
}
