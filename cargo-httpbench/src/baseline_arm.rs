//! The arm that a candidate is compared with: a stored executable, or the server of another git revision.
//!
//! Both arms are started by the candidate's configuration and driven by its scenarios. Why there is no such arm is told in the
//! words of whoever looked for it; whether that fails the run is the policy's affair.

use std::path::Path;

use crate::baseline::{
    BaselineScenario, Found, Identity, SetUp, Sha256Hex, StoredBaseline, StoredExecutable, definition, identical,
};
use crate::cli::{ComparisonOptions, IdenticalServers};
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::interrupt::Interrupt;
use crate::measure::{Arms, Selected};
use crate::prepare::Listed;
use crate::process::{Available, redirect_available};
use crate::revision::Checkout;
use crate::server::{Note, PortPolicy, Server, ServerSpec};

/// What the candidate is compared with.
#[derive(Debug)]
pub enum Opponent {
    /// Nobody asked for a comparison.
    Nobody,
    /// A server that can be started.
    Arm(Box<BaselineArm>),
    /// The very same server: nothing needs to be measured. With what, in words.
    Identical(String),
    /// It was asked for, and is not there.
    Absent(Error),
}

/// A server that the candidate is compared with.
#[derive(Debug)]
pub struct BaselineArm {
    /// How it is started.
    pub spec: ServerSpec,
    /// What a person calls it: ``revision `main` (1a2b3c4)``.
    pub with: String,
    /// The scenarios that were kept with it; a git revision has none of its own.
    pub kept: Option<Vec<BaselineScenario>>,
}

/// Scenarios that only one side has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OneSided {
    /// In the candidate only: measured, and not compared.
    pub new: Vec<String>,
    /// In the baseline only.
    pub removed: Vec<Removed>,
}

/// A scenario that the baseline has and the candidate has not.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Removed {
    /// Its name.
    pub name: String,
    /// A new scenario that sends the same under the same load.
    pub looks_renamed_to: Option<String>,
}

/// A stored baseline as an arm, or why it is none.
///
/// # Errors
///
/// When what is to be compared cannot be read.
pub fn from_baseline(found: Found, candidate: &ServerSpec, options: &ComparisonOptions) -> Result<Opponent> {
    let stored = match found {
        Found::Stored(stored) => stored,
        Found::Missing(missing) => return Ok(Opponent::Absent(missing.error(ExitCode::NothingCompared))),
    };
    let with = told(&stored);
    let again = format!("save it again: `cargo httpbench --save-baseline {}`", stored.baseline.name.as_str());
    let absent = |why: String| Ok(Opponent::Absent(Error::new(ExitCode::NothingCompared, why).help(again.clone())));
    let executable = match &stored.executable {
        StoredExecutable::Whole(path) => path.clone(),
        StoredExecutable::Corrupt { expected, found } => {
            return absent(format!(
                "the executable of {with} was damaged: its SHA-256 is {}, not {}",
                found.short(),
                expected.short()
            ));
        }
        StoredExecutable::Missing => return absent(format!("the executable of {with} is missing")),
        StoredExecutable::NotStored => return absent(format!("{with} was saved without its executable")),
    };
    if options.identical == IdenticalServers::Trusted && options.save.is_none() {
        let same = identical(&stored, &candidate.executable, &SetUp::of(candidate)?)?;
        if same == Identity::Identical {
            return Ok(Opponent::Identical(with));
        }
    }
    let spec = ServerSpec { executable, ..candidate.clone() };
    Ok(Opponent::Arm(Box::new(BaselineArm { spec, with, kept: Some(stored.baseline.scenarios) })))
}

/// A revision's server as an arm.
///
/// # Errors
///
/// When executables or copied files cannot be read.
pub fn from_revision(
    spec: ServerSpec,
    with: String,
    candidate: &ServerSpec,
    options: &ComparisonOptions,
) -> Result<Opponent> {
    let digest = |path: &Path| {
        Sha256Hex::of_file(path)
            .map_err(|cause| Error::unexpected(format!("the executable `{}` cannot be read", path.display()), cause))
    };
    if options.identical == IdenticalServers::Trusted
        && options.save.is_none()
        && digest(&spec.executable)? == digest(&candidate.executable)?
        && SetUp::of(&spec)?.differences(&SetUp::of(candidate)?).is_empty()
    {
        return Ok(Opponent::Identical(with));
    }
    Ok(Opponent::Arm(Box::new(BaselineArm { spec, with, kept: None })))
}

fn told(stored: &StoredBaseline) -> String {
    let baseline = &stored.baseline;
    let commit =
        baseline.commit.as_ref().map(|commit| format!(", commit {}", commit.sha.get(..10).unwrap_or(&commit.sha)));
    format!("baseline `{}` (saved {:.0}{})", baseline.name.as_str(), baseline.saved_at, commit.unwrap_or_default())
}

impl BaselineArm {
    /// The scenarios that only one side has. `listed` is everything that the candidate holds, selected or not.
    #[must_use]
    pub fn one_sided(&self, listed: &[Listed], selected: &[Selected]) -> OneSided {
        let Some(kept) = &self.kept else { return OneSided::default() };
        let new: Vec<&Selected> =
            selected.iter().filter(|scenario| !kept.iter().any(|kept| kept.name == scenario.listing.name)).collect();
        let definition_of = |scenario: &Selected| definition(scenario.listing.request.as_ref().ok(), &scenario.load);
        let removed = kept.iter().filter(|kept| !listed.iter().any(|listed| listed.listing.name == kept.name));
        OneSided {
            removed: removed
                .map(|kept| Removed {
                    name: kept.name.clone(),
                    looks_renamed_to: new
                        .iter()
                        .find(|scenario| definition_of(scenario) == kept.definition)
                        .map(|scenario| scenario.listing.name.clone()),
                })
                .collect(),
            new: new.into_iter().map(|scenario| scenario.listing.name.clone()).collect(),
        }
    }
}

/// Finds out how both arms can run, and prepares them for it: each is started alone, and if either does not listen where it was
/// asked to, the fixed ports of both are redirected, so that both pay the same for it. Where the system refuses that, arms with
/// the same fixed port run one at a time.
///
/// # Errors
///
/// When an arm does not get ready, or a signal comes.
pub fn settle_ports(
    candidate: &mut ServerSpec,
    arm: &mut BaselineArm,
    checkout: Option<&Checkout>,
    interrupt: &Interrupt,
) -> Result<Arms> {
    let mut fixed = Vec::new();
    for spec in [&*candidate, &arm.spec] {
        let server = Server::start(spec, interrupt).map_err(|error| match checkout {
            Some(checkout) if std::ptr::eq(spec, &raw const arm.spec) => {
                with_missing_files(error, checkout, &candidate.package_root)
            }
            _ => error,
        })?;
        fixed.extend(server.notes().iter().find_map(|note| match note {
            Note::IgnoredPort { bound, .. } => Some(*bound),
            _ => None,
        }));
        server.stop()?;
    }
    let arms = arrange(&fixed, || redirect_available(interrupt))?;
    if let Arms::Together { ports } = arms {
        candidate.ports = ports;
        arm.spec.ports = ports;
    }
    Ok(arms)
}

/// How two arms run of which these are the ports that they listened on without being asked to.
fn arrange(fixed: &[u16], available: impl FnOnce() -> Result<Available>) -> Result<Arms> {
    if fixed.is_empty() {
        return Ok(Arms::default());
    }
    Ok(match (available()?, fixed) {
        (Ok(()), _) => Arms::Together { ports: PortPolicy::Redirect },
        (Err(why), [one, other]) if one == other => Arms::OneAtATime { why },
        // One obeys, or each has a port of its own: neither is in the other's way.
        (Err(_), _) => Arms::default(),
    })
}

/// An old server that does not start often misses a file that git ignores: those that are here and not there are named.
fn with_missing_files(error: Error, checkout: &Checkout, package_root: &Path) -> Error {
    match checkout.ignored_files_missing_there(package_root) {
        Ok(missing) if !missing.is_empty() => error
            .details(
                "files that git ignores, which stand here and not in the revision",
                missing.iter().map(|path| path.display().to_string()),
            )
            .help("if it needs one of them, name it in `server.copy`, or create it in `server.setup`"),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REDIRECTED: Arms = Arms::Together { ports: PortPolicy::Redirect };

    fn refused() -> Result<Available> {
        Ok(Err("a sandbox forbids it".to_owned()))
    }

    #[test]
    fn arms_that_obey_run_together_and_nothing_is_tried() {
        assert_eq!(arrange(&[], || panic!("tried")).expect("settled"), Arms::default());
    }

    #[test]
    fn fixed_ports_of_both_are_redirected_even_if_only_one_has_one() {
        for fixed in [&[3000][..], &[3000, 3000], &[3000, 8080]] {
            assert_eq!(arrange(fixed, || Ok(Ok(()))).expect("settled"), REDIRECTED, "{fixed:?}");
        }
    }

    #[test]
    fn arms_with_the_same_fixed_port_run_one_at_a_time_where_redirection_is_refused() {
        let arms = arrange(&[3000, 3000], refused).expect("settled");
        assert_eq!(arms, Arms::OneAtATime { why: "a sandbox forbids it".to_owned() });
    }

    #[test]
    fn arms_that_are_not_in_each_others_way_run_together_where_redirection_is_refused() {
        for fixed in [&[3000][..], &[3000, 8080]] {
            assert_eq!(arrange(fixed, refused).expect("settled"), Arms::default(), "{fixed:?}");
        }
    }

    #[test]
    fn signal_during_the_trial_ends_the_run() {
        let interrupted = || Err(Error::new(ExitCode::Signal(2), "interrupted by SIGINT"));
        assert_eq!(arrange(&[3000, 3000], interrupted).expect_err("interrupted").exit, ExitCode::Signal(2));
    }
}
