//! Connections without a complete request are closed after a timeout, and do not delay others (L14).

use rallypoint_harness::{GameServer, Lobby, connect, list_request, read_to_end};
use rallypoint_wire::lobby::LobbyId;
use std::{
    io::{Read, Write},
    net::TcpStream,
};

fn send_partial_request(lobby: &Lobby) -> TcpStream {
    let mut client = connect(lobby.v4());
    client.write_all(&list_request(LobbyId::GANG_GARRISON_2)[..31]).unwrap();
    client
}

#[test]
fn l14_a_partial_request_times_out() {
    let lobby = Lobby::with(&["list.request_timeout=500ms"]);
    lobby.register(&GameServer::named("Bacon Town"));
    let mut clients: Vec<_> = (0..50).map(|_| send_partial_request(&lobby)).collect();
    clients.extend((0..50).map(|_| connect(lobby.v4())));
    lobby.wait_until_listed(&["Bacon Town"]);
    for mut client in clients {
        // No reply; whether the connection is closed or reset does not matter.
        let mut reply = Vec::new();
        let _ = client.read_to_end(&mut reply);
        assert_eq!(reply, [0; 0]);
    }
    assert_eq!(lobby.names(), ["Bacon Town"]);
}

#[test]
fn l14_the_last_byte_may_arrive_late() {
    let lobby = Lobby::start();
    lobby.register(&GameServer::named("Bacon Town"));
    let mut client = send_partial_request(&lobby);
    lobby.wait_until_listed(&["Bacon Town"]);
    client.write_all(&list_request(LobbyId::GANG_GARRISON_2)[31..]).unwrap();
    assert_eq!(read_to_end(&mut client), lobby.list_reply());
}
