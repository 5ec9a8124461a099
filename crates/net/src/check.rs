//! Finding out whether a server can be reached (L12).

use crate::{clock, entropy};
use rallypoint_lobby::{CheckKind, CheckRequest, Verdict};
use rallypoint_wire::{
    bloodmasters::{Echo, Query, Reply},
    session::{ClientDatagram, ServerDatagram},
};
use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};
use tokio::{
    net::{TcpStream, UdpSocket},
    time::{Instant, timeout, timeout_at},
};

/// A query that is not answered is sent again after this: datagrams get lost.
const RESEND: Duration = Duration::from_secs(1);

/// Makes one check. How many are made, and of whom, is for the registry to decide.
pub(crate) async fn check(request: CheckRequest) -> Verdict {
    let began = clock::now();
    let addr = request.target.addr;
    let reached = match request.target.kind {
        CheckKind::Connect => timeout(request.timeout, TcpStream::connect(addr)).await.is_ok_and(|tcp| tcp.is_ok()),
        CheckKind::Bloodmasters => {
            let echo = Echo(entropy::bytes());
            let mut query = Vec::new();
            Query { echo }.emit(&mut query);
            let is_answer = |datagram: &[u8]| Reply::parse(datagram).is_ok_and(|reply| reply.echo() == echo);
            ask(addr, &query, is_answer, request.timeout).await.unwrap_or(false)
        }
        CheckKind::Session => {
            let mut query = Vec::new();
            ClientDatagram::Query.emit(&mut query);
            let is_answer = |datagram: &[u8]| matches!(ServerDatagram::parse(datagram), Ok(ServerDatagram::Info(_)));
            ask(addr, &query, is_answer, request.timeout).await.unwrap_or(false)
        }
    };
    tracing::debug!(target = %addr, kind = ?request.target.kind, reached, "checked a server");
    if reached { Verdict::Reachable(began.elapsed()) } else { Verdict::Unreachable }
}

/// Asks a server until it answers or the time is up. The socket is a new one, with a port that nobody can guess, and hears
/// nobody but the server.
async fn ask(
    addr: SocketAddr,
    query: &[u8],
    is_answer: impl Fn(&[u8]) -> bool,
    patience: Duration,
) -> io::Result<bool> {
    let local: IpAddr = if addr.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((local, 0)).await?;
    socket.connect(addr).await?;
    let end = Instant::now() + patience;
    // Answers are longer than this, but what they begin with tells enough.
    let mut answer = vec![0; 65_536];
    while Instant::now() < end {
        socket.send(query).await?;
        let resend = end.min(Instant::now() + RESEND);
        while let Ok(received) = timeout_at(resend, socket.recv(&mut answer)).await {
            // An error is the machine's word that nobody is there.
            if is_answer(&answer[..received?]) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
