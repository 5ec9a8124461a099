//! A request may arrive in any pieces, and with anything after it (L14).

use rallypoint_harness::{
    GameServer, Lobby, connect, connect_with_small_buffer, eventually, list_request, read_to_end,
};
use rallypoint_wire::lobby::LobbyId;
use std::{io::Write, net::Shutdown};

fn lobby() -> Lobby {
    let lobby = Lobby::start();
    lobby.register(&GameServer::named("Bacon Town"));
    lobby.wait_until_listed(&["Bacon Town"]);
    lobby
}

#[test]
fn l14_a_request_in_pieces() {
    let lobby = lobby();
    let request = list_request(LobbyId::GANG_GARRISON_2);
    for size in [1, 16, 31] {
        let mut client = connect(lobby.v4());
        client.set_nodelay(true).unwrap();
        for piece in request.chunks(size) {
            client.write_all(piece).unwrap();
            // Another client is served in between, so that the pieces arrive separately.
            assert_eq!(lobby.names(), ["Bacon Town"]);
        }
        assert_eq!(read_to_end(&mut client), lobby.list_reply(), "pieces of {size}");
    }
}

#[test]
fn l14_bytes_after_the_request_are_ignored() {
    let lobby = Lobby::start();
    let servers: Vec<_> = GameServer::many(100).map(|server| server.key("x-filler", [b'x'; 3_800])).collect();
    lobby.register_all(&servers);
    let request = list_request(LobbyId::GANG_GARRISON_2);
    for more in [1, 32, 100_000] {
        let mut client = connect_with_small_buffer(lobby.v4()).unwrap();
        client.write_all(&[&request[..], &vec![7; more]].concat()).unwrap();
        // Unread input must not cause a reset, which would discard undelivered bytes: another client is served completely
        // before this client begins to read.
        let list = lobby.list_reply();
        assert_eq!(read_to_end(&mut client), list, "{more} bytes after it");
    }
}

#[test]
fn l14_a_client_may_shut_down_its_side_after_the_request() {
    let lobby = lobby();
    let mut client = connect(lobby.v4());
    client.write_all(&list_request(LobbyId::GANG_GARRISON_2)).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_to_end(&mut client), lobby.list_reply());
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
