//! A restart does not empty the list, whether the lobby was told to stop or was ended without a word.

use rallypoint_harness::{GameServer, Lobby, eventually, has_ipv6};
use std::fs;

/// Waits until the disk has it.
fn until_saved(lobby: &Lobby, name: &str) {
    let has = |bytes: Vec<u8>| bytes.windows(name.len()).any(|window| window == name.as_bytes());
    eventually("the list is saved", || fs::read(lobby.data("servers.save")).is_ok_and(has));
}

#[test]
fn sigterm_saves_the_list() {
    // It is saved at the end, and not before.
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
fn kill_9_loses_at_most_the_last_seconds() {
    let mut lobby = Lobby::with(&["lobby.save_every=100ms"]);
    lobby.register_all(&GameServer::many(20).collect::<Vec<_>>());
    let before = lobby.servers();
    until_saved(&lobby, "server 00019");
    lobby.kill();
    lobby.restart();
    assert_eq!(lobby.servers(), before);
}

#[test]
fn every_server_has_time_to_refresh_after_a_restart() {
    let mut lobby = Lobby::with(&["lobby.lease=1s"]);
    lobby.register(&GameServer::named("from before"));
    lobby.wait_until_listed(&["from before"]);
    lobby.stop();
    lobby.restart();
    // Other leases come and go meanwhile.
    lobby.register(&GameServer::named("brief").port(8_191));
    lobby.wait_until_listed(&["brief", "from before"]);
    lobby.wait_until_listed(&["from before"]);
}

#[test]
fn it_is_the_same_server_after_a_restart() {
    let mut lobby = Lobby::start();
    let server = GameServer::named("Bacon Town");
    lobby.register(&server);
    lobby.wait_until_listed(&["Bacon Town"]);
    lobby.stop();
    lobby.restart();
    // It goes on as if nothing had happened: refreshes, changes, goes.
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
fn what_happened_while_it_was_away_counts() {
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
