//! How a server was set up, without its secrets: what a baseline keeps of arguments, environment and copied files.
//!
//! Baselines travel through caches and artifacts. So a variable that the user configured is kept as a hash unless `show-env` lists
//! it, an inherited one by its name only, `setup` and `teardown` as hashes. Invariant: no value that could be a secret is in here;
//! a short configured value can still be guessed from its hash by trying, which is why nothing that was *inherited* is hashed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::digest::Sha256Hex;
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::server::ServerSpec;

/// Folders within folders that are followed, as `server.copy` does; more is a link that leads in circles.
const DEPTH: u32 = 64;

/// What a server was started with, before `{port}`, `{host}` and `{dir}` were filled in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetUp {
    /// As the user wrote them.
    pub args: Vec<String>,
    /// Variables that the user configured.
    pub env: BTreeMap<String, EnvValue>,
    /// Names of everything that the server inherited.
    pub inherited: BTreeSet<String>,
    /// Every file that `copy` put into the private folder, by its path there.
    pub copied: BTreeMap<String, Sha256Hex>,
    /// As the user wrote it.
    pub working_dir: Option<String>,
    /// The command before every start.
    pub setup: Option<Sha256Hex>,
    /// The command after every stop.
    pub teardown: Option<Sha256Hex>,
}

/// What is kept of a configured variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EnvValue {
    /// The value itself: `show-env` lists the variable.
    Value(String),
    /// The hash of name and value.
    Sha256(Sha256Hex),
}

impl EnvValue {
    /// The name is part of the hash, so that equal values of two variables do not show as such.
    fn hashed(name: &str, value: &str) -> Sha256Hex {
        Sha256Hex::of_texts(["httpbench env", name, value])
    }

    /// The hash, whichever way the value is kept.
    fn digest(&self, name: &str) -> Sha256Hex {
        match self {
            Self::Value(value) => Self::hashed(name, value),
            Self::Sha256(digest) => digest.clone(),
        }
    }
}

impl SetUp {
    /// What a baseline keeps of this server's set-up.
    ///
    /// # Errors
    ///
    /// When a file that `server.copy` names cannot be read: exit code 96.
    pub fn of(spec: &ServerSpec) -> Result<Self> {
        let settings = &spec.settings;
        let env = settings.env.iter().map(|(name, value)| {
            let kept = if settings.show_env.iter().any(|shown| shown == name) {
                EnvValue::Value(value.clone())
            } else {
                EnvValue::Sha256(EnvValue::hashed(name, value))
            };
            (name.clone(), kept)
        });
        let command = |command: &Option<Vec<String>>| {
            command.as_ref().map(|command| Sha256Hex::of_texts(command.iter().map(String::as_str)))
        };
        Ok(Self {
            args: settings.args.clone(),
            env: env.collect(),
            inherited: spec.base_env.keys().map(|name| name.to_string_lossy().into_owned()).collect(),
            copied: copied(&settings.copy, &spec.package_root)?,
            working_dir: settings.working_dir.as_ref().map(|dir| dir.display().to_string()),
            setup: command(&settings.setup),
            teardown: command(&settings.teardown),
        })
    }

    /// What differs between two set-ups, in words; empty where they are equal.
    ///
    /// Inherited variables are not compared: their values are not known, and both arms inherit the same ones today.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let mut differences = Vec::new();
        if self.args != other.args {
            differences.push("the arguments differ".to_owned());
        }
        let names: BTreeSet<&String> = self.env.keys().chain(other.env.keys()).collect();
        let digest = |set_up: &Self, name: &String| set_up.env.get(name).map(|value| value.digest(name));
        differences.extend(
            names
                .into_iter()
                .filter(|name| digest(self, name) != digest(other, name))
                .map(|name| format!("the configured variable `{name}` differs")),
        );
        let paths: BTreeSet<&String> = self.copied.keys().chain(other.copied.keys()).collect();
        differences.extend(
            paths
                .into_iter()
                .filter(|path| self.copied.get(*path) != other.copied.get(*path))
                .map(|path| format!("the copied file `{path}` differs")),
        );
        for (differs, what) in [
            (self.working_dir != other.working_dir, "the working directory differs"),
            (self.setup != other.setup, "`setup` differs"),
            (self.teardown != other.teardown, "`teardown` differs"),
        ] {
            if differs {
                differences.push(what.to_owned());
            }
        }
        differences
    }
}

fn copied(paths: &[PathBuf], package_root: &Path) -> Result<BTreeMap<String, Sha256Hex>> {
    let mut files = BTreeMap::new();
    for path in paths {
        add(&package_root.join(path), path, DEPTH, &mut files).map_err(|error| {
            Error::new(ExitCode::Configuration, format!("cannot read `{}`, which `server.copy` names", path.display()))
                .caused_by(error)
                .help("paths in `server.copy` are relative to the package; create the file or take it out of the list")
        })?;
    }
    Ok(files)
}

fn add(from: &Path, relative: &Path, depth: u32, files: &mut BTreeMap<String, Sha256Hex>) -> io::Result<()> {
    if !fs::metadata(from)?.is_dir() {
        // `./x` and `x` are one place; the components of a path know.
        let place = relative.components().filter(|part| part.as_os_str() != ".").collect::<PathBuf>();
        files.insert(place.to_string_lossy().into_owned(), Sha256Hex::of_file(from)?);
        return Ok(());
    }
    let Some(depth) = depth.checked_sub(1) else {
        return Err(io::Error::other("the folders are too deep, or a link leads in circles"));
    };
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        add(&entry.path(), &relative.join(entry.file_name()), depth, files)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::baseline::sample;

    fn set_up(spec: &ServerSpec) -> SetUp {
        SetUp::of(spec).expect("everything is readable")
    }

    #[test]
    fn secrets_are_nowhere_in_what_is_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut spec = sample::server_spec(folder.path());
        spec.settings.env.insert("API_TOKEN".to_owned(), "configured-secret".to_owned());
        spec.settings.env.insert("RUST_LOG".to_owned(), "warn,shop=info".to_owned());
        spec.settings.show_env = vec!["RUST_LOG".to_owned()];
        spec.settings.setup = Some(vec!["sh".to_owned(), "-c".to_owned(), "PGPASSWORD=setup-secret psql".to_owned()]);
        spec.base_env.insert("DATABASE_URL".into(), "postgres://u:inherited-secret@db/shop".into());
        let text = serde_json::to_string(&set_up(&spec)).expect("serialises");
        for secret in ["configured-secret", "inherited-secret", "setup-secret", "postgres:"] {
            assert!(!text.contains(secret), "{text}");
        }
        for kept in ["API_TOKEN", "DATABASE_URL", "warn,shop=info"] {
            assert!(text.contains(kept), "{text}");
        }
    }

    #[test]
    fn each_part_that_differs_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("data")).expect("a folder");
        fs::write(folder.path().join("data/a.txt"), "1").expect("written");
        let mut spec = sample::server_spec(folder.path());
        spec.settings.copy = vec!["./data".into()];
        spec.settings.env.insert("MODE".to_owned(), "a".to_owned());
        let before = set_up(&spec);
        assert_eq!(before.copied.keys().collect::<Vec<_>>(), ["data/a.txt"]);
        assert_eq!(before.differences(&set_up(&spec)), Vec::<String>::new());

        spec.settings.args.push("--more".to_owned());
        spec.settings.env.insert("MODE".to_owned(), "b".to_owned());
        spec.settings.env.insert("NEW".to_owned(), String::new());
        spec.settings.working_dir = Some("run".into());
        spec.settings.setup = Some(vec!["true".to_owned()]);
        spec.settings.teardown = Some(vec!["true".to_owned()]);
        fs::write(folder.path().join("data/a.txt"), "2").expect("written");
        let after = set_up(&spec);
        let differences = before.differences(&after);
        assert_eq!(
            differences,
            [
                "the arguments differ",
                "the configured variable `MODE` differs",
                "the configured variable `NEW` differs",
                "the copied file `data/a.txt` differs",
                "the working directory differs",
                "`setup` differs",
                "`teardown` differs",
            ]
        );
        assert_eq!(after.differences(&before), differences);
    }

    #[test]
    fn variable_that_is_shown_in_one_and_hashed_in_the_other_is_compared_all_the_same() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut spec = sample::server_spec(folder.path());
        spec.settings.env.insert("RUST_LOG".to_owned(), "warn".to_owned());
        let hashed = set_up(&spec);
        spec.settings.show_env = vec!["RUST_LOG".to_owned()];
        assert_eq!(hashed.differences(&set_up(&spec)), Vec::<String>::new());
        spec.settings.env.insert("RUST_LOG".to_owned(), "info".to_owned());
        assert_eq!(hashed.differences(&set_up(&spec)).len(), 1);
    }

    #[test]
    fn inherited_variables_do_not_make_a_difference() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut spec = sample::server_spec(folder.path());
        let before = set_up(&spec);
        spec.base_env.insert("SSH_AUTH_SOCK".into(), "/tmp/x".into());
        assert_eq!(before.differences(&set_up(&spec)), Vec::<String>::new());
    }
}
