//! The one thing here that only the kernel's own interface can do.

use std::sync::Once;

use nix::sys::signal::{SigHandler, Signal, signal};

/// Makes sure that a command started from now on does not ignore Ctrl-C.
///
/// A shell without job control lets its background jobs ignore SIGINT, children inherit that, and the command rightly leaves
/// it so. Tests that are started in the background of a script would wait for an end that never comes.
pub(crate) fn heed_interrupts() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the default action runs no code in this process, so nothing can be interrupted in an unsafe place; no
        // handler of somebody else is replaced, because neither the test harness nor this kit installs one.
        unsafe { signal(Signal::SIGINT, SigHandler::SigDfl) }.expect("the action of SIGINT can be set");
    });
}
