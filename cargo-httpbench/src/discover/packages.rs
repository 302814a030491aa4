//! Which members of the workspace are selected, by cargo's own rules.

use cargo_metadata::{Metadata, Package};

use super::pattern;
use crate::cargo::{CargoOptions, PackageChoice};
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::nearest::nearest;

pub(super) fn selected<'m>(metadata: &'m Metadata, options: &CargoOptions) -> Result<Vec<&'m Package>> {
    let members = metadata.workspace_packages();
    match &options.packages {
        PackageChoice::Default => Ok(default_packages(metadata, members)),
        PackageChoice::Workspace => {
            for spec in &options.exclude {
                known(&members, spec, "--exclude")?;
            }
            Ok(members
                .into_iter()
                .filter(|package| !options.exclude.iter().any(|spec| is_meant(package, spec)))
                .collect())
        }
        PackageChoice::Named(specs) => {
            for spec in specs {
                known(&members, spec, "-p")?;
            }
            Ok(members.into_iter().filter(|package| specs.iter().any(|spec| is_meant(package, spec))).collect())
        }
    }
}

/// In a member's folder that member, in the root's the default members (cargo takes the root package where none are named).
fn default_packages<'m>(metadata: &'m Metadata, members: Vec<&'m Package>) -> Vec<&'m Package> {
    let root = metadata.root_package();
    let stands_in_member =
        root.filter(|package| package.manifest_path.parent() != Some(metadata.workspace_root.as_path()));
    match (stands_in_member, root) {
        (Some(member), _) => vec![member],
        (None, _) if metadata.workspace_default_members.is_available() => metadata.workspace_default_packages(),
        (None, Some(root)) => vec![root],
        (None, None) => members,
    }
}

fn known(members: &[&Package], spec: &str, flag: &str) -> Result<()> {
    if members.iter().any(|package| is_meant(package, spec)) {
        return Ok(());
    }
    let names = || members.iter().map(|package| package.name.as_str());
    let help = match nearest(name_of(spec), names()) {
        Some(nearest) => format!("did you mean `{flag} {nearest}`?"),
        None => format!("choose one of the members with `{flag} NAME`"),
    };
    Err(Error::new(ExitCode::Usage, format!("`{flag} {spec}` matches no package of the workspace"))
        .details("members of the workspace", names().map(str::to_owned))
        .help(help))
}

/// The part of a specification that names a package.
fn name_of(spec: &str) -> &str {
    let spec = spec.rsplit('/').next().unwrap_or(spec);
    let spec = spec.rsplit('#').next().unwrap_or(spec);
    spec.split(['@', ':']).next().unwrap_or(spec)
}

/// Whether a specification means this package: `name`, `name@version`, `name:version`, a wildcard, an id, or the URL of its folder
/// with or without `#name@version`.
fn is_meant(package: &Package, spec: &str) -> bool {
    let name = package.name.as_str();
    if spec == name || spec == package.id.repr {
        return true;
    }
    if let Some((url, fragment)) = spec.split_once('#') {
        return is_at(package, url) && (fits(package, fragment) || is_version(package, fragment));
    }
    if spec.contains("://") {
        return is_at(package, spec);
    }
    if pattern::is_pattern(spec) {
        return pattern::matches(spec, name);
    }
    fits(package, spec)
}

fn is_at(package: &Package, url: &str) -> bool {
    let id = package.id.repr.split('#').next().unwrap_or_default();
    let plain = |url: &str| url.strip_prefix("path+").unwrap_or(url).trim_end_matches('/').to_owned();
    plain(url) == plain(id)
}

fn fits(package: &Package, spec: &str) -> bool {
    match spec.split_once(['@', ':']) {
        Some((name, version)) => name == package.name.as_str() && is_version(package, version),
        None => spec == package.name.as_str(),
    }
}

/// `1`, `1.2` and `1.2.3` all mean version 1.2.3.
fn is_version(package: &Package, version: &str) -> bool {
    let whole = package.version.to_string();
    !version.is_empty() && (whole == version || whole.strip_prefix(version).is_some_and(|rest| rest.starts_with('.')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package() -> Package {
        serde_json::from_value(serde_json::json!({
            "name": "shop-api", "version": "1.2.3", "id": "path+file:///w/api#shop-api@1.2.3", "targets": [],
            "dependencies": [], "features": {}, "manifest_path": "/w/api/Cargo.toml",
        }))
        .expect("a package")
    }

    #[test]
    fn specifications_are_read_as_cargo_reads_them() {
        for (spec, meant) in [
            ("shop-api", true),
            ("shop_api", false),
            ("shop-api@1.2.3", true),
            ("shop-api:1.2", true),
            ("shop-api@1.20", false),
            ("shop-api@", false),
            ("shop-*", true),
            ("*-web", false),
            ("path+file:///w/api#shop-api@1.2.3", true),
            ("path+file:///w/api#1.2.3", true),
            ("file:///w/api", true),
            ("file:///w/api/", true),
            ("file:///w/web", false),
            ("file:///w/api#other", false),
        ] {
            assert_eq!(is_meant(&package(), spec), meant, "{spec}");
        }
    }

    #[test]
    fn unknown_specification_is_answered_with_the_nearest_member() {
        let package = package();
        let error = known(&[&package], "shop-app@1", "-p").expect_err("no such member");
        assert_eq!(error.exit, ExitCode::Usage);
        assert_eq!(error.help.as_deref(), Some("did you mean `-p shop-api`?"));
        assert_eq!(error.details[0].lines, ["shop-api"]);
    }
}
