//! Which bench targets are ours.
//!
//! The sources tell before the build; the built executable has the last word (`crate::build`), so a foreign bench is never run.

use std::collections::{HashSet, VecDeque};
use std::fs;

use cargo_metadata::{Metadata, Package, PackageId, Target};

use super::harness::{self, Harness};
use super::{BenchPackage, BenchTarget, CORE, Workspace, pattern};
use crate::cargo::CargoOptions;
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::nearest::nearest;

pub(super) fn find(workspace: &Workspace, options: &CargoOptions, selected: &[&Package]) -> Result<Vec<BenchPackage>> {
    for name in &options.benches {
        known(name, selected)?;
    }
    let mut found = Vec::new();
    for package in selected {
        let benches = of_package(workspace, options, package)?;
        if !benches.is_empty() {
            found.push(BenchPackage { package: (*package).clone(), benches });
        }
    }
    if found.is_empty() { Err(none(selected)) } else { Ok(found) }
}

fn of_package(workspace: &Workspace, options: &CargoOptions, package: &Package) -> Result<Vec<BenchTarget>> {
    let targets: Vec<&Target> = bench_targets(package).collect();
    if targets.is_empty() {
        return Ok(Vec::new());
    }
    let manifest = package.manifest_path.as_std_path();
    let text = harness::read_manifest(manifest)?;
    let named = |target: &Target| options.benches.iter().any(|name| is_named(name, target));
    let chosen: Vec<&Target> = if !options.benches.is_empty() {
        targets.into_iter().filter(|target| named(target)).collect()
    } else if targets.iter().any(|target| mentions_us(target)) {
        targets.into_iter().filter(|target| mentions_us(target)).collect()
    } else if depends_on_core(&workspace.metadata, &package.id) {
        // A facade may re-export us under another name, so any target with a `main` of its own may be ours.
        targets.into_iter().filter(|target| harness::of(&text, &target.name) == Harness::Own).collect()
    } else {
        Vec::new()
    };
    chosen
        .into_iter()
        .map(|target| {
            let harness = harness::of(&text, &target.name);
            if harness != Harness::Own {
                return Err(harness::refuse(&package.name, manifest, &target.name, harness));
            }
            let missing = workspace.missing_features(package, &target.required_features);
            if !missing.is_empty() {
                let missing = missing.join(",");
                return Err(Error::new(
                    ExitCode::Usage,
                    format!(
                        "bench target `{}` of package `{}` needs features that are not enabled",
                        target.name, package.name
                    ),
                )
                .help(format!("add `--features {missing}`")));
            }
            Ok(BenchTarget {
                package: package.clone(),
                name: target.name.clone(),
                source: target.src_path.clone().into_std_path_buf(),
            })
        })
        .collect()
}

fn bench_targets(package: &Package) -> impl Iterator<Item = &Target> {
    package.targets.iter().filter(|target| target.is_bench())
}

fn is_named(name: &str, target: &Target) -> bool {
    name == target.name || pattern::is_pattern(name) && pattern::matches(name, &target.name)
}

fn known(name: &str, selected: &[&Package]) -> Result<()> {
    let targets = || selected.iter().flat_map(|package| bench_targets(package).map(move |target| (package, target)));
    if targets().any(|(_, target)| is_named(name, target)) {
        return Ok(());
    }
    let error = Error::new(ExitCode::Usage, format!("no bench target `{name}` in the selected packages")).details(
        "bench targets of the selected packages",
        targets().map(|(package, target)| format!("{} (package `{}`)", target.name, package.name)),
    );
    Err(match nearest(name, targets().map(|(_, target)| target.name.as_str())) {
        Some(nearest) => error.help(format!("did you mean `--bench {nearest}`?")),
        None => error.help("choose one of them, or select another package with `-p`"),
    })
}

/// Whether the source names our crate or our attribute. A file that cannot be read is for the build to complain about.
fn mentions_us(target: &Target) -> bool {
    let source = fs::read_to_string(&target.src_path).unwrap_or_default();
    source.contains("httpbench") || source.contains("http_bench")
}

/// Whether the package depends on the scenarios' crate, directly or through others.
fn depends_on_core(metadata: &Metadata, package: &PackageId) -> bool {
    let Some(core) = metadata.packages.iter().find(|package| package.name.as_str() == CORE).map(|package| &package.id)
    else {
        return false;
    };
    let nodes = metadata.resolve.iter().flat_map(|resolve| &resolve.nodes);
    let edges: std::collections::HashMap<&PackageId, &[PackageId]> =
        nodes.map(|node| (&node.id, node.dependencies.as_slice())).collect();
    let mut seen = HashSet::from([package]);
    let mut queue = VecDeque::from([package]);
    while let Some(id) = queue.pop_front() {
        if id == core {
            return true;
        }
        queue.extend(
            edges.get(id).into_iter().flat_map(|dependencies| dependencies.iter()).filter(|id| seen.insert(id)),
        );
    }
    false
}

fn none(selected: &[&Package]) -> Error {
    let names: Vec<String> = selected.iter().map(|package| format!("`{}`", package.name)).collect();
    let of = match &names[..] {
        [] => "no package is selected".to_owned(),
        [name] => format!("package {name} has no bench target with HTTP scenarios"),
        _ => format!("none of the packages {} has a bench target with HTTP scenarios", names.join(", ")),
    };
    let error = Error::new(ExitCode::NothingSelected, of);
    let Some(package) = selected.iter().find(|package| package.targets.iter().any(Target::is_bin)).or(selected.first())
    else {
        return error.help("select one with `-p` or `--workspace`");
    };
    let core = env!("CARGO_PKG_VERSION").rsplit_once('.').map_or("*", |(minor, _)| minor);
    let folder = package.manifest_path.parent().map(|path| path.join("benches/http.rs")).unwrap_or_default();
    let manifest = ["[dev-dependencies]".to_owned(), format!("{CORE} = \"{core}\""), String::new()];
    error
        .details(
            format!("lines to add to `{}`", package.manifest_path),
            manifest.into_iter().chain(harness::entry("http")),
        )
        .details(
            format!("a first scenario, in `{folder}`"),
            [
                "use httpbench_core::prelude::*;",
                "",
                "/// The landing page.",
                "#[http_bench]",
                "fn index() -> Request {",
                "    Request::get(\"/\")",
                "}",
                "",
                "fn main() {",
                "    httpbench_core::main()",
                "}",
            ]
            .map(str::to_owned),
        )
        .help("add these lines and run again; other packages are selected with `-p` or `--workspace`")
}
