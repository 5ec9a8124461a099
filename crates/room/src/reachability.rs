//! Whether a server can be reached at all. A login without an answer takes seconds to fail, and does not explain why; the
//! operating system often knows at once that a port is closed or that there is no route.

use rallypoint_query::{
    ProbeError, SingleProbe, SingleProbeConfig,
    proto::{Probe, ProbeOutcome, Protocol},
};
use std::{io, net::SocketAddr, time::Duration};
use tokio::task::JoinSet;

/// Time limit: a machine reports a closed port within a round trip, and another query is sent every second.
const DEADLINE: Duration = Duration::from_secs(4);

/// Why no address can be reached; never returns if one of them may still answer.
pub async fn failure(addrs: &[SocketAddr]) -> String {
    let mut probes = JoinSet::new();
    for &addr in addrs {
        probes.spawn(async move { (addr, error(addr).await) });
    }
    let mut failed = Vec::new();
    while let Some(Ok((addr, Some(error)))) = probes.join_next().await {
        failed.push((addr, error));
        if failed.len() == addrs.len() {
            return describe(failed);
        }
    }
    std::future::pending().await
}

/// Why an address cannot be reached; `None` if it may be reachable.
async fn error(addr: SocketAddr) -> Option<ProbeError> {
    let config = SingleProbeConfig { deadline: DEADLINE, fail_on_socket_error: true, ..SingleProbeConfig::default() };
    let outcome = async {
        let mut probe = SingleProbe::connect(Probe::new(addr, Protocol::Session.presence()), &config).await?;
        probe.run().await
    };
    match outcome.await {
        Ok(ProbeOutcome::Refused) => Some(ProbeError::Refused),
        Err(error) if is_no_route(&error) => Some(ProbeError::NoRoute(describe_route(addr, &error))),
        _ => None,
    }
}

fn is_no_route(error: &io::Error) -> bool {
    use io::ErrorKind::{AddrNotAvailable, HostUnreachable, NetworkUnreachable};
    matches!(error.kind(), AddrNotAvailable | HostUnreachable | NetworkUnreachable)
}

fn describe_route(addr: SocketAddr, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::HostUnreachable => "the host is unreachable".into(),
        _ if addr.is_ipv6() => "there is no IPv6 connection".into(),
        _ => "there is no network connection".into(),
    }
}

/// `127.0.0.1:45555 and [::1]:45555: refused: nothing listens at that port...`
fn describe(mut failed: Vec<(SocketAddr, ProbeError)>) -> String {
    failed.sort_by_key(|(addr, _)| *addr);
    let mut texts: Vec<(String, Vec<String>)> = Vec::new();
    for (addr, error) in failed {
        let text = error.to_string();
        match texts.iter_mut().find(|(known, _)| *known == text) {
            Some((_, addrs)) => addrs.push(addr.to_string()),
            None => texts.push((text, vec![addr.to_string()])),
        }
    }
    texts.iter().map(|(text, addrs)| format!("{}: {text}", addrs.join(" and "))).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_with_the_same_error_are_reported_together() {
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        let failed = vec![(at("[::1]:7"), ProbeError::Refused), (at("127.0.0.1:7"), ProbeError::Refused)];
        assert!(describe(failed).starts_with("127.0.0.1:7 and [::1]:7: refused: nothing listens"));
        let failed = vec![
            (at("127.0.0.1:7"), ProbeError::Refused),
            (at("[::1]:7"), ProbeError::NoRoute("there is no IPv6 connection".into())),
        ];
        let text = describe(failed);
        assert!(text.ends_with("; [::1]:7: this machine cannot reach it: there is no IPv6 connection"), "{text}");
    }

    #[tokio::test]
    async fn a_closed_port_is_reported_unless_another_address_may_answer() {
        let closed = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        assert!(failure(&[closed]).await.contains("refused"));
        let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let both = [closed, silent.local_addr().unwrap()];
        tokio::select! {
            biased;
            text = failure(&both) => panic!("{text}"),
            () = async { while error(closed).await.is_none() {} } => {}
        }
    }
}
