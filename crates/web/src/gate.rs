//! What every request passes before it is answered, and every answer before it is sent.

use crate::{api, page, problem::Problem, shared::Web};
use axum::{
    Router,
    body::Body,
    http::{HeaderValue, Request, Response, StatusCode, header},
    response::IntoResponse,
};
use std::{convert::Infallible, net::IpAddr};
use tower_service::Service;

/// Who asks. It is in the extensions of every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Visitor {
    /// The address: that of the connection, or what a trusted proxy says.
    pub ip: IpAddr,
    /// Whether it is this machine itself, and not somebody behind a proxy on it.
    pub is_local: bool,
}

/// The way to all answers.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    web: Web,
    router: Router,
}

/// No script, style or picture but our own, and nothing inline.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
);

impl Gate {
    pub fn new(web: Web) -> Self {
        let router = Router::new().merge(page::router()).merge(api::router());
        let router = router.fallback(async || Problem::not_found("there is nothing at this address"));
        Self { router: router.with_state(Web::clone(&web)), web }
    }

    /// Whether an address may have as many connections and requests as it likes.
    pub fn is_exempt(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        let settings = self.web.settings();
        // A proxy stands for many; whom it stands for is counted by requests.
        settings.exempt.iter().chain(&settings.trusted_proxies).any(|net| net.contains(&ip))
    }

    /// Answers a request that came from there.
    pub async fn answer<B>(&self, request: Request<B>, from: IpAddr) -> Response<Body>
    where
        B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
        B::Error: Into<axum::BoxError>,
    {
        let mut request = request.map(Body::new);
        let visitor = Visitor { ip: from.to_canonical(), is_local: from.to_canonical().is_loopback() };
        request.extensions_mut().insert(visitor);
        let mut router = self.router.clone();
        let response: Result<_, Infallible> = router.call(request).await;
        let mut response = match response {
            Ok(response) => response,
            Err(never) => match never {},
        };
        if response.status() == StatusCode::METHOD_NOT_ALLOWED {
            let allow = response.headers_mut().remove(header::ALLOW);
            response = Problem::new(StatusCode::METHOD_NOT_ALLOWED, "this address can only be read").into_response();
            response.headers_mut().extend(allow.map(|allow| (header::ALLOW, allow)));
        }
        let headers = response.headers_mut();
        headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(POLICY);
        headers.entry(header::X_CONTENT_TYPE_OPTIONS).or_insert(HeaderValue::from_static("nosniff"));
        headers.entry(header::REFERRER_POLICY).or_insert(HeaderValue::from_static("no-referrer"));
        response
    }
}
