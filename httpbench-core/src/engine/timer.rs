//! Waking at a moment to the microsecond: `timerfd` on Linux, tokio's timer (a millisecond's step) elsewhere.
//!
//! One for each engine thread. Knows nothing of schedules: it sleeps until it is told, or somewhat longer, never less.

use std::io;

use super::clock::Clock;
use crate::model::Nanos;

pub(super) use system::Timer;

#[cfg(target_os = "linux")]
mod system {
    use std::os::fd::{AsFd, AsRawFd, RawFd};
    use std::time::Duration;

    use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    use super::{Clock, Nanos, io};

    /// A timer on the engine's clock.
    pub(in crate::engine) struct Timer {
        descriptor: AsyncFd<Descriptor>,
        /// When it fires, unless it has.
        armed: Option<Nanos>,
    }

    struct Descriptor(TimerFd);

    impl AsRawFd for Descriptor {
        fn as_raw_fd(&self) -> RawFd {
            self.0.as_fd().as_raw_fd()
        }
    }

    impl Timer {
        /// Within a runtime.
        #[expect(deprecated, reason = "sound here: the descriptor is owned and never changes; its heir is `unsafe`")]
        pub(in crate::engine) fn new(_clock: Clock) -> io::Result<Self> {
            let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
            // The engine's clock, so that its times mean the same to the kernel.
            let descriptor = Descriptor(TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?);
            Ok(Self { descriptor: AsyncFd::with_interest(descriptor, Interest::READABLE)?, armed: None })
        }

        /// Sleeps until `time`; may wake early if an earlier sleep was given up.
        pub(in crate::engine) async fn sleep_until(&mut self, time: Nanos) {
            if self.armed != Some(time) {
                let at = Expiration::OneShot(Duration::from(time).into());
                let set = self.descriptor.get_ref().0.set(at, TimerSetTimeFlags::TFD_TIMER_ABSTIME);
                set.expect("a timer of this process accepts any time after zero");
                self.armed = Some(time);
            }
            let mut fired = self.descriptor.readable().await.expect("the runtime outlives its tasks");
            // Not read: setting the timer again forgets the expiration, and each one is an edge of its own to epoll.
            fired.clear_ready();
            self.armed = None;
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::{Clock, Nanos, io};

    /// tokio's timer.
    pub(in crate::engine) struct Timer {
        clock: Clock,
    }

    impl Timer {
        /// Within a runtime.
        pub(in crate::engine) fn new(clock: Clock) -> io::Result<Self> {
            Ok(Self { clock })
        }

        /// Sleeps until `time`.
        pub(in crate::engine) async fn sleep_until(&mut self, time: Nanos) {
            tokio::time::sleep_until(self.clock.at(time)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn timer_never_fires_early_and_again_and_again() {
        let clock = Clock::new();
        let mut timer = Timer::new(clock).expect("a timer");
        for micros in [500, 1, 300, 2_000] {
            let time = clock.now() + Nanos::from_micros(micros);
            timer.sleep_until(time).await;
            assert!(clock.now() >= time);
        }
        // A time that has passed is no reason to wait.
        timer.sleep_until(Nanos(1)).await;
    }

    #[tokio::test]
    async fn timer_that_was_given_up_can_be_set_again() {
        let clock = Clock::new();
        let mut timer = Timer::new(clock).expect("a timer");
        let soon = std::time::Duration::from_millis(2);
        let far = clock.now() + Nanos::from_secs(3_600);
        tokio::time::timeout(soon, timer.sleep_until(far)).await.expect_err("far away");
        let time = clock.now() + Nanos::from_millis(1);
        timer.sleep_until(time).await;
        assert!(clock.now() >= time);
    }
}
