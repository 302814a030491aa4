//! A deadline for each exchange, without a timer for each: one sleep a connection, re-armed only when it fires early.
//!
//! Deadlines never move back (each is its exchange's send time plus the same timeout), so a sleep that is armed fires at or
//! before the current one. An answer that comes in time then costs the look at one flag.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

use tokio::time::Sleep;

use super::clock::Clock;
use crate::model::Nanos;

/// Watches the exchanges of one connection.
pub(super) struct Watch {
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

/// The deadline passed.
#[derive(Debug)]
pub(super) struct Elapsed;

impl Watch {
    /// Within a runtime.
    pub(super) fn new() -> Self {
        Self { sleep: Box::pin(tokio::time::sleep_until(tokio::time::Instant::now())), waker: Waker::Stale }
    }

    /// The connection is driven by another task from now on.
    pub(super) fn change_task(&mut self) {
        self.waker = Waker::Stale;
    }

    /// Awaits `work` until `deadline`, which is not before that of the last call. Only the task itself may be polled
    /// here: no combinator that wraps its waker.
    #[inline]
    pub(super) async fn guard<F: Future>(
        &mut self,
        clock: Clock,
        deadline: Nanos,
        work: F,
    ) -> Result<F::Output, Elapsed> {
        let mut work = pin!(work);
        let mut polled = false;
        poll_fn(|cx| {
            if let Poll::Ready(output) = work.as_mut().poll(cx) {
                return Poll::Ready(Ok(output));
            }
            if !polled && self.waker == Waker::Current && !self.sleep.is_elapsed() {
                polled = true;
                return Poll::Pending;
            }
            polled = true;
            self.waker = Waker::Current;
            while self.sleep.as_mut().poll(cx).is_ready() {
                if clock.now() >= deadline {
                    return Poll::Ready(Err(Elapsed));
                }
                self.sleep.as_mut().reset(clock.at(deadline));
            }
            Poll::Pending
        })
        .await
    }
}
