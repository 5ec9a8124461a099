//! A server that registers over both families is one entry with two endpoints.

use crate::common;

use common::{Lobby, any_v4, any_v6, eventually, options, send, server, unregistration};
use rallypoint_lobby::{DoorAddrs, LobbyOptions};
use rallypoint_lobby_proto::doors::LOBBY;
use rallypoint_wire::lobby::blocks;

#[test]
fn l9_registrations_over_both_families_are_one_entry() {
    let lobby = Lobby::start(LobbyOptions { doors: DoorAddrs::lobby(vec![any_v4(), any_v6()]), ..options() });
    let [v4, v6] = lobby.local_addrs()[&LOBBY][..] else { panic!("two addresses") };
    send(v4, &server("one"));
    lobby.wait_until_listed(&["one"]);
    send(v6, &server("one"));
    eventually("both endpoints are listed", || {
        let list = lobby.list();
        let [Ok(block)] = blocks(&list).collect::<Vec<_>>()[..] else { panic!("one entry") };
        block.v4.is_some_and(|v4| v4.ip.is_loopback()) && block.v6.is_some_and(|v6| v6.ip.is_loopback())
    });
    assert_eq!(common::fetch(v6, &common::request(common::LOBBY)), lobby.list(), "both families serve the same list");
    send(v6, &unregistration("one"));
    lobby.wait_until_listed(&[]);
    lobby.shutdown();
}
