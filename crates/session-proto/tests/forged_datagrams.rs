//! Forged datagrams of every kind change nothing: all messages arrive in order, and no session ends.

use crate::common;

use common::*;
use rallypoint_netsim::{Link, Rng};
use rallypoint_session_proto::{ClientEvent, Connection, Encryption, LoginError, StaticKey};

/// An ack (ff) or a resend request (aa) of these numbers.
fn number_list(kind: u8, numbers: impl Iterator<Item = u32>) -> Vec<u8> {
    let mut bytes = vec![kind, 0];
    for number in numbers {
        bytes[1] += 1;
        bytes.extend(number.to_le_bytes());
        bytes.extend((!number).to_le_bytes());
    }
    bytes
}

/// Traffic both ways with loss, and `forge` is called before every message.
fn with_forgeries(encryption: Encryption, loss: f64, mut forge: impl FnMut(&mut Pair, u32)) -> Pair {
    let mut pair = Pair::connect(3, Link::default().delay(ms(25)).loss(loss), encryption);
    for number in 0..500 {
        forge(&mut pair, number);
        pair.client_send(&numbered(number, 80));
        pair.server_send(&numbered(number, 80));
        pair.net.run_for(ms(10));
    }
    pair.net.run_for(secs(8));
    let numbers =
        |messages: &[(_, Vec<u8>)]| messages.iter().map(|(_, message)| number_of(message)).collect::<Vec<_>>();
    assert!(numbers(pair.server_received()).into_iter().eq(0..500), "{}", pair.server_received().len());
    assert!(numbers(&pair.client().received).into_iter().eq(0..500), "{}", pair.client().received.len());
    assert_eq!((pair.server().connect_count(), pair.server().disconnects().len()), (1, 0));
    pair
}

#[test]
fn s24_forged_acks_can_delay_messages_but_not_lose_them() {
    for loss in [0.0, 0.1, 0.3] {
        // Every number around the current one is acked before it is sent and while it is in flight.
        with_forgeries(Encryption::Plain, loss, |pair, number| {
            let numbers = || number.saturating_sub(20)..number + 20;
            pair.net.inject(CLIENT, SERVER, &number_list(0xff, numbers()));
            pair.net.inject(SERVER, CLIENT, &number_list(0xff, numbers()));
        });
    }
}

#[test]
fn s24_a_forged_ack_of_the_last_message_does_not_lose_it() {
    let mut pair = Pair::plain(3, Link::default().delay(ms(25)));
    pair.client_send(&numbered(0, 10));
    pair.net.run_for(secs(1));
    // The message is lost, and a forger acks it.
    pair.net.partition(pair.client, pair.server, true);
    pair.client_send(&numbered(1, 10));
    pair.net.inject(SERVER, CLIENT, &number_list(0xff, 0..10));
    pair.net.run_for(secs(5));
    pair.net.partition(pair.client, pair.server, false);
    pair.client_send(&numbered(2, 10));
    pair.net.run_for(secs(1));
    assert_eq!(pair.server_received().len(), 3);
}

#[test]
fn s25_forged_resend_requests_cause_few_resends() {
    let undisturbed = with_forgeries(Encryption::Plain, 0.0, |_, _| {});
    let pair = with_forgeries(Encryption::Plain, 0.0, |pair, number| {
        for _ in 0..5 {
            pair.net.inject(CLIENT, SERVER, &number_list(0xaa, number.saturating_sub(30)..number + 30));
            pair.net.inject(SERVER, CLIENT, &number_list(0xaa, number.saturating_sub(30)..number + 30));
        }
    });
    // What requests draw from each side in 5 s (W61): twice four datagrams at once and 8 kB/s, for messages that wait for their ack
    // and for acked ones; and each message once more.
    let server_stats = |pair: &Pair| pair.server().endpoint.connection(pair.server().player()).map(Connection::stats);
    for stats in [server_stats(&pair), pair.client().client.connection().map(Connection::stats)] {
        let stats = stats.unwrap();
        let drawn = stats.resends * 104;
        assert!(drawn <= 2 * (2_032 + 5 * 8_000) + 500 * 104, "{drawn} bytes: {stats:?}");
        assert!(stats.copies <= 500, "{stats:?}");
    }
    // With the copies of a stream that seems to lose messages, and the acks of everything that arrives again.
    let expected = undisturbed.net.totals().sent.bytes;
    let sent = pair.net.totals().sent.bytes;
    assert!(sent < 6 * expected, "{sent} bytes instead of {expected}");
}

#[test]
fn random_bytes_and_forged_headers_change_nothing() {
    for encryption in [Encryption::Plain, Encryption::Encrypted] {
        let mut rng = Rng::new(1);
        with_forgeries(encryption, 0.05, |pair, _| {
            for kind in [0x03, 0x0f, 0x05, 0x55, 0xc0, 0xff, 0xaa, 0x33, 0xcc, 0x80, 0x88, rng.next_u64() as u8] {
                let mut bytes = vec![0; 1 + rng.below(60) as usize];
                rng.fill(&mut bytes);
                bytes[0] = kind;
                pair.net.inject(CLIENT, SERVER, &bytes);
                pair.net.inject(SERVER, CLIENT, &bytes);
            }
        });
    }
}

#[test]
fn replayed_datagrams_are_ignored() {
    for encryption in [Encryption::Plain, Encryption::Encrypted] {
        let mut pair = Pair::connect(3, Link::default().delay(ms(25)), encryption);
        // Every datagram arrives twice, half of them half a second late.
        let link = Link::default().delay(ms(25)).duplicate(1.0).reorder(0.5, ms(500));
        pair.net.set_default_link(link);
        for number in 0..200 {
            pair.client_send(&numbered(number, 80));
            pair.net.run_for(ms(10));
        }
        pair.net.run_for(secs(5));
        let received: Vec<u32> = pair.server_received().iter().map(|(_, message)| number_of(message)).collect();
        assert!(received.into_iter().eq(0..200));
    }
}

#[test]
fn s19_a_forged_bad_login_does_not_abort_a_login() {
    let mut pair = Pair::start(1, Link::default().delay(ms(100)), server_config(), client_config(Encryption::Plain));
    pair.net.inject(SERVER, CLIENT, b"\xc0banned");
    pair.net.run_for(secs(1));
    assert!(pair.client().client.is_connected());
}

#[test]
fn s19_a_bad_login_without_a_success_is_final() {
    let mut pair = Pair::start(1, Link::default().loss(1.0), server_config(), client_config(Encryption::Plain));
    pair.net.inject(SERVER, CLIENT, b"\xc0banned");
    pair.net.run_for(ms(240));
    assert!(pair.client().events.is_empty());
    pair.net.run_for(ms(20));
    assert!(pair.client().has(&ClientEvent::LoginFailed(LoginError::Refused("banned".into()))));
}

#[test]
fn s19_s30_forged_login_successes_change_nothing() {
    let key = StaticKey::from_bytes([9; 32]).unwrap();
    let mut config = server_config();
    config.static_key = Some(key.clone());
    let client = client_config(Encryption::Pinned(key.public()));
    let mut pair = Pair::start(1, Link::default().delay(ms(100)), config, client);
    let mut encrypted = vec![0x0f, 0, 1, 1, 1, 1];
    encrypted.extend([7; 128]);
    // They arrive before and after the login is answered; accepting a plain one would be a downgrade (S20).
    for _ in 0..50 {
        pair.net.inject(SERVER, CLIENT, b"\x03\x00\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01");
        pair.net.inject(SERVER, CLIENT, &encrypted);
        pair.net.inject(([6, 6, 6, 6], 6), CLIENT, b"\x03\x00\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01");
        pair.net.run_for(ms(20));
    }
    assert!(pair.client().client.connection().is_some_and(Connection::is_encrypted));
    pair.client_send(b"hello");
    pair.net.run_for(secs(1));
    assert_eq!(pair.server_received().len(), 1);
}

#[test]
fn s20_an_encrypted_session_drops_plain_data() {
    let mut pair = Pair::connect(1, Link::default().delay(ms(25)), Encryption::Encrypted);
    pair.net.run_for(secs(1));
    // The first message of a plain server: type, CRC, number 0, 5 bytes.
    let mut plain = b"\x05\0\0\0\0\0\0\0\0\x05\0hello".to_vec();
    let crc = crc(&plain[5..]);
    plain[1..5].copy_from_slice(&crc.to_le_bytes());
    pair.net.inject(SERVER, CLIENT, &plain);
    pair.net.run_for(secs(1));
    assert!(pair.client().received.is_empty());
    assert_eq!(pair.client().client.connection().unwrap().stats().dropped, 1, "the datagram is well-formed");
}

/// CRC-32/ISO-HDLC, bit by bit.
fn crc(bytes: &[u8]) -> u32 {
    let step = |crc: u32| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), |crc, _| step(crc)))
}

#[test]
fn two_servers_with_each_others_forged_datagrams_do_not_start_a_loop() {
    let mut pair = Pair::start(1, Link::default().delay(ms(10)), server_config(), client_config(Encryption::Plain));
    let other = ([10, 0, 0, 2], 45_555);
    let second = pair.net.add(other, ServerApp::with_seed(server_config(), 7));
    for (server, from) in [(pair.server, other), (second, SERVER)] {
        let to = pair.net.address(server);
        pair.net.with(server, |app, _| {
            let info = vec![vec![0x80; 20], b"\x81name\0text".to_vec()];
            app.endpoint.set_query_replies(rallypoint_session_proto::QueryReplies::new(info, vec![]));
        });
        for datagram in [
            &b"\x80"[..],
            b"\x88",
            b"\x03\x00alice\0tag",
            b"\x33",
            b"\xcc",
            b"\x03\x00\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01",
            b"\xc0no",
            b"\0go",
            b"\x80\0\0\0\0\0\0\0\0\0\0\0\0tag",
        ] {
            pair.net.inject(from, to, datagram);
        }
    }
    pair.net.run_for(secs(60));
    // Each answers the query and the login that seem to come from the other, and nothing else.
    let sent =
        pair.net.counters(pair.server, second).sent.datagrams + pair.net.counters(second, pair.server).sent.datagrams;
    assert_eq!(sent, 2 * 3);
}
