//! What this machine must have before the first connection: local ports. File descriptors are the engine's own check, which
//! raises their limit or refuses with the number needed.

use std::fs;

use httpbench_core::model::{Endpoint, Load, Reuse, Schedule};

use super::target::Driven;
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::warning::Warning;

/// With fewer ports than this many for each connection that may be open at once, those that a server is slow to let go of may
/// be missed.
const PORTS_PER_CONNECTION: u64 = 4;

/// Compares what is asked for with the local ports that there are for one destination.
///
/// # Errors
///
/// When the connections alone need more (exit code 107).
pub(super) fn check(driven: &Driven, load: &Load) -> Result<Option<Warning>> {
    match (&driven.arm.endpoint, local_ports()) {
        (Endpoint::Tcp(_), Some(ports)) => judge(ports, load),
        _ => Ok(None),
    }
}

fn judge(ports: u64, load: &Load) -> Result<Option<Warning>> {
    let connections = u64::from(load.connections);
    if connections > ports {
        return Err(Error::new(
            ExitCode::InvalidMeasurement,
            format!(
                "{connections} connections need as many local ports, and this machine has {ports} for one destination"
            ),
        )
        .help("widen `net.ipv4.ip_local_port_range` (sysctl), or ask for fewer connections"));
    }
    let opens_again = load.reuse == Reuse::Close || matches!(load.schedule, Schedule::Sessions { .. });
    Ok((opens_again && ports < connections * PORTS_PER_CONNECTION)
        .then_some(Warning::FewLocalPorts { ports, connections }))
}

/// How many ports the kernel chooses from (ip(7)); `None` where the system does not tell.
fn local_ports() -> Option<u64> {
    let text = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let mut ends = text.split_ascii_whitespace().map_while(|word| word.parse::<u64>().ok());
    let (low, high) = (ends.next()?, ends.next()?);
    Some((high + 1).saturating_sub(low))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_beyond_the_local_ports_are_refused_with_both_numbers() {
        let load = Load { connections: 101, ..Load::default() };
        let error = judge(100, &load).expect_err("too many");
        assert_eq!(error.exit, ExitCode::InvalidMeasurement);
        assert!(error.what.contains("101 connections") && error.what.contains("has 100"), "{error}");
        assert_eq!(judge(101, &load).expect("enough"), None);
    }

    #[test]
    fn few_ports_are_warned_of_where_every_exchange_takes_a_new_one() {
        let keep = Load { connections: 50, ..Load::default() };
        assert_eq!(judge(100, &keep).expect("enough"), None);
        let close = Load { reuse: Reuse::Close, ..keep };
        let warning = judge(100, &close).expect("enough to begin");
        assert_eq!(warning, Some(Warning::FewLocalPorts { ports: 100, connections: 50 }));
    }
}
