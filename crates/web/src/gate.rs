//! What every request passes before it is answered, and every answer before it is sent.

mod budget;
mod held;
mod visitor;

pub(crate) use budget::Budget;
pub(crate) use held::ForAll;
pub(crate) use visitor::Visitor;

use crate::{admin, api, health, masterlist, metrics, page, problem::Problem, shared::Web};
use axum::{
    Router,
    body::Body,
    http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header},
    response::IntoResponse,
};
use std::{convert::Infallible, net::IpAddr, sync::Arc, time::Instant};
use tower_service::Service;

/// The way to all answers.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    web: Web,
    router: Router,
    budget: Arc<Budget>,
}

/// No script, style or picture but our own, and nothing inline.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
);

/// What every answer says, unless the one who wrote it says otherwise.
const ALWAYS: [(HeaderName, HeaderValue); 3] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
];

/// What is public may be read by the scripts of any page.
const FOR_ALL: [(HeaderName, HeaderValue); 2] = [
    (header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*")),
    (
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static("etag, ratelimit-limit, ratelimit-remaining, ratelimit-reset, retry-after"),
    ),
];

/// What the scripts of other pages may ask, and for how long a browser remembers that.
const PREFLIGHT: [(HeaderName, HeaderValue); 3] = [
    (header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, HEAD")),
    (
        header::ACCESS_CONTROL_ALLOW_HEADERS,
        HeaderValue::from_static("accept, cache-control, if-none-match, last-event-id"),
    ),
    (header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400")),
];

impl Gate {
    pub fn new(web: Web, seed: u128) -> Self {
        let router = Router::new()
            .merge(page::router())
            .merge(api::router())
            .merge(admin::router(&web))
            .merge(masterlist::router())
            .merge(metrics::router())
            .merge(health::router());
        let router = router.fallback(page::nowhere);
        Self { router: router.with_state(Web::clone(&web)), web, budget: Arc::new(Budget::new(seed)) }
    }

    /// Whether an address may have as many connections as it likes.
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
        let visitor = Visitor::of(from, request.headers(), &self.web.settings().trusted_proxies);
        request.extensions_mut().insert(visitor);
        let is_question = request.method() == Method::OPTIONS;
        let path = request.uri().path().to_owned();
        let is_for_all = is_for_all(&path);
        let wants_page = page::wants_page(&path, request.headers());
        let taken = (!self.web.is_exempt(visitor)).then(|| {
            let rate = self.web.settings().requests?;
            Some((rate, self.budget.take(Instant::now(), visitor.ip, rate)))
        });
        let taken = taken.flatten();
        let mut response = match &taken {
            Some((_, taken)) if !taken.is_allowed => budget::refuse(taken),
            _ if request.headers().get_all(header::HOST).iter().nth(1).is_some() => {
                Problem::new(StatusCode::BAD_REQUEST, "a request has one Host header (RFC 9112)").into_response()
            }
            _ => held::hold(&self.web, visitor, self.route(request).await).await,
        };
        if response.status() == StatusCode::METHOD_NOT_ALLOWED {
            response = not_allowed(&mut response, is_question);
            if is_question && is_for_all {
                insert(response.headers_mut(), PREFLIGHT);
            }
        }
        if wants_page {
            response = page::as_page(response);
        }
        let headers = response.headers_mut();
        insert(headers, ALWAYS);
        if is_for_all {
            insert(headers, FOR_ALL);
        }
        if let Some((rate, taken)) = taken {
            budget::tell(headers, &rate, &taken);
        }
        self.web.traffic.count(&path, response.status());
        response
    }

    async fn route(&self, request: Request<Body>) -> Response<Body> {
        let response: Result<_, Infallible> = self.router.clone().call(request).await;
        match response {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}

/// Whether an answer is the same for everybody, so that any page may read it. What depends on who asks is not: a page could
/// otherwise find out about its visitors.
fn is_for_all(path: &str) -> bool {
    let own = ["/api/v1/outcomes", "/api/v1/admin"];
    path.starts_with("/api/v1/") && !own.iter().any(|own| path.starts_with(own))
}

/// The answer to a method that an address does not have; or to the question which ones it has.
fn not_allowed(response: &mut Response<Body>, is_question: bool) -> Response<Body> {
    let allow = response.headers_mut().remove(header::ALLOW);
    let mut response = if is_question {
        StatusCode::NO_CONTENT.into_response()
    } else {
        Problem::new(StatusCode::METHOD_NOT_ALLOWED, "this address does not have that method").into_response()
    };
    let allow = allow.and_then(|allow| HeaderValue::from_str(&format!("{},OPTIONS", allow.to_str().ok()?)).ok());
    response.headers_mut().extend(allow.map(|allow| (header::ALLOW, allow)));
    response
}

/// Adds headers that are not there yet.
fn insert<const N: usize>(headers: &mut HeaderMap, new: [(HeaderName, HeaderValue); N]) {
    for (name, value) in new {
        headers.entry(name).or_insert(value);
    }
}
