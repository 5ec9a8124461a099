//! Detects that a server uses TLS although its address is one without it, or the other way round.
//!
//! A Redis server with TLS resets a connection without it, and one without TLS waits for the rest of what it takes for a
//! command. Neither can be told from other failures, so one more connection is made: with TLS if the address is without it, and
//! the reverse.

use super::bounded_connection::{client_config, open_tcp};
use redis::ConnectionAddr;
use rustls::pki_types::ServerName;
use std::{io, time::Duration};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsConnector;

/// Time limit of that connection.
const TIMEOUT: Duration = Duration::from_secs(1);

/// How a server differs from its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TlsMismatch {
    /// The store requires TLS.
    Encrypted,
    /// The store does not use TLS.
    Plain,
}

/// Connects to a server with TLS if its address is without it, and the reverse.
pub(super) async fn find(addr: &ConnectionAddr) -> Option<TlsMismatch> {
    let find = async {
        match addr {
            ConnectionAddr::Tcp(host, port) => {
                has_tls(host, *port).await.unwrap_or(false).then_some(TlsMismatch::Encrypted)
            }
            ConnectionAddr::TcpTls { host, port, .. } => {
                is_plain(host, *port).await.unwrap_or(false).then_some(TlsMismatch::Plain)
            }
            _ => None,
        }
    };
    tokio::time::timeout(TIMEOUT, find).await.ok().flatten()
}

/// Whether a server takes part in a handshake of TLS. Whether its certificate is valid does not matter here.
async fn has_tls(host: &str, port: u16) -> io::Result<bool> {
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    let stream = open_tcp(host, port).await?;
    Ok(match TlsConnector::from(client_config()?).connect(name, stream).await {
        Ok(_) => true,
        Err(error) => matches!(
            error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>()),
            Some(
                rustls::Error::InvalidCertificate(_)
                    | rustls::Error::AlertReceived(_)
                    | rustls::Error::PeerIncompatible(_)
            )
        ),
    })
}

/// Whether a server replies to a command of Redis, if only with an error.
async fn is_plain(host: &str, port: u16) -> io::Result<bool> {
    let mut stream = open_tcp(host, port).await?;
    stream.write_all(b"*1\r\n$4\r\nPING\r\n").await?;
    let mut reply = [0; 64];
    let length = stream.read(&mut reply).await?;
    let reply = &reply[..length];
    Ok(["+PONG", "-NOAUTH", "-ERR", "-NOPERM", "-LOADING", "-DENIED"]
        .iter()
        .any(|start| reply.starts_with(start.as_bytes())))
}
