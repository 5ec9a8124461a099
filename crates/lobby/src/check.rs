//! Finding out whether a server can be reached (L12).

use rallypoint_lobby_proto::{CheckKind, CheckRequest, CheckResult};
use rallypoint_udp::{clock, entropy};
use rallypoint_wire::{
    bloodmasters::{Echo, Query, Reply},
    session::{ClientDatagram, ServerDatagram},
};
use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};
use tokio::{
    net::{TcpStream, UdpSocket},
    time::{Instant, timeout, timeout_at},
};

/// A query that is not answered is sent again after this: datagrams get lost.
const RESEND: Duration = Duration::from_secs(1);

/// Makes one check. How many are made, and of whom, is for the registry to decide. It is an error if this machine could not
/// even try. The bytes of queries are added to `sent`: they go to addresses that have not shown that they want them.
pub(crate) async fn check(request: CheckRequest, sent: &AtomicU64) -> io::Result<CheckResult> {
    let began = clock::now();
    let addr = request.target.addr;
    let result = match request.target.kind {
        CheckKind::Connect => match timeout(request.timeout, TcpStream::connect(addr)).await {
            Ok(connected) => connected.map(|_| true),
            Err(_elapsed) => Ok(false),
        },
        CheckKind::Bloodmasters => {
            let echo = Echo(entropy::bytes()?);
            let mut query = Vec::new();
            Query { echo }.emit(&mut query);
            let is_answer = |datagram: &[u8]| Reply::parse(datagram).is_ok_and(|reply| reply.echo() == echo);
            ask(addr, &query, is_answer, request.timeout, sent).await
        }
        CheckKind::Session => {
            let mut query = Vec::new();
            ClientDatagram::Query.emit(&mut query);
            let is_answer = |datagram: &[u8]| matches!(ServerDatagram::parse(datagram), Ok(ServerDatagram::Info(_)));
            ask(addr, &query, is_answer, request.timeout, sent).await
        }
    };
    match result {
        Ok(true) => Ok(CheckResult::Reachable(began.elapsed())),
        Err(error) if is_own_trouble(&error) => Err(error),
        Ok(false) | Err(_) => Ok(CheckResult::Unreachable),
    }
}

/// Whether an error says something about this machine rather than about the one that was to be reached.
fn is_own_trouble(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(
            // No descriptors, no memory.
            libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM
            // No port, no address, no network, not this family.
            | libc::EAGAIN | libc::EADDRINUSE | libc::EADDRNOTAVAIL | libc::ENETUNREACH | libc::ENETDOWN
            | libc::EAFNOSUPPORT
            // Its own firewall.
            | libc::EPERM | libc::EACCES
        )
    )
}

/// Asks a server until it answers or the time is up. The socket is a new one, with a port that nobody can guess, and hears
/// nobody but the server.
async fn ask(
    addr: SocketAddr,
    query: &[u8],
    is_answer: impl Fn(&[u8]) -> bool,
    patience: Duration,
    sent: &AtomicU64,
) -> io::Result<bool> {
    let local: IpAddr = if addr.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((local, 0)).await?;
    socket.connect(addr).await?;
    let end = Instant::now() + patience;
    // Answers are longer than this, but what they begin with tells enough.
    let mut answer = vec![0; 65_536];
    while Instant::now() < end {
        let bytes = socket.send(query).await?;
        sent.fetch_add(bytes as u64, Relaxed);
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

#[cfg(test)]
mod tests {
    use super::*;
    use rallypoint_lobby_proto::CheckTarget;
    use std::net::{TcpListener, UdpSocket};

    const KINDS: [CheckKind; 3] = [CheckKind::Connect, CheckKind::Bloodmasters, CheckKind::Session];

    fn request(addr: SocketAddr, kind: CheckKind) -> CheckRequest {
        CheckRequest { target: CheckTarget { addr, kind }, timeout: Duration::from_secs(5) }
    }

    #[tokio::test]
    async fn l12_who_refuses_is_unreachable() {
        // Nobody listens there any more.
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        for (addr, kind) in [tcp, udp, udp].into_iter().zip(KINDS) {
            assert_eq!(
                check(request(addr, kind), &AtomicU64::new(0)).await.unwrap(),
                CheckResult::Unreachable,
                "{kind:?}"
            );
        }
    }

    #[tokio::test]
    async fn l12_who_refuses_is_known_before_a_silent_one_is_asked_again() {
        let (silent, sent) = (super::UdpSocket::bind("127.0.0.1:0").await.unwrap(), AtomicU64::new(0));
        let refused = async {
            for kind in [CheckKind::Bloodmasters, CheckKind::Session] {
                let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
                assert_eq!(check(request(closed, kind), &sent).await.unwrap(), CheckResult::Unreachable, "{kind:?}");
            }
        };
        let asked_twice = async {
            for _ in 0..2 {
                silent.recv_from(&mut [0; 64]).await.unwrap();
            }
        };
        tokio::select! {
            biased;
            () = refused => {}
            _ = check(request(silent.local_addr().unwrap(), CheckKind::Session), &sent) => panic!("nobody answers there"),
            () = asked_twice => panic!("a refusal is not noticed before something is sent again"),
        }
    }

    #[tokio::test]
    async fn l12_what_this_machine_cannot_do_is_no_verdict() {
        // It may not send to everybody: that is asked for by nobody, and shows the same as having no network.
        for kind in KINDS {
            let result = check(request("255.255.255.255:9".parse().unwrap(), kind), &AtomicU64::new(0)).await;
            assert!(is_own_trouble(&result.unwrap_err()), "{kind:?}");
        }
        for error in [libc::EMFILE, libc::ENETUNREACH, libc::EADDRNOTAVAIL] {
            assert!(is_own_trouble(&io::Error::from_raw_os_error(error)));
        }
        for error in [libc::ECONNREFUSED, libc::EHOSTUNREACH, libc::ETIMEDOUT, libc::ECONNRESET] {
            assert!(!is_own_trouble(&io::Error::from_raw_os_error(error)));
        }
    }
}
