//! One entry per server: a new registration replaces the previous one (L8).

use rallypoint_harness::{GameServer, Lobby};

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
