//! A server's `x-session-key` counts as verified only when the server has answered a login that pins that key (E2, W67).

use crate::common;

use common::{Lobby, eventually};
use rallypoint_lobby::{LobbyOptions, SessionKeyStatus, Verification};
use rallypoint_query_proto::ServerInfo;
use rallypoint_session::{EndpointConfig, PolledServer, PublicKey, ServerOptions, StaticKey};
use rallypoint_wire::lobby::Transport;
use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

/// A game server that answers queries and logins in a thread, until it is dropped.
struct GameServer {
    addr: SocketAddr,
    is_done: Arc<AtomicBool>,
    thread: Option<JoinHandle<u64>>,
}

impl GameServer {
    fn start(key: Option<StaticKey>) -> Self {
        let endpoint = EndpointConfig { static_key: key, ..EndpointConfig::for_game("tag") };
        let mut options = ServerOptions::from(endpoint);
        options.listen = vec!["127.0.0.1:0".parse().unwrap()];
        let mut server = PolledServer::bind(options).unwrap();
        server.set_info(&ServerInfo {
            name: Some("Bacon Town".into()),
            game: Some("tag".into()),
            players: Some(0),
            max_players: Some(24),
            ..ServerInfo::default()
        });
        let addr = server.local_addrs()[0];
        let is_done = Arc::new(AtomicBool::new(false));
        let done = Arc::clone(&is_done);
        let thread = std::thread::spawn(move || {
            let mut joined = 0;
            while !done.load(Ordering::Relaxed) {
                server.poll();
                while server.next_event().is_some() {
                    joined += 1;
                }
                server.wait(Duration::from_millis(10));
            }
            joined
        });
        Self { addr, is_done, thread: Some(thread) }
    }

    /// Ends the server. Returns the number of its events.
    fn stop(mut self) -> u64 {
        self.is_done.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

fn key(byte: u8) -> StaticKey {
    StaticKey::from_bytes([byte; 32]).unwrap()
}

/// Registers a server that states a key, and waits until it is verified. Returns what is known about the key.
fn status_of(server: &GameServer, stated: &str) -> Option<SessionKeyStatus> {
    let lobby = Lobby::start(LobbyOptions { probe_sockets: 64, ..common::options() });
    let x_query = format!("session:{}", server.addr.port());
    let keys: &[(&str, &[u8])] = &[("x-query", x_query.as_bytes()), ("x-session-key", stated.as_bytes())];
    lobby.send(&common::registration("Bacon Town", 8_190, Transport::Udp, keys));
    let record = || lobby.servers().snapshot().records().next().cloned();
    eventually("the server is verified", || {
        record().is_some_and(|record| matches!(record.verification, Verification::Verified | Verification::Differs))
    });
    record().unwrap().session_key
}

fn hex(key: PublicKey) -> String {
    key.to_string()
}

#[test]
fn w67_a_key_is_verified_by_a_login_that_takes_no_slot() {
    let server = GameServer::start(Some(key(9)));
    assert_eq!(status_of(&server, &hex(key(9).public())), Some(SessionKeyStatus::Verified));
    assert_eq!(server.stop(), 0, "no player joined");
}

#[test]
fn w67_a_key_that_the_server_does_not_hold_is_not_verified() {
    let server = GameServer::start(Some(key(9)));
    assert_eq!(status_of(&server, &hex(key(8).public())), Some(SessionKeyStatus::Unverified));
    assert_eq!(status_of(&server, "not a key"), None);
    server.stop();
}

#[test]
fn w67_a_server_that_refuses_the_login_leaves_its_key_unverified() {
    let server = GameServer::start(None);
    assert_eq!(status_of(&server, &hex(key(9).public())), Some(SessionKeyStatus::Unverified));
    server.stop();
}
