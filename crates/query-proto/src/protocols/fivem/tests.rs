//! Documents of a server, over connections that it keeps or closes.

use crate::{
    MissingPart, ProbeOutcome, Protocol, RttMethod,
    protocols::fixture::{Dialog, assert_stream_is_robust, reply_of, stream_reply_to},
};

const DYNAMIC: &str = r#"{"hostname":"^1Bacon ^0Town","clients":2,"sv_maxclients":"48","gametype":"Freeroam",
    "mapname":"fivem-map-hipster","iv":"-176"}"#;
const INFO: &str = r#"{"enhancedHostSupport":true,"icon":"AAAA","resources":["chat","spawnmanager"],"server":"FXServer-master v1.0.0.7290",
    "vars":{"sv_projectName":"Bacon","sv_projectDesc":"A ^3town","tags":"roleplay, economy, ","gamename":"gta5","onesync_enabled":"true",
    "sv_enforceGameBuild":"2944","sv_maxClients":"48","sv_lan":false,"nested":{}},"version":-176}"#;
const PLAYERS: &str = r#"[{"endpoint":"127.0.0.1","id":1,"identifiers":["license:1"],"name":"^2Ada","ping":42},
    {"id":2,"name":"Gr\u001bace","ping":-1}]"#;

fn ok(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into()
}

fn closing(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{body}").into()
}

const REFUSED: &[u8] = b"HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nNope.";

fn path(request: &[u8]) -> &str {
    str::from_utf8(request).unwrap().split(' ').nth(1).unwrap()
}

#[test]
fn a_server_is_described_by_three_documents_over_one_connection() {
    let mut dialog = Dialog::new(Protocol::FiveM.players());
    let request = dialog.sent();
    assert!(request.starts_with(b"GET /dynamic.json HTTP/1.1\r\nHost: 192.0.2.1:30120\r\n"));
    for piece in ok(DYNAMIC).chunks(7) {
        dialog.receive(piece);
    }
    assert_eq!(path(&dialog.sent()), "/info.json");
    dialog.receive(&ok(INFO));
    assert_eq!(path(&dialog.sent()), "/players.json");
    dialog.receive(&ok(PLAYERS));
    assert!(dialog.has_ended());
    assert_eq!(dialog.connections, 1);
    let reply = reply_of(dialog.finish());
    assert!(reply.is_complete());
    assert_eq!(reply.round_trip.method, RttMethod::Connect);
    let info = reply.info;
    assert_eq!((info.name.as_deref(), info.description.as_deref()), (Some("Bacon Town"), Some("A town")));
    assert_eq!((info.game.as_deref(), info.game_name.as_deref()), (Some("gta5"), Some("FiveM")));
    assert_eq!((info.mode.as_deref(), info.map.as_deref()), (Some("Freeroam"), Some("fivem-map-hipster")));
    assert_eq!((info.players, info.max_players), (Some(2), Some(48)));
    assert_eq!(info.version.as_deref(), Some("FXServer-master v1.0.0.7290"));
    assert_eq!(info.tags, ["roleplay", "economy"]);
    assert_eq!(info.rules["sv_lan"], "false");
    assert!(!info.rules.contains_key("nested"));
    assert_eq!(info.mods.len(), 2);
    let players: Vec<_> = info.player_list.iter().flatten().map(|player| (&*player.name, player.ping_ms)).collect();
    assert_eq!(players, [("Ada", Some(42)), ("Gr\u{fffd}ace", Some(-1))]);
    let extension = &info.extensions[&Protocol::FiveM];
    assert_eq!((extension.switch("onesync"), extension.number("game_build")), (Some(true), Some(2944)));
}

#[test]
fn a_server_that_closes_each_connection_is_asked_over_several() {
    let mut dialog = Dialog::new(Protocol::FiveM.players());
    for body in [DYNAMIC, INFO, PLAYERS] {
        dialog.sent();
        dialog.receive(&closing(body));
        dialog.close();
    }
    assert_eq!(dialog.connections, 3);
    let result = dialog.finish();
    assert_eq!(result.retries, 0);
    assert!(reply_of(result).is_complete());
}

#[test]
fn a_connection_that_was_closed_after_a_response_is_no_answer_to_the_next_request() {
    let mut dialog = Dialog::new(Protocol::FiveM.info());
    dialog.sent();
    dialog.receive(&ok(DYNAMIC));
    assert_eq!(path(&dialog.sent()), "/info.json");
    dialog.close();
    assert_eq!(path(&dialog.sent()), "/info.json");
    dialog.receive(&ok(INFO));
    assert_eq!(dialog.connections, 2);
    assert!(reply_of(dialog.finish()).is_complete());
}

#[test]
fn a_document_that_is_refused_is_missing() {
    let reply = reply_of(stream_reply_to(Protocol::FiveM.players(), &[&ok(DYNAMIC), &ok(INFO), REFUSED]));
    assert_eq!(reply.missing, [MissingPart::Part("players.json")]);
    assert_eq!((reply.info.players, reply.info.player_list), (Some(2), None));
    let reply = reply_of(stream_reply_to(Protocol::FiveM.players(), &[REFUSED, &ok(INFO), &ok(PLAYERS)]));
    assert_eq!(reply.missing, [MissingPart::Part("dynamic.json")]);
    assert_eq!((reply.info.name.as_deref(), reply.info.players), (Some("Bacon"), Some(2)));
    let result = stream_reply_to(Protocol::FiveM.players(), &[REFUSED, REFUSED, REFUSED]);
    assert!(matches!(result.outcome, ProbeOutcome::Malformed(_)));
    assert_eq!(result.malformed, 3);
}

#[test]
fn one_document_is_enough_for_presence() {
    let mut dialog = Dialog::new(Protocol::FiveM.presence());
    dialog.sent();
    dialog.receive(&ok(DYNAMIC));
    assert!(dialog.has_ended());
    assert!(reply_of(dialog.finish()).is_complete());
}

#[test]
fn other_web_servers_are_no_game_servers() {
    for body in ["<html>", "null", "[]", "{}", "{\"hostname\":", "\"x\""] {
        let result = stream_reply_to(Protocol::FiveM.presence(), &[&ok(body)]);
        assert!(matches!(result.outcome, ProbeOutcome::Malformed(_)), "{body}: {:?}", result.outcome);
    }
    let hostile = r#"{"hostname":7,"clients":-1,"sv_maxclients":"many","gametype":[],"mapname":null}"#;
    let info = reply_of(stream_reply_to(Protocol::FiveM.presence(), &[&ok(hostile)])).info;
    assert_eq!((info.name, info.players, info.max_players, info.mode), (None, None, None, None));
}

#[test]
fn bytes_that_nothing_asked_for_end_the_connection() {
    let mut dialog = Dialog::new(Protocol::FiveM.presence());
    dialog.sent();
    dialog.receive(&[ok("{}"), ok(DYNAMIC)].concat());
    assert!(matches!(dialog.finish().outcome, ProbeOutcome::Malformed(_)));
    let mut dialog = Dialog::new(Protocol::FiveM.presence());
    dialog.sent();
    for _ in 0..100 {
        dialog.receive(b"HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n");
    }
    assert!(matches!(dialog.finish().outcome, ProbeOutcome::Malformed(_)));
}

#[test]
fn no_damage_to_a_reply_does_harm() {
    assert_stream_is_robust(Protocol::FiveM.presence(), &ok(DYNAMIC));
}
