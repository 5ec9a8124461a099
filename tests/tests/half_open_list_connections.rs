//! Connections that never come to a request are closed after a while, and hold up nobody (L14).

use rallypoint_harness::{GameServer, Lobby, connect, list_request, read_to_end};
use rallypoint_wire::lobby::LobbyId;
use std::{
    io::{Read, Write},
    net::{Shutdown, TcpStream},
};

fn half_asked(lobby: &Lobby) -> TcpStream {
    let mut client = connect(lobby.v4());
    client.write_all(&list_request(LobbyId::GANG_GARRISON_2)[..31]).unwrap();
    client
}

#[test]
fn l14_half_a_request_is_given_up_in_the_end() {
    let lobby = Lobby::with(&["list.request_timeout=500ms"]);
    lobby.register(&GameServer::named("Bacon Town"));
    let mut clients: Vec<_> = (0..50).map(|_| half_asked(&lobby)).collect();
    clients.extend((0..50).map(|_| connect(lobby.v4())));
    lobby.wait_until_listed(&["Bacon Town"]);
    for mut client in clients {
        // Nothing was answered. How the end looks is all the same to somebody who did not ask.
        let mut reply = Vec::new();
        let _ = client.read_to_end(&mut reply);
        assert_eq!(reply, [0; 0]);
    }
    assert_eq!(lobby.names(), ["Bacon Town"]);
}

#[test]
fn l14_who_closes_his_side_too_early_is_not_waited_for() {
    let lobby = Lobby::with(&["list.request_timeout=10m"]);
    let mut client = half_asked(&lobby);
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_to_end(&mut client), [0; 0]);
}

#[test]
fn l14_the_last_byte_may_come_late() {
    let lobby = Lobby::start();
    lobby.register(&GameServer::named("Bacon Town"));
    let mut client = half_asked(&lobby);
    lobby.wait_until_listed(&["Bacon Town"]);
    client.write_all(&list_request(LobbyId::GANG_GARRISON_2)[31..]).unwrap();
    assert_eq!(read_to_end(&mut client), lobby.list_reply());
}
