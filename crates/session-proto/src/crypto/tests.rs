//! The known answers of S30, exactly.

use super::{accept, aead::Aead, grant, hkdf_expand, hkdf_extract, info, *};
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
        let (login, server) = (bytes(&json["login"]), key(&json["server_static_private"]));
        let index = SlotIndex::new(json["index"].as_u64().unwrap() as u8).unwrap();
        let uid = Uid::new(json["uid"].as_u64().unwrap() as u32);
        let pinned = (json["mode"] == "auth").then(|| server.public());
        Case {
            info: info(&login, index, uid),
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
fn s30_logins_are_what_the_vectors_say() {
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
fn s30_a_server_grants_what_the_vectors_say() {
    for case in cases() {
        let sender = if case.pinned.is_some() { Sender::Auth(&case.server) } else { Sender::Base };
        let ephemeral = key(&case.json["server_ephemeral_private"]);
        let field = grant(&sender, &case.client.public(), &ephemeral, &case.info, &case.secret, case.rand).unwrap();
        let mut success = Vec::new();
        let grant = rallypoint_wire::session::Grant::Encrypted(&field);
        LoginSuccess { index: case.index, uid: case.uid, grant }.emit(&mut success);
        assert_eq!(success, bytes(&case.json["login_success"]));
    }
}

#[test]
fn s30_a_client_accepts_what_the_vectors_say_and_nothing_else() {
    for case in cases() {
        let field: [u8; KEY_FIELD] = bytes(&case.json["login_success"])[6..].try_into().unwrap();
        let (secret, rand) = accept(case.pinned.as_ref(), &case.client, &field, &case.info).unwrap();
        assert_eq!((*secret, rand), (*case.secret, case.rand));
        for at in 0..KEY_FIELD {
            let mut forged = field;
            forged[at] ^= 1;
            assert!(accept(case.pinned.as_ref(), &case.client, &forged, &case.info).is_none(), "byte {at}");
        }
        let other_slot = info(&case.login, SlotIndex::new(4).unwrap(), case.uid);
        assert!(accept(case.pinned.as_ref(), &case.client, &field, &other_slot).is_none());
        // Another mode than the server used.
        let other = if case.pinned.is_some() { None } else { Some(case.server.public()) };
        assert!(accept(other.as_ref(), &case.client, &field, &case.info).is_none());
    }
}

#[test]
fn s30_keys_are_what_the_vectors_say() {
    for case in cases() {
        let prk = hkdf_extract(&[], &[&case.secret[..]]);
        assert_eq!(hkdf_expand(&prk, &[b"c2s"])[..], bytes(&case.json["key_c2s"]));
        assert_eq!(hkdf_expand(&prk, &[b"s2c"])[..], bytes(&case.json["key_s2c"]));
    }
}

#[test]
fn s30_data_is_what_the_vectors_say_in_both_directions() {
    for case in cases() {
        let keys = SessionKeys::new(&case.secret);
        for data in case.json["data"].as_array().unwrap() {
            let number = MessageNumber::new(data["number"].as_u64().unwrap() as u32);
            let (payload, expected) = (bytes(&data["payload"]), bytes(&data["bytes"]));
            let from_client = data["from"] == "client";
            let key = if from_client { &keys.to_server } else { &keys.to_client };
            let seal = |input: &_, message: &mut [u8], tag: &mut _| key.seal(input, message, tag);
            let mut out = Vec::new();
            if from_client {
                let message = Payload::new(&payload).unwrap();
                ClientSealed::emit_with(number, case.index, case.uid, message, &mut out, seal).unwrap();
            } else {
                let message = Payload::new(&payload).unwrap();
                ServerSealed::emit_with(number, case.index, case.uid, message, &mut out, seal).unwrap();
            }
            assert_eq!(out, expected);

            let (input, sealed) = if from_client {
                let Ok(ClientDatagram::EncryptedData(data)) = ClientDatagram::parse(&expected) else { panic!() };
                (data.seal_input(), data.sealed.as_bytes().to_vec())
            } else {
                let Ok(ServerDatagram::EncryptedData(data)) = ServerDatagram::parse(&expected) else { panic!() };
                (data.seal_input(case.index, case.uid), data.sealed.as_bytes().to_vec())
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
}

#[test]
fn secrets_do_not_print_themselves() {
    let key = StaticKey::from_bytes([3; 32]).unwrap();
    let text = format!("{key:?} {:?}", ChaCha::new(&[3; 32]));
    assert!(!text.contains("0303"), "{text}");
    assert!("5dfe".parse::<PublicKey>().is_err() && "zz".repeat(32).parse::<PublicKey>().is_err());
    assert_eq!(key.public().to_string().parse(), Ok(key.public()));
}

#[test]
fn s30_a_point_of_small_order_gives_nothing() {
    let key = StaticKey::from_bytes([3; 32]).unwrap();
    assert!(key.agree(&PublicKey::new([0; 32])).is_none());
}
