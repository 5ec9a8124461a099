//! States of servers that were read before something later was known do not replace it.

use crate::support::{ModelStore, Peer, Server, server, unregistration};
use rallypoint_cluster::{Reply, RequestKind};
use rallypoint_lobby_proto::{LocalChange, PublicId};
use std::time::{Duration, Instant};

fn public_id(now: Instant, server: &Server) -> PublicId {
    let mut peer = Peer::new(9, now);
    peer.register(now, server);
    let Some(LocalChange::Put(put)) = peer.registry.take_changes(1).pop() else { panic!("no change") };
    put.public_id
}

/// Numbers of the content before are higher than those of all changes that follow.
#[test]
fn a_state_of_a_lost_content_does_not_hide_changes() {
    let mut now = Instant::now();
    let mut store = ModelStore::at(1_000_000);
    let mut peers = [Peer::new(1, now), Peer::new(2, now)];
    let pass = |now: &mut Instant, store: &mut ModelStore, time: Duration| {
        *now += time;
        store.now += time.as_millis() as u64;
    };
    peers.iter_mut().for_each(|peer| peer.run(now, &mut store));
    for players in 0..30 {
        pass(&mut now, &mut store, Duration::from_secs(2));
        peers[0].register(now, &Server { players, ..server(1) });
        peers.iter_mut().for_each(|peer| peer.run(now, &mut store));
    }
    // The first node has a change under way while it reads one of the other node.
    peers[0].held = Some(RequestKind::Write);
    pass(&mut now, &mut store, Duration::from_secs(2));
    peers[0].register(now, &Server { players: 50, ..server(1) });
    peers[0].run(now, &mut store);
    pass(&mut now, &mut store, Duration::from_secs(2));
    peers[1].register(now, &Server { players: 60, ..server(1) });
    peers[1].run(now, &mut store);
    peers[0].run(now, &mut store);
    store.flush();
    peers[0].held = None;
    for players in 61..65 {
        pass(&mut now, &mut store, Duration::from_secs(3));
        peers[1].register(now, &Server { players, ..server(1) });
        for _ in 0..2 {
            peers.iter_mut().for_each(|peer| peer.run(now, &mut store));
        }
    }
    assert!(peers[0].node.stats().seq < 30, "the numbers have begun again");
    for peer in &mut peers {
        assert_eq!(peer.players(now), [64]);
    }
}

/// The store did not have the server when it was asked, and the log shows it before that reply arrives.
#[test]
fn a_late_reply_does_not_remove_a_server_that_was_listed_since() {
    let mut now = Instant::now();
    let mut store = ModelStore::at(1_000_000);
    let (mut reader, mut writer) = (Peer::new(1, now), Peer::new(2, now));
    reader.run(now, &mut store);
    writer.run(now, &mut store);
    let id = public_id(now, &server(1));
    reader.held = Some(RequestKind::Fetch);
    reader.node.handle_changes(now, [LocalChange::Reread(id)]);
    reader.run(now, &mut store);
    let (fetch, request) = reader.take_held(RequestKind::Fetch);
    let fetched = store.execute(&request).unwrap();
    assert_eq!(fetched, Reply::Fetched(vec![None]));
    writer.register(now, &server(1));
    writer.run(now, &mut store);
    reader.run(now, &mut store);
    assert_eq!(reader.players(now), [0]);
    now += Duration::from_millis(10);
    reader.node.handle_reply(now, now, fetch, Ok(fetched));
    reader.run(now, &mut store);
    assert_eq!(reader.players(now), [0]);
}

/// The store had the server when it was queried, and the log shows its removal before that reply arrives.
#[test]
fn a_late_reply_does_not_list_a_server_that_was_removed_since() {
    let mut now = Instant::now();
    let mut store = ModelStore::at(1_000_000);
    let (mut reader, mut writer) = (Peer::new(1, now), Peer::new(2, now));
    reader.run(now, &mut store);
    writer.register(now, &server(1));
    writer.run(now, &mut store);
    reader.run(now, &mut store);
    assert_eq!(reader.players(now), [0]);
    let id = public_id(now, &server(1));
    reader.held = Some(RequestKind::Fetch);
    reader.node.handle_changes(now, [LocalChange::Reread(id)]);
    reader.run(now, &mut store);
    let (fetch, request) = reader.take_held(RequestKind::Fetch);
    let fetched = store.execute(&request).unwrap();
    assert!(matches!(&fetched, Reply::Fetched(values) if values[0].is_some()));
    writer.registry.handle_datagram(now, ([203, 0, 113, 1], 4_000).into(), &unregistration(1));
    writer.run(now, &mut store);
    reader.run(now, &mut store);
    assert!(reader.players(now).is_empty());
    now += Duration::from_millis(10);
    reader.node.handle_reply(now, now, fetch, Ok(fetched));
    reader.run(now, &mut store);
    assert!(reader.players(now).is_empty());
    assert_eq!(reader.node.stats().servers, 0);
}
