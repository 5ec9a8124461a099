//! The list survives a restart, whether the lobby was stopped or killed.

use rallypoint_harness::{GameServer, Lobby, eventually, has_ipv6};
use std::fs;

/// Waits until the saved list contains a name.
fn wait_until_saved(lobby: &Lobby, name: &str) {
    let has = |bytes: Vec<u8>| bytes.windows(name.len()).any(|window| window == name.as_bytes());
    eventually("the list is saved", || fs::read(lobby.data("servers.save")).is_ok_and(has));
}

#[test]
fn sigterm_saves_the_list() {
    // Saved only at the end.
    let mut lobby = Lobby::with(&["lobby.save_every=1h"]);
    lobby.register_all(&GameServer::many(100).collect::<Vec<_>>());
    if has_ipv6() {
        lobby.register(&GameServer::named("server six").from_ip("::1"));
        eventually("it is listed", || lobby.names().len() == 101);
    }
    let before = lobby.servers();
    assert_eq!(lobby.stop().status.code(), Some(0));
    lobby.restart();
    assert_eq!(lobby.servers(), before);
}

#[test]
fn sigkill_loses_at_most_the_last_save_interval() {
    let mut lobby = Lobby::with(&["lobby.save_every=100ms"]);
    lobby.register_all(&GameServer::many(20).collect::<Vec<_>>());
    let before = lobby.servers();
    wait_until_saved(&lobby, "server 00019");
    lobby.kill();
    lobby.restart();
    assert_eq!(lobby.servers(), before);
}

#[test]
fn leases_are_extended_after_a_restart() {
    let mut lobby = Lobby::with(&["lobby.lease=1s"]);
    lobby.register(&GameServer::named("from before"));
    lobby.wait_until_listed(&["from before"]);
    lobby.stop();
    lobby.restart();
    // Another lease expires meanwhile.
    lobby.register(&GameServer::named("brief").port(8_191));
    lobby.wait_until_listed(&["brief", "from before"]);
    lobby.wait_until_listed(&["from before"]);
}

#[test]
fn ids_survive_a_restart() {
    let mut lobby = Lobby::start();
    let server = GameServer::named("Bacon Town");
    lobby.register(&server);
    lobby.wait_until_listed(&["Bacon Town"]);
    lobby.stop();
    lobby.restart();
    // The server continues as before: refreshes, changes, unregisters.
    lobby.register(&server);
    lobby.register(&server.clone().renamed("Bacon City"));
    lobby.wait_until_listed(&["Bacon City"]);
    lobby.unregister(&server);
    lobby.wait_until_listed(&[]);
    lobby.stop();
    lobby.restart();
    assert_eq!(lobby.names(), [""; 0]);
}

#[test]
fn configuration_changes_apply_after_a_restart() {
    let mut lobby = Lobby::builder().config("").start();
    lobby.register(&GameServer::named("banned meanwhile").from_ip("127.9.9.9"));
    lobby.register(&GameServer::named("welcome"));
    lobby.wait_until_listed(&["banned meanwhile", "welcome"]);
    lobby.stop();
    lobby.write_config("[[ban]]\naddress = \"127.9.9.9\"\n");
    lobby.restart();
    lobby.settle();
    assert_eq!(lobby.names(), ["welcome"]);
}
