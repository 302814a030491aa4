//! Whether a manifest says `harness = false` for a bench target, which `cargo metadata` does not tell.

use std::fs;
use std::path::Path;

use toml::de::{DeTable, DeValue};

use crate::error::{Error, Result};
use crate::exit_code::ExitCode;

/// What the manifest says of a bench target's harness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Harness {
    /// `harness = false`: the target's own `main` runs.
    Own,
    /// There is a `[[bench]]` entry, without that line.
    Default,
    /// The target was found in `benches/` and has no entry.
    Unlisted,
}

/// Looks in the manifest's text.
pub(super) fn of(manifest: &str, bench: &str) -> Harness {
    // Cargo has read this manifest, so it is TOML.
    let Ok(root) = DeTable::parse(manifest) else { return Harness::Unlisted };
    let entries = root.get_ref().get("bench").and_then(|entries| entries.get_ref().as_array());
    let entry = entries
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.get_ref().as_table())
        .find(|entry| entry.get("name").and_then(|name| name.get_ref().as_str()) == Some(bench));
    match entry {
        None => Harness::Unlisted,
        Some(entry) => match entry.get("harness").map(|harness| harness.get_ref()) {
            Some(DeValue::Boolean(false)) => Harness::Own,
            _ => Harness::Default,
        },
    }
}

/// Reads a package's manifest.
pub(super) fn read_manifest(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|error| {
        Error::new(ExitCode::Configuration, format!("cannot read `{}`", path.display())).caused_by(error)
    })
}

/// Refuses a bench target whose own `main` would not run.
pub(super) fn refuse(package: &str, manifest: &Path, bench: &str, harness: Harness) -> Error {
    let error = Error::new(
        ExitCode::Configuration,
        format!("bench target `{bench}` of package `{package}` lacks `harness = false`, so its `main` would not run"),
    );
    let manifest = manifest.display();
    match harness {
        Harness::Default => error
            .details(format!("the `[[bench]]` entry in `{manifest}` must be"), entry(bench))
            .help(format!("add `harness = false` below `name = \"{bench}\"`")),
        _ => error.details(format!("lines to add to `{manifest}`"), entry(bench)).help("add these lines and run again"),
    }
}

/// The `[[bench]]` entry that a bench target of ours needs.
pub(super) fn entry(bench: &str) -> [String; 3] {
    ["[[bench]]".to_owned(), format!("name = \"{bench}\""), "harness = false".to_owned()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harness_is_told_by_the_entry_of_that_name() {
        let manifest = "[[bench]]\nname = \"a\"\nharness = false\n[[bench]]\nname = \"b\"\n[[bench]]\nname = \"c\"\nharness = true\n";
        assert_eq!(of(manifest, "a"), Harness::Own);
        assert_eq!(of(manifest, "b"), Harness::Default);
        assert_eq!(of(manifest, "c"), Harness::Default);
        assert_eq!(of(manifest, "d"), Harness::Unlisted);
        assert_eq!(of("bench = [{ name = \"a\", harness = false }]", "a"), Harness::Own);
        assert_eq!(of("", "a"), Harness::Unlisted);
    }

    #[test]
    fn refusal_shows_the_lines_and_the_file() {
        let error = refuse("shop", Path::new("/w/Cargo.toml"), "http", Harness::Unlisted);
        assert_eq!(error.exit, ExitCode::Configuration);
        assert_eq!(error.details[0].title, "lines to add to `/w/Cargo.toml`");
        assert_eq!(error.details[0].lines, ["[[bench]]", "name = \"http\"", "harness = false"]);
    }
}
