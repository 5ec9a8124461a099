//! A server that stops refreshing leaves the list when its lease expires (L10).

use rallypoint_harness::{GameServer, Lobby};

#[test]
fn l10_a_silent_server_leaves_the_list() {
    let lobby = Lobby::with(&["lobby.lease=2s"]);
    lobby.register(&GameServer::named("silent"));
    lobby.wait_until_listed(&["silent"]);
    lobby.wait_until_listed(&[]);
}
