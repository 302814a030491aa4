//! Waits until the machine has nothing else to do, because a measurement beside other work proves nothing.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// How long is looked.
const LOOK: Duration = Duration::from_millis(300);

/// The share of all cores' time that others may use: half of what makes the command discard a round.
const QUIET: f64 = 0.05;

/// Waits until next to nothing else runs, or patience is at its end. Does not wait where the system does not tell.
pub fn wait_until_quiet(patience: Duration) {
    let end = Instant::now() + patience;
    while busy_share().is_some_and(|busy| busy > QUIET) && Instant::now() < end {}
}

/// The share of all cores' time that was used in the next moment.
fn busy_share() -> Option<f64> {
    let before = ticks()?;
    thread::sleep(LOOK);
    let after = ticks()?;
    let total = after.total.saturating_sub(before.total);
    #[expect(clippy::cast_precision_loss, reason = "ticks of a moment")]
    (total > 0).then(|| 1.0 - after.idle.saturating_sub(before.idle) as f64 / total as f64)
}

struct Ticks {
    idle: u64,
    total: u64,
}

/// The first line of `/proc/stat` (proc_stat(5)): user nice system idle iowait irq softirq steal, and guest times that stand in
/// user time already.
fn ticks() -> Option<Ticks> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let times: Vec<u64> = line.split_ascii_whitespace().take(8).map_while(|word| word.parse().ok()).collect();
    let [_, _, _, idle, iowait, ..] = times[..] else { return None };
    Some(Ticks { idle: idle + iowait, total: times.iter().sum() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_has_an_end_however_busy_the_machine_is() {
        let started = Instant::now();
        wait_until_quiet(Duration::ZERO);
        assert!(started.elapsed() < Duration::from_secs(60));
        assert!(busy_share().is_none_or(|busy| (0.0..=1.0).contains(&busy)));
    }
}
