//! Resend requests are few, and so is what they draw: neither asking for missing messages nor answering such a request can
//! be used to flood a path (S25, W60, W61).

use crate::common;

use common::{forge::*, *};
use rallypoint_netsim::Link;
use rallypoint_session_proto::{ClientConfig, Encryption, EndpointConfig};
use std::net::SocketAddr;

fn start(server: EndpointConfig, client: ClientConfig) -> (Pair, Wiretap) {
    let mut pair = Pair::start(1, Link::default().delay(ms(10)), server, client);
    let tap = Wiretap::attach(&mut pair.net);
    pair.wait_for_player();
    (pair, tap)
}

#[test]
fn w60_one_message_far_ahead_draws_few_requests_from_a_server() {
    for encryption in [Encryption::Plain, Encryption::Encrypted] {
        // The client starts with number 4,094.
        let mut config = client_config(encryption);
        config.connection.first_number = 4_094;
        let (mut pair, tap) = start(server_config(), config);
        for _ in 0..20 {
            pair.net.run_for(secs(1));
            let received = tap.bytes(CLIENT, &[PLAIN, SEALED]);
            let requested = tap.bytes(SERVER, &[RESEND]);
            assert!(requested > 0, "the oldest holes are requested");
            assert!(requested <= 2 * received, "{requested} bytes of requests for {received} bytes of data");
        }
    }
}

#[test]
fn w60_one_message_far_ahead_draws_few_requests_from_a_client() {
    for encryption in [Encryption::Plain, Encryption::Encrypted] {
        let mut pair = Pair::connect(1, Link::default().delay(ms(10)), encryption);
        pair.net.run_for(secs(1));
        // The server sends 120 messages, and only the last of them arrives, however often they are resent.
        let number = |bytes: &[u8]| u32::from_le_bytes(bytes[5..9].try_into().unwrap());
        let is_dropped = move |from: SocketAddr, bytes: &[u8]| {
            from == SERVER.into() && matches!(bytes[0], PLAIN | SEALED) && number(bytes) < 119
        };
        let tap = Wiretap::attach_dropping(&mut pair.net, is_dropped);
        (0..120).for_each(|number| pair.server_send(&numbered(number, 10)));
        for _ in 0..9 {
            pair.net.run_for(secs(1));
            let received = tap.bytes(SERVER, &[PLAIN, SEALED]);
            let requested = tap.bytes(CLIENT, &[RESEND]);
            assert!(requested > 0, "the oldest holes are requested");
            assert!(requested <= 2 * received, "{requested} bytes of requests for {received} bytes of data");
        }
    }
}

/// Bytes of any kind that a client of a plain session sends within 9 s, when `count` datagrams of 12 bytes are spoofed, one every
/// 20 ms, with numbers from `first` on.
fn upstream(first: u32, count: u32) -> u64 {
    let (mut pair, _) = start(server_config(), client_config(Encryption::Plain));
    pair.net.run_for(secs(1));
    let before = pair.net.counters(pair.client, pair.server).sent.bytes;
    let end = pair.net.now() + secs(9);
    for number in first..first + count {
        // The kind, the checksum, the number, the length, and one byte of a message.
        let message = [&number.to_le_bytes()[..], &[1, 0], b"!"].concat();
        let spoofed = [&[PLAIN][..], &crc(&message).to_le_bytes(), &message].concat();
        assert_eq!(spoofed.len(), 12);
        pair.net.inject(SERVER, CLIENT, &spoofed);
        pair.net.run_for(ms(20));
    }
    pair.net.run_until(end);
    pair.net.counters(pair.client, pair.server).sent.bytes - before
}

#[test]
fn w60_spoofed_datagrams_draw_few_bytes_of_any_kind_from_a_client() {
    let idle = upstream(0, 0);
    // Far ahead, just ahead, and beyond the window.
    for first in [3_600, 5, 5_000] {
        // An ack, a request, and a message that shows where the client is (W54).
        let one = upstream(first, 1).saturating_sub(idle);
        assert!(one <= 10 + 18 + 24, "{one} bytes for a datagram with number {first}");
        // Mostly acks, which name the last messages again.
        let many = upstream(first, 450).saturating_sub(idle);
        assert!(many <= 4 * 450 * 12, "{many} bytes for 450 datagrams from number {first} on");
    }
}

#[test]
fn w60_a_lossy_path_draws_fewer_bytes_of_requests_than_of_data() {
    let (mut pair, tap) = start(server_config(), client_config(Encryption::Encrypted));
    pair.net.run_for(secs(1));
    tap.clear();
    let server = pair.server;
    let client = pair.client;
    pair.net.set_link(client, server, Link::default().delay(ms(10)).loss(0.5));
    for number in 0..1_500 {
        pair.client_send(&numbered(number, 40));
        pair.net.run_for(ms(5));
    }
    let sent = tap.bytes(CLIENT, &[SEALED]);
    let requested = tap.bytes(SERVER, &[RESEND]);
    assert!(requested <= sent / 2, "{requested} bytes of requests for {sent} bytes of data");
    pair.net.set_link(client, server, Link::default().delay(ms(10)));
    pair.net.run_for(secs(5));
    assert_eq!(pair.server_received().len(), 1_500);
}

#[test]
fn w61_a_forged_resend_request_draws_few_bytes() {
    for in_flight in [false, true] {
        let (mut pair, tap) = start(server_config(), client_config(Encryption::Plain));
        pair.net.run_for(secs(1));
        for number in 0..63 {
            pair.server_send(&numbered(number, 480));
        }
        pair.net.run_for(if in_flight { ms(15) } else { secs(2) });
        tap.clear();
        pair.net.inject(CLIENT, SERVER, &number_list(RESEND, 0..63));
        pair.net.run_for(ms(4));
        let drawn = tap.bytes(SERVER, &[PLAIN]);
        assert!(drawn > 0 && drawn <= 4 * 508, "{drawn} bytes, in flight: {in_flight}");
    }
}

#[test]
fn w61_a_flood_of_forged_resend_requests_draws_little() {
    for encryption in [Encryption::Plain, Encryption::Encrypted] {
        let (mut pair, tap) = start(server_config(), client_config(encryption));
        for number in 0..63 {
            pair.server_send(&numbered(number, 480));
        }
        pair.net.run_for(secs(2));
        tap.clear();
        for _ in 0..10_000 {
            pair.net.inject(CLIENT, SERVER, &number_list(RESEND, 0..63));
            pair.net.run_for(ms(1));
        }
        let drawn = tap.bytes(SERVER, &[PLAIN, SEALED]);
        // 8 kB per second, and each message once.
        assert!(drawn < 10 * 9_000 + 63 * 508, "{drawn} bytes in 10 s");
    }
}
