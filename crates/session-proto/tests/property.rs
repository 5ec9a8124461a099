//! Whatever the network does, the delivered messages are a prefix of the sent ones, in order and each once; and all of them
//! are delivered if the network recovers.

use crate::common;

use common::*;
use rallypoint_netsim::{Link, Rng, seeds};
use rallypoint_session_proto::{Encryption, ONLY_CHANNEL, SendError};
use std::time::Instant;

fn check_prefix(received: &[(Instant, Vec<u8>)], lengths: &[usize], seed: u64) {
    assert!(received.len() <= lengths.len(), "seed {seed}: more messages than were sent");
    for (number, ((_, message), &length)) in received.iter().zip(lengths).enumerate() {
        assert_eq!(message, &numbered(number as u32, length), "seed {seed}: message {number}");
    }
}

fn run(seed: u64, encryption: Encryption, window: usize) {
    let mut rng = Rng::new(seed);
    let mut server = server_config();
    let mut config = client_config(encryption);
    let first = [0, 0, u32::MAX - 50][rng.below(3) as usize];
    for connection in [&mut server.connection, &mut config.connection] {
        connection.window = window;
        if config.encryption == Encryption::Plain {
            connection.first_number = first;
        }
        connection.idle_timeout = secs(60);
    }
    let calm = Link::default().delay(rng.duration(ms(80)));
    let mut pair = Pair::start(seed, calm, server, config);
    pair.wait_for_player();
    let client = pair.client;
    let server = pair.server;
    pair.net.start_chaos(client, server, secs(5));
    let mut lengths = [Vec::new(), Vec::new()];
    for _ in 0..60 {
        pair.net.run_for(rng.duration(ms(150)));
        for (side, lengths) in lengths.iter_mut().enumerate() {
            for _ in 0..rng.below(6) {
                let length = 4 + rng.below(400) as usize;
                let message = numbered(lengths.len() as u32, length);
                let sent = if side == 0 {
                    pair.net.with(client, |app, now| app.client.send(now, ONLY_CHANNEL, &message))
                } else {
                    pair.net.with(server, |app, now| {
                        let player = app.player();
                        app.endpoint.send(now, player, ONLY_CHANNEL, &message)
                    })
                };
                match sent {
                    Ok(_) => lengths.push(length),
                    Err(error) => assert_eq!(error, SendError::WouldBlock, "seed {seed}"),
                }
            }
        }
        check_prefix(pair.server_received(), &lengths[0], seed);
        check_prefix(&pair.client().received, &lengths[1], seed);
    }
    let sent = lengths.each_ref().map(Vec::len);
    let is_complete = pair.net.run_while(secs(30), |net| {
        let server = net.machine(server).received.values().next().map_or(0, Vec::len);
        [server, net.machine(client).received.len()] != sent
    });
    check_prefix(pair.server_received(), &lengths[0], seed);
    check_prefix(&pair.client().received, &lengths[1], seed);
    assert!(
        is_complete,
        "seed {seed}: {} and {} of {sent:?}",
        pair.server_received().len(),
        pair.client().received.len()
    );
    assert_eq!(pair.server().connect_count(), 1, "seed {seed}");
    // Few acknowledged messages are kept, and their number does not grow (S24, W25).
    pair.net.run_for(secs(5));
    let memory = pair.server().endpoint.stats().memory;
    assert!(memory <= 64 * 508 * 2 + 4_096, "seed {seed}: {memory} bytes");
}

/// Runs all seeds: ten thousand in all tests of a full run together.
fn run_seeds(encryption: &Encryption, window: usize) {
    (0..seeds()).for_each(|seed| run(seed, encryption.clone(), window));
}

#[test]
fn messages_are_delivered_in_order_once_and_completely_in_a_plain_session() {
    run_seeds(&Encryption::Plain, 4_096);
}

#[test]
fn messages_are_delivered_in_order_once_and_completely_with_the_smallest_window() {
    run_seeds(&Encryption::Plain, 64);
}

#[test]
fn messages_are_delivered_in_order_once_and_completely_in_an_encrypted_session() {
    run_seeds(&Encryption::Encrypted, 4_096);
}

#[test]
fn messages_are_delivered_in_order_once_and_completely_in_an_encrypted_session_with_the_smallest_window() {
    run_seeds(&Encryption::Encrypted, 64);
}
