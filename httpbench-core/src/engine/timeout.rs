//! A deadline for each exchange, without a timer for each: one sleep a connection, re-armed only when it fires early.
//!
//! Deadlines never move back (each is its exchange's send time plus the same timeout), so a sleep that is armed fires at or
//! before the current one. An answer that comes in time then costs the look at one flag.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::task::coop::has_budget_remaining;
use tokio::time::Sleep;

use super::clock::Clock;
use crate::model::Nanos;

/// Goes off when an exchange of one connection takes too long.
pub(super) struct Alarm {
    sleep: Pin<Box<Sleep>>,
    waker: Waker,
}

/// Whom the sleep wakes when it fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waker {
    /// An earlier task, or nobody.
    Stale,
    /// The task that drives the connection now.
    Current,
}

impl Alarm {
    /// Within a runtime.
    pub(super) fn new() -> Self {
        Self { sleep: Box::pin(tokio::time::sleep_until(tokio::time::Instant::now())), waker: Waker::Stale }
    }

    /// The connection is driven by another task from now on.
    pub(super) fn change_task(&mut self) {
        self.waker = Waker::Stale;
    }

    /// To be polled whenever the work is pending: ready once `deadline` has passed, which is not before that of the last
    /// exchange. Only the task itself may poll: no combinator that wraps its waker.
    #[inline]
    pub(super) fn poll_deadline(&mut self, cx: &mut Context<'_>, clock: Clock, deadline: Nanos) -> Poll<()> {
        if self.waker == Waker::Current && !self.sleep.is_elapsed() {
            return Poll::Pending;
        }
        self.poll_sleep(cx, clock, deadline)
    }

    #[cold]
    fn poll_sleep(&mut self, cx: &mut Context<'_>, clock: Clock, deadline: Nanos) -> Poll<()> {
        while self.sleep.as_mut().poll(cx).is_ready() {
            if clock.now() >= deadline {
                return Poll::Ready(());
            }
            self.sleep.as_mut().reset(clock.at(deadline));
        }
        // Without budget the sleep has not looked at the waker; the task is polled again at once.
        self.waker = if has_budget_remaining() { Waker::Current } else { Waker::Stale };
        Poll::Pending
    }
}
