//! What `copy` puts into a server's private folder. The folder itself belongs to the server's supervisor.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::error::{Error, Result};
use crate::exit_code::ExitCode;

/// Folders within folders that are followed; more is a symbolic link that leads in circles.
const DEPTH: u32 = 64;

/// Copies files and folders, named relative to the package, to the same relative places in `dir`.
///
/// Symbolic links are followed, so that a server that writes never reaches the original.
pub(super) fn copy(paths: &[PathBuf], package_root: &Path, dir: &Path) -> Result<()> {
    for path in paths {
        if !path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
            return Err(Error::new(
                ExitCode::Configuration,
                format!("`server.copy` holds `{}`, which leads out of the package", path.display()),
            )
            .help("name files and folders inside the package, relative to it"));
        }
        let from = package_root.join(path);
        if !from.exists() {
            return Err(Error::new(
                ExitCode::Configuration,
                format!("`server.copy` names `{}`, which does not exist", path.display()),
            )
            .details("looked for", [from.display().to_string()])
            .help("paths in `server.copy` are relative to the package; create the file or take it out of the list"));
        }
        let to = dir.join(path);
        to.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| copy_one(&from, &to, DEPTH)).map_err(|error| {
            Error::new(ExitCode::Configuration, format!("cannot copy `{}` for the server", path.display()))
                .caused_by(error)
                .details("from and to", [from.display().to_string(), to.display().to_string()])
        })?;
    }
    Ok(())
}

fn copy_one(from: &Path, to: &Path, depth: u32) -> io::Result<()> {
    let within = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", from.display()));
    let kind = fs::metadata(from).map_err(within)?.file_type();
    if kind.is_file() {
        return fs::copy(from, to).map(|_| ()).map_err(within);
    }
    if !kind.is_dir() {
        return Err(within(io::Error::other("it is neither a file nor a folder")));
    }
    let Some(depth) = depth.checked_sub(1) else {
        return Err(within(io::Error::other("the folders are too deep, or a link leads in circles")));
    };
    fs::create_dir_all(to).map_err(within)?;
    for entry in fs::read_dir(from).map_err(within)? {
        let entry = entry.map_err(within)?;
        copy_one(&entry.path(), &to.join(entry.file_name()), depth)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_folders_keep_their_relative_places() {
        let (package, dir) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        fs::create_dir_all(package.path().join("data/deep")).expect("made");
        fs::write(package.path().join("data/deep/a.txt"), "a").expect("made");
        fs::write(package.path().join("todo.db"), "db").expect("made");
        std::os::unix::fs::symlink("../todo.db", package.path().join("data/link.db")).expect("made");
        copy(&["data".into(), "./todo.db".into()], package.path(), dir.path()).expect("copied");
        assert_eq!(fs::read_to_string(dir.path().join("data/deep/a.txt")).expect("it was copied"), "a");
        assert_eq!(fs::read_to_string(dir.path().join("todo.db")).expect("it was copied"), "db");
        assert!(fs::symlink_metadata(dir.path().join("data/link.db")).expect("it was copied").is_file());
    }

    #[test]
    fn missing_file_and_path_out_of_the_package_are_configuration_errors_that_name_it() {
        let (package, dir) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        for (path, says) in [("gone.db", "does not exist"), ("../x", "leads out"), ("/etc/passwd", "leads out")] {
            let error = copy(&[path.into()], package.path(), dir.path()).unwrap_err();
            assert_eq!(error.exit, ExitCode::Configuration);
            assert!(error.what.contains(path) && error.what.contains(says), "{error}");
            assert!(error.help.is_some());
        }
    }

    #[test]
    fn link_to_its_own_folder_ends_in_an_error() {
        let (package, dir) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        fs::create_dir(package.path().join("a")).expect("made");
        std::os::unix::fs::symlink(".", package.path().join("a/a")).expect("made");
        assert!(copy(&["a".into()], package.path(), dir.path()).is_err());
    }
}
