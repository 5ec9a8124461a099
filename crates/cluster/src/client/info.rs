//! The store's report about itself (`INFO`).

use super::{REQUEST_TIMEOUT, StoreClient, StoreConnection, error, store_error};
use crate::{StoreError, StoreErrorKind};
use redis::Value;

/// Oldest major version of Redis and Valkey that has the commands that are used.
const MIN_VERSION: u32 = 7;

/// The reply to INFO, as far as the store gives it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StoreInfo {
    /// Program and version: `Redis 7.0.15`.
    pub server: Option<String>,
    /// Whether it is part of a Redis Cluster.
    pub is_clustered: bool,
    /// `master` or `slave`.
    pub role: Option<String>,
    /// Memory in use, in bytes.
    pub used_memory: Option<u64>,
    /// Limit of that memory in bytes; 0 if there is none.
    pub max_memory: Option<u64>,
    /// The store's policy at that limit: `noeviction`, `allkeys-lru` and others.
    pub eviction_policy: Option<String>,
}

impl StoreInfo {
    fn parse(text: &str) -> Self {
        let field = |name: &str| {
            let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            Some(rallypoint_wire::text::sanitize(value.trim()).into_owned())
        };
        let number = |name: &str| field(name).and_then(|value| value.parse().ok());
        let valkey = field("valkey_version").map(|version| format!("Valkey {version}"));
        Self {
            server: valkey.or_else(|| field("redis_version").map(|version| format!("Redis {version}"))),
            is_clustered: field("cluster_enabled").is_some_and(|enabled| enabled == "1"),
            role: field("role"),
            used_memory: number("used_memory"),
            max_memory: number("maxmemory"),
            eviction_policy: field("maxmemory_policy"),
        }
    }

    fn major_version(&self) -> Option<u32> {
        let (_, version) = self.server.as_ref()?.split_once(' ')?;
        version.split('.').next()?.parse().ok()
    }

    /// A warning if the store can drop keys of the cluster. Policies for volatile keys concern only the claims of checks, which end
    /// after seconds anyway.
    pub fn eviction_warning(&self) -> Option<String> {
        let policy = self.eviction_policy.as_ref().filter(|policy| policy.starts_with("allkeys"))?;
        Some(format!(
            "the store drops keys of the cluster when its memory is full (maxmemory-policy {policy}), and with one key a part of \
             all servers: set maxmemory-policy noeviction"
        ))
    }
}

impl StoreClient {
    /// Reads what the store reports about itself: in a Redis Cluster, what the master with the keys of this cluster does.
    /// `None` if the user may not read it. A server of a Redis Cluster that is addressed as if it were alone is an error.
    pub(crate) async fn info(&self, connection: &mut StoreConnection) -> Result<Option<StoreInfo>, StoreError> {
        let url = self.connector.url();
        // All sections, because earlier versions do not take several names.
        let info = connection.query_at(&self.keys.all[0], redis::cmd("INFO"));
        let info = tokio::time::timeout(REQUEST_TIMEOUT, info).await.map_err(|_| error::timeout(url))?;
        match info {
            Ok(info) => {
                let info = StoreInfo::parse(&text(info));
                if info.is_clustered && !url.is_cluster() { Err(error::part_of_a_cluster(url)) } else { Ok(Some(info)) }
            }
            Err(error) if error.code() == Some("NOPERM") => Ok(None),
            Err(error) => Err(store_error(url, &error)),
        }
    }

    /// Checks that the store is new enough. A store whose user has no right to read the version is accepted.
    pub(super) async fn check_version(&self, connection: &mut StoreConnection) -> Result<(), StoreError> {
        let info = self.info(connection).await?;
        match info.as_ref().and_then(StoreInfo::major_version) {
            Some(version) if version < MIN_VERSION => {
                let message = format!(
                    "the store at {} has version {version}: Redis or Valkey {MIN_VERSION} or later is required",
                    self.connector.url()
                );
                Err(StoreError { kind: StoreErrorKind::Rejected, message })
            }
            _ => Ok(()),
        }
    }
}

fn text(value: Value) -> String {
    match value {
        Value::BulkString(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => text,
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_name() {
        let info = StoreInfo::parse(
            "# Server\r\nredis_version:7.0.15\r\n# Memory\r\nused_memory_human:1M\r\nused_memory:1000\r\nmaxmemory:5000\r\n\
             maxmemory_policy:allkeys-lru\r\nrole:master\r\n",
        );
        assert_eq!(info.server.as_deref(), Some("Redis 7.0.15"));
        assert_eq!((info.major_version(), info.used_memory, info.max_memory), (Some(7), Some(1_000), Some(5_000)));
        assert_eq!(info.role.as_deref(), Some("master"));
        assert_eq!(StoreInfo::parse("garbage"), StoreInfo::default());
        // Valkey has both.
        let info = StoreInfo::parse("redis_version:7.2.4\r\nvalkey_version:8.0.1\r\n");
        assert_eq!(info.server.as_deref(), Some("Valkey 8.0.1"));
    }

    #[test]
    fn only_policies_that_drop_keys_of_the_cluster_are_worth_a_warning() {
        let warning = |policy: &str| StoreInfo::parse(&format!("maxmemory_policy:{policy}")).eviction_warning();
        assert_eq!((warning("noeviction"), warning("volatile-lru")), (None, None));
        assert!(warning("allkeys-lfu").is_some_and(|warning| warning.contains("allkeys-lfu")));
        assert_eq!(StoreInfo::default().eviction_warning(), None);
    }
}
