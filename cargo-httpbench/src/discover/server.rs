//! Which binary is the server.
//!
//! `--bin`, else `server.bin` of the configuration, else the package's only binary or its `default-run`. A name is looked up in the
//! scenarios' own package first, then in the whole workspace.

use cargo_metadata::{Package, Target};

use super::{ServerTarget, Workspace};
use crate::cargo::CargoOptions;
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::nearest::nearest;

pub(super) fn find(
    workspace: &Workspace,
    options: &CargoOptions,
    selected: &[&Package],
    package: &Package,
    configured: Option<&str>,
) -> Result<ServerTarget> {
    let (owner, target) = match (&options.bin, configured) {
        (Some(name), _) => by_flag(workspace, selected, package, name)?,
        (None, Some(name)) => by_configuration(workspace, package, name)?,
        (None, None) => by_default(workspace, package)?,
    };
    let missing = workspace.missing_features(owner, &target.required_features);
    if !missing.is_empty() {
        let prefix = if owner.id == package.id { String::new() } else { format!("{}/", owner.name) };
        let features: Vec<String> = missing.iter().map(|feature| format!("{prefix}{feature}")).collect();
        return Err(Error::new(
            ExitCode::Usage,
            format!("server `{}` of package `{}` needs features that are not enabled", target.name, owner.name),
        )
        .help(format!("add `--features {}`", features.join(","))));
    }
    Ok(ServerTarget { package: owner.clone(), bin: target.name.clone() })
}

pub(super) fn serving_package<'w>(options: &CargoOptions, selected: &[&'w Package]) -> Result<&'w Package> {
    if let [only] = selected {
        return Ok(only);
    }
    let is_meant = |target: &Target| options.bin.as_ref().is_none_or(|name| target.name == *name);
    let serving: Vec<&Package> = selected.iter().copied().filter(|package| bins(package).any(is_meant)).collect();
    match serving[..] {
        [only] => Ok(only),
        [] => Err(Error::new(ExitCode::Usage, "none of the selected packages has such a binary")
            .details("selected packages", selected.iter().map(|package| package.name.to_string()))
            .help("select another package with `-p`, or another binary with `--bin`")),
        _ => Err(Error::new(ExitCode::Usage, "several of the selected packages have a server")
            .details("choices", serving.iter().map(|package| format!("-p {}", package.name)))
            .help("select one package with `-p`")),
    }
}

fn bins(package: &Package) -> impl Iterator<Item = &Target> {
    package.targets.iter().filter(|target| target.is_bin())
}

fn named<'p>(packages: &[&'p Package], name: &str) -> Vec<(&'p Package, &'p Target)> {
    packages
        .iter()
        .flat_map(|package| bins(package).filter(|target| target.name == name).map(move |target| (*package, target)))
        .collect()
}

fn by_flag<'w>(
    workspace: &'w Workspace,
    selected: &[&'w Package],
    package: &Package,
    name: &str,
) -> Result<(&'w Package, &'w Target)> {
    // As for `cargo run --bin`: the name must be one package's among those selected.
    match named(selected, name)[..] {
        [found] => return Ok(found),
        [] => {}
        ref several => return Err(ambiguous(several, name, ExitCode::Usage).help("select one package with `-p`")),
    }
    match named(&workspace.metadata.workspace_packages(), name)[..] {
        [found] => Ok(found),
        [] => Err(unknown(workspace, package, name, ExitCode::Usage, |name| format!("--bin {name}"))),
        ref several => Err(ambiguous(several, name, ExitCode::Usage).help("select one package with `-p`")),
    }
}

fn by_configuration<'w>(workspace: &'w Workspace, package: &Package, name: &str) -> Result<(&'w Package, &'w Target)> {
    let members = workspace.metadata.workspace_packages();
    let found = named(&members, name);
    if let Some(own) = found.iter().find(|(owner, _)| owner.id == package.id) {
        return Ok(*own);
    }
    match found[..] {
        [found] => Ok(found),
        [] => Err(unknown(workspace, package, name, ExitCode::Configuration, |name| format!("bin = \"{name}\""))),
        ref several => Err(ambiguous(several, name, ExitCode::Configuration)
            .help("give one of these binaries another name, or put the scenarios into its package")),
    }
}

fn by_default<'w>(workspace: &'w Workspace, package: &Package) -> Result<(&'w Package, &'w Target)> {
    let owner = workspace.metadata.workspace_packages().into_iter().find(|member| member.id == package.id).ok_or_else(
        || Error::new(ExitCode::Unexpected, format!("package `{}` is not a member of the workspace", package.name)),
    )?;
    let all: Vec<&Target> = bins(owner).collect();
    let default = owner.default_run.as_deref().and_then(|name| all.iter().find(|target| target.name == name));
    match (default, &all[..]) {
        (Some(target), _) | (None, [target]) => Ok((owner, target)),
        (None, []) => {
            Err(Error::new(ExitCode::Configuration, format!("package `{}` has no binary to measure", owner.name))
                .details("binaries of the workspace", choices(&workspace.metadata.workspace_packages()))
                .help(how_to_choose("server")))
        }
        (None, _) => {
            let first = all.first().map_or("server", |target| target.name.as_str());
            Err(Error::new(
                ExitCode::Configuration,
                format!("package `{}` has several binaries, and nothing says which one is the server", owner.name),
            )
            .details("its binaries", all.iter().map(|target| target.name.clone()))
            .help(how_to_choose(first)))
        }
    }
}

fn how_to_choose(name: &str) -> String {
    format!("write `bin = \"{name}\"` under `[server]` in `httpbench.toml`, or add `--bin {name}`")
}

fn choices(packages: &[&Package]) -> Vec<String> {
    packages
        .iter()
        .flat_map(|package| bins(package).map(move |target| format!("{} (package `{}`)", target.name, package.name)))
        .collect()
}

fn unknown(
    workspace: &Workspace,
    package: &Package,
    name: &str,
    exit: ExitCode,
    spelled: impl Fn(&str) -> String,
) -> Error {
    let members = workspace.metadata.workspace_packages();
    let names = members.iter().flat_map(|package| bins(package)).map(|target| target.name.as_str());
    let error =
        Error::new(exit, format!("no binary `{name}` in package `{}` or elsewhere in the workspace", package.name))
            .details("binaries of the workspace", choices(&members));
    match nearest(name, names) {
        Some(nearest) => error.help(format!("did you mean `{}`?", spelled(nearest))),
        None => error.help("choose one of them"),
    }
}

fn ambiguous(several: &[(&Package, &Target)], name: &str, exit: ExitCode) -> Error {
    Error::new(exit, format!("several packages have a binary `{name}`"))
        .details("choices", several.iter().map(|(package, _)| format!("-p {} --bin {name}", package.name)))
        .help("choose the package with `-p`")
}
