//! The lobby survives any input, and lists only what the documents allow.

use rallypoint_harness::{GameServer, Lobby, connect, hex, read_to_end, vectors};
use std::{
    io::{Read, Write},
    net::Ipv4Addr,
};

#[test]
fn every_invalid_vector_is_rejected() {
    let lobby = Lobby::with(&["checks.enabled=false"]);
    for case in vectors("lobby").iter().filter(|case| case["error"].is_string()) {
        lobby.send(Ipv4Addr::LOCALHOST, &hex(case["bytes"].as_str().unwrap()));
    }
    lobby.settle();
    assert_eq!(lobby.names(), [""; 0]);
}

#[test]
fn vectors_of_every_protocol_do_not_crash_the_lobby() {
    let lobby = Lobby::with(&["checks.enabled=false"]);
    let mut sent = 0;
    for file in ["lobby", "real-registrations", "session", "session-encryption", "bloodmasters"] {
        for case in vectors(file) {
            let Some(bytes) = case["bytes"].as_str().map(hex) else { continue };
            lobby.send(Ipv4Addr::LOCALHOST, &bytes);
            // To the list service as well, whose reply does not matter.
            let mut client = connect(lobby.v4());
            let _ = client.write_all(&bytes).and_then(|()| client.shutdown(std::net::Shutdown::Write));
            let _ = client.read_to_end(&mut Vec::new());
            sent += 1;
        }
    }
    assert!(sent > 100, "{sent}");
    lobby.register(&GameServer::named("zz last").from_ip("127.5.5.5"));
    lobby.settle();
    assert!(lobby.server("zz last").is_some());
}

#[test]
fn truncated_registrations_are_rejected() {
    let lobby = Lobby::start();
    let whole = GameServer::named("Bacon Town").key("map", "ctf_truefort").registration();
    for length in 0..whole.len() {
        lobby.send(Ipv4Addr::LOCALHOST, &whole[..length]);
        if length % 32 == 0 {
            lobby.settle();
        }
    }
    lobby.settle();
    assert_eq!(lobby.names(), [""; 0]);
    lobby.send(Ipv4Addr::LOCALHOST, &whole);
    lobby.wait_until_listed(&["Bacon Town"]);
}

/// A server whose registration has exactly `size` bytes.
fn of_size(name: &str, size: usize) -> GameServer {
    let server = |filler| GameServer::named(name).key("x-filler", vec![b'x'; filler]);
    server(size - server(0).registration().len())
}

#[test]
fn l15_a_registration_has_at_most_4096_bytes() {
    let lobby = Lobby::start();
    lobby.register(&of_size("too large", 4_097).port(8_191));
    lobby.register(&of_size("65507 bytes", 65_507).port(8_192));
    lobby.register(&of_size("just right", 4_096));
    lobby.wait_until_listed(&["just right"]);
}

#[test]
fn l15_the_maximum_size_is_a_setting() {
    let lobby = Lobby::with(&["lobby.max_registration=65507"]);
    lobby.register(&of_size("65507 bytes", 65_507));
    lobby.wait_until_listed(&["65507 bytes"]);
    assert_eq!(lobby.server("65507 bytes").unwrap().keys.len(), 2);
}

#[test]
fn resets_do_not_crash_the_lobby() {
    let lobby = Lobby::start();
    lobby.register(&GameServer::named("Bacon Town"));
    lobby.wait_until_listed(&["Bacon Town"]);
    for length in 0..=32 {
        let client = socket2::Socket::from(connect(lobby.v4()));
        client
            .send(&rallypoint_harness::list_request(rallypoint_wire::lobby::LobbyId::GANG_GARRISON_2)[..length])
            .unwrap();
        // Closing with zero linger sends a reset.
        client.set_linger(Some(std::time::Duration::ZERO)).unwrap();
    }
    let mut client = connect(lobby.v4());
    client.write_all(&rallypoint_harness::list_request(rallypoint_wire::lobby::LobbyId::GANG_GARRISON_2)).unwrap();
    assert_eq!(read_to_end(&mut client), lobby.list_reply());
}
