//! Where checks are off, a server that replies to verification is as proven as one that was checked (W45).

use crate::support;
use rallypoint_lobby_proto::{PublicId, RegistrationOutcome};
use std::net::SocketAddr;
use support::*;

fn public_id(lobby: &mut Lobby, server: &Server) -> PublicId {
    lobby.wait(ms(100));
    let lists = lobby.registry.lists().snapshot();
    let mut servers = lists.lists().flat_map(|(_, list)| list.servers());
    let name = format!("udp server {}", server.id);
    servers.find(|listed| line(listed).ends_with(&name)).expect("a listed server").public_id()
}

fn reply(lobby: &mut Lobby, server: &Server, at: &str) {
    let id = public_id(lobby, server);
    let now = lobby.now;
    lobby.registry.handle_reply(now, id, at.parse::<SocketAddr>().unwrap());
}

#[test]
fn w45_a_server_that_replies_never_gives_way() {
    let mut lobby = Lobby::unchecked();
    lobby.set(|config| config.caps.per_address = 1);
    let server = udp(7).key("x-query", "session");
    lobby.register("203.0.113.9", &server);
    reply(&mut lobby, &server, "203.0.113.9:8190");
    assert!(lobby.is_proven(server.server_id()));
    // A newcomer returns, while this server does not.
    for _ in 0..2 {
        assert_eq!(lobby.register("203.0.113.9", &udp(8).port(9)), RegistrationOutcome::AddressFull);
        lobby.wait(secs(30));
    }
    lobby.check_invariants();
}

#[test]
fn w45_a_reply_of_another_address_or_server_proves_nothing() {
    let mut lobby = Lobby::unchecked();
    let (server, other) = (udp(7).key("x-query", "session"), udp(8).key("x-query", "session").port(9));
    lobby.register("203.0.113.9", &server);
    lobby.register("203.0.113.9", &other);
    reply(&mut lobby, &server, "203.0.113.9:9");
    reply(&mut lobby, &server, "203.0.113.8:8190");
    assert!(!lobby.is_proven(server.server_id()) && !lobby.is_proven(other.server_id()));
}

#[test]
fn w45_a_port_that_several_servers_name_proves_the_first() {
    let mut lobby = Lobby::unchecked();
    let servers = [1, 2].map(|n| udp(n).key("x-query", "session:7000").port(n as u16));
    for server in &servers {
        lobby.register("203.0.113.9", server);
    }
    for _ in 0..2 {
        reply(&mut lobby, &servers[0], "203.0.113.9:1");
        reply(&mut lobby, &servers[1], "203.0.113.9:2");
    }
    assert_eq!(servers.map(|server| lobby.is_proven(server.server_id())), [true, false]);
}
