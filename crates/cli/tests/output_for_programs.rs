//! JSON, JSON lines, CSV and gamedig's format include errors, and docs/querying.md documents every key.

use rallypoint_harness::{
    MockServer, QueryProtocol, closed_udp_port, redact_ports_and_pings, redact_times, run, stderr, stdout,
};
use serde_json::{Value, json};
use std::{collections::BTreeSet, fs};

fn query(args: &[&str]) -> (String, i32) {
    let home = tempfile::tempdir().unwrap();
    let output = run(home.path(), [&["query"], args].concat());
    (stdout(&output), output.status.code().unwrap())
}

fn parsed(text: &str) -> Value {
    let mut value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    redact_times(&mut value);
    value
}

#[test]
fn json_is_one_document() {
    let server = MockServer::new(QueryProtocol::Session);
    let (address, dead) = (server.text(), closed_udp_port());
    let (text, code) = query(&["--json", &address, &dead]);
    assert_eq!(code, 4, "{text}");
    let expected = json!({
        "servers": [{
            "target": address, "address": address, "protocol": "session",
            "ping_ms": "#", "ping_measured": "first_answer", "retries": 0, "complete": true,
            "name": "Bacon Town", "description": "Friendly people",
            "game": "gg2", "game_name": "Gang Garrison 2", "mode": null, "map": "ctf_truefort", "version": "292",
            "website": null, "password": null,
            "players": 2, "max_players": 24, "bots": null, "spectators": null,
            "mods": [], "tags": ["beginners"],
            "teams": [
                { "id": 1, "name": "RED", "ranked": true, "color": "#cc3333" },
                { "id": 2, "name": "BLU", "ranked": true, "color": "#3366cc" },
            ],
            "player_list": [
                { "name": "Ada", "team": 1, "team_name": "RED", "rank": 1, "ping_ms": 35, "platform": 0,
                  "spectator": false },
                { "name": "Grace", "team": 2, "team_name": "BLU", "rank": 2, "ping_ms": 60, "platform": 0,
                  "spectator": false },
            ],
            "session": { "revision": 0, "engine_revision": 0, "version_type": 0, "version": 292 },
        }],
        "errors": [{
            "target": dead, "address": dead, "error": "refused",
            "message": "refused: nothing answers queries at that UDP port; is it the right one, and is the server running? Games that use TCP only cannot be queried, but rallypoint doctor checks them",
        }],
    });
    assert_eq!(parsed(&text), expected);
}

#[test]
fn jsonl_has_one_object_per_line() {
    let server = MockServer::new(QueryProtocol::Bloodmasters);
    let (text, _) = query(&["--jsonl", &server.text(), &closed_udp_port()]);
    let mut types: Vec<_> = text.lines().map(|line| parsed(line)["type"].clone()).collect();
    types.sort_by_key(ToString::to_string);
    assert_eq!(types, ["error", "server"]);
}

#[test]
fn csv_has_a_header_and_one_line_per_server() {
    let server = MockServer::new(QueryProtocol::Bloodmasters);
    let (text, code) = query(&["--csv", &server.text()]);
    let text = redact_ports_and_pings(&text, &[&server]);
    let (header, line) = text.split_once('\n').unwrap();
    let fields: Vec<_> =
        header.split(',').zip(line.trim_end().split(',')).filter(|(key, _)| *key != "ping_ms").collect();
    let expected = "target=127.0.0.1:PORT address=127.0.0.1:PORT protocol=bloodmasters name=Bacon Town game=bloodmasters \
                    mode=Deathmatch map=ctf_truefort version=292 players=2 max_players=24 bots= spectators=0 \
                    password=false complete=true error=";
    assert_eq!(fields.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" "), expected);
    assert_eq!(code, 0);
    let (text, _) = query(&["--csv", &closed_udp_port()]);
    assert!(text.lines().nth(1).unwrap().ends_with(",refused"), "{text}");
}

#[test]
fn gamedig_output_has_the_keys_of_gamedig() {
    let server = MockServer::new(QueryProtocol::Session);
    let (text, _) = query(&["--compat", "gamedig", &server.text()]);
    let value = parsed(&text);
    assert_eq!(
        [&value["name"], &value["map"], &value["password"], &value["numplayers"], &value["maxplayers"]],
        [&json!("Bacon Town"), &json!("ctf_truefort"), &json!(false), &json!(2), &json!(24)]
    );
    assert_eq!(value["players"][0]["name"], "Ada");
    assert_eq!(value["connect"], server.text());
    assert_eq!(value["queryPort"], server.addr.port());
    assert!(value["ping"].is_u64(), "{value}");
    // The output of npm's gamedig 5.3 has exactly these keys.
    let keys: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
    let gamedig = "bots connect map maxplayers name numplayers password ping players queryPort raw version";
    assert_eq!(keys.join(" "), gamedig);
    let player: Vec<_> = value["players"][0].as_object().unwrap().keys().collect();
    assert_eq!(player, ["name", "raw"]);
    // Several servers are printed as a list; those that failed have an error.
    let (text, _) = query(&["--compat", "gamedig", &server.text(), &closed_udp_port()]);
    let list = parsed(&text);
    let errors = list.as_array().unwrap().iter().filter(|server| server["error"].is_string()).count();
    assert_eq!((list.as_array().unwrap().len(), errors), (2, 1));
    let (text, _) = query(&["--compat", "gamedig", "--jsonl", &server.text()]);
    assert_eq!(parsed(&text)["name"], "Bacon Town");
}

#[test]
fn a_failure_of_the_whole_command_is_an_object_too() {
    let home = tempfile::tempdir().unwrap();
    for (args, code, what) in [
        (&["query", "--json", "--capture", "/nonexistent/x", "127.0.0.1"][..], 5, "local"),
        (&["query", "--json", "two words"], 2, "usage"),
        (&["list", "--json", "session://127.0.0.1"], 2, "usage"),
        (&["query", "--json"], 2, "usage"),
        (&["list", "--json", "--limit", "few"], 2, "usage"),
    ] {
        let output = run(home.path(), args);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert_eq!(parsed(&stdout(&output))["errors"][0]["error"], what);
        assert!(!stderr(&output).is_empty(), "{output:?}");
    }
    let output = run(home.path(), ["query", "--jsonl", "--rate", "0", "127.0.0.1"]);
    let error = parsed(&stdout(&output));
    let message = "invalid value '0' for '--rate <N>': expected a number from 1 to 10000000";
    assert_eq!((&error["type"], &error["message"]), (&json!("error"), &json!(message)));
    let output = run(home.path(), ["query", "--rate", "0", "127.0.0.1"]);
    assert_eq!(stdout(&output), "", "in formats for people, errors are on standard error only");
}

#[test]
fn every_key_is_in_the_documentation() {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/querying.md")).unwrap();
    let servers = [MockServer::new(QueryProtocol::Session), MockServer::new(QueryProtocol::Bloodmasters)];
    let (text, _) = query(&["--json", &servers[0].text(), &servers[1].text(), &closed_udp_port()]);
    let mut keys = BTreeSet::new();
    collect(&parsed(&text), &mut keys);
    assert!(keys.len() > 40, "{keys:?}");
    for key in keys {
        assert!(page.contains(&format!("`{key}`")), "docs/querying.md does not explain `{key}`");
    }
}

fn collect(value: &Value, keys: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| {
            keys.insert(key.clone());
            // The keys in it are those of the game.
            if key != "rules" {
                collect(value, keys);
            }
        }),
        Value::Array(all) => all.iter().for_each(|value| collect(value, keys)),
        _ => {}
    }
}
