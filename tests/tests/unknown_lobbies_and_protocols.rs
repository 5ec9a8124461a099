//! A list of an unknown lobby is empty; another protocol gets no reply (L14).

use rallypoint_harness::{GameServer, Lobby, connect, eventually, list_request, read_to_end};
use rallypoint_wire::lobby::LobbyId;
use std::io::Write;

fn lobby() -> Lobby {
    let lobby = Lobby::start();
    lobby.register(&GameServer::named("Bacon Town"));
    lobby.wait_until_listed(&["Bacon Town"]);
    lobby
}

#[test]
fn l14_another_protocol_gets_no_reply() {
    let lobby = lobby();
    let mut wrong = list_request(LobbyId::GANG_GARRISON_2);
    wrong[15] ^= 1;
    let mut client = connect(lobby.v4());
    client.write_all(&wrong).unwrap();
    assert_eq!(read_to_end(&mut client), [0; 0]);
    let mut browser = connect(lobby.v4());
    browser.write_all(b"GET / HTTP/1.1\r\nHost: lobby\r\n\r\n").unwrap();
    assert_eq!(read_to_end(&mut browser), [0; 0]);
}

#[test]
fn an_unknown_lobby_is_empty_and_any_lobby_is_accepted() {
    let lobby = lobby();
    let new = LobbyId::from_bytes(*b"a game of my own");
    assert_eq!(rallypoint_harness::send_request(lobby.v4(), &list_request(new)), [0; 4]);
    lobby.register(&GameServer::named("first").port(8_191).in_lobby(new));
    eventually("the new lobby has a server", || lobby.servers_in(new).len() == 1);
    assert_eq!(lobby.names(), ["Bacon Town"]);
}
