//! Listed TCP servers have no query: a scan can measure the time of a connection instead.

use rallypoint_harness::TcpPort;
use rallypoint_query::{
    FetchedServer, ProbeError, ScanConfig, ScanEvent, ScannedServer, Scanner,
    proto::{LobbyInfo, RttMethod, ServerInfo},
};
use rallypoint_wire::lobby::Transport;
use std::net::{SocketAddr, TcpListener};

fn listed(endpoints: Vec<SocketAddr>) -> ScannedServer {
    let lobby =
        LobbyInfo { transport: Transport::Tcp, endpoints: endpoints.clone(), protocol_id: None, entries: vec![] };
    let info = ServerInfo { lobby: Some(lobby), ..ServerInfo::default() };
    ScannedServer::listed(FetchedServer { info, endpoints, protocol: None, list: None, list_name: None }, 0)
}

async fn probe(connect_tcp: bool, endpoints: Vec<SocketAddr>) -> Option<ScanEvent> {
    let mut scanner = Scanner::new(ScanConfig { connect_tcp, ..ScanConfig::default() }, []).unwrap();
    scanner.probe_again(listed(endpoints));
    scanner.next().await
}

#[tokio::test]
async fn an_open_port_has_a_ping_and_a_closed_one_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let open = listener.local_addr().unwrap();
    let port = TcpPort::closed("127.0.0.1");
    let closed = SocketAddr::from(([127, 0, 0, 1], port.number()));
    let Some(ScanEvent::Answered(server)) = probe(true, vec![closed, open]).await else { panic!("no answer") };
    assert_eq!(server.address, Some(open));
    assert_eq!(server.reply.unwrap().round_trip.method, RttMethod::Connect);
    let Some(ScanEvent::Failed(server)) = probe(true, vec![closed]).await else { panic!("no failure") };
    assert_eq!(server.error, Some(ProbeError::Refused));
}

#[tokio::test]
async fn without_the_setting_nothing_is_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    assert!(probe(false, vec![listener.local_addr().unwrap()]).await.is_none());
    assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}
