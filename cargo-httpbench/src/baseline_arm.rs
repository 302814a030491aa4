//! The arm that a candidate is compared with: a stored executable, or the server of another git revision.
//!
//! Both arms are started by the candidate's configuration and driven by its scenarios. Why there is no such arm is told in the
//! words of whoever looked for it; whether that fails the run is the policy's affair.

use std::path::Path;

use crate::baseline::{
    Baseline, BaselineScenario, Field, Fingerprint, Found, Identity, SetUp, Sha256Hex, StoredBaseline,
    StoredExecutable, definition, identical,
};
use crate::bench::Selection;
use crate::cli::{ComparisonOptions, IdenticalServers};
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::interrupt::Interrupt;
use crate::measure::{Arms, Selected};
use crate::numbers_only::{NumbersOnly, NumbersOnlyBecause};
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
    /// One whose server cannot be started here: its numbers, beside the reference server.
    Numbers(Box<NumbersOnly>),
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
    /// Which one exactly.
    pub origin: Origin,
    /// What was kept with it; a git revision has no scenarios of its own.
    pub kept: Option<Baseline>,
}

/// Which server a baseline arm is, for whoever reads a verdict long after.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Origin {
    /// The whole object name of the commit that it was built from, if it was built in a repository.
    pub commit: Option<String>,
    /// Of its executable; `None` where numbers alone were kept.
    pub executable_sha256: Option<Sha256Hex>,
}

/// Scenarios that only one side has, or that are not on one side what they are on the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OneSided {
    /// In the candidate only: measured, and not compared.
    pub new: Vec<String>,
    /// In the baseline only.
    pub removed: Vec<Removed>,
    /// On both sides, with another request or load than when the baseline was saved. The candidate's drives both arms.
    pub redefined: Vec<String>,
}

/// A scenario that the baseline has and the candidate has not.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
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
    let (executable, record) = match (&stored.executable, &stored.baseline.executable) {
        (StoredExecutable::Whole(path), Some(record)) => (path.clone(), record),
        (StoredExecutable::Corrupt { expected, found }, _) => {
            return absent(format!(
                "the executable of {with} was damaged: its SHA-256 is {}, not {}",
                found.short(),
                expected.short()
            ));
        }
        (StoredExecutable::Missing, _) => return absent(format!("the executable of {with} is missing")),
        (StoredExecutable::NotStored | StoredExecutable::Whole(_), _) => {
            return absent(format!("{with} was saved without its executable"));
        }
    };
    let origin = Origin {
        commit: stored.baseline.commit.as_ref().map(|commit| commit.sha.clone()),
        executable_sha256: Some(record.sha256.clone()),
    };
    if options.identical == IdenticalServers::Trusted && options.save.is_none() {
        let same = identical(&stored, &candidate.executable, &SetUp::of(candidate)?)?;
        if same == Identity::Identical {
            return Ok(Opponent::Identical(with));
        }
    }
    let spec = ServerSpec { executable, ..candidate.clone() };
    Ok(Opponent::Arm(Box::new(BaselineArm { spec, with, origin, kept: Some(stored.baseline) })))
}

/// A revision's server as an arm. `commit` is the one that it was built from.
///
/// # Errors
///
/// When executables or copied files cannot be read.
pub fn from_revision(
    spec: ServerSpec,
    with: String,
    commit: String,
    candidate: &ServerSpec,
    options: &ComparisonOptions,
) -> Result<Opponent> {
    let digest = |path: &Path| {
        Sha256Hex::of_file(path)
            .map_err(|cause| Error::unexpected(format!("the executable `{}` cannot be read", path.display()), cause))
    };
    let executable_sha256 = digest(&spec.executable)?;
    if options.identical == IdenticalServers::Trusted
        && options.save.is_none()
        && executable_sha256 == digest(&candidate.executable)?
        && SetUp::of(&spec)?.differences(&SetUp::of(candidate)?).is_empty()
    {
        return Ok(Opponent::Identical(with));
    }
    let origin = Origin { commit: Some(commit), executable_sha256: Some(executable_sha256) };
    Ok(Opponent::Arm(Box::new(BaselineArm { spec, with, origin, kept: None })))
}

/// A stored baseline as a person calls it.
pub(crate) fn told(stored: &StoredBaseline) -> String {
    let baseline = &stored.baseline;
    let commit =
        baseline.commit.as_ref().map(|commit| format!(", commit {}", commit.sha.get(..10).unwrap_or(&commit.sha)));
    format!("baseline `{}` (saved {:.0}{})", baseline.name.as_str(), baseline.saved_at, commit.unwrap_or_default())
}

impl Opponent {
    /// What its report calls it, which server it is, and why only its numbers are compared, if so. `None` where nothing is compared.
    #[must_use]
    pub fn known(&self) -> Option<(&str, &Origin, Option<&NumbersOnlyBecause>)> {
        match self {
            Self::Arm(arm) => Some((&arm.with, &arm.origin, None)),
            Self::Numbers(numbers) => Some((&numbers.with, &numbers.origin, Some(&numbers.because))),
            Self::Nobody | Self::Identical(_) | Self::Absent(_) => None,
        }
    }

    /// The scenarios that only one side has. `listed` is everything that the candidate holds, selected or not; what a filter leaves
    /// out is not missed.
    #[must_use]
    pub fn one_sided(&self, listed: &[Listed], selected: &[Selected], selection: &Selection) -> OneSided {
        let of = |kept: &Baseline| OneSided::of(&kept.scenarios, listed, selected, selection);
        match self {
            Self::Arm(arm) => arm.kept.as_ref().map(of).unwrap_or_default(),
            // Of what was redefined, the numbers are not compared, and its verdict says so.
            Self::Numbers(numbers) => OneSided { redefined: Vec::new(), ..of(&numbers.baseline) },
            Self::Nobody | Self::Identical(_) | Self::Absent(_) => OneSided::default(),
        }
    }

    /// What differs between its server or machine and the candidate's, in words.
    ///
    /// # Errors
    ///
    /// When a file that the candidate copies cannot be read.
    pub fn differences(&self, candidate: &ServerSpec, here: &Fingerprint) -> Result<Vec<String>> {
        match self {
            Self::Arm(arm) => arm.differences(candidate, here),
            Self::Numbers(numbers) => Ok(numbers.told_differences()),
            Self::Nobody | Self::Identical(_) | Self::Absent(_) => Ok(Vec::new()),
        }
    }
}

impl BaselineArm {
    /// How its executable was built and started otherwise than the candidate's, in words: both are measured on this machine by the
    /// candidate's configuration, but what made the executable stays.
    fn differences(&self, candidate: &ServerSpec, here: &Fingerprint) -> Result<Vec<String>> {
        let Some(kept) = &self.kept else { return Ok(Vec::new()) };
        let built = here.compare(&kept.fingerprint).into_iter().filter(|difference| {
            matches!(difference.field, Field::Target | Field::Profile | Field::Features | Field::Toolchain)
        });
        let started = SetUp::of(candidate)?.differences(&kept.set_up).into_iter();
        let started = started.map(|difference| format!("{difference}, and the candidate's is taken for both"));
        Ok(built.map(|difference| difference.to_string()).chain(started).collect())
    }
}

impl OneSided {
    fn of(kept: &[BaselineScenario], listed: &[Listed], selected: &[Selected], selection: &Selection) -> Self {
        let new: Vec<&Selected> =
            selected.iter().filter(|scenario| !kept.iter().any(|kept| kept.name == scenario.listing.name)).collect();
        let definition_of = |scenario: &Selected| definition(scenario.listing.request.as_ref().ok(), &scenario.load);
        let is_listed = |name: &str| listed.iter().any(|listed| listed.listing.name == name);
        let removed = kept.iter().filter(|kept| !is_listed(&kept.name) && selection.takes_name(&kept.name));
        let kept_as = |scenario: &Selected| kept.iter().find(|kept| kept.name == scenario.listing.name);
        let redefined = selected
            .iter()
            .filter(|scenario| kept_as(scenario).is_some_and(|kept| kept.definition != definition_of(scenario)));
        Self {
            redefined: redefined.map(|scenario| scenario.listing.name.clone()).collect(),
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
    use httpbench_core::model::{Location, Options, RequestSummary, ScenarioListing};

    use super::*;
    use crate::baseline::sample::{sample_baseline, scenario, server_spec};
    use crate::baseline::{BaselineScenario, ExecutableRecord, Kept};
    use crate::config::Layers;

    /// A scenario of the candidate that sends what the sample baseline's scenarios send to this target.
    fn selected(name: &str, target: &str) -> Selected {
        let request =
            RequestSummary { method: "GET".to_owned(), target: target.to_owned(), body_bytes: 0, checksum: 7 };
        Selected {
            bench: 0,
            listing: ScenarioListing {
                name: name.to_owned(),
                doc: String::new(),
                location: Location { file: "benches/http.rs".to_owned(), line: 1 },
                options: Options::default(),
                request: Ok(request),
            },
            load: Layers::default().settings().load,
        }
    }

    fn one_sided(kept: Option<Vec<BaselineScenario>>, candidate: &[Selected], selection: &Selection) -> OneSided {
        let origin = Origin { commit: None, executable_sha256: Some(Sha256Hex::of_bytes(b"server")) };
        let spec = server_spec(Path::new("/nowhere"));
        let kept = kept.map(|scenarios| Baseline { scenarios, ..sample_baseline() });
        let arm = Opponent::Arm(Box::new(BaselineArm { spec, with: "baseline `main`".to_owned(), origin, kept }));
        let listed: Vec<Listed> =
            candidate.iter().map(|scenario| Listed { bench: 0, listing: scenario.listing.clone() }).collect();
        let selected: Vec<Selected> =
            candidate.iter().filter(|scenario| selection.takes(&scenario.listing)).cloned().collect();
        arm.one_sided(&listed, &selected, selection)
    }

    fn removed(name: &str, renamed: Option<&str>) -> Removed {
        Removed { name: name.to_owned(), looks_renamed_to: renamed.map(str::to_owned) }
    }

    fn filtered(filter: &str) -> Selection {
        Selection { filters: vec![filter.to_owned()], ..Selection::default() }
    }

    #[test]
    fn scenarios_of_one_side_only_are_new_or_removed() {
        let kept = vec![scenario("index", "/"), scenario("search", "/search")];
        let candidate = [selected("index", "/"), selected("cart", "/cart")];
        let sides = one_sided(Some(kept), &candidate, &Selection::default());
        assert_eq!(
            sides,
            OneSided { new: vec!["cart".to_owned()], removed: vec![removed("search", None)], redefined: Vec::new() }
        );
    }

    #[test]
    fn removed_scenario_whose_request_and_load_a_new_one_has_looks_renamed() {
        let kept = vec![scenario("search", "/search")];
        let renamed = [selected("cart", "/cart"), selected("find", "/search")];
        let sides = one_sided(Some(kept.clone()), &renamed, &Selection::default());
        assert_eq!(sides.removed, [removed("search", Some("find"))]);
        let mut other_load = selected("find", "/search");
        other_load.load.connections += 1;
        let sides = one_sided(Some(kept), &[other_load], &Selection::default());
        assert_eq!(sides.removed, [removed("search", None)]);
    }

    #[test]
    fn scenario_with_another_request_or_load_than_it_was_kept_with_is_told() {
        let kept = || Some(vec![scenario("index", "/"), scenario("search", "/search")]);
        let moved = [selected("index", "/home"), selected("search", "/search")];
        let sides = one_sided(kept(), &moved, &Selection::default());
        assert_eq!(sides, OneSided { redefined: vec!["index".to_owned()], ..OneSided::default() });
        let mut paced = selected("search", "/search");
        paced.load.arrival_rate = Some(100.0);
        let sides = one_sided(kept(), &[selected("index", "/"), paced], &Selection::default());
        assert_eq!(sides.redefined, ["search"]);
    }

    #[test]
    fn what_the_executable_was_made_with_is_told_and_the_machine_is_not() {
        let candidate = server_spec(Path::new("/nowhere"));
        let mut baseline = sample_baseline();
        baseline.set_up = SetUp::of(&candidate).expect("it copies nothing");
        let here = baseline.fingerprint.clone();
        let of = |baseline: Baseline| {
            let origin = Origin { commit: None, executable_sha256: Some(Sha256Hex::of_bytes(b"server")) };
            let arm = BaselineArm { spec: candidate.clone(), with: String::new(), origin, kept: Some(baseline) };
            arm.differences(&candidate, &here).expect("nothing is copied")
        };
        let mut other_machine = baseline.clone();
        other_machine.fingerprint.cpu_model = Some("another".to_owned());
        assert_eq!(of(other_machine), Vec::<String>::new());
        baseline.fingerprint.build.profile = "dev".to_owned();
        baseline.set_up.args.push("--fast".to_owned());
        assert_eq!(
            of(baseline),
            ["profile: `release` here, `dev` there", "the arguments differ, and the candidate's is taken for both",]
        );
    }

    #[test]
    fn what_a_filter_leaves_out_is_neither_new_nor_removed() {
        let kept = vec![scenario("index", "/"), scenario("search", "/search"), scenario("gone", "/gone")];
        let candidate = [selected("index", "/"), selected("search", "/search"), selected("cart", "/cart")];
        let sides = one_sided(Some(kept.clone()), &candidate, &filtered("index"));
        assert_eq!(sides, OneSided::default());
        let skipped = Selection { skip: vec!["gone".to_owned()], ..Selection::default() };
        assert_eq!(one_sided(Some(kept.clone()), &candidate, &skipped).removed, []);
        assert_eq!(one_sided(Some(kept), &candidate, &filtered("gone")).removed, [removed("gone", None)]);
    }

    #[test]
    fn revision_has_no_scenarios_of_its_own_and_so_no_sides() {
        assert_eq!(one_sided(None, &[selected("index", "/")], &Selection::default()), OneSided::default());
    }

    /// A baseline `main` of a server whose executable holds these bytes.
    fn stored(bytes: &[u8], executable: StoredExecutable) -> Found {
        let sha256 = Sha256Hex::of_bytes(bytes);
        let mut baseline = sample_baseline();
        baseline.set_up = SetUp::of(&server_spec(Path::new("/nowhere"))).expect("it copies nothing");
        baseline.executable = Some(ExecutableRecord { sha256, size: bytes.len() as u64, kept: Kept::Whole });
        Found::Stored(Box::new(StoredBaseline { baseline, executable, folder: "/nowhere".into() }))
    }

    /// A candidate whose executable holds `server`.
    fn candidate(folder: &Path) -> ServerSpec {
        let executable = folder.join("shop");
        std::fs::write(&executable, "server").expect("written");
        ServerSpec { executable, ..server_spec(Path::new("/nowhere")) }
    }

    #[test]
    fn executable_that_is_not_whole_is_no_arm_and_says_how_to_get_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let candidate = candidate(folder.path());
        let hash = |text: &str| Sha256Hex::of_bytes(text.as_bytes());
        for (executable, word) in [
            (StoredExecutable::Missing, "is missing"),
            (StoredExecutable::NotStored, "saved without its executable"),
            (StoredExecutable::Corrupt { expected: hash("a"), found: hash("b") }, "was damaged"),
        ] {
            let opponent = from_baseline(stored(b"server", executable), &candidate, &ComparisonOptions::default());
            let Opponent::Absent(error) = opponent.expect("it is readable") else { panic!("an arm, though it {word}") };
            assert!(error.what.contains(word) && error.what.contains("`main`"), "{}", error.what);
            assert_eq!(error.help.as_deref(), Some("save it again: `cargo httpbench --save-baseline main`"));
        }
    }

    #[test]
    fn same_server_is_identical_unless_it_is_to_be_measured_or_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let candidate = candidate(folder.path());
        let path = folder.path().join("stored");
        let opponent = |bytes: &[u8], options: &ComparisonOptions| {
            from_baseline(stored(bytes, StoredExecutable::Whole(path.clone())), &candidate, options).expect("readable")
        };
        let usual = ComparisonOptions::default();
        assert!(
            matches!(opponent(b"server", &usual), Opponent::Identical(with) if with.starts_with("baseline `main`"))
        );
        let forced = ComparisonOptions { identical: IdenticalServers::Measured, ..usual.clone() };
        let saved = ComparisonOptions { save: Some("other".parse().expect("a name")), ..usual.clone() };
        for (bytes, options) in [(&b"other"[..], &usual), (b"server", &forced), (b"server", &saved)] {
            let Opponent::Arm(arm) = opponent(bytes, options) else { panic!("no arm") };
            assert_eq!((&arm.spec.executable, &arm.spec.name), (&path, &candidate.name));
        }
    }

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
