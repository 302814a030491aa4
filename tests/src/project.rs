//! A test's own copy of a fixture project.
//!
//! Invariant: what cargo finds in the shared target directory is either built from these very files or counts as stale. See
//! [`Project::stamp`].

use std::collections::BTreeSet;
use std::collections::hash_map::DefaultHasher;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tempfile::TempDir;

use crate::command::Httpbench;
use crate::{turns, workspace};

/// What the copy's path looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Folder {
    /// Letters only.
    Simple,
    /// With a space and a letter beyond ASCII.
    Spaced,
}

/// A copy of a fixture project, which goes away when it is dropped.
#[derive(Debug)]
pub struct Project {
    name: String,
    root: PathBuf,
    temporary: PathBuf,
    copied: BTreeSet<PathBuf>,
    _base: TempDir,
}

impl Project {
    /// Copies `tests/fixtures/NAME`.
    #[must_use]
    pub fn copy(name: &str) -> Self {
        Self::copy_into(name, Folder::Simple)
    }

    /// Copies `tests/fixtures/NAME` to a path that looks as told.
    #[must_use]
    pub fn copy_into(name: &str, folder: Folder) -> Self {
        let base = tempfile::Builder::new().prefix("httpbench-test-").tempdir().expect("a folder can be created");
        // macOS and some CI systems have a temporary folder behind a link; cargo prints real paths.
        let real = base.path().canonicalize().expect("the new folder is there");
        let root = real.join(match folder {
            Folder::Simple => name.to_owned(),
            Folder::Spaced => format!("{name} für später"),
        });
        let temporary = real.join("tmp");
        fs::create_dir(&temporary).expect("a folder can be created");
        copy_folder(&fixtures().join(name), &root);
        fs::copy(workspace::root().join("Cargo.lock"), root.join("Cargo.lock")).expect("the lock file can be copied");
        let copied = files_below(&root).into_iter().collect();
        Self { name: name.to_owned(), root, temporary, copied, _base: base }
    }

    /// The project's folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder in which everything that the project's runs call temporary is put.
    #[must_use]
    pub fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// A path beside the project, for marks that servers leave.
    #[must_use]
    pub fn beside(&self, name: &str) -> PathBuf {
        self.root.with_file_name(name)
    }

    /// Writes a file of the project.
    pub fn write(&self, path: &str, text: &str) -> &Self {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().expect("a file lies in a folder")).expect("a folder can be created");
        fs::write(&path, text).unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
        self
    }

    /// Replaces a text that must be in a file of the project.
    pub fn edit(&self, path: &str, from: &str, to: &str) -> &Self {
        let text =
            fs::read_to_string(self.root.join(path)).unwrap_or_else(|error| panic!("cannot read {path}: {error}"));
        assert!(text.contains(from), "{path} does not contain {from:?}");
        self.write(path, &text.replacen(from, to, 1))
    }

    /// A run of `cargo httpbench` in the project's folder.
    #[must_use]
    pub fn httpbench(&self) -> Httpbench<'_> {
        Httpbench::new(self)
    }

    /// Runs cargo itself to its end, in the shared target directory.
    pub fn cargo<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Output {
        let _turn = turns::take();
        self.stamp();
        workspace::cargo_call()
            .args(arguments)
            .current_dir(&self.root)
            .env("CARGO_TARGET_DIR", workspace::fixtures_target())
            .env("TMPDIR", &self.temporary)
            .env_remove("CARGO_BUILD_TARGET_DIR")
            .output()
            .expect("cargo can be run")
    }

    /// Makes the project a git repository on branch `main`, with everything in its first commit.
    ///
    /// The lock file is brought up to date before, because revisions are built with `--locked`.
    pub fn init_repository(&self) -> &Self {
        let output = self.cargo(["metadata", "--offline", "--quiet", "--format-version", "1"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        self.git(&["init", "--quiet", "--initial-branch=main"]);
        self.commit("first");
        self
    }

    /// Commits everything.
    pub fn commit(&self, message: &str) -> &Self {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", message]);
        self
    }

    /// Runs git, untouched by the settings of whoever runs the tests, and gives its standard output.
    #[track_caller]
    pub fn git(&self, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .args(["-c", "user.name=Tester", "-c", "user.email=tester@localhost", "-c", "commit.gpgsign=false"])
            .args(arguments)
            .current_dir(&self.root)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .expect("git can be run");
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("git answers in text")
    }

    /// Files that runs have left in the project's folder: neither copied from the fixture nor in a target directory.
    #[must_use]
    pub fn new_files(&self) -> Vec<PathBuf> {
        files_below(&self.root)
            .into_iter()
            .filter(|path| !self.copied.contains(path))
            .filter(|path| !path.components().any(|part| part.as_os_str() == "target"))
            .collect()
    }

    /// What runs have left in the temporary folder.
    #[must_use]
    pub fn temporary_files(&self) -> Vec<PathBuf> {
        fs::read_dir(&self.temporary)
            .map_or_else(|_| Vec::new(), |all| all.flatten().map(|entry| entry.path()).collect())
    }

    /// Gives all files the time at which this content was first built in the shared target directory.
    ///
    /// Copies of a fixture share their artifacts there, which saves minutes; but cargo believes in modification times, and a
    /// copy with another content may be older than an artifact. So the content's hash is kept beside the artifacts: the same
    /// content gets the same time, another one gets the present. Must be called by the one whose turn it is.
    pub(crate) fn stamp(&self) {
        let mut hasher = DefaultHasher::new();
        let mut sources = files_below(&self.root);
        sources.retain(|path| !path.starts_with("target") && is_source(path));
        for path in &sources {
            path.hash(&mut hasher);
            fs::read(self.root.join(path)).unwrap_or_default().hash(&mut hasher);
        }
        let content = format!("{:016x}", hasher.finish());
        let stamps = workspace::fixtures_target().join("stamps");
        fs::create_dir_all(&stamps).expect("a folder can be created");
        let stamp = stamps.join(&self.name);
        let known = fs::read_to_string(&stamp).unwrap_or_default();
        let since = match known.split_once(' ') {
            Some((hash, since)) if hash == content => since.trim().parse().expect("the stamp holds milliseconds"),
            _ => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970").as_millis();
                let now = u64::try_from(now).expect("milliseconds since 1970 fit");
                fs::write(&stamp, format!("{content} {now}\n")).expect("the stamp can be written");
                now
            }
        };
        for path in &sources {
            let file = File::options().write(true).open(self.root.join(path)).expect("a copied file can be opened");
            file.set_modified(UNIX_EPOCH + Duration::from_millis(since)).expect("a file's time can be set");
        }
    }
}

/// What cargo looks at to tell whether an artifact is stale.
fn is_source(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "rs") || path.ends_with("Cargo.toml")
}

fn fixtures() -> PathBuf {
    workspace::root().join("tests/fixtures")
}

/// Copies a folder; dependencies by path lead to the originals afterwards.
fn copy_folder(from: &Path, to: &Path) {
    let entries = fs::read_dir(from).unwrap_or_else(|error| panic!("cannot read {}: {error}", from.display()));
    fs::create_dir_all(to).expect("a folder can be created");
    for entry in entries.flatten() {
        let name = entry.file_name();
        if entry.path().is_dir() {
            if name != "target" {
                copy_folder(&entry.path(), &to.join(name));
            }
        } else if name == "Cargo.toml" {
            let text = fs::read_to_string(entry.path()).expect("a manifest is text");
            fs::write(to.join(name), with_real_paths(&text)).expect("a manifest can be written");
        } else if name != "Cargo.lock" {
            fs::copy(entry.path(), to.join(name)).expect("a file can be copied");
        }
    }
}

/// `path = "../../../httpbench-core"` works where the fixture stands, but not where its copy does.
fn with_real_paths(manifest: &str) -> String {
    let real = [
        ("httpbench-core", workspace::root().join("httpbench-core")),
        ("fixture-server", fixtures().join("fixture-server")),
    ];
    let mut lines = Vec::new();
    for line in manifest.lines() {
        let found = real.iter().find(|(name, _)| line.starts_with(&format!("{name} = {{ path = \"../")));
        lines.push(match found {
            // A TOML literal string: a path may hold a backslash or a quotation mark, but hardly an apostrophe.
            Some((name, path)) => format!("{name} = {{ path = '{}' }}", path.display()),
            None => line.to_owned(),
        });
    }
    lines.join("\n") + "\n"
}

/// All files, relative to the folder, in a fixed order.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    fn walk(root: &Path, folder: &Path, files: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                walk(root, &path, files);
            } else {
                files.push(path.strip_prefix(root).expect("it was found below").to_owned());
            }
        }
    }
    let mut files = Vec::new();
    walk(folder, folder, &mut files);
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copy_builds_where_it_stands() {
        let project = Project::copy_into("workspace", Folder::Spaced);
        let manifest = fs::read_to_string(project.root().join("alpha/Cargo.toml")).unwrap();
        assert!(!manifest.contains("\"../"), "{manifest}");
        let status = std::process::Command::new(workspace::cargo())
            .args(["metadata", "--no-deps", "--format-version", "1"])
            .current_dir(project.root())
            .output()
            .unwrap()
            .status;
        assert!(status.success());
    }

    #[test]
    fn only_what_a_run_left_is_new() {
        let project = Project::copy("plain");
        assert_eq!(project.new_files(), Vec::<PathBuf>::new());
        project.write("target/x", "").write("todo.db", "");
        assert_eq!(project.new_files(), [PathBuf::from("todo.db")]);
    }

    #[test]
    fn changed_content_gets_a_new_time_and_the_same_content_keeps_it() {
        let _turn = turns::take();
        let time = |project: &Project| fs::metadata(project.root().join("src/main.rs")).unwrap().modified().unwrap();
        let first = Project::copy("hard-coded-port");
        first.stamp();
        let second = Project::copy("hard-coded-port");
        second.stamp();
        assert_eq!(time(&first), time(&second));
        std::thread::sleep(Duration::from_millis(5));
        second.write("src/main.rs", "fn main() {}");
        second.stamp();
        assert!(time(&second) > time(&first));
        first.stamp();
        assert!(time(&first) >= time(&second));
    }
}
