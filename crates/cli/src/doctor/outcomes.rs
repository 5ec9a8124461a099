//! Asks the lobby's web API what became of the last registrations of an address.

use super::{facts::Facts, step::Mark};
use crate::ask::{
    Asking, Trouble,
    lobby::page,
    target::{Lobby, MasterList, Target},
};
use rallypoint_wire::text;
use serde::Deserialize;
use std::num::NonZeroU16;

/// Where a lobby's web server is, if its operator has not moved it.
const HTTP: NonZeroU16 = NonZeroU16::new(29_950).expect("it is not 0");

const PATH: &str = "/api/v1/outcomes";

/// What the API answers.
#[derive(Deserialize)]
struct Answer {
    outcomes: Vec<Outcome>,
}

/// What became of some registrations in a row.
#[derive(Deserialize)]
struct Outcome {
    /// The reason code.
    code: String,
    /// The same in plain words.
    #[serde(default)]
    text: String,
    /// The port that was to be registered.
    port: Option<u16>,
    #[serde(default)]
    accepted: bool,
}

/// Where the API of a lobby is by default.
pub fn usual(lobby: &Lobby) -> MasterList {
    MasterList { host: lobby.host.clone(), port: HTTP, path: PATH.into() }
}

/// Where it is, as a person names it.
pub fn api(text: &str) -> Result<MasterList, String> {
    match format!("{}{PATH}", text.trim_end_matches('/')).parse() {
        Ok(Target::MasterList(api)) => Ok(api),
        Err(why) if text.contains("://") => Err(why),
        _ => Err("expected the address of a web server, such as http://lobby.example.org:8080".into()),
    }
}

/// What there is to say about it.
pub async fn ask(api: &MasterList, facts: &Facts, asking: &Asking) -> Vec<(Mark, String)> {
    let mut said = Vec::new();
    for address in &facts.addresses {
        let path = format!("{}?address={}", api.path, address.ip);
        match page(&MasterList { path, ..api.clone() }, asking).await {
            Ok(body) => said.extend(explain(&body, facts.port)),
            Err(trouble) => {
                let why = match trouble {
                    Trouble::Malformed(why) => format!("says nothing of use: {why}"),
                    _ => "does not answer".into(),
                };
                said.push((
                    Mark::Note,
                    format!("the lobby itself cannot be asked for the reason: its web API ({api}) {why}; --api says where it is"),
                ));
                // It is the same for every address.
                break;
            }
        }
    }
    said
}

fn explain(body: &[u8], port: Option<u16>) -> Vec<(Mark, String)> {
    let Ok(Answer { outcomes }) = serde_json::from_slice(body) else {
        return vec![(Mark::Note, "the lobby's web API gives an answer that this version does not understand".into())];
    };
    let ours = outcomes.iter().filter(|outcome| port.is_none() || outcome.port.is_none() || outcome.port == port);
    let said: Vec<_> = ours
        .map(|Outcome { code, text, accepted, .. }| {
            let mark = if *accepted { Mark::Ok } else { Mark::Problem };
            let words = if text.is_empty() { String::new() } else { format!(": {}", text::harmless(text)) };
            (mark, format!("the lobby says {}{words}", text::harmless(code)))
        })
        .take(8)
        .collect();
    if said.is_empty() {
        return vec![(
            Mark::Note,
            "the lobby has not heard of this address lately: nothing announces from there".into(),
        )];
    }
    said
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
        assert!(shown("https://lobby.example.org").unwrap_err().contains("https is not supported"));
        let usual = usual(&"[2001:db8::1]:7".parse().unwrap());
        assert_eq!(usual.to_string(), "http://[2001:db8::1]:29950/api/v1/outcomes");
    }

    #[test]
    fn reasons_are_told_in_the_lobbys_words() {
        let body = br#"{"outcomes":[{"code":"unreachable","text":"the port is closed\u001b[2J","port":8190},
                        {"code":"listed","port":1,"accepted":true}]}"#;
        let expected = (Mark::Problem, "the lobby says unreachable: the port is closed\u{fffd}[2J".to_owned());
        assert_eq!(explain(body, Some(8190)), [expected]);
        assert_eq!(explain(body, None).len(), 2);
        assert!(explain(b"{\"outcomes\":[]}", None)[0].1.contains("has not heard"));
        assert!(explain(b"<html>", None)[0].1.contains("does not understand"));
    }
}
