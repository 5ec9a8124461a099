//! There is room for so many servers per address, per lobby and in all; who is in stays in.

use rallypoint_harness::{GameServer, Lobby};
use rallypoint_wire::lobby::LobbyId;

fn servers(from: &str, count: u16) -> Vec<GameServer> {
    (0..count)
        .map(|number| GameServer::named(&format!("{from} {number:02}")).port(9_000 + number).from_ip(from))
        .collect()
}

/// Something about a listed server changes. When that shows, everything before it has been dealt with.
fn change(lobby: &Lobby, server: &GameServer, value: &str) {
    lobby.register(&server.clone().key("x-round", value));
    let shows = || lobby.servers().iter().any(|server| server.key("x-round") == Some(value.as_bytes()));
    rallypoint_harness::eventually("the change shows", shows);
}

#[test]
fn an_address_has_room_for_32_servers() {
    let lobby = Lobby::start();
    let crowd = servers("127.1.1.1", 40);
    lobby.register_all(&crowd);
    assert_eq!(lobby.names().len(), 32);
    // The neighbour is not affected, and who is in can still change and go.
    lobby.register(&GameServer::named("neighbour").from_ip("127.1.1.2"));
    change(&lobby, &crowd[0], "1");
    assert_eq!(lobby.names().len(), 33);
    lobby.unregister(&crowd[0]);
    lobby.register(&crowd[39]);
    lobby.settle();
    assert!(lobby.server("127.1.1.1 39").is_some() && lobby.server("127.1.1.1 00").is_none());
}

#[test]
fn a_lobby_has_room_for_so_many() {
    let lobby = Lobby::with(&["caps.per_lobby=3"]);
    let crowd = servers("127.1.1.1", 5);
    crowd.iter().for_each(|server| lobby.register(server));
    lobby.settle();
    assert_eq!(lobby.names(), ["127.1.1.1 00", "127.1.1.1 01", "127.1.1.1 02"]);
    let other = LobbyId::from_bytes([9; 16]);
    lobby.register(&crowd[4].clone().in_lobby(other));
    lobby.settle();
    assert_eq!(lobby.servers_in(other).len(), 1);
    // A restarted server takes its old place, also in a full lobby.
    lobby.register(&crowd[0].clone().restarted().renamed("restarted"));
    lobby.wait_until_listed(&["127.1.1.1 01", "127.1.1.1 02", "restarted"]);
}

#[test]
fn there_is_room_for_so_many_in_all() {
    let lobby = Lobby::with(&["caps.total=3"]);
    let crowd = servers("127.1.1.1", 5);
    crowd.iter().for_each(|server| lobby.register(server));
    lobby.register(&GameServer::named("of another lobby").in_lobby(LobbyId::from_bytes([9; 16])));
    change(&lobby, &crowd[0], "1");
    assert_eq!(lobby.names(), ["127.1.1.1 00", "127.1.1.1 01", "127.1.1.1 02"]);
    assert_eq!(lobby.servers_in(LobbyId::from_bytes([9; 16])), []);
    lobby.unregister(&crowd[1]);
    lobby.register(&crowd[4]);
    lobby.wait_until_listed(&["127.1.1.1 00", "127.1.1.1 02", "127.1.1.1 04"]);
}

#[test]
fn there_are_so_many_lobbies() {
    let lobby = Lobby::with(&["caps.lobbies=2"]);
    let lobbies = [1, 2, 3].map(|number| LobbyId::from_bytes([number; 16]));
    let crowd: Vec<_> = (0..).zip(lobbies).map(|(at, id)| servers("127.1.1.1", 3)[at].clone().in_lobby(id)).collect();
    crowd.iter().for_each(|server| lobby.register(server));
    let counts = || lobbies.map(|id| lobby.servers_in(id).len());
    lobby.register(&crowd[0].clone().key("x-round", "1"));
    rallypoint_harness::eventually("the change shows", || {
        lobby.servers_in(lobbies[0]).iter().any(|server| server.key("x-round").is_some())
    });
    assert_eq!(counts(), [1, 1, 0]);
    // The last server of a lobby closes it behind itself.
    lobby.unregister(&crowd[1]);
    lobby.register(&crowd[2]);
    rallypoint_harness::eventually("there is room for another lobby", || counts() == [1, 0, 1]);
}
