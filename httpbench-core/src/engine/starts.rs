//! Who takes the next start, and how one waits for it: the connections of one arm on one thread, in one window.
//!
//! In a closed loop every connection starts for itself. In an open loop the free ones stand in line, in the order in which
//! they became free; the first of them watches the thread's only [timer](super::timer), takes the start when it is due and
//! leaves the watch to the next. When none is free, starts that become due wait: their intended start stands, and
//! connections that become free take them at once, one after the other, until the schedule is caught up with. So a
//! stalled server meets a burst afterwards, as it would from clients that do not wait for one another. Where the plan says
//! so, only the last of them is sent and the others are [dropped](Policy::Drop).
//!
//! **The end.** When the window is over, the schedule stops; what is due by then is still sent. That is bounded: at the
//! request timeout after the window's end, exchanges under way and starts that no connection was free for are errors at
//! that time. A stop from outside drops what is due and was not sent.
//!
//! Leaves the schedule itself to [pacing](super::pacing). Invariant: each start is taken once, in their order.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use tokio::sync::Mutex;

use super::clock::Clock;
use super::gate::Gate;
use super::pacing::{Pace, Window};
use super::timer::Timer;
use crate::model::{Late as Policy, Nanos};

/// What a free connection does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn<B> {
    /// It starts an exchange.
    Send(B),
    /// It [waits](Starts::wait) for its turn.
    Wait,
    /// It takes a start for which it is too late: an error, without a byte sent.
    GiveUp(B),
    /// It starts no more in this window.
    Stop,
}

/// A start of a schedule, at the moment when a connection takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scheduled {
    /// When the schedule said that it should begin.
    pub(super) intended: Nanos,
    /// When it does.
    pub(super) taken: Nanos,
    /// Why not at once.
    pub(super) late: Late,
}

/// How an exchange came to begin. A type, so that a closed loop carries nothing along.
pub(super) trait Beginning: Copy + 'static {
    /// The start of a schedule, if it was one.
    fn scheduled(self) -> Option<Scheduled>;
}

impl Beginning for Scheduled {
    fn scheduled(self) -> Option<Scheduled> {
        Some(self)
    }
}

/// It was its connection's turn.
impl Beginning for () {
    #[inline]
    fn scheduled(self) -> Option<Scheduled> {
        None
    }
}

/// Whose doing it is that an exchange begins later than intended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Late {
    /// The engine's: a connection was free.
    Engine,
    /// The server's: every connection was waiting for an answer.
    Connections,
    /// Nobody's: no schedule said when it should begin, it follows on another in its [session](super::sessions).
    Session,
}

/// What a connection does after the server refused it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterRefusal {
    /// It waits, longer each time: without a schedule it would try as fast as it can.
    Wait,
    /// It goes on: the schedule says how often it tries.
    GoOn,
}

/// Whether exchanges belong to the connection that they began on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ties {
    /// Any connection will do: one that the server has ended is replaced.
    None,
    /// They are calls of a session, which ends with its connection.
    Session,
}

/// How an exchange left its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// Ready for the next one.
    Open,
    /// Ended after a whole answer.
    Ended,
    /// Broken, or never opened.
    Broken,
}

/// The end of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SessionEnd {
    /// From the moment at which a connection was asked for; `None` if not all calls were answered.
    pub(super) lasted: Option<Nanos>,
    /// Calls that were made, the last of which may have broken.
    pub(super) made: u64,
    /// Calls that could not be made any more.
    pub(super) lost: u64,
}

/// The starts of one window, as all connections of an arm on one thread share them.
pub(super) trait Starts: Clone + 'static {
    /// How its exchanges begin.
    type Beginning: Beginning;

    /// See [`Ties`].
    const TIES: Ties = Ties::None;

    /// See [`AfterRefusal`].
    const AFTER_REFUSAL: AfterRefusal;

    /// What a connection that has been free since `free` does `now`. A start in the answer is taken.
    fn next(&self, now: Nanos, free: Nanos) -> Turn<Self::Beginning>;

    /// Waits in line until there is something else to do than to wait, and answers the time.
    async fn wait(&self) -> Nanos;

    /// When an exchange that was sent at `sent` has timed out.
    fn deadline(&self, sent: Nanos, timeout: Nanos) -> Nanos;

    /// Hears how an exchange left its connection `now`, and says if that is the end of a session.
    #[inline]
    fn left(&self, _connection: Left, _now: Nanos) -> Option<SessionEnd> {
        None
    }
}

/// Every connection for itself, for as long as the gate lets it.
#[derive(Clone, Debug)]
pub(super) struct Unscheduled(pub(super) Rc<Gate>);

impl Starts for Unscheduled {
    type Beginning = ();

    const AFTER_REFUSAL: AfterRefusal = AfterRefusal::Wait;

    #[inline]
    fn next(&self, now: Nanos, _free: Nanos) -> Turn<()> {
        if self.0.pass(now) { Turn::Send(()) } else { Turn::Stop }
    }

    async fn wait(&self) -> Nanos {
        unreachable!("a closed loop never waits for a start")
    }

    #[inline]
    fn deadline(&self, sent: Nanos, timeout: Nanos) -> Nanos {
        sent + timeout
    }
}

/// A schedule of starts, and the line of those who are free to take them.
pub(super) struct Line {
    pub(super) clock: Clock,
    pub(super) start: Nanos,
    pub(super) window: RefCell<Window>,
    pub(super) policy: Policy,
    pub(super) gate: Rc<Gate>,
    /// How long a sleep may last before somebody looks at the gate again.
    pub(super) look: Nanos,
    /// At this time all that is left is an error.
    pub(super) given_up: Nanos,
    /// How many starts were dropped.
    pub(super) dropped: Cell<u64>,
    /// How many connections are in line.
    pub(super) waiting: Cell<usize>,
    /// Whoever holds it is the first in line; the mutex hands it on in the order in which it was asked for.
    pub(super) timer: Rc<Mutex<Timer>>,
}

impl Line {
    /// Takes the next start for a connection that has been free since `free`, if one is due `now`.
    pub(super) fn take(&self, now: Nanos, free: Nanos) -> Turn<Scheduled> {
        let window = &mut *self.window.borrow_mut();
        loop {
            let intended = match self.pace(window, now) {
                Pace::SendNow { intended } => self.start + intended,
                Pace::Wait { .. } => return Turn::Wait,
                Pace::Stop => return Turn::Stop,
            };
            let was_free = free <= intended || self.waiting.get() > 0;
            let late = if was_free { Late::Engine } else { Late::Connections };
            let drops = self.policy == Policy::Drop && late == Late::Connections;
            if drops && window.following().is_some_and(|due| self.start + due <= now) {
                window.take();
                self.dropped.set(self.dropped.get() + 1);
                continue;
            }
            window.take();
            let start = Scheduled { intended, taken: now, late };
            return if now < self.given_up { Turn::Send(start) } else { Turn::GiveUp(start) };
        }
    }

    /// Whether the round was stopped from outside.
    pub(super) fn is_stopped(&self) -> bool {
        self.gate.stopped().is_some()
    }

    /// How many starts were dropped in the whole window, those included that a stop from outside left behind.
    pub(super) fn dropped(&self) -> u64 {
        if let Some(stopped) = self.gate.stopped() {
            let window = &mut *self.window.borrow_mut();
            let elapsed = stopped - self.start;
            while stopped >= self.start && matches!(window.pace(elapsed), Pace::SendNow { .. }) {
                window.take();
                self.dropped.set(self.dropped.get() + 1);
            }
        }
        self.dropped.get()
    }

    /// Until when nobody has anything to do; `None` if somebody has.
    fn idle_until(&self, now: Nanos) -> Option<Nanos> {
        match self.pace(&self.window.borrow(), now) {
            Pace::Wait { until } => Some(self.start + until),
            Pace::SendNow { .. } | Pace::Stop => None,
        }
    }

    fn pace(&self, window: &Window, now: Nanos) -> Pace {
        if self.is_stopped() {
            return Pace::Stop;
        }
        if now < self.start {
            return Pace::Wait { until: Nanos::ZERO };
        }
        window.pace(now - self.start)
    }
}

impl Starts for Rc<Line> {
    type Beginning = Scheduled;

    const AFTER_REFUSAL: AfterRefusal = AfterRefusal::GoOn;

    fn next(&self, now: Nanos, free: Nanos) -> Turn<Scheduled> {
        self.take(now, free)
    }

    async fn wait(&self) -> Nanos {
        self.waiting.set(self.waiting.get() + 1);
        let mut timer = self.timer.lock().await;
        let now = loop {
            let now = self.clock.now();
            match self.idle_until(now) {
                Some(time) => timer.sleep_until(time.min(now + self.look)).await,
                None => break now,
            }
        };
        self.waiting.set(self.waiting.get() - 1);
        now
    }

    fn deadline(&self, sent: Nanos, timeout: Nanos) -> Nanos {
        (sent + timeout).min(self.given_up)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::pacing::{Arrivals, Origin, Part};

    /// Starts at 100, 110, … 140 ns after the clock's zero; all is given up at 1,000.
    fn line() -> Rc<Line> {
        line_with(Policy::Send)
    }

    fn line_with(policy: Policy) -> Rc<Line> {
        let clock = Clock::new();
        let timer = Rc::new(Mutex::new(Timer::new(clock).expect("a timer")));
        let arrivals = Arrivals::Constant { per_second: 1e8 };
        let part = Part { thread: 0, threads: 1 };
        Rc::new(Line {
            clock,
            start: Nanos(100),
            window: RefCell::new(Window::new(arrivals, Origin::of(&arrivals), Nanos(50), None, part)),
            policy,
            gate: Rc::default(),
            look: Nanos(u64::MAX),
            given_up: Nanos(1_000),
            dropped: Cell::new(0),
            waiting: Cell::new(0),
            timer,
        })
    }

    fn scheduled(intended: u64, taken: u64, late: Late) -> Scheduled {
        Scheduled { intended: Nanos(intended), taken: Nanos(taken), late }
    }

    #[tokio::test]
    async fn each_start_is_taken_once_and_its_lateness_has_a_reason() {
        let line = line();
        assert_eq!(line.next(Nanos(99), Nanos(0)), Turn::Wait, "not even the first before the window starts");
        assert_eq!(line.next(Nanos(102), Nanos(0)), Turn::Send(scheduled(100, 102, Late::Engine)));
        assert_eq!(line.next(Nanos(102), Nanos(0)), Turn::Wait);
        // Nobody was free at 110, and at 120 nobody but a connection that is still in line.
        assert_eq!(line.next(Nanos(123), Nanos(123)), Turn::Send(scheduled(110, 123, Late::Connections)));
        line.waiting.set(1);
        assert_eq!(line.next(Nanos(123), Nanos(123)), Turn::Send(scheduled(120, 123, Late::Engine)));
    }

    #[tokio::test]
    async fn due_starts_are_sent_after_the_window_and_given_up_at_last() {
        let line = line();
        assert_eq!(line.next(Nanos(999), Nanos(999)), Turn::Send(scheduled(100, 999, Late::Connections)));
        for intended in [110, 120, 130, 140] {
            let start = scheduled(intended, 1_000, Late::Connections);
            assert_eq!(line.next(Nanos(1_000), Nanos(1_000)), Turn::GiveUp(start));
        }
        assert_eq!(line.next(Nanos(1_000), Nanos(1_000)), Turn::Stop);
    }

    #[tokio::test]
    async fn exchanges_time_out_after_their_send_and_at_the_end_of_the_drain_at_the_latest() {
        let line = line();
        assert_eq!(line.deadline(Nanos(100), Nanos(50)), Nanos(150));
        assert_eq!(line.deadline(Nanos(980), Nanos(50)), Nanos(1_000));
    }
    #[tokio::test]
    async fn late_starts_are_dropped_if_the_next_one_is_due_and_no_connection_was_free() {
        // LG-52
        let line = line_with(Policy::Drop);
        // The engine's own lateness drops nothing: this connection was free.
        assert_eq!(line.next(Nanos(121), Nanos(0)), Turn::Send(scheduled(100, 121, Late::Engine)));
        // At 129, the start of 110 is dropped, and that of 120 is not: its next one is due at 130.
        assert_eq!(line.next(Nanos(129), Nanos(129)), Turn::Send(scheduled(120, 129, Late::Connections)));
        assert_eq!(line.dropped(), 1);
        // The window's last start has no next one, and so is given up at last.
        assert_eq!(line.next(Nanos(1_000), Nanos(1_000)), Turn::GiveUp(scheduled(140, 1_000, Late::Connections)));
        assert_eq!(line.next(Nanos(1_000), Nanos(1_000)), Turn::Stop);
        assert_eq!(line.dropped(), 2);
    }

    #[tokio::test]
    async fn stop_drops_what_is_due_by_then() {
        let line = line();
        assert_eq!(line.next(Nanos(102), Nanos(0)), Turn::Send(scheduled(100, 102, Late::Engine)));
        line.gate.stop(Nanos(125));
        assert_eq!(line.next(Nanos(126), Nanos(126)), Turn::Stop);
        assert_eq!((line.dropped(), line.dropped()), (2, 2), "110 and 120, once");
    }
}
