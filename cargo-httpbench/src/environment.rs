//! What a child process inherits: the user's environment, without what cargo set for *us*, with what `cargo run` sets for a
//! package's programs.
//!
//! Pure functions. `PORT`, `HOST`, `HTTPBENCH_DIR` and the configured variables are added where a server is started.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use cargo_metadata::Package;

use crate::config;

/// The variable in which the dynamic linker is told where libraries are.
const LIBRARY_PATH: &str = if cfg!(target_os = "macos") { "DYLD_FALLBACK_LIBRARY_PATH" } else { "LD_LIBRARY_PATH" };

/// Variables that cargo sets for the program that it runs, beside `CARGO_PKG_*` and `CARGO_BIN_EXE_*`.
const SET_BY_CARGO: [&str; 8] = [
    "CARGO_MANIFEST_DIR",
    "CARGO_MANIFEST_PATH",
    "CARGO_MANIFEST_LINKS",
    "CARGO_BIN_NAME",
    "CARGO_CRATE_NAME",
    "CARGO_PRIMARY_PACKAGE",
    "CARGO_TARGET_TMPDIR",
    "OUT_DIR",
];

/// The variables of a process, in the order of their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// This process's own variables.
    #[must_use]
    pub fn inherited() -> Self {
        env::vars_os().collect()
    }

    /// The value of a variable.
    #[must_use]
    pub fn get(&self, name: impl AsRef<OsStr>) -> Option<&OsStr> {
        self.0.get(name.as_ref()).map(OsString::as_os_str)
    }

    /// Sets a variable, whatever it was.
    pub fn set(&mut self, name: impl Into<OsString>, value: impl Into<OsString>) {
        self.0.insert(name.into(), value.into());
    }

    /// Removes a variable.
    pub fn remove(&mut self, name: impl AsRef<OsStr>) {
        self.0.remove(name.as_ref());
    }

    /// Every name with its value.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.0.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }
}

impl From<Environment> for BTreeMap<OsString, OsString> {
    fn from(environment: Environment) -> Self {
        environment.0
    }
}

impl FromIterator<(OsString, OsString)> for Environment {
    fn from_iter<I: IntoIterator<Item = (OsString, OsString)>>(variables: I) -> Self {
        Self(variables.into_iter().collect())
    }
}

/// What the last build says that an executable needs at run time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Linked {
    /// Folders of shared libraries, in the order in which they are searched.
    pub libraries: Vec<PathBuf>,
    /// What the package's build script set by `cargo::rustc-env`.
    pub script_variables: Vec<(String, String)>,
    /// The folder of the package's build script.
    pub out_dir: Option<PathBuf>,
}

/// The user's environment: what this process inherited, without what cargo, rustup or an outer run of ours put there for it.
///
/// `executable` is this process's own, beside which cargo's alias (`cargo run`) makes the linker look for libraries.
#[must_use]
pub fn users_own(inherited: &Environment, executable: Option<&Path>) -> Environment {
    // Only `cargo run` sets a manifest folder; without it these names are the user's own.
    let by_cargo_run = inherited.get("CARGO_MANIFEST_DIR").is_some();
    let mut own: Environment = inherited
        .0
        .iter()
        .filter(|(name, _)| {
            let name = name.to_string_lossy();
            let from_cargo = by_cargo_run
                && (SET_BY_CARGO.contains(&&*name)
                    || name.starts_with("CARGO_PKG_")
                    || name.starts_with("CARGO_BIN_EXE_"));
            !from_cargo && name != "RUST_RECURSION_COUNT" && !config::is_ours(&name)
        })
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    if let Some(paths) = inherited.get(LIBRARY_PATH) {
        let ours = our_libraries(inherited, executable.filter(|_| by_cargo_run));
        let kept: Vec<PathBuf> = env::split_paths(paths)
            .filter(|path| !is_toolchain(path) && !ours.iter().any(|ours| path.starts_with(ours)))
            .collect();
        set_library_path(&mut own, kept);
    }
    own
}

/// Whether a folder is one of `<sysroot>/lib/rustlib/<target>/lib`, which cargo puts on the path of everything that it runs.
fn is_toolchain(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "rustlib")
}

/// Folders below which an entry of the library path was put by cargo or rustup.
fn our_libraries(inherited: &Environment, executable: Option<&Path>) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = executable.and_then(Path::parent).map(Path::to_owned).into_iter().collect();
    let rustup = inherited
        .get("RUSTUP_HOME")
        .map(PathBuf::from)
        .or_else(|| inherited.get("HOME").map(|home| Path::new(home).join(".rustup")));
    folders.extend(rustup.filter(|path| path.is_absolute()).map(|path| path.join("toolchains")));
    folders
}

/// The environment that `cargo run` or `cargo bench` would give to an executable of `package`, made of the user's own.
#[must_use]
pub fn of_package(own: &Environment, cargo: &Path, package: &Package, linked: &Linked) -> Environment {
    let mut server = own.clone();
    for (name, value) in &linked.script_variables {
        server.set(name, value);
    }
    if let Some(out_dir) = &linked.out_dir {
        server.set("OUT_DIR", out_dir);
    }
    let version = &package.version;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    server.set("CARGO", cargo);
    server.set("CARGO_MANIFEST_PATH", package.manifest_path.as_str());
    server.set("CARGO_MANIFEST_DIR", package.manifest_path.parent().map_or("", |dir| dir.as_str()));
    server.set("CARGO_PKG_NAME", package.name.as_str());
    server.set("CARGO_PKG_VERSION", version.to_string());
    server.set("CARGO_PKG_VERSION_MAJOR", version.major.to_string());
    server.set("CARGO_PKG_VERSION_MINOR", version.minor.to_string());
    server.set("CARGO_PKG_VERSION_PATCH", version.patch.to_string());
    server.set("CARGO_PKG_VERSION_PRE", version.pre.as_str());
    server.set("CARGO_PKG_AUTHORS", package.authors.join(":"));
    server.set("CARGO_PKG_DESCRIPTION", text(&package.description));
    server.set("CARGO_PKG_HOMEPAGE", text(&package.homepage));
    server.set("CARGO_PKG_REPOSITORY", text(&package.repository));
    server.set("CARGO_PKG_LICENSE", text(&package.license));
    server.set("CARGO_PKG_LICENSE_FILE", package.license_file.as_ref().map_or("", |path| path.as_str()));
    server.set("CARGO_PKG_README", package.readme.as_ref().map_or("", |path| path.as_str()));
    // Cargo hands on what the manifest says, but `cargo metadata` is read as three numbers. Two are what people write.
    let rust_version = package.rust_version.as_ref().map(|version| match version.patch {
        0 => format!("{}.{}", version.major, version.minor),
        _ => version.to_string(),
    });
    server.set("CARGO_PKG_RUST_VERSION", text(&rust_version));
    if !linked.libraries.is_empty() {
        let own_paths =
            own.get(LIBRARY_PATH).map(|paths| env::split_paths(paths).collect::<Vec<_>>()).unwrap_or_default();
        set_library_path(&mut server, linked.libraries.iter().cloned().chain(own_paths).collect());
    }
    server
}

fn set_library_path(environment: &mut Environment, paths: Vec<PathBuf>) {
    // A path that holds the separator cannot be said in this variable at all; cargo fails on it too.
    match env::join_paths(&paths) {
        Ok(value) if !paths.is_empty() => environment.set(LIBRARY_PATH, value),
        _ => environment.remove(LIBRARY_PATH),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))).collect()
    }

    fn package() -> Package {
        serde_json::from_value(serde_json::json!({
            "name": "shop", "version": "1.2.3-rc.1", "id": "path+file:///w/shop#1.2.3-rc.1", "authors": ["A", "B"],
            "dependencies": [], "targets": [], "features": {}, "manifest_path": "/w/shop/Cargo.toml",
            "description": "sells", "license": "MIT", "rust_version": "1.80",
        }))
        .expect("a package")
    }

    #[test]
    fn what_cargo_run_set_for_us_does_not_reach_a_child() {
        let inherited = environment(&[
            ("CARGO_MANIFEST_DIR", "/us"),
            ("CARGO_MANIFEST_PATH", "/us/Cargo.toml"),
            ("CARGO_PKG_NAME", "cargo-httpbench"),
            ("CARGO_PKG_README", ""),
            ("CARGO_BIN_NAME", "x"),
            ("CARGO_CRATE_NAME", "x"),
            ("CARGO_PRIMARY_PACKAGE", "1"),
            ("OUT_DIR", "/us/out"),
            ("RUST_RECURSION_COUNT", "2"),
            ("HTTPBENCH_ROUNDS", "3"),
            ("HTTPBENCH_CONTROL_FD", "9"),
            ("CARGO", "/t/bin/cargo"),
            ("CARGO_HOME", "/h"),
            ("CARGO_TARGET_DIR", "t"),
            ("RUSTUP_TOOLCHAIN", "nightly"),
            ("DATABASE_URL", "x"),
        ]);
        assert_eq!(
            users_own(&inherited, None),
            environment(&[
                ("CARGO", "/t/bin/cargo"),
                ("CARGO_HOME", "/h"),
                ("CARGO_TARGET_DIR", "t"),
                ("RUSTUP_TOOLCHAIN", "nightly"),
                ("DATABASE_URL", "x"),
            ])
        );
    }

    #[test]
    fn without_cargo_run_such_names_are_the_users_own() {
        let inherited = environment(&[("OUT_DIR", "/mine"), ("CARGO_PKG_NAME", "mine")]);
        assert_eq!(users_own(&inherited, None), inherited);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn library_path_keeps_the_users_entries_only() {
        let inherited = environment(&[
            ("CARGO", "/r/toolchains/stable/bin/cargo"),
            ("RUSTUP_HOME", "/r"),
            ("CARGO_MANIFEST_DIR", "/us"),
            (
                "LD_LIBRARY_PATH",
                "/us/target/release/build/z/out:/us/target/release/deps:/us/target/release:/r/toolchains/stable/lib/rustlib/x/lib:\
                 /r/toolchains/stable/lib:/opt/lib:/us/target/other",
            ),
        ]);
        let own = users_own(&inherited, Some(Path::new("/us/target/release/cargo-httpbench")));
        assert_eq!(own.get("LD_LIBRARY_PATH"), Some(OsStr::new("/opt/lib:/us/target/other")));
        let mut inherited = inherited;
        inherited.set("LD_LIBRARY_PATH", "/us/target/release/deps");
        assert_eq!(users_own(&inherited, Some(Path::new("/us/target/release/x"))).get("LD_LIBRARY_PATH"), None);
    }

    #[test]
    fn server_gets_what_cargo_run_would_set_empty_values_too() {
        let own = environment(&[("HOME", "/home/u"), ("CARGO_PKG_NAME", "stale")]);
        let server = of_package(&own, Path::new("/t/bin/cargo"), &package(), &Linked::default());
        let expected = environment(&[
            ("HOME", "/home/u"),
            ("CARGO", "/t/bin/cargo"),
            ("CARGO_MANIFEST_DIR", "/w/shop"),
            ("CARGO_MANIFEST_PATH", "/w/shop/Cargo.toml"),
            ("CARGO_PKG_AUTHORS", "A:B"),
            ("CARGO_PKG_DESCRIPTION", "sells"),
            ("CARGO_PKG_HOMEPAGE", ""),
            ("CARGO_PKG_LICENSE", "MIT"),
            ("CARGO_PKG_LICENSE_FILE", ""),
            ("CARGO_PKG_NAME", "shop"),
            ("CARGO_PKG_README", ""),
            ("CARGO_PKG_REPOSITORY", ""),
            ("CARGO_PKG_RUST_VERSION", "1.80"),
            ("CARGO_PKG_VERSION", "1.2.3-rc.1"),
            ("CARGO_PKG_VERSION_MAJOR", "1"),
            ("CARGO_PKG_VERSION_MINOR", "2"),
            ("CARGO_PKG_VERSION_PATCH", "3"),
            ("CARGO_PKG_VERSION_PRE", "rc.1"),
        ]);
        assert_eq!(server, expected);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn build_scripts_folders_come_before_the_users_libraries() {
        let own = environment(&[("LD_LIBRARY_PATH", "/opt/lib")]);
        let linked = Linked {
            libraries: vec![PathBuf::from("/w/target/release/build/z/out")],
            script_variables: vec![("GIT".to_owned(), "abc".to_owned())],
            out_dir: Some(PathBuf::from("/w/out")),
        };
        let server = of_package(&own, Path::new("cargo"), &package(), &linked);
        assert_eq!(server.get("LD_LIBRARY_PATH"), Some(OsStr::new("/w/target/release/build/z/out:/opt/lib")));
        assert_eq!((server.get("GIT"), server.get("OUT_DIR")), (Some(OsStr::new("abc")), Some(OsStr::new("/w/out"))));
    }
}
