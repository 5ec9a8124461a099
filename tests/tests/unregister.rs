//! An unregistered server is removed immediately (L11).

use rallypoint_harness::{GameServer, Lobby};

#[test]
fn l11_an_unregistration_takes_effect_immediately() {
    let lobby = Lobby::start();
    let server = GameServer::named("leaving");
    lobby.register(&server);
    lobby.register(&GameServer::named("staying").port(8191));
    lobby.wait_until_listed(&["leaving", "staying"]);
    lobby.unregister(&server);
    lobby.wait_until_listed(&["staying"]);
}
