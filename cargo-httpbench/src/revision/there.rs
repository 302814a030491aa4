//! The candidate's cargo, called for the worktree.
//!
//! Paths: cargo names a package of a workspace by its place in it, so both builds compile under the same names, and only paths that
//! the compiler writes into the executable differ. A script before the compiler (`RUSTC_WRAPPER`) maps the worktree's to those of
//! the user's checkout. Unlike flags, it takes no part in the names of build folders, and the candidate's own build stays what the
//! user ships: equal sources give equal executables, byte by byte, unless one asks for its folder by `env!`.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::checkout::Checkout;
use super::configuration::{Configuration, Wrapper, from, home};
use super::git::without_redirection;
use super::toolchain::Toolchain;
use crate::cargo::{Cargo, CargoOptions, LockFlag};

impl Checkout {
    /// The candidate's cargo, for the worktree.
    pub(super) fn cargo_there(
        &self,
        cargo: &Cargo,
        toolchain: &Toolchain,
        configuration: &Configuration,
        manifest: &Path,
    ) -> Cargo {
        let target = self.slot.target();
        let mut environment = without_redirection(&cargo.environment);
        // They would take the build out of its own folder, and into that of the candidate.
        for name in ["CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR", "CARGO_BUILD_BUILD_DIR", "CARGO_BUILD_ARTIFACT_DIR"]
        {
            environment.remove(name);
        }
        if let Some(pin) = &toolchain.pin {
            environment.set("RUSTUP_TOOLCHAIN", pin);
        }
        // Cargo is called elsewhere, so what is relative to where the user stands must not be.
        for name in ["RUSTC", "RUSTC_WORKSPACE_WRAPPER"] {
            if let Some(program) = environment.get(name).filter(|program| !program.is_empty()) {
                let program = from(&cargo.current_dir, program);
                environment.set(name, program);
            }
        }
        if environment.get("CARGO_HOME").is_some_and(|home| !home.is_empty())
            && let Some(home) = home(cargo)
        {
            environment.set("CARGO_HOME", home);
        }
        if let Some(script) = self.remapping(cargo, configuration) {
            environment.set("RUSTC_WRAPPER", script);
        }
        let mut config: Vec<String> =
            configuration.named.iter().filter_map(|file| file.to_str().map(str::to_owned)).collect();
        config.extend(cargo.options.config.iter().map(|value| {
            let file = cargo.absolute(Path::new(value));
            file.to_str().filter(|_| file.is_file()).unwrap_or(value).to_owned()
        }));
        if let Some(target) = target.to_str() {
            // Where cargo knows such a folder, it is not that of `--target-dir`.
            config.push(format!("build.build-dir={}", toml::Value::from(target)));
        }
        let options = CargoOptions {
            target_dir: Some(target),
            manifest_path: Some(manifest.to_owned()),
            target: cargo.options.target.as_ref().map(|target| {
                let file = cargo.absolute(Path::new(target));
                file.to_str().filter(|_| file.is_file()).unwrap_or(target).to_owned()
            }),
            lock: without_locked(&cargo.options.lock),
            config,
            ..cargo.options.clone()
        };
        Cargo {
            program: from(&cargo.current_dir, cargo.program.as_os_str()).into(),
            current_dir: configuration.current_dir.clone(),
            environment,
            options,
        }
    }

    /// Writes the script that stands before the compiler. `None`: paths stay as they are, and equal sources look different.
    fn remapping(&self, cargo: &Cargo, configuration: &Configuration) -> Option<PathBuf> {
        let users = match configuration.wrapper(cargo) {
            Wrapper::Absent => None,
            Wrapper::Program(program) => Some(program),
            Wrapper::Hidden => return None,
        };
        let here = &self.revision.toplevel;
        let target = self.results.parent()?;
        // The compiler takes what stands after the last `=` for the new path.
        if [here.as_path(), target].iter().any(|path| path.as_os_str().as_bytes().contains(&b'=')) {
            return None;
        }
        let mut script = b"#!/bin/sh\nexec".to_vec();
        if let Some(users) = users {
            script.push(b' ');
            script.extend(quoted(users.as_bytes()));
        }
        script.extend(b" \"$@\"");
        // The last one that fits is applied, and the worktree lies in the target directory.
        for (from, to) in [(self.slot.target(), target), (self.root(), here)] {
            let mut word = OsString::from("--remap-path-prefix=");
            word.push(from);
            word.push("=");
            word.push(to);
            script.push(b' ');
            script.extend(quoted(&word.into_vec()));
        }
        script.push(b'\n');
        let path = self.slot.path().join("rustc");
        let written =
            fs::write(&path, script).and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o755)));
        written.ok().map(|()| path)
    }
}

fn quoted(word: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'\''];
    for &byte in word {
        if byte == b'\'' {
            quoted.extend(b"'\\''");
        } else {
            quoted.push(byte);
        }
    }
    quoted.push(b'\'');
    quoted
}

/// Cargo must be able to adapt a lock file that it is given; `--locked` is added where the revision has its own.
fn without_locked(flags: &[LockFlag]) -> Vec<LockFlag> {
    flags
        .iter()
        .filter_map(|flag| match flag {
            LockFlag::Locked => None,
            LockFlag::Frozen | LockFlag::Offline => Some(LockFlag::Offline),
        })
        .collect()
}
