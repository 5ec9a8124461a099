//! What routes do while other clients keep the renderer busy.

use super::*;
use crate::middleware::ClientAddr;
use rallypoint_history::{History, HistoryOptions};
use rallypoint_lobby::{DoorAddrs, LobbyOptions, LobbyService};
use std::net::{IpAddr, Ipv4Addr};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// Requests that look at all servers or read from the disk.
const EXPENSIVE: [&str; 12] = [
    "/?q=x",
    "/status",
    "/lists",
    "/lists/gg2",
    "/feed.atom",
    "/lists/gg2/feed.atom",
    "/bloodmasterslist.php",
    "/servers/0123456789abcdef0123456789abcdef",
    "/servers/0123456789abcdef0123456789abcdef/badge.svg",
    "/api/v1/servers?q=x",
    "/api/v1/history",
    "/api/v1/lists/gg2/history",
];

async fn status(addr: SocketAddr, path: &str) -> String {
    let mut tcp = TcpStream::connect(addr).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    tcp.write_all(request.as_bytes()).await.unwrap();
    let mut response = Vec::new();
    tcp.read_to_end(&mut response).await.unwrap();
    String::from_utf8_lossy(response.get(9..12).unwrap_or_default()).into_owned()
}

/// A client of a network that has not requested anything.
fn client(number: usize) -> ClientAddr {
    let ip = IpAddr::V4(Ipv4Addr::new(9, 9, number as u8, 1));
    ClientAddr { ip, is_local: false, is_unnamed: false }
}

/// Without a turn of their own, such requests would take all threads: hundreds of them ran at once, or on the threads that serve
/// the lists.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_expensive_request_waits_for_its_turn() {
    /// As many as are rendered at once.
    const RUNNING: usize = 2;
    /// As many as may wait.
    const WAITING: usize = 64;
    let dir = tempfile::tempdir().unwrap();
    let history = History::start(HistoryOptions::new(dir.path().join("history.db"))).unwrap();
    let any = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
    let lobby = LobbyOptions { doors: DoorAddrs::lobby(any.clone()), ..LobbyOptions::default() };
    let lobby = LobbyService::start(lobby, &tokio::runtime::Handle::current()).unwrap();
    let mut sources = WebSources::new(lobby);
    sources.history = Some(history.reader());
    let web = WebService::start(WebOptions { listen: any, ..WebOptions::default() }, sources).unwrap();
    let addr = web.local_addrs()[0];
    // The client's network uses some time, so that it is the first to be refused.
    assert_eq!(status(addr, "/status").await, "200");

    let limiter = &web.0.state.render_limiter;
    let mut running = Vec::new();
    for number in 0..RUNNING {
        running.push(limiter.acquire(client(number)).await.unwrap());
    }
    let mut waiting: Vec<_> =
        (RUNNING..RUNNING + WAITING).map(|number| Box::pin(limiter.acquire(client(number)))).collect();
    for request in &mut waiting {
        assert!(is_pending(request.as_mut()));
    }
    for path in EXPENSIVE {
        assert_eq!(status(addr, path).await, "503", "{path}");
    }
    for path in ["/healthz", "/api/v1/openapi.json", "/why", "/api/v1/servers/0123456789abcdef0123456789abcdef"] {
        assert_ne!(status(addr, path).await, "503", "{path}");
    }
    drop((waiting, running));
    for path in EXPENSIVE {
        assert_ne!(status(addr, path).await, "503", "{path}");
    }
    web.shutdown().await;
}

fn is_pending(future: std::pin::Pin<&mut impl Future>) -> bool {
    future.poll(&mut std::task::Context::from_waker(std::task::Waker::noop())).is_pending()
}
