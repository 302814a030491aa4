//! Whether a run in continuous integration may replace a baseline that others compare with.
//!
//! A change that is still being reviewed must not become the measure of itself. So under `--ci`, an existing baseline is replaced
//! only from the default branch, as far as the environment tells, unless `allow-save-in-ci` says otherwise. A new baseline and a run
//! by hand are never refused. Pure functions of the environment, but for the event file that GitHub names in it.

use std::fs;

use serde::Deserialize;

use super::names::BaselineName;
use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;

/// Whether a run is one of continuous integration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ci {
    /// A person started it.
    #[default]
    No,
    /// `--ci`, or `CI=true` in the environment.
    Yes,
}

/// Whether configuration allows a run for a pull request to replace a baseline: `allow-save-in-ci`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Saving {
    /// It does not.
    #[default]
    FromTheDefaultBranch,
    /// It does.
    FromAnywhere,
}

impl Ci {
    /// What `CI` in the environment says: `true` and `1` mean yes.
    #[must_use]
    pub fn of(environment: &Environment) -> Self {
        match environment.get("CI").and_then(|value| value.to_str()) {
            Some(value) if value.eq_ignore_ascii_case("true") || value == "1" => Self::Yes,
            _ => Self::No,
        }
    }
}

/// Variables that services set for a pull or merge request, and only then; `false` and an empty value mean no.
const PULL_REQUEST: [&str; 8] = [
    "CI_MERGE_REQUEST_ID",              // GitLab
    "BITBUCKET_PR_ID",                  // Bitbucket
    "BUILDKITE_PULL_REQUEST",           // Buildkite
    "CHANGE_ID",                        // Jenkins
    "CIRCLE_PULL_REQUEST",              // CircleCI
    "DRONE_PULL_REQUEST",               // Drone, Woodpecker
    "SYSTEM_PULLREQUEST_PULLREQUESTID", // Azure
    "TRAVIS_PULL_REQUEST",              // Travis
];

/// The part of GitHub's event file that is read.
#[derive(Deserialize)]
struct Event {
    repository: Repository,
}

#[derive(Deserialize)]
struct Repository {
    default_branch: String,
}

/// Whether this run may save under this name; `exists` tells whether a baseline would be replaced.
///
/// # Errors
///
/// When it may not: exit code 96.
pub fn may_save(name: &BaselineName, exists: bool, ci: Ci, saving: Saving, environment: &Environment) -> Result<()> {
    if !exists || ci == Ci::No || saving == Saving::FromAnywhere {
        return Ok(());
    }
    let Some(what) = not_the_default_branch(environment) else { return Ok(()) };
    Err(Error::new(
        ExitCode::Configuration,
        format!("baseline `{name}` is not replaced: this run is for {what}, and others compare with that baseline"),
    )
    .help(
        "save from the default branch only, save under a name of its own, or allow it with `allow-save-in-ci = true` in the \
         `[defaults]` of `httpbench.toml`",
    ))
}

/// What this run is for, if that is known not to be the default branch.
fn not_the_default_branch(environment: &Environment) -> Option<String> {
    let value = |name: &str| {
        environment.get(name).and_then(|value| value.to_str()).filter(|value| !value.is_empty() && *value != "false")
    };
    let event = value("GITHUB_EVENT_NAME").unwrap_or_default();
    if event.starts_with("pull_request") || event == "merge_group" {
        return Some(format!("a `{event}` event"));
    }
    if let Some(name) = PULL_REQUEST.into_iter().find(|name| value(name).is_some()) {
        return Some(format!("a pull request (`{name}` is set)"));
    }
    let (branch, default) = match (value("GITHUB_REF"), value("CI_COMMIT_REF_NAME")) {
        (Some(reference), _) if reference.starts_with("refs/pull/") => return Some(format!("`{reference}`")),
        (Some(reference), _) => (reference.to_owned(), format!("refs/heads/{}", github_default_branch(environment)?)),
        (None, Some(branch)) => (branch.to_owned(), value("CI_DEFAULT_BRANCH")?.to_owned()),
        (None, None) => return None,
    };
    (branch != default).then(|| format!("`{branch}`, not the default branch `{default}`"))
}

fn github_default_branch(environment: &Environment) -> Option<String> {
    let text = fs::read(environment.get("GITHUB_EVENT_PATH")?).ok()?;
    Some(serde_json::from_slice::<Event>(&text).ok()?.repository.default_branch)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        variables.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    fn replaces(variables: &[(&str, &str)]) -> Result<()> {
        may_save(&BaselineName::default(), true, Ci::Yes, Saving::default(), &environment(variables))
    }

    #[test]
    fn pull_requests_of_every_known_service_do_not_replace_a_baseline() {
        for variables in [
            &[("GITHUB_EVENT_NAME", "pull_request"), ("GITHUB_REF", "refs/pull/7/merge")][..],
            &[("GITHUB_EVENT_NAME", "pull_request_target"), ("GITHUB_REF", "refs/heads/main")],
            &[("GITHUB_REF", "refs/pull/7/merge")],
            &[("CI_MERGE_REQUEST_ID", "7")],
            &[("TRAVIS_PULL_REQUEST", "7")],
            &[("CI_COMMIT_REF_NAME", "feature"), ("CI_DEFAULT_BRANCH", "main")],
        ] {
            let error = replaces(variables).expect_err("it is for a pull request");
            assert_eq!(error.exit, ExitCode::Configuration);
            assert!(error.help.as_ref().is_some_and(|help| help.contains("allow-save-in-ci")), "{variables:?}");
        }
    }

    #[test]
    fn default_branch_and_unknown_services_do() {
        for variables in [
            &[][..],
            &[("GITHUB_EVENT_NAME", "push"), ("GITHUB_REF", "refs/heads/main")],
            &[("TRAVIS_PULL_REQUEST", "false"), ("CI_MERGE_REQUEST_ID", "")],
            &[("CI_COMMIT_REF_NAME", "main"), ("CI_DEFAULT_BRANCH", "main")],
        ] {
            replaces(variables).unwrap_or_else(|error| panic!("{variables:?}: {error}"));
        }
    }

    #[test]
    fn other_branch_is_told_from_the_default_one_by_githubs_event_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let event = folder.path().join("event.json");
        fs::write(&event, r#"{"ref": "x", "repository": {"default_branch": "trunk", "id": 1}}"#).expect("written");
        let event = event.to_str().expect("text");
        let on = |reference| replaces(&[("GITHUB_REF", reference), ("GITHUB_EVENT_PATH", event)]);
        on("refs/heads/trunk").expect("the default branch");
        let error = on("refs/heads/feature").expect_err("another branch");
        assert!(error.what.contains("refs/heads/feature") && error.what.contains("trunk"), "{error}");
        on("refs/tags/v1").expect_err("a tag");
    }

    #[test]
    fn new_names_runs_by_hand_and_allowed_ones_are_never_refused() {
        let pull_request = environment(&[("GITHUB_EVENT_NAME", "pull_request")]);
        let name = BaselineName::default();
        may_save(&name, false, Ci::Yes, Saving::default(), &pull_request).expect("a new name");
        may_save(&name, true, Ci::No, Saving::default(), &pull_request).expect("by hand");
        may_save(&name, true, Ci::Yes, Saving::FromAnywhere, &pull_request).expect("allowed");
    }

    #[test]
    fn ci_is_what_services_set_it_to() {
        let of = |value| Ci::of(&environment(&[("CI", value)]));
        assert_eq!([of("true"), of("1"), of("True")], [Ci::Yes; 3]);
        assert_eq!([of(""), of("false"), of("0"), Ci::of(&Environment::default())], [Ci::No; 4]);
    }
}
