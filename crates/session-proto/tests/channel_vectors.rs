//! Deliveries, replies and refusals of a server for sequences of payloads, and a connect token: golden vectors for peers in other
//! languages (docs/session.md).

use crate::common;

use common::{channels::ChannelPair, *};
use rallypoint_netsim::Link;
use rallypoint_session_proto::{
    Channel, ChannelMode, ChannelTable, ClientConfig, ClientEvent, DisconnectReason, Encryption, EndpointConfig,
    ONLY_CHANNEL, PublicKey, TokenIssuer, TokenVerifier, WallClock,
};
use serde_json::Value;
use std::time::Instant;

fn vectors() -> Value {
    serde_json::from_str(include_str!("vectors/channel-sessions.json")).expect("vectors in JSON")
}

fn hex(text: &Value) -> Vec<u8> {
    let text = text.as_str().expect("hexadecimal digits");
    let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("hexadecimal digits");
    (0..text.len()).step_by(2).map(digit).collect()
}

fn table(channels: &Value) -> ChannelTable {
    let channel = |channel: &Value| {
        let mode = match channel["mode"].as_str() {
            Some("reliable ordered") => ChannelMode::ReliableOrdered,
            Some("reliable unordered") => ChannelMode::ReliableUnordered,
            Some("sequenced") => ChannelMode::Sequenced,
            _ => ChannelMode::Expiring,
        };
        let size = |name: &str| channel[name].as_u64().unwrap() as usize;
        Channel {
            max_to_server: size("max_to_server"),
            max_to_client: size("max_to_client"),
            receipts: channel["receipts"] == true,
            ..Channel::new(mode, 1)
        }
    };
    ChannelTable::new(channels.as_array().unwrap().iter().map(channel).collect::<Vec<_>>()).unwrap()
}

#[test]
fn w110_sequences_of_payloads_are_delivered_and_refused_as_the_vectors_say() {
    for session in vectors()["sessions"].as_array().unwrap() {
        let name = &session["name"];
        let table = table(&session["table"]);
        let server = EndpointConfig::for_game("tag").channels(table.clone());
        let other = ClientConfig::new("alice", "tag").channels(table);
        let mut pair = ChannelPair::start(1, Link::default().delay(ms(5)), server, other);
        let config = ClientConfig { encryption: Encryption::Plain, ..ClientConfig::new("bob", "tag+m1") };
        let app = ClientApp::new(pair.net.now(), SERVER.into(), config, 9);
        let client = pair.net.add(([10, 0, 9, 9], 999), app);
        pair.net.run_for(secs(1));
        for payload in session["to_server"].as_array().unwrap() {
            pair.net.with(client, |app, now| app.client.send(now, ONLY_CHANNEL, &hex(payload))).unwrap();
            pair.net.run_for(ms(50));
        }
        pair.net.run_for(secs(2));
        let expected: Vec<_> = session["delivered"].as_array().unwrap().iter().collect();
        assert_eq!(pair.server().received.len(), expected.len(), "{name}");
        for (received, expected) in pair.server().received.iter().zip(expected) {
            let expected = (expected["channel"].as_u64().unwrap(), hex(&expected["body"]));
            assert_eq!((u64::from(received.channel.get()), received.bytes.clone()), expected, "{name}");
        }
        let app = pair.net.machine(client);
        let replies: Vec<&Vec<u8>> =
            app.received.iter().map(|(_, bytes)| bytes).filter(|bytes| !bytes.is_empty()).collect();
        let expected: Vec<Vec<u8>> = session["to_client"].as_array().unwrap().iter().map(hex).collect();
        assert_eq!(replies, expected.iter().collect::<Vec<_>>(), "{name}");
        let reason = app.events.iter().find_map(|(_, event)| match event {
            ClientEvent::Disconnected(DisconnectReason::ClosedByPeer(text)) => Some(text.as_str()),
            _ => None,
        });
        assert_eq!(reason, session["reason"].as_str(), "{name}");
    }
}

#[test]
fn w113_a_token_has_the_bytes_of_the_vector() {
    let vectors = vectors();
    let token = &vectors["token"];
    let key = |name: &str| <[u8; 32]>::try_from(hex(&token[name])).unwrap();
    let issuer = TokenIssuer::from_seed(key("seed")).unwrap();
    let server = PublicKey::new(key("server_key"));
    let username = token["username"].as_str().unwrap();
    let expires = token["expires"].as_u64().unwrap();
    let issued = issuer.issue(&server, username, expires, &hex(&token["data"])).unwrap();
    assert_eq!(issued.as_bytes(), hex(&token["token"]));
    assert_eq!(issuer.public().to_string(), token["issuer_key"].as_str().unwrap());
    let clock = WallClock { at: Instant::now(), unix_seconds: expires - 1 };
    let verifier = TokenVerifier { issuer: issuer.public(), clock };
    assert!(verifier.verify(clock.at, &server, username, issued.as_bytes()).is_ok());
}
