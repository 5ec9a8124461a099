//! Private source addresses are accepted by default; a public lobby can reject them.

use rallypoint_harness::{GameServer, Lobby, has_ipv6};

#[test]
fn a_public_lobby_rejects_them() {
    // One address is mapped to a public one, so that there is a server to wait for.
    let lobby = Lobby::with(&["lobby.allow_private=false", "lobby.address_map=127.6.0.1=203.0.113.6"]);
    lobby.register(&GameServer::named("local"));
    if has_ipv6() {
        lobby.register(&GameServer::named("local").from_ip("::1"));
    }
    lobby.register(&GameServer::named("public").from_ip("127.6.0.1"));
    lobby.wait_until_listed(&["public"]);
}

#[test]
fn a_lobby_that_becomes_public_removes_them() {
    let lobby = Lobby::builder().config("").start();
    lobby.register(&GameServer::named("local"));
    lobby.wait_until_listed(&["local"]);
    lobby.reload("[lobby]\nallow_private = false\n");
    lobby.wait_until_listed(&[]);
}
