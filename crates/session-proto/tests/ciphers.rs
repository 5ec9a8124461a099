//! Which cipher a session uses (W84): AES-256-GCM if both sides may use it, and ChaCha20-Poly1305 with every other peer.

use crate::common;

use common::*;
use rallypoint_netsim::Link;
use rallypoint_session_proto::{Cipher, Encryption, StaticKey};

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
