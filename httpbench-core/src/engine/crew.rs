//! One task that runs all connections of an arm on a thread: what a connection costs is then its own work alone.
//!
//! tokio's scheduler takes some 350 instructions to run a task once, about as much as the whole exchange beside it. Here a
//! connection's waker puts its number into a line, and the one task polls those who stand in it, in their order: whose
//! answer came first is served first. Leaves what is polled to the [worker](super::worker). Invariants: every member ends
//! before the crew does; the runtime looks for new events after at most [`TURN`] members, so a timer is never kept waiting
//! behind a long line.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// The most members that are polled in a row. tokio looks for events as often.
const TURN: usize = 61;

/// Runs all futures to their end, in a task of its own, and gives what they came to, in their order. Within a local
/// runtime.
///
/// A panic of one of them goes on in the caller.
pub(super) async fn run<F>(futures: impl Iterator<Item = F>) -> Vec<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    // A task, because a waker that leads to the runtime's main future makes a system call. Unconstrained, because a budget
    // is meant for one connection, and the crew yields by itself.
    let crew = tokio::task::spawn_local(tokio::task::coop::unconstrained(Crew::new(futures)));
    match crew.await {
        Ok(outputs) => outputs,
        // It is never cancelled, so it panicked.
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

struct Crew<F: Future> {
    members: Vec<Member<F>>,
    outputs: Vec<Option<F::Output>>,
    running: usize,
    line: Arc<Mutex<Line>>,
    /// Those that left the line and were not polled yet.
    due: VecDeque<u32>,
}

struct Member<F> {
    /// `None` once it has ended.
    future: Option<Pin<Box<F>>>,
    call: Arc<Call>,
    waker: Waker,
}

/// Who is to be polled, and who polls them.
#[derive(Default)]
struct Line {
    called: Vec<u32>,
    crew: Option<Waker>,
}

/// What a member's waker does: it puts the member into the line, once.
struct Call {
    member: u32,
    called: AtomicBool,
    line: Arc<Mutex<Line>>,
}

fn lock(line: &Mutex<Line>) -> MutexGuard<'_, Line> {
    // No half-done change can be in it: what it holds is changed by single pushes.
    line.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Wake for Call {
    #[inline]
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    #[inline]
    fn wake_by_ref(self: &Arc<Self>) {
        if self.called.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut line = lock(&self.line);
        line.called.push(self.member);
        // The crew empties the line when it is polled: whoever finds it empty is the first since then.
        if line.called.len() == 1
            && let Some(crew) = &line.crew
        {
            crew.wake_by_ref();
        }
    }
}

impl<F: Future> Crew<F> {
    fn new(futures: impl Iterator<Item = F>) -> Self {
        let line = Arc::new(Mutex::new(Line::default()));
        let members = futures.zip(0..).map(|(future, member)| {
            let call = Arc::new(Call { member, called: AtomicBool::new(true), line: Arc::clone(&line) });
            Member { future: Some(Box::pin(future)), waker: Waker::from(Arc::clone(&call)), call }
        });
        let members: Vec<_> = members.collect();
        let due = members.iter().map(|member| member.call.member).collect();
        let outputs = members.iter().map(|_| None).collect();
        Self { running: members.len(), members, outputs, line, due }
    }

    /// Polls one member, unless it has ended.
    #[inline]
    fn poll_member(&mut self, number: u32) {
        let member = &mut self.members[number as usize];
        // Before the poll: a call in the middle of it is a call for another one.
        member.call.called.store(false, Ordering::Release);
        let Some(future) = &mut member.future else { return };
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&member.waker)) {
            member.future = None;
            self.outputs[number as usize] = Some(output);
            self.running -= 1;
        }
    }
}

/// Its members are boxed, so nothing in it needs to stay in place.
impl<F: Future> Unpin for Crew<F> {}

impl<F: Future> Future for Crew<F> {
    type Output = Vec<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Vec<F::Output>> {
        let crew = &mut *self;
        {
            let mut line = lock(&crew.line);
            if !line.crew.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
                line.crew = Some(cx.waker().clone());
            }
            crew.due.extend(line.called.drain(..));
        }
        for _ in 0..TURN {
            let Some(number) = crew.due.pop_front() else { break };
            crew.poll_member(number);
        }
        if crew.running == 0 {
            return Poll::Ready(crew.outputs.drain(..).flatten().collect());
        }
        if !crew.due.is_empty() {
            // Goes on after the runtime has looked for events.
            let _ = pin!(tokio::task::yield_now()).poll(cx);
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;
    use std::time::Duration;

    use tokio::runtime::{Builder, LocalOptions};
    use tokio::sync::Notify;

    use super::*;

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default());
        runtime.expect("a runtime").block_on(future)
    }

    #[test]
    fn outputs_come_in_the_order_of_the_futures_whoever_ends_first() {
        let outputs = block_on(run((0..200_u64).map(|number| async move {
            tokio::time::sleep(Duration::from_micros((200 - number) * 10)).await;
            number
        })));
        assert_eq!(outputs, (0..200).collect::<Vec<_>>());
        assert_eq!(block_on(run(std::iter::empty::<std::future::Ready<()>>())), []);
    }

    #[test]
    fn members_are_polled_in_the_order_in_which_they_were_called() {
        let order = [3, 1, 4, 0, 2];
        let ended = block_on(async {
            let gates: Rc<Vec<_>> = Rc::new((0..5).map(|_| Notify::new()).collect());
            let ended = Rc::new(RefCell::new(Vec::new()));
            let members: Vec<_> = (0..5_usize)
                .map(|number| {
                    let (gates, ended) = (Rc::clone(&gates), Rc::clone(&ended));
                    async move {
                        gates[number].notified().await;
                        ended.borrow_mut().push(number);
                    }
                })
                .collect();
            let crew = tokio::task::spawn_local(run(members.into_iter()));
            tokio::time::sleep(Duration::from_millis(1)).await;
            order.iter().for_each(|number| gates[*number].notify_one());
            crew.await.expect("no panic");
            ended.take()
        });
        assert_eq!(ended, order);
    }

    #[test]
    fn member_that_is_always_ready_keeps_neither_the_others_nor_a_timer_waiting() {
        block_on(async {
            let done = Rc::new(std::cell::Cell::new(false));
            let members = (0..300).map(|number| {
                let done = Rc::clone(&done);
                async move {
                    if number == 299 {
                        tokio::time::sleep(Duration::from_millis(2)).await;
                        done.set(true);
                    }
                    while !done.get() {
                        let mut yielded = false;
                        std::future::poll_fn(|cx| {
                            cx.waker().wake_by_ref();
                            if std::mem::replace(&mut yielded, true) { Poll::Ready(()) } else { Poll::Pending }
                        })
                        .await;
                    }
                }
            });
            let members: Vec<_> = members.collect();
            let ended = tokio::time::timeout(Duration::from_secs(20), run(members.into_iter())).await;
            assert_eq!(ended.expect("the timer was seen").len(), 300);
        });
    }

    #[test]
    fn call_from_another_thread_is_heard() {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(2));
            sender.send(7).expect("somebody waits");
        });
        assert_eq!(block_on(run(std::iter::once(receiver))), [Ok(7)]);
        thread.join().expect("no panic");
    }

    #[test]
    fn panic_of_a_member_goes_on_in_the_caller() {
        let members = (0..3).map(|number| async move { assert!(number != 1, "number {number}") });
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| block_on(run(members))));
        assert!(caught.is_err());
    }
}
