//! An HTTP client for master lists and for a lobby's API, with TLS.
//!
//! hyper speaks HTTP and rustls TLS, on connections made by this crate: so the address family, the source address and the time
//! limits of a [`ScanConfig`] apply here, too, and the address that answered is known. hyper-util's client and ureq make
//! connections of their own.
//!
//! Redirects are not followed, so that an authorization header never goes to another host.

mod tls;

use crate::{
    HttpUrl, ProbeError, ScanConfig,
    resolve::resolve,
    tcp::{TimedStream, connect},
};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{
    Request, Response,
    body::Incoming,
    client::conn::http1,
    header::{self, HeaderValue},
};
use hyper_util::rt::TokioIo;
use rallypoint_wire::text;
use std::time::Duration;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::JoinSet,
    time::timeout,
};

/// Maximum size of a response header, in bytes.
const MAX_HEADER: usize = 16 << 10;

/// Maximum size of a response body, in bytes.
const MAX_BODY: usize = 4 << 20;

/// Maximum size of a list, in bytes: larger than that of a hundred thousand servers.
pub(crate) const MAX_LIST: usize = 128 << 20;

/// A request.
#[derive(Clone, Copy, Debug)]
pub struct HttpRequest<'a> {
    /// The method: `GET`, `POST`, ...
    pub method: &'a str,
    /// Header fields, in addition to `Host`, `User-Agent` and those that describe the body.
    pub headers: &'a [(&'a str, &'a str)],
    /// The body; empty for none.
    pub body: &'a [u8],
}

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpResponse {
    /// The status code.
    pub status: u16,
    /// The target of a redirect.
    pub location: Option<String>,
    /// The body.
    pub body: Vec<u8>,
}

impl HttpResponse {
    /// The body of a response with status 200.
    ///
    /// # Errors
    /// If the status is another one.
    pub fn into_body(self) -> Result<Vec<u8>, ProbeError> {
        match (self.status, self.location) {
            (200, _) => Ok(self.body),
            (_, Some(location)) => {
                Err(ProbeError::Malformed(format!("it has moved to {}: use that address", text::sanitize(&location))))
            }
            (status, None) => Err(ProbeError::Malformed(format!("the page answers with status {status}"))),
        }
    }
}

/// Reads a document.
///
/// # Errors
/// If the connection fails, or the status is not 200.
pub async fn get(url: &HttpUrl, config: &ScanConfig) -> Result<Vec<u8>, ProbeError> {
    let request = HttpRequest { method: "GET", headers: &[("Accept", "text/plain")], body: &[] };
    let response = send(url, request, config).await?;
    response.into_body()
}

/// Sends a request, and returns the response whatever its status is.
///
/// # Errors
/// If the connection fails, or the response is not valid HTTP or is too large.
pub async fn send(url: &HttpUrl, request: HttpRequest<'_>, config: &ScanConfig) -> Result<HttpResponse, ProbeError> {
    send_over(open(url, config).await?, url, request, MAX_BODY).await
}

async fn open(url: &HttpUrl, config: &ScanConfig) -> Result<TimedStream, ProbeError> {
    connect(&resolve(&url.host, url.port.get(), config.only_family()).await?, config).await
}

/// Sends a request over an existing connection, for a response of a limited size.
pub(crate) async fn send_over(
    TimedStream { stream, timeout, .. }: TimedStream,
    url: &HttpUrl,
    request: HttpRequest<'_>,
    max_body: usize,
) -> Result<HttpResponse, ProbeError> {
    if url.is_secure {
        let stream = within(timeout, tls::connect(stream, &url.host)).await?;
        exchange(Box::new(stream), timeout, url, request, max_body).await
    } else {
        exchange(Box::new(stream), timeout, url, request, max_body).await
    }
}

/// A connection with or without TLS: one type, so that the HTTP client is compiled once.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Sends a request and reads the response. The limit applies to every wait.
async fn exchange(
    stream: Box<dyn Stream>,
    limit: Duration,
    url: &HttpUrl,
    request: HttpRequest<'_>,
    max_body: usize,
) -> Result<HttpResponse, ProbeError> {
    let request = build(url, request)?;
    let handshake = http1::Builder::new().max_buf_size(MAX_HEADER).handshake(TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.map_err(|error| from_hyper(&error, limit))?;
    // Dropping the set ends the connection, also if this future is dropped.
    let mut tasks = JoinSet::new();
    tasks.spawn(connection);
    let response =
        within(limit, async { sender.send_request(request).await.map_err(|error| from_hyper(&error, limit)) });
    read(response.await?, limit, max_body).await
}

fn build(url: &HttpUrl, request: HttpRequest<'_>) -> Result<Request<Full<Bytes>>, ProbeError> {
    let HttpUrl { host, port, path, .. } = url;
    let HttpRequest { method, headers, body } = request;
    let mut builder = Request::builder()
        .method(method)
        .uri(&**path)
        .header(header::HOST, format!("{host}:{port}"))
        .header(header::USER_AGENT, concat!("rallypoint/", env!("CARGO_PKG_VERSION")))
        .header(header::CONNECTION, "close");
    for (name, value) in headers {
        let mut value = HeaderValue::from_str(value).map_err(|_| invalid_request())?;
        value.set_sensitive(name.eq_ignore_ascii_case("authorization"));
        builder = builder.header(*name, value);
    }
    builder.body(Full::new(Bytes::copy_from_slice(body))).map_err(|_| invalid_request())
}

fn invalid_request() -> ProbeError {
    ProbeError::Malformed("the URL or a header contains invalid characters".into())
}

async fn read(response: Response<Incoming>, limit: Duration, max_body: usize) -> Result<HttpResponse, ProbeError> {
    let status = response.status().as_u16();
    let location = response.headers().get(header::LOCATION);
    let location = location.map(|location| String::from_utf8_lossy(location.as_bytes()).into_owned());
    let mut incoming = response.into_body();
    let mut body = Vec::new();
    loop {
        let frame = within(limit, async { Ok(incoming.frame().await) }).await?;
        let Some(frame) = frame else { return Ok(HttpResponse { status, location, body }) };
        let frame = frame.map_err(|error| from_hyper(&error, limit))?;
        let Ok(data) = frame.into_data() else { continue };
        if body.len() + data.len() > max_body {
            return Err(ProbeError::Malformed(format!("it is larger than {} MiB", max_body >> 20)));
        }
        body.extend_from_slice(&data);
    }
}

async fn within<T>(limit: Duration, operation: impl Future<Output = Result<T, ProbeError>>) -> Result<T, ProbeError> {
    timeout(limit, operation).await.unwrap_or(Err(ProbeError::TimedOut(limit)))
}

fn from_hyper(error: &hyper::Error, limit: Duration) -> ProbeError {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<std::io::Error>());
    match cause {
        Some(io) => ProbeError::from_tcp(io, limit),
        None if error.is_incomplete_message() => ProbeError::incomplete(),
        None if error.is_parse_too_large() => ProbeError::Malformed("its header is too large".into()),
        None => ProbeError::Malformed("it is not an HTTP response".into()),
    }
}
