//! What cargo says on standard output while it builds.
//!
//! Only `compiler-artifact` and `build-script-executed` matter. Whatever else stands there (a wrapper's own words, messages of
//! a newer cargo) is passed over.

use std::path::{Path, PathBuf};

use cargo_metadata::{BuildScript, Message, PackageId};

use crate::environment::Linked;

/// What one call built.
#[derive(Clone, Debug, Default)]
pub(super) struct Built {
    executables: Vec<Executable>,
    scripts: Vec<BuildScript>,
}

/// An executable that was built or found to be fresh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Executable {
    package: PackageId,
    target: String,
    kind: String,
    /// Its file.
    pub(super) path: String,
    /// `0` to `3`, `s` or `z`.
    pub(super) opt_level: String,
}

/// Reads all messages of a call.
pub(super) fn read(stdout: &[u8]) -> Built {
    let mut built = Built::default();
    for line in stdout.split(|byte| *byte == b'\n') {
        match serde_json::from_slice(line) {
            Ok(Message::CompilerArtifact(artifact)) => {
                if let Some(path) = artifact.executable {
                    built.executables.push(Executable {
                        package: artifact.package_id,
                        target: artifact.target.name,
                        kind: artifact.target.kind.first().map(ToString::to_string).unwrap_or_default(),
                        path: path.into_string(),
                        opt_level: artifact.profile.opt_level,
                    });
                }
            }
            Ok(Message::BuildScriptExecuted(script)) => built.scripts.push(script),
            _ => {}
        }
    }
    built
}

impl Built {
    /// The executable of one target. `kind` is `bin` or `bench`.
    pub(super) fn executable(&self, package: &PackageId, target: &str, kind: &str) -> Option<&Executable> {
        self.executables.iter().find(|built| built.package == *package && built.target == target && built.kind == kind)
    }

    /// What a package's own build script set.
    pub(super) fn script(&self, package: &PackageId) -> Linked {
        let Some(script) = self.scripts.iter().find(|script| script.package_id == *package) else {
            return Linked::default();
        };
        Linked {
            libraries: Vec::new(),
            script_variables: script.env.clone(),
            out_dir: Some(script.out_dir.clone().into_std_path_buf()).filter(|path| !path.as_os_str().is_empty()),
        }
    }

    /// The folders of shared libraries that build scripts named, as far as they lie below `root`: cargo leaves the others to the
    /// system's own search.
    pub(super) fn library_folders(&self, root: Option<&Path>) -> Vec<PathBuf> {
        let Some(root) = root else { return Vec::new() };
        let mut folders = Vec::new();
        for path in self.scripts.iter().flat_map(|script| &script.linked_paths) {
            // A path may be preceded by what is searched for there: `native=/path`.
            let path = path.as_str();
            let path = match path.split_once('=') {
                Some(("native" | "crate" | "dependency" | "framework" | "all", path)) => path,
                _ => path,
            };
            let path = PathBuf::from(path);
            if path.starts_with(root) && !folders.contains(&path) {
                folders.push(path);
            }
        }
        folders
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGES: &str = concat!(
        "a wrapper says hello\n",
        r#"{"reason":"compiler-artifact","package_id":"path+file:///w/shop#0.1.0","manifest_path":"/w/shop/Cargo.toml","target":{"kind":["lib"],"crate_types":["lib"],"name":"shop","src_path":"/w/shop/src/lib.rs","edition":"2024","doc":true,"doctest":true,"test":true},"profile":{"opt_level":"3","debuginfo":0,"debug_assertions":false,"overflow_checks":false,"test":false},"features":[],"filenames":["/w/target/release/libshop.rlib"],"executable":null,"fresh":true}"#,
        "\n",
        r#"{"reason":"build-script-executed","package_id":"registry+https://example.org/index#zlib@1.0.0","linked_libs":["static=z"],"linked_paths":["native=/w/target/release/build/z-1/out","/usr/lib"],"cfgs":[],"env":[],"out_dir":"/w/target/release/build/z-1/out"}"#,
        "\n",
        r#"{"reason":"build-script-executed","package_id":"path+file:///w/shop#0.1.0","linked_libs":[],"linked_paths":[],"cfgs":[],"env":[["GIT","abc"]],"out_dir":"/w/target/release/build/shop-1/out"}"#,
        "\n",
        r#"{"reason":"compiler-artifact","package_id":"path+file:///w/shop#0.1.0","manifest_path":"/w/shop/Cargo.toml","target":{"kind":["bin"],"crate_types":["bin"],"name":"shop","src_path":"/w/shop/src/main.rs","edition":"2024","doc":true,"doctest":false,"test":true},"profile":{"opt_level":"3","debuginfo":0,"debug_assertions":false,"overflow_checks":false,"test":false},"features":[],"filenames":["/w/target/release/shop"],"executable":"/w/target/release/shop","fresh":false}"#,
        "\n",
        r#"{"reason":"a-new-reason","x":1}"#,
        "\n",
        r#"{"reason":"build-finished","success":true}"#,
        "\n"
    );

    fn id(text: &str) -> PackageId {
        PackageId { repr: text.to_owned() }
    }

    #[test]
    fn executable_is_found_by_package_target_and_kind() {
        let built = read(MESSAGES.as_bytes());
        let shop = id("path+file:///w/shop#0.1.0");
        assert_eq!(
            built.executable(&shop, "shop", "bin").map(|built| built.path.as_str()),
            Some("/w/target/release/shop")
        );
        assert_eq!(built.executable(&shop, "shop", "bench"), None);
        assert_eq!(built.executable(&id("path+file:///w/other#shop@0.1.0"), "shop", "bin"), None);
    }

    #[test]
    fn build_scripts_tell_library_folders_and_variables() {
        let built = read(MESSAGES.as_bytes());
        assert_eq!(
            built.library_folders(Some(Path::new("/w/target/release"))),
            [Path::new("/w/target/release/build/z-1/out")]
        );
        let linked = built.script(&id("path+file:///w/shop#0.1.0"));
        assert_eq!(linked.script_variables, [("GIT".to_owned(), "abc".to_owned())]);
        assert_eq!(linked.out_dir.as_deref(), Some(Path::new("/w/target/release/build/shop-1/out")));
    }

    #[test]
    fn no_message_is_nothing_built() {
        assert_eq!(read(b"").executable(&id("x"), "x", "bin"), None);
    }
}
