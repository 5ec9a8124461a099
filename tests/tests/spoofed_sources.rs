//! Datagrams from any number of spoofed addresses neither keep other servers out of the list nor delay list requests.

use rallypoint_harness::{GameServer, Lobby, eventually};
use rallypoint_wire::lobby::ListId;
use std::net::Ipv4Addr;

/// Number of datagrams per burst: far below the capacity of a lobby, so that none is lost and missing ones were rejected.
const BURST: u32 = 200;

/// Sends invalid datagrams and registrations of nonexistent servers, each from its own address.
fn send_spoofed(lobby: &Lobby, numbers: std::ops::Range<u32>) {
    for number in numbers {
        let from = Ipv4Addr::from_bits(Ipv4Addr::new(127, 128, 0, 0).to_bits() + number);
        if number % 2 == 0 {
            lobby.send(from, &number.to_be_bytes());
        } else {
            let server = GameServer::named("spoofed").in_lobby(ListId::from_bytes([6; 16]));
            lobby.send(from, &server.registration());
        }
    }
}

#[test]
fn all_other_registrations_are_accepted() {
    let lobby = Lobby::with(&["limits.exempt=off"]);
    let genuine: Vec<_> = GameServer::many(50).collect();
    for (round, server) in (0..).zip(&genuine) {
        send_spoofed(&lobby, round * BURST..(round + 1) * BURST);
        lobby.register(server);
        // The list is available all the time.
        eventually("a server with its own address is listed", || lobby.names().len() as u32 == round + 1);
    }
}

#[test]
fn known_servers_are_accepted_when_the_total_limit_is_exhausted() {
    // Few table entries, so that the share of each is large enough for this test.
    let total = ["limits.total.packets=200/h burst 4000", "limits.total.bytes=off", "limits.max_entries=64"];
    let lobby = Lobby::with(&[&["limits.exempt=off"][..], &total].concat());
    let known = GameServer::named("known").from_ip("127.1.2.3");
    lobby.register(&known);
    lobby.wait_until_listed(&["known"]);
    for round in 0..25 {
        send_spoofed(&lobby, round * BURST..(round + 1) * BURST);
        let value = round.to_string();
        lobby.register(&known.clone().key("x-round", &value));
        let shown = || lobby.server("known").is_some_and(|server| server.key("x-round") == Some(value.as_bytes()));
        eventually("the change of the known server is listed", shown);
    }
    // The flood has exhausted the limit for unknown sources.
    lobby.register(&GameServer::named("newcomer").from_ip("127.4.5.6"));
    lobby.register(&known.renamed("known still"));
    lobby.wait_until_listed(&["known still"]);
}

#[test]
fn spoofed_registrations_fill_only_their_own_lobby() {
    let lobby = Lobby::with(&["caps.per_list=100"]);
    send_spoofed(&lobby, 0..BURST);
    lobby.settle();
    send_spoofed(&lobby, BURST..2 * BURST);
    lobby.settle();
    assert_eq!(lobby.servers_in(ListId::from_bytes([6; 16])).len(), 100);
    lobby.register(&GameServer::named("genuine"));
    lobby.wait_until_listed(&["genuine"]);
}
