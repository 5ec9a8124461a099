//! Proof that a server has the key that it states (E2, W67): it answers a login that pins the key.

use super::{ProbePool, ProbeReason};
use rallypoint_machine::Machine;
use rallypoint_session_proto::{Client, ClientConfig, ClientEvent, Encryption, PublicKey};
use rallypoint_udp::entropy;
use std::{
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    time::{Duration, Instant},
};
use tokio::{net::UdpSocket, time};

/// Name of the player in the login. The login is not completed, so no player ever sees it.
const USERNAME: &str = "lobby";

/// Time after which a login without an answer has failed.
const TIMEOUT: Duration = Duration::from_secs(2);

impl ProbePool {
    /// Whether the server at an address holds the private half of a key: only its holder can answer a login that pins it. The
    /// login is abandoned as soon as it is answered, so it takes no player slot (S14). A server that refuses the login, for
    /// instance because it is full, has proved nothing.
    pub(crate) async fn prove_session_key(&self, server: SocketAddr, key: PublicKey, game: &str) -> bool {
        let Some(_permit) = self.permit(ProbeReason::Requested).await else { return false };
        log_in(server, key, game).await.unwrap_or(false)
    }
}

/// Logs in and abandons the login. `None` if that fails on this machine.
async fn log_in(server: SocketAddr, key: PublicKey, game: &str) -> Option<bool> {
    let unspecified: SocketAddr = match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(unspecified).await.ok()?;
    socket.connect(server).await.ok()?;
    let config = ClientConfig {
        encryption: Encryption::Pinned(key),
        login_timeout: TIMEOUT,
        ..ClientConfig::new(USERNAME, game)
    };
    let mut client = Client::new(Instant::now(), server, config, entropy::bytes().ok()?).ok()?;
    let mut out = Vec::new();
    let mut buffer = [0; 512];
    loop {
        // Events first: a client that is connected would complete the login with its next datagram.
        match client.poll_event() {
            Some(ClientEvent::Connected) => return Some(true),
            Some(ClientEvent::LoginFailed(_)) => return Some(false),
            Some(_) => continue,
            None => {}
        }
        while client.poll_transmit(Instant::now(), &mut out).is_some() {
            // Like a lost datagram: the login is repeated.
            let _ = socket.send(&out).await;
            out.clear();
        }
        let deadline = time::Instant::from_std(client.poll_timeout()?);
        match time::timeout_at(deadline, socket.recv(&mut buffer)).await {
            Ok(Ok(length)) => client.handle_datagram(Instant::now(), server, &buffer[..length]),
            // The port is closed.
            Ok(Err(_)) => return Some(false),
            Err(_) => client.handle_timeout(Instant::now()),
        }
    }
}
