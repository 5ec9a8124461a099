//! RSA-1024 logins: only if the feature is on and both server and client enable them (S20, S30).
#![cfg(feature = "rsa")]

use crate::common;

use common::{forge::*, *};
use rallypoint_netsim::Link;
use rallypoint_session_proto::{ClientEvent, Encryption, LoginError};

#[test]
fn s30_rsa_logins_succeed_where_they_are_allowed_and_are_refused_elsewhere() {
    for allowed in [true, false] {
        let mut config = server_config();
        config.rsa_1024 = allowed;
        let mut pair = Pair::start(1, Link::default().delay(ms(25)), config, client_config(Encryption::Rsa1024));
        pair.net.run_for(secs(1));
        let refused = ClientEvent::LoginFailed(LoginError::Refused("RSA-1024 logins are disabled".into()));
        assert_eq!(pair.client().has(&refused), !allowed);
        if allowed {
            pair.client_send(b"hello");
            pair.net.run_for(secs(1));
            assert_eq!(pair.server_received().len(), 1);
        }
    }
}

#[test]
fn s30_a_key_is_used_for_few_fields_that_it_does_not_open() {
    let mut config = server_config();
    config.rsa_1024 = true;
    let mut pair = Pair::start(1, Link::default().delay(ms(25)), config, client_config(Encryption::Rsa1024));
    let tap = Wiretap::attach(&mut pair.net);
    pair.net.isolate(pair.client, true);
    let mut forged = vec![0x0f, 0, 1, 1, 1, 1];
    forged.extend([7; 128]);
    for _ in 0..40 {
        pair.net.inject(SERVER, CLIENT, &forged);
        pair.net.run_for(ms(1));
    }
    pair.net.run_for(secs(1));
    let logins: std::collections::HashSet<Vec<u8>> = tap.sent(CLIENT, &[0x0f]).into_iter().collect();
    assert_eq!(logins.len(), 2, "the second and the third key, after four fields each");
    // The third key has seen its share, too: the login can no longer succeed.
    pair.net.isolate(pair.client, false);
    pair.net.run_for(secs(5));
    assert!(pair.client().has(&ClientEvent::LoginFailed(LoginError::TimedOut)));
}

#[test]
fn s30_a_few_forged_fields_do_not_stop_a_login() {
    let mut config = server_config();
    config.rsa_1024 = true;
    let mut pair = Pair::start(1, Link::default().delay(ms(25)), config, client_config(Encryption::Rsa1024));
    let mut forged = vec![0x0f, 0, 1, 1, 1, 1];
    forged.extend([7; 128]);
    for _ in 0..6 {
        pair.net.inject(SERVER, CLIENT, &forged);
        pair.net.run_for(ms(1));
    }
    pair.net.run_for(secs(2));
    assert!(pair.client().client.is_connected());
}
