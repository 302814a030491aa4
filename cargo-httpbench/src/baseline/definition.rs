//! Whether a scenario still is what it was: its request and the load that it is put under.

use httpbench_core::model::RequestSummary;

use super::digest::Sha256Hex;
use crate::config::LoadSettings;

/// Equal for equal requests under equal load.
///
/// Of the load only what changes the measured values counts: connections, arrival rate and timeouts. Durations, rounds, tolerances and limits
/// change how well something is known, not what it is.
#[must_use]
pub fn definition(request: Option<&RequestSummary>, load: &LoadSettings) -> Sha256Hex {
    let request = request.map(|request| {
        [request.method.clone(), request.target.clone(), request.body_bytes.to_string(), request.checksum.to_string()]
    });
    let arrival_rate = load.arrival_rate;
    let load = [
        format!("connections {}", load.connections),
        format!("request timeout {} ns", load.request_timeout.0),
        format!("connect timeout {} ns", load.connect_timeout.0),
    ];
    // A closed loop has none, and keeps the sum that earlier baselines have.
    let arrivals = arrival_rate.map(|per_second| format!("arrival rate {per_second} per second"));
    Sha256Hex::of_texts(request.iter().flatten().chain(&load).chain(&arrivals).map(String::as_str))
}

#[cfg(test)]
mod tests {
    use httpbench_core::Request;
    use httpbench_core::model::Nanos;

    use super::*;
    use crate::config::Layers;

    fn load() -> LoadSettings {
        Layers::default().settings().load
    }

    #[test]
    fn other_path_body_header_or_connections_are_another_scenario() {
        let of = |request: Request, load: &LoadSettings| definition(Some(&request.summary()), load);
        let before = of(Request::post("/a").body("1"), &load());
        assert_eq!(of(Request::post("/a").body("1"), &load()), before);
        for other in [
            Request::post("/b").body("1"),
            Request::post("/a").body("2"),
            Request::put("/a").body("1"),
            Request::post("/a").body("1").header("x", "y"),
        ] {
            assert_ne!(of(other, &load()), before);
        }
        assert_ne!(of(Request::post("/a").body("1"), &LoadSettings { connections: 3, ..load() }), before);
        let open =
            |per_second| of(Request::post("/a").body("1"), &LoadSettings { arrival_rate: Some(per_second), ..load() });
        assert!(open(100.0) != before && open(100.0) != open(200.0));
    }

    #[test]
    fn longer_measurement_is_the_same_scenario() {
        let longer = LoadSettings { duration: Nanos::from_secs(60), warm_up: Nanos::from_secs(1), ..load() };
        assert_eq!(definition(None, &longer), definition(None, &load()));
    }
}
