//! RSA-1024 logins: only if the feature, the server and the client all want them (S20, S30).
#![cfg(feature = "rsa")]

mod common;

use common::*;
use rallypoint_netsim::Link;
use rallypoint_session_proto::{ClientEvent, Encryption, LoginError};

#[test]
fn s30_rsa_works_where_it_is_allowed_and_is_refused_where_it_is_not() {
    for allowed in [true, false] {
        let mut config = server_config();
        config.rsa_1024 = allowed;
        let mut pair = Pair::start(1, Link::default().delay(ms(25)), config, client_config(Encryption::Rsa1024));
        pair.net.run_for(secs(1));
        let refused = ClientEvent::LoginFailed(LoginError::Refused("RSA-1024 is obsolete and off".into()));
        assert_eq!(pair.client().has(&refused), !allowed);
        if allowed {
            pair.client_send(b"hello");
            pair.net.run_for(secs(1));
            assert_eq!(pair.server_heard().len(), 1);
        }
    }
}
