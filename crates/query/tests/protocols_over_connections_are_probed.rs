//! A protocol over TCP or HTTP is probed like any other: alone, in a group with others, by a scanner and by a single probe.

use rallypoint_query::{
    GroupResult, ProbeEngine, ProbeError, ScanConfig, ScanEvent, Scanner, SingleProbe, SingleProbeConfig,
    proto::{Probe, ProbeOutcome, Protocol, RttMethod},
};
use rallypoint_wire::query::minecraft::emit_status;
use std::{net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    task::JoinSet,
};

/// A server that answers each connection with this status, while the set exists.
async fn server(json: &'static str) -> (SocketAddr, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        loop {
            let (mut client, _) = listener.accept().await.unwrap();
            client.read_exact(&mut [0; 10]).await.unwrap();
            let mut reply = Vec::new();
            emit_status(json, &mut reply);
            // In two pieces.
            let (head, tail) = reply.split_at(5);
            client.write_all(head).await.unwrap();
            client.flush().await.unwrap();
            client.write_all(tail).await.unwrap();
            // Until the client has closed the connection.
            while client.read(&mut [0; 64]).await.is_ok_and(|length| length > 0) {}
        }
    });
    (addr, tasks)
}

const STATUS: &str = r#"{"description":"Bacon Town","players":{"online":3,"max":20}}"#;

async fn closed() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

fn minecraft(addr: SocketAddr) -> Probe {
    Probe::new(addr, Protocol::Minecraft.info())
}

#[tokio::test]
async fn a_scanner_probes_them_by_their_scheme() {
    let (open, _server) = server(STATUS).await;
    let closed = closed().await;
    let targets = [open, closed].map(|addr| format!("minecraft://{addr}").parse().unwrap());
    let mut scanner = Scanner::new(ScanConfig::default(), targets).unwrap();
    let mut answered = None;
    let mut failed = None;
    scanner
        .scan(|event| match event {
            ScanEvent::Answered(server) => answered = Some(server),
            ScanEvent::Failed(server) => failed = Some(server),
            _ => {}
        })
        .await;
    let answered = answered.expect("one server answers");
    assert_eq!((answered.name(), answered.info.players), ("Bacon Town", Some(3)));
    assert_eq!((answered.protocol, answered.address), (Some(Protocol::Minecraft), Some(open)));
    assert_eq!(answered.reply.unwrap().round_trip.method, RttMethod::Connect);
    assert_eq!(failed.expect("the other one does not").error, Some(ProbeError::Refused));
}

#[tokio::test]
async fn the_first_answer_of_a_group_counts_whatever_carries_it() {
    let (open, _server) = server(STATUS).await;
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut engine = ProbeEngine::start(&ScanConfig::default(), None).unwrap();
    // Nothing answers over UDP there, and the second server accepts connections without ever answering.
    let probes = vec![
        Probe::new(open, Protocol::Session.info()),
        minecraft(silent.local_addr().unwrap()),
        minecraft(closed().await),
        minecraft(open),
    ];
    engine.probe(7, probes);
    let Some(GroupResult { key: 7, result: Ok(reply) }) = engine.next().await else { panic!("an answer") };
    assert_eq!((reply.probe, reply.retries), (minecraft(open), 0));
    assert_eq!(engine.pending(), 0);
    // The connection to the silent server, which is not needed any more, is closed.
    let (mut connection, _) = silent.accept().await.unwrap();
    while connection.read(&mut [0; 64]).await.is_ok_and(|length| length > 0) {}
}

#[tokio::test]
async fn many_servers_wait_for_the_connections_that_there_are() {
    let (open, _server) = server(STATUS).await;
    let config =
        ScanConfig { packets_per_second: 1_000_000, timeout: Duration::from_secs(60), ..ScanConfig::default() };
    let mut engine = ProbeEngine::start(&config, None).unwrap();
    for key in 0..300 {
        engine.probe(key, vec![minecraft(open)]);
    }
    let mut keys = Vec::new();
    while let Some(GroupResult { key, result }) = engine.next().await {
        assert!(result.is_ok(), "{result:?}");
        keys.push(key);
    }
    keys.sort_unstable();
    assert!(keys.into_iter().eq(0..300));
}

#[tokio::test]
async fn a_dropped_engine_closes_its_connections() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut engine = ProbeEngine::start(&ScanConfig::default(), None).unwrap();
    engine.probe(1, vec![minecraft(silent.local_addr().unwrap())]);
    let (mut connection, _) = silent.accept().await.unwrap();
    connection.read_exact(&mut [0; 10]).await.unwrap();
    drop(engine);
    while connection.read(&mut [0; 64]).await.is_ok_and(|length| length > 0) {}
}

#[tokio::test]
async fn a_single_probe_makes_a_connection() {
    let (open, _server) = server(STATUS).await;
    let config = SingleProbeConfig { fail_on_socket_error: true, ..SingleProbeConfig::default() };
    let mut probe = SingleProbe::connect(Probe::new(open, Protocol::Minecraft.presence()), &config).await.unwrap();
    let ProbeOutcome::Answered(reply) = probe.run().await.unwrap() else { panic!("no reply") };
    assert_eq!(reply.info.players, Some(3));
    assert_eq!((probe.stats().complete, probe.stats().sent), (1, 1));
    assert_eq!(probe.run().await.unwrap(), ProbeOutcome::TimedOut, "it has ended");
    let mut probe = SingleProbe::connect(minecraft(closed().await), &config).await.unwrap();
    assert_eq!(probe.run().await.unwrap(), ProbeOutcome::Refused);
    assert_eq!(probe.stats().refused, 1);
    let unusable = minecraft("224.0.0.1:25565".parse().unwrap());
    let mut probe = SingleProbe::connect(unusable, &config).await.unwrap();
    assert_eq!(probe.run().await.unwrap(), ProbeOutcome::TimedOut);
}
