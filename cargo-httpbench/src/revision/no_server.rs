//! Why a revision has no server to compare with.
//!
//! Whether that fails the run is the policy's to say.

use crate::error::Error;
use crate::exit_code::ExitCode;

/// Why a revision has no server.
#[derive(Debug)]
pub enum NoServer {
    /// Cargo cannot build it. Its own words stand above, or in the error.
    DoesNotBuild(Error),
    /// It has no such package.
    NoSuchPackage {
        /// The server's package.
        package: String,
        /// Those that it has.
        there: Vec<String>,
    },
    /// The package has no such binary there.
    NoSuchBinary {
        /// The server's package.
        package: String,
        /// The server.
        bin: String,
        /// The binaries that it has.
        there: Vec<String>,
    },
    /// Nothing about the revision: a signal came, or the disk is full. It ends the run.
    Failed(Error),
}

impl From<Error> for NoServer {
    fn from(error: Error) -> Self {
        match error.exit {
            ExitCode::BuildFailed | ExitCode::MetadataFailed | ExitCode::Usage => Self::DoesNotBuild(error),
            _ => Self::Failed(error),
        }
    }
}

impl NoServer {
    /// As an error, to be shown or to end the run. `revision` is how the commit is called.
    #[must_use]
    pub fn into_error(self, revision: &str) -> Error {
        match self {
            Self::Failed(error) => error,
            Self::DoesNotBuild(error) => Error {
                what: format!("{revision} does not build: {}", error.what),
                help: Some(
                    "the reason stands above, in cargo's own words; choose another revision, or mend it there"
                        .to_owned(),
                ),
                ..error
            },
            Self::NoSuchPackage { package, there } => {
                let error = Error::new(ExitCode::BuildFailed, format!("{revision} has no package `{package}`"));
                let error = if there.is_empty() { error } else { error.details("packages that it has", there) };
                error.help("choose a revision that has it; a package that was renamed cannot be followed")
            }
            Self::NoSuchBinary { package, bin, there } => {
                Error::new(ExitCode::BuildFailed, format!("package `{package}` of {revision} has no binary `{bin}`"))
                    .details("binaries that it has", there)
                    .help("choose a revision that has it; a binary that was renamed cannot be followed")
            }
        }
    }
}
