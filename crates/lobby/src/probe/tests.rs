//! Probing over loopback.

use super::*;
use rallypoint_machine::Machine;
use rallypoint_query_proto::{Protocol, Responder, ResponderConfig, ServerInfo, ServerQuery};
use std::{collections::HashSet, net::SocketAddr, time::Instant};
use tokio::{net::UdpSocket, task::JoinHandle};

const SESSION: ServerQuery = Protocol::Session.info();

async fn socket() -> UdpSocket {
    UdpSocket::bind("127.0.0.1:0").await.unwrap()
}

/// Starts to probe a server.
fn start_probe(pool: &ProbePool, server: &UdpSocket, query: ServerQuery) -> JoinHandle<Option<ProbeOutcome>> {
    let pool = pool.clone();
    let probe = Probe::new(server.local_addr().unwrap(), query);
    tokio::spawn(async move { pool.probe(probe, ProbeReason::Unconfirmed).await })
}

async fn next_query(server: &UdpSocket) -> (SocketAddr, Vec<u8>) {
    let mut buffer = [0; 64];
    let (length, from) = server.recv_from(&mut buffer).await.unwrap();
    (from, buffer[..length].to_vec())
}

/// A port where no server listens: a probe is refused at once.
async fn closed_port() -> Probe {
    Probe::new(socket().await.local_addr().unwrap(), Protocol::Bloodmasters.info())
}

#[tokio::test]
async fn w41_every_probe_has_its_own_port() {
    let pool = ProbePool::default();
    let server = socket().await;
    let probes: Vec<_> = (0..8).map(|_| start_probe(&pool, &server, SESSION)).collect();
    let mut ports = HashSet::new();
    while ports.len() < probes.len() {
        ports.insert(next_query(&server).await.0.port());
    }
    probes.iter().for_each(JoinHandle::abort);
}

#[tokio::test]
async fn w41_replies_of_third_parties_are_ignored() {
    let pool = ProbePool::default();
    let server = socket().await;
    let stranger = socket().await;
    let probe = start_probe(&pool, &server, SESSION);
    let (from, query) = next_query(&server).await;
    for (sender, name) in [(&stranger, "forged"), (&server, "genuine")] {
        let config = ResponderConfig::default();
        let info = ServerInfo { name: Some(name.into()), ..ServerInfo::default() };
        let mut responder = Responder::new(config, 7, &info).unwrap();
        let now = Instant::now();
        let mut bytes = Vec::new();
        responder.handle_datagram(now, from, &query);
        while responder.poll_transmit(now, &mut bytes).is_some() {
            sender.send_to(&bytes, from).await.unwrap();
            bytes.clear();
        }
    }
    let Some(ProbeOutcome::Answered(reply)) = probe.await.unwrap() else { panic!("expected a reply") };
    assert_eq!(reply.info.name.as_deref(), Some("genuine"));
    assert_eq!(pool.stats().complete, 1);
}

#[tokio::test]
async fn no_probe_without_a_free_socket_and_an_abandoned_probe_frees_its_socket() {
    let pool = ProbePool::new(2);
    let server = socket().await;
    let probe = start_probe(&pool, &server, SESSION);
    next_query(&server).await;
    assert_eq!(pool.probe(closed_port().await, ProbeReason::Requested).await, None, "all sockets are in use");
    assert_eq!(
        pool.probe(closed_port().await, ProbeReason::Configured).await,
        Some(ProbeOutcome::Refused),
        "configured servers have sockets of their own"
    );
    probe.abort();
    assert!(probe.await.unwrap_err().is_cancelled());
    assert_eq!(pool.probe(closed_port().await, ProbeReason::Requested).await, Some(ProbeOutcome::Refused));
    assert_eq!(pool.stats().refused, 2);
}
