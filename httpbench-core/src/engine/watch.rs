//! A round as other threads see it while it runs, and their way to end it early.
//!
//! Engine threads look up about ten times a second, by a task of their own: no exchange waits for it, and nothing of this
//! runs in a round that nobody watches. Knows no schedule and no connection. Invariant: what is published never runs
//! backwards within a round, and is exact once the round has ended.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::clock::Clock;
use super::gate::Gate;
use super::recorder::Recorder;
use crate::model::{Counts, Nanos};

/// How often a thread looks up and publishes.
pub(super) const LOOK: Nanos = Nanos::from_millis(100);

/// Shows how far a round has come, and ends it early; see [`run_watched`](super::run_watched).
///
/// Clones are the same watch. One watch can see several rounds, one after the other; once stopped, it stays so.
///
/// ```
/// use httpbench_core::engine::{Progress, Watch};
///
/// let watch = Watch::new();
/// assert_eq!(watch.progress(), Progress::default());
/// let other = watch.clone();
/// std::thread::spawn(move || other.stop()).join().expect("it does not panic");
/// assert!(watch.is_stopped());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Watch(Arc<Shared>);

/// How far a round's slices have come, a tenth of a second ago at most. The warm-up is in none of the counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Exchanges started.
    pub started: u64,
    /// Whole answers, good or wrong.
    pub completed: u64,
    /// Wrong answers and errors.
    pub failed: u64,
    /// Since the first slice began, until the last one ended. Zero before: connections are opened, or the warm-up runs.
    pub elapsed: Nanos,
}

#[derive(Debug, Default)]
struct Shared {
    stopped: AtomicBool,
    /// When the first slice began by the engine's clock, and when the last one ended; zero before.
    begun: AtomicU64,
    ended: AtomicU64,
    /// Locked when a round begins and by those who ask, never by a thread that drives load.
    threads: Mutex<Vec<Arc<Published>>>,
}

/// What one engine thread has counted.
#[derive(Debug, Default)]
struct Published {
    started: AtomicU64,
    completed: AtomicU64,
    failed: AtomicU64,
}

impl Watch {
    /// Of a round that is yet to begin.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the round early, within about a fifth of a second: no exchange starts any more, here or in later slices.
    ///
    /// What is outstanding ends by itself or is an error after the request timeout, and the recording is complete as far
    /// as it went. Only stores a flag, so a signal handler may call it.
    pub fn stop(&self) {
        self.0.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether somebody has stopped it.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.0.stopped.load(Ordering::Relaxed)
    }

    /// How far the round has come.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let mut progress = Progress { elapsed: self.elapsed(), ..Progress::default() };
        for thread in self.threads().iter() {
            progress.started += thread.started.load(Ordering::Relaxed);
            progress.completed += thread.completed.load(Ordering::Relaxed);
            progress.failed += thread.failed.load(Ordering::Relaxed);
        }
        progress
    }

    fn elapsed(&self) -> Nanos {
        match (self.0.begun.load(Ordering::Relaxed), self.0.ended.load(Ordering::Relaxed)) {
            (0, _) => Nanos::ZERO,
            (begun, 0) => Clock::new().now() - Nanos(begun),
            (begun, ended) => Nanos(ended) - Nanos(begun),
        }
    }

    fn threads(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Published>>> {
        // Nobody panics between two changes of the list.
        self.0.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets an earlier round, and gives each thread of the next one its post.
    pub(super) fn posts(&self, threads: u32) -> Vec<Post> {
        let mut published = self.threads();
        *published = (0..threads).map(|_| Arc::default()).collect();
        self.0.begun.store(0, Ordering::Relaxed);
        self.0.ended.store(0, Ordering::Relaxed);
        published.iter().map(|published| Post { watch: self.clone(), published: Arc::clone(published) }).collect()
    }
}

/// Where one engine thread publishes, and learns that it shall stop.
#[derive(Clone, Debug)]
pub(super) struct Post {
    watch: Watch,
    published: Arc<Published>,
}

impl Post {
    /// Looks up again and again, for as long as the thread's runtime lives.
    pub(super) async fn keep(self, clock: Clock, gate: Rc<Gate>, recorders: Vec<Rc<RefCell<Recorder>>>) {
        loop {
            tokio::time::sleep(Duration::from(LOOK)).await;
            self.look(clock, &gate, &recorders);
        }
    }

    /// Publishes what was counted so far, and shuts the gate if somebody has stopped the round.
    pub(super) fn look(&self, clock: Clock, gate: &Gate, recorders: &[Rc<RefCell<Recorder>>]) {
        let mut sum = Progress::default();
        for recorder in recorders {
            let recorder = recorder.borrow();
            let counts: &Counts = recorder.counts();
            sum.started += counts.started;
            sum.completed += counts.good + counts.check_failures;
            sum.failed += counts.failed();
        }
        self.published.started.store(sum.started, Ordering::Relaxed);
        self.published.completed.store(sum.completed, Ordering::Relaxed);
        self.published.failed.store(sum.failed, Ordering::Relaxed);
        if self.watch.is_stopped() {
            gate.stop(clock.now());
        }
    }

    /// A slice began.
    pub(super) fn begun(&self, at: Nanos) {
        // Only the first of them all is kept.
        let _ = self.watch.0.begun.compare_exchange(0, at.0, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// The last slice ended.
    pub(super) fn ended(&self, at: Nanos) {
        self.watch.0.ended.fetch_max(at.0, Ordering::Relaxed);
    }
}
