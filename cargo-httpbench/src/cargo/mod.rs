//! How cargo is called: which one, with what the user passed through, and by whom.
//!
//! The calls themselves belong to [`crate::discover`] and [`crate::build`]. Whoever owns the children of this process hands in a
//! [`RunCargo`], so that a signal ends a build like any other child: [`SupervisedCargo`].

mod call;
mod config_env;
mod options;
mod supervised;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use cargo_metadata::Package;

pub use call::{CargoCall, CargoOutput, RunCargo, StandardError};
pub use options::{CargoOptions, Color, FeatureBase, LockFlag, PackageChoice, Verbosity};
pub use supervised::SupervisedCargo;

use crate::environment::{self, Environment, Linked};

/// One cargo, for every call of a run.
#[derive(Clone, Debug)]
pub struct Cargo {
    /// `$CARGO`, else `cargo`: the toolchain that the user chose stays chosen.
    pub program: PathBuf,
    /// Where the user stands. Cargo finds its configuration files from there.
    pub current_dir: PathBuf,
    /// The user's environment, as [`crate::environment::users_own`] cleans it.
    pub environment: Environment,
    /// What the user passed through.
    pub options: CargoOptions,
}

impl Cargo {
    /// The cargo that `environment` names.
    #[must_use]
    pub fn new(current_dir: &Path, environment: Environment, options: CargoOptions) -> Self {
        let program =
            environment.get("CARGO").filter(|program| !program.is_empty()).map_or("cargo".into(), PathBuf::from);
        Self { program, current_dir: current_dir.to_owned(), environment, options }
    }

    /// `path` as the user meant it: relative to where they stand.
    #[must_use]
    pub fn absolute(&self, path: &Path) -> PathBuf {
        self.current_dir.join(path)
    }

    /// The environment of an executable of `package`, as `cargo run` or `cargo bench` would set it up here.
    #[must_use]
    pub fn environment_of(&self, package: &Package, linked: &Linked) -> Environment {
        let mut own = self.environment.clone();
        config_env::add(self, &mut own);
        environment::of_package(&own, &self.program, package, linked)
    }

    /// A call with these arguments.
    #[must_use]
    pub fn call(&self, args: Vec<OsString>, stderr: StandardError) -> CargoCall {
        CargoCall {
            program: self.program.clone(),
            args,
            current_dir: self.current_dir.clone(),
            environment: self.environment.clone(),
            stderr,
        }
    }
}
