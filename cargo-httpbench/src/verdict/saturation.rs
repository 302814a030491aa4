//! Whether the measured throughput was the server's, or the load engine's own.

use serde::Serialize;

use crate::measure::MeasuredRound;
use crate::stats::median;

/// The engine counts as busy throughout from this share of its threads' time.
const ENGINE_BUSY: f64 = 0.97;

/// The server counts as waiting up to this share of its cores' time.
const SERVER_BUSY: f64 = 0.90;

/// The engine was the bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Saturation {
    /// The share of their time that the engine's threads were busy.
    pub engine_busy: f64,
    /// The share of its cores that the server kept busy.
    pub server_busy: f64,
}

/// Judges a scenario's rounds: the engine's threads were busy for at least 97 % of the time, while the server's cores were
/// for at most 90 %.
///
/// `server_cores` is the number of cores that the server was bound to. Where it shares the engine's (`None`), the two
/// cannot be told apart and nothing is judged: the report says that they share.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a number of cores")]
pub fn judge_saturation(rounds: &[MeasuredRound], server_cores: Option<usize>) -> Option<Saturation> {
    let cores = server_cores? as f64;
    let engine: Vec<f64> = rounds.iter().filter_map(MeasuredRound::engine_busy).collect();
    let server: Vec<f64> = rounds.iter().filter_map(MeasuredRound::server_cores_busy).collect();
    let (engine_busy, server_busy) = (median(&engine)?, median(&server)? / cores);
    (engine_busy >= ENGINE_BUSY && server_busy <= SERVER_BUSY).then_some(Saturation { engine_busy, server_busy })
}

#[cfg(test)]
mod tests {
    use httpbench_core::model::Nanos;

    use super::*;
    use crate::measure::sample::round;

    /// Engine and server busy for these shares of one core each.
    fn busy(engine: u64, server: u64) -> Vec<MeasuredRound> {
        let mut round = round(1_000, Nanos::from_millis(1));
        round.recording.engine.cpu = Nanos::from_millis(engine * 10);
        round.recording.slices[0].cpu = vec![Some(Nanos::from_millis(server * 10))];
        vec![round]
    }

    #[test]
    fn busy_engine_beside_a_waiting_server_is_the_bottleneck() {
        assert_eq!(judge_saturation(&busy(99, 60), Some(1)), Some(Saturation { engine_busy: 0.99, server_busy: 0.6 }));
        assert!(judge_saturation(&busy(99, 95), Some(2)).is_some(), "the server left half of its cores idle");
    }

    #[test]
    fn busy_server_is_the_bottleneck_however_busy_the_engine_is() {
        assert_eq!(judge_saturation(&busy(99, 95), Some(1)), None);
        assert_eq!(judge_saturation(&busy(96, 60), Some(1)), None);
    }

    #[test]
    fn nothing_is_judged_on_shared_cores_or_without_samples() {
        assert_eq!(judge_saturation(&busy(99, 60), None), None);
        assert_eq!(judge_saturation(&[], Some(1)), None);
    }
}
