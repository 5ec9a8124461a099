//! `ping` queries repeatedly and prints statistics.

use rallypoint_harness::{
    MockServer, Process, QueryProtocol, Signal, closed_udp_port, rallypoint, redact_ports_and_pings, run, stderr,
    stdout, wait_for,
};
use serde_json::Value;

#[test]
fn replies_and_statistics_are_printed() {
    let home = tempfile::tempdir().unwrap();
    for (speaks, name) in [(QueryProtocol::Session, "session"), (QueryProtocol::Bloodmasters, "bloodmasters")] {
        let server = MockServer::new(speaks);
        let output = run(home.path(), ["ping", "-c", "2", "-i", "10ms", &server.text()]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let text = redact_ports_and_pings(&stdout(&output).replace("time=", "time= "), &[&server]);
        let (pings, end) = text.split_once("\n\n").unwrap();
        let expected = format!(
            "PING 127.0.0.1:PORT\n\
             answer from 127.0.0.1:PORT ({name}): seq=1 time= # ms players=2/24\n\
             answer from 127.0.0.1:PORT ({name}): seq=2 time= # ms players=2/24"
        );
        assert_eq!(pings, expected);
        let end: Vec<_> = end.lines().collect();
        assert_eq!(end[..2], ["--- 127.0.0.1:PORT ---", "2 sent, 2 answered, 0% lost"]);
        assert!(end[2].starts_with("min/avg/max/mdev = "), "{end:?}");
        server.assert_received_no_empty_datagram();
    }
}

#[test]
fn a_server_that_never_answers_is_reported_as_lost() {
    let home = tempfile::tempdir().unwrap();
    let silent = MockServer::silent();
    let output = run(home.path(), ["ping", "-c", "2", "-i", "10ms", "-t", "50ms", &silent.text()]);
    assert_eq!(output.status.code(), Some(1));
    let text = stdout(&output);
    assert!(text.contains("seq=2 no answer\n"), "{text}");
    assert!(text.contains("2 sent, 0 answered, 100% lost\n"), "{text}");
    let output = run(home.path(), ["ping", "-q", "-c", "1", &closed_udp_port()]);
    assert_eq!(output.status.code(), Some(4));
    assert_eq!(stdout(&output).lines().count(), 2, "{output:?}");
}

#[test]
fn json_has_one_object_per_line() {
    let home = tempfile::tempdir().unwrap();
    let server = MockServer::new(QueryProtocol::Session);
    let text = stdout(&run(home.path(), ["ping", "-c", "2", "-i", "10ms", "--jsonl", &server.text()]));
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let types: Vec<_> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["ping", "ping", "statistics"]);
    assert_eq!((&lines[1]["seq"], &lines[2]["answered"]), (&2.into(), &2.into()));
    let quiet = stdout(&run(home.path(), ["ping", "-q", "-c", "2", "-i", "10ms", "--jsonl", &server.text()]));
    assert!(quiet.lines().count() == 1 && quiet.contains("statistics"), "{quiet}");
    assert!(lines[0]["ping_ms"].is_f64() && lines[2]["avg_ms"].is_f64());
}

#[test]
fn a_name_that_cannot_be_resolved_is_reported_as_json_too() {
    let home = tempfile::tempdir().unwrap();
    let output = run(home.path(), ["ping", "--jsonl", "nobody.invalid"]);
    assert_eq!(output.status.code(), Some(1));
    let error: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!((&error["type"], &error["error"]), (&"error".into(), &"not_found".into()), "{error}");
    assert!(stderr(&output).starts_with("nobody.invalid: the name cannot be resolved"), "{output:?}");
}

#[test]
fn ctrl_c_shows_the_statistics() {
    let home = tempfile::tempdir().unwrap();
    let server = MockServer::new(QueryProtocol::Session);
    let program = Process::spawn(rallypoint(home.path()).args(["ping", "-i", "10ms", &server.text()]));
    wait_for("some pings", || (server.received().len() > 3).then_some(()));
    program.signal(Signal::INT);
    let mut lines = Vec::new();
    while lines.last().is_none_or(|line: &String| !line.starts_with("min/avg/max/mdev")) {
        lines.push(program.next_line());
        assert!(lines.len() < 100_000);
    }
    assert!(lines.iter().any(|line| line.ends_with(" 0% lost")), "{lines:?}");
    assert_eq!(program.wait().status.code(), Some(0));
}

#[test]
fn a_list_cannot_be_pinged() {
    let home = tempfile::tempdir().unwrap();
    assert_eq!(run(home.path(), ["ping", "lobby://localhost"]).status.code(), Some(2));
}
