//! A full address refuses further servers; listed servers and other addresses are not affected.

use rallypoint_harness::{GameServer, Lobby};

fn servers(from: &str, count: u16) -> Vec<GameServer> {
    (0..count)
        .map(|number| GameServer::named(&format!("{from} {number:02}")).port(9_000 + number).from_ip(from))
        .collect()
}

/// Changes a listed server. When the change is listed, everything sent before has been processed.
fn change(lobby: &Lobby, server: &GameServer, value: &str) {
    lobby.register(&server.clone().key("x-round", value));
    let is_listed = || lobby.servers().iter().any(|server| server.key("x-round") == Some(value.as_bytes()));
    rallypoint_harness::eventually("the change is listed", is_listed);
}

#[test]
fn an_address_can_have_32_servers() {
    let lobby = Lobby::start();
    let crowd = servers("127.1.1.1", 40);
    lobby.register_all(&crowd);
    assert_eq!(lobby.names().len(), 32);
    // Neighbouring addresses are not affected, and listed servers can still change and unregister.
    lobby.register(&GameServer::named("neighbour").from_ip("127.1.1.2"));
    change(&lobby, &crowd[0], "1");
    assert_eq!(lobby.names().len(), 33);
    lobby.unregister(&crowd[0]);
    lobby.register(&crowd[39]);
    lobby.settle();
    assert!(lobby.server("127.1.1.1 39").is_some() && lobby.server("127.1.1.1 00").is_none());
}
