//! `list` shows the servers of a lobby, a legacy lobby or a master list; `--query` also queries each server.

use rallypoint_harness::{
    Lobby, MockServer, Process, QueryProtocol, SHORT_TIMEOUT, collapse_spaces, has_ipv6, rallypoint,
    redact_ports_and_pings, redact_times, run, sample_info, skip, stderr, stdout, wait_for,
};
use rallypoint_query_proto::ServerInfo;
use rallypoint_wire::lobby::{ListId, Occupancy, Registration, ServerId, TableBuf, Transport};
use serde_json::Value;
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, UdpSocket},
    path::Path,
    process::Output,
};

/// Registers a server in the same way as a game.
fn register(lobby: SocketAddr, port: u16, players: u16, entries: &[(&str, &str)]) {
    let mut table = TableBuf::new();
    entries.iter().for_each(|(key, value)| table.push(key.as_bytes(), value.as_bytes()).unwrap());
    let id = ServerId::from_bytes(u128::from(port).to_be_bytes());
    let occupancy = Occupancy { slots: 10, players, bots: 0, password: players == 10 };
    let registration = Registration::new(
        id,
        ListId::GANG_GARRISON_2,
        Transport::Udp,
        port.try_into().unwrap(),
        occupancy,
        table.as_table(),
    )
    .unwrap();
    let mut datagram = Vec::new();
    registration.emit(&mut datagram);
    UdpSocket::bind("127.0.0.1:0").unwrap().send_to(&datagram, lobby).unwrap();
}

fn three_servers(home: &Path) -> Lobby {
    let lobby = Lobby::start_in(home, &[]);
    register(
        lobby.v4(),
        1001,
        3,
        &[
            ("name", "Bacon Town"),
            ("game", "Gang Garrison 2"),
            ("game_short", "gg2"),
            ("map", "ctf_truefort"),
            ("game_ver", "v2.9.2"),
        ],
    );
    register(lobby.v4(), 1002, 0, &[("name", "七人の侍"), ("game", "Samurai"), ("map", "dusk")]);
    register(
        lobby.v4(),
        1003,
        10,
        &[("name", "Full House"), ("game", "gg2"), ("map", "cp_dirtbowl"), ("game_ver", "v2.8")],
    );
    lobby.wait_for_list("three servers", |list| list.len() == 3);
    lobby
}

fn list(home: &Path, args: &[&str]) -> Output {
    run(home, [&["list"], args].concat())
}

#[test]
fn the_servers_of_a_lobby_are_listed() {
    let home = tempfile::tempdir().unwrap();
    let lobby = three_servers(home.path());
    let output = list(home.path(), &[&lobby.v4().to_string()]);
    assert_eq!((output.status.code(), &*stderr(&output)), (Some(0), ""));
    let expected = "\
NAME           PLAYERS  MAP           GAME     ADDRESS         PROTO
Full House pw    10/10  cp_dirtbowl   gg2      127.0.0.1:1003  udp
Bacon Town        3/10  ctf_truefort  gg2      127.0.0.1:1001  udp
七人の侍          0/10  dusk          Samurai  127.0.0.1:1002  udp
";
    assert_eq!(stdout(&output), expected);
    for addr in lobby.addrs().iter().map(|addr| format!("lobby://{addr}/gg2")) {
        assert_eq!(stdout(&list(home.path(), &[&addr])), expected, "over both families");
    }
    if has_ipv6() {
        let other = format!("lobby://localhost:{}", lobby.addrs()[1].port());
        assert_eq!(stdout(&list(home.path(), &[&other])), expected, "a name with an address where nothing listens");
    }
}

#[test]
fn filters_order_and_limit_apply() {
    let home = tempfile::tempdir().unwrap();
    let lobby = three_servers(home.path());
    let names = |args: &[&str]| {
        let output = list(home.path(), &[&[&*lobby.v4().to_string(), "--csv"], args].concat());
        let text = stdout(&output);
        text.lines().skip(1).map(|line| line.split(',').nth(4).unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&["--sort", "name"]), ["Bacon Town", "Full House", "七人の侍"]);
    assert_eq!(names(&["--sort", "name", "--reverse"]), ["七人の侍", "Full House", "Bacon Town"]);
    assert_eq!(names(&["--sort", "players", "--limit", "2"]), ["Full House", "Bacon Town"]);
    assert_eq!(names(&["--sort", "map", "-n", "1"]), ["Full House"]);
    assert_eq!(names(&["--sort", "name", "--not-empty"]), ["Bacon Town", "Full House"]);
    assert_eq!(names(&["--sort", "name", "--not-full"]), ["Bacon Town", "七人の侍"]);
    assert_eq!(names(&["--sort", "name", "--no-password"]), ["Bacon Town", "七人の侍"]);
    assert_eq!(names(&["--game", "GARRISON"]), ["Bacon Town"]);
    assert_eq!(names(&["--map", "dusk"]), ["七人の侍"]);
    assert_eq!(names(&["--name", "bacon"]), ["Bacon Town"]);
    assert_eq!(names(&["--version", "2.8"]), ["Full House"]);
    let output = list(home.path(), &[&lobby.v4().to_string(), "--name", "nobody"]);
    assert_eq!((output.status.code(), &*stdout(&output)), (Some(0), ""));
    assert_eq!(stderr(&output), "3 servers are listed, but none of them matches\n");
}

#[test]
fn query_also_queries_every_server() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start_in(home.path(), &[]);
    let own = ServerInfo { name: Some("Name in the reply".into()), ..sample_info() };
    let servers = [
        MockServer::with_info("127.0.0.1:0", QueryProtocol::Session, &own),
        MockServer::with_info("127.0.0.1:0", QueryProtocol::Bloodmasters, &own),
        MockServer::silent(),
    ];
    register(lobby.v4(), servers[0].addr.port(), 9, &[("name", "one"), ("x-query", "session"), ("x-hint", "kept")]);
    register(lobby.v4(), servers[1].addr.port(), 9, &[("name", "two")]);
    register(lobby.v4(), servers[2].addr.port(), 1, &[("name", "three")]);
    lobby.wait_for_list("three servers", |list| list.len() == 3);
    let lobby = lobby.v4().to_string();

    let output = list(home.path(), &[&lobby, "--query", "--sort", "name", "-t", "1s"]);
    let text = collapse_spaces(&redact_ports_and_pings(&stdout(&output), &servers.iter().collect::<Vec<_>>()));
    let mut lines: Vec<_> = text.lines().collect();
    lines[1..3].sort_unstable();
    let expected = [
        "NAME PLAYERS MAP GAME PING ADDRESS PROTO",
        "Name in the reply 2/24 ctf_truefort bloodmasters # ms 127.0.0.1:PORT udp",
        "Name in the reply 2/24 ctf_truefort gg2 # ms 127.0.0.1:PORT udp",
        "three 1/10 - - silent 127.0.0.1:PORT udp",
    ];
    assert_eq!(lines, expected);
    assert_eq!(output.status.code(), Some(1), "one did not answer");

    let output = list(home.path(), &[&lobby, "--players", "--json", "-t", SHORT_TIMEOUT]);
    let mut document: Value = serde_json::from_str(&stdout(&output)).unwrap();
    redact_times(&mut document);
    let servers = document["servers"].as_array().unwrap();
    let one = servers.iter().find(|server| server["protocol"] == "session").unwrap();
    assert_eq!(one["lobby"]["entries"]["x-hint"], "kept");
    assert_eq!((&one["name"], &one["ping_ms"]), (&"Name in the reply".into(), &"#".into()));
    assert_eq!(one["player_list"].as_array().unwrap().len(), 2);
    let silent = servers.iter().find(|server| server["name"] == "three").unwrap();
    assert_eq!(silent["error"], "timed_out");
    assert_eq!(document["lists"][0]["servers"], 3);
}

#[test]
fn both_families_and_the_transport_are_shown() {
    if !has_ipv6() {
        return skip("this machine has no IPv6");
    }
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start_in(home.path(), &[]);
    let mut announce = vec!["announce", "--name", "Both", "--port", "8190", "--transport", "udp", "--once"];
    let addrs: Vec<_> = lobby.addrs().iter().map(ToString::to_string).collect();
    addrs.iter().for_each(|addr| announce.extend(["--lobby", addr]));
    assert!(run(home.path(), &announce).status.success());
    lobby.wait_for_list("both addresses", |list| list.iter().any(|server| server.endpoints().count() == 2));
    let output = list(home.path(), &[&lobby.v4().to_string()]);
    assert_eq!(
        collapse_spaces(&stdout(&output)),
        "NAME PLAYERS ADDRESS PROTO ALSO AT\nBoth 0 127.0.0.1:8190 udp [::1]:8190\n"
    );
}

#[test]
fn entries_are_printed_while_the_list_is_being_received() {
    let home = tempfile::tempdir().unwrap();
    let lobby = three_servers(home.path());
    // The bytes of a real list; then a server that stops in the middle of it and waits.
    let mut whole = Vec::new();
    let mut stream = std::net::TcpStream::connect(lobby.v4()).unwrap();
    let mut request = Vec::new();
    rallypoint_wire::lobby::ListRequest { list_id: ListId::GANG_GARRISON_2 }.emit(&mut request);
    stream.write_all(&request).unwrap();
    stream.read_to_end(&mut whole).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let slow = listener.local_addr().unwrap().to_string();
    let (go_on, wait) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 32];
        stream.read_exact(&mut request).unwrap();
        let (first, rest) = whole.split_at(whole.len() - 1);
        stream.write_all(first).unwrap();
        let _ = wait.recv();
        stream.write_all(rest).unwrap();
    });
    let mut command = rallypoint(home.path());
    let program = Process::spawn(command.args(["list", &slow, "--jsonl", "-t", "30s"]));
    for _ in 0..2 {
        assert!(program.next_line().starts_with("{\"type\":\"server\""));
    }
    go_on.send(()).unwrap();
    assert!(program.next_line().starts_with("{\"type\":\"server\""));
    assert!(program.next_line().starts_with("{\"type\":\"list\""));
    assert_eq!(program.wait().status.code(), Some(0));
}

#[test]
fn a_lobby_is_a_target_of_query() {
    let home = tempfile::tempdir().unwrap();
    let (lobby, server) = (Lobby::start_in(home.path(), &[]), MockServer::new(QueryProtocol::Session));
    register(lobby.v4(), server.addr.port(), 9, &[("name", "one"), ("x-query", "session")]);
    lobby.wait_for_list("a server", |list| list.len() == 1);
    let output = run(home.path(), ["query", &format!("lobby://{}", lobby.v4())]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(stdout(&output).contains("Bacon Town"), "{output:?}");
}

#[test]
fn l16_a_legacy_lobby_is_listed() {
    let home = tempfile::tempdir().unwrap();
    let mut command = rallypoint(home.path());
    command.args(["serve", "--lobby", "127.0.0.1:0", "--legacy", "127.0.0.1:0", "--http", "off"]);
    let lobby = Lobby::spawn(&mut command, 1);
    let legacy = &*lobby.legacy().to_string();
    // A registration of the legacy protocol: version 7, a port, and the info text.
    let text = b"[dusk] Old Town [3/8] - mod";
    let datagram = [&[4, 8, 15, 16, 23, 42, 7, 0xe9, 3, text.len() as u8], &text[..]].concat();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let [low, high] = tcp.local_addr().unwrap().port().to_le_bytes();
    let datagram = [&datagram[..7], &[low, high], &datagram[9..]].concat();
    UdpSocket::bind("127.0.0.1:0").unwrap().send_to(&datagram, legacy).unwrap();
    let shown = wait_for("it is listed", || {
        let output = list(home.path(), &["--legacy", "--protocol-id", "7", legacy]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        Some(stdout(&output)).filter(|text| !text.is_empty())
    });
    assert_eq!(
        collapse_spaces(&shown),
        format!("NAME PLAYERS MAP GAME ADDRESS\nOld Town 3/8 dusk mod {}\n", tcp.local_addr().unwrap())
    );
    let output = list(home.path(), &["--legacy", legacy]);
    assert_eq!(
        (&*stdout(&output), &*stderr(&output)),
        ("", "no servers of this version are listed; --protocol-id selects another\n"),
        "the server has another version"
    );
}

/// Starts a TCP server that sends these bytes on every connection.
fn serve_bytes(bytes: Vec<u8>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 1_024];
            let _ = stream.read(&mut request);
            let _ = stream.write_all(&bytes);
        }
    });
    addr
}

#[test]
fn l17_a_master_list_is_listed() {
    let home = tempfile::tempdir().unwrap();
    let server = MockServer::new(QueryProtocol::Bloodmasters);
    let page = format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n{}\r\nnonsense\r\n", server.addr);
    let target = format!("http://{}", serve_bytes(page.into_bytes()));
    let output = list(home.path(), &[&target]);
    assert_eq!(
        collapse_spaces(&redact_ports_and_pings(&stdout(&output), &[&server])),
        "NAME ADDRESS\n127.0.0.1:PORT 127.0.0.1:PORT\n"
    );
    let output = list(home.path(), &[&target, "--query"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(stdout(&output).contains("Bacon Town"), "{output:?}");
    let output = list(home.path(), &[&format!("http://{}/x", serve_bytes(b"HTTP/1.1 404 Not Found\r\n\r\n".to_vec()))]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("status 404"), "{output:?}");
}

#[test]
fn invalid_lists_are_reported() {
    let home = tempfile::tempdir().unwrap();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (addr, code, part) in [
        (
            serve_bytes(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()),
            3,
            "this is a web server; for the lobby of a page, use http",
        ),
        (serve_bytes(vec![255; 9]), 3, "is this a lobby's port (29944)?"),
        (serve_bytes(vec![0, 0, 0, 1, 0]), 3, "truncated in list"),
        (serve_bytes(vec![0, 0, 0, 0, 0]), 3, "trailing bytes"),
        (serve_bytes(Vec::new()), 3, "truncated in list"),
        (closed, 4, "nothing listens"),
    ] {
        let output = list(home.path(), &[&addr.to_string()]);
        assert_eq!((output.status.code(), &*stdout(&output)), (Some(code), ""), "{output:?}");
        assert!(stderr(&output).contains(part), "{output:?}");
    }
    // The operating system accepts the connections, but no reply is ever sent.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let output = list(home.path(), &["-t", "300ms", &silent.local_addr().unwrap().to_string()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("no answer within 300 ms"), "{output:?}");
}
