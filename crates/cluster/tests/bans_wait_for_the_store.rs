//! Bans that wait for the store are bounded, and each subject is written once; the order of decisions does not depend on clocks.

use crate::support;

use rallypoint_cluster::{
    BanWrite, ClusterNode, NodeState, Reply, Request, StoreError, StoreErrorKind, Update, Write, WriteResult,
};
use std::time::{Duration, Instant};
use support::{model::ModelStore, node_config};

fn node(number: u64, now: Instant) -> ClusterNode {
    ClusterNode::new(node_config(number), now)
}

/// Executes requests until there are none, except for those that read the log. Returns the number of bans in each write.
fn run(node: &mut ClusterNode, store: &mut ModelStore, now: Instant, is_broken: bool) -> Vec<usize> {
    let mut writes = Vec::new();
    while let Some((id, request)) = node.poll_request(now) {
        let is_write = matches!(request, Request::Write { .. });
        if let Request::Write { writes: bans, .. } = &request {
            writes.push(bans.len());
        }
        let failure = StoreError { kind: StoreErrorKind::Unreachable, message: "broken".into() };
        match store.execute(&request) {
            _ if is_write && is_broken => node.handle_reply(now, now, id, Err(failure)),
            Some(reply) => node.handle_reply(now, now, id, Ok(reply)),
            None => {}
        }
    }
    writes
}

#[test]
fn a_store_that_fails_again_and_again_leaves_one_write_for_each_subject() {
    let mut now = Instant::now();
    let (mut node, mut store) = (node(1, now), ModelStore::at(1_000_000));
    for round in 0..50_u64 {
        for subject in 0..100_u64 {
            let is_accepted = node.handle_ban(subject.to_string().as_bytes(), b"{}".to_vec(), round, 0, true);
            assert!(is_accepted);
        }
        let writes = run(&mut node, &mut store, now, true);
        assert!(writes.iter().all(|count| *count <= 100), "{writes:?}");
        now += Duration::from_secs(3);
    }
    now += Duration::from_secs(3);
    assert_eq!(run(&mut node, &mut store, now, false).iter().sum::<usize>(), 100);
}

#[test]
fn bans_beyond_the_bound_are_refused() {
    let now = Instant::now();
    let mut node = node(1, now);
    let accepted =
        (0..50_000_u64).filter(|n| node.handle_ban(n.to_string().as_bytes(), Vec::new(), 0, 0, true)).count();
    assert_eq!(accepted, 20_000);
    assert!(node.handle_ban(b"7", b"{}".to_vec(), 1, 0, true), "a subject that waits already");
}

/// The store was just opened: what it does not have is handed over while the operator decides.
#[test]
fn a_decision_of_now_is_not_replaced_by_what_the_node_knew_before() {
    let now = Instant::now();
    let mut store = ModelStore::at(1_000_000);
    let (mut ahead, mut node) = (node(1, now), node(2, now));
    run(&mut ahead, &mut store, now, false);
    run(&mut node, &mut store, now, false);
    assert!(ahead.handle_ban(b"x", b"banned".to_vec(), 1_300_000, 0, true));
    run(&mut ahead, &mut store, now, false);
    assert!(node.handle_ban(b"x", b"lifted".to_vec(), 1_000_500, 1_000_500, true));
    assert!(node.handle_ban(b"x", b"lifted".to_vec(), 1_000_500, 1_000_500, false));
    run(&mut node, &mut store, now, false);
    let Some(Reply::Bans { bans, .. }) = store.execute(&Request::Bans) else { panic!("no bans") };
    assert_eq!(bans, [(b"x".to_vec(), b"1300001 1000500 lifted".to_vec())]);
}

/// Number of times that all bans were read.
fn reads(node: &mut ClusterNode, now: Instant) -> usize {
    std::iter::from_fn(|| node.poll_update(now)).filter(|update| matches!(update, Update::AllBans { .. })).count()
}

/// The node then hands over those that the store does not have.
#[test]
fn bans_are_read_again_when_the_store_has_lost_some() {
    let mut now = Instant::now();
    let (mut node, mut store) = (node(1, now), ModelStore::at(1_000_000));
    let mut tick = |node: &mut ClusterNode, store: &mut ModelStore| {
        now += Duration::from_secs(2);
        run(node, store, now, false);
        reads(node, now)
    };
    assert_eq!(tick(&mut node, &mut store), 1, "with the first contact");
    for subject in [b"x", b"y"] {
        assert!(node.handle_ban(subject, b"banned".to_vec(), 7, 0, true));
    }
    assert_eq!(tick(&mut node, &mut store), 0);
    assert_eq!(tick(&mut node, &mut store), 0);
    store.forget_bans();
    assert_eq!(tick(&mut node, &mut store), 1);
    assert_eq!(tick(&mut node, &mut store), 0);
    node.reread_bans();
    assert_eq!(tick(&mut node, &mut store), 1, "if the operator's changes were missed");
}

#[test]
fn a_foreign_value_in_place_of_the_bans_is_counted_once_and_the_bans_are_read_when_it_is_gone() {
    let mut now = Instant::now();
    let (mut node, mut store) = (node(1, now), ModelStore::at(1_000_000));
    run(&mut node, &mut store, now, false);
    reads(&mut node, now);
    for (is_foreign, expected_reads) in [(false, 0), (true, 0), (true, 0), (false, 1), (false, 0)] {
        now += Duration::from_secs(2);
        while let Some((id, request)) = node.poll_request(now) {
            let mut reply = store.execute(&request);
            if let (true, Some(Reply::Ticked(Some(ticked)))) = (is_foreign, &mut reply) {
                ticked.bans = None;
            }
            reply.into_iter().for_each(|reply| node.handle_reply(now, now, id, Ok(reply)));
        }
        assert_eq!(node.has_foreign_bans(), is_foreign);
        assert_eq!(reads(&mut node, now), expected_reads);
    }
    assert_eq!(node.stats().malformed, 1);
    assert_eq!(*node.state(), NodeState::Following);
}

/// The clock of the first operator's node is five minutes ahead.
#[test]
fn a_decision_of_now_counts_whatever_the_clocks_are() {
    let now = Instant::now();
    let mut store = ModelStore::at(1_000_000);
    let (mut ahead, mut behind) = (node(1, now), node(2, now));
    run(&mut ahead, &mut store, now, false);
    run(&mut behind, &mut store, now, false);
    assert!(ahead.handle_ban(b"x", b"banned".to_vec(), 1_300_000, 0, true));
    run(&mut ahead, &mut store, now, false);
    assert!(behind.handle_ban(b"x", b"lifted".to_vec(), 1_000_500, 1_000_500, true));
    run(&mut behind, &mut store, now, false);
    let Some(Reply::Bans { bans, left_out: 0, malformed: 0 }) = store.execute(&Request::Bans) else {
        panic!("no bans")
    };
    assert_eq!(bans, [(b"x".to_vec(), b"1300001 1000500 lifted".to_vec())]);
    // An earlier decision, made without contact, does not replace it.
    let write =
        Write::Ban(BanWrite { subject: b"x".to_vec(), value: Vec::new(), since: 1_200_000, end: 0, is_current: false });
    let Some(Reply::Opened(opened)) = store.execute(&Request::Open { epoch: [9; 16], secret_check: [0; 16] }) else {
        panic!("not opened")
    };
    let request = Request::Write { epoch: opened.epoch, writes: vec![([0; 16], write)] };
    let Some(Reply::Written(Some(results))) = store.execute(&request) else { panic!("not written") };
    assert!(matches!(results[0], WriteResult::Refused(..)));
    let all = std::iter::from_fn(|| behind.poll_update(now));
    assert_eq!(all.filter(|update| matches!(update, Update::AllBans { .. })).count(), 1);
    assert_eq!(*behind.state(), NodeState::Following);
}
