//! Changes that the store has not confirmed are written again, and mean the same then.

use crate::support::{ModelStore, Peer, server};
use rallypoint_cluster::{NodeState, Reply, Request, RequestKind, Update, Write};
use rallypoint_lobby_proto::LocalChange;
use rallypoint_wire::lobby::{ListBlock, Occupancy, TableBuf, Transport};
use std::time::{Duration, Instant};

const SECOND: Duration = Duration::from_secs(1);

fn peers<const N: usize>(now: Instant, store: &mut ModelStore) -> [Peer; N] {
    let mut number = 0;
    [(); N].map(|()| {
        number += 1;
        let mut peer = Peer::new(number, now);
        peer.run(now, store);
        peer
    })
}

/// A store, and a node whose first change is under way to it.
fn peer_with_held_write(now: Instant) -> (ModelStore, Peer) {
    let mut store = ModelStore::at(1_000_000);
    let [mut peer] = peers(now, &mut store);
    peer.held = Some(RequestKind::Write);
    peer.register(now, &server(1));
    peer.run(now, &mut store);
    (store, peer)
}

/// The end of a lease must not be in the time before: it could not be lowered.
#[test]
fn the_clock_is_set_back_while_a_change_is_under_way() {
    let mut now = Instant::now();
    let (mut store, mut peer) = peer_with_held_write(now);
    peer.take_held(RequestKind::Write);
    now += 2 * SECOND;
    store.now -= 600_000;
    peer.run(now, &mut store);
    // The pause before the store is opened again is over.
    now += 10 * SECOND;
    store.now += 10_000;
    peer.run(now, &mut store);
    let (_, Request::Write { writes, .. }) = peer.take_held(RequestKind::Write) else { unreachable!() };
    let Write::Put { leases: [lease, 0], .. } = writes[0].1 else { panic!("{writes:?}") };
    assert!((store.now..store.now + 61_000).contains(&lease), "{lease} at {}", store.now);
}

/// It may have been written, and another operator may have decided since.
#[test]
fn a_ban_that_is_written_again_does_not_replace_a_later_decision() {
    let now = Instant::now();
    let mut store = ModelStore::at(1_000_000);
    let [mut first, mut second] = peers(now, &mut store);
    first.held = Some(RequestKind::Write);
    assert!(first.node.handle_ban(b"x", b"banned".to_vec(), 1_000_000, 0, true));
    first.run(now, &mut store);
    let (_, write) = first.take_held(RequestKind::Write);
    store.execute(&write).unwrap();
    assert!(second.node.handle_ban(b"x", b"lifted".to_vec(), 1_000_500, 1_000_500, true));
    second.run(now, &mut store);
    first.held = None;
    first.node.reread(now);
    first.run(now, &mut store);
    let Some(Reply::Bans { bans, .. }) = store.execute(&Request::Bans) else { panic!("no bans") };
    assert_eq!(bans, [(b"x".to_vec(), b"1000500 1000500 lifted".to_vec())]);
}

/// The reply was executed before the record that the log has shown since.
#[test]
fn bans_are_read_again_if_one_changed_meanwhile() {
    let now = Instant::now();
    let mut store = ModelStore::at(1_000_000);
    let [mut reader, mut writer] = peers(now, &mut store);
    assert!(writer.node.handle_ban(b"x", b"banned".to_vec(), 1_000_000, 0, true));
    writer.run(now, &mut store);
    reader.run(now, &mut store);
    reader.held = Some(RequestKind::Bans);
    reader.node.reread(now);
    reader.run(now, &mut store);
    let (id, request) = reader.take_held(RequestKind::Bans);
    let old = store.execute(&request).unwrap();
    assert!(writer.node.handle_ban(b"x", b"lifted".to_vec(), 1_000_500, 1_000_500, true));
    writer.run(now, &mut store);
    reader.run(now, &mut store);
    reader.node.handle_reply(now, now, id, Ok(old));
    let values = |reader: &mut Peer| {
        let updates: Vec<_> = std::iter::from_fn(|| reader.node.poll_update(now)).collect();
        let all = updates.into_iter().filter_map(|update| match update {
            Update::AllBans { values, .. } => Some(values),
            _ => None,
        });
        all.last().unwrap_or_default()
    };
    assert_eq!(values(&mut reader), [b"1000000 0 banned".to_vec()]);
    reader.open.extend(std::iter::from_fn(|| reader.node.poll_request(now)));
    let (id, request) = reader.take_held(RequestKind::Bans);
    reader.node.handle_reply(now, now, id, Ok(store.execute(&request).unwrap()));
    assert_eq!(values(&mut reader), [b"1000500 1000500 lifted".to_vec()]);
}

#[test]
fn large_changes_are_written_in_several_requests() {
    let now = Instant::now();
    let mut store = ModelStore::at(1_000_000);
    let [mut peer] = peers(now, &mut store);
    peer.register(now, &server(1));
    let Some(LocalChange::Put(mut put)) = peer.registry.take_changes(1).pop() else { panic!("no change") };
    let mut table = TableBuf::new();
    table.push(b"name", &[b'x'; 50_000]).unwrap();
    put.block.clear();
    ListBlock {
        transport: Transport::Udp,
        v4: None,
        v6: None,
        occupancy: Occupancy::default(),
        table: table.as_table(),
    }
    .emit(&mut put.block);
    put.block.drain(..4);
    peer.node.handle_changes(now, (0..100).map(|_| LocalChange::Put(put.clone())));
    peer.held = Some(RequestKind::Write);
    let mut counts = Vec::new();
    while counts.iter().sum::<usize>() < 100 {
        peer.run(now, &mut store);
        let (id, request) = peer.take_held(RequestKind::Write);
        let Request::Write { writes, .. } = &request else { unreachable!() };
        counts.push(writes.len());
        peer.node.handle_reply(now, now, id, Ok(store.execute(&request).unwrap()));
    }
    assert_eq!(counts, [20; 5]);
}

/// Otherwise the changes without a result would count as under way for ever.
#[test]
fn a_reply_with_fewer_results_ends_the_contact() {
    let mut now = Instant::now();
    let (mut store, mut peer) = peer_with_held_write(now);
    let (id, _) = peer.take_held(RequestKind::Write);
    peer.node.handle_reply(now, now, id, Ok(Reply::Written(Some(Vec::new()))));
    assert!(matches!(peer.node.state(), NodeState::Disconnected(_)));
    peer.held = None;
    now += 10 * SECOND;
    store.now += 10_000;
    peer.run(now, &mut store);
    assert_eq!((peer.node.state(), store.entries.len()), (&NodeState::Following, 1));
}
