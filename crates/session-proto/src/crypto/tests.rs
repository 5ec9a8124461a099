//! The known answers of S30.

use super::*;
use rallypoint_wire::session::{
    ClientDatagram, ClientSealed, KeyOffer, LoginSuccess, MessageNumber, Payload, ServerDatagram, ServerSealed,
};
use serde_json::Value;

fn bytes(value: &Value) -> Vec<u8> {
    let text = value.as_str().unwrap().as_bytes();
    text.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn key(value: &Value) -> StaticKey {
    StaticKey::from_bytes(bytes(value).try_into().unwrap()).unwrap()
}

struct Case {
    json: Value,
    login: Vec<u8>,
    info: [u8; 42],
    index: SlotIndex,
    uid: Uid,
    secret: Secret,
    rand: Rand,
    server: StaticKey,
    client: StaticKey,
    pinned: Option<PublicKey>,
}

fn cases() -> Vec<Case> {
    let vectors: Value = serde_json::from_str(include_str!("../../tests/vectors/session-encryption.json")).unwrap();
    let cases = vectors["cases"].as_array().unwrap().clone();
    assert_eq!(cases.len(), 2);
    let case = |json: Value| {
        let login = bytes(&json["login"]);
        let server = key(&json["server_static_private"]);
        let index = SlotIndex::new(json["index"].as_u64().unwrap() as u8).unwrap();
        let uid = Uid::new(json["uid"].as_u64().unwrap() as u32);
        let pinned = (json["mode"] == "auth").then(|| server.public());
        Case {
            info: hpke_info(&login, index, uid),
            login,
            index,
            uid,
            secret: Secret::new(bytes(&json["secret"]).try_into().unwrap()),
            rand: Rand::new(u64::from_str_radix(json["rand"].as_str().unwrap(), 16).unwrap()),
            client: key(&json["client_private"]),
            server,
            pinned,
            json,
        }
    };
    cases.into_iter().map(case).collect()
}

#[test]
fn s30_logins_match_the_known_answers() {
    for case in cases() {
        let Ok(ClientDatagram::Login(login)) = ClientDatagram::parse(&case.login) else { panic!("not a login") };
        let public = case.client.public();
        let offer = match &case.pinned {
            Some(server) => KeyOffer::Auth { public: public.as_bytes(), pin: server.pin() },
            None => KeyOffer::Base { public: public.as_bytes() },
        };
        assert_eq!(login.key, Some(&offer.to_field()));
        assert_eq!(case.info[..], bytes(&case.json["info"]));
        assert_eq!(case.server.public().to_string(), case.json["server_static_public"].as_str().unwrap());
    }
}

#[test]
fn s30_login_successes_match_the_known_answers() {
    for case in cases() {
        let mode = if case.pinned.is_some() { HpkeMode::Auth(&case.server) } else { HpkeMode::Base };
        let ephemeral = key(&case.json["server_ephemeral_private"]);
        let field = seal_grant(&mode, &case.client.public(), &ephemeral, &case.info, &case.secret, case.rand).unwrap();
        let mut success = Vec::new();
        let grant = rallypoint_wire::session::Grant::Encrypted(&field);
        LoginSuccess { index: case.index, uid: case.uid, grant }.emit(&mut success);
        assert_eq!(success, bytes(&case.json["login_success"]));
    }
}

#[test]
fn s30_a_client_opens_the_known_answers_and_nothing_else() {
    for case in cases() {
        let field: [u8; KEY_FIELD] = bytes(&case.json["login_success"])[6..].try_into().unwrap();
        let (secret, rand) = open_grant(case.pinned.as_ref(), &case.client, &field, &case.info).unwrap();
        assert_eq!((*secret, rand), (*case.secret, case.rand));
        for at in 0..KEY_FIELD {
            let mut forged = field;
            forged[at] ^= 1;
            assert!(open_grant(case.pinned.as_ref(), &case.client, &forged, &case.info).is_none(), "byte {at}");
        }
        let other_slot = hpke_info(&case.login, SlotIndex::new(4).unwrap(), case.uid);
        assert!(open_grant(case.pinned.as_ref(), &case.client, &field, &other_slot).is_none());
        // The mode that the server did not use.
        let other = if case.pinned.is_some() { None } else { Some(case.server.public()) };
        assert!(open_grant(other.as_ref(), &case.client, &field, &case.info).is_none());
    }
}

#[test]
fn s30_keys_match_the_known_answers() {
    for case in cases() {
        let prk = hkdf_extract(&[], &[&case.secret[..]]);
        assert_eq!(hkdf_expand(&prk, &[b"c2s"])[..], bytes(&case.json["key_c2s"]));
        assert_eq!(hkdf_expand(&prk, &[b"s2c"])[..], bytes(&case.json["key_s2c"]));
    }
}

/// Seals and opens the data of a vector, with the keys of both directions.
fn check_data(keys: &SessionKeys, index: SlotIndex, uid: Uid, vectors: &Value) {
    for data in vectors.as_array().unwrap() {
        let number = MessageNumber::new(data["number"].as_u64().unwrap() as u32);
        let payload = bytes(&data["payload"]);
        let expected = bytes(&data["bytes"]);
        let from_client = data["from"] == "client";
        let key = if from_client { &keys.to_server } else { &keys.to_client };
        let seal = |input: &_, message: &mut [u8], tag: &mut _| key.seal(input, message, tag);
        let mut out = Vec::new();
        if from_client {
            let message = Payload::new(&payload).unwrap();
            ClientSealed::emit_with(number, index, uid, message, &mut out, seal).unwrap();
        } else {
            let message = Payload::new(&payload).unwrap();
            ServerSealed::emit_with(number, index, uid, message, &mut out, seal).unwrap();
        }
        assert_eq!(out, expected);

        let (input, sealed) = if from_client {
            let Ok(ClientDatagram::EncryptedData(data)) = ClientDatagram::parse(&expected) else { panic!() };
            (data.seal_input(), data.sealed.as_bytes().to_vec())
        } else {
            let Ok(ServerDatagram::EncryptedData(data)) = ServerDatagram::parse(&expected) else { panic!() };
            (data.seal_input(index, uid), data.sealed.as_bytes().to_vec())
        };
        let (message, tag) = sealed.split_last_chunk().unwrap();
        let mut opened = vec![0; message.len()];
        assert!(key.open(&input, message, tag, &mut opened));
        assert_eq!(opened, payload);
        let mut wrong = *tag;
        wrong[0] ^= 1;
        assert!(!key.open(&input, message, &wrong, &mut opened));
    }
}

#[test]
fn s30_data_matches_the_known_answers_in_both_directions() {
    for case in cases() {
        let keys = SessionKeys::new(Cipher::ChaCha20Poly1305, &case.secret);
        check_data(&keys, case.index, case.uid, &case.json["data"]);
    }
}

#[test]
fn w84_offer_keys_and_data_match_the_known_answers() {
    let vectors: Value = serde_json::from_str(include_str!("../../tests/vectors/session-aes.json")).unwrap();
    for case in vectors["cases"].as_array().unwrap() {
        let secret = Secret::new(bytes(&case["secret"]).try_into().unwrap());
        let offer = aes_offer(&secret).expose();
        assert_eq!(format!("{offer:016x}"), case["rand"].as_str().unwrap());
        assert!(!offer.to_le_bytes().contains(&0), "S17");
        let index = SlotIndex::new(case["index"].as_u64().unwrap() as u8).unwrap();
        let uid = Uid::new(case["uid"].as_u64().unwrap() as u32);
        check_data(&SessionKeys::new(Cipher::Aes256Gcm, &secret), index, uid, &case["data"]);
    }
}

#[test]
fn debug_hides_secrets() {
    let key = StaticKey::from_bytes([3; 32]).unwrap();
    let text = format!("{key:?} {:?}", MessageKey::new(Cipher::Aes256Gcm, &[3; 32]));
    assert!(!text.contains("0303"), "{text}");
    assert!("5dfe".parse::<PublicKey>().is_err() && "zz".repeat(32).parse::<PublicKey>().is_err());
    assert_eq!(key.public().to_string().parse(), Ok(key.public()));
}

#[test]
fn s30_a_point_of_small_order_is_rejected() {
    let key = StaticKey::from_bytes([3; 32]).unwrap();
    assert!(key.agree(&PublicKey::new([0; 32])).is_none());
}
