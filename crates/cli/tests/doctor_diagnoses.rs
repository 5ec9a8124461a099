//! `rallypoint doctor` reports why a server is not listed, and what to do about it.

use rallypoint_harness::{Lobby, Process, Signal, has_ipv6, rallypoint, run, stderr, stdout, wait_for};
use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, UdpSocket},
    path::Path,
};

/// Runs `doctor`; returns its output and exit code.
fn doctor(home: &Path, lobby: SocketAddr, args: &[&str]) -> (String, i32) {
    let lobby = lobby.to_string();
    let output = run(home, [&["doctor", "--lobby", &lobby], args].concat());
    assert_eq!(stderr(&output), "");
    (stdout(&output), output.status.code().unwrap())
}

/// A free port of this machine, with its address.
fn free_port() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// A listed server that answers on IPv4, and its address.
fn listed_arena(home: &Path, lobby: &Lobby) -> (Process, String) {
    let info = home.join("info.toml");
    fs::write(&info, "name = \"Arena\"\nmax_players = 8\n").unwrap();
    let mut respond = rallypoint(home);
    let respond = Process::spawn(respond.args(["respond", "--session", "127.0.0.1:0", "--info"]).arg(&info));
    let at = respond.next_line().replace("session udp ", "");
    lobby.register_port("Arena", at.rsplit_once(':').unwrap().1.parse().unwrap());
    lobby.wait_for_list("the server is listed", |list| list.len() == 1);
    (respond, at)
}

#[test]
fn a_healthy_server_has_no_problems() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start_in(home.path(), &[]);
    let (_arena, at) = listed_arena(home.path(), &lobby);
    let (text, code) = doctor(home.path(), lobby.v4(), &[&at, "--register-test"]);
    assert_eq!(code, 0, "{text}");
    for part in [
        format!("ok       query     {at} answers session queries: \"Arena\", 0/8 players"),
        format!("ok       lobby     the list of {} has 1 server", lobby.v4()),
        format!("ok       listed    listed as \"Arena\" at {at}"),
        "note     test      no test entry needed".into(),
        "No problem found.".into(),
    ] {
        assert!(text.contains(&part), "{part}\n{text}");
    }
}

#[test]
fn without_a_port_the_only_listed_server_is_examined_and_several_are_named() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start_in(home.path(), &[]);
    let (_arena, at) = listed_arena(home.path(), &lobby);
    let (text, code) = doctor(home.path(), lobby.v4(), &["127.0.0.1"]);
    assert_eq!(code, 0, "{text}");
    let note = format!("no port was given: \"Arena\" ({at}) is examined, the only server that is listed at 127.0.0.1");
    assert!(text.contains(&note) && text.contains(&format!("{at} answers session queries")), "{text}");
    lobby.register_port("Town", 8190);
    lobby.wait_for_list("both are listed", |list| list.len() == 2);
    let (text, code) = doctor(home.path(), lobby.v4(), &["127.0.0.1"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("no port was given, and 2 servers are listed at 127.0.0.1: \""), "{text}");
    assert!(text.contains("\"Town\" (127.0.0.1:8190)") && text.contains("rallypoint doctor 127.0.0.1:PORT"), "{text}");
    assert!(!text.contains("answers session queries"), "{text}");
}

#[test]
fn the_reason_why_a_test_entry_was_not_listed_is_reported() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start_in(home.path(), &["--http", "127.0.0.1:0"]);
    let api = lobby.url();
    let closed = free_port();
    let (text, code) = doctor(home.path(), lobby.v4(), &[&closed, "--register-test", "--api", &api]);
    assert_eq!(code, 1, "{text}");
    let (_, port) = closed.rsplit_once(':').unwrap();
    let reason = format!(
        "problem  test      a test entry from this machine (tcp {port}) was not listed: the lobby reports port_closed"
    );
    assert!(text.contains(&reason) && text.contains("registrations are checked again in"), "{text}");
}

#[test]
fn an_address_of_documentation_is_recognised() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start_in(home.path(), &[]);
    let (text, code) = doctor(home.path(), lobby.v4(), &["192.0.2.1:8190", "--timeout", "100ms"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("192.0.2.1 is an address for examples in documentation, which no machine has"), "{text}");
}

#[test]
fn a_server_with_one_address_family_is_healthy() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start_in(home.path(), &[]);
    let (_arena, at) = listed_arena(home.path(), &lobby);
    let (_, port) = at.rsplit_once(':').unwrap();
    let (text, code) = doctor(home.path(), lobby.v4(), &[&format!("localhost:{port}"), "--timeout", "500ms"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("No problem found.") && !text.contains("problem  "), "{text}");
    if has_ipv6() {
        assert!(text.contains(&format!("note     query     [::1]:{port}: refused")), "{text}");
    }
}

#[test]
fn outcomes_of_an_unregistered_server_are_notes() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start_in(home.path(), &["--http", "127.0.0.1:0"]);
    let api = lobby.url();
    let mut announce = rallypoint(home.path());
    let to = lobby.v4().to_string();
    let at = free_port();
    let port = at.rsplit_once(':').unwrap().1;
    announce.args(["announce", "--name", "Arena", "--port", port, "--transport", "udp", "--lobby", &to]);
    let announce = Process::spawn(&mut announce);
    announce.next_line();
    assert!(announce.next_line().starts_with("listed by "));
    announce.signal(Signal::TERM);
    announce.wait();
    let args = [&*at, "--transport", "udp", "--timeout", "100ms", "--api", &api];
    let text = wait_for("the unregistration has arrived", || {
        let (text, _) = doctor(home.path(), lobby.v4(), &args);
        Some(text).filter(|text| text.contains("the lobby reports not_registered"))
    });
    assert!(text.contains("note     outcomes  the lobby reports listed: the server is now in the list ("), "{text}");
    assert!(text.contains("note     outcomes  the lobby reports unregistered"), "{text}");
    assert!(!text.contains("problem  outcomes") && text.contains("it may not register"), "{text}");
}

#[test]
fn a_closed_port_is_reported() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start_in(home.path(), &[]);
    let (at, api) = (free_port(), format!("http://{}", free_port()));
    let (text, code) = doctor(home.path(), lobby.v4(), &[&at, "--api", &api]);
    assert_eq!(code, 1, "{text}");
    let outcomes =
        format!("the reason is not available from the lobby: its web API ({api}/api/v1/outcomes) does not answer");
    for part in [
        &*format!("note     outcomes  {outcomes}"),
        &format!("problem  tcp       {at}: refused"),
        "problem  listed    the server is not in the list",
        "What to do:",
        "start the server, and compare the port with its settings",
        "--register-test",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn a_listed_server_that_does_not_run_is_reported() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start_in(home.path(), &[]);
    let at = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    lobby.register_port("Arena", at.port());
    lobby.wait_for_list("the server is listed", |list| list.len() == 1);
    let (text, code) = doctor(home.path(), lobby.v4(), &[&at.to_string()]);
    assert_eq!(code, 1, "{text}");
    assert_eq!(text.matches(&format!("problem  query     {at}: refused")).count(), 1, "{text}");
    assert!(text.contains("start the server, and compare the port with its settings"), "{text}");
}

#[test]
fn the_reason_is_fetched_from_the_lobby() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start_in(home.path(), &["--http", "127.0.0.1:0", "--set", "lobby.allow_private=false"]);
    let api = lobby.url();
    let at = free_port();
    let (text, _) = doctor(home.path(), lobby.v4(), &[&at, "--api", &api]);
    assert!(text.contains("note     outcomes  the lobby received nothing from 127.0.0.1 recently"), "{text}");
    lobby.register_port("Arena", at.rsplit_once(':').unwrap().1.parse().unwrap());
    let text = wait_for("the lobby has heard of it", || {
        let (text, _) = doctor(home.path(), lobby.v4(), &[&at, "--api", &api]);
        Some(text).filter(|text| text.contains("problem  outcomes  "))
    });
    assert!(text.contains("problem  outcomes  the lobby reports private_source: "), "{text}");
    assert!(text.contains("The server registers, but the lobby refuses it"), "{text}");
}

/// A node of a cluster that did not respond may have received the registrations.
#[test]
fn silent_nodes_are_named() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start_in(home.path(), &[]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let api = format!("http://{}", listener.local_addr().unwrap());
    let web = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut request = BufReader::new(client.try_clone().unwrap()).lines();
        while request.next().is_some_and(|line| !line.unwrap().is_empty()) {}
        let body = r#"{"address":"127.0.0.1","outcomes":[],"silent_nodes":["eu-1","us-1"]}"#;
        write!(client, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len()).unwrap();
    });
    let (text, _) = doctor(home.path(), lobby.v4(), &[&free_port(), "--api", &api]);
    web.join().unwrap();
    assert!(text.contains("note     outcomes  nodes of the lobby that did not respond: eu-1, us-1"), "{text}");
    assert!(!text.contains("outcomes  the lobby received nothing"), "{text}");
}

/// Also before the server registers again: until then, the latest outcome of its own is that it was listed.
#[test]
fn a_ban_is_reported_at_once() {
    const TOKEN: &str = "0123456789abcdef0123456789abcdef";
    let home = tempfile::tempdir().unwrap();
    let token = home.path().join("token");
    fs::write(&token, TOKEN).unwrap();
    let setting = format!("web.admin_token_file={}", token.display());
    let lobby = Lobby::start_in(home.path(), &["--http", "127.0.0.1:0", "--set", &setting]);
    let (_arena, at) = listed_arena(home.path(), &lobby);
    let mut ban = rallypoint(home.path());
    ban.args(["admin", "--url", &lobby.url(), "ban", "127.0.0.1", "--reason", "floods"]);
    let output = ban.env("RALLYPOINT_ADMIN_TOKEN", TOKEN).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    lobby.wait_for_list("the server is removed", <[_]>::is_empty);
    let (text, code) = doctor(home.path(), lobby.v4(), &[&at, "--api", &lobby.url()]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("problem  listed    the server is not in the list"), "{text}");
    assert!(text.contains("problem  outcomes  the lobby reports banned: ") && text.contains("(floods)"), "{text}");
    assert!(text.contains("only the operator can lift the ban"), "{text}");
}

#[test]
fn a_running_server_that_does_not_announce_is_reported() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start_in(home.path(), &[]);
    let game = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = game.local_addr().unwrap().to_string();
    let (text, code) = doctor(home.path(), lobby.v4(), &[&at, "--transport", "tcp", "--register-test"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains(&format!("ok       tcp       {at} accepts connections")), "{text}");
    assert!(
        text.contains(&format!("ok       test      a test entry from this machine was listed at {at} and removed")),
        "{text}"
    );
    assert!(text.contains("the server itself does not register"), "{text}");
    lobby.wait_for_list("the test entry is gone", <[_]>::is_empty);
}

#[test]
fn a_refused_test_entry_and_an_unreachable_lobby_are_reported() {
    let home = tempfile::tempdir().unwrap();
    let strict = Lobby::start_in(home.path(), &["--set", "lobby.allow_private=false"]);
    let game = UdpSocket::bind("127.0.0.1:0").unwrap();
    let at = game.local_addr().unwrap().to_string();
    let args = [&*at, "--transport", "udp", "--register-test", "--timeout", "100ms"];
    let (text, code) = doctor(home.path(), strict.v4(), &args);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("problem  test      a test entry from this machine (udp"), "{text}");
    assert!(text.contains("The lobby may refuse this address"), "{text}");

    let (text, code) = doctor(home.path(), free_port().parse().unwrap(), &args);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("problem  lobby     ") && text.contains("cannot fetch the list of"), "{text}");
}

#[test]
fn the_report_is_available_as_json() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start_in(home.path(), &[]);
    let (text, code) = doctor(home.path(), lobby.v4(), &[&free_port(), "--json"]);
    assert_eq!(code, 1);
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["ok"], false);
    assert!(
        document["steps"]
            .as_array()
            .unwrap()
            .iter()
            .any(|step| step["step"] == "listed" && step["result"] == "problem")
    );
    assert!(!document["advice"].as_array().unwrap().is_empty());
}

#[test]
fn wrong_usage_exits_with_2() {
    let home = tempfile::tempdir().unwrap();
    for args in [&["doctor"][..], &["doctor", "lobby://x"], &["doctor", "h", "--transport", "ipx"], &["doctor", "a b"]]
    {
        let output = run(home.path(), args);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{args:?}");
    }
}
