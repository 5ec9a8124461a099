//! A request may arrive in parts. Bytes after it are ignored and never cause a reset.

use crate::common;

use common::{LOBBY, Lobby, connect, eventually, options, read_all, request, server};
use std::io::Write;

fn lobby() -> Lobby {
    let lobby = Lobby::start(options());
    lobby.send(&server("one"));
    lobby.wait_until_listed(&["one"]);
    lobby
}

#[test]
fn l14_a_request_may_arrive_byte_by_byte() {
    let lobby = lobby();
    let mut client = connect(lobby.addr());
    client.set_nodelay(true).unwrap();
    for byte in request(LOBBY) {
        client.write_all(&[byte]).unwrap();
    }
    assert_eq!(common::names(&read_all(&mut client)), ["one"]);
    lobby.shutdown();
}

#[test]
fn l14_the_parts_of_many_requests_may_interleave() {
    let lobby = lobby();
    let request = request(LOBBY);
    let mut clients: Vec<_> = (0..100).map(|_| connect(lobby.addr())).collect();
    for part in [&request[..7], &request[7..]] {
        clients.iter_mut().for_each(|client| client.write_all(part).unwrap());
    }
    for client in &mut clients {
        assert_eq!(common::names(&read_all(client)), ["one"]);
    }
    lobby.shutdown();
}

#[test]
fn l14_extra_bytes_never_cause_a_reset() {
    let lobby = lobby();
    for extra in [1, 100, 100_000] {
        let mut client = connect(lobby.addr());
        let mut bytes = request(LOBBY);
        bytes.resize(32 + extra, 0xee);
        client.write_all(&bytes).unwrap();
        assert_eq!(common::names(&read_all(&mut client)), ["one"]);
        // Also after the end of the reply, when the lobby could have closed the connection.
        for _ in 0..3 {
            client.write_all(b"more").unwrap();
            assert_eq!(client.take_error().unwrap().map(|error| error.kind()), None);
        }
    }
    lobby.shutdown();
}

#[test]
fn l14_a_client_that_half_closes_its_connection_still_gets_the_list() {
    let lobby = lobby();
    let mut client = connect(lobby.addr());
    client.write_all(&request(LOBBY)).unwrap();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(common::names(&read_all(&mut client)), ["one"]);
    drop(client);
    eventually("the connection has ended", || lobby.list_stats().open == 0);
    lobby.shutdown();
}

#[test]
fn l14_a_client_that_closes_before_its_request_is_complete_gets_nothing() {
    let lobby = lobby();
    let mut client = connect(lobby.addr());
    client.write_all(&request(LOBBY)[..31]).unwrap();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    assert!(read_all(&mut client).is_empty());
    eventually("the connection is counted", || lobby.list_stats().broken == 1);
    lobby.shutdown();
}
