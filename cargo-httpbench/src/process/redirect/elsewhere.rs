//! Systems that cannot redirect `bind`: every launch that asks for it is refused, so that nothing below is ever called.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::process::{Child, Command};

use super::wire::Report;

/// Whether anybody can still call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    InUse,
}

/// Refuses.
pub(super) fn spawn(_: &mut Command) -> io::Result<(Child, OwnedFd)> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "calls of `bind` can be redirected on Linux only"))
}

/// The calls of one launched program's tree, of which there are none.
#[derive(Debug)]
pub(super) struct Redirection(OwnedFd);

impl Redirection {
    pub(super) fn new(_: u64, binds: OwnedFd, _: u16) -> Self {
        Self(binds)
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(&self.0)
    }

    pub(super) fn go_on(&mut self, _: &mut dyn FnMut(Report)) -> State {
        State::InUse
    }
}
