//! The `[env]` table of cargo's configuration, which `cargo run` sets for the program that it runs.
//!
//! Cargo has no stable command that prints it, so its files are read here: `.cargo/config.toml` in the current directory and above,
//! then in `CARGO_HOME`, with `--config` before all of them. What cargo itself refuses has already failed in `cargo metadata`, so
//! whatever is not understood is passed over.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use super::Cargo;
use crate::environment::Environment;

/// Adds the variables of `[env]` to `environment`, but for those that are set already without `force`.
pub(super) fn add(cargo: &Cargo, environment: &mut Environment) {
    let mut decided = BTreeSet::new();
    // `KEY=VALUE` is TOML itself; anything else is the path of a file.
    let (files, values): (Vec<&String>, Vec<&String>) =
        cargo.options.config.iter().partition(|argument| cargo.absolute(Path::new(argument)).is_file());
    // One variable may be told in several arguments: `env.A.value='x'` and `env.A.relative=true`.
    let together = values.iter().map(|value| value.as_str()).collect::<Vec<_>>().join("\n");
    if DeTable::parse(&together).is_ok() {
        add_file(&together, &cargo.current_dir, &mut decided, environment);
    } else {
        for value in values.iter().rev() {
            add_file(value, &cargo.current_dir, &mut decided, environment);
        }
    }
    for file in files.iter().rev() {
        let path = cargo.absolute(Path::new(file));
        if let Ok(text) = fs::read_to_string(&path) {
            // As for the files that cargo finds itself, relative paths begin above the file's folder.
            add_file(&text, path.ancestors().nth(2).unwrap_or(&path), &mut decided, environment);
        }
    }
    for folder in folders(cargo) {
        // The name without extension is the older one, and wins where both exist.
        let text =
            fs::read_to_string(folder.join("config")).or_else(|_| fs::read_to_string(folder.join("config.toml")));
        if let Ok(text) = text {
            add_file(&text, folder.parent().unwrap_or(&folder), &mut decided, environment);
        }
    }
}

/// The folders that may hold a configuration file, the one that wins first.
fn folders(cargo: &Cargo) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = cargo.current_dir.ancestors().map(|folder| folder.join(".cargo")).collect();
    let home = cargo
        .environment
        .get("CARGO_HOME")
        .map(|home| cargo.absolute(Path::new(home)))
        .or_else(|| cargo.environment.get("HOME").map(|home| Path::new(home).join(".cargo")));
    folders.extend(home.filter(|home| !folders.contains(home)));
    folders
}

/// Adds what one file says of variables that no earlier one has decided. `base` is where its relative paths begin.
fn add_file(text: &str, base: &Path, decided: &mut BTreeSet<String>, environment: &mut Environment) {
    let Ok(root) = DeTable::parse(text) else { return };
    let Some(table) = root.get_ref().get("env").and_then(|env| env.get_ref().as_table()) else { return };
    for (name, value) in table {
        let name = name.get_ref().as_ref();
        if !decided.insert(name.to_owned()) {
            continue;
        }
        let Some(variable) = Variable::read(value.get_ref()) else { continue };
        if environment.get(name).is_some() && variable.set == Set::IfUnset {
            continue;
        }
        match variable.kind {
            Kind::Text => environment.set(name, variable.value),
            Kind::RelativePath => environment.set(name, base.join(variable.value)),
        }
    }
}

struct Variable<'v> {
    value: &'v str,
    set: Set,
    kind: Kind,
}

#[derive(PartialEq)]
enum Set {
    IfUnset,
    Always,
}

enum Kind {
    Text,
    RelativePath,
}

impl<'v> Variable<'v> {
    fn read(value: &'v DeValue<'_>) -> Option<Self> {
        if let Some(value) = value.as_str() {
            return Some(Self { value, set: Set::IfUnset, kind: Kind::Text });
        }
        let table = value.as_table()?;
        let is = |key: &str| table.get(key).and_then(|value| value.get_ref().as_bool()).unwrap_or(false);
        Some(Self {
            value: table.get("value")?.get_ref().as_str()?,
            set: if is("force") { Set::Always } else { Set::IfUnset },
            kind: if is("relative") { Kind::RelativePath } else { Kind::Text },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cargo::CargoOptions;

    #[test]
    fn nearer_files_win_and_existing_variables_stay_unless_forced() {
        let dir = tempfile::tempdir().expect("a folder");
        let inner = dir.path().join("inner");
        for (folder, text) in [
            (
                dir.path(),
                "[env]\nA = \"outer\"\nB = \"outer\"\nSET = \"new\"\nFORCED = { value = \"new\", force = true }\n",
            ),
            (&inner, "[env]\nA = \"inner\"\nROOT = { value = \"data\", relative = true }\n"),
        ] {
            fs::create_dir_all(folder.join(".cargo")).expect("a folder");
            fs::write(folder.join(".cargo/config.toml"), text).expect("written");
        }
        let own: Environment =
            [("SET", "old"), ("FORCED", "old")].into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        let options = CargoOptions { config: vec!["env.C='flag'".to_owned()], ..CargoOptions::default() };
        let mut environment = own.clone();
        add(&Cargo::new(&inner, own, options), &mut environment);
        let value = |name: &str| environment.get(name).and_then(|value| value.to_str().map(str::to_owned));
        assert_eq!(value("A").as_deref(), Some("inner"));
        assert_eq!(value("B").as_deref(), Some("outer"));
        assert_eq!(value("C").as_deref(), Some("flag"));
        assert_eq!(value("SET").as_deref(), Some("old"));
        assert_eq!(value("FORCED").as_deref(), Some("new"));
        assert_eq!(value("ROOT"), inner.join("data").to_str().map(str::to_owned));
    }
}
