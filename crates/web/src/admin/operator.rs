//! Who is the operator.

use crate::{
    gate::{Budget, Visitor},
    metrics::{Exposition, Kind},
    problem::Problem,
    shared::Web,
};
use axum::{
    Extension,
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use rallypoint_limit::Rate;
use rallypoint_net::{Masked, Seldom};
use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
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
    /// Wrong tokens, for the log.
    wrong: Mutex<Seldom>,
}

const REASONS: [&str; 3] = ["no_token", "wrong_token", "too_many_wrong_tokens"];

impl Refusals {
    pub fn new(seed: u128) -> Self {
        Self { guesses: Budget::new(seed), counts: Default::default(), wrong: Mutex::default() }
    }

    /// Somebody has brought a wrong token. The log says so, once in a while.
    fn warn(&self, now: Instant, visitor: Visitor) {
        let times = self.wrong.lock().unwrap_or_else(PoisonError::into_inner).happens(now);
        if let Some(times) = times {
            let address = Masked(visitor.ip);
            tracing::warn!(%address, times, "the admin API was asked with a wrong token");
        }
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
pub(super) async fn admit(
    State(web): State<Web>,
    Extension(visitor): Extension<Visitor>,
    request: Request,
    next: Next,
) -> Response {
    if let Some(refused) = refuse(&web, visitor, request.headers()) {
        return refused;
    }
    let mut response = next.run(request).await;
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The answer to whoever is not the operator.
fn refuse(web: &Web, visitor: Visitor, headers: &HeaderMap) -> Option<Response> {
    let settings = web.settings();
    let Some(token) = settings.admin_token.as_ref().filter(|_| web.admin.is_some()) else {
        let detail = "there is no admin API here: its operator has set no token (web.admin_token_file)";
        return Some(Problem::not_found(detail).into_response());
    };
    let refuse = |reason: usize, status, detail, (name, value)| {
        web.refusals.counts[reason].fetch_add(1, Relaxed);
        let mut response = Problem::new(status, detail).into_response();
        response.headers_mut().insert(name, value);
        Some(response)
    };
    let challenge = (header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    let Some(guess) = bearer(headers) else {
        let detail = "the operator's token is needed, once: Authorization: Bearer TOKEN";
        return refuse(0, StatusCode::UNAUTHORIZED, detail, challenge);
    };
    let (guesses, now) = (&web.refusals.guesses, Instant::now());
    // Who is on this machine itself has other ways, and cannot be locked out by those who are not.
    if !visitor.is_local && guesses.left(now, visitor.ip, GUESSES) == 0 {
        web.refusals.warn(now, visitor);
        let detail = "too many wrong tokens from your address: wait a minute";
        return refuse(2, StatusCode::TOO_MANY_REQUESTS, detail, (header::RETRY_AFTER, HeaderValue::from(60)));
    }
    if token.is(guess) {
        return None;
    }
    // It was looked at, and it was wrong.
    web.refusals.warn(now, visitor);
    let _ = guesses.take(now, visitor.ip, GUESSES);
    refuse(1, StatusCode::UNAUTHORIZED, "this is not the operator's token", challenge)
}

/// The token that a request brings. Of two nobody could say which one counts.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let (scheme, token) = value.as_bytes().split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}
