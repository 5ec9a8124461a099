//! One pass of a scanner: named servers, a lobby's list and the servers in it.

use rallypoint_machine::Machine;
use rallypoint_query::{
    ProbeError, ScanConfig, ScanEvent, Scanner, Target,
    proto::{Detail, Responder, ResponderConfig, ServerInfo},
};
use std::{net::SocketAddr, time::Duration};
use tokio::net::UdpSocket;

/// A game server that answers both protocols.
async fn game_server(name: &str) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let addr = socket.local_addr().unwrap();
    let info = ServerInfo { name: Some(name.into()), players: Some(3), max_players: Some(10), ..ServerInfo::default() };
    let mut responder = Responder::new(ResponderConfig::default(), 7, &info).unwrap();
    tokio::spawn(async move {
        let mut buffer = [0; 2_048];
        while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
            let now = std::time::Instant::now();
            responder.handle_datagram(now, from, &buffer[..length]);
            let mut out = Vec::new();
            while let Some(transmit) = responder.poll_transmit(now, &mut out) {
                let _ = socket.send_to(&out, transmit.to).await;
                out.clear();
            }
        }
    });
    addr
}

#[tokio::test]
async fn every_target_has_one_result_per_pass() {
    let server = game_server("Bacon Town").await;
    let closed = UdpSocket::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let targets: Vec<Target> = [
        format!("session://{server}"),
        format!("bloodmasters://localhost:{}", server.port()),
        format!("session://{closed}"),
        format!("lobby://{closed}"),
        "session://no-such-name.invalid".into(),
    ]
    .iter()
    .map(|text| text.parse().unwrap())
    .collect();
    let config = ScanConfig { timeout: Duration::from_secs(5), detail: Some(Detail::Info), ..ScanConfig::default() };
    let mut scanner = Scanner::new(config, targets).unwrap();
    for pass in 1..=2 {
        let mut results = Vec::new();
        scanner
            .scan(|event| {
                results.push(match event {
                    ScanEvent::Answered(server) => {
                        assert!(server.ping_ms().is_some());
                        (server.target_index, format!("{} {:?}", server.name(), server.info.players))
                    }
                    ScanEvent::Failed(server) => (server.target_index, server.error.unwrap().code().into()),
                    ScanEvent::ListFailed(index, error) => {
                        assert_eq!(error, ProbeError::Refused);
                        (index, error.code().into())
                    }
                    other => panic!("{other:?}"),
                });
            })
            .await;
        results.sort();
        let texts: Vec<&str> = results.iter().map(|(_, text)| &**text).collect();
        let expected = ["Bacon Town Some(3)", "Bacon Town Some(3)", "refused", "refused", "not_found"];
        assert_eq!(texts, expected, "pass {pass}");
    }
    assert_eq!(scanner.progress().pending, 0);
}
