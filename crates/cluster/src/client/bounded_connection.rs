//! A connection to one server of the store whose replies are bounded.

use super::bounded_stream::BoundedStream;
use redis::{
    AsyncConnectionConfig, Cmd, ConnectionAddr, ConnectionInfo, ErrorKind, IntoConnectionInfo, Pipeline, RedisError,
    RedisFuture, Value,
    aio::{ConnectionLike, MultiplexedConnection},
    cluster_async::Connect,
};
use rustls::{ClientConfig, RootCertStore, pki_types::ServerName};
use std::{
    io,
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    task::AbortHandle,
};
use tokio_rustls::TlsConnector;

/// Time to connect to one server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A connection to one server. Clones share it.
#[derive(Clone)]
pub(super) struct BoundedConnection {
    connection: MultiplexedConnection,
    _driver: Arc<Driver>,
}

/// The task that sends and receives. It ends with the last clone, even if the server does not answer.
struct Driver(AbortHandle);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl BoundedConnection {
    pub async fn open(info: &ConnectionInfo, config: AsyncConnectionConfig) -> Result<Self, RedisError> {
        let connect = async {
            let stream = BoundedStream::new(open_stream(info.addr()).await?);
            MultiplexedConnection::new_with_config(info.redis_settings(), stream, config).await
        };
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, connect).await;
        let (connection, driver) = connected.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        let driver = Arc::new(Driver(tokio::spawn(driver).abort_handle()));
        Ok(Self { connection, _driver: driver })
    }
}

impl ConnectionLike for BoundedConnection {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        self.connection.req_packed_command(command)
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        commands: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        self.connection.req_packed_commands(commands, offset, count)
    }

    fn get_db(&self) -> i64 {
        self.connection.get_db()
    }
}

/// For the servers of a Redis Cluster.
impl Connect for BoundedConnection {
    fn connect_with_config<'a, T: IntoConnectionInfo + Send + 'a>(
        info: T,
        config: AsyncConnectionConfig,
    ) -> RedisFuture<'a, Self> {
        Box::pin(async move { Self::open(&info.into_connection_info()?, config).await })
    }
}

async fn open_stream(addr: &ConnectionAddr) -> Result<Box<dyn Stream>, RedisError> {
    match addr {
        ConnectionAddr::Tcp(host, port) => Ok(Box::new(open_tcp(host, *port).await?)),
        ConnectionAddr::TcpTls { host, port, insecure: false, .. } => {
            let name = ServerName::try_from(host.clone()).map_err(io::Error::other)?;
            let stream = open_tcp(host, *port).await?;
            Ok(Box::new(TlsConnector::from(client_config()?).connect(name, stream).await?))
        }
        #[cfg(unix)]
        ConnectionAddr::Unix(path) => Ok(Box::new(tokio::net::UnixStream::connect(path).await?)),
        _ => Err((ErrorKind::InvalidClientConfig, "this kind of connection is not supported").into()),
    }
}

pub(super) async fn open_tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((host, port)).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// The trusted certificates are those of the system, or of the file `SSL_CERT_FILE` and the directory `SSL_CERT_DIR` if these
/// variables are set. They are read once.
pub(super) fn client_config() -> io::Result<Arc<ClientConfig>> {
    static CONFIG: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    if let Some(config) = CONFIG.get() {
        return Ok(Arc::clone(config));
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::clone(CONFIG.get_or_init(|| Arc::new(config))))
}
