//! Asks a lobby's web API what became of the last registrations of an address.

use rallypoint_query::{Host, HttpUrl, ProbeError, ScanConfig, http};
use rallypoint_wire::text;
use serde::Deserialize;
use std::{fmt, net::IpAddr, num::NonZeroU16};

/// Where a lobby's web server is, if its operator has not moved it.
const HTTP: NonZeroU16 = NonZeroU16::new(29_950).expect("it is not 0");

const PATH: &str = "/api/v1/outcomes";

/// What the API answers.
#[derive(Deserialize)]
struct Answer {
    outcomes: Vec<Outcome>,
}

/// What became of some registrations in a row.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Outcome {
    /// The reason code.
    code: String,
    /// The same in plain words.
    #[serde(default)]
    text: String,
    /// The port that was to be registered, if the lobby has read that far.
    pub port: Option<u16>,
    /// Whether the lobby did not do what was asked for.
    #[serde(default)]
    pub refused: bool,
    #[serde(default)]
    times: u32,
    seconds_ago: Option<u64>,
}

/// Where the API of a lobby is by default.
pub fn usual(host: Host) -> HttpUrl {
    HttpUrl { is_secure: false, host, port: HTTP, path: PATH.into() }
}

/// Where it is, as a person names it.
pub fn api(text: &str) -> Result<HttpUrl, String> {
    let api = format!("{}{PATH}", text.trim_end_matches('/')).parse();
    api.map_err(|_| "expected the address of a web server, such as http://lobby.example.org:8080".into())
}

/// The outcomes of an address, or of whoever asks; the latest last.
pub async fn ask(api: &HttpUrl, address: Option<IpAddr>, config: &ScanConfig) -> Result<Vec<Outcome>, ProbeError> {
    let path = address.map_or_else(|| api.path.clone(), |ip| format!("{}?address={ip}", api.path));
    read(&http::get(&HttpUrl { path, ..api.clone() }, config).await?)
}

fn read(body: &[u8]) -> Result<Vec<Outcome>, ProbeError> {
    let answer: Result<Answer, _> = serde_json::from_slice(body);
    answer
        .map(|answer| answer.outcomes)
        .map_err(|_| ProbeError::Malformed("this version does not understand it".into()))
}

/// Those that may be about the server with a port, or about any server if there is none. Several servers can have one
/// address, and what was refused before the port was read may be of any of them.
pub fn about(outcomes: &[Outcome], port: Option<u16>) -> Vec<&Outcome> {
    let fits = |outcome: &&Outcome| port.is_none() || outcome.port.is_none() || outcome.port == port;
    outcomes.iter().filter(fits).collect()
}

/// The one that says whether the lobby takes that server: the latest with its port, unless a refusal came later that may be
/// its own.
pub fn decisive<'a>(about: &[&'a Outcome], port: Option<u16>) -> Option<&'a Outcome> {
    let last = about.iter().rposition(|outcome| port.is_none() || outcome.port == port);
    match last.map(|place| about[place]) {
        Some(outcome) if outcome.refused => Some(outcome),
        outcome => {
            let later = &about[last.map_or(0, |place| place + 1)..];
            later.iter().rfind(|outcome| outcome.refused).copied().or(outcome)
        }
    }
}

/// `banned: the operator has banned this address (27 s ago, 3 times)`
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text::sanitize(&self.code))?;
        if !self.text.is_empty() {
            write!(f, ": {}", text::sanitize(&self.text))?;
        }
        let Some(seconds) = self.seconds_ago else { return Ok(()) };
        match seconds {
            0..100 => write!(f, " ({seconds} s ago")?,
            100..6_000 => write!(f, " ({} min ago", seconds / 60)?,
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

    #[test]
    fn an_api_is_named_as_people_name_it() {
        let shown = |text| api(text).map(|api| api.to_string());
        assert_eq!(shown("http://lobby.example.org:8080"), Ok("http://lobby.example.org:8080/api/v1/outcomes".into()));
        assert_eq!(
            shown("http://lobby.example.org/rally/"),
            Ok("http://lobby.example.org/rally/api/v1/outcomes".into())
        );
        assert!(shown("lobby.example.org").unwrap_err().contains("http://lobby.example.org:8080"));
        assert_eq!(shown("https://lobby.example.org"), Ok("https://lobby.example.org/api/v1/outcomes".into()));
        let usual = usual(Host::Ip("2001:db8::1".parse().unwrap()));
        assert_eq!(usual.to_string(), "http://[2001:db8::1]:29950/api/v1/outcomes");
    }

    #[test]
    fn outcomes_are_told_in_the_lobbys_words() {
        let body = br#"{"outcomes":[{"code":"unreachable","text":"the port is closed\u001b[2J","port":8190,
            "refused":true,"times":3,"seconds_ago":27},{"code":"checking","port":1,"times":1,"seconds_ago":7200},{"code":"x"}]}"#;
        let shown: Vec<_> = read(body).unwrap().iter().map(ToString::to_string).collect();
        let expected = ["unreachable: the port is closed\u{fffd}[2J (27 s ago, 3 times)", "checking (2 h ago)", "x"];
        assert_eq!(shown, expected);
        assert!(read(b"<html>").unwrap_err().to_string().contains("does not understand"));
    }

    /// The decisive one of some outcomes, each with a port (0: none) and whether it was refused.
    fn decided(outcomes: &[(&str, u16, bool)], port: Option<u16>) -> Option<String> {
        let outcome = |&(code, port, refused): &(&str, u16, bool)| Outcome {
            code: code.into(),
            text: String::new(),
            port: Some(port).filter(|port| *port > 0),
            refused,
            times: 1,
            seconds_ago: None,
        };
        let outcomes: Vec<_> = outcomes.iter().map(outcome).collect();
        decisive(&about(&outcomes, port), port).map(ToString::to_string)
    }

    #[test]
    fn the_latest_outcome_of_the_port_decides() {
        let decided = |outcomes: &[_]| decided(outcomes, Some(8190)).unwrap_or_default();
        assert_eq!(decided(&[]), "");
        assert_eq!(decided(&[("unreachable", 1, true)]), "", "of another server");
        assert_eq!(decided(&[("unreachable", 8190, true), ("listed", 8190, false)]), "listed");
        assert_eq!(decided(&[("unreachable", 8190, true), ("malformed", 0, true)]), "unreachable");
        // Goodbyes have no port, and may be of another server.
        assert_eq!(decided(&[("listed", 8190, false), ("unregistered", 0, false)]), "listed");
        // A ban of the address is found before the port is read.
        assert_eq!(decided(&[("listed", 8190, false), ("banned", 0, true)]), "banned");
        assert_eq!(decided(&[("banned", 0, true), ("listed", 8190, false)]), "listed");
    }

    #[test]
    fn without_a_port_the_latest_outcome_decides() {
        let outcomes = [("unreachable", 1, true), ("listed", 2, false)];
        assert_eq!(decided(&outcomes, None).as_deref(), Some("listed"));
    }
}
