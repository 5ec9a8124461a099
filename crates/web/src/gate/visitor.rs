//! Who asks.

use axum::http::{HeaderMap, header};
use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};

/// Who asks. It is in the extensions of every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Visitor {
    /// The address: that of the connection, or what a trusted proxy says.
    pub ip: IpAddr,
    /// Whether it is this machine itself, and not somebody behind a proxy on it, nor a page of somebody else in a browser
    /// on it.
    pub is_local: bool,
}

impl Visitor {
    /// Who sent a request with these headers over a connection from there.
    ///
    /// Every proxy appends whom it has heard: what stands before the last word of a trusted proxy can be anybody's
    /// invention. So the list is read from its end, for as long as proxies are trusted.
    pub fn of(from: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> Self {
        let from = from.to_canonical();
        let is_trusted = |ip: &IpAddr| trusted.iter().any(|net| net.contains(ip));
        let is_passed_on = PROXY_HEADERS.iter().any(|name| headers.contains_key(*name));
        let mut ip = from;
        let words = headers.get_all(FORWARDED_FOR).iter().rev();
        let mut words = words.flat_map(|value| value.to_str().unwrap_or_default().rsplit(','));
        while is_trusted(&ip) {
            match words.next().and_then(|word| read(word.trim())) {
                Some(next) => ip = next,
                None => break,
            }
        }
        Self { ip, is_local: from.is_loopback() && !is_passed_on && is_meant_for_loopback(headers) }
    }
}

const FORWARDED_FOR: &str = "x-forwarded-for";

/// What a proxy adds to a request, one or another of them.
const PROXY_HEADERS: [&str; 6] =
    [FORWARDED_FOR, "forwarded", "via", "x-real-ip", "x-forwarded-host", "x-forwarded-proto"];

/// Whether this machine was asked for as itself. A page can have a name of its own lead to 127.0.0.1, and would then read
/// what is meant for the operator; but its name stays in the request.
fn is_meant_for_loopback(headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next().and_then(|host| host.to_str().ok()), hosts.next()) else { return false };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    name.eq_ignore_ascii_case("localhost") || read(name).is_some_and(|ip| ip.is_loopback())
}

/// An address, perhaps with a port.
fn read(word: &str) -> Option<IpAddr> {
    let with_port = || word.parse::<SocketAddr>().ok().map(|addr| addr.ip());
    let in_brackets = || word.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    word.parse().ok().or_else(with_port).or_else(in_brackets).map(|ip: IpAddr| ip.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn visitor(from: &str, forwarded: &[&str], trusted: &[&str]) -> Visitor {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_static("localhost:29950"));
        for value in forwarded {
            headers.append(FORWARDED_FOR, HeaderValue::from_str(value).unwrap());
        }
        let trusted: Vec<IpNet> = trusted.iter().map(|net| net.parse().unwrap()).collect();
        Visitor::of(from.parse().unwrap(), &headers, &trusted)
    }

    fn ip(from: &str, forwarded: &[&str], trusted: &[&str]) -> String {
        visitor(from, forwarded, trusted).ip.to_string()
    }

    #[test]
    fn strangers_are_not_believed() {
        assert_eq!(ip("192.0.2.1", &["198.51.100.7"], &[]), "192.0.2.1");
        assert_eq!(ip("192.0.2.1", &["198.51.100.7"], &["10.0.0.0/8"]), "192.0.2.1");
        assert_eq!(ip("::ffff:192.0.2.1", &[], &[]), "192.0.2.1");
    }

    #[test]
    fn a_trusted_proxy_is_believed_and_only_its_own_word() {
        let proxies = &["10.0.0.0/8"];
        assert_eq!(ip("10.0.0.1", &["198.51.100.7"], proxies), "198.51.100.7");
        assert_eq!(ip("10.0.0.1", &["203.0.113.1, 198.51.100.7"], proxies), "198.51.100.7");
        assert_eq!(ip("10.0.0.1", &["203.0.113.1", "198.51.100.7:4711, 10.9.9.9"], proxies), "198.51.100.7");
        assert_eq!(ip("10.0.0.1", &["[2001:db8::1]:80"], proxies), "2001:db8::1");
        assert_eq!(ip("10.0.0.1", &["[2001:db8::1]"], proxies), "2001:db8::1");
        assert_eq!(
            ip("10.0.0.1", &["198.51.100.7, unknown"], proxies),
            "10.0.0.1",
            "what cannot be read ends the list"
        );
        assert_eq!(ip("10.0.0.1", &[], proxies), "10.0.0.1");
    }

    #[test]
    fn who_comes_through_a_proxy_on_this_machine_is_not_this_machine() {
        assert!(visitor("127.0.0.1", &[], &[]).is_local);
        assert!(visitor("::1", &[], &["::1/128"]).is_local);
        assert!(!visitor("127.0.0.1", &["198.51.100.7"], &[]).is_local);
        assert!(!visitor("127.0.0.1", &["127.0.0.1"], &["127.0.0.0/8"]).is_local);
        assert!(!visitor("192.0.2.1", &[], &[]).is_local);
    }

    #[test]
    fn this_machine_is_who_asks_for_it_as_itself() {
        let is_local = |pairs: &[(&'static str, &'static str)]| {
            let headers = pairs
                .iter()
                .map(|(name, value)| (axum::http::HeaderName::from_static(name), HeaderValue::from_static(value)));
            Visitor::of("127.0.0.1".parse().unwrap(), &headers.collect(), &[]).is_local
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
