//! The lobby survives any input. What it lists of it is shown by the tests of the registry.

use rallypoint_harness::{GameServer, Lobby, connect, hex, read_to_end, vectors};
use std::{
    io::{Read, Write},
    net::Ipv4Addr,
};

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
fn resets_do_not_crash_the_lobby() {
    let lobby = Lobby::start();
    lobby.register(&GameServer::named("Bacon Town"));
    lobby.wait_until_listed(&["Bacon Town"]);
    for length in 0..=32 {
        let client = socket2::Socket::from(connect(lobby.v4()));
        client
            .send(&rallypoint_harness::list_request(rallypoint_wire::lobby::ListId::GANG_GARRISON_2)[..length])
            .unwrap();
        // Closing with zero linger sends a reset.
        client.set_linger(Some(std::time::Duration::ZERO)).unwrap();
    }
    let mut client = connect(lobby.v4());
    client.write_all(&rallypoint_harness::list_request(rallypoint_wire::lobby::ListId::GANG_GARRISON_2)).unwrap();
    assert_eq!(read_to_end(&mut client), lobby.list_reply());
}
