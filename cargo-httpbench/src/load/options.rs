//! What `load` is asked for, in words that are already understood. Files are not opened here, names not resolved.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use httpbench_core::model::{Load, Nanos, Protocol};

use super::TargetUrl;
use crate::config;
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;

/// Everything that the command line says.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadOptions {
    /// What is loaded, one after the other. At least one.
    pub targets: Vec<TargetUrl>,
    /// What is sent.
    pub request: RequestOptions,
    /// Where connections go.
    pub route: Route,
    /// How they are secured, where a URL says that they are.
    pub tls: TlsOptions,
    /// The version of HTTP.
    pub protocol: Protocol,
    /// How much, on which schedule.
    pub load: Load,
    /// For how long.
    pub period: Period,
}

/// When the load ends. Never without a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// After so many starts.
    pub requests: Option<u64>,
    /// After this time.
    pub duration: Option<Nanos>,
    /// Loaded time before, which is not counted.
    pub warm_up: Nanos,
}

/// What is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestOptions {
    /// `None`: GET, with a body POST.
    pub method: Option<String>,
    /// In the order given.
    pub headers: Vec<HeaderLine>,
    /// Its body.
    pub body: Option<BodySource>,
    /// The only status that is right. `None`: any below 400.
    pub check_status: Option<u16>,
}

/// A header as it is typed: `Name: value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderLine {
    /// Before the colon.
    pub name: String,
    /// After it, without the white space around.
    pub value: String,
}

impl FromStr for HeaderLine {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(found) = text.chars().find(|letter| letter.is_control() && *letter != '\t') {
            return Err(format!("it holds the control character {found:?}, which no header can"));
        }
        match text.split_once(':') {
            Some((name, value)) if !name.trim().is_empty() => {
                Ok(Self { name: name.to_owned(), value: value.trim().to_owned() })
            }
            Some(_) => Err("there is no name before its colon: write `Name: value`".to_owned()),
            None => Err("it has no colon: write `Name: value`".to_owned()),
        }
    }
}

/// Where a body comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodySource {
    /// The text itself.
    Text(String),
    /// A file's bytes.
    File(PathBuf),
    /// Everything on standard input.
    StandardInput,
}

impl FromStr for BodySource {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix('@') {
            Some("") => {
                Err("there is no file name after its `@`: write `@FILE`, or `@-` for standard input".to_owned())
            }
            Some("-") => Ok(Self::StandardInput),
            Some(path) => Ok(Self::File(path.into())),
            None => Ok(Self::Text(text.to_owned())),
        }
    }
}

/// `START:END:DURATION`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RampSpan {
    /// Starts per second at the beginning, 0 or more. One of the two is above 0.
    pub from: f64,
    /// And at the end.
    pub to: f64,
    /// How long the change takes.
    pub over: Duration,
}

impl FromStr for RampSpan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.splitn(3, ':').collect();
        let [from, to, over] = parts[..] else {
            return Err("write START:END:DURATION, such as `100:5000:30s`".to_owned());
        };
        let end = |text: &str| match text.trim() {
            "0" => Ok(0.0),
            text => config::arrival_rate(text).map_err(|error| error.0),
        };
        let ramp = Self { from: end(from)?, to: end(to)?, over: config::duration(over).map_err(|error| error.0)? };
        if ramp.from == 0.0 && ramp.to == 0.0 {
            return Err("a ramp from 0 to 0 starts nothing: one of the two must be above 0".to_owned());
        }
        Ok(ramp)
    }
}

/// Where connections go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// To the URL's host and port, but for these.
    Named(Vec<Detour>),
    /// To a Unix domain socket.
    Unix(PathBuf),
}

/// Another address in place of a URL's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detour {
    /// The only origin that it is for; `None`: every one.
    pub of: Option<(String, u16)>,
    /// A name or an address, the latter without brackets.
    pub host: String,
    /// The port there.
    pub port: u16,
}

impl FromStr for Detour {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            "write `HOST:PORT`, or `URLHOST:URLPORT:HOST:PORT` for one origin alone; IPv6 addresses in brackets"
                .to_owned()
        };
        let parts = outside_brackets(text);
        let port = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0).ok_or_else(wrong);
        let host = |text: &str| match text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(address) => Ok(address.to_owned()),
            None if text.is_empty() || text.contains(['[', ']', '/', ' ']) => Err(wrong()),
            None => Ok(text.to_ascii_lowercase()),
        };
        match parts[..] {
            [to, to_port] => Ok(Self { of: None, host: host(to)?, port: port(to_port)? }),
            [from, from_port, to, to_port] => {
                Ok(Self { of: Some((host(from)?, port(from_port)?)), host: host(to)?, port: port(to_port)? })
            }
            _ => Err(wrong()),
        }
    }
}

/// Splits at colons that are not part of an address in brackets.
fn outside_brackets(text: &str) -> Vec<&str> {
    let mut depth = 0_u32;
    text.split(|letter| {
        match letter {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == ':' && depth == 0
    })
    .collect()
}

impl Route {
    /// # Errors
    ///
    /// When a detour is for an origin that no URL has: it would silently do nothing.
    pub(super) fn refuse_unused(&self, targets: &[TargetUrl]) -> Result<()> {
        let Self::Named(detours) = self else { return Ok(()) };
        let unused = |detour: &&Detour| !targets.iter().any(|target| detour.is_for(target));
        match detours.iter().find(unused).and_then(|detour| detour.of.as_ref()) {
            Some((host, port)) => Err(Error::new(
                ExitCode::Usage,
                format!("`--connect-to` is for `{host}` port {port}, and no URL has that host and port"),
            )
            .help("name the host and port that stand in the URL, or leave them out: `--connect-to HOST:PORT`")),
            None => Ok(()),
        }
    }
}

impl Detour {
    /// Whether connections of this target take it.
    #[must_use]
    pub fn is_for(&self, target: &TargetUrl) -> bool {
        self.of.as_ref().is_none_or(|(host, port)| *host == target.host() && *port == target.port())
    }
}

/// How connections are secured. Paths are not opened yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsOptions {
    /// What the server's certificate must be.
    pub verification: Verification,
    /// The client's certificate and its key.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// What the server's certificate must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verification {
    /// Signed by one that this machine trusts.
    System,
    /// Signed by one in this file.
    Roots(PathBuf),
    /// Anything.
    Nothing,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_is_split_at_its_first_colon() {
        let header: HeaderLine = "X-Time:  12:30 ".parse().expect("a header");
        assert_eq!((header.name.as_str(), header.value.as_str()), ("X-Time", "12:30"));
        let empty: HeaderLine = "X-Empty:".parse().expect("a header");
        assert_eq!(empty.value, "");
        for wrong in ["X-A", ": x", "X-A: a\r\nX-B: b", "X-A: \u{0}"] {
            assert!(wrong.parse::<HeaderLine>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn body_is_a_text_a_file_or_standard_input() {
        assert_eq!("a@b".parse(), Ok(BodySource::Text("a@b".to_owned())));
        assert_eq!("@a b".parse(), Ok(BodySource::File("a b".into())));
        assert_eq!("@-".parse(), Ok(BodySource::StandardInput));
        assert!("@".parse::<BodySource>().is_err());
    }

    #[test]
    fn ramp_needs_two_arrival_rates_and_a_duration() {
        let ramp: RampSpan = "0.5:5000:1m 30s".parse().expect("a ramp");
        assert_eq!((ramp.from, ramp.to, ramp.over), (0.5, 5_000.0, Duration::from_secs(90)));
        let up: RampSpan = "0:5:1s".parse().expect("a ramp");
        assert_eq!((up.from, up.to), (0.0, 5.0));
        for wrong in ["1:2", "0:0:1s", "-1:5:1s", "1:x:1s", "1:2:3", "1:2:3s:4"] {
            assert!(wrong.parse::<RampSpan>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn detour_takes_names_and_addresses_with_and_without_an_origin() {
        let detour = |text: &str| text.parse::<Detour>().expect("a detour");
        assert_eq!(detour("[::1]:80"), Detour { of: None, host: "::1".to_owned(), port: 80 });
        let of = Some(("shop.example".to_owned(), 443));
        assert_eq!(detour("Shop.example:443:127.0.0.1:8443"), Detour { of, host: "127.0.0.1".to_owned(), port: 8443 });
        let of = Some(("::1".to_owned(), 80));
        assert_eq!(detour("[::1]:80:[::2]:81"), Detour { of, host: "::2".to_owned(), port: 81 });
        for wrong in ["", "host", "host:0", "host:x", "a:1:b", "::1:80", ":80", "http://a:80"] {
            assert!(wrong.parse::<Detour>().is_err(), "{wrong}");
        }
    }
}
