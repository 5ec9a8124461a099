//! Fetches the outcomes of an address's recent registrations from a lobby's web API.

use rallypoint_query::{Host, HttpUrl, ProbeError, ScanConfig, http};
use rallypoint_wire::text;
use serde::Deserialize;
use std::{fmt, net::IpAddr, num::NonZeroU16, time::Duration};

/// Path of the endpoint, relative to the base URL of the web server.
const PATH: &str = "/api/v1/outcomes";

/// Body of the API's response.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ReportedOutcomes {
    /// Newest last.
    pub outcomes: Vec<ReportedOutcome>,
    /// Nodes of a cluster that did not respond: what they received is not known.
    #[serde(default)]
    pub silent_nodes: Vec<String>,
}

/// Outcome of one or more consecutive registrations, as the lobby reports it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ReportedOutcome {
    /// Node of a cluster that received them.
    #[serde(default)]
    node: Option<String>,
    /// Reason code.
    code: String,
    /// Explanation of the code; empty if the lobby sends none.
    #[serde(default)]
    text: String,
    /// Port in the registration; `None` if the lobby refused it before the port was parsed.
    pub port: Option<u16>,
    /// Whether the server was in the list afterwards.
    #[serde(default)]
    pub accepted: bool,
    /// Whether the lobby refused the registration.
    #[serde(default)]
    pub refused: bool,
    /// Number of consecutive registrations with this outcome.
    #[serde(default)]
    times: u32,
    /// Time since the last of them, in seconds.
    seconds_ago: Option<u64>,
    /// Age of the failed check that is the reason, in seconds.
    #[serde(default)]
    checked_seconds_ago: Option<u64>,
    /// Time until a registration causes another check, in seconds.
    #[serde(default)]
    check_again_in_seconds: Option<u64>,
}

/// URL of the API of the lobby at this host.
pub fn api_url(host: Host, port: NonZeroU16) -> HttpUrl {
    HttpUrl { is_secure: false, host, port, path: PATH.into() }
}

/// Parses the base URL of a lobby's web server into the URL of its API.
pub fn parse_api_url(text: &str) -> Result<HttpUrl, String> {
    let api = format!("{}{PATH}", text.trim_end_matches('/')).parse();
    api.map_err(|_| "expected the address of a web server, such as http://lobby.example.org:8080".into())
}

/// Fetches the outcomes of an address, or without one those of the address of this client.
pub async fn fetch(
    api: &HttpUrl,
    address: Option<IpAddr>,
    config: &ScanConfig,
) -> Result<ReportedOutcomes, ProbeError> {
    let path = address.map_or_else(|| api.path.clone(), |ip| format!("{}?address={ip}", api.path));
    parse(&http::get(&HttpUrl { path, ..api.clone() }, config).await?)
}

fn parse(body: &[u8]) -> Result<ReportedOutcomes, ProbeError> {
    serde_json::from_slice(body)
        .map_err(|_| ProbeError::Malformed("its format is not supported by this version".into()))
}

/// Outcomes that may concern the server with this port, or all of them without a port. Several servers can share an
/// address, and a registration that was refused before its port was parsed may come from any of them. Unregistrations have no
/// port either: they concern the server only if it was registered before.
pub fn for_port(outcomes: &[ReportedOutcome], port: Option<u16>) -> Vec<&ReportedOutcome> {
    let mut was_registered = false;
    let fits = |outcome: &&ReportedOutcome| {
        was_registered |= outcome.port == port;
        match outcome.port {
            _ if port.is_none() => true,
            None if outcome.is_unregistration() => was_registered,
            None => outcome.refused,
            Some(_) => outcome.port == port,
        }
    };
    outcomes.iter().filter(fits).collect()
}

impl ReportedOutcome {
    /// Whether another server registers at the same address and port.
    pub fn is_contested(&self) -> bool {
        self.code == "contested"
    }

    /// Whether the operator of the lobby has banned the server.
    pub fn is_ban(&self) -> bool {
        self.code == "banned"
    }

    /// Whether the lobby could not reach the server.
    pub fn is_failed_check(&self) -> bool {
        matches!(&*self.code, "unreachable" | "port_closed")
    }

    /// Whether it is that of a datagram without a port that says nothing about other datagrams: it may have come from another
    /// server at the same address.
    pub fn may_be_of_another(&self) -> bool {
        self.port.is_none() && matches!(&*self.code, "malformed" | "too_large")
    }

    fn is_unregistration(&self) -> bool {
        matches!(&*self.code, "unregistered" | "not_registered")
    }

    /// Whether it is that of a registration within this time.
    pub fn is_within(&self, time: Duration) -> bool {
        self.seconds_ago.is_none_or(|seconds| Duration::from_secs(seconds) <= time)
    }
}

/// The outcome that shows whether the lobby accepts the server: the latest with its port, unless a later refusal may concern
/// it too.
pub fn decisive<'a>(candidates: &[&'a ReportedOutcome], port: Option<u16>) -> Option<&'a ReportedOutcome> {
    let last = candidates.iter().rposition(|outcome| port.is_none() || outcome.port == port);
    match last.map(|index| candidates[index]) {
        Some(outcome) if outcome.refused => Some(outcome),
        outcome => {
            let later = &candidates[last.map_or(0, |index| index + 1)..];
            later.iter().rfind(|outcome| outcome.refused).copied().or(outcome)
        }
    }
}

/// `banned: the operator has banned this address (27 s ago, 3 times)`, and with a check `(checked 12 s ago; registrations are
/// checked again in 8 s)`: the result of a check applies to later registrations, so only its own age matters.
impl fmt::Display for ReportedOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text::sanitize(&self.code))?;
        if !self.text.is_empty() {
            write!(f, ": {}", text::sanitize(&self.text))?;
        }
        if let Some(node) = &self.node {
            write!(f, ", at node {}", text::sanitize(node))?;
        }
        if let (Some(age), Some(again)) = (self.checked_seconds_ago, self.check_again_in_seconds) {
            write!(f, " (checked {age} s ago; ")?;
            return match again {
                0 => f.write_str("the next registration is checked again)"),
                again => write!(f, "registrations are checked again in {again} s)"),
            };
        }
        let Some(seconds) = self.seconds_ago else { return Ok(()) };
        match seconds {
            0..120 => write!(f, " ({seconds} s ago")?,
            120..7_200 => write!(f, " ({} min ago", seconds / 60)?,
            _ => write!(f, " ({} h ago", seconds / 3_600)?,
        }
        if self.times > 1 {
            write!(f, ", {} times", self.times)?;
        }
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local_lobby::DEFAULT_HTTP_PORT;

    #[test]
    fn the_url_of_the_api_follows_from_that_of_the_web_server() {
        let shown = |text| parse_api_url(text).map(|url| url.to_string());
        assert_eq!(shown("http://lobby.example.org:8080"), Ok("http://lobby.example.org:8080/api/v1/outcomes".into()));
        assert_eq!(
            shown("http://lobby.example.org/rally/"),
            Ok("http://lobby.example.org/rally/api/v1/outcomes".into())
        );
        assert!(shown("lobby.example.org").unwrap_err().contains("http://lobby.example.org:8080"));
        assert_eq!(shown("https://lobby.example.org"), Ok("https://lobby.example.org/api/v1/outcomes".into()));
        let url = api_url(Host::Ip("2001:db8::1".parse().unwrap()), DEFAULT_HTTP_PORT);
        assert_eq!(url.to_string(), "http://[2001:db8::1]:29950/api/v1/outcomes");
    }

    #[test]
    fn outcomes_are_printed_with_the_text_of_the_lobby() {
        let body = br#"{"outcomes":[{"code":"unreachable","text":"the port is closed\u001b[2J","port":8190,
            "refused":true,"times":3,"seconds_ago":27},{"code":"port_closed","port":8190,"seconds_ago":0,
            "checked_seconds_ago":12,"check_again_in_seconds":8},{"code":"checking","port":1,"times":1,"seconds_ago":7200},{"code":"x"}]}"#;
        let shown: Vec<_> = parse(body).unwrap().outcomes.iter().map(ToString::to_string).collect();
        let expected = [
            "unreachable: the port is closed\u{fffd}[2J (27 s ago, 3 times)",
            "port_closed (checked 12 s ago; registrations are checked again in 8 s)",
            "checking (2 h ago)",
            "x",
        ];
        assert_eq!(shown, expected);
        assert!(parse(b"<html>").unwrap_err().to_string().contains("not supported by this version"));
    }

    /// The decisive one of these outcomes. Each has a code, a port (0: none) and whether it is a refusal.
    fn decided(outcomes: &[(&str, u16, bool)], port: Option<u16>) -> Option<String> {
        let outcome = |&(code, port, refused): &(&str, u16, bool)| ReportedOutcome {
            accepted: !refused,
            node: None,
            code: code.into(),
            text: String::new(),
            port: Some(port).filter(|port| *port > 0),
            refused,
            times: 1,
            seconds_ago: None,
            checked_seconds_ago: None,
            check_again_in_seconds: None,
        };
        let outcomes: Vec<_> = outcomes.iter().map(outcome).collect();
        decisive(&for_port(&outcomes, port), port).map(ToString::to_string)
    }

    #[test]
    fn the_latest_outcome_of_the_port_decides() {
        let decided = |outcomes: &[_]| decided(outcomes, Some(8190)).unwrap_or_default();
        assert_eq!(decided(&[]), "");
        assert_eq!(decided(&[("unreachable", 1, true)]), "", "the outcome of another server");
        assert_eq!(decided(&[("unreachable", 8190, true), ("listed", 8190, false)]), "listed");
        assert_eq!(decided(&[("unreachable", 8190, true), ("malformed", 0, true)]), "unreachable");
        // Unregistrations have no port and may come from another server.
        assert_eq!(decided(&[("listed", 8190, false), ("unregistered", 0, false)]), "listed");
        // A banned address is refused before the port is parsed.
        assert_eq!(decided(&[("listed", 8190, false), ("banned", 0, true)]), "banned");
        assert_eq!(decided(&[("banned", 0, true), ("listed", 8190, false)]), "listed");
    }

    #[test]
    fn without_a_port_the_latest_outcome_decides() {
        let outcomes = [("unreachable", 1, true), ("listed", 2, false)];
        assert_eq!(decided(&outcomes, None).as_deref(), Some("listed"));
    }
}
