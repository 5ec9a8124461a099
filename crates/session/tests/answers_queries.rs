//! A server answers queries with what it was told about itself.

mod common;

use common::{server_options, until};
use rallypoint_machine::Machine;
use rallypoint_query_proto::{Player, Probe, Prober, ProberConfig, Protocol, ServerInfo};
use rallypoint_session::SessionServer;
use rallypoint_udp::{RecvBatch, SendBatch, UdpSocket};
use std::time::Instant;

/// Asks for everything.
fn ask(to: std::net::SocketAddr) -> ServerInfo {
    let socket = UdpSocket::bind("127.0.0.1:0".parse().unwrap(), 1 << 20).unwrap();
    let mut prober = Prober::new(ProberConfig::default(), [7; 32]).unwrap();
    prober.enqueue(Probe::new(to, Protocol::Session.players())).unwrap();
    let (mut outgoing, mut incoming, mut found) = (SendBatch::default(), RecvBatch::new(508), None);
    until("it answers", || {
        let now = Instant::now();
        prober.handle_timeout(now);
        outgoing.fill(16, |out| prober.poll_transmit(now, out));
        outgoing.flush(&[&socket]);
        incoming.recv(&socket).unwrap();
        incoming.iter().for_each(|datagram| prober.handle_datagram(now, datagram.from, datagram.bytes));
        found = prober.poll_event().and_then(|report| report.reply().map(|answer| answer.info.clone()));
        found.is_some()
    });
    found.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn s9_s10_with_its_players() {
    let server = SessionServer::bind(server_options()).await.unwrap();
    let mut info = ServerInfo { name: Some("Bacon Town".into()), max_players: Some(24), ..ServerInfo::default() };
    info.player_list = Some(vec![Player { name: "Ada".into(), ..Player::default() }]);
    server.set_info(&info);
    let addr = server.local_addrs()[0];
    let told = tokio::task::spawn_blocking(move || ask(addr)).await.unwrap();
    assert_eq!((told.name.as_deref(), told.players, told.max_players), (Some("Bacon Town"), Some(1), Some(24)));
    assert_eq!(told.player_list.unwrap()[0].name, "Ada");
    assert!(server.endpoint_stats().unvalidated_bytes > 0, "what is sent to strangers is counted (S11)");
}
