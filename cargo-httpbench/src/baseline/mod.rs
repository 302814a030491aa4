//! Baselines: what a measurement leaves behind for later ones, and the store that keeps it.
//!
//! ```text
//! <baselines>/                    `target/httpbench/baselines`, or `baseline-dir`
//!   .lock                         who changes the store right now
//!   feature%2fx/                  a name, encoded
//!     shop/                       a package of the workspace
//!       baseline.json             everything but the executable; replacing it is what makes a save count
//!       <sha256>                  the server's executable, as it was built
//! ```
//!
//! Invariant: at any moment, `kill -9` included, a baseline is either what it was or what it was going to be. The executable is in
//! its place before the text that names it, and the one before is removed after. What cannot be read is never overwritten.
//!
//! | module | what it knows |
//! |---|---|
//! | `names` | names, and folders that they are safe in |
//! | `format`, `units`, `histogram` | a baseline and its JSON text |
//! | `set_up`, `fingerprint`, `definition` | what else must be equal, and what is not kept because it may be secret |
//! | `store`, `lock`, `executable` | files: atomic, locked, proven by their hashes |
//! | `transfer` | one file for another machine |
//! | `identity` | whether measuring could find anything |
//! | `pull_request` | whether this run may replace a baseline |
//! | `commands`, `telling` | `cargo httpbench baseline …` |
//!
//! When something is saved and what a comparison means are not decided here.

mod commands;
mod definition;
mod digest;
mod executable;
mod fingerprint;
mod format;
mod histogram;
mod identity;
mod lock;
mod names;
mod pull_request;
#[cfg(test)]
pub(crate) mod sample;
mod set_up;
mod store;
mod telling;
mod transfer;
mod units;

pub use commands::{BaselineCommand, Replacing, run};
pub use definition::definition;
pub use digest::Sha256Hex;
pub use executable::{EXECUTABLE_CAP, StoredExecutable};
pub use fingerprint::{BuildFacts, Difference, Field, Fingerprint, Severity};
pub use format::{
    Baseline, BaselineCounts, BaselineScenario, Commit, ExecutableRecord, FormatError, Kept, RoundValues, SCHEMA,
    WorkingTree,
};
pub use identity::{Identity, identical};
pub use names::{BaselineName, NameError};
pub use pull_request::{Ci, Saving, may_save};
pub use set_up::{EnvValue, SetUp};
pub use store::{Found, Listed, Missing, Replaced, Saved, Store, StoredBaseline};
pub use transfer::{Exported, Imported};
