//! `rallypoint host` answers queries, is listed by a lobby while it runs, and exports metrics.

use rallypoint_harness::{Lobby, Room, Signal, run, stderr, stdout, wait_for};
use serde_json::{Value, json};
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
};

#[test]
fn a_room_is_listed_and_reports_its_players() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start_in(home.path(), &[]);
    let at = lobby.v4().to_string();
    let room = Room::start(home.path(), &["--name", "Bacon Town", "--max-players", "9", "--lobby", &at]);
    let alice = room.join(home.path(), "alice", &["--team", "red"]);
    alice.wait_for_line("team red");
    let target = format!("{at}/rooms");
    let list = |args: &[&str]| stdout(&run(home.path(), [&["list", &target, "--json"][..], args].concat()));
    let listed = wait_for("it is listed", || Some(list(&[])).filter(|text| text.contains("Bacon Town")));
    assert!(listed.contains(&room.key) && listed.contains("x-session-key"), "{listed}");
    let reply = stdout(&run(home.path(), ["query", &format!("session://{}", room.addr), "--json"]));
    for part in ["Bacon Town", "alice", "rallypoint-room", "\"red\""] {
        assert!(reply.contains(part), "{part} is not in {reply}");
    }
    let reply: Value = serde_json::from_str(&reply).unwrap();
    let shown = &reply["servers"][0];
    assert_eq!((&shown["version"], &shown["session"]["version"]), (&Value::Null, &json!(0)), "a room has no version");
    assert_eq!(room.host.wait_for_line("listed"), format!("-- listed by {at} as 127.0.0.1:{}", room.addr.port()));
    room.host.signal(Signal::TERM);
    let exit = room.host.wait();
    let (code, complaints) = (exit.status.code(), stderr(&exit));
    assert_eq!(code, Some(0));
    assert!(
        complaints.contains(&format!("to see it in the list: rallypoint list {at}/rooms --query\n")),
        "{complaints}"
    );
    wait_for("it is off the list", || (!list(&[]).contains("Bacon Town")).then_some(()));
}

#[test]
fn metrics_are_exported_for_prometheus() {
    let home = tempfile::tempdir().unwrap();
    let room = Room::start(home.path(), &["--metrics", "127.0.0.1:0"]);
    let at: SocketAddr = room.metrics.unwrap();
    let _alice = room.join(home.path(), "alice", &[]);
    let get = |path: &str| {
        let mut tcp = TcpStream::connect(at).unwrap();
        write!(tcp, "GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
        let mut answer = String::new();
        tcp.read_to_string(&mut answer).unwrap();
        answer
    };
    let has_player = |text: &String| text.contains("\nrallypoint_session_players 1\n");
    let text = wait_for("a player is counted", || Some(get("/metrics")).filter(has_player));
    assert!(text.starts_with("HTTP/1.1 200 OK\r\ncontent-type: text/plain; version=0.0.4"), "{text}");
    for name in [
        "session_logins_total{result=\"granted\"}",
        "unproven_bytes_total",
        "session_half_open",
        "session_channel_errors_total{kind=\"table\"} 0",
        "build_info",
    ] {
        assert!(text.contains(&format!("\nrallypoint_{name}")), "{name}: {text}");
    }
    assert!(get("/").starts_with("HTTP/1.1 404"));
}
