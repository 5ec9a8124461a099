//! `check` follows the conventions of monitoring plugins: one line with performance data, and four exit codes.

use rallypoint_harness::{
    Lobby, MockServer, QueryProtocol, SHORT_TIMEOUT, closed_udp_port, run, sample_info, stderr, stdout,
};
use rallypoint_query_proto::ServerInfo;

fn check(args: &[&str]) -> (i32, String) {
    let home = tempfile::tempdir().unwrap();
    let output = run(home.path(), [&["check", "-t", SHORT_TIMEOUT], args].concat());
    (output.status.code().unwrap(), stdout(&output))
}

#[test]
fn ok_includes_performance_data() {
    let server = MockServer::new(QueryProtocol::Session);
    let (code, text) = check(&[&server.text(), "--warn-ping", "60000", "--crit-players", "1:"]);
    assert_eq!(code, 0, "{text}");
    let (line, data) = text.trim_end().split_once(" | ").unwrap();
    assert!(line.starts_with("RALLYPOINT OK - Bacon Town, 2/24 players, ping "), "{line}");
    let (players, ping) = data.split_once(' ').unwrap();
    assert_eq!(players, "players=2;;1:;0;24");
    assert!(ping.starts_with("ping=") && ping.ends_with("ms;60000;;0;"), "{ping}");
}

#[test]
fn thresholds_decide_between_warning_and_critical() {
    let server = MockServer::new(QueryProtocol::Bloodmasters);
    for (args, code, word) in [
        (&["--warn-players", "3:"][..], 1, "WARNING"),
        (&["--warn-players", "3:", "--crit-players", "@0:2"], 2, "CRITICAL"),
        (&["--crit-players", "1"], 2, "CRITICAL"),
        (&["--warn-ping", "@0:"], 1, "WARNING"),
        (&["--warn-players", "~:2"], 0, "OK"),
    ] {
        let (got, text) = check(&[&[&*server.text()], args].concat());
        assert_eq!(got, code, "{args:?}: {text}");
        assert!(text.starts_with(&format!("RALLYPOINT {word} - ")), "{text}");
    }
    let (_, text) = check(&[&server.text(), "--crit-players", "5:"]);
    assert!(text.contains("(players 2 is outside 5:)"), "{text}");
}

#[test]
fn a_server_that_does_not_answer_is_critical() {
    let silent = MockServer::silent();
    for target in
        [silent.text(), closed_udp_port(), MockServer::malformed().text(), format!("lobby://{}", closed_udp_port())]
    {
        let (code, text) = check(&[&target]);
        assert_eq!(code, 2, "{text}");
        assert!(text.starts_with("RALLYPOINT CRITICAL - ") && text.lines().count() == 1, "{text}");
    }
    silent.assert_received_no_empty_datagram();
}

#[test]
fn a_check_that_cannot_run_is_unknown() {
    let home = tempfile::tempdir().unwrap();
    let (code, text) = check(&["no-such-name.invalid"]);
    assert_eq!(code, 3);
    assert!(text.starts_with("RALLYPOINT UNKNOWN - no-such-name.invalid: the name cannot be resolved"), "{text}");
    let (code, text) = check(&["--source", "192.0.2.1", "127.0.0.1"]);
    assert_eq!(code, 3);
    assert!(text.starts_with("RALLYPOINT UNKNOWN - this machine does not have the address 192.0.2.1"), "{text}");
    // An error in the configuration of the monitoring system is not an alarm.
    for args in [&["check"][..], &["check", "x", "--warn-ping", "20:10"], &["check", "two words"]] {
        let output = run(home.path(), args);
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        assert!(!stderr(&output).is_empty());
    }
    assert_eq!(run(home.path(), ["check", "--help"]).status.code(), Some(0));
}

#[test]
fn a_name_cannot_forge_performance_data() {
    let evil = ServerInfo { name: Some("x | ping=0ms\nRALLYPOINT OK".into()), ..sample_info() };
    let server = MockServer::with_info("127.0.0.1:0", QueryProtocol::Session, &evil);
    let (_, text) = check(&[&server.text()]);
    assert_eq!((text.matches('|').count(), text.lines().count()), (1, 1), "{text}");
}

#[test]
fn a_lobby_is_checked_by_its_list() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start_in(home.path(), &[]);
    lobby.register_port("one", 1001);
    lobby.wait_for_list("a server", |list| list.len() == 1);
    let target = format!("lobby://{}", lobby.v4());
    let (code, text) = check(&[&target, "--crit-servers", "1:"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains(", 1 server, 0 players, ping ") && text.contains(" | servers=1;;1:;0; players=0;;;0; ping="));
    assert_eq!(check(&[&target, "--warn-servers", "2:"]).0, 1);
}

#[test]
fn a_threshold_that_does_not_apply_is_reported() {
    let server = MockServer::new(QueryProtocol::Session);
    let (code, text) = check(&[&server.text(), "--warn-servers", "1:"]);
    assert_eq!(code, 3, "{text}");
    let expected =
        format!("RALLYPOINT UNKNOWN - {} is a server: --warn-servers and --crit-servers are for", server.text());
    assert!(text.starts_with(&expected), "{text}");
}

#[test]
fn a_master_list_has_no_players() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start_in(home.path(), &["--http", "127.0.0.1:0"]);
    let list = lobby.url() + "/bloodmasterslist.php";
    let (code, text) = check(&[&list, "--warn-servers", "0:"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains(", 0 servers, ping ") && !text.contains("players"), "{text}");
    let (code, text) = check(&[&list, "--warn-players", "3"]);
    assert_eq!(code, 3, "{text}");
    assert!(text.starts_with("RALLYPOINT UNKNOWN - ") && text.contains("(it does not report players)"), "{text}");
    let (code, text) = check(&[&(lobby.url() + "/"), "--warn-players", "3"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains(", 0 servers, 0 players, "), "the page of a lobby has players: {text}");
}

#[test]
fn wrong_usage_is_reported_in_one_line_on_standard_output() {
    let home = tempfile::tempdir().unwrap();
    for (args, expected) in [
        (&["check"][..], "the following required arguments were not provided: <TARGET>"),
        (
            &["check", "host", "--warn-ping", "x"],
            "invalid value 'x' for '--warn-ping <RANGE>': expected a range such as",
        ),
        (&["check", "host", "--wrn-ping", "1"], "unexpected argument '--wrn-ping' found"),
    ] {
        let output = run(home.path(), args);
        let text = stdout(&output);
        assert_eq!((output.status.code(), text.lines().count()), (Some(3), 1), "{text}");
        assert!(text.starts_with(&format!("RALLYPOINT UNKNOWN - {expected}")), "{text}");
        assert!(!output.stderr.is_empty(), "the hints for people are on standard error");
    }
}
