//! Who is the operator.

use crate::{
    gate::{Budget, Visitor},
    metrics::{Exposition, Kind},
    problem::Problem,
    shared::Web,
};
use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use rallypoint_limit::{Rate, Taken};
use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::{Duration, Instant},
};

/// So many wrong tokens of one IPv4 address or IPv6 /56 are looked at, in a minute and at once.
const GUESSES: Rate = Rate { count: 10, per: Duration::from_secs(60), burst: 10 };

/// Requests of those who are not the operator.
#[derive(Debug)]
pub(crate) struct Refusals {
    guesses: Budget,
    /// In the order of [`REASONS`].
    counts: [AtomicU64; REASONS.len()],
}

const REASONS: [&str; 3] = ["no_token", "wrong_token", "too_many_wrong_tokens"];

impl Refusals {
    pub fn new(seed: u128) -> Self {
        Self { guesses: Budget::new(seed), counts: Default::default() }
    }

    pub fn tell(&self, out: &mut Exposition) {
        let help = "Requests to the admin API that were refused, by reason.";
        let mut family = out.family("rallypoint_admin_refused_total", Kind::Counter, help);
        for (reason, count) in REASONS.iter().zip(&self.counts) {
            family.sample(&[("reason", reason)], count.load(Relaxed));
        }
    }
}

/// Lets only the operator pass. Nothing of the request but its head was read before.
pub(super) async fn admit(State(web): State<Web>, request: Request, next: Next) -> Response {
    let visitor = request.extensions().get::<Visitor>().copied();
    match visitor.map_or_else(|| Err(nothing_here()), |visitor| check(&web, visitor, request.headers())) {
        Ok(()) => {
            let mut response = next.run(request).await;
            response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
            response
        }
        Err(refused) => refused,
    }
}

fn nothing_here() -> Response {
    Problem::not_found("there is no admin API here: its operator has set no token (web.admin_token_file)")
        .into_response()
}

fn check(web: &Web, visitor: Visitor, headers: &HeaderMap) -> Result<(), Response> {
    let settings = web.settings();
    let Some(token) = settings.admin_token.as_ref().filter(|_| web.admin.is_some()) else {
        return Err(nothing_here());
    };
    let refuse = |reason: usize, problem: Problem| {
        web.refusals.counts[reason].fetch_add(1, Relaxed);
        problem
    };
    let unauthorized = |reason, detail| {
        let mut response = refuse(reason, Problem::new(StatusCode::UNAUTHORIZED, detail)).into_response();
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        response
    };
    let Some(guess) = bearer(headers) else {
        return Err(unauthorized(0, "the operator's token is needed: Authorization: Bearer TOKEN"));
    };
    // Who is on this machine itself has other ways, and cannot be locked out by those who are not.
    let guesses = &web.refusals.guesses;
    let now = Instant::now();
    if !visitor.is_local && guesses.left(now, visitor.ip, GUESSES) == 0 {
        let detail = "too many wrong tokens from your address: wait a minute";
        let mut response = refuse(2, Problem::new(StatusCode::TOO_MANY_REQUESTS, detail)).into_response();
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(60));
        return Err(response);
    }
    if token.is(guess) {
        return Ok(());
    }
    let Taken { .. } = guesses.take(now, visitor.ip, GUESSES);
    Err(unauthorized(1, "this is not the operator's token"))
}

/// The token that a request brings.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}
