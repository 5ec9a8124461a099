//! Lists and APIs over `https://`: a certificate from a trusted authority is accepted, any other is refused with a reason, and
//! redirects are not followed.

use rallypoint_query::{
    HttpUrl, ProbeError, ScanConfig,
    http::{HttpRequest, get, send},
};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::{ServerConfig, pki_types::PrivateKeyDer};
use std::{net::SocketAddr, process::Command, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;

/// A certificate authority of the test.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new(key: KeyPair) -> Self {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// A server with a certificate of this authority for `name`.
    async fn server(&self, name: &str, response: &'static str) -> SocketAddr {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.into()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        serve(certificate.der().clone(), &key, response).await
    }
}

/// Answers every request with these bytes.
async fn serve(
    certificate: rustls::pki_types::CertificateDer<'static>,
    key: &KeyPair,
    response: &'static str,
) -> SocketAddr {
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let _ = stream.read(&mut [0; 4_096]).await;
                let _ = stream.write_all(response.as_bytes()).await;
                let _ = stream.shutdown().await;
            });
        }
    });
    addr
}

fn url(host: &str, addr: SocketAddr) -> HttpUrl {
    format!("https://{host}:{}/list", addr.port()).parse().unwrap()
}

const LIST: &str = "HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n192.0.2.1:6969\n";

/// Variable with the private key of the authority.
const KEY: &str = "TEST_AUTHORITY_KEY";

/// Runs itself once more, in a process that trusts an authority of the test: the trusted certificates are read once per
/// process, from the file that the environment names.
#[test]
fn certificates_are_verified() {
    if let Ok(key) = std::env::var(KEY) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        return runtime.block_on(verify_certificates(&Authority::new(KeyPair::from_pem(&key).unwrap())));
    }
    let key = KeyPair::generate().unwrap();
    let key_pem = key.serialize_pem();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), Authority::new(key).pem).unwrap();
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "certificates_are_verified"])
        .env("SSL_CERT_FILE", file.path())
        .env(KEY, key_pem)
        .status()
        .unwrap();
    assert!(status.success());
}

async fn verify_certificates(authority: &Authority) {
    let config = ScanConfig { timeout: Duration::from_secs(10), ..ScanConfig::default() };

    let trusted = authority.server("localhost", LIST).await;
    assert_eq!(get(&url("localhost", trusted), &config).await, Ok(b"192.0.2.1:6969\n".to_vec()));

    let key = KeyPair::generate().unwrap();
    let self_signed = CertificateParams::new(vec!["localhost".into()]).unwrap().self_signed(&key).unwrap();
    let untrusted = serve(self_signed.der().clone(), &key, LIST).await;
    let error = get(&url("localhost", untrusted), &config).await.unwrap_err();
    assert_eq!(error.code(), "tls_failed");
    assert_eq!(
        error.to_string(),
        "no secure connection: the server's certificate is not trusted: it is self-signed, or from an unknown authority"
    );

    let error = get(&url("127.0.0.1", trusted), &config).await.unwrap_err().to_string();
    assert!(error.contains("the server's certificate is for another name"), "{error}");

    let plain: HttpUrl = format!("http://localhost:{}/", trusted.port()).parse().unwrap();
    assert!(matches!(get(&plain, &config).await, Err(ProbeError::Malformed(_))));

    // A token must not reach another host: the redirect is returned, not followed.
    let moved = "HTTP/1.1 307 Moved\r\nLocation: https://elsewhere.example.org/\r\nContent-Length: 0\r\n\r\n";
    let redirect = authority.server("localhost", moved).await;
    let request = HttpRequest { method: "GET", headers: &[("Authorization", "Bearer secret")], body: &[] };
    let response = send(&url("localhost", redirect), request, &config).await.unwrap();
    assert_eq!((response.status, response.location.as_deref()), (307, Some("https://elsewhere.example.org/")));
    let error = get(&url("localhost", redirect), &config).await.unwrap_err().to_string();
    assert!(error.contains("it has moved to https://elsewhere.example.org/"), "{error}");
}
