//! Executables of revisions that were built before, so that an unchanged revision costs no build.
//!
//! `<results>/revisions/cache/<key>/` holds the executable and `record.json`. The key is a hash of everything known that decides
//! what is built; whatever is in doubt is not kept, because a stale executable would be measured without a word.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use cargo_metadata::Package;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::build::LockOrigin;
use crate::environment::{Environment, Linked};

/// Of the record; another one is built anew.
const SCHEMA: u32 = 1;

/// Executables that are kept.
const KEPT: usize = 8;

const EXECUTABLE: &str = "server";
const RECORD: &str = "record.json";

/// Variables that differ from terminal to terminal and decide no build. All others do, as far as we know: `env!` and build scripts
/// may read any.
const NOISE: [&str; 37] = [
    "CARGO_TERM_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLORTERM",
    "COLUMNS",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "GPG_TTY",
    "HISTFILE",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "LINES",
    "MAKEFLAGS",
    "MFLAGS",
    "NO_COLOR",
    "OLDPWD",
    "PROMPT_COMMAND",
    "PS1",
    "PWD",
    "RUST_BACKTRACE",
    "SHLVL",
    "SSH_AGENT_PID",
    "SSH_AUTH_SOCK",
    "SSH_CLIENT",
    "SSH_CONNECTION",
    "SSH_TTY",
    "STY",
    "TERM",
    "TERM_PROGRAM",
    "TERM_PROGRAM_VERSION",
    "TERM_SESSION_ID",
    "TMUX",
    "TMUX_PANE",
    "TTY",
    "WAYLAND_DISPLAY",
    "WINDOWID",
    "_",
];

/// Everything that decides what is built, as far as it is known.
#[derive(Clone, Debug, Default)]
pub(super) struct Key(Sha256);

impl Key {
    /// Adds one thing.
    pub(super) fn add(&mut self, name: &str, value: impl AsRef<OsStr>) {
        self.add_bytes(name, value.as_ref().as_encoded_bytes());
    }

    /// Adds one thing that may be no text.
    pub(super) fn add_bytes(&mut self, name: &str, value: &[u8]) {
        // Lengths in front, so that no two lists of parts are one.
        for part in [name.as_bytes(), value] {
            self.0.update((part.len() as u64).to_le_bytes());
            self.0.update(part);
        }
    }

    /// Adds the variables that a build may depend on.
    pub(super) fn add_environment(&mut self, environment: &Environment) {
        for (name, value) in environment.iter() {
            let text = name.to_string_lossy();
            if !NOISE.contains(&&*text) && !text.starts_with("XDG_SESSION_") && !text.starts_with("VSCODE_") {
                self.add_bytes("variable", name.as_encoded_bytes());
                self.add_bytes("value", value.as_encoded_bytes());
            }
        }
    }
}

/// The executables of earlier runs.
#[derive(Debug)]
pub(super) struct Cache {
    folder: PathBuf,
}

/// One of them.
#[derive(Debug)]
pub(super) struct Kept {
    /// The file.
    pub(super) executable: PathBuf,
    /// What is known of it.
    pub(super) record: Record,
}

/// What is known of a kept executable.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Record {
    schema: u32,
    /// Of the executable.
    sha256: String,
    /// The server's package in the revision.
    pub(super) package: Package,
    /// The folder of the scenarios' package there.
    pub(super) package_root: PathBuf,
    /// Where its lock file came from.
    pub(super) lock: LockOrigin,
    libraries: Vec<PathBuf>,
    script_variables: Vec<(String, String)>,
    out_dir: Option<PathBuf>,
}

impl Record {
    pub(super) fn new(package: &Package, package_root: &Path, lock: LockOrigin, linked: &Linked) -> Self {
        Self {
            schema: SCHEMA,
            sha256: String::new(),
            package: package.clone(),
            package_root: package_root.to_owned(),
            lock,
            libraries: linked.libraries.clone(),
            script_variables: linked.script_variables.clone(),
            out_dir: linked.out_dir.clone(),
        }
    }

    /// What the executable needs at run time.
    pub(super) fn linked(&self) -> Linked {
        Linked {
            libraries: self.libraries.clone(),
            script_variables: self.script_variables.clone(),
            out_dir: self.out_dir.clone(),
        }
    }
}

impl Cache {
    /// The one in a folder, which need not exist.
    pub(super) const fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The executable that was built from the same things, whole.
    pub(super) fn find(&self, key: &Key) -> Option<Kept> {
        let entry = self.entry(key);
        let record: Record = serde_json::from_reader(File::open(entry.join(RECORD)).ok()?).ok()?;
        let executable = entry.join(EXECUTABLE);
        if record.schema != SCHEMA || hash(&executable).ok()? != record.sha256 {
            return None;
        }
        // The newest stay, and this one is of use.
        let _ = File::open(entry.join(RECORD)).and_then(|file| file.set_modified(SystemTime::now()));
        Some(Kept { executable, record })
    }

    /// Keeps an executable, and forgets the oldest. One that cannot be kept is built again: that is all.
    pub(super) fn keep(&self, key: &Key, executable: &Path, record: Record) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        // Renamed once it is whole. What a killed run leaves behind is forgotten like an old one.
        let draft = self.folder.join(format!("draft-{:016x}", fastrand::u64(..)));
        let written = Self::write(&draft, executable, record).and_then(|()| {
            let entry = self.entry(key);
            let _ = fs::remove_dir_all(&entry);
            fs::rename(&draft, entry)
        });
        if written.is_err() {
            let _ = fs::remove_dir_all(&draft);
        }
        self.forget();
        written
    }

    fn write(draft: &Path, executable: &Path, mut record: Record) -> io::Result<()> {
        fs::create_dir(draft)?;
        let copy = draft.join(EXECUTABLE);
        fs::copy(executable, &copy)?;
        record.sha256 = hash(&copy)?;
        serde_json::to_writer(File::create(draft.join(RECORD))?, &record)?;
        Ok(())
    }

    fn forget(&self) {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut entries: Vec<(SystemTime, PathBuf)> = entries
            .map(|entry| {
                let used = fs::metadata(entry.path().join(RECORD)).or_else(|_| entry.metadata());
                (used.and_then(|used| used.modified()).unwrap_or(SystemTime::UNIX_EPOCH), entry.path())
            })
            .collect();
        entries.sort();
        for (_, entry) in entries.iter().rev().skip(KEPT) {
            let _ = fs::remove_dir_all(entry);
        }
    }

    fn entry(&self, key: &Key) -> PathBuf {
        self.folder.join(hex(&key.0.clone().finalize()))
    }
}

fn hash(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut block = vec![0; 256 * 1024];
    loop {
        match file.read(&mut block) {
            Ok(0) => return Ok(hex(&hash.finalize())),
            Ok(read) => hash.update(&block[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(parts: &[(&str, &str)]) -> Key {
        let mut key = Key::default();
        for (name, value) in parts {
            key.add(name, value);
        }
        key
    }

    fn record() -> Record {
        let package = serde_json::from_value(serde_json::json!({
            "name": "shop", "version": "0.1.0", "id": "path+file:///w#shop@0.1.0", "dependencies": [], "targets": [],
            "features": {}, "manifest_path": "/w/Cargo.toml",
        }))
        .expect("a package");
        let linked = Linked { script_variables: vec![("A".to_owned(), "b".to_owned())], ..Linked::default() };
        Record::new(&package, Path::new("/w"), LockOrigin::Revision, &linked)
    }

    #[test]
    fn executable_comes_back_whole_or_not_at_all() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::new(folder.path().join("cache"));
        let built = folder.path().join("shop");
        fs::write(&built, "code").expect("written");
        let one = key(&[("commit", "1")]);
        assert!(cache.find(&one).is_none());
        cache.keep(&one, &built, record()).expect("kept");
        assert!(cache.find(&key(&[("commit", "2")])).is_none());
        let kept = cache.find(&one).expect("found");
        assert_eq!(fs::read(&kept.executable).expect("readable"), b"code");
        assert_eq!(kept.record.linked(), record().linked());
        fs::write(&kept.executable, "c0de").expect("written");
        assert!(cache.find(&one).is_none());
    }

    #[test]
    fn newest_eight_are_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::new(folder.path().join("cache"));
        let built = folder.path().join("shop");
        fs::write(&built, "code").expect("written");
        for number in 0..12 {
            let key = key(&[("commit", &number.to_string())]);
            cache.keep(&key, &built, record()).expect("kept");
            let at = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000 + number);
            File::open(cache.entry(&key).join(RECORD)).and_then(|file| file.set_modified(at)).expect("dated");
        }
        let found = |number: u64| cache.find(&key(&[("commit", &number.to_string())])).is_some();
        assert_eq!((0..12).filter(|&number| found(number)).collect::<Vec<_>>(), [4, 5, 6, 7, 8, 9, 10, 11]);
    }

    #[test]
    fn parts_of_a_key_do_not_run_together_and_the_terminal_is_none() {
        let hash = |key: &Key| hex(&key.0.clone().finalize());
        assert_ne!(hash(&key(&[("a", "bc")])), hash(&key(&[("ab", "c")])));
        let with = |variables: &[(&str, &str)]| {
            let mut key = Key::default();
            key.add_environment(&variables.iter().map(|(name, value)| (name.into(), value.into())).collect());
            hash(&key)
        };
        assert_eq!(with(&[("SHLVL", "1"), ("A", "b")]), with(&[("SHLVL", "2"), ("A", "b")]));
        assert_ne!(with(&[("RUSTFLAGS", "-g")]), with(&[]));
    }
}
