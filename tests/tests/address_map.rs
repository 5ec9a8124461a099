//! Servers that register from a private network are listed under their mapped public address.

use rallypoint_harness::{GameServer, Lobby, TcpPort};

const MAP: &str = "lobby.address_map=127.6.0.1:8190=203.0.113.6:9000,127.6.0.0/16=203.0.113.7";

fn listed_as(lobby: &Lobby, name: &str) -> String {
    lobby.server(name).unwrap().v4.unwrap().to_string()
}

#[test]
fn a_private_address_is_listed_as_its_public_one() {
    let lobby = Lobby::with(&[MAP]);
    lobby.register(&GameServer::named("a").from_ip("127.6.0.1"));
    lobby.register(&GameServer::named("b").from_ip("127.6.0.1").port(8_191));
    lobby.register(&GameServer::named("c").from_ip("127.6.0.2"));
    lobby.register(&GameServer::named("d").from_ip("127.7.0.1"));
    lobby.wait_until_listed(&["a", "b", "c", "d"]);
    let shown = ["a", "b", "c", "d"].map(|name| listed_as(&lobby, name));
    assert_eq!(shown, ["203.0.113.6:9000", "203.0.113.7:8191", "203.0.113.7:8190", "127.7.0.1:8190"]);
}

#[test]
fn reachability_checks_go_to_the_private_address() {
    let lobby = Lobby::with(&[MAP]);
    let port = TcpPort::open("127.6.0.5");
    lobby.register(&GameServer::named("inside").tcp(port.number()).from_ip("127.6.0.5"));
    lobby.wait_until_listed(&["inside"]);
    assert_eq!(listed_as(&lobby, "inside"), format!("203.0.113.7:{}", port.number()));
}

#[test]
fn public_lobbies_check_the_mapped_address() {
    let lobby = Lobby::with(&[MAP, "lobby.allow_private=false"]);
    lobby.register(&GameServer::named("not mapped").from_ip("127.7.0.1"));
    lobby.register(&GameServer::named("mapped").from_ip("127.6.0.1"));
    lobby.wait_until_listed(&["mapped"]);
}
