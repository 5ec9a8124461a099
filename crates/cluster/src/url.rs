//! The address of the store.

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo};
use std::{fmt, str::FromStr};
use thiserror::Error;

/// Port of Redis and Valkey.
const SERVER_PORT: u16 = 6379;

/// Port of Sentinel.
const SENTINEL_PORT: u16 = 26379;

/// The address of the store: one server, a Redis Cluster, or a server that Sentinel names.
///
/// | form | meaning |
/// |---|---|
/// | `redis://[user:password@]host[:port][/database]` | one server; `rediss` with TLS, `redis+unix` a socket |
/// | `redis://host:port,host:port,...` | a Redis Cluster, of which some nodes are named |
/// | `redis+sentinel://[user:password@]host:port,.../service[/database]` | the master of a service; `rediss+sentinel` with TLS |
///
/// `valkey` and `valkeys` mean the same as `redis` and `rediss`. Passwords are not displayed.
///
/// ```
/// use rallypoint_cluster::StoreUrl;
///
/// let url: StoreUrl = "rediss://lobby:hunter2@store.example.org:6380/3".parse()?;
/// assert_eq!(url.to_string(), "rediss://store.example.org:6380/3");
/// # Ok::<(), rallypoint_cluster::StoreUrlError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct StoreUrl {
    text: String,
}

/// Which part of a text is wrong, so that it is not the address of a store. The text itself is not repeated: it can have a
/// password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StoreUrlError {
    /// Before `://`.
    #[error(
        "expected an address such as redis://host:6379, rediss://user:password@host:6380, redis://host:7000,host:7001 for a \
         Redis Cluster, or redis+sentinel://host:26379/service"
    )]
    Scheme,
    /// A name or an IP address.
    #[error(
        "a host is missing or not valid: redis://host:6379, and an IPv6 address in brackets, redis://[2001:db8::1]:6379"
    )]
    Host,
    /// The number after a host.
    #[error("a port is not a number from 1 to 65535: redis://host:6379")]
    Port,
    /// Before the hosts.
    #[error("the user or password has a character that ends it: write %2F for /, %3F for ? and %23 for #")]
    Password,
    /// The number after the hosts.
    #[error("what follows the host must be the number of a database: redis://host:6379/3")]
    Database,
    /// The number of a database after the hosts of a Redis Cluster.
    #[error(
        "a Redis Cluster has no numbered databases: leave the number after the hosts out, and choose a cluster.name instead"
    )]
    ClusterDatabase,
    /// The name of the store in Sentinel.
    #[error("the name of the service is missing: redis+sentinel://host:26379/service")]
    Service,
    /// The path of a Unix socket.
    #[error("the path of the socket is missing or not valid: redis+unix:///run/redis.sock")]
    Socket,
    /// After `?`.
    #[error(
        "an unknown setting after ?: a user and password are written before the host, redis://user:password@host:6379, and only a \
         socket has db, user and pass, redis+unix:///run/redis.sock?pass=PASSWORD"
    )]
    Query,
    /// After `#`.
    #[error("the certificate of the store is always verified: leave # and what follows out")]
    Fragment,
}

/// How the store is reached.
#[derive(Clone, Debug)]
pub(crate) enum Topology {
    Single(Box<ConnectionInfo>),
    Cluster(Vec<ConnectionInfo>),
    Sentinel { sentinels: Vec<ConnectionAddr>, service: String, node: Box<ConnectionInfo> },
}

impl StoreUrl {
    /// The text with the password, for the configuration of another node.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.text
    }

    /// Whether it is the address of a Redis Cluster.
    pub(crate) fn is_cluster(&self) -> bool {
        matches!(self.topology(), Ok(Topology::Cluster(_)))
    }

    pub(crate) fn topology(&self) -> Result<Topology, StoreUrlError> {
        let (scheme, rest) = self.text.split_once("://").ok_or(StoreUrlError::Scheme)?;
        if ["redis+unix", "valkey+unix", "unix"].contains(&scheme) {
            check_query(rest.split_once('?').map_or("", |(_, query)| query), &["db", "user", "pass", "protocol"])?;
            return info(&self.text, StoreUrlError::Socket).map(|info| Topology::Single(Box::new(info)));
        }
        let server_scheme = scheme.strip_suffix("+sentinel").unwrap_or(scheme);
        if !["redis", "rediss", "valkey", "valkeys"].contains(&server_scheme) {
            return Err(StoreUrlError::Scheme);
        }
        let (user, rest) = rest.rsplit_once('@').map_or((None, rest), |(user, rest)| (Some(user), rest));
        if user.is_some_and(|user| user.contains(['/', '?', '#'])) {
            return Err(StoreUrlError::Password);
        }
        if rest.contains('#') {
            return Err(StoreUrlError::Fragment);
        }
        let user = user.map(|user| format!("{user}@")).unwrap_or_default();
        let (hosts, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let hosts = hosts.split(',').map(Host::parse).collect::<Result<Vec<_>, _>>()?;
        let (path, query) = path.split_at(path.find('?').unwrap_or(path.len()));
        check_query(query.trim_start_matches('?'), &["protocol"])?;
        let path = path.trim_matches('/');
        if server_scheme != scheme {
            let (service, database) = path.split_once('/').unwrap_or((path, ""));
            let service = Some(service).filter(|service| !service.is_empty()).ok_or(StoreUrlError::Service)?;
            check_database(database)?;
            let node = info(&format!("{server_scheme}://{user}localhost/{database}{query}"), StoreUrlError::Password)?;
            let sentinel = |host: &Host<'_>| {
                let port = host.port.unwrap_or(SENTINEL_PORT);
                let name = host.name;
                info(&format!("{server_scheme}://{name}:{port}"), StoreUrlError::Host).map(|info| info.addr().clone())
            };
            let sentinels = hosts.iter().map(sentinel).collect::<Result<_, _>>()?;
            return Ok(Topology::Sentinel { sentinels, service: service.to_owned(), node: Box::new(node) });
        }
        check_database(path)?;
        if hosts.len() > 1 && path.parse::<u32>().is_ok_and(|database| database > 0) {
            return Err(StoreUrlError::ClusterDatabase);
        }
        let server = |host: &Host<'_>| {
            let port = host.port.unwrap_or(SERVER_PORT);
            info(&format!("{scheme}://{user}{}:{port}/{path}{query}", host.name), StoreUrlError::Host)
        };
        let mut servers = hosts.iter().map(server).collect::<Result<Vec<_>, _>>()?;
        match servers.len() {
            1 => Ok(Topology::Single(Box::new(servers.remove(0)))),
            _ => Ok(Topology::Cluster(servers)),
        }
    }
}

/// A host as it is written: a name, an IPv4 address, or an IPv6 address in brackets; and its port, if there is one.
struct Host<'a> {
    name: &'a str,
    port: Option<u16>,
}

impl<'a> Host<'a> {
    fn parse(text: &'a str) -> Result<Self, StoreUrlError> {
        let end_of_ip = text.rfind(']').map_or(0, |end| end + 1);
        let (name, port) = match text[end_of_ip..].find(':') {
            Some(colon) => (&text[..end_of_ip + colon], Some(&text[end_of_ip + colon + 1..])),
            None => (text, None),
        };
        // An IPv6 address without brackets.
        let has_colons = port.is_some_and(|port| port.contains(':'));
        if name.is_empty() || has_colons {
            return Err(StoreUrlError::Host);
        }
        let port =
            port.map(|port| port.parse().ok().filter(|port| *port > 0).ok_or(StoreUrlError::Port)).transpose()?;
        Ok(Self { name, port })
    }
}

fn check_database(text: &str) -> Result<(), StoreUrlError> {
    let is_number = text.is_empty() || text.parse::<u32>().is_ok();
    is_number.then_some(()).ok_or(StoreUrlError::Database)
}

/// Refuses settings that would be ignored: a password among them would not be used.
fn check_query(query: &str, known: &[&str]) -> Result<(), StoreUrlError> {
    let mut names = query.split('&').filter(|setting| !setting.is_empty()).map(|setting| setting.split('=').next());
    names.all(|name| name.is_some_and(|name| known.contains(&name))).then_some(()).ok_or(StoreUrlError::Query)
}

/// Parses the address of one server, of which only this part has not been checked.
fn info(url: &str, unchecked: StoreUrlError) -> Result<ConnectionInfo, StoreUrlError> {
    url.into_connection_info().map_err(|_| unchecked)
}

impl FromStr for StoreUrl {
    type Err = StoreUrlError;

    fn from_str(text: &str) -> Result<Self, StoreUrlError> {
        let url = Self { text: text.trim().to_owned() };
        url.topology().map(|_| url)
    }
}

/// The address without user and password.
impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, rest) = self.text.split_once("://").unwrap_or(("", &self.text));
        // The query can have a password, too.
        let rest = rest.split('?').next().unwrap_or_default();
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let hosts = authority.rsplit_once('@').map_or(authority, |(_, hosts)| hosts);
        write!(f, "{scheme}://{hosts}{path}")
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topology(text: &str) -> Topology {
        text.parse::<StoreUrl>().unwrap().topology().unwrap()
    }

    #[test]
    fn one_server_a_cluster_and_sentinel_are_told_apart() {
        assert!(matches!(topology("redis://localhost"), Topology::Single(_)));
        assert!(matches!(topology("valkeys://:secret@store.example.org:6380/2"), Topology::Single(_)));
        assert!(matches!(topology("redis+unix:///run/redis.sock"), Topology::Single(_)));
        assert!(matches!(topology("redis+unix:///run/redis.sock?db=1&user=u&pass=p"), Topology::Single(_)));
        assert!(matches!(topology("redis://localhost/?protocol=resp3"), Topology::Single(_)));
        let Topology::Cluster(nodes) = topology("redis://u:p@a:7000,b:7001,[::1]:7002") else { panic!("no cluster") };
        assert_eq!(nodes.len(), 3);
        assert_eq!(nodes[1].addr().to_string(), "b:7001");
        let Topology::Sentinel { sentinels, service, .. } = topology("redis+sentinel://:p@a,b:5000/main/1") else {
            panic!("no sentinel")
        };
        let addrs: Vec<_> = sentinels.iter().map(ToString::to_string).collect();
        assert_eq!((addrs, &*service), (vec!["a:26379".into(), "b:5000".into()], "main"));
    }

    #[test]
    fn a_wrong_part_is_named() {
        for (wrong, part) in [
            ("", StoreUrlError::Scheme),
            ("localhost:6379", StoreUrlError::Scheme),
            ("http://localhost", StoreUrlError::Scheme),
            ("redis+cluster://localhost", StoreUrlError::Scheme),
            ("redis://", StoreUrlError::Host),
            ("redis://:6379", StoreUrlError::Host),
            ("redis://a,,b", StoreUrlError::Host),
            ("redis://2001:db8::1", StoreUrlError::Host),
            ("redis://[2001:db8::x]:1", StoreUrlError::Host),
            ("redis://0.0.0.0", StoreUrlError::Host),
            ("redis://a:x", StoreUrlError::Port),
            ("redis://a:0", StoreUrlError::Port),
            ("redis://a:1,b:70000", StoreUrlError::Port),
            ("redis://[::1]:x", StoreUrlError::Port),
            ("redis://:pass/word@a", StoreUrlError::Password),
            ("redis://:pass?word@a", StoreUrlError::Password),
            ("redis://user:#1@a,b", StoreUrlError::Password),
            ("redis://a/main", StoreUrlError::Database),
            ("redis://a/-1", StoreUrlError::Database),
            ("redis+sentinel://a/main/x", StoreUrlError::Database),
            ("redis://a:7000,b:7001/3", StoreUrlError::ClusterDatabase),
            ("redis+sentinel://a:26379", StoreUrlError::Service),
            ("redis://a:6379?password=hunter2", StoreUrlError::Query),
            ("redis://a,b/?protocol=resp3&pass=x", StoreUrlError::Query),
            ("redis+sentinel://a/main?db=1", StoreUrlError::Query),
            ("redis+unix:///run/redis.sock?password=x", StoreUrlError::Query),
            ("rediss://a#insecure", StoreUrlError::Fragment),
        ] {
            assert_eq!(wrong.parse::<StoreUrl>(), Err(part), "{wrong}");
        }
    }

    #[test]
    fn databases_have_numbers_except_in_a_redis_cluster() {
        let Topology::Single(info) = topology("redis://:p%2F%40@a/3") else { panic!("not one server") };
        assert_eq!((info.redis_settings().db(), info.redis_settings().password()), (3, Some("p/@")));
        let Topology::Sentinel { node, .. } = topology("redis+sentinel://:p@a,b/main/2") else { panic!("no sentinel") };
        assert_eq!((node.redis_settings().db(), node.redis_settings().password()), (2, Some("p")));
        assert!(matches!(topology("redis://a:7000,b:7001/0"), Topology::Cluster(_)));
        assert!(matches!(topology("redis://a:7000,b:7001/"), Topology::Cluster(_)));
    }

    #[test]
    fn passwords_are_not_displayed() {
        for text in ["redis://user:hunter2@a:1/0", "redis+sentinel://:hunter2@a/main", "redis+unix:///s?pass=hunter2"] {
            let url: StoreUrl = text.parse().unwrap();
            assert!(!format!("{url} {url:?}").contains("hunter2"), "{url}");
            assert!(url.expose().contains("hunter2"));
        }
        // Refused, but the text is displayed in the same way.
        for text in ["redis://a:6379?password=hunter2", "redis://a?x=/hunter2", "redis+sentinel://a,b?user=x@hunter2"] {
            let url = StoreUrl { text: text.into() };
            assert!(!format!("{url} {url:?}").contains("hunter2"), "{url}");
        }
    }
}
