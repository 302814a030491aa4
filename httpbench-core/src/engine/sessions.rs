//! Sessions: connections that are opened on a schedule, each of which carries a number of calls and is then closed.
//!
//! A free connection slot takes a session from the [line](super::starts::Line), as it would a single exchange, and keeps it
//! until its last call. A call after the first is intended for the moment at which the one before has ended.
//!
//! **A session ends with its connection.** If the connection cannot be opened, breaks, or is ended by the server before the
//! last call, nothing of the session is redone or sent elsewhere: then there would be more connections than were asked for.
//! The calls that are left count as started and as errors of the class that ended the session, at that moment; so all calls
//! of a session that has begun are accounted for, whatever becomes of it. Only a stop from outside leaves calls out.

use std::cell::Cell;
use std::rc::Rc;

use super::starts::{AfterRefusal, Late, Left, Line, Scheduled, SessionEnd, Starts, Ties, Turn};
use crate::model::Nanos;

/// What one connection slot knows of the sessions; a clone is another slot's.
#[derive(Clone)]
pub(super) struct Sessions {
    line: Rc<Line>,
    calls: Calls,
    /// The slot's session, if it has one.
    current: Cell<Option<Session>>,
}

/// How many calls sessions have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Calls {
    /// In a session, at least one.
    pub(super) each: u64,
    /// In the last one of a window that is ended by their number, as far as that comes to.
    pub(super) last: u64,
}

#[derive(Clone, Copy, Debug)]
struct Session {
    begun: Nanos,
    made: u64,
    left: u64,
}

impl Calls {
    /// Of `each` to a session, in a window of so many calls.
    pub(super) fn new(each: u64, total: Option<u64>) -> Self {
        let last = total.map_or(each, |total| total - (Self::sessions(each, total) - 1) * each);
        Self { each, last }
    }

    /// How many sessions there are for so many calls, at least one.
    pub(super) fn sessions(each: u64, total: u64) -> u64 {
        total.div_ceil(each)
    }
}

impl Sessions {
    /// For a slot without a session.
    pub(super) fn new(line: Rc<Line>, calls: Calls) -> Self {
        Self { line, calls, current: Cell::new(None) }
    }
}

impl Starts for Sessions {
    type Beginning = Scheduled;

    const TIES: Ties = Ties::Session;
    const AFTER_REFUSAL: AfterRefusal = AfterRefusal::GoOn;

    fn next(&self, now: Nanos, free: Nanos) -> Turn<Scheduled> {
        if let Some(session) = self.current.get() {
            if self.line.is_stopped() {
                return Turn::Stop;
            }
            self.current.set(Some(Session { made: session.made + 1, left: session.left - 1, ..session }));
            let call = Scheduled { intended: free, taken: now, late: Late::Session };
            return if now < self.line.given_up { Turn::Send(call) } else { Turn::GiveUp(call) };
        }
        let turn = self.line.take(now, free);
        if let Turn::Send(_) | Turn::GiveUp(_) = turn {
            let calls = if self.line.window.borrow().took_the_last() { self.calls.last } else { self.calls.each };
            self.current.set(Some(Session { begun: now, made: 1, left: calls - 1 }));
        }
        turn
    }

    async fn wait(&self) -> Nanos {
        self.line.wait().await
    }

    fn deadline(&self, sent: Nanos, timeout: Nanos) -> Nanos {
        self.line.deadline(sent, timeout)
    }

    fn left(&self, connection: Left, now: Nanos) -> Option<SessionEnd> {
        let Session { begun, made, left } = self.current.get()?;
        if left > 0 && connection == Left::Open {
            return None;
        }
        self.current.set(None);
        let is_whole = left == 0 && connection != Left::Broken;
        Some(SessionEnd { lasted: is_whole.then(|| now - begun), made, lost: left })
    }
}
