//! Reachability checks (L12): a TCP connection, or a query over UDP.

use rallypoint_lobby_proto::{CheckKind, CheckRequest, CheckResult};
use rallypoint_query::{SingleProbe, SingleProbeConfig};
use rallypoint_query_proto::{Probe, ProbeOutcome, Protocol};
use rallypoint_udp::{clock, is_family_not_supported, is_shortage};
use std::{
    io,
    net::SocketAddr,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};
use tokio::{net::TcpStream, time::timeout};

/// Minimum interval at which a query without a reply is sent again: datagrams get lost.
const RESEND: Duration = Duration::from_secs(1);

/// Maximum number of queries of one check.
const MAX_QUERIES: u8 = 16;

/// Makes one check. The registry decides how many are made, and of which servers. An error means that this machine could not
/// make the check. The bytes of queries are added to `sent`: they go to addresses that have not confirmed that they expect
/// them.
pub(crate) async fn check(request: CheckRequest, sent: &AtomicU64) -> io::Result<CheckResult> {
    let began = clock::now();
    let addr = request.target.addr;
    let is_reachable = match request.target.kind {
        CheckKind::Connect => match timeout(request.timeout, TcpStream::connect(addr)).await {
            Ok(connected) => connected.map(|_| true),
            Err(_elapsed) => Ok(false),
        },
        CheckKind::Query(protocol) => query(addr, protocol, request.timeout, sent).await,
    };
    match is_reachable {
        Ok(true) => Ok(CheckResult::Reachable(began.elapsed())),
        Err(error) if is_local_error(&error) => Err(error),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(CheckResult::Refused),
        Ok(false) | Err(_) => Ok(CheckResult::Unreachable),
    }
}

/// Whether an error is about this machine rather than about the one to be reached.
fn is_local_error(error: &io::Error) -> bool {
    use io::ErrorKind::{AddrInUse, AddrNotAvailable, NetworkDown, NetworkUnreachable, PermissionDenied, WouldBlock};
    // No descriptors, no memory; no port, no address, no network, not this family; the local firewall.
    is_shortage(error)
        || is_family_not_supported(error)
        || matches!(
            error.kind(),
            WouldBlock | AddrInUse | AddrNotAvailable | NetworkUnreachable | NetworkDown | PermissionDenied
        )
}

/// Queries a server until it replies or the time is up.
async fn query(addr: SocketAddr, protocol: Protocol, deadline: Duration, sent: &AtomicU64) -> io::Result<bool> {
    // A probe has at most 16 queries: with a long time limit they are further apart.
    let retry_after = RESEND.max(deadline / u32::from(MAX_QUERIES));
    let queries = deadline.as_nanos().div_ceil(retry_after.as_nanos()).clamp(1, MAX_QUERIES.into());
    let retries = queries as u8 - 1;
    let config = SingleProbeConfig { deadline, retries, retry_after, backoff: 1.0, fail_on_socket_error: true };
    let mut probe = SingleProbe::connect(Probe::new(addr, protocol.presence()), &config).await?;
    let outcome = probe.run().await;
    sent.fetch_add(probe.stats().sent_bytes, Relaxed);
    match outcome? {
        ProbeOutcome::Answered(_) => Ok(true),
        ProbeOutcome::Refused => Err(io::ErrorKind::ConnectionRefused.into()),
        _ => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rallypoint_lobby_proto::CheckTarget;
    use std::net::{TcpListener, UdpSocket};

    const QUERIES: [CheckKind; 2] = [CheckKind::Query(Protocol::Bloodmasters), CheckKind::Query(Protocol::Session)];
    const KINDS: [CheckKind; 3] = [CheckKind::Connect, QUERIES[0], QUERIES[1]];

    fn request(addr: SocketAddr, kind: CheckKind) -> CheckRequest {
        CheckRequest { target: CheckTarget { addr, kind }, timeout: Duration::from_secs(5) }
    }

    #[tokio::test]
    async fn l12_a_refusal_is_told_apart_from_silence() {
        // These ports were closed again.
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        for (addr, kind) in [tcp, udp, udp].into_iter().zip(KINDS) {
            assert_eq!(check(request(addr, kind), &AtomicU64::new(0)).await.unwrap(), CheckResult::Refused, "{kind:?}");
        }
    }

    #[tokio::test]
    async fn l12_a_refusal_is_noticed_before_a_silent_server_is_queried_again() {
        let silent = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let sent = AtomicU64::new(0);
        let refused = async {
            for kind in QUERIES {
                let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
                assert_eq!(check(request(closed, kind), &sent).await.unwrap(), CheckResult::Refused, "{kind:?}");
            }
        };
        let queried_twice = async {
            for _ in 0..2 {
                silent.recv_from(&mut [0; 64]).await.unwrap();
            }
        };
        tokio::select! {
            biased;
            () = refused => {}
            _ = check(request(silent.local_addr().unwrap(), CheckKind::Query(Protocol::Session)), &sent) => panic!("there is no reply"),
            () = queried_twice => panic!("the refusal was not noticed before the next query"),
        }
    }

    #[tokio::test]
    async fn l12_an_error_of_this_machine_is_no_result() {
        // Sending to the broadcast address is not permitted, which has the same effect as having no network.
        for kind in KINDS {
            let result = check(request("255.255.255.255:9".parse().unwrap(), kind), &AtomicU64::new(0)).await;
            assert!(is_local_error(&result.unwrap_err()), "{kind:?}");
        }
        use io::ErrorKind::{
            AddrNotAvailable, ConnectionRefused, ConnectionReset, HostUnreachable, NetworkUnreachable, TimedOut,
        };
        for kind in [NetworkUnreachable, AddrNotAvailable] {
            assert!(is_local_error(&kind.into()));
        }
        for kind in [ConnectionRefused, HostUnreachable, TimedOut, ConnectionReset] {
            assert!(!is_local_error(&kind.into()));
        }
    }
}
