//! A refresh, the most frequent datagram, does not allocate.

use crate::support;
use rallypoint_lobby_proto::{PublishedLists, RegistrationOutcome};
use std::sync::Arc;
use support::*;

fn allocations(work: impl FnOnce()) -> u64 {
    allocation_counter::measure(work).count_total
}

#[test]
fn a_batch_of_refreshes_allocates_nothing() {
    let mut lobby = Lobby::default();
    let datagrams: Vec<_> = (0..100).map(|n| (address(n), udp(n.into()).datagram())).collect();
    for (from, bytes) in &datagrams {
        lobby.send(*from, bytes);
    }
    lobby.wait(secs(30));
    let now = lobby.now;
    let refresh = || {
        lobby.registry.handle_datagrams(now, datagrams.iter().map(|(from, bytes)| ((*from, 9).into(), &bytes[..])));
    };
    assert_eq!(allocations(refresh), 0);
    assert_eq!(lobby.stats().outcome(RegistrationOutcome::Refreshed), 100);
}

#[test]
fn a_refresh_allocates_nothing_in_any_state_and_family() {
    let mut lobby = Lobby::default();
    let (listed, checked) = (udp(1).datagram(), tcp(2).datagram());
    let sources = ["203.0.113.9:9", "[2001:db8::9]:9", "[::ffff:203.0.113.9]:9"].map(|text| text.parse().unwrap());
    for from in sources {
        lobby.registry.handle_datagram(lobby.now, from, &listed);
        lobby.registry.handle_datagram(lobby.now, from, &checked);
    }
    // The registration of the second family changed the data, so the first one is processed in full once.
    for from in sources {
        lobby.registry.handle_datagram(lobby.now, from, &listed);
        lobby.registry.handle_datagram(lobby.now, from, &checked);
    }
    // A returning server moves up in the queue of checks.
    let now = lobby.now + secs(30);
    for from in sources {
        lobby.registry.handle_datagram(now, from, &checked);
    }
    let now = now + secs(1);
    let refresh = || {
        for from in sources {
            assert_eq!(lobby.registry.handle_datagram(now, from, &listed), RegistrationOutcome::Refreshed);
            assert_eq!(lobby.registry.handle_datagram(now, from, &checked), RegistrationOutcome::Checking);
        }
    };
    assert_eq!(allocations(refresh), 0);
}

#[test]
fn reading_a_list_allocates_nothing() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(1));
    lobby.list();
    let lists: Arc<PublishedLists> = lobby.lists();
    drop(lists.list(&LOBBY));
    let take = || {
        let list = lists.list(&LOBBY);
        assert_eq!(list.pieces().map(<[u8]>::len).sum::<usize>(), list.size());
    };
    assert_eq!(allocations(take), 0);
}
