//! Limits on the number of servers per address, per lobby and in total; listed servers stay listed.

use rallypoint_harness::{GameServer, Lobby};
use rallypoint_wire::lobby::LobbyId;

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

#[test]
fn servers_per_lobby_are_limited() {
    let lobby = Lobby::with(&["caps.per_lobby=3"]);
    let crowd = servers("127.1.1.1", 5);
    crowd.iter().for_each(|server| lobby.register(server));
    lobby.settle();
    assert_eq!(lobby.names(), ["127.1.1.1 00", "127.1.1.1 01", "127.1.1.1 02"]);
    let other = LobbyId::from_bytes([9; 16]);
    lobby.register(&crowd[4].clone().in_lobby(other));
    lobby.settle();
    assert_eq!(lobby.servers_in(other).len(), 1);
    // A restarted server replaces its old entry, even in a full lobby.
    lobby.register(&crowd[0].clone().restarted().renamed("restarted"));
    lobby.wait_until_listed(&["127.1.1.1 01", "127.1.1.1 02", "restarted"]);
}

#[test]
fn servers_in_total_are_limited() {
    let lobby = Lobby::with(&["caps.total=3"]);
    let crowd = servers("127.1.1.1", 5);
    crowd.iter().for_each(|server| lobby.register(server));
    lobby.register(&GameServer::named("another lobby").in_lobby(LobbyId::from_bytes([9; 16])));
    change(&lobby, &crowd[0], "1");
    assert_eq!(lobby.names(), ["127.1.1.1 00", "127.1.1.1 01", "127.1.1.1 02"]);
    assert_eq!(lobby.servers_in(LobbyId::from_bytes([9; 16])), []);
    lobby.unregister(&crowd[1]);
    lobby.register(&crowd[4]);
    lobby.wait_until_listed(&["127.1.1.1 00", "127.1.1.1 02", "127.1.1.1 04"]);
}

#[test]
fn lobbies_are_limited() {
    let lobby = Lobby::with(&["caps.lobbies=2"]);
    let lobbies = [1, 2, 3].map(|number| LobbyId::from_bytes([number; 16]));
    let crowd: Vec<_> = (0..).zip(lobbies).map(|(at, id)| servers("127.1.1.1", 3)[at].clone().in_lobby(id)).collect();
    crowd.iter().for_each(|server| lobby.register(server));
    let counts = || lobbies.map(|id| lobby.servers_in(id).len());
    lobby.register(&crowd[0].clone().key("x-round", "1"));
    rallypoint_harness::eventually("the change is listed", || {
        lobby.servers_in(lobbies[0]).iter().any(|server| server.key("x-round").is_some())
    });
    assert_eq!(counts(), [1, 1, 0]);
    // A lobby ceases to exist with its last server.
    lobby.unregister(&crowd[1]);
    lobby.register(&crowd[2]);
    rallypoint_harness::eventually("another lobby is accepted", || counts() == [1, 0, 1]);
}
