//! Which members of the workspace are selected, by cargo's own rules.

use cargo_metadata::{Metadata, Package, PackageId};

use super::pattern;
use crate::cargo::{Cargo, CargoOptions, PackageChoice};
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::nearest::nearest;

/// The member in whose folder the user stands, or which `--manifest-path` names; none in the root of a virtual workspace.
pub(super) fn stands_in(cargo: &Cargo, metadata: &Metadata) -> Option<PackageId> {
    let manifest = match &cargo.options.manifest_path {
        Some(path) => cargo.absolute(path),
        None => cargo.current_dir.ancestors().map(|folder| folder.join("Cargo.toml")).find(|path| path.is_file())?,
    };
    // The user may have come through a symbolic link.
    let manifest = manifest.canonicalize().ok()?;
    let members = metadata.workspace_packages().into_iter();
    members
        .filter(|package| package.manifest_path.canonicalize().is_ok_and(|path| path == manifest))
        .map(|package| package.id.clone())
        .next()
}

pub(super) fn selected<'m>(
    metadata: &'m Metadata,
    stands_in: Option<&PackageId>,
    options: &CargoOptions,
) -> Result<Vec<&'m Package>> {
    let members = metadata.workspace_packages();
    match &options.packages {
        PackageChoice::Default => Ok(default_packages(metadata, members, stands_in)),
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
fn default_packages<'m>(
    metadata: &'m Metadata,
    members: Vec<&'m Package>,
    stands_in: Option<&PackageId>,
) -> Vec<&'m Package> {
    let member = members.iter().copied().find(|package| Some(&package.id) == stands_in);
    let is_root = |package: &&Package| package.manifest_path.parent() == Some(metadata.workspace_root.as_path());
    match member {
        Some(member) if !is_root(&member) => vec![member],
        _ if metadata.workspace_default_members.is_available() => metadata.workspace_default_packages(),
        Some(root) => vec![root],
        None => members,
    }
}

/// Whether `--features` of this name changes anything in a build of this package.
pub(crate) fn takes_feature(package: &Package, feature: &str) -> bool {
    match feature.split_once('/') {
        Some((of, _)) => {
            let of = of.trim_end_matches('?');
            package.name.as_str() == of
                || package.dependencies.iter().any(|one| one.rename.as_deref().unwrap_or(&one.name) == of)
        }
        None => package.features.contains_key(feature),
    }
}

/// Refuses a feature that no selected package has; `package/feature` may also be another member's.
///
/// Each build call leaves out what its package does not have, so cargo would not notice.
pub(super) fn check_features(metadata: &Metadata, selected: &[&Package], options: &CargoOptions) -> Result<()> {
    let members = metadata.workspace_packages();
    for feature in &options.features {
        let packages = if feature.contains('/') { &members[..] } else { selected };
        if packages.iter().any(|package| takes_feature(package, feature)) {
            continue;
        }
        let known = || packages.iter().flat_map(|package| package.features.keys()).map(String::as_str);
        let error = Error::new(ExitCode::Usage, format!("none of the selected packages has the feature `{feature}`"));
        return Err(match nearest(feature, known()) {
            Some(nearest) => error.help(format!("did you mean `--features {nearest}`?")),
            None => error
                .details("their features", known().map(str::to_owned))
                .help("leave it out, or write `package/feature`"),
        });
    }
    Ok(())
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

    fn with_features() -> Package {
        serde_json::from_value(serde_json::json!({
            "name": "shop", "version": "0.1.0", "id": "path+file:///w#shop@0.1.0", "targets": [],
            "features": {"fast": []}, "manifest_path": "/w/Cargo.toml",
            "dependencies": [{
                "name": "serde", "source": null, "req": "*", "kind": null, "rename": null, "optional": false,
                "uses_default_features": true, "features": [], "target": null, "registry": null
            }],
        }))
        .expect("a package")
    }

    #[test]
    fn features_of_other_packages_are_left_to_them() {
        let package = with_features();
        for (feature, taken) in [
            ("fast", true),
            ("slow", false),
            ("shop/fast", true),
            ("serde/derive", true),
            ("serde?/derive", true),
            ("other/fast", false),
        ] {
            assert_eq!(takes_feature(&package, feature), taken, "{feature}");
        }
    }
}
