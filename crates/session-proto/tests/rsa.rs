//! RSA-1024 logins: only if the feature is on and both server and client enable them (S20, S30).
#![cfg(feature = "rsa")]

mod common;

use common::*;
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
