//! Invalid and late requests get no reply; the list of an unknown lobby is empty.

use crate::common;

use common::{Lobby, connect, eventually, options, read_all, request};
use rallypoint_wire::lobby::ListId;
use std::io::Write;

#[test]
fn l14_a_connection_with_another_protocol_is_closed_without_a_reply() {
    let lobby = Lobby::start(options());
    let mut wrong = request(common::LOBBY);
    wrong[15] ^= 1;
    assert!(common::fetch(lobby.addr(), &wrong).is_empty());
    assert!(common::fetch(lobby.addr(), b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n").is_empty());
    eventually("both are counted", || lobby.list_stats().wrong_protocol == 2);
    assert_eq!(lobby.list_stats().requests, 0);
    lobby.shutdown();
}

#[test]
fn l14_the_list_of_an_unknown_lobby_is_empty() {
    let lobby = Lobby::start(options());
    assert_eq!(common::fetch(lobby.addr(), &request(ListId::from_bytes([9; 16]))), [0; 4]);
    lobby.shutdown();
}

#[test]
fn l14_an_incomplete_request_times_out() {
    let mut options = options();
    options.list.request_timeout = std::time::Duration::from_millis(50);
    let lobby = Lobby::start(options);
    let mut client = connect(lobby.addr());
    client.write_all(&request(common::LOBBY)[..20]).unwrap();
    assert!(read_all(&mut client).is_empty());
    assert_eq!(lobby.list_stats().request_timeouts, 1);
    lobby.shutdown();
}
