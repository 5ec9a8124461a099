//! TLS with the system's trusted certificates.

use crate::{Host, ProbeError};
use rustls::{
    CertificateError, ClientConfig, RootCertStore,
    pki_types::{IpAddr, ServerName},
};
use std::{
    io,
    sync::{Arc, OnceLock},
};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

/// Encrypts a connection, and verifies that the server has a trusted certificate for this host.
pub(super) async fn connect(stream: TcpStream, host: &Host) -> Result<TlsStream<TcpStream>, ProbeError> {
    let name = match host {
        Host::Ip(ip) => ServerName::IpAddress(IpAddr::from(*ip)),
        Host::Name(name) => ServerName::try_from(name.to_string())
            .map_err(|_| ProbeError::Tls(format!("{name} is not a name that certificates are issued for")))?,
    };
    let connector = TlsConnector::from(client_config()?);
    connector.connect(name, stream).await.map_err(|error| describe(&error))
}

/// The trusted certificates are those of the system, or of the file `SSL_CERT_FILE` and the directory `SSL_CERT_DIR` if these
/// variables are set. They are read once: that takes milliseconds.
fn client_config() -> Result<Arc<ClientConfig>, ProbeError> {
    static CONFIG: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    if let Some(config) = CONFIG.get() {
        return Ok(config.clone());
    }
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        return Err(ProbeError::Tls(
            "this machine has no trusted certificates: install them (ca-certificates), or name a file with SSL_CERT_FILE"
                .into(),
        ));
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| ProbeError::Tls(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(CONFIG.get_or_init(|| Arc::new(config)).clone())
}

fn describe(error: &io::Error) -> ProbeError {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
    ProbeError::Tls(match cause {
        Some(rustls::Error::InvalidCertificate(error)) => match error {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                "the server's certificate is not trusted: it is self-signed, or from an unknown authority".into()
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "the server's certificate has expired".into()
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "the server's certificate is not valid yet: is this machine's clock right?".into()
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "the server's certificate is for another name".into()
            }
            other => format!("the server's certificate is invalid: {other}"),
        },
        Some(rustls::Error::InvalidMessage(_)) => "the server does not speak TLS at this port: is it http://?".into(),
        Some(other) => other.to_string(),
        None => match error.kind() {
            io::ErrorKind::UnexpectedEof => "the server closed the connection".into(),
            _ => error.to_string(),
        },
    })
}
