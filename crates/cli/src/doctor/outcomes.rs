//! Asks the lobby's web API what became of the last registrations of an address.

use super::{facts::Facts, step::Mark};
use crate::ask::{
    Asking, Trouble,
    lobby::page,
    target::{Lobby, MasterList},
};
use rallypoint_wire::text;
use serde::Deserialize;
use std::num::NonZeroU16;

/// Where a lobby's web server is, if its operator has not moved it.
const HTTP: NonZeroU16 = NonZeroU16::new(29_950).expect("it is not 0");

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

/// What there is to say about it.
pub async fn ask(lobby: &Lobby, facts: &Facts, asking: &Asking) -> Vec<(Mark, String)> {
    let mut said = Vec::new();
    for address in &facts.addresses {
        let path = format!("/api/v1/outcomes?address={}", address.ip);
        let list = MasterList { host: lobby.host.clone(), port: HTTP, path };
        match page(&list, asking).await {
            Ok(body) => said.extend(explain(&body, facts.port)),
            Err(trouble) => {
                let why = match trouble {
                    Trouble::Malformed(why) => format!("says nothing of use: {why}"),
                    _ => "does not answer".into(),
                };
                said.push((
                    Mark::Note,
                    format!("the lobby itself cannot be asked for the reason: its web API (port {HTTP}) {why}"),
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
