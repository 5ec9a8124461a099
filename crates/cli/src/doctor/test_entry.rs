//! Registers a server from here for a moment, to see whether the lobby takes it.

use crate::{
    ask::{
        Asking,
        lobby::{Source, fetch},
        resolve::resolve,
        target::Lobby,
    },
    failure::Failure,
};
use rallypoint_lobby_proto::Announcer;
use rallypoint_machine::Machine;
use rallypoint_udp::entropy;
use rallypoint_wire::lobby::{ServerId, Transport};
use std::{
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    num::NonZeroU16,
    time::{Duration, Instant},
};
use tokio::net::UdpSocket;

/// When to look into the list. A lobby needs a moment, and up to 5 seconds to find out whether it can reach a TCP server.
const WAITS: [Duration; 4] =
    [Duration::from_millis(300), Duration::from_millis(700), Duration::from_secs(2), Duration::from_secs(4)];

/// Under which addresses it was listed; none, if it was not.
pub async fn register(
    lobby: &Lobby,
    transport: Transport,
    port: NonZeroU16,
    asking: &Asking,
) -> Result<Vec<SocketAddr>, Failure> {
    let random: [u8; 16 + 4] = entropy::bytes().map_err(Failure::failed)?;
    let (id, number) = random.split_at(16);
    // A name that nobody else has at this moment, so that it can be told apart.
    let name =
        format!("test of rallypoint doctor {:08x}", number.iter().fold(0u32, |sum, byte| sum << 8 | u32::from(*byte)));
    let id = ServerId::from_bytes(id.try_into().unwrap_or_default());
    let addrs = resolve(&lobby.host, lobby.port(false), asking.family()).await;
    let addrs = addrs.map_err(|trouble| Failure::failed(format!("the lobby {lobby}: {trouble}")))?;
    let mut announcer = Announcer::new(id, lobby.id(), transport, port, name.as_bytes(), addrs, Instant::now())
        .map_err(Failure::failed)?;
    let sockets = Sockets::open().await;
    let mut found = Vec::new();
    for wait in WAITS {
        sockets.send(&mut announcer).await;
        tokio::time::sleep(wait).await;
        let source = Source::Lobby(lobby.clone());
        let take = |listed: crate::ask::lobby::Listed| {
            if listed.info.name.as_deref() == Some(&name) {
                found.extend(listed.endpoints);
            }
        };
        if fetch(&source, asking, take).await.is_ok() && !found.is_empty() {
            break;
        }
    }
    // Twice, because a datagram can be lost.
    announcer.stop();
    let goodbyes = drain(&mut announcer);
    for _ in 0..2 {
        sockets.send_all(&goodbyes).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(found)
}

struct Sockets {
    v4: Option<UdpSocket>,
    v6: Option<UdpSocket>,
}

impl Sockets {
    async fn open() -> Self {
        let v4 = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await.ok();
        Self { v4, v6: UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).await.ok() }
    }

    async fn send(&self, announcer: &mut Announcer) {
        let datagrams = drain(announcer);
        self.send_all(&datagrams).await;
    }

    async fn send_all(&self, datagrams: &[(SocketAddr, Vec<u8>)]) {
        for (to, datagram) in datagrams {
            let socket = if to.is_ipv4() { &self.v4 } else { &self.v6 };
            if let Some(socket) = socket {
                // Another address may have more luck; whether any had, the list tells.
                let _ = socket.send_to(datagram, to).await;
            }
        }
    }
}

fn drain(announcer: &mut Announcer) -> Vec<(SocketAddr, Vec<u8>)> {
    let mut datagrams = Vec::new();
    let mut datagram = Vec::new();
    while let Some(transmit) = announcer.poll_transmit(Instant::now(), &mut datagram) {
        datagrams.push((transmit.to, std::mem::take(&mut datagram)));
    }
    datagrams
}
