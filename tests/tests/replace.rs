//! One entry per server: a new registration replaces the previous one (L8).

use rallypoint_harness::{GameServer, Lobby, eventually, has_ipv6, skip};
use rallypoint_wire::lobby::{LobbyId, Transport};

#[test]
fn l8_a_restarted_server_replaces_its_old_entry() {
    let lobby = Lobby::start();
    let before = GameServer::named("before the restart");
    lobby.register(&before);
    lobby.wait_until_listed(&["before the restart"]);
    lobby.register(&before.clone().restarted().renamed("after the restart"));
    lobby.wait_until_listed(&["after the restart"]);
    // The old ID is unknown now.
    lobby.unregister(&before);
    lobby.settle();
    assert_eq!(lobby.names(), ["after the restart"]);
}

#[test]
fn l8_a_known_server_is_listed_with_its_latest_data() {
    let lobby = Lobby::start();
    let server = GameServer::named("Bacon Town").key("map", "ctf_truefort");
    lobby.register(&server);
    lobby.wait_until_listed(&["Bacon Town"]);
    lobby.register(&server.renamed("Bacon City").key("map", "koth_valley").port(8191));
    lobby.wait_until_listed(&["Bacon City"]);
    let listed = lobby.server("Bacon City").unwrap();
    assert_eq!(listed.key("map"), Some(&b"koth_valley"[..]));
    assert_eq!(listed.v4, Some("127.0.0.1:8191".parse().unwrap()));
}

#[test]
fn l8_another_port_address_or_transport_is_another_server() {
    let lobby = Lobby::with(&["checks.enabled=false"]);
    let server = GameServer::named("a");
    lobby.register(&server);
    lobby.register(&server.clone().restarted().renamed("b").port(8191));
    lobby.register(&server.clone().restarted().renamed("c").from_ip("127.0.0.2"));
    lobby.register(&server.restarted().renamed("d").tcp(8190));
    lobby.wait_until_listed(&["a", "b", "c", "d"]);
    assert_eq!(lobby.server("d").unwrap().transport, Transport::Tcp);
}

#[test]
fn l8_a_server_can_move_to_another_lobby() {
    let lobby = Lobby::start();
    let server = GameServer::named("nomad");
    lobby.register(&server);
    lobby.wait_until_listed(&["nomad"]);
    let other = LobbyId::from_bytes([9; 16]);
    lobby.register(&server.in_lobby(other));
    lobby.wait_until_listed(&[]);
    assert_eq!(lobby.servers_in(other).len(), 1);
}

#[test]
fn w12_a_restarted_server_is_new_in_both_families() {
    if !has_ipv6() {
        return skip("this machine has no IPv6");
    }
    let lobby = Lobby::start();
    let old = GameServer::named("old");
    lobby.register(&old);
    lobby.register(&old.clone().from_ip("::1"));
    eventually("it is listed in both families", || {
        lobby.server("old").is_some_and(|old| old.v4.is_some() && old.v6.is_some())
    });
    lobby.register(&old.restarted().renamed("new"));
    lobby.wait_until_listed(&["new"]);
    assert_eq!(lobby.server("new").unwrap().v6, None);
}
