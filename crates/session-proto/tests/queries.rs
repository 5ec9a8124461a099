//! Queries are answered within a budget (S2, S9 to S11).

use crate::common;

use common::*;
use rallypoint_netsim::{Link, ManualPeer};
use rallypoint_session_proto::{Encryption, QueryReplies};

fn answering_pair(info: Vec<Vec<u8>>, players: Vec<Vec<u8>>) -> Pair {
    let mut pair = Pair::start(1, Link::default().delay(ms(5)), server_config(), client_config(Encryption::Plain));
    pair.net.with(pair.server, |app, _| app.endpoint.set_query_replies(QueryReplies::new(info, players)));
    pair
}

#[test]
fn s9_a_query_is_answered_with_all_parts_in_order() {
    let info: Vec<Vec<u8>> = (0..7).map(|part| vec![0x80 + part; 20]).collect();
    let mut pair = answering_pair(info.clone(), vec![vec![0x88; 9], vec![0x89; 9]]);
    let querier = pair.net.add(([10, 0, 2, 1], 7), ManualPeer::default());
    let to = pair.net.address(pair.server);
    pair.net.with(querier, |querier, _| querier.send(to, &[0x80]));
    pair.net.with(querier, |querier, _| querier.send(to, &[0x88]));
    pair.net.run_for(ms(100));
    let received: Vec<Vec<u8>> = pair.net.take_events(querier).into_iter().map(|(_, (_, bytes))| bytes).collect();
    assert_eq!(received[..7], info);
    assert_eq!(received[7..], [vec![0x88; 9], vec![0x89; 9]]);
}

#[test]
fn s11_a_one_byte_query_cannot_be_amplified_beyond_the_budget() {
    let mut pair = answering_pair(vec![vec![0x80; 455]; 7], vec![vec![0x89; 400]; 100]);
    pair.wait_for_player();
    let before = pair.server().endpoint.stats().unvalidated_bytes;
    for second in 0..10 {
        for number in 0..1_000u32 {
            let query = if number.is_multiple_of(2) { [0x80] } else { [0x88] };
            // One victim, and the other addresses of its network.
            let last = if number.is_multiple_of(4) { 9 } else { number as u8 };
            pair.net.inject(([11, 0, 0, last], 5), SERVER, &query);
        }
        pair.net.run_for(secs(1));
        let sent = pair.server().endpoint.stats().unvalidated_bytes - before;
        assert!(sent <= 96_000 + 16_000 * (second + 1), "{sent} bytes to one /24 after {second} s");
    }
    let stats = pair.server().endpoint.stats();
    assert!(stats.queries_refused > 9_000, "{stats:?}");
    assert!(pair.client().client.is_connected());
}

#[test]
fn s11_forged_queries_from_everywhere_stay_within_the_total_budget() {
    let mut pair = answering_pair(vec![vec![0x80; 455]; 7], vec![vec![0x89; 400]; 100]);
    pair.wait_for_player();
    let before = pair.server().endpoint.stats().unvalidated_bytes;
    for second in 0..10 {
        for number in 0..2_000_u32 {
            let [_, a, b, c] = (second as u32 * 2_000 + number).wrapping_mul(0x9e37_79b1).to_be_bytes();
            pair.net.inject(([20 + a % 100, b, c, 1], 5), SERVER, &[0x88]);
        }
        pair.net.run_for(secs(1));
        let sent = pair.server().endpoint.stats().unvalidated_bytes - before;
        assert!(sent <= 256_000 + 128_000 * (second + 1), "{sent} bytes in all after {second} s");
    }
    // After the flood, a client that queries info and players every 5 s is answered.
    pair.net.run_for(secs(2));
    let querier = pair.net.add(([10, 0, 2, 1], 7), ManualPeer::default());
    let to = pair.net.address(pair.server);
    for _ in 0..6 {
        pair.net.with(querier, |querier, _| querier.send(to, &[0x80]));
        pair.net.with(querier, |querier, _| querier.send(to, &[0x88]));
        pair.net.run_for(secs(5));
        assert_eq!(pair.net.take_events(querier).len(), 7 + 40);
    }
}

#[test]
fn s11_a_players_reply_has_at_most_16_kb() {
    let mut pair = answering_pair(vec![], vec![vec![0x89; 400]; 100]);
    pair.net.inject(([11, 0, 0, 1], 5), SERVER, &[0x88]);
    pair.net.run_for(ms(10));
    assert_eq!(pair.server().endpoint.stats().unvalidated_bytes, 16_000 + 14, "with a login success");
}

#[test]
fn s2_a_query_has_exactly_one_byte() {
    let mut pair = answering_pair(vec![vec![0x80; 455]; 7], vec![vec![0x89; 400]; 100]);
    pair.wait_for_player();
    let before = pair.server().endpoint.stats().unvalidated_bytes;
    for bytes in [&[0x80, 0][..], &[0x88, 0], &[0x80; 13], &[0x88; 6], &[]] {
        pair.net.inject(([11, 0, 0, 1], 5), SERVER, bytes);
    }
    pair.net.run_for(secs(1));
    assert_eq!(pair.server().endpoint.stats().unvalidated_bytes, before);
}
