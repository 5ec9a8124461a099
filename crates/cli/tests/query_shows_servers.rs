//! `query` prints one server in detail and several in a table, also in narrow terminals and with hostile names.

use rallypoint_harness::{
    MockServer, QueryProtocol, collapse_spaces, has_ipv6, rallypoint, redact_ports_and_pings, run, sample_info, skip,
    stderr, stdout,
};
use rallypoint_query_proto::{Player, ServerInfo};

fn query(servers: &[&MockServer], args: &[&str]) -> String {
    let home = tempfile::tempdir().unwrap();
    let output = run(home.path(), [&["query"], args].concat());
    assert!(output.status.success(), "{output:?}");
    assert_eq!(stderr(&output), "");
    redact_ports_and_pings(&stdout(&output), servers)
}

#[test]
fn a_bloodmasters_server_is_shown_in_detail() {
    let server = MockServer::new(QueryProtocol::Bloodmasters);
    let expected = "\
Bacon Town
  address      127.0.0.1:PORT (bloodmasters)
  ping         # ms
  game         Bloodmasters
  mode         Deathmatch
  map          ctf_truefort
  version      292
  players      2/24
  password     none
  website      http://example.org/
  score limit  none
  time limit   none

  PLAYER  TEAM  PING
  Ada     red     35
  Grace   blue    60
";
    assert_eq!(query(&[&server], &[&format!("bloodmasters://{}", server.addr)]), expected);
    // Without a scheme both protocols are tried.
    assert_eq!(query(&[&server], &[&server.text()]), expected);
    server.assert_received_no_empty_datagram();
}

#[test]
fn a_session_server_is_shown_in_detail() {
    let server = MockServer::new(QueryProtocol::Session);
    let expected = "\
Bacon Town
  description  Friendly people
  address      127.0.0.1:PORT (session)
  ping         # ms
  game         Gang Garrison 2 (gg2)
  map          ctf_truefort
  version      292
  players      2/24
  tags         beginners

  PLAYER  TEAM  RANK  PING
  Ada     RED      1    35
  Grace   BLU      2    60
";
    assert_eq!(query(&[&server], &[&format!("session://{}", server.addr)]), expected);
    assert_eq!(query(&[&server], &[&server.text()]), expected);
    let (without, players) =
        (query(&[&server], &[&server.text(), "--no-players"]), expected.find("\n  PLAYER").unwrap());
    assert_eq!(without, expected[..players]);
    server.assert_received_no_empty_datagram();
}

#[test]
fn a_server_is_queried_over_ipv6() {
    if !has_ipv6() {
        return skip("this machine has no IPv6");
    }
    let server = MockServer::with_info("[::1]:0", QueryProtocol::Session, &sample_info());
    for args in [&["-6"][..], &[]] {
        assert!(query(&[&server], &[&[&*server.text()], args].concat()).contains("[::1]:PORT (session)"));
    }
}

#[test]
fn several_servers_are_shown_in_a_table() {
    let servers = [MockServer::new(QueryProtocol::Bloodmasters), MockServer::new(QueryProtocol::Session)];
    let all = query(&[&servers[0], &servers[1]], &[&servers[0].text(), &servers[1].text()]);
    let lines: Vec<_> = collapse_spaces(&all).lines().map(str::to_owned).collect();
    assert_eq!(
        lines,
        [
            "NAME PLAYERS MAP GAME PING ADDRESS",
            "Bacon Town 2/24 ctf_truefort bloodmasters # ms 127.0.0.1:PORT",
            "Bacon Town 2/24 ctf_truefort gg2 # ms 127.0.0.1:PORT",
        ]
    );
    let details = query(&[&servers[0], &servers[1]], &[&servers[0].text(), &servers[1].text(), "--details"]);
    assert_eq!(details.matches("  address  ").count(), 2, "{details}");
}

#[test]
fn a_table_has_the_order_of_the_targets() {
    let named = |name: &str| ServerInfo { name: Some(name.into()), ..sample_info() };
    let late = MockServer::ignoring_the_first(QueryProtocol::Bloodmasters, &named("late"));
    let quick = MockServer::with_info("127.0.0.1:0", QueryProtocol::Bloodmasters, &named("quick"));
    let home = tempfile::tempdir().unwrap();
    let targets = [&late, &quick].map(|server| format!("bloodmasters://{}", server.addr));
    let output = run(home.path(), ["query", &targets[0], &targets[1]]);
    let names: Vec<_> = stdout(&output).lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(names, ["NAME", "late", "quick"], "{output:?}");
}

#[test]
fn forty_columns_are_enough() {
    let names = ["A very long name that nobody can read to its end", "七人の侍七人の侍七人の侍七人の侍七人の侍"];
    let servers = names.map(|name| {
        let info = ServerInfo { name: Some(name.into()), description: Some(name.repeat(4)), ..sample_info() };
        MockServer::with_info("127.0.0.1:0", QueryProtocol::Session, &info)
    });
    let home = tempfile::tempdir().unwrap();
    for args in [&["--details"][..], &[]] {
        let mut command = rallypoint(home.path());
        command.arg("query").args(servers.iter().map(MockServer::text)).args(args).env("COLUMNS", "40");
        let text = stdout(&command.output().unwrap());
        for line in text.lines() {
            assert!(unicode_width::UnicodeWidthStr::width(line) <= 40, "{line:?} in\n{text}");
        }
        for server in &servers {
            assert!(text.contains(&server.text()), "the address is not truncated:\n{text}");
        }
    }
}

#[test]
fn hostile_names_are_sanitized() {
    let evil = "\x1b[2J\u{202e}live\r\nHTTP|\u{9b}31m\"'<b>,=1+1";
    let info = ServerInfo {
        name: Some(evil.into()),
        description: Some(evil.into()),
        map: Some(evil.into()),
        tags: vec![evil.into()],
        players: Some(1),
        player_list: Some(vec![Player { name: evil.into(), ..Player::default() }]),
        ..ServerInfo::default()
    };
    let home = tempfile::tempdir().unwrap();
    for speaks in [QueryProtocol::Session, QueryProtocol::Bloodmasters] {
        let server = MockServer::with_info("127.0.0.1:0", speaks, &info);
        for format in [&[][..], &["--details"], &["--json"], &["--jsonl"], &["--csv"], &["--compat", "gamedig"]] {
            let output = run(home.path(), [&["query", &server.text()], format].concat());
            assert!(output.status.success(), "{output:?}");
            let text = stdout(&output);
            let is_bad = |c: char| c.is_control() && c != '\n' || matches!(c, '\u{202e}' | '\u{9b}');
            assert!(!text.contains(is_bad), "{format:?}: {text:?}");
            assert!(text.contains("live"), "{text}");
        }
    }
}
