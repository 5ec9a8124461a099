//! The cost of game traffic, and the copies of thin streams.

use crate::common;

use common::{traffic::*, *};
use rallypoint_netsim::Link;
use rallypoint_session_proto::Encryption;

#[test]
fn s23_game_traffic_without_loss_costs_at_most_1_7_times_its_payload_with_headers() {
    for rtt in [10, 50, 150] {
        for encryption in [Encryption::Plain, Encryption::Encrypted] {
            let link = Link::default().delay(ms(rtt) / 2);
            let game = game(1, link, secs(20), encryption.clone());
            println!("rtt {rtt}, {encryption:?}: {:.3}", game.overhead);
            // An encrypted message has a tag of 16 bytes.
            let max = if encryption == Encryption::Plain { 1.7 } else { 1.82 };
            assert!(game.overhead <= max, "{}", game.overhead);
        }
    }
}

#[test]
fn s25_copies_at_most_double_a_thin_stream_and_stop_when_the_network_recovers() {
    let mut pair = Pair::plain(1, Link::default().delay(ms(25)).loss(0.1));
    let run = |pair: &mut Pair, messages: u32| {
        let before = pair.client().client.connection().unwrap().stats();
        for number in 0..messages {
            pair.client_send(&numbered(number, 100));
            pair.net.run_for(ms(16));
        }
        let after = pair.client().client.connection().unwrap().stats();
        (after.copies - before.copies, after.resends - before.resends)
    };
    let (copies, resends) = run(&mut pair, 2_000);
    assert!(copies > 1_000 && copies <= 2_000 + resends, "{copies} {resends}");
    assert!(resends < 400, "{resends}");
    pair.net.set_default_link(Link::default().delay(ms(25)));
    run(&mut pair, 2_500);
    assert_eq!(run(&mut pair, 500), (0, 0));
}

#[test]
fn s25_bulk_transfers_are_not_copied() {
    let mut pair = Pair::plain(1, Link::default().delay(ms(25)).loss(0.1));
    for number in 0..4_000 {
        pair.client_send(&numbered(number, 100));
    }
    pair.net.run_for(secs(10));
    assert_eq!(pair.server_received().len(), 4_000);
    let stats = pair.client().client.connection().unwrap().stats();
    assert!(stats.copies < 200, "{stats:?}");
}
