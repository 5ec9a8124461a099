//! With streams, messages may be of any length, and small ones share datagrams.

mod common;

use common::{Pair, client_options, server_options, until};
use rallypoint_session::{ClientEvent, ClientOptions, Encryption, SendError, ServerOptions};

fn with_streams(longest: usize) -> (ServerOptions, ClientOptions) {
    let server = ServerOptions { stream: Some(longest), ..server_options() };
    (server, ClientOptions { stream: Some(longest), ..client_options(Encryption::Encrypted) })
}

#[test]
fn s33_long_messages_arrive_whole() {
    let (server, client) = with_streams(1 << 20);
    let mut pair = Pair::new(server, client);
    let long: Vec<u8> = (0..300_000u32).map(|n| n as u8).collect();
    pair.client.send(&long).unwrap();
    pair.client.send(b"short").unwrap();
    pair.server.send(pair.player, &long[..7_000]).unwrap();
    assert_eq!(pair.server_hears(), long);
    assert_eq!(pair.server_hears(), b"short");
    assert_eq!(pair.client_hears(), &long[..7_000]);
    assert_eq!((pair.client.max_message(), pair.server.max_message(pair.player)), (Some(1 << 20), Some(1 << 20)));
}

#[test]
fn s33_small_messages_share_datagrams() {
    let (server, client) = with_streams(1_000);
    let mut pair = Pair::new(server, client);
    let before = pair.client.stats().unwrap().messages_sent;
    for number in 0..100u8 {
        pair.client.send(&[number; 9]).unwrap();
    }
    for number in 0..100u8 {
        assert_eq!(pair.server_hears(), [number; 9]);
    }
    let sent = pair.client.stats().unwrap().messages_sent - before;
    assert!(sent <= 3, "1000 bytes took {sent} datagrams");
}

#[test]
fn s33_what_is_left_is_delivered_before_goodbye() {
    let (server, client) = with_streams(4 << 20);
    let mut pair = Pair::new(server, client);
    // More than the window holds.
    let long = vec![7; 3 << 20];
    pair.server.send(pair.player, &long).unwrap();
    assert!(pair.server.disconnect(pair.player, "enough"));
    assert_eq!(pair.server.send(pair.player, b"more"), Err(SendError::Closed));
    assert_eq!(pair.client_hears(), long);
    until("it is over", || {
        pair.turn();
        matches!(pair.client.next_event(&mut pair.message), Some(ClientEvent::Disconnected(_)))
    });
}

#[test]
fn s33_limits_are_named() {
    let (server, client) = with_streams(100);
    let mut pair = Pair::new(server, client);
    assert_eq!(pair.client.send(&[0; 101]), Err(SendError::TooLarge { limit: 100, length: 101 }));
    assert_eq!(pair.client.send(&[]), Err(SendError::Empty));
    // Without streams, what does not fit into a datagram is refused.
    let mut pair = Pair::new(server_options(), client_options(Encryption::Plain));
    let refused = pair.client.send(&[0; 485]).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "a message of 485 bytes is too large: the limit is 484 bytes; use a stream for more"
    );
    assert_eq!(pair.server.max_message(pair.player), Some(497));
}

#[test]
fn s33_who_breaks_the_stream_is_sent_away() {
    let (server, _) = with_streams(100);
    // This client speaks of no streams: its message is read as a length that is not allowed.
    let mut pair = Pair::new(server, client_options(Encryption::Plain));
    pair.client.send(&[0xff; 20]).unwrap();
    until("it is sent away", || {
        pair.turn();
        let _ = pair.server.next_event(&mut pair.message);
        matches!(pair.client.next_event(&mut pair.message), Some(ClientEvent::Disconnected(_)))
    });
}
