//! The master that Sentinel names. Its replies are bounded as those of the store are, which those of the client library are not.

use super::bounded_connection::BoundedConnection;
use redis::{AsyncConnectionConfig, ConnectionAddr, ConnectionInfo, ErrorKind, IntoConnectionInfo, RedisError, Value};

/// Connects to the master of a service: the first that one of the sentinels names and that is a master. `node` has everything
/// but its address.
pub(super) async fn connect_to_master(
    sentinels: &[ConnectionAddr],
    service: &str,
    node: &ConnectionInfo,
    config: &AsyncConnectionConfig,
) -> Result<BoundedConnection, RedisError> {
    let mut problem = RedisError::from((ErrorKind::InvalidClientConfig, "there is no sentinel"));
    for sentinel in sentinels {
        let connected = async {
            let addr = master_addr(sentinel, service, node, config).await?;
            let mut connection = BoundedConnection::open(&node.clone().set_addr(addr), config.clone()).await?;
            check_role(&mut connection).await?;
            Ok(connection)
        };
        match connected.await {
            Ok(connection) => return Ok(connection),
            // A sentinel that does not know of the service says more than one that cannot be reached.
            Err(_) if problem.kind() == ErrorKind::MasterNameNotFoundBySentinel => {}
            Err(error) => problem = error,
        }
    }
    Err(problem)
}

/// The address of the master as a sentinel knows it. The connection to it has TLS if that to `node` has. A sentinel that
/// requires a password gets that of the store.
async fn master_addr(
    sentinel: &ConnectionAddr,
    service: &str,
    node: &ConnectionInfo,
    config: &AsyncConnectionConfig,
) -> Result<ConnectionAddr, RedisError> {
    let info = sentinel.clone().into_connection_info()?;
    let has_password = node.redis_settings().password().is_some();
    let addr = match request_master_addr(&info, service, config).await {
        Err(error) if has_password && error.code() == Some("NOAUTH") => {
            let info = info.set_redis_settings(node.redis_settings().clone().set_db(0));
            request_master_addr(&info, service, config).await?
        }
        addr => addr?,
    };
    let Some((host, port)) = addr else {
        return Err((ErrorKind::MasterNameNotFoundBySentinel, "Sentinel does not know the service").into());
    };
    Ok(match node.addr().clone() {
        ConnectionAddr::TcpTls { insecure, tls_params, .. } => {
            ConnectionAddr::TcpTls { host, port, insecure, tls_params }
        }
        _ => ConnectionAddr::Tcp(host, port),
    })
}

async fn request_master_addr(
    sentinel: &ConnectionInfo,
    service: &str,
    config: &AsyncConnectionConfig,
) -> Result<Option<(String, u16)>, RedisError> {
    let mut connection = BoundedConnection::open(sentinel, config.clone()).await?;
    let mut command = redis::cmd("SENTINEL");
    command.arg("GET-MASTER-ADDR-BY-NAME").arg(service);
    command.query_async(&mut connection).await
}

/// Sentinel may not know yet that the server is a replica now. For a user without the right to read the role, that is assumed.
async fn check_role(connection: &mut BoundedConnection) -> Result<(), RedisError> {
    let role: Result<Vec<Value>, RedisError> = redis::cmd("ROLE").query_async(connection).await;
    match role {
        Ok(role) if role.first() == Some(&Value::BulkString(b"master".to_vec())) => Ok(()),
        Ok(_) => Err((ErrorKind::Io, "the server that Sentinel names is not a master (any more)").into()),
        Err(error) if error.code() == Some("NOPERM") => Ok(()),
        Err(error) => Err(error),
    }
}
