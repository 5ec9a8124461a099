//! Registrations forged in the name of a server's address cannot keep it off the list (W45).

use rallypoint_harness::{GameServer, Lobby, TcpPort};

const VICTIM: &str = "127.9.0.1";

/// Takes the endpoint of the victim with a new ID, moves that ID to another port, and fills the address.
fn forge(lobby: &Lobby, victim: &GameServer) {
    let taken = victim.clone().restarted().renamed("forged");
    lobby.register(&taken);
    lobby.register(&taken.clone().port(1));
    for port in 2..34 {
        lobby.register(&GameServer::named("forged").from_ip(VICTIM).port(port));
    }
    lobby.settle();
}

#[test]
fn w45_a_server_that_can_be_checked_stays_listed() {
    let lobby = Lobby::start();
    let port = TcpPort::open(VICTIM);
    let victim = GameServer::named("victim").tcp(port.number()).from_ip(VICTIM);
    lobby.register(&victim);
    lobby.wait_until_listed(&["victim"]);
    for _ in 0..5 {
        forge(&lobby, &victim);
        assert!(lobby.server("victim").is_some());
    }
}

#[test]
fn w45_a_server_that_cannot_be_checked_is_listed_again_with_its_next_registration() {
    let lobby = Lobby::start();
    let victim = GameServer::named("victim").from_ip(VICTIM);
    lobby.register(&victim);
    lobby.wait_until_listed(&["victim"]);
    for _ in 0..5 {
        forge(&lobby, &victim);
        lobby.register(&victim);
        lobby.settle();
        assert!(lobby.server("victim").is_some());
    }
}
