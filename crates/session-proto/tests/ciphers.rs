//! Which cipher a session uses (W84): AES-256-GCM if both sides may use it, and ChaCha20-Poly1305 with every other peer.

use crate::common;

use common::{forge::*, *};
use rallypoint_netsim::{FilterAction, Link};
use rallypoint_session_proto::{Cipher, Encryption, StaticKey};
use std::{cell::RefCell, rc::Rc};

/// Logs in, exchanges messages in both directions, and returns the ciphers of the client's and the server's connection.
fn ciphers(encryption: Encryption, client_has_aes: bool, server_has_aes: bool, loss: f64) -> [Option<Cipher>; 2] {
    let mut server = server_config();
    server.static_key = Some(StaticKey::from_bytes([9; 32]).unwrap());
    server.connection.aes_256_gcm = server_has_aes;
    let mut client = client_config(encryption);
    client.connection.aes_256_gcm = client_has_aes;
    let mut pair = Pair::start(1, Link::default().delay(ms(25)).loss(loss), server, client);
    pair.wait_for_player();
    for number in 0..100 {
        pair.client_send(&numbered(number, 50));
        pair.server_send(&numbered(number, 60));
    }
    pair.net.run_for(secs(5));
    let received: Vec<u32> = pair.server_received().iter().map(|(_, message)| number_of(message)).collect();
    assert!(received.into_iter().eq(0..100));
    let received: Vec<u32> = pair.client().received.iter().map(|(_, message)| number_of(message)).collect();
    assert!(received.into_iter().eq(0..100));
    let endpoint = &pair.server().endpoint;
    let at_server = endpoint.connection(endpoint.players().next().unwrap()).unwrap();
    let at_client = pair.client().client.connection().unwrap();
    assert_eq!(at_server.stats().dropped + at_client.stats().dropped, 0, "nothing failed to open");
    [at_client.cipher(), at_server.cipher()]
}

#[test]
fn w84_aes_is_used_if_both_sides_may_use_it() {
    let pinned = Encryption::Pinned(StaticKey::from_bytes([9; 32]).unwrap().public());
    for encryption in [Encryption::Encrypted, pinned] {
        for (client_has_aes, server_has_aes) in [(true, true), (true, false), (false, true), (false, false)] {
            let expected = if client_has_aes && server_has_aes { Cipher::Aes256Gcm } else { Cipher::ChaCha20Poly1305 };
            for loss in [0.0, 0.3] {
                assert_eq!(ciphers(encryption.clone(), client_has_aes, server_has_aes, loss), [Some(expected); 2]);
            }
        }
    }
}

#[test]
fn w84_a_plain_session_has_no_cipher() {
    assert_eq!(ciphers(Encryption::Plain, true, true, 0.0), [None; 2]);
}

/// An attacker on the path holds the first message up, sends false ones before it, and repeats it afterwards.
#[test]
fn w84_false_first_messages_choose_no_cipher() {
    for has_aes in [true, false] {
        let mut server = server_config();
        server.connection.aes_256_gcm = true;
        let mut client = client_config(Encryption::Encrypted);
        client.connection.aes_256_gcm = has_aes;
        let mut pair = Pair::start(1, Link::default().delay(ms(25)), server, client);
        let held = Rc::new(RefCell::new(Vec::new()));
        let first = held.clone();
        pair.net.set_filter(move |packet| {
            let is_held = packet.from == CLIENT.into() && packet.bytes[0] == SEALED;
            if is_held {
                first.borrow_mut().clone_from(packet.bytes);
            }
            if is_held { FilterAction::Drop } else { FilterAction::Pass }
        });
        pair.net.run_for(ms(200));
        let first = held.borrow().clone();
        assert_eq!(first.len(), 32, "the proof of the login");
        // A wrong tag, another number, a longer message, a plain one, and one that is too short for a tag.
        let with_crc = |mut bytes: Vec<u8>| {
            let crc = crc(&bytes[5..]);
            bytes[1..5].copy_from_slice(&crc.to_le_bytes());
            bytes
        };
        let mut other_number = first.clone();
        other_number[5] = 1;
        let mut longer = first.clone();
        longer[14] += 1;
        longer.push(0);
        let plain = [&[PLAIN, 0, 0, 0, 0], &first[5..14], &[7; 8], &[0, 0]].concat();
        let mut short = first[..31].to_vec();
        short[14] -= 1;
        for forged in
            [with_wrong_seal(&first), with_crc(other_number), with_crc(longer), with_crc(plain), with_crc(short)]
        {
            for _ in 0..20 {
                pair.net.inject(CLIENT, SERVER, &forged);
            }
        }
        pair.net.run_for(ms(50));
        assert_eq!(pair.server().connect_count(), 0);
        assert_eq!(pair.server().endpoint.stats().strays, 100);
        pair.net.clear_filter();
        for _ in 0..3 {
            pair.net.inject(CLIENT, SERVER, &first);
        }
        pair.net.run_for(ms(200));
        assert_eq!(pair.server().connect_count(), 1);
        pair.client_send(b"hello");
        pair.server_send(b"hello");
        pair.net.run_for(secs(1));
        assert_eq!((pair.server_received().len(), pair.client().received.len()), (1, 1));
        let endpoint = &pair.server().endpoint;
        let connection = endpoint.connection(endpoint.players().next().unwrap()).unwrap();
        let expected = if has_aes { Cipher::Aes256Gcm } else { Cipher::ChaCha20Poly1305 };
        assert_eq!(connection.cipher(), Some(expected));
        assert_eq!(connection.stats().dropped, 0);
    }
}

/// A session that begins near the last number ends with it, whatever its cipher is, and the next one has other keys.
#[test]
fn w84_a_session_near_the_last_number_logs_in_again() {
    for has_aes in [true, false] {
        let mut server = server_config();
        server.connection.aes_256_gcm = has_aes;
        server.connection.first_number = (1 << 30) - 8;
        let mut client = client_config(Encryption::Encrypted);
        client.connection = server.connection.clone();
        client.reconnect = true;
        let mut pair = Pair::start(1, Link::default().delay(ms(25)), server, client);
        let tap = Wiretap::attach(&mut pair.net);
        pair.wait_for_player();
        for number in 0..7 {
            pair.client_send(&numbered(number, 50));
        }
        pair.net.run_for(secs(4));
        assert_eq!(pair.server_received().len(), 7);
        assert_eq!(pair.server().connect_count(), 2, "the second session");
        let proofs: std::collections::HashSet<Vec<u8>> = tap
            .sent(CLIENT, &[SEALED])
            .into_iter()
            .filter(|bytes| bytes.len() == 32)
            .map(|bytes| bytes[16..].to_vec())
            .collect();
        assert!(proofs.len() >= 2, "the same number, sealed with other keys");
    }
}

/// Everything that a client has sent in a session is repeated in its next one, and while that begins.
#[test]
fn w84_datagrams_of_an_earlier_session_neither_choose_a_cipher_nor_deliver_messages() {
    for (has_aes, has_aes_later) in [(true, false), (false, true), (true, true)] {
        let mut server = server_config();
        server.connection.aes_256_gcm = true;
        let mut config = client_config(Encryption::Encrypted);
        config.connection.aes_256_gcm = has_aes;
        let mut pair = Pair::start(1, Link::default().delay(ms(25)), server, config.clone());
        let tap = Wiretap::attach(&mut pair.net);
        pair.wait_for_player();
        (0..20).for_each(|number| pair.client_send(&numbered(number, 50)));
        pair.net.run_for(secs(1));
        let replayed = tap.sent(CLIENT, &[SEALED]);
        pair.net.with(pair.client, |app, now| app.client.close(now));
        pair.net.run_for(secs(5));
        config.connection.aes_256_gcm = has_aes_later;
        let now = pair.net.now();
        pair.net.with(pair.client, |app, _| *app = ClientApp::new(now, SERVER.into(), config, 3));
        for _ in 0..40 {
            replayed.iter().for_each(|bytes| pair.net.inject(CLIENT, SERVER, bytes));
            pair.net.run_for(ms(5));
        }
        pair.wait_for_player();
        (20..40).for_each(|number| pair.client_send(&numbered(number, 50)));
        replayed.iter().for_each(|bytes| pair.net.inject(CLIENT, SERVER, bytes));
        pair.net.run_for(secs(2));
        let received: Vec<u32> =
            pair.server().received.values().flatten().map(|(_, message)| number_of(message)).collect();
        assert!(received.iter().copied().eq(0..40), "{received:?}");
        let endpoint = &pair.server().endpoint;
        let connection = endpoint.connection(endpoint.players().next().unwrap()).unwrap();
        let expected = if has_aes_later { Cipher::Aes256Gcm } else { Cipher::ChaCha20Poly1305 };
        assert_eq!(connection.cipher(), Some(expected));
    }
}
