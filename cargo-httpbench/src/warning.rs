//! What is odd but does not stop a run. Warnings are values: whoever prints or serialises them decides how.
//!
//! Leaves colours and the word "warning" to the shell. Every text says what was found and what to do about it.

use std::fmt;
use std::path::PathBuf;

/// Something odd that was found before measuring.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// A key of the configuration that nobody reads.
    UnknownKey {
        /// The file that holds it.
        file: PathBuf,
        /// Its line, from 1.
        line: usize,
        /// With its tables: `server.bni`.
        key: String,
        /// The key that was probably meant.
        nearest: Option<String>,
    },
    /// An environment variable that looks like one of ours, and is none.
    UnknownVariable {
        /// Its name.
        name: String,
        /// The one that was probably meant.
        nearest: String,
    },
    /// A bench target that was not run because its executable is no bench binary of ours.
    ForeignBench {
        /// Its package.
        package: String,
        /// Its name.
        bench: String,
    },
    /// The load engine was built without optimisation.
    UnoptimisedBench {
        /// The bench target's name.
        bench: String,
    },
    /// The server was built without optimisation.
    UnoptimisedServer {
        /// The binary's name.
        bin: String,
        /// The profile that it was built with.
        profile: String,
    },
}

impl Warning {
    /// The word by which machines tell warnings apart. Never changes.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::UnknownKey { .. } => "unknown-key",
            Self::UnknownVariable { .. } => "unknown-variable",
            Self::ForeignBench { .. } => "foreign-bench",
            Self::UnoptimisedBench { .. } => "unoptimised-bench",
            Self::UnoptimisedServer { .. } => "unoptimised-server",
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownKey { file, line, key, nearest } => {
                write!(out, "{}:{line}: unknown key `{key}` is not used", file.display())?;
                match nearest {
                    Some(nearest) => write!(out, "; did you mean `{nearest}`?"),
                    None => Ok(()),
                }
            }
            Self::UnknownVariable { name, nearest } => {
                write!(out, "unknown environment variable `{name}` is not used; did you mean `{nearest}`?")
            }
            Self::ForeignBench { package, bench } => write!(
                out,
                "bench target `{bench}` of package `{package}` is skipped: its `main` does not call `httpbench_core::main()`"
            ),
            Self::UnoptimisedBench { bench } => write!(
                out,
                "bench target `{bench}` is built without optimisation: the load engine will be slow and may become the \
                 limit; use a profile with `opt-level = 3`"
            ),
            Self::UnoptimisedServer { bin, profile } => write!(
                out,
                "server `{bin}` is built without optimisation (profile `{profile}`): its numbers say little about a \
                 release build"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_warning_has_its_text_and_its_code() {
        let key = |nearest: Option<&str>| Warning::UnknownKey {
            file: PathBuf::from("/w/httpbench.toml"),
            line: 3,
            key: "server.bni".to_owned(),
            nearest: nearest.map(str::to_owned),
        };
        let bench = "http".to_owned();
        let cases = [
            (
                key(Some("bin")),
                "unknown-key",
                "/w/httpbench.toml:3: unknown key `server.bni` is not used; did you mean `bin`?",
            ),
            (key(None), "unknown-key", "/w/httpbench.toml:3: unknown key `server.bni` is not used"),
            (
                Warning::UnknownVariable { name: "HTTPBENCH_ROUND".to_owned(), nearest: "HTTPBENCH_ROUNDS".to_owned() },
                "unknown-variable",
                "unknown environment variable `HTTPBENCH_ROUND` is not used; did you mean `HTTPBENCH_ROUNDS`?",
            ),
            (
                Warning::ForeignBench { package: "shop".to_owned(), bench: bench.clone() },
                "foreign-bench",
                "bench target `http` of package `shop` is skipped: its `main` does not call `httpbench_core::main()`",
            ),
            (
                Warning::UnoptimisedBench { bench },
                "unoptimised-bench",
                "bench target `http` is built without optimisation: the load engine will be slow and may become the limit; \
                 use a profile with `opt-level = 3`",
            ),
            (
                Warning::UnoptimisedServer { bin: "shop".to_owned(), profile: "dev".to_owned() },
                "unoptimised-server",
                "server `shop` is built without optimisation (profile `dev`): its numbers say little about a release build",
            ),
        ];
        for (warning, code, text) in cases {
            assert_eq!(warning.code(), code);
            assert_eq!(warning.to_string(), text);
        }
    }
}
