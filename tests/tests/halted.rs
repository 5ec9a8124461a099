//! A lobby that was halted for a while, by a debugger or by a machine with too much else to do, forgets nobody.

use rallypoint_harness::{GameServer, Lobby, Signal, stderr};

const LEASE: &str = "lobby.lease=3s";

#[test]
fn l10_who_registered_again_meanwhile_stays_in_the_list() {
    let lobby = Lobby::builder().set(LEASE).config("").start();
    // More than are received in one go.
    let servers: Vec<_> = GameServer::many(200).collect();
    lobby.register_all(&servers);
    // Now all leases begin anew, however long that took.
    servers.iter().for_each(|server| lobby.register(server));
    lobby.settle();
    // Once that is told, all that happened before is told, too.
    lobby.reload("");
    let told_before = lobby.log().len();
    lobby.process().signal(Signal::STOP);
    // Another lobby tells the time. When it has started, the first one has certainly come to a halt.
    let clock = Lobby::with(&[LEASE]);
    clock.register(&GameServer::named("clock"));
    clock.wait_until_listed(&["clock"]);
    servers.iter().for_each(|server| lobby.register(server));
    clock.wait_until_listed(&[]);
    lobby.process().signal(Signal::CONT);
    assert_eq!(lobby.names().len(), 200);
    let told = &stderr(&lobby.stop())[told_before..];
    assert!(!told.contains("expired"), "{told}");
}
