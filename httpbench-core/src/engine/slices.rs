//! One engine thread's way through a round: connect, warm up, then slice after slice in step with the other threads.
//!
//! Leaves a single connection to the [worker]. Invariants: between two slices every thread has drained and
//! none has begun the next; thread 0 alone samples the servers and sets the start; a connection that the server closed
//! while it was idle is open again before a slice's clock starts.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{Barrier, Mutex};

use super::clock::Clock;
use super::driver::Driver;
use super::gate::Gate;
use super::health::thread_cpu;
use super::observer::Observer;
use super::pacing::{Arrivals, Origin, Part, Window};
use super::recorder::{Recorder, Tally};
use super::sessions::{Calls, Sessions};
use super::starts::{Line, Starts, Unscheduled};
use super::timer::Timer;
use super::watch::{LOOK, Post};
use super::worker::{Arm, Slot, drive};
use super::{EngineError, crew, worker};
use crate::model::{Late, Nanos, Reuse, RoundPlan, SlicePlan};

/// How long the first connections may be tried again and again, for servers whose backlog refuses some at first.
const SET_UP: Nanos = Nanos::from_millis(500);

/// An open loop's window begins this long after the threads agreed on it, so that all connections stand in line by then.
const LEAD: Nanos = Nanos::from_micros(500);

/// What a thread may be late by, beyond what its timeouts explain, before the others give up on it.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the threads of a round share, and use between slices only.
pub(super) struct Agreement {
    barrier: Barrier,
    start: AtomicU64,
}

impl Agreement {
    /// Among so many threads.
    pub(super) fn new(threads: u32) -> Self {
        Self { barrier: Barrier::new(threads as usize), start: AtomicU64::new(0) }
    }

    async fn meet(&self, longest: Duration) -> Result<(), EngineError> {
        let met = tokio::time::timeout(longest + PATIENCE, self.barrier.wait()).await;
        met.map(|_| ()).map_err(|_| EngineError::ThreadLost)
    }
}

/// One thread of the round.
pub(super) struct Thread<D: Driver> {
    pub(super) clock: Clock,
    pub(super) agreement: Arc<Agreement>,
    pub(super) arms: Vec<ThreadArm<D>>,
    pub(super) part: Part,
    pub(super) gate: Rc<Gate>,
    /// `None`: nobody watches.
    pub(super) post: Option<Post>,
    /// `None`: a closed loop.
    pub(super) open_loop: Option<OpenLoop>,
    /// One for each arm on thread 0, none on the others.
    pub(super) observers: Vec<Observer>,
}

/// A thread's part of an open loop.
pub(super) struct OpenLoop {
    /// Of all threads together.
    pub(super) arrivals: Arrivals,
    /// Calls in each session, where the arrivals are those of sessions.
    pub(super) calls: Option<u64>,
    pub(super) late: Late,
    pub(super) timer: Rc<Mutex<Timer>>,
    /// The schedule's end is followed by this much time for what was due.
    pub(super) drain: Nanos,
}

/// One arm, as one thread sees it.
pub(super) struct ThreadArm<D: Driver> {
    arm: Rc<Arm<D>>,
    /// Boxed, because a future moves its output's size with every poll.
    slots: Vec<Box<Slot<D::Connection>>>,
    warm_up: Rc<RefCell<Recorder>>,
    slices: Rc<RefCell<Recorder>>,
    /// Where its next slice begins in the schedule; `None`: at its beginning.
    origin: Option<Origin>,
}

/// What one thread recorded.
pub(super) struct ThreadRecording {
    /// By arm: the warm-up's recorder, then that of the slices.
    pub(super) arms: Vec<(Recorder, Recorder)>,
    /// By slice.
    pub(super) slices: Vec<ThreadSlice>,
}

/// One slice, as one thread saw it.
#[derive(Debug, Default)]
pub(super) struct ThreadSlice {
    pub(super) good: u64,
    pub(super) completed: u64,
    pub(super) scheduled: u64,
    pub(super) begun: u64,
    /// When its last exchange completed, from the agreed start; zero if none did.
    pub(super) last: Nanos,
    pub(super) ending: Ending,
    pub(super) engine_cpu: Nanos,
    /// From the agreed start until every thread has drained.
    pub(super) wall: Nanos,
    /// By arm, on thread 0 only.
    pub(super) cpu: Vec<Option<Nanos>>,
}

/// What ended a slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Ending {
    /// Its length.
    #[default]
    Length,
    /// Its number of starts, or a stop from outside.
    Early,
}

impl<D: Driver> ThreadArm<D> {
    /// With so many connections, none of them open. Within a runtime.
    pub(super) fn new(arm: Arm<D>, connections: u64) -> Self {
        Self {
            arm: Rc::new(arm),
            slots: (0..connections).map(|_| Box::new(Slot::new())).collect(),
            warm_up: Rc::default(),
            slices: Rc::default(),
            origin: None,
        }
    }

    /// Opens what is not open. What fails is tried again until `deadline`; after that the worker loop meets the failure,
    /// where it counts. Where each exchange opens a connection of its own, none is open before it.
    async fn open(&mut self, recorder: &Rc<RefCell<Recorder>>, deadline: Nanos) {
        if self.arm.reuse == Reuse::Close {
            return;
        }
        let slots = std::mem::take(&mut self.slots);
        let opening = slots.into_iter().map(|mut slot| {
            let (arm, recorder) = (Rc::clone(&self.arm), Rc::clone(recorder));
            async move {
                while slot.ready(&arm, &recorder).await.is_err() && arm.clock.now() < deadline {
                    tokio::time::sleep(worker::FIRST_WAIT).await;
                }
                slot
            }
        });
        self.slots = crew::run(opening).await;
    }

    /// Drives all connections through a window and waits until the last exchange has ended.
    async fn drive<S: Starts>(&mut self, recorder: &Rc<RefCell<Recorder>>, starts: S) {
        let slots = std::mem::take(&mut self.slots);
        let driving =
            slots.into_iter().map(|slot| drive(slot, Rc::clone(&self.arm), Rc::clone(recorder), starts.clone()));
        self.slots = crew::run(driving).await;
    }
}

/// The arms in the order in which the slices load them first: that order is drawn anew for each round, so no arm is always the one
/// that has waited since its warm-up.
fn warm_up_order(plan: &RoundPlan) -> Vec<usize> {
    let mut order: Vec<usize> = (0..plan.arms.len()).collect();
    order.sort_by_key(|&arm| plan.slices.iter().position(|slice| slice.arm == arm).unwrap_or(usize::MAX));
    order
}

impl<D: Driver> Thread<D> {
    /// Goes through the whole round.
    pub(super) async fn run(mut self, plan: &RoundPlan) -> Result<ThreadRecording, EngineError> {
        let drain = Duration::from(plan.load.request_timeout) + Duration::from(plan.load.connect_timeout) * 2;
        if let Some(post) = &self.post {
            tokio::task::spawn_local(post.clone().keep(self.clock, Rc::clone(&self.gate), self.recorders()));
        }
        for index in 0..self.arms.len() {
            let recorder = Rc::clone(&self.arms[index].warm_up);
            self.open(index, &recorder, self.clock.now() + SET_UP).await;
        }
        let mut slices = Vec::with_capacity(plan.slices.len());
        for index in warm_up_order(plan) {
            self.warm_up(index, plan.warm_up, drain).await?;
        }
        for slice in &plan.slices {
            slices.push(self.slice(*slice, drain).await?);
        }
        if let Some(post) = &self.post {
            self.look();
            post.ended(self.clock.now());
        }
        let arms = self.arms.into_iter().map(|arm| (arm.warm_up.take(), arm.slices.take())).collect();
        Ok(ThreadRecording { arms, slices })
    }

    async fn warm_up(&mut self, arm: usize, length: Nanos, drain: Duration) -> Result<(), EngineError> {
        if length == Nanos::ZERO {
            return Ok(());
        }
        let recorder = Rc::clone(&self.arms[arm].warm_up);
        self.open(arm, &recorder, Nanos::ZERO).await;
        self.agreement.meet(drain).await?;
        let start = self.start().await?;
        self.drive(arm, &recorder, start, length, None).await;
        // The slices have a schedule of their own.
        self.arms[arm].origin = None;
        self.agreement.meet(length.as_duration() + drain).await
    }

    async fn slice(&mut self, plan: SlicePlan, drain: Duration) -> Result<ThreadSlice, EngineError> {
        let recorder = Rc::clone(&self.arms[plan.arm].slices);
        self.open(plan.arm, &recorder, Nanos::ZERO).await;
        self.agreement.meet(drain).await?;
        let before = self.sample();
        let start = self.start().await?;
        if let Some(post) = &self.post {
            post.begun(start);
        }
        let engine_before = thread_cpu();
        recorder.borrow_mut().begin_slice(start + plan.lead_in, start + plan.length);
        let ending = self.drive(plan.arm, &recorder, start, plan.length, plan.requests).await;
        self.agreement.meet(plan.length.as_duration() + drain).await?;
        let engine_cpu = thread_cpu() - engine_before;
        let wall = self.clock.now() - start;
        let after = self.sample();
        let cpu = before.into_iter().zip(after).map(|(before, after)| Some(after? - before?)).collect();
        let tally = recorder.borrow().tally();
        let Tally { good, completed, scheduled, begun, last, .. } = tally;
        let last = last - start;
        Ok(ThreadSlice { good, completed, scheduled, begun, last, ending, engine_cpu, wall, cpu })
    }

    /// The time at which all threads begin, as the first one sets it.
    async fn start(&mut self) -> Result<Nanos, EngineError> {
        if !self.observers.is_empty() {
            let lead = if self.open_loop.is_some() { LEAD } else { Nanos::ZERO };
            self.agreement.start.store((self.clock.now() + lead).0, Ordering::Release);
        }
        self.agreement.meet(Duration::ZERO).await?;
        Ok(Nanos(self.agreement.start.load(Ordering::Acquire)))
    }

    /// Drives an arm through a window of the plan's kind of load, with so many starts of all threads together at most.
    async fn drive(
        &mut self,
        arm: usize,
        recorder: &Rc<RefCell<Recorder>>,
        start: Nanos,
        length: Nanos,
        starts: Option<u64>,
    ) -> Ending {
        // A stop may have come between two looks; this one is before anything starts.
        self.look();
        let is_used_up = match &self.open_loop {
            None => {
                self.gate.open(start + length, starts.map(|starts| share(starts, self.part)));
                self.arms[arm].drive(recorder, Unscheduled(Rc::clone(&self.gate))).await;
                self.gate.is_used_up()
            }
            Some(open_loop) => {
                let line = self.line(open_loop, self.arms[arm].origin, start, length, starts);
                let arm = &mut self.arms[arm];
                match open_loop.calls {
                    None => arm.drive(recorder, Rc::clone(&line)).await,
                    Some(calls) => {
                        let calls = Calls::new(calls, starts);
                        arm.drive(recorder, Sessions::new(Rc::clone(&line), calls)).await;
                    }
                }
                recorder.borrow_mut().dropped(line.dropped());
                let window = line.window.borrow();
                if !line.is_stopped() {
                    arm.origin = Some(window.end());
                }
                window.is_used_up()
            }
        };
        if is_used_up || self.gate.stopped().is_some() { Ending::Early } else { Ending::Length }
    }

    fn line(
        &self,
        open_loop: &OpenLoop,
        origin: Option<Origin>,
        start: Nanos,
        length: Nanos,
        starts: Option<u64>,
    ) -> Rc<Line> {
        let OpenLoop { arrivals, calls, late, timer, drain } = open_loop;
        let origin = origin.unwrap_or_else(|| Origin::of(arrivals));
        let starts = match calls {
            Some(calls) => starts.map(|starts| Calls::sessions(*calls, starts)),
            None => starts,
        };
        Rc::new(Line {
            clock: self.clock,
            start,
            window: RefCell::new(Window::new(*arrivals, origin, length, starts, self.part)),
            policy: *late,
            gate: Rc::clone(&self.gate),
            look: if self.post.is_some() { LOOK } else { Nanos(u64::MAX) },
            given_up: start + length + *drain,
            dropped: Cell::new(0),
            waiting: Cell::new(0),
            timer: Rc::clone(timer),
        })
    }

    /// Opens an arm's connections ahead, unless sessions open their own.
    async fn open(&mut self, arm: usize, recorder: &Rc<RefCell<Recorder>>, deadline: Nanos) {
        if self.open_loop.as_ref().is_none_or(|open_loop| open_loop.calls.is_none()) {
            self.arms[arm].open(recorder, deadline).await;
        }
    }

    /// Publishes to those who watch, and learns whether they have stopped the round.
    fn look(&self) {
        if let Some(post) = &self.post {
            post.look(self.clock, &self.gate, &self.recorders());
        }
    }

    /// Of the slices.
    fn recorders(&self) -> Vec<Rc<RefCell<Recorder>>> {
        self.arms.iter().map(|arm| Rc::clone(&arm.slices)).collect()
    }

    /// The CPU time of each arm so far; nothing on other threads than the first.
    fn sample(&mut self) -> Vec<Option<Nanos>> {
        self.observers.iter_mut().map(Observer::sample).collect()
    }
}

/// The share of `total` that a thread has. The shares differ by one at most.
pub(super) fn share(total: u64, part: Part) -> u64 {
    let threads = u64::from(part.threads);
    total / threads + u64::from(u64::from(part.thread) < total % threads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_and_starts_are_shared_exactly_and_evenly() {
        for (total, threads) in [(3, 2), (10, 4), (64, 1), (5, 5), (200, 7), (1, 3), (u64::MAX, 2)] {
            let parts: Vec<_> = (0..threads).map(|thread| share(total, Part { thread, threads })).collect();
            assert_eq!(parts.iter().sum::<u64>(), total);
            assert!(parts.iter().max() <= parts.iter().min().map(|least| least + 1).as_ref(), "{parts:?}");
        }
    }

    #[test]
    fn arms_are_warmed_up_in_the_order_of_their_first_slices() {
        let slice = |arm| SlicePlan { arm, length: Nanos(2), lead_in: Nanos(1), requests: None };
        let plan = |slices: &[usize]| RoundPlan {
            scenario: "order".to_owned(),
            arms: vec![crate::model::ArmPlan::plain(([127, 0, 0, 1], 80).into()); 3],
            load: crate::model::Load::default(),
            warm_up: Nanos(1),
            slices: slices.iter().copied().map(slice).collect(),
        };
        assert_eq!(warm_up_order(&plan(&[1, 0, 0, 1, 2])), [1, 0, 2]);
        assert_eq!(warm_up_order(&plan(&[2])), [2, 0, 1], "an arm without a slice comes last");
    }
}
