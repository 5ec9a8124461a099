//! The end of the number range (S21): plain numbers wrap, an encrypted session ends.

use crate::common;

use common::*;
use rallypoint_netsim::Link;
use rallypoint_session_proto::{ClientEvent, DisconnectReason, Encryption, ONLY_CHANNEL, SendError};

fn start_at(first: u32, encryption: Encryption, reconnect: bool) -> Pair {
    let mut server = server_config();
    let mut client = client_config(encryption);
    server.connection.first_number = first;
    client.connection.first_number = first;
    client.reconnect = reconnect;
    let mut pair = Pair::start(1, Link::default().delay(ms(25)).loss(0.05), server, client);
    pair.wait_for_player();
    pair
}

#[test]
fn s21_plain_numbers_wrap() {
    for before in [1, 2, 100, 2_000, 4_096, 5_000] {
        let mut pair = start_at(0u32.wrapping_sub(before), Encryption::Plain, false);
        for number in 0..6_000 {
            pair.client_send(&numbered(number, 60));
            pair.server_send(&numbered(number, 60));
            pair.net.run_for(ms(1));
        }
        pair.net.run_for(secs(3));
        let numbers =
            |messages: &[(_, Vec<u8>)]| messages.iter().map(|(_, message)| number_of(message)).collect::<Vec<_>>();
        assert!(numbers(pair.server_received()).into_iter().eq(0..6_000));
        assert!(numbers(&pair.client().received).into_iter().eq(0..6_000));
    }
}

#[test]
fn s21_an_encrypted_session_ends_at_2_30_and_the_client_logs_in_again() {
    let mut pair = start_at((1 << 30) - 100, Encryption::Encrypted, true);
    // The proof of the login took one number.
    for number in 0..99 {
        pair.client_send(&numbered(number, 60));
        pair.net.run_for(ms(1));
    }
    let refused = pair.net.with(pair.client, |app, now| app.client.send(now, ONLY_CHANNEL, b"one more"));
    assert_eq!(refused, Err(SendError::Closed));
    pair.net.run_for(secs(4));
    assert_eq!(pair.server_received().len(), 99);
    assert!(pair.client().has(&ClientEvent::Disconnected(DisconnectReason::NumbersExhausted)));
    assert_eq!(pair.server().connect_count(), 2, "the client has logged in again");
}
