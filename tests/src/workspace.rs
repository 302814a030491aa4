//! Where the workspace is, and the command that is built from it, once for each test process.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

/// The workspace's root folder.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the test package lies in the workspace")
}

/// The cargo that runs this test.
#[must_use]
pub fn cargo() -> PathBuf {
    env::var_os("CARGO").map_or_else(|| "cargo".into(), PathBuf::from)
}

/// A call of cargo, without what cargo set for this test.
///
/// Build scripts may ask for `CARGO_PKG_NAME` and the like to be watched: to cargo, they would have changed, and what it built before
/// would be stale.
pub(crate) fn cargo_call() -> Command {
    let mut call = Command::new(cargo());
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_"].iter().any(|prefix| text.starts_with(prefix)) {
            call.env_remove(name);
        }
    }
    for name in ["CARGO_CRATE_NAME", "CARGO_PRIMARY_PACKAGE", "CARGO_TARGET_TMPDIR", "LD_LIBRARY_PATH", "OUT_DIR"] {
        call.env_remove(name);
    }
    call
}

/// The host's target triple, as `rustc` says it.
///
/// # Panics
///
/// When `rustc` cannot tell.
#[must_use]
pub fn host() -> String {
    let rustc = cargo().with_file_name("rustc");
    let rustc = if rustc.exists() { rustc } else { "rustc".into() };
    let output = Command::new(rustc).arg("-vV").output().expect("rustc can be run");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().find_map(|line| line.strip_prefix("host: ")).expect("rustc names its host").to_owned()
}

/// The target directory that all fixture projects share, so that dependencies are compiled once.
///
/// # Panics
///
/// When cargo cannot tell where this workspace is built.
#[must_use]
pub fn fixtures_target() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let output = cargo_call()
            .args(["metadata", "--no-deps", "--format-version", "1"])
            .current_dir(root())
            .stderr(Stdio::inherit())
            .output()
            .expect("cargo can be run");
        assert!(output.status.success(), "`cargo metadata` failed");
        let metadata: Value = serde_json::from_slice(&output.stdout).expect("`cargo metadata` answers JSON");
        let target = metadata["target_directory"].as_str().expect("metadata names the target directory");
        Path::new(target).join("fixtures")
    })
}

/// The folders in which runs over the shared target directory keep their executables. Those of killed runs stay until the next.
#[must_use]
pub fn run_folders() -> Vec<PathBuf> {
    let folder = fixtures_target().join("httpbench/run");
    fs::read_dir(folder).map_or_else(|_| Vec::new(), |all| all.flatten().map(|entry| entry.path()).collect())
}

/// The `cargo-httpbench` of this workspace, built by the first who asks.
///
/// Cargo gives the path of an executable only to tests of the same package, so it is asked here: for everything, because features
/// are unified over all that is built together, and so it is the very build that `cargo test --workspace --all-targets` made.
pub fn executable() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let output = cargo_call()
            .args(["build", "--workspace", "--all-targets"])
            .args(["--message-format", "json-render-diagnostics"])
            .current_dir(root())
            .stderr(Stdio::inherit())
            .output()
            .expect("cargo can be run");
        assert!(output.status.success(), "`cargo build --workspace --all-targets` failed");
        String::from_utf8_lossy(&output.stdout)
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .filter(|message| {
                message["reason"] == "compiler-artifact"
                    && message["target"]["name"] == "cargo-httpbench"
                    && message["target"]["kind"][0] == "bin"
                    && message["profile"]["test"] == false
            })
            .find_map(|message| message["executable"].as_str().map(PathBuf::from))
            .expect("cargo names the executable that it built")
    })
}
