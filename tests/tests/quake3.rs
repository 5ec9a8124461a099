//! The door for Quake 3 and its relatives: servers announce themselves with heartbeats, and clients request lists over UDP.

use rallypoint_harness::{Lobby, eventually, send_request};
use rallypoint_wire::{lobby::ListId, quake3};
use serde_json::Value;
use std::{
    io::ErrorKind,
    net::{SocketAddr, UdpSocket},
    time::Duration,
};

const LIST: &str = "5e0a413c-97d2-4b6f-8c35-51334127950d";
const HEARTBEAT: &[u8] = b"\xff\xff\xff\xffheartbeat QuakeArena-1\n";
const GETSERVERS: &[u8] = b"\xff\xff\xff\xffgetservers 71 empty full";

/// Size of the headers of UDP and IPv4.
const HEADERS: usize = 28;

fn lobby(settings: &[&str]) -> Lobby {
    Lobby::with(&[&["doors.quake3=127.0.0.1:0"][..], settings].concat())
}

/// A server or client at any port of an address.
struct Peer {
    socket: UdpSocket,
    master: SocketAddr,
}

impl Peer {
    fn at(ip: &str, lobby: &Lobby) -> Self {
        let socket = UdpSocket::bind(SocketAddr::new(ip.parse().unwrap(), 0)).unwrap();
        Self { socket, master: lobby.door("quake3") }
    }

    fn addr(&self) -> SocketAddr {
        self.socket.local_addr().unwrap()
    }

    fn send(&self, bytes: &[u8]) {
        self.socket.send_to(bytes, self.master).unwrap();
    }

    /// The next datagram from the port that was asked. The lobby's own queries come from others.
    fn recv(&self) -> Vec<u8> {
        let mut buffer = [0; 2_048];
        self.socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        loop {
            let (length, from) = self.socket.recv_from(&mut buffer).unwrap();
            if from == self.master {
                return buffer[..length].to_vec();
            }
        }
    }

    /// Sends a heartbeat; returns the challenge.
    fn challenge(&self) -> String {
        self.send(HEARTBEAT);
        let getinfo = self.recv();
        let challenge = getinfo.strip_prefix(b"\xff\xff\xff\xffgetinfo ").expect("a challenge");
        assert!(getinfo.len() + HEADERS <= 3 * (HEARTBEAT.len() + HEADERS));
        String::from_utf8(challenge.to_vec()).unwrap()
    }

    /// Describes a server, as a captured openarena-server does.
    fn describe(&self, name: &str, clients: u8, challenge: &str) {
        let info = format!(
            "infoResponse\n\\voip\\opus\\g_needpass\\0\\pure\\1\\gametype\\0\\sv_maxclients\\8\\g_humanplayers\\{clients}\
             \\clients\\{clients}\\mapname\\oa_dm1\\hostname\\{name}\\protocol\\71\\gamename\\Quake3Arena\\challenge\\{challenge}"
        );
        self.send(&[b"\xff\xff\xff\xff", info.as_bytes()].concat());
    }

    /// The servers in the reply to a request, and its size with headers. Sent again until there is a reply.
    fn list(&self, request: &[u8]) -> (Vec<SocketAddr>, usize) {
        self.send(request);
        let mut servers = Vec::new();
        let mut size = 0;
        loop {
            let reply = self.recv();
            size += reply.len() + HEADERS;
            let entries = reply.strip_prefix(b"\xff\xff\xff\xffgetserversResponse").expect("a list");
            let (found, is_last) = quake3::servers(entries).unwrap();
            servers.extend(found.into_iter().map(SocketAddr::from));
            if is_last {
                servers.sort_unstable();
                return (servers, size);
            }
        }
    }
}

fn names(lobby: &Lobby) -> Vec<String> {
    let servers = lobby.servers_in(LIST.parse::<ListId>().unwrap());
    servers.into_iter().map(|server| server.name).collect()
}

fn get(lobby: &Lobby, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    let response = String::from_utf8(send_request(lobby.http(), request.as_bytes())).unwrap();
    response.split_once("\r\n\r\n").unwrap().1.to_owned()
}

fn outcome(lobby: &Lobby, code: &str) -> u64 {
    let start = format!("rallypoint_outcomes_total{{code=\"{code}\"}} ");
    get(lobby, "/metrics").lines().find_map(|line| line.strip_prefix(&start)?.parse().ok()).unwrap()
}

#[test]
fn a_server_is_listed_everywhere_and_removed_when_it_ends() {
    let lobby = lobby(&[]);
    let server = Peer::at("127.0.0.1", &lobby);
    server.describe("^1cap^7test", 3, &server.challenge());
    eventually("it is in the 001 list", || names(&lobby) == ["captest"]);
    eventually("it is in the API", || {
        let list: Value = serde_json::from_str(&get(&lobby, "/api/v1/servers")).unwrap();
        let shown = &list["servers"][0];
        let address = shown["connect"].as_str() == Some(&*server.addr().to_string());
        address && shown["door"] == "quake3" && shown["game"] == "Quake3Arena" && shown["numplayers"] == 3
    });
    assert!(get(&lobby, "/").contains("captest"), "it is on the page");
    let client = Peer::at("127.0.0.2", &lobby);
    assert_eq!(client.list(GETSERVERS).0, [server.addr()]);
    assert_eq!(client.list(b"\xff\xff\xff\xffgetservers Quake3Arena 71 full\n").0, [server.addr()], "it has players");
    assert_eq!(client.list(b"\xff\xff\xff\xffgetservers Xonotic 71 empty full").0, []);
    assert_eq!(client.list(b"\xff\xff\xff\xffgetservers 68 empty full").0, []);
    client.send(b"\xff\xff\xff\xffgetserversExt Quake3Arena 71 empty full ipv4");
    let extended = client.recv();
    let entries = extended.strip_prefix(b"\xff\xff\xff\xffgetserversExtResponse").unwrap();
    assert_eq!(quake3::servers(entries).unwrap().0.len(), 1);

    // A heartbeat of a server that still runs, with other data.
    server.describe("renamed", 0, &server.challenge());
    eventually("the change is in the list", || names(&lobby) == ["renamed"]);
    assert_eq!(client.list(b"\xff\xff\xff\xffgetservers 71 full").0, [], "it is empty");
    // The last heartbeats of a server that ends look like any other, and are not followed by a reply.
    server.send(HEARTBEAT);
    server.send(HEARTBEAT);
    eventually("it is removed", || names(&lobby).is_empty());
}

#[test]
fn forged_heartbeats_are_never_listed() {
    let lobby = lobby(&[]);
    let honest = Peer::at("127.0.0.1", &lobby);
    let other = Peer::at("127.0.0.1", &lobby);
    let challenge = honest.challenge();
    // From another port, without a challenge, with a changed one.
    other.describe("stolen", 0, &challenge);
    other.describe("guessed", 0, "AAAAAAAAAAAAAAAA");
    other.describe("none", 0, "");
    honest.describe("changed", 0, &challenge[1..]);
    eventually("they are counted", || outcome(&lobby, "wrong_challenge") == 4);
    let outcomes: Value = serde_json::from_str(&get(&lobby, "/api/v1/outcomes")).unwrap();
    let is_explained = |outcome: &Value| outcome["code"] == "wrong_challenge" && outcome["port"] == other.addr().port();
    assert!(outcomes["outcomes"].as_array().unwrap().iter().any(is_explained), "{outcomes}");
    assert!(names(&lobby).is_empty());
    honest.describe("honest", 0, &challenge);
    eventually("the honest one is listed", || names(&lobby) == ["honest"]);
    // A forged heartbeat in the name of a listed server does not remove it, because that replies.
    let again = honest.challenge();
    honest.describe("honest", 1, &again);
    eventually("it is refreshed", || lobby.servers_in(LIST.parse().unwrap())[0].occupancy.players == 1);
}

#[test]
fn a_list_draws_at_most_three_times_its_request_from_an_unproven_address() {
    let lobby = lobby(&["caps.per_address=100"]);
    let servers: Vec<_> = (0..40).map(|_| Peer::at("127.0.0.1", &lobby)).collect();
    for (number, server) in servers.iter().enumerate() {
        server.describe(&format!("server {number}"), 0, &server.challenge());
    }
    eventually("all are listed", || names(&lobby).len() == servers.len());
    let client = Peer::at("127.0.0.2", &lobby);
    let mut seen = Vec::new();
    for _ in 0..10 {
        let (found, size) = client.list(GETSERVERS);
        assert!(
            !found.is_empty() && size <= 3 * (GETSERVERS.len() + HEADERS),
            "{} servers in {size} bytes",
            found.len()
        );
        seen.extend(found);
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), servers.len(), "repeated requests see all servers");
    // The shortest requests are too short for a list.
    client.socket.set_nonblocking(true).unwrap();
    assert_eq!(client.socket.recv(&mut [0; 16]).unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn a_network_of_the_operator_gets_whole_lists() {
    let lobby = lobby(&["caps.per_address=300", "limits.whole_lists=127.0.0.2/32"]);
    let servers: Vec<_> = (0..250).map(|_| Peer::at("127.0.0.1", &lobby)).collect();
    for (number, server) in servers.iter().enumerate() {
        server.describe(&format!("server {number}"), 0, &server.challenge());
    }
    eventually("all are listed", || names(&lobby).len() == servers.len());
    let mut expected: Vec<_> = servers.iter().map(Peer::addr).collect();
    expected.sort_unstable();
    assert_eq!(Peer::at("127.0.0.2", &lobby).list(GETSERVERS).0, expected);
}

#[test]
fn malformed_datagrams_of_every_kind_are_counted_with_a_reason() {
    let lobby = lobby(&[]);
    let server = Peer::at("127.0.0.1", &lobby);
    let malformed: &[(&[u8], &str)] = &[
        (b"", "truncated in out-of-band mark"),
        (b"heartbeat DarkPlaces\n", "unknown out-of-band mark"),
        (b"\xff\xff\xff\xff", "no command"),
        (b"\xff\xff\xff\xffgetstatus", "unknown command"),
        (b"\xff\xff\xff\xffheartbeat\n", "no heartbeat tag"),
        (b"\xff\xff\xff\xffgetservers", "no protocol"),
        (b"\xff\xff\xff\xffgetservers game empty full\n", "protocol is not valid"),
        (b"\xff\xff\xff\xffinfoResponse\nkey\\value", "settings is not valid"),
        (&[0xff; 3_000], "larger"),
    ];
    for (bytes, reason) in malformed {
        server.send(bytes);
        eventually(reason, || get(&lobby, "/api/v1/outcomes").contains(reason) || *reason == "larger");
    }
    // A description with the right challenge that lacks something is malformed, too.
    let challenge = server.challenge();
    server.send(format!("\u{0}infoResponse\n\\challenge\\{challenge}").replace('\u{0}', "").as_bytes());
    server.send(&[b"\xff\xff\xff\xff", format!("infoResponse\n\\challenge\\{challenge}").as_bytes()].concat());
    eventually("its reason is known", || get(&lobby, "/api/v1/outcomes").contains("no sv_maxclients"));
    let refused = || outcome(&lobby, "malformed") + outcome(&lobby, "too_large");
    eventually("all are counted", || refused() == malformed.len() as u64 + 2);
    assert!(names(&lobby).is_empty());
    // Only the heartbeat was answered.
    server.socket.set_nonblocking(true).unwrap();
    assert_eq!(server.socket.recv(&mut [0; 16]).unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn a_banned_address_gets_no_answer() {
    let home = "[[ban]]\naddress = \"127.0.0.3\"\nreason = \"floods\"\n";
    let lobby = Lobby::builder().set("doors.quake3=127.0.0.1:0").config(home).start();
    let banned = Peer::at("127.0.0.3", &lobby);
    banned.send(HEARTBEAT);
    banned.send(GETSERVERS);
    eventually("both are refused", || outcome(&lobby, "banned") == 2);
    banned.socket.set_nonblocking(true).unwrap();
    assert_eq!(banned.socket.recv(&mut [0; 16]).unwrap_err().kind(), ErrorKind::WouldBlock);
}
