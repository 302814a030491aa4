//! Where and how a baseline was made: what must be equal before its numbers alone may be compared.
//!
//! Says what differs and how much it matters; whether that ends in `inconclusive` is decided by the verdict. Invariant: two
//! fingerprints taken on one machine for one build are equal, so nothing that changes by itself (load, frequency, time) is in it.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::cargo::{Cargo, CargoOptions, FeatureBase, RunCargo, StandardError};
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::measure::{cpu_quota, usable_cores};

/// What a measurement depends on beside the server's source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// As the processor calls itself; `None` where the system does not tell.
    pub cpu_model: Option<String>,
    /// Hardware threads that this process may use.
    pub cores: u32,
    /// CPU time that the control group allows, in thousandths of a core; `None` without a bound.
    pub quota_millicores: Option<u64>,
    /// The system and, on Linux, its distribution.
    pub os: String,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// How the server was built.
    #[serde(flatten)]
    pub build: BuildFacts,
    /// The version of `cargo-httpbench`.
    pub httpbench: String,
}

/// How a server was built.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildFacts {
    /// The target triple.
    pub target: String,
    /// The cargo profile.
    pub profile: String,
    /// `default`, `none` or `all`, and what was added to it, sorted.
    pub features: String,
    /// The compiler, as `rustc -V` calls itself.
    pub toolchain: String,
}

/// One part of a fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Field {
    /// The target triple: with another one, not even the executable can be used.
    Target,
    /// The processor's name.
    CpuModel,
    /// Usable hardware threads.
    Cores,
    /// The control group's bound.
    Quota,
    /// System and distribution.
    Os,
    /// The cargo profile.
    Profile,
    /// Cargo features.
    Features,
    /// The compiler.
    Toolchain,
    /// The kernel's release.
    Kernel,
    /// Our own version.
    Httpbench,
}

/// How much a difference matters to numbers that are compared without measuring again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The numbers say nothing about each other.
    NotComparable,
    /// Worth a word.
    Note,
}

/// One part that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Which part.
    pub field: Field,
    /// On this side; `unknown` where it could not be told.
    pub here: String,
    /// On the other.
    pub there: String,
    /// How much it matters.
    pub severity: Severity,
}

impl Field {
    /// As messages call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Target => "target",
            Self::CpuModel => "CPU model",
            Self::Cores => "usable cores",
            Self::Quota => "CPU quota",
            Self::Os => "operating system",
            Self::Profile => "profile",
            Self::Features => "features",
            Self::Toolchain => "toolchain",
            Self::Kernel => "kernel",
            Self::Httpbench => "cargo-httpbench",
        }
    }

    /// What numbers alone must agree in: whatever else makes a server faster or slower than its own reference.
    const fn severity(self) -> Severity {
        match self {
            Self::Kernel | Self::Httpbench => Severity::Note,
            _ => Severity::NotComparable,
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: `{}` here, `{}` there", self.field.name(), self.here, self.there)
    }
}

impl BuildFacts {
    /// What is built with these options by this cargo.
    ///
    /// # Errors
    ///
    /// When the compiler cannot be asked for its version: exit code 101.
    pub fn ask(cargo: &Cargo, runner: &mut dyn RunCargo) -> Result<Self> {
        let mut call = cargo.call(vec![OsString::from("-vV")], StandardError::Capture);
        call.program =
            cargo.environment.get("RUSTC").filter(|rustc| !rustc.is_empty()).map_or("rustc".into(), PathBuf::from);
        let output = runner.run(&call)?;
        let text = String::from_utf8_lossy(&output.stdout);
        let (Some(version), Some(host)) =
            (text.lines().next(), text.lines().find_map(|line| line.strip_prefix("host: ")))
        else {
            return Err(Error::new(ExitCode::BuildFailed, "the compiler does not tell its version")
                .details(
                    format!("`{}`", call.command_line()),
                    String::from_utf8_lossy(&output.stderr).lines().map(str::to_owned),
                )
                .help("check that `rustc -vV` works in this folder"));
        };
        let options = &cargo.options;
        Ok(Self {
            target: options.target.clone().unwrap_or_else(|| host.trim().to_owned()),
            profile: options.profile.clone(),
            features: features(options),
            toolchain: version.trim().to_owned(),
        })
    }
}

/// `default, a, b`: one text for one set of features, in whatever order they were given.
fn features(options: &CargoOptions) -> String {
    let base = match options.feature_base {
        FeatureBase::All => return "all".to_owned(),
        FeatureBase::Default => "default",
        FeatureBase::None => "none",
    };
    let mut named: Vec<&str> = options.features.iter().map(String::as_str).collect();
    named.sort_unstable();
    named.dedup();
    std::iter::once(base).chain(named).collect::<Vec<_>>().join(", ")
}

impl Fingerprint {
    /// This machine, and a server that was built like this.
    #[must_use]
    pub fn of_this_machine(build: BuildFacts) -> Self {
        let read = |path: &str| fs::read_to_string(path).ok();
        let cores = match usable_cores() {
            0 => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            known => known,
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small positive number")]
        let quota_millicores = cpu_quota().map(|cores| (cores * 1e3).round() as u64);
        let distribution = read("/etc/os-release").and_then(|text| distribution(&text));
        Self {
            cpu_model: read("/proc/cpuinfo").and_then(|text| cpu_model(&text)),
            cores: u32::try_from(cores).unwrap_or(u32::MAX),
            quota_millicores,
            os: [Some(std::env::consts::OS.to_owned()), distribution]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join(" "),
            kernel: nix::sys::utsname::uname().ok().map(|name| name.release().to_string_lossy().into_owned()),
            build,
            httpbench: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    /// What differs, what matters most first. A processor that is not known equals none, not even another unknown one.
    #[must_use]
    pub fn compare(&self, there: &Self) -> Vec<Difference> {
        let told = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
        let quota = |value: Option<u64>| match value {
            Some(millicores) => format!("{}.{:03} cores", millicores / 1_000, millicores % 1_000),
            None => "none".to_owned(),
        };
        let unknown_cpu = self.cpu_model.is_none();
        let (build, built_there) = (&self.build, &there.build);
        [
            (Field::Target, build.target.clone(), built_there.target.clone()),
            (Field::CpuModel, told(&self.cpu_model), told(&there.cpu_model)),
            (Field::Cores, self.cores.to_string(), there.cores.to_string()),
            (Field::Quota, quota(self.quota_millicores), quota(there.quota_millicores)),
            (Field::Os, self.os.clone(), there.os.clone()),
            (Field::Profile, build.profile.clone(), built_there.profile.clone()),
            (Field::Features, build.features.clone(), built_there.features.clone()),
            (Field::Toolchain, build.toolchain.clone(), built_there.toolchain.clone()),
            (Field::Kernel, told(&self.kernel), told(&there.kernel)),
            (Field::Httpbench, self.httpbench.clone(), there.httpbench.clone()),
        ]
        .into_iter()
        .filter(|(field, here, there)| here != there || (*field == Field::CpuModel && unknown_cpu))
        .map(|(field, here, there)| Difference { field, here, there, severity: field.severity() })
        .collect()
    }
}

/// `model name` of the first processor, or the numbers by which Arm's processors are known.
fn cpu_model(cpuinfo: &str) -> Option<String> {
    let value = |key: &str| {
        cpuinfo.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            (name.trim() == key && !value.trim().is_empty()).then(|| value.trim().to_owned())
        })
    };
    value("model name")
        .or_else(|| Some(format!("Arm {} part {}", value("CPU implementer")?, value("CPU part")?)))
        .or_else(|| value("uarch"))
}

/// `ubuntu 24.04`; see `os-release(5)`.
fn distribution(os_release: &str) -> Option<String> {
    let value = |key: &str| {
        os_release.lines().find_map(|line| {
            let (name, value) = line.split_once('=')?;
            (name == key).then(|| value.trim().trim_matches(['"', '\'']).to_owned())
        })
    };
    let id = value("ID")?;
    Some(match value("VERSION_ID") {
        Some(version) => format!("{id} {version}"),
        None => id,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::baseline::sample;
    use crate::cargo::CargoOutput;
    use crate::environment::Environment;

    fn fields(here: &Fingerprint, there: &Fingerprint) -> Vec<(Field, Severity)> {
        here.compare(there).into_iter().map(|difference| (difference.field, difference.severity)).collect()
    }

    #[test]
    fn thousand_readings_on_one_machine_are_equal() {
        let first = Fingerprint::of_this_machine(sample::build_facts());
        assert!(first.cores > 0);
        for _ in 0..1_000 {
            assert_eq!(Fingerprint::of_this_machine(sample::build_facts()), first);
        }
    }

    #[test]
    fn other_processor_is_not_comparable_and_both_are_named() {
        let here = Fingerprint { cpu_model: Some("EPYC 7763".to_owned()), ..sample::fingerprint() };
        let there = Fingerprint { cpu_model: Some("EPYC 9V74".to_owned()), ..sample::fingerprint() };
        let differences = here.compare(&there);
        assert_eq!(differences.len(), 1);
        assert_eq!(differences[0].severity, Severity::NotComparable);
        assert_eq!(differences[0].to_string(), "CPU model: `EPYC 7763` here, `EPYC 9V74` there");
    }

    #[test]
    fn processor_that_is_not_known_equals_none() {
        let unknown = Fingerprint { cpu_model: None, ..sample::fingerprint() };
        let not_comparable = vec![(Field::CpuModel, Severity::NotComparable)];
        assert_eq!(fields(&unknown, &sample::fingerprint()), not_comparable);
        assert_eq!(fields(&sample::fingerprint(), &unknown), not_comparable);
        assert_eq!(fields(&unknown, &unknown), not_comparable);
        assert!(unknown.compare(&unknown)[0].to_string().contains("`unknown` here"));
    }

    #[test]
    fn kernel_and_our_own_version_are_notes_and_everything_else_is_not_comparable() {
        let here = sample::fingerprint();
        assert_eq!(here.compare(&here), []);
        let there = Fingerprint {
            cpu_model: Some("other".to_owned()),
            cores: 99,
            quota_millicores: Some(1_500),
            os: "plan9".to_owned(),
            kernel: Some("0.0.1".to_owned()),
            build: BuildFacts {
                target: "other".to_owned(),
                profile: "other".to_owned(),
                features: "other".to_owned(),
                toolchain: "other".to_owned(),
            },
            httpbench: "0.0.0".to_owned(),
        };
        let (notes, serious): (Vec<_>, Vec<_>) =
            fields(&here, &there).into_iter().partition(|(_, severity)| *severity == Severity::Note);
        assert_eq!(notes.into_iter().map(|(field, _)| field).collect::<Vec<_>>(), [Field::Kernel, Field::Httpbench]);
        assert_eq!(serious.len(), 8);
    }

    #[test]
    fn order_of_features_makes_no_difference() {
        let options = |features: &[&str], feature_base| CargoOptions {
            features: features.iter().map(|feature| (*feature).to_owned()).collect(),
            feature_base,
            ..CargoOptions::default()
        };
        assert_eq!(features(&options(&["b", "a", "b"], FeatureBase::Default)), "default, a, b");
        assert_eq!(features(&options(&[], FeatureBase::None)), "none");
        assert_eq!(features(&options(&["a"], FeatureBase::All)), "all");
    }

    #[test]
    fn processors_and_distributions_are_told_by_their_own_files() {
        assert_eq!(
            cpu_model("processor\t: 0\nmodel name\t: AMD EPYC 7763\nmodel name\t: x").as_deref(),
            Some("AMD EPYC 7763")
        );
        assert_eq!(cpu_model("CPU implementer\t: 0x41\nCPU part\t: 0xd0c").as_deref(), Some("Arm 0x41 part 0xd0c"));
        assert_eq!(cpu_model("model name\t:\n"), None);
        assert_eq!(distribution("NAME=\"Ubuntu\"\nID=ubuntu\nVERSION_ID=\"24.04\"").as_deref(), Some("ubuntu 24.04"));
        assert_eq!(distribution("ID=arch").as_deref(), Some("arch"));
        assert_eq!(distribution(""), None);
    }

    #[test]
    fn compiler_tells_version_and_host_and_a_chosen_target_wins() {
        use std::os::unix::process::ExitStatusExt;
        use std::process::ExitStatus;

        let answer = |text: &'static str| {
            move |_: &crate::cargo::CargoCall| {
                Ok(CargoOutput {
                    status: ExitStatus::from_raw(0),
                    stdout: text.into(),
                    stderr: b"no such command".into(),
                })
            }
        };
        let told = "rustc 1.95.0 (abc 2026-01-01)\nbinary: rustc\nhost: x86_64-unknown-linux-gnu\n";
        let mut options = CargoOptions::default();
        let facts = |options: &CargoOptions, text| {
            let cargo = Cargo::new(std::path::Path::new("/"), Environment::default(), options.clone());
            BuildFacts::ask(&cargo, &mut answer(text))
        };
        let native = facts(&options, told).expect("it tells");
        assert_eq!(native.toolchain, "rustc 1.95.0 (abc 2026-01-01)");
        assert_eq!((native.target.as_str(), native.profile.as_str()), ("x86_64-unknown-linux-gnu", "release"));
        options.target = Some("x86_64-unknown-linux-musl".to_owned());
        assert_eq!(facts(&options, told).expect("it tells").target, "x86_64-unknown-linux-musl");
        let error = facts(&options, "").expect_err("nothing is told");
        assert_eq!((error.exit, error.details[0].lines[0].as_str()), (ExitCode::BuildFailed, "no such command"));
    }
}
