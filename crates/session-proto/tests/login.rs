//! Logins: plain, encrypted, pinned, refused, lost.

use crate::common;

use common::*;
use rallypoint_netsim::Link;
use rallypoint_session_proto::{ClientEvent, Encryption, EncryptionPolicy, LoginError, StaticKey};

fn exchange_messages(encryption: Encryption) {
    let link = Link::default().delay(ms(25));
    let key = StaticKey::from_bytes([9; 32]).unwrap();
    let mut server = server_config();
    server.static_key = Some(key);
    let mut pair = Pair::start(1, link, server, client_config(encryption));
    pair.wait_for_player();
    assert!(pair.client().has(&ClientEvent::Connected));
    for number in 0..100 {
        pair.client_send(&numbered(number, 50));
        pair.server_send(&numbered(number, 60));
    }
    pair.net.run_for(secs(1));
    let received: Vec<u32> = pair.server_received().iter().map(|(_, message)| number_of(message)).collect();
    assert!(received.into_iter().eq(0..100));
    let received: Vec<u32> = pair.client().received.iter().map(|(_, message)| number_of(message)).collect();
    assert!(received.into_iter().eq(0..100));
    let stats = pair.client().client.connection().unwrap().stats();
    assert_eq!(stats.resends, 0, "{stats:?}");
}

#[test]
fn a_plain_login_leads_to_a_session() {
    exchange_messages(Encryption::Plain);
}

#[test]
fn an_encrypted_login_leads_to_a_session() {
    exchange_messages(Encryption::Encrypted);
}

#[test]
fn a_login_with_a_pinned_key_leads_to_a_session() {
    exchange_messages(Encryption::Pinned(StaticKey::from_bytes([9; 32]).unwrap().public()));
}

fn refusal(
    change: impl Fn(&mut rallypoint_session_proto::EndpointConfig),
    client: rallypoint_session_proto::ClientConfig,
) -> String {
    let mut server = server_config();
    change(&mut server);
    let mut pair = Pair::start(1, Link::default().delay(ms(25)), server, client);
    pair.net.run_for(secs(6));
    let reason = |event: &(_, ClientEvent)| match &event.1 {
        ClientEvent::LoginFailed(LoginError::Refused(reason)) => Some(reason.clone()),
        _ => None,
    };
    let events = &pair.client().events;
    events.iter().find_map(reason).unwrap_or_else(|| panic!("{events:?}"))
}

#[test]
fn s18_a_login_for_another_game_is_refused() {
    let mut client = client_config(Encryption::Plain);
    client.game = "chess".into();
    assert_eq!(refusal(|_| {}, client), "this server runs another game");
}

#[test]
fn s20_the_policy_is_enforced_and_a_client_does_not_fall_back() {
    let plain_only =
        |config: &mut rallypoint_session_proto::EndpointConfig| config.encryption = EncryptionPolicy::Plain;
    assert_eq!(refusal(plain_only, client_config(Encryption::Encrypted)), "this server does not support encryption");
    let encrypted_only = |config: &mut rallypoint_session_proto::EndpointConfig| {
        config.encryption = EncryptionPolicy::Encrypted;
    };
    assert_eq!(refusal(encrypted_only, client_config(Encryption::Plain)), "this server requires encryption");
}

#[test]
fn s30_a_server_with_another_key_refuses_a_pin() {
    let other = StaticKey::from_bytes([8; 32]).unwrap().public();
    assert_eq!(refusal(|_| {}, client_config(Encryption::Pinned(other))), "this server has another key");
}

#[test]
fn s12_a_client_gives_up_after_5_s() {
    let mut pair = Pair::start(1, Link::default().loss(1.0), server_config(), client_config(Encryption::Plain));
    pair.net.run_for(ms(4_999));
    assert!(pair.client().events.is_empty());
    pair.net.run_for(ms(2));
    assert!(pair.client().has(&ClientEvent::LoginFailed(LoginError::TimedOut)));
    let sent = pair.net.counters(pair.client, pair.server).sent.datagrams;
    assert_eq!(sent, 9, "100 ms, growing by half up to 1 s");
}

#[test]
fn p90_of_logins_with_20_percent_loss_is_below_600_ms() {
    let link = Link::default().delay(ms(25)).loss(0.2);
    let mut times: Vec<_> = (0..200)
        .map(|seed| {
            let mut pair = Pair::start(seed, link, server_config(), client_config(Encryption::Encrypted));
            let client = pair.client;
            assert!(pair.net.run_while(secs(10), |net| !net.machine(client).client.is_connected()));
            pair.net.elapsed()
        })
        .collect();
    times.sort();
    assert!(times[180] < ms(600), "{:?}", times[180]);
}
