//! What a selftest compares, and in which order.

use std::fmt;
use std::str::FromStr;

use httpbench_core::model::Ratio;
use serde::{Deserialize, Serialize};

use super::{Length, SelftestOptions};
use crate::report::quantity;

/// How fast the built-in server is to be, and how it is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Speed {
    /// Requests that it can answer per second, about.
    pub capacity: f64,
    /// Starts per second of an open loop; `None`: a closed one.
    pub arrival_rate: Option<f64>,
}

/// The work that the candidate does more for each request, as a fraction of what the baseline's whole request costs.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Change(pub f64);

/// A text that is no speed or no change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseError(String);

/// One kind of comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Kind {
    pub(super) speed: Speed,
    pub(super) change: Change,
}

impl Change {
    /// Two equal servers.
    pub const NONE: Self = Self(0.0);

    /// Whether the two servers are equal.
    #[must_use]
    pub fn is_none(self) -> bool {
        self.0 == 0.0
    }
}

impl Speed {
    const fn closed(capacity: f64) -> Self {
        Self { capacity, arrival_rate: None }
    }
}

/// A server that does next to nothing, one of usual speed, a slow one, and the usual one in an open loop at a third of what it can do.
const SPEEDS: [Speed; 4] = [
    Speed::closed(100_000.0),
    Speed::closed(3_000.0),
    Speed::closed(300.0),
    Speed { capacity: 3_000.0, arrival_rate: Some(1_000.0) },
];
const SHORT_CHANGES: [Change; 2] = [Change::NONE, Change(0.05)];
const LONG_CHANGES: [Change; 4] = [Change::NONE, Change(0.02), Change(0.05), Change(0.30)];

/// Every kind that was asked for.
pub(super) fn kinds(options: &SelftestOptions) -> Vec<Kind> {
    let speeds = if options.speeds.is_empty() { &SPEEDS[..] } else { &options.speeds };
    let changes = match (options.changes.is_empty(), options.length) {
        (false, _) => &options.changes[..],
        (true, Length::Short) => &SHORT_CHANGES,
        (true, Length::Long(_)) => &LONG_CHANGES,
    };
    speeds.iter().flat_map(|&speed| changes.iter().map(move |&change| Kind { speed, change })).collect()
}

/// Each kind as often as it is missing, in passes that hold every kind once, each pass in a random order: so that whatever ends the
/// selftest early leaves about as many of each.
pub(super) fn shuffled(missing: &[(Kind, u32)], random: &mut fastrand::Rng) -> Vec<Kind> {
    let passes = missing.iter().map(|(_, count)| *count).max().unwrap_or(0);
    let mut order = Vec::new();
    for pass in 0..passes {
        let mut kinds: Vec<Kind> = missing.iter().filter(|(_, count)| *count > pass).map(|(kind, _)| *kind).collect();
        random.shuffle(&mut kinds);
        order.extend(kinds);
    }
    order
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}, {}", self.speed, self.change)
    }
}

impl fmt::Display for Change {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_none() {
            return out.pad("equal servers");
        }
        out.pad(&format!("+{} CPU", Ratio(self.0)))
    }
}

/// `aa` for equal servers, else a percentage such as `+5%`.
impl FromStr for Change {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        if text.eq_ignore_ascii_case("aa") {
            return Ok(Self::NONE);
        }
        let number = text.trim().trim_start_matches('+').trim_end_matches('%').trim();
        match number.parse::<f64>() {
            Ok(percent) if percent > 0.0 && percent <= 1_000.0 => Ok(Self(percent / 100.0)),
            _ => Err(ParseError(format!("`{text}` is neither `aa` nor a percentage of more work such as `+5%`"))),
        }
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.arrival_rate {
            None => out.pad(&quantity::per_second(self.capacity)),
            Some(arrivals) => out.pad(&format!(
                "{} arrivals at {}",
                quantity::per_second(arrivals),
                quantity::per_second(self.capacity)
            )),
        }
    }
}

/// `3000`: so many answers per second in a closed loop. `3000@1000`: the same server, with 1,000 arrivals per second.
impl FromStr for Speed {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (capacity, arrivals) = match text.split_once('@') {
            Some((capacity, arrivals)) => (capacity, Some(arrivals)),
            None => (text, None),
        };
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|value| (1.0..=1e6).contains(value));
        let refused = || {
            ParseError(format!(
                "`{text}` is no speed: write answers per second such as `3000`, or with arrivals per second `3000@1000`"
            ))
        };
        let capacity = number(capacity).ok_or_else(refused)?;
        let arrival_rate = arrivals.map(|arrivals| number(arrivals).ok_or_else(refused)).transpose()?;
        Ok(Self { capacity, arrival_rate })
    }
}

impl TryFrom<String> for Speed {
    type Error = ParseError;

    fn try_from(text: String) -> Result<Self, ParseError> {
        text.parse()
    }
}

impl From<Speed> for String {
    fn from(speed: Speed) -> Self {
        match speed.arrival_rate {
            None => speed.capacity.to_string(),
            Some(arrivals) => format!("{}@{arrivals}", speed.capacity),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_and_changes_are_read_and_told() {
        let open: Speed = "3000@1000".parse().expect("a speed");
        assert_eq!(open, SPEEDS[3]);
        assert_eq!(String::from(open), "3000@1000");
        assert_eq!("aa".parse(), Ok(Change::NONE));
        assert_eq!("+2.5%".parse(), Ok(Change(0.025)));
        assert_eq!(Change(0.05).to_string(), "+5% CPU");
        assert_eq!(Change(0.025).to_string(), "+2.5% CPU");
        assert_eq!(Change(0.30).to_string(), "+30% CPU");
        for wrong in ["", "fast", "0", "3000@", "@5", "-3", "3000@0"] {
            assert!(wrong.parse::<Speed>().is_err(), "{wrong}");
        }
        for wrong in ["", "none", "0%", "-5%"] {
            assert!(wrong.parse::<Change>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn passes_hold_every_missing_kind_once_in_an_order_of_their_own() {
        let all = kinds(&SelftestOptions::default());
        assert_eq!(all.len(), 8);
        let missing: Vec<(Kind, u32)> = all.iter().map(|&kind| (kind, 3)).collect();
        let order = shuffled(&missing, &mut fastrand::Rng::with_seed(5));
        assert_eq!(order.len(), 24);
        for pass in order.chunks(8) {
            assert!(all.iter().all(|kind| pass.contains(kind)), "{pass:?}");
        }
        assert_ne!(order[..8], order[8..16]);
    }

    #[test]
    fn kinds_that_are_complete_are_left_out() {
        let all = kinds(&SelftestOptions::default());
        let order = shuffled(&[(all[0], 0), (all[1], 2)], &mut fastrand::Rng::with_seed(5));
        assert_eq!(order, [all[1], all[1]]);
    }
}
