//! An unregistered server is removed immediately, and a delayed registration does not list it again (L11).

use rallypoint_harness::{GameServer, Lobby, eventually};

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

#[test]
fn l11_a_registration_right_after_the_unregistration_is_ignored() {
    let lobby = Lobby::start();
    let server = GameServer::named("overtaken");
    lobby.register(&server);
    lobby.wait_until_listed(&["overtaken"]);
    lobby.unregister(&server);
    lobby.register(&server);
    lobby.register(&server.clone().key("x-other", "bytes"));
    lobby.settle();
    assert_eq!(lobby.names(), [""; 0]);
    // It is not banned: a later registration is accepted.
    eventually("it is listed again", || {
        lobby.register(&server);
        lobby.names() == ["overtaken"]
    });
}

#[test]
fn l11_a_new_id_at_the_same_endpoint_is_accepted_immediately() {
    let lobby = Lobby::start();
    let server = GameServer::named("restarted quickly");
    lobby.register(&server);
    lobby.wait_until_listed(&["restarted quickly"]);
    lobby.unregister(&server);
    lobby.register(&server.restarted());
    lobby.settle();
    assert_eq!(lobby.names(), ["restarted quickly"]);
}

#[test]
fn l11_the_id_is_necessary_and_sufficient() {
    let lobby = Lobby::start();
    let server = GameServer::named("moved");
    lobby.register(&server);
    lobby.wait_until_listed(&["moved"]);
    // Another ID, and the right one with a trailing byte.
    lobby.unregister(&GameServer::named("stranger"));
    lobby.send(server.source(), &[&server.unregistration()[..], &[0]].concat());
    lobby.settle();
    assert_eq!(lobby.names(), ["moved"]);
    // The address may have changed in the meantime.
    lobby.unregister(&server.from_ip("127.9.9.9"));
    lobby.wait_until_listed(&[]);
}
