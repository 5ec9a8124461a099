//! Captures of real Bloodmasters servers: their replies are parsed completely, and the responder sends the same bytes for the
//! same requests, or stays silent where they do.

use crate::common;
use common::*;
use rallypoint_machine::Machine;
use rallypoint_query_proto::{Probe, ProbeOutcome, ProberConfig, Protocol, ServerInfo};
use rallypoint_wire::bloodmasters::{Echo, Reply, queries};
use serde_json::Value;
use std::time::Instant;

struct Capture {
    name: String,
    request: Vec<u8>,
    replies: Vec<Vec<u8>>,
}

fn captures() -> Vec<Capture> {
    let file: Value =
        serde_json::from_str(include_str!("../../wire/tests/vectors/bloodmasters-captures.json")).unwrap();
    let cases = file["cases"].as_array().unwrap().iter().map(|case| Capture {
        name: case["name"].as_str().unwrap().into(),
        request: hex(&case["request"]),
        replies: case["replies"].as_array().unwrap().iter().map(hex).collect(),
    });
    cases.collect()
}

fn hex(value: &Value) -> Vec<u8> {
    let digits = value.as_str().unwrap();
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn the_same_requests_get_the_same_bytes_or_the_same_silence() {
    for Capture { name, request, replies } in captures() {
        let info = match replies.first() {
            Some(reply) => ServerInfo::from_bloodmasters(&Reply::parse(reply).unwrap()),
            None => info(4),
        };
        let mut responder = responder(&info);
        let now = Instant::now();
        responder.handle_datagram(now, prober_address(), &request);
        let ours: Vec<_> = drain(&mut responder, now);
        assert!(ours.iter().all(|(to, _)| *to == prober_address()));
        assert_eq!(ours.into_iter().map(|(_, bytes)| bytes).collect::<Vec<_>>(), replies, "{name}");
        assert_eq!(responder.stats().not_queries, u64::from(replies.is_empty()), "{name}");
    }
}

#[test]
fn replies_of_real_servers_are_parsed_completely() {
    let mut prober = prober(ProberConfig::default());
    let mut now = Instant::now();
    let mut understood = 0;
    for Capture { name, replies, .. } in captures() {
        for mut reply in replies {
            now += ms(10);
            prober.enqueue(Probe::new(address(1), Protocol::Bloodmasters.info())).unwrap();
            let query = drain(&mut prober, now).remove(0).1;
            let echo = queries(&query).next().unwrap().echo;
            reply[Echo::RANGE].copy_from_slice(&echo.0);
            prober.handle_datagram(now, address(1), &reply);
            let ProbeOutcome::Answered(answer) = prober.poll_event().unwrap().outcome else { panic!("{name}") };
            assert!(answer.is_complete(), "{name}");
            assert_eq!(answer.raw.datagrams().collect::<Vec<_>>(), [reply], "{name}");
            assert!(answer.info.version.unwrap().contains("Dedicated Server version"), "{name}");
            understood += 1;
        }
    }
    assert_eq!(understood, 27);
}

#[test]
fn a_game_with_three_clients() {
    let case = captures().into_iter().find(|case| case.name.starts_with("HEAD: TDM")).unwrap();
    let info = ServerInfo::from_bloodmasters(&Reply::parse(&case.replies[0]).unwrap());
    assert_eq!(info.name.as_deref(), Some("HEAD three clients"));
    assert_eq!(info.mode.as_deref(), Some("Team Deathmatch"));
    assert_eq!((info.players, info.spectators, info.max_players), (Some(2), Some(1), Some(8)));
    assert_eq!(info.password, Some(true));
    let list = info.player_list.as_ref().unwrap();
    let shown: Vec<_> = list
        .iter()
        .map(|player| (&*player.name, info.team_name(player.team.unwrap()), player.spectator, player.ping_ms.unwrap()))
        .collect();
    assert_eq!(
        shown,
        [("Alice", Some("red"), false, 308), ("Bobby", Some("blue"), false, 41), ("Watcher", None, true, 4)]
    );
}
