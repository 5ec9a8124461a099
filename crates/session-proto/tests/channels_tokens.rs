//! A server that verifies connect tokens admits only players with a valid one, in sessions whose key is pinned (W113).

use crate::common;

use common::{
    channels::{ChannelPair, table},
    *,
};
use rallypoint_netsim::Link;
use rallypoint_session_proto::{
    Client, ClientConfig, ClientEvent, ConnectToken, Encryption, Endpoint, EndpointConfig, LoginError, PublicKey,
    ServerEvent, StaticKey, TokenError, TokenIssuer, TokenVerifier, WallClock,
};
use std::time::Instant;

/// Seconds since 1970 at the start of each test.
const NOW: u64 = 1_800_000_000;

struct Setup {
    issuer: TokenIssuer,
    server: EndpointConfig,
    key: PublicKey,
}

fn setup() -> Setup {
    let issuer = TokenIssuer::from_seed([5; 32]).unwrap();
    let key = StaticKey::from_bytes([6; 32]).unwrap();
    let public = key.public();
    let mut server = EndpointConfig::for_game("tag").channels(table(100));
    server.static_key = Some(key);
    // The network of a test starts now.
    let clock = WallClock { at: Instant::now(), unix_seconds: NOW };
    server.tokens = Some(TokenVerifier { issuer: issuer.public(), clock });
    server.decides_logins = true;
    Setup { issuer, server, key: public }
}

/// The reply to a client that logs in with this token.
fn log_in(setup: &Setup, token: Option<ConnectToken>, encryption: Encryption) -> Result<Vec<u8>, String> {
    let mut client = ClientConfig::new("alice", "tag").channels(table(100));
    client.encryption = encryption;
    client.token = token;
    let mut pair = ChannelPair::start(1, Link::default().delay(ms(10)), setup.server.clone(), client);
    pair.net.run_for(secs(5));
    if let [(_, ClientEvent::LoginFailed(LoginError::Refused(reason)))] = &pair.client().events[..] {
        assert!(pair.server().events.is_empty(), "{:?}", pair.server().events);
        assert_eq!(pair.server().server.stats().tokens_refused, 1);
        return Err(reason.clone());
    }
    let [(_, ServerEvent::LoginRequest(request))] = &pair.server().events[..] else {
        panic!("{:?}, {:?}", pair.server().events, pair.client().events);
    };
    Ok(request.token.clone().expect("a token").data)
}

#[test]
fn w113_a_valid_token_is_accepted_and_its_data_reaches_the_application() {
    let setup = setup();
    let token = setup.issuer.issue(&setup.key, "alice", NOW + 600, b"account 17").unwrap();
    assert_eq!(log_in(&setup, Some(token), Encryption::Pinned(setup.key)), Ok(b"account 17".to_vec()));
}

#[test]
fn w113_a_token_for_another_name_server_or_time_or_of_another_service_is_refused() {
    let setup = setup();
    let other = TokenIssuer::from_seed([7; 32]).unwrap();
    let invalid = "the connect token is not valid for this server and username";
    let tokens = [
        (setup.issuer.issue(&setup.key, "bob", NOW + 600, b""), invalid),
        (setup.issuer.issue(&PublicKey::new([1; 32]), "alice", NOW + 600, b""), invalid),
        (other.issue(&setup.key, "alice", NOW + 600, b""), invalid),
        (setup.issuer.issue(&setup.key, "alice", NOW, b""), "the connect token has expired: sign in again"),
    ];
    for (token, reason) in tokens {
        assert_eq!(log_in(&setup, Some(token.unwrap()), Encryption::Pinned(setup.key)), Err(reason.into()));
    }
    let missing = "this server requires a connect token: sign in to the game's account service";
    assert_eq!(log_in(&setup, None, Encryption::Pinned(setup.key)), Err(missing.into()));
}

#[test]
fn w113_every_bit_of_a_token_counts() {
    let setup = setup();
    let token = setup.issuer.issue(&setup.key, "alice", NOW + 600, b"data").unwrap();
    let verifier = setup.server.tokens.unwrap();
    let verify = |bytes: &[u8]| verifier.verify(verifier.clock.at, &setup.key, "alice", bytes);
    assert!(verify(token.as_bytes()).is_ok());
    for bit in 0..token.as_bytes().len() * 8 {
        let mut forged = token.as_bytes().to_vec();
        forged[bit / 8] ^= 1 << (bit % 8);
        assert!(verify(&forged).is_err(), "bit {bit}");
    }
    for length in 0..token.as_bytes().len() {
        assert!(verify(&token.as_bytes()[..length]).is_err(), "{length} bytes");
        assert!(ConnectToken::from_bytes(&token.as_bytes()[..length]).is_err());
    }
    assert_eq!(ConnectToken::from_bytes(token.as_bytes()), Ok(token));
}

#[test]
fn w113_a_token_is_sent_only_to_a_server_that_is_verified() {
    let setup = setup();
    let token = setup.issuer.issue(&setup.key, "alice", NOW + 600, b"").unwrap();
    for encryption in [Encryption::Plain, Encryption::Encrypted] {
        let mut config = ClientConfig::new("alice", "tag").channels(table(100));
        config.encryption = encryption.clone();
        config.token = Some(token.clone());
        let error = Client::new(Instant::now(), SERVER.into(), config, [1; 32]).unwrap_err();
        assert_eq!(error.to_string(), "a connect token needs a session with a pinned server key");
        // A client that logs in without a pinned key is refused before its token is looked at.
        assert_eq!(log_in(&setup, None, encryption), Err(TokenError::NotPinned.to_string()));
    }
    let mut server = setup.server;
    server.static_key = None;
    assert!(Endpoint::new(server, [1; 32]).is_err());
}
