//! The loop of one connection, written once: timing, recording, timeouts and redo, for every driver and every pacing.
//!
//! Leaves moving bytes to the [driver](super::driver), when an exchange starts to [starts](super::starts), and when a window
//! begins to [slices](super::slices). Invariants:
//! the next request is written in the same turn that completed the last answer; the clock is read once an exchange (the end
//! of one is the send of the next) unless an answer comes in parts or its body is searched; nothing is allocated for a good
//! exchange.
//!
//! **Redo.** A server may close an idle connection at the moment when the next request is sent (RFC 9112, section 9.3.1).
//! So an exchange that ends without a byte of an answer, on a connection that had completed one, is sent once more, whole,
//! on a new connection, whatever its method: it is a benchmark's load, and a lost one would be charged to the server as an
//! error. It is counted in `redone`, not as a new start, and its service time counts from the first send. A second time,
//! or on a fresh connection, it is an error. Where a connection carries several exchanges at once, its end leaves several
//! unanswered, and one of them may meet that again on the next connection, behind others: it is redone as often as
//! exchanges may be outstanding on a connection, and never after its deadline.
//!
//! **No connection.** An exchange whose connection could not be opened counts as started and as an error. The connection
//! then waits, longer each time, before it tries again; in an open loop it goes on as the schedule says.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use super::clock::Clock;
use super::driver::{After, Answer, Body, Connection, Driver, Failure};
use super::recorder::{Completed, Recorder};
use super::starts::{AfterRefusal, Beginning, Left, SessionEnd, Starts, Ties, Turn};
use super::timeout::Alarm;
use crate::model::{ErrorClass, FirstAnswer, Nanos, Reuse};
use crate::scenario::WireRequest;

/// The first wait after a connection was refused; doubled with each in a row …
pub(super) const FIRST_WAIT: Duration = Duration::from_millis(10);
/// … up to this.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// What all connections of an arm on one thread have in common.
pub(super) struct Arm<D> {
    pub(super) clock: Clock,
    pub(super) driver: D,
    pub(super) request: WireRequest,
    pub(super) judging: Judging,
    pub(super) reuse: Reuse,
    /// How often one exchange may be redone.
    pub(super) redos: u32,
    pub(super) connect_timeout: Duration,
    pub(super) request_timeout: Nanos,
}

/// What of an answer is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judging {
    /// Its status.
    Status,
    /// Its body too.
    Body,
}

/// One of an arm's connections, whether it is open or not.
pub(super) struct Slot<C> {
    open: Option<Open<C>>,
    alarm: Alarm,
    wait: Duration,
}

struct Open<C> {
    connection: C,
    age: Age,
}

/// Whether a connection has completed an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Age {
    Fresh,
    Used,
}

impl<C: Connection> Slot<C> {
    /// Within a runtime.
    pub(super) fn new() -> Self {
        Self { open: None, alarm: Alarm::new(), wait: FIRST_WAIT }
    }

    /// Opens the connection if it is not open, and again if the server has closed it or sent what nobody asked for.
    pub(super) async fn ready<D: Driver<Connection = C>>(
        &mut self,
        arm: &Arm<D>,
        recorder: &RefCell<Recorder>,
    ) -> Result<(), Failure> {
        if let Some(open) = &mut self.open
            && !open.connection.is_quiet()
        {
            self.close(recorder);
        }
        if self.open.is_none() { self.connect(arm, recorder).await } else { Ok(()) }
    }

    async fn connect<D: Driver<Connection = C>>(
        &mut self,
        arm: &Arm<D>,
        recorder: &RefCell<Recorder>,
    ) -> Result<(), Failure> {
        let opened = match tokio::time::timeout(arm.connect_timeout, arm.driver.connect()).await {
            Ok(opened) => opened.map_err(Failure::to_connect)?,
            Err(_) => return Err(Failure::ConnectTimeout(arm.connect_timeout)),
        };
        if let Some(opening) = opened.opening {
            recorder.borrow_mut().connected(opening);
        }
        self.open = Some(Open { connection: opened.connection, age: Age::Fresh });
        self.wait = FIRST_WAIT;
        Ok(())
    }

    /// Lets go of a connection that the server has ended.
    fn close(&mut self, recorder: &RefCell<Recorder>) {
        if let Some(mut open) = self.open.take() {
            hand_over(&mut open.connection, recorder);
        }
    }

    /// Ends a connection that the server would keep open.
    fn abandon(&mut self, recorder: &RefCell<Recorder>) {
        if let Some(mut open) = self.open.take() {
            hand_over(&mut open.connection, recorder);
            open.connection.abandon();
        }
    }
}

/// Drives one connection through a window, until its last exchange has ended, and gives it back.
pub(super) async fn drive<D: Driver, S: Starts>(
    mut slot: Box<Slot<D::Connection>>,
    arm: Rc<Arm<D>>,
    recorder: Rc<RefCell<Recorder>>,
    starts: S,
) -> Box<Slot<D::Connection>> {
    slot.alarm.change_task();
    let mut now = arm.clock.now();
    // Before the window every connection is free.
    let mut free = Nanos::ZERO;
    loop {
        let beginning = match starts.next(now, free) {
            Turn::Send(beginning) => beginning,
            Turn::Wait => {
                now = starts.wait().await;
                continue;
            }
            Turn::GiveUp(beginning) => {
                let mut recording = recorder.borrow_mut();
                recording.started(beginning);
                let since = beginning.scheduled().map_or(now, |start| start.intended);
                let failure = Failure::NeverSent(arm.request_timeout.as_duration());
                recording.error(&failure, now - since);
                drop(recording);
                settle(&mut slot, &recorder, &starts, now, Some(failure.class()));
                continue;
            }
            Turn::Stop => break,
        };
        recorder.borrow_mut().started(beginning);
        let mut broken_by = None;
        now = match perform(&mut slot, &arm, &recorder, &starts, now, beginning).await {
            Ok(ended) => ended,
            Err(broken) => {
                let ended = arm.clock.now();
                let since = beginning.scheduled().map_or(broken.since, |start| start.intended);
                recorder.borrow_mut().error(&broken.failure, ended - since);
                slot.abandon(&recorder);
                broken_by = Some(broken.failure.class());
                if broken.phase == Phase::Connecting && S::AFTER_REFUSAL == AfterRefusal::Wait {
                    tokio::time::sleep(slot.wait).await;
                    slot.wait = (slot.wait * 2).min(LONGEST_WAIT);
                    arm.clock.now()
                } else {
                    ended
                }
            }
        };
        free = now;
        settle(&mut slot, &recorder, &starts, now, broken_by);
    }
    if let Some(open) = &mut slot.open {
        hand_over(&mut open.connection, &recorder);
    }
    slot
}

/// Tells the starts how an exchange has left its connection, if they have to know, and ends their session if it is over.
#[inline]
fn settle<C: Connection, S: Starts>(
    slot: &mut Slot<C>,
    recorder: &RefCell<Recorder>,
    starts: &S,
    now: Nanos,
    broken_by: Option<ErrorClass>,
) {
    if S::TIES == Ties::None {
        return;
    }
    let left = match broken_by {
        Some(_) => Left::Broken,
        None if slot.open.is_some() => Left::Open,
        None => Left::Ended,
    };
    if let Some(SessionEnd { lasted, made, lost }) = starts.left(left, now) {
        slot.abandon(recorder);
        let mut recorder = recorder.borrow_mut();
        if let Some(lasted) = lasted {
            recorder.session(lasted);
        }
        if lost > 0 {
            let class = broken_by.unwrap_or(ErrorClass::ClosedEarly);
            recorder.lost(lost, &Failure::SessionOver { made, calls: made + lost, class });
        }
    }
}

/// Records what a connection has counted by itself.
fn hand_over(connection: &mut impl Connection, recorder: &RefCell<Recorder>) {
    let mut recorder = recorder.borrow_mut();
    recorder.traffic(connection.take_traffic());
    if let Some(hops) = connection.take_hops() {
        recorder.hops(&hops);
    }
}

/// An exchange that broke.
struct Broken {
    failure: Failure,
    /// When it was sent, or the connection asked for.
    since: Nanos,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Connecting,
    Exchanging,
}

/// Performs one exchange that starts `now`, and answers when it ended.
#[inline]
async fn perform<D: Driver, S: Starts>(
    slot: &mut Slot<D::Connection>,
    arm: &Arm<D>,
    recorder: &RefCell<Recorder>,
    starts: &S,
    now: Nanos,
    beginning: S::Beginning,
) -> Result<Nanos, Broken> {
    let connecting = |since| move |failure| Broken { failure, since, phase: Phase::Connecting };
    let mut sent = now;
    if slot.open.is_none() {
        slot.connect(arm, recorder).await.map_err(connecting(now))?;
        sent = arm.clock.now();
    }
    let broken = |failure| Broken { failure, since: sent, phase: Phase::Exchanging };
    let deadline = starts.deadline(sent, arm.request_timeout);
    let mut tries_left = arm.redos;
    loop {
        let Slot { open: Some(Open { connection, age }), alarm, .. } = slot else {
            slot.connect(arm, recorder).await.map_err(connecting(sent))?;
            continue;
        };
        connection.begin(&arm.request);
        let ended = poll_fn(|cx| match connection.poll_exchange(cx, &arm.request) {
            Poll::Ready(ended) => Poll::Ready(Some(ended)),
            Poll::Pending => alarm.poll_deadline(cx, arm.clock, deadline).map(|()| None),
        });
        match ended.await {
            Some(Ok(answer)) => {
                *age = Age::Used;
                let ended = finish(connection, arm, recorder, beginning, sent, answer);
                match answer.after {
                    After::Open => {}
                    After::Ended => slot.close(recorder),
                    After::Spent => slot.abandon(recorder),
                }
                return Ok(ended);
            }
            Some(Err(failure))
                if S::TIES == Ties::None
                    && may_be_redone(&failure, *age)
                    && tries_left > 0
                    && arm.clock.now() < deadline =>
            {
                tries_left -= 1;
                slot.close(recorder);
                recorder.borrow_mut().redone();
            }
            Some(Err(failure)) => return Err(broken(failure)),
            None => {
                let limit = arm.request_timeout.as_duration();
                let in_time = deadline == sent + arm.request_timeout;
                return Err(broken(if in_time {
                    Failure::RequestTimeout(limit)
                } else {
                    Failure::DrainTimeout(limit)
                }));
            }
        }
    }
}

/// Whether an exchange that broke is sent once more, as far as its failure and its connection say.
fn may_be_redone(failure: &Failure, age: Age) -> bool {
    matches!(failure, Failure::Unanswered(_)) || age == Age::Used && failure.is_unanswered_end()
}

/// Judges and records a complete answer; answers the time from which the connection is free.
#[inline]
fn finish<D: Driver>(
    connection: &mut D::Connection,
    arm: &Arm<D>,
    recorder: &RefCell<Recorder>,
    beginning: impl Beginning,
    sent: Nanos,
    answer: Answer,
) -> Nanos {
    let ended = arm.clock.now();
    let end = Completed { sent, first_byte: answer.first_byte, ended, status: answer.status };
    let recorder = &mut *recorder.borrow_mut();
    if recorder.wants_first_answer() {
        recorder.first_answer(FirstAnswer {
            status: answer.status,
            body_bytes: answer.body_bytes,
            server: connection.field("server"),
        });
    }
    if let Some(hops) = connection.take_hops() {
        recorder.hops(&hops);
    }
    if let Some(text) = connection.objection() {
        recorder.check_failure(end, || text);
        return ended;
    }
    if arm.judging == Judging::Status {
        if arm.request.check.accepts_status(answer.status) {
            recorder.good(beginning, end);
        } else {
            recorder.check_failure(end, || judge(arm, answer.status, Body::Whole(&[])).err().unwrap_or_default());
        }
        return ended;
    }
    match judge(arm, answer.status, connection.body()) {
        Ok(()) => recorder.good(beginning, end),
        Err(text) => recorder.check_failure(end, || text),
    }
    // Searching a body takes time that is not the server's: the next send is not the end of this exchange.
    arm.clock.now()
}

fn judge<D>(arm: &Arm<D>, status: u16, body: Body<'_>) -> Result<(), String> {
    judge_answer(&arm.request, status, body)
}

/// Judges a complete answer by the request's check.
pub(super) fn judge_answer(request: &WireRequest, status: u16, body: Body<'_>) -> Result<(), String> {
    match body {
        Body::Whole(body) => request.check.judge(status, body),
        Body::TooLong if !request.check.accepts_status(status) => request.check.judge(status, &[]),
        Body::TooLong => Err("the body is longer than 8 MiB, the most that a check of its text looks at".to_owned()),
    }
}
