//! The address of the client, also behind trusted proxies.

use axum::http::{HeaderMap, header};
use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};

/// The address that a request came from. It is an extension of every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientAddr {
    /// The peer of the connection, or the client that a trusted proxy names.
    pub ip: IpAddr,
    /// Whether the request was made on this machine, for this machine: not through a proxy that runs on it, and not by the
    /// page of another site in a browser on it.
    pub is_local: bool,
    /// Whether a proxy forwarded the request without naming its client in a way that is trusted: then `ip` is that of the proxy,
    /// for all of its clients. Any client can pretend this, and gains nothing by it.
    pub is_unnamed: bool,
}

impl ClientAddr {
    /// The client that sent a request with these headers over a connection from `peer`.
    ///
    /// Every proxy appends the address of its own peer to `X-Forwarded-For`; all entries before that of the first trusted proxy
    /// can be forged. So the list is read from its end, as long as the addresses belong to trusted proxies.
    pub fn resolve(peer: IpAddr, headers: &HeaderMap, trusted_proxies: &[IpNet]) -> Self {
        let peer = peer.to_canonical();
        let is_trusted = |ip: &IpAddr| trusted_proxies.iter().any(|net| net.contains(ip));
        let is_proxied = PROXY_HEADERS.iter().any(|name| headers.contains_key(*name));
        let values = headers.get_all(FORWARDED_FOR).iter().rev();
        let mut entries = values.flat_map(|value| value.to_str().unwrap_or_default().rsplit(','));
        let mut ip = peer;
        let mut is_named = false;
        while is_trusted(&ip) {
            match entries.next().and_then(|entry| parse_addr(entry.trim())) {
                Some(next) => ip = next,
                None => break,
            }
            is_named = true;
        }
        let is_local = peer.is_loopback() && !is_proxied && is_host_loopback(headers);
        Self { ip, is_local, is_unnamed: is_proxied && !is_named }
    }
}

const FORWARDED_FOR: &str = "x-forwarded-for";

/// Headers that proxies add; each proxy adds at least one of them.
const PROXY_HEADERS: [&str; 6] =
    [FORWARDED_FOR, "forwarded", "via", "x-real-ip", "x-forwarded-host", "x-forwarded-proto"];

/// Whether the `Host` header names this machine as `localhost` or a loopback address. A malicious page can point a DNS name of
/// its own at 127.0.0.1 (DNS rebinding) to read what only the operator may read, but the browser still sends that name.
fn is_host_loopback(headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next().and_then(|host| host.to_str().ok()), hosts.next()) else { return false };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    name.eq_ignore_ascii_case("localhost") || parse_addr(name).is_some_and(|ip| ip.is_loopback())
}

/// Parses an IP address with or without brackets and port.
pub(crate) fn parse_addr(text: &str) -> Option<IpAddr> {
    let with_port = || text.parse::<SocketAddr>().ok().map(|addr| addr.ip());
    let in_brackets = || text.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    text.parse().ok().or_else(with_port).or_else(in_brackets).map(|ip: IpAddr| ip.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn client(peer: &str, forwarded: &[&str], trusted: &[&str]) -> ClientAddr {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_static("localhost:29950"));
        for value in forwarded {
            headers.append(FORWARDED_FOR, HeaderValue::from_str(value).unwrap());
        }
        let trusted: Vec<IpNet> = trusted.iter().map(|net| net.parse().unwrap()).collect();
        ClientAddr::resolve(peer.parse().unwrap(), &headers, &trusted)
    }

    fn ip(peer: &str, forwarded: &[&str], trusted: &[&str]) -> String {
        client(peer, forwarded, trusted).ip.to_string()
    }

    #[test]
    fn forwarded_for_of_untrusted_peers_is_ignored() {
        assert_eq!(ip("192.0.2.1", &["198.51.100.7"], &[]), "192.0.2.1");
        assert_eq!(ip("192.0.2.1", &["198.51.100.7"], &["10.0.0.0/8"]), "192.0.2.1");
        assert_eq!(ip("::ffff:192.0.2.1", &[], &[]), "192.0.2.1");
    }

    #[test]
    fn forwarded_for_is_read_from_the_end_while_proxies_are_trusted() {
        let proxies = &["10.0.0.0/8"];
        assert_eq!(ip("10.0.0.1", &["198.51.100.7"], proxies), "198.51.100.7");
        assert_eq!(ip("10.0.0.1", &["203.0.113.1, 198.51.100.7"], proxies), "198.51.100.7");
        assert_eq!(ip("10.0.0.1", &["203.0.113.1", "198.51.100.7:4711, 10.9.9.9"], proxies), "198.51.100.7");
        assert_eq!(ip("10.0.0.1", &["[2001:db8::1]:80"], proxies), "2001:db8::1");
        assert_eq!(ip("10.0.0.1", &["[2001:db8::1]"], proxies), "2001:db8::1");
        assert_eq!(
            ip("10.0.0.1", &["198.51.100.7, unknown"], proxies),
            "10.0.0.1",
            "an entry that is no address ends the list"
        );
        assert_eq!(ip("10.0.0.1", &[], proxies), "10.0.0.1");
    }

    #[test]
    fn requests_through_a_proxy_on_this_machine_are_not_local() {
        assert!(client("127.0.0.1", &[], &[]).is_local);
        assert!(client("::1", &[], &["::1/128"]).is_local);
        assert!(!client("127.0.0.1", &["198.51.100.7"], &[]).is_local);
        assert!(!client("127.0.0.1", &["127.0.0.1"], &["127.0.0.0/8"]).is_local);
        assert!(!client("192.0.2.1", &[], &[]).is_local);
    }

    #[test]
    fn clients_of_a_proxy_that_is_not_trusted_have_no_names() {
        assert!(client("127.0.0.1", &["198.51.100.7"], &[]).is_unnamed);
        assert!(!client("127.0.0.1", &["198.51.100.7"], &["127.0.0.1/32"]).is_unnamed);
        assert!(!client("127.0.0.1", &["127.0.0.1"], &["127.0.0.1/32"]).is_unnamed);
        assert!(client("127.0.0.1", &["unknown"], &["127.0.0.1/32"]).is_unnamed);
        assert!(!client("127.0.0.1", &[], &[]).is_unnamed);
    }

    #[test]
    fn local_requests_name_a_loopback_host() {
        let is_local = |pairs: &[(&'static str, &'static str)]| {
            let headers = pairs
                .iter()
                .map(|(name, value)| (axum::http::HeaderName::from_static(name), HeaderValue::from_static(value)));
            ClientAddr::resolve("127.0.0.1".parse().unwrap(), &headers.collect(), &[]).is_local
        };
        for host in ["localhost", "LOCALHOST:29950", "127.0.0.1", "127.0.0.1:29950", "[::1]", "[::1]:29950"] {
            assert!(is_local(&[("host", host)]), "{host}");
        }
        for host in
            ["", "evil.example", "evil.example:29950", "localhost.evil.example", "192.0.2.1", "127.0.0.1.evil.example"]
        {
            assert!(!is_local(&[("host", host)]), "{host}");
        }
        assert!(!is_local(&[]));
        assert!(!is_local(&[("host", "localhost"), ("host", "evil.example")]));
        for header in PROXY_HEADERS {
            assert!(!is_local(&[("host", "localhost"), (header, "192.0.2.1")]), "{header}");
        }
    }
}
