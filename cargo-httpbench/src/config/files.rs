//! Where a package's configuration stands: its own file or section, and the workspace root's.
//!
//! Reads files, never writes. Either place may be `httpbench.toml` or a section of `Cargo.toml`, not both at once.

use std::io;
use std::path::{Path, PathBuf};

use super::SettingsLayer;
use super::document::Document;
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::warning::Warning;

const FILE_NAME: &str = "httpbench.toml";

/// What the files of a package say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileLayers {
    /// The workspace root's.
    pub workspace: SettingsLayer,
    /// The package's own.
    pub package: SettingsLayer,
    /// Every file that was read, the workspace's first.
    pub sources: Vec<PathBuf>,
    /// Keys that are not known.
    pub warnings: Vec<Warning>,
}

/// Reads the configuration of the package whose manifest lies in `package_root`.
///
/// Where the package is the workspace's root package, its `httpbench.toml` serves as the package's own and, for other members,
/// as the defaults.
///
/// # Errors
///
/// When a file cannot be read or understood, or when both places say something: exit code 96.
pub fn read_files(workspace_root: &Path, package_root: &Path) -> Result<FileLayers> {
    let mut layers = FileLayers::default();
    let is_root_package = workspace_root == package_root;
    let shared = if is_root_package { None } else { Some(workspace_root.join(FILE_NAME)) };
    if let Some(layer) =
        read_place(shared, &workspace_root.join("Cargo.toml"), &["workspace", "metadata", "httpbench"], &mut layers)?
    {
        layers.workspace = layer;
    }
    let own = Some(package_root.join(FILE_NAME));
    if let Some(layer) =
        read_place(own, &package_root.join("Cargo.toml"), &["package", "metadata", "httpbench"], &mut layers)?
    {
        layers.package = layer;
    }
    Ok(layers)
}

fn read_place(
    file: Option<PathBuf>,
    manifest: &Path,
    section: &[&str],
    layers: &mut FileLayers,
) -> Result<Option<SettingsLayer>> {
    let file = match file {
        Some(file) => read(&file)?.map(|text| (file, text)),
        None => None,
    };
    let Some(manifest_text) = read(manifest)? else {
        return read_file(file, layers);
    };
    // Cargo has already parsed every manifest; looking for the word first spares parsing it again.
    if !manifest_text.contains("httpbench") {
        return read_file(file, layers);
    }
    let mut document = Document::new(manifest, &manifest_text);
    let root = document.parse()?;
    let Some(table) = document.section(root.get_ref(), section)? else {
        return read_file(file, layers);
    };
    if let Some((file, _)) = file {
        let section = section.join(".");
        return Err(Error::new(
            ExitCode::Configuration,
            format!(
                "the configuration stands in two places: `{}` and `[{section}]` in `{}`",
                file.display(),
                manifest.display()
            ),
        )
        .help("move every key to one of them and delete the other"));
    }
    let layer = document.layer(table)?;
    layers.warnings.append(&mut document.warnings);
    layers.sources.push(manifest.to_owned());
    Ok(Some(layer))
}

fn read_file(file: Option<(PathBuf, String)>, layers: &mut FileLayers) -> Result<Option<SettingsLayer>> {
    let Some((file, text)) = file else { return Ok(None) };
    let mut document = Document::new(&file, &text);
    let root = document.parse()?;
    let layer = document.layer(root.get_ref())?;
    layers.warnings.append(&mut document.warnings);
    layers.sources.push(file);
    Ok(Some(layer))
}

fn read(path: &Path) -> Result<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => {
            Err(Error::new(ExitCode::Configuration, format!("cannot read `{}`", path.display())).caused_by(error))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn workspace(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            fs::write(path, text).expect("written");
        }
        dir
    }

    #[test]
    fn workspace_file_is_the_default_of_its_members() {
        let dir = workspace(&[
            ("Cargo.toml", "[workspace]"),
            ("httpbench.toml", "[defaults]\nconnections = 1\nrounds = 2"),
            ("member/Cargo.toml", "[package.metadata.httpbench.defaults]\nconnections = 3"),
        ]);
        let layers = read_files(dir.path(), &dir.path().join("member")).expect("readable");
        assert_eq!(layers.workspace.load.connections, Some(1));
        assert_eq!(layers.workspace.load.rounds, Some(2));
        assert_eq!(layers.package.load.connections, Some(3));
        assert_eq!(layers.sources, [dir.path().join("httpbench.toml"), dir.path().join("member/Cargo.toml")]);
    }

    #[test]
    fn root_package_has_both_layers_and_its_file_is_read_once() {
        let dir = workspace(&[
            ("Cargo.toml", "[workspace.metadata.httpbench.defaults]\nrounds = 2\nround = 1"),
            ("httpbench.toml", "[defaults]\nconnections = 1\nconection = 1"),
        ]);
        let layers = read_files(dir.path(), dir.path()).expect("readable");
        assert_eq!(layers.workspace.load.rounds, Some(2));
        assert_eq!(layers.package.load.connections, Some(1));
        assert_eq!(layers.warnings.len(), 2);
    }

    #[test]
    fn two_places_at_once_are_an_error_that_names_both() {
        let dir = workspace(&[("Cargo.toml", "[package.metadata.httpbench]"), ("httpbench.toml", "")]);
        let error = read_files(dir.path(), dir.path()).expect_err("two places");
        assert_eq!(error.exit, ExitCode::Configuration);
        assert!(error.what.contains("httpbench.toml` and `[package.metadata.httpbench]` in `"), "{}", error.what);
    }

    #[test]
    fn line_of_a_section_in_a_manifest_is_the_manifests_own() {
        let dir = workspace(&[("Cargo.toml", "[package]\nname = \"x\"\n[package.metadata.httpbench.server]\nbin = 3")]);
        let error = read_files(dir.path(), dir.path()).expect_err("wrong type");
        assert!(error.what.ends_with("Cargo.toml:4: `server.bin` must be a text"), "{}", error.what);
    }

    #[test]
    fn no_configuration_says_nothing() {
        let dir = workspace(&[("Cargo.toml", "[package]\nname = \"httpbench\"")]);
        assert_eq!(read_files(dir.path(), dir.path()).expect("readable"), FileLayers::default());
    }
}
