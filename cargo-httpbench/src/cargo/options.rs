//! What the user passed through to cargo, and how it is said to cargo again.

use std::ffi::OsString;
use std::path::PathBuf;

/// Cargo's own flags, with cargo's own meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CargoOptions {
    /// `-p`, `--workspace` or neither.
    pub packages: PackageChoice,
    /// `--exclude`, as package specifications.
    pub exclude: Vec<String>,
    /// `--bench`; empty takes those that are ours.
    pub benches: Vec<String>,
    /// `--bin`: the server.
    pub bin: Option<String>,
    /// `--features`, one by one.
    pub features: Vec<String>,
    /// What the features are added to.
    pub feature_base: FeatureBase,
    /// `--profile`.
    pub profile: String,
    /// `--target`.
    pub target: Option<String>,
    /// `--target-dir`, as the user wrote it.
    pub target_dir: Option<PathBuf>,
    /// `--manifest-path`, as the user wrote it.
    pub manifest_path: Option<PathBuf>,
    /// `--locked`, `--offline`, `--frozen`.
    pub lock: Vec<LockFlag>,
    /// `-j`.
    pub jobs: Option<String>,
    /// `--config`.
    pub config: Vec<String>,
    /// `-Z`.
    pub unstable: Vec<String>,
    /// `-q`, `-v`.
    pub verbosity: Verbosity,
    /// `--color`.
    pub color: Color,
}

/// Which packages are selected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PackageChoice {
    /// The package of the current directory, else the default members.
    #[default]
    Default,
    /// Those that match these specifications.
    Named(Vec<String>),
    /// Every member of the workspace.
    Workspace,
}

/// What chosen features are added to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FeatureBase {
    /// The default features.
    #[default]
    Default,
    /// No feature.
    None,
    /// Every feature.
    All,
}

/// How cargo treats lock file and network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockFlag {
    /// The lock file must not change.
    Locked,
    /// No network.
    Offline,
    /// Both.
    Frozen,
}

/// How much is said on standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verbosity {
    /// Errors and warnings.
    Quiet,
    /// Also what is being done.
    #[default]
    Normal,
    /// Also plans and reasons.
    Verbose,
}

/// When output is coloured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` says no.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Default for CargoOptions {
    fn default() -> Self {
        Self {
            packages: PackageChoice::Default,
            exclude: Vec::new(),
            benches: Vec::new(),
            bin: None,
            features: Vec::new(),
            feature_base: FeatureBase::Default,
            profile: "release".to_owned(),
            target: None,
            target_dir: None,
            manifest_path: None,
            lock: Vec::new(),
            jobs: None,
            config: Vec::new(),
            unstable: Vec::new(),
            verbosity: Verbosity::Normal,
            color: Color::Auto,
        }
    }
}

impl CargoOptions {
    /// What every cargo command understands: lock file, network, configuration, unstable flags.
    pub(crate) fn general_args(&self) -> Vec<String> {
        let mut args: Vec<String> = self
            .lock
            .iter()
            .map(|flag| match flag {
                LockFlag::Locked => "--locked".to_owned(),
                LockFlag::Offline => "--offline".to_owned(),
                LockFlag::Frozen => "--frozen".to_owned(),
            })
            .collect();
        for value in &self.config {
            args.extend(["--config".to_owned(), value.clone()]);
        }
        for flag in &self.unstable {
            args.extend(["-Z".to_owned(), flag.clone()]);
        }
        args.extend(match self.color {
            Color::Auto => None,
            Color::Always => Some("--color=always".to_owned()),
            Color::Never => Some("--color=never".to_owned()),
        });
        args
    }

    /// What `cargo build` understands beside that and beside its targets. Paths are those that [`super::Cargo::absolute`] makes.
    pub(crate) fn build_args(&self, absolute: impl Fn(&PathBuf) -> PathBuf) -> Vec<OsString> {
        let mut args: Vec<OsString> = vec!["--profile".into(), self.profile.clone().into()];
        if let Some(target) = &self.target {
            args.extend(["--target".into(), target.into()]);
        }
        if let Some(path) = &self.target_dir {
            args.extend(["--target-dir".into(), absolute(path).into()]);
        }
        if let Some(path) = &self.manifest_path {
            args.extend(["--manifest-path".into(), absolute(path).into()]);
        }
        if let Some(jobs) = &self.jobs {
            args.extend(["--jobs".into(), jobs.into()]);
        }
        if self.verbosity == Verbosity::Quiet {
            args.push("--quiet".into());
        }
        args.extend(self.general_args().into_iter().map(OsString::from));
        args
    }
}
