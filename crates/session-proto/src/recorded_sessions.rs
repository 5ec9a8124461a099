//! Whether a recorded session can be opened with the state of the generator of secrets (W66): tests of real sessions.

use crate::{
    Cipher, Client, ClientConfig, Encryption, Endpoint, EndpointConfig, ONLY_CHANNEL, StaticKey,
    crypto::{self, Secret},
    rng::SecretRng,
};
use rallypoint_machine::Machine;
use rallypoint_wire::session::{ClientDatagram, Grant, KEY_FIELD, SealInput, ServerDatagram, SlotIndex, Uid};
use std::{net::SocketAddr, time::Instant};

const CLIENT_SEED: [u8; 32] = [2; 32];

/// How often an attacker draws from a state, which is more often than any login does.
const DRAWS: usize = 500;

/// Everything that an attacker on the path has seen of a session.
struct Recording {
    login: Vec<u8>,
    index: SlotIndex,
    uid: Uid,
    field: [u8; KEY_FIELD],
    /// Sealed messages to the server.
    messages: Vec<(SealInput, Vec<u8>)>,
}

/// A session, with the states of both sides before and after it.
struct Session {
    recording: Recording,
    static_key: StaticKey,
    server_before: SecretRng,
    server_after: SecretRng,
    client_after: SecretRng,
}

fn datagrams(now: Instant, machine: &mut impl Machine) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    let emit = || machine.poll_transmit(now, &mut out).map(|_| std::mem::take(&mut out));
    std::iter::from_fn(emit).collect()
}

/// Logs in, sends a message, and records all of it.
fn record(encryption: impl FnOnce(&StaticKey) -> Encryption) -> Session {
    let now = Instant::now();
    let addr = |last: u8| SocketAddr::from(([10, 0, 0, last], 1_000));
    let static_key = StaticKey::from_bytes([9; 32]).unwrap();
    let config = EndpointConfig { static_key: Some(static_key.clone()), ..EndpointConfig::for_game("tag") };
    let mut server = Endpoint::new(config, [1; 32]).unwrap();
    let server_before = server.rng().copy();
    let mut config = ClientConfig { encryption: encryption(&static_key), ..ClientConfig::new("alice", "tag") };
    config.connection.batch = 1;
    let mut client = Client::new(now, addr(2), config, CLIENT_SEED).unwrap();

    let login = datagrams(now, &mut client).remove(0);
    server.handle_datagram(now, addr(3), &login);
    let success = datagrams(now, &mut server).remove(0);
    client.handle_datagram(now, addr(2), &success);
    client.send(now, ONLY_CHANNEL, b"attack at dawn").unwrap();
    let sent = datagrams(now, &mut client);
    sent.iter().for_each(|datagram| server.handle_datagram(now, addr(3), datagram));
    let player = server.players().next().expect("the player has joined");
    let received: Vec<_> = std::iter::from_fn(|| server.recv(player).map(|(_, bytes)| bytes.to_vec())).collect();
    assert_eq!(received, [b"attack at dawn"]);

    let Ok(ServerDatagram::LoginSuccess(success)) = ServerDatagram::parse(&success) else { panic!("no success") };
    let Grant::Encrypted(field) = success.grant else { panic!("not encrypted") };
    let sealed = |datagram: &Vec<u8>| match ClientDatagram::parse(datagram) {
        Ok(ClientDatagram::EncryptedData(data)) => Some((data.seal_input(), data.sealed.as_bytes().to_vec())),
        _ => None,
    };
    let messages: Vec<_> = sent.iter().filter_map(sealed).collect();
    assert!(!messages.is_empty());
    Session {
        recording: Recording { index: success.index, uid: success.uid, field: *field, login, messages },
        static_key,
        server_before,
        server_after: server.rng().copy(),
        client_after: client.rng().copy(),
    }
}

impl Recording {
    /// Whether a recorded message opens with this secret.
    fn opens_with(&self, secret: &Secret) -> bool {
        let ciphers = [Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305];
        let opens =
            |(input, sealed): &(SealInput, Vec<u8>)| crypto::opening_cipher(&ciphers, secret, input, sealed).is_some();
        self.messages.iter().any(opens)
    }

    /// Whether a recorded message opens with the secret that is sealed to this private key.
    fn opens_for(&self, key: &StaticKey, server: &StaticKey) -> bool {
        let info = crypto::hpke_info(&self.login, self.index, self.uid);
        [None, Some(&server.public())].into_iter().any(|pinned| {
            let opened = crypto::open_grant(pinned, key, &self.field, &info);
            opened.is_some_and(|(secret, _)| self.opens_with(&secret))
        })
    }

    /// Whether a state and the server's static key open a recorded message: each draw is tried as the session's secret, and as
    /// the key of either side.
    fn opens_from(&self, mut state: SecretRng, server: &StaticKey) -> bool {
        let opens = |secret: Secret| {
            self.opens_with(&secret) || StaticKey::from_secret(secret).is_ok_and(|key| self.opens_for(&key, server))
        };
        (0..DRAWS).any(|_| opens(state.secret())) || self.opens_for(server, server)
    }
}

#[test]
fn w66_a_recorded_session_does_not_open_with_a_later_state_and_the_static_key() {
    let encryptions: [fn(&StaticKey) -> Encryption; 2] =
        [|_| Encryption::Encrypted, |key| Encryption::Pinned(key.public())];
    for encryption in encryptions {
        let Session { recording, static_key, server_before, server_after, client_after } = record(encryption);
        // The same attack opens it with the state of either side before the login: it is able to.
        assert!(recording.opens_from(server_before, &static_key), "the server's earlier state");
        assert!(recording.opens_from(SecretRng::new(CLIENT_SEED), &static_key), "the client's earlier state");
        assert!(!recording.opens_from(server_after, &static_key), "the server's later state");
        assert!(!recording.opens_from(client_after, &static_key), "the client's later state");
    }
}
