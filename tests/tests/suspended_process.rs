//! A lobby that was suspended for a while, by a debugger or on an overloaded machine, keeps its servers.

use rallypoint_harness::{GameServer, Lobby, Signal, stderr};

const LEASE: &str = "lobby.lease=3s";

#[test]
fn l10_servers_that_refreshed_meanwhile_stay_listed() {
    let lobby = Lobby::builder().set(LEASE).config("").start();
    // More than one batch of received datagrams.
    let servers: Vec<_> = GameServer::many(200).collect();
    lobby.register_all(&servers);
    // All leases restart now, however long the registrations took.
    servers.iter().for_each(|server| lobby.register(server));
    lobby.settle();
    // When the reload is logged, everything before is logged, too.
    lobby.reload("");
    let logged_before = lobby.log().len();
    lobby.process().signal(Signal::STOP);
    // Another lobby measures the time. When it has started, the first one has certainly stopped.
    let clock = Lobby::with(&[LEASE]);
    clock.register(&GameServer::named("clock"));
    clock.wait_until_listed(&["clock"]);
    servers.iter().for_each(|server| lobby.register(server));
    clock.wait_until_listed(&[]);
    lobby.process().signal(Signal::CONT);
    assert_eq!(lobby.names().len(), 200);
    let log = &stderr(&lobby.stop())[logged_before..];
    assert!(!log.contains("expired"), "{log}");
}

/// The receive buffer has room for few of the datagrams that arrive meanwhile.
#[test]
fn l10_servers_whose_refreshes_were_lost_stay_listed() {
    let lobby = Lobby::with(&[LEASE]);
    let servers: Vec<_> = GameServer::many(50).collect();
    lobby.register_all(&servers);
    lobby.process().signal(Signal::STOP);
    let clock = Lobby::with(&[LEASE]);
    clock.register(&GameServer::named("clock"));
    clock.wait_until_listed(&["clock"]);
    clock.wait_until_listed(&[]);
    lobby.process().signal(Signal::CONT);
    lobby.settle();
    assert_eq!(lobby.names().len(), 50);
}
