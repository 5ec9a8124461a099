//! The address of the store.

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo};
use std::{fmt, str::FromStr};
use thiserror::Error;

/// Port of Redis Sentinel.
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

/// Why a text is not the address of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "expected an address such as redis://host:6379, rediss://user:password@host:6380, redis://host:7000,host:7001 for a \
     cluster, or redis+sentinel://host:26379/service"
)]
pub struct StoreUrlError;

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
        let (scheme, rest) = self.text.split_once("://").ok_or(StoreUrlError)?;
        if scheme.ends_with("unix") {
            return info(&self.text).map(|info| Topology::Single(Box::new(info)));
        }
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, hosts) = authority.rsplit_once('@').map_or((None, authority), |(user, hosts)| (Some(user), hosts));
        let user = user.map(|user| format!("{user}@")).unwrap_or_default();
        let hosts: Vec<_> = hosts.split(',').collect();
        if let Some(scheme) = scheme.strip_suffix("+sentinel") {
            let (service, database) = path.split_once('/').unwrap_or((path, ""));
            let node = info(&format!("{scheme}://{user}localhost/{database}"))?;
            let sentinel = |host: &&str| match info(&format!("{scheme}://{host}"))?.addr().clone() {
                ConnectionAddr::Tcp(name, port) => Ok(ConnectionAddr::Tcp(name, sentinel_port(host, port))),
                ConnectionAddr::TcpTls { host: name, port, insecure, tls_params } => {
                    Ok(ConnectionAddr::TcpTls { host: name, port: sentinel_port(host, port), insecure, tls_params })
                }
                _ => Err(StoreUrlError),
            };
            let sentinels = hosts.iter().map(sentinel).collect::<Result<_, _>>()?;
            let service = Some(service).filter(|service| !service.is_empty()).ok_or(StoreUrlError)?.to_owned();
            return Ok(Topology::Sentinel { sentinels, service, node: Box::new(node) });
        }
        let one = |host: &&str| info(&format!("{scheme}://{user}{host}/{path}"));
        let mut infos = hosts.iter().map(one).collect::<Result<Vec<_>, _>>()?;
        match infos.len() {
            1 => Ok(Topology::Single(Box::new(infos.remove(0)))),
            _ => Ok(Topology::Cluster(infos)),
        }
    }
}

fn sentinel_port(host: &str, port: u16) -> u16 {
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    if has_port { port } else { SENTINEL_PORT }
}

fn info(url: &str) -> Result<ConnectionInfo, StoreUrlError> {
    url.into_connection_info().map_err(|_| StoreUrlError)
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
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let hosts = authority.rsplit_once('@').map_or(authority, |(_, hosts)| hosts);
        // The query can have a password, too.
        let path = path.split('?').next().unwrap_or_default();
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
    fn other_texts_are_refused_with_examples() {
        for wrong in ["", "localhost:6379", "http://localhost", "redis://", "redis+sentinel://a:26379", "redis://a:x"] {
            assert_eq!(wrong.parse::<StoreUrl>(), Err(StoreUrlError), "{wrong}");
        }
    }

    #[test]
    fn passwords_are_not_displayed() {
        for text in ["redis://user:hunter2@a:1/0", "redis+sentinel://:hunter2@a/main", "redis+unix:///s?pass=hunter2"] {
            let url: StoreUrl = text.parse().unwrap();
            assert!(!format!("{url} {url:?}").contains("hunter2"), "{url}");
            assert!(url.expose().contains("hunter2"));
        }
    }
}
