//! The server executable of another git revision: `--against REV`.
//!
//! ```text
//! resolve   REV → one commit, in words that tell what to fetch where history is missing
//! check_out that commit → a worktree of its own, below the results folder
//! build     the same package's server there → an executable beside the candidate's
//! ```
//!
//! Whether a revision without a server fails the run, and everything about measuring, is left to others.
//!
//! What is kept: the user's checkout, index, HEAD and git configuration are never written, nor is the user's target directory.
//! Nothing of a run outlives it but the revision's own target directory and the executables that were kept, and what a killed
//! run leaves behind is removed by the next one.

mod build;
mod cache;
mod checkout;
mod configuration;
mod git;
mod resolve;
mod slot;
mod toolchain;

pub use build::{Counterpart, LockOrigin, NoServer, RevisionServer};
pub use checkout::{Checkout, check_out};
pub use git::Git;
pub use resolve::{Revision, WorkingTree, resolve};

/// What `--against` names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Against {
    /// As the user wrote it.
    pub rev: String,
    /// Which commit is meant by it.
    pub commit: WhichCommit,
}

/// Which commit a revision stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhichCommit {
    /// Where HEAD's history left that of the revision, so that a branch is not blamed for what the other one gained since.
    MergeBase,
    /// The commit itself.
    Exact,
}
