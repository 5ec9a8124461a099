//! Datagrams from any number of forged addresses keep no honest server out of the list, and no player from seeing it.

use rallypoint_harness::{GameServer, Lobby, eventually};
use rallypoint_wire::lobby::LobbyId;
use std::net::Ipv4Addr;

/// Far below what a lobby takes, so that none is lost on the way and whatever is missing was refused.
const AT_ONCE: u32 = 200;

/// Junk and registrations of servers that do not exist, each from an address of its own.
fn forge(lobby: &Lobby, numbers: std::ops::Range<u32>) {
    for number in numbers {
        let from = Ipv4Addr::from_bits(Ipv4Addr::new(127, 128, 0, 0).to_bits() + number);
        if number % 2 == 0 {
            lobby.send(from, &number.to_be_bytes());
        } else {
            let server = GameServer::named("forged").in_lobby(LobbyId::from_bytes([6; 16]));
            lobby.send(from, &server.registration());
        }
    }
}

#[test]
fn honest_registrations_all_get_through() {
    let lobby = Lobby::with(&["limits.exempt=off"]);
    let honest: Vec<_> = GameServer::many(50).collect();
    for (round, server) in (0..).zip(&honest) {
        forge(&lobby, round * AT_ONCE..(round + 1) * AT_ONCE);
        lobby.register(server);
        // The list is there for players all the time.
        eventually("an honest server is listed at once", || lobby.names().len() as u32 == round + 1);
    }
}

#[test]
fn known_servers_are_heard_when_the_budget_of_the_whole_lobby_is_used_up() {
    // A few seats, so that the share of each is large enough for what follows.
    let total = ["limits.total.packets=200/h burst 4000", "limits.total.bytes=off", "limits.max_entries=64"];
    let lobby = Lobby::with(&[&["limits.exempt=off"][..], &total].concat());
    let known = GameServer::named("known").from_ip("127.1.2.3");
    lobby.register(&known);
    lobby.wait_until_listed(&["known"]);
    for round in 0..25 {
        forge(&lobby, round * AT_ONCE..(round + 1) * AT_ONCE);
        let told = round.to_string();
        lobby.register(&known.clone().key("x-round", &told));
        let shown = || lobby.server("known").is_some_and(|server| server.key("x-round") == Some(told.as_bytes()));
        eventually("what the known server says is heard", shown);
    }
    // The flood has really used up what there is for strangers.
    lobby.register(&GameServer::named("newcomer").from_ip("127.4.5.6"));
    lobby.register(&known.renamed("known still"));
    lobby.wait_until_listed(&["known still"]);
}

#[test]
fn forged_addresses_fill_no_more_than_their_own_lobby() {
    let lobby = Lobby::with(&["caps.per_lobby=100"]);
    forge(&lobby, 0..AT_ONCE);
    lobby.settle();
    forge(&lobby, AT_ONCE..2 * AT_ONCE);
    lobby.settle();
    assert_eq!(lobby.servers_in(LobbyId::from_bytes([6; 16])).len(), 100);
    lobby.register(&GameServer::named("honest"));
    lobby.wait_until_listed(&["honest"]);
}
