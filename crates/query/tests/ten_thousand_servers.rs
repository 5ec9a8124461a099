//! A scan of ten thousand servers misses none, on every implementation of the sockets.
#![cfg(target_os = "linux")]

use rallypoint_harness::skip;
use rallypoint_machine::Machine;
use rallypoint_query::{
    ScanConfig, ScanEvent, Scanner, Target,
    proto::{Responder, ResponderConfig, ServerInfo},
};
use rallypoint_wire::bloodmasters::Echo;
use rustix::process::{Resource, getrlimit, setrlimit};
use std::{
    collections::HashSet,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Instant,
};
use tokio::net::UdpSocket;

const SERVERS: u32 = 10_000;
/// Descriptors for the scanner and the runtime.
const OTHERS: u64 = 100;

/// A query of Bloodmasters, without the echo that follows.
const QUERY: [u8; 3] = [7, 0, 13];

/// The reply to a query whose echo is zero.
fn reply() -> Vec<u8> {
    let info = ServerInfo { name: Some("Bacon Town".into()), players: Some(3), ..ServerInfo::default() };
    let mut responder = Responder::new(ResponderConfig::default(), 7, &info).unwrap();
    let now = Instant::now();
    responder.handle_datagram(now, ([127, 0, 0, 1], 1).into(), &[&QUERY[..], &[0; 4]].concat());
    let mut out = Vec::new();
    responder.poll_transmit(now, &mut out).unwrap();
    out
}

/// A socket for each server: the same port of as many addresses of 127.0.0.0/8.
async fn sockets() -> io::Result<Vec<UdpSocket>> {
    let address = |number: u32| Ipv4Addr::from_bits(Ipv4Addr::new(127, 2, 0, 1).to_bits() + number);
    let mut sockets = vec![UdpSocket::bind((address(0), 0)).await?];
    let port = sockets[0].local_addr()?.port();
    for number in 1..SERVERS {
        sockets.push(UdpSocket::bind((address(number), port)).await?);
    }
    Ok(sockets)
}

async fn serve(socket: UdpSocket, reply: Arc<Vec<u8>>) {
    let mut buffer = [0; 64];
    while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
        if length == 7 && buffer.starts_with(&QUERY) {
            let mut reply = reply.to_vec();
            reply[Echo::RANGE].copy_from_slice(&buffer[3..7]);
            let _ = socket.send_to(&reply, from).await;
        }
    }
}

#[tokio::test]
async fn ten_thousand_servers_are_scanned_and_none_is_missed() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).expect("the soft limit can be raised to the hard one");
    if limit.maximum.is_some_and(|maximum| maximum < u64::from(SERVERS) + OTHERS) {
        return skip("this user may not open 10,000 sockets");
    }
    let sockets = loop {
        match sockets().await {
            Ok(sockets) => break sockets,
            // Another program has the port of one of the addresses.
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::AddrInUse, "{error}"),
        }
    };
    let addrs: Vec<SocketAddr> = sockets.iter().map(|socket| socket.local_addr().unwrap()).collect();
    let reply = Arc::new(reply());
    sockets.into_iter().for_each(|socket| drop(tokio::spawn(serve(socket, reply.clone()))));

    let targets: Vec<Target> = addrs.iter().map(|addr| format!("bloodmasters://{addr}").parse().unwrap()).collect();
    let config = ScanConfig { packets_per_second: 5_000, ..ScanConfig::default() };
    let mut scanner = Scanner::new(config, targets).unwrap();
    let mut found = HashSet::new();
    let mut failed = Vec::new();
    scanner
        .scan(|event| match event {
            ScanEvent::Answered(server) => {
                assert_eq!((server.name(), server.info.players), ("Bacon Town", Some(3)));
                assert!(found.insert(server.target_index), "reported twice: {server:?}");
            }
            other => failed.push(format!("{other:?}")),
        })
        .await;
    assert_eq!((found.len(), &failed[..]), (SERVERS as usize, &[][..] as &[String]));
}
