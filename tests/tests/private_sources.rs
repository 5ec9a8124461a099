//! A LAN party needs no public addresses; a public lobby can refuse all others.

use rallypoint_e2e::{GameServer, Lobby, has_ipv6};

#[test]
fn private_sources_are_welcome_by_default() {
    let lobby = Lobby::start();
    lobby.register(&GameServer::named("local"));
    lobby.until_listed(&["local"]);
}

#[test]
fn a_public_lobby_refuses_them() {
    // One address is called by a public one, so that there is somebody to wait for.
    let lobby = Lobby::with(&["lobby.allow_private=false", "lobby.address_map=127.6.0.1=203.0.113.6"]);
    lobby.register(&GameServer::named("local"));
    if has_ipv6() {
        lobby.register(&GameServer::named("local").from("::1"));
    }
    lobby.register(&GameServer::named("public").from("127.6.0.1"));
    lobby.until_listed(&["public"]);
}

#[test]
fn a_lobby_that_becomes_public_lets_them_go() {
    let lobby = Lobby::setup().config("").start();
    lobby.register(&GameServer::named("local"));
    lobby.until_listed(&["local"]);
    lobby.reload("[lobby]\nallow_private = false\n");
    lobby.until_listed(&[]);
}
