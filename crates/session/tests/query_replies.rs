//! A server answers queries with its current info.

use crate::common;

use common::{server_options, until};
use rallypoint_machine::Machine;
use rallypoint_query_proto::{Probe, Prober, ProberConfig, Protocol};
use rallypoint_session::{Player, Server, ServerInfo};
use rallypoint_udp::{RecvBatch, SendBatch, UdpSocket};
use std::time::Instant;

/// Queries a server for its info and its players.
fn query(to: std::net::SocketAddr) -> ServerInfo {
    let socket = UdpSocket::bind("127.0.0.1:0".parse().unwrap(), 1 << 20).unwrap();
    let mut prober = Prober::new(ProberConfig::default(), [7; 32]).unwrap();
    prober.enqueue(Probe::new(to, Protocol::Session.players())).unwrap();
    let mut outgoing = SendBatch::default();
    let mut incoming = RecvBatch::new(508);
    let mut info = None;
    until("the server answers", || {
        let now = Instant::now();
        prober.handle_timeout(now);
        outgoing.fill(16, |out| prober.poll_transmit(now, out));
        outgoing.flush(&[&socket]);
        incoming.recv(&socket).unwrap();
        incoming.iter().for_each(|datagram| prober.handle_datagram(now, datagram.from, datagram.bytes));
        info = prober.poll_event().and_then(|result| result.reply().map(|reply| reply.info.clone()));
        info.is_some()
    });
    info.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn s9_s10_queries_are_answered_with_info_and_players() {
    let server = Server::bind(server_options()).await.unwrap();
    let mut info = ServerInfo { name: Some("Bacon Town".into()), max_players: Some(24), ..ServerInfo::default() };
    info.player_list = Some(vec![Player { name: "Ada".into(), ..Player::default() }]);
    server.set_info(&info);
    let addr = server.local_addrs()[0];
    let received = tokio::task::spawn_blocking(move || query(addr)).await.unwrap();
    assert_eq!(
        (received.name.as_deref(), received.players, received.max_players),
        (Some("Bacon Town"), Some(1), Some(24))
    );
    assert_eq!(received.player_list.unwrap()[0].name, "Ada");
    assert!(server.endpoint_stats().unvalidated_bytes > 0, "bytes to unvalidated addresses are counted (S11)");
}
