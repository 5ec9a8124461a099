//! Who is the operator.

use super::Token;
use crate::{
    api::no_parameters,
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
use rallypoint_lobby::{LogThrottle, MaskedAddr};
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
    /// In the order of [`Refusal::ALL`].
    counts: [AtomicU64; Refusal::ALL.len()],
    /// Wrong tokens, for the log.
    wrong: Mutex<LogThrottle>,
}

/// Why somebody is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    NoToken,
    WrongToken,
    TooManyWrongTokens,
}

impl Refusals {
    pub fn new(seed: u128) -> Self {
        Self { guesses: Budget::new(seed), counts: Default::default(), wrong: Mutex::default() }
    }

    pub fn tell(&self, out: &mut Exposition) {
        let help = "Requests to the admin API that were refused, by reason.";
        let mut family = out.family("rallypoint_admin_refused_total", Kind::Counter, help);
        for (refusal, count) in Refusal::ALL.iter().zip(&self.counts) {
            family.sample(&[("reason", refusal.code())], count.load(Relaxed));
        }
    }

    /// Whether a request is the operator's.
    fn check(&self, now: Instant, token: &Token, visitor: Visitor, headers: &HeaderMap) -> Result<(), Refusal> {
        let guess = bearer(headers).ok_or(Refusal::NoToken)?;
        // Who is on this machine itself has other ways, and cannot be locked out by those who are not.
        if !visitor.is_local && self.guesses.left(now, visitor.ip, GUESSES) == 0 {
            return Err(Refusal::TooManyWrongTokens);
        }
        if token.is(guess) {
            return Ok(());
        }
        let _ = self.guesses.take(now, visitor.ip, GUESSES);
        Err(Refusal::WrongToken)
    }

    /// Counts a refusal. Of wrong tokens the log tells, too, once in a while.
    fn note(&self, now: Instant, visitor: Visitor, refusal: Refusal) {
        self.counts[refusal as usize].fetch_add(1, Relaxed);
        if refusal == Refusal::NoToken {
            return;
        }
        let times = self.wrong.lock().unwrap_or_else(PoisonError::into_inner).record(now);
        if let Some(times) = times {
            tracing::warn!(address = %MaskedAddr(visitor.ip), times, "the admin API was asked with a wrong token");
        }
    }
}

impl Refusal {
    /// All there are, in their order.
    const ALL: [Self; 3] = [Self::NoToken, Self::WrongToken, Self::TooManyWrongTokens];

    const fn code(self) -> &'static str {
        match self {
            Self::NoToken => "no_token",
            Self::WrongToken => "wrong_token",
            Self::TooManyWrongTokens => "too_many_wrong_tokens",
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let challenge = (header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        let (status, detail, (name, value)) = match self {
            Self::NoToken => {
                let detail = "the operator's token is needed, once: Authorization: Bearer TOKEN";
                (StatusCode::UNAUTHORIZED, detail, challenge)
            }
            Self::WrongToken => (StatusCode::UNAUTHORIZED, "this is not the operator's token", challenge),
            Self::TooManyWrongTokens => {
                let detail = "too many wrong tokens from your address: wait a minute";
                (StatusCode::TOO_MANY_REQUESTS, detail, (header::RETRY_AFTER, GUESSES.per.as_secs().into()))
            }
        };
        let mut response = Problem::new(status, detail).into_response();
        response.headers_mut().insert(name, value);
        response
    }
}

/// Lets only the operator pass. Nothing of the request but its head was read before.
pub(super) async fn admit(
    State(web): State<Web>,
    Extension(visitor): Extension<Visitor>,
    request: Request,
    next: Next,
) -> Response {
    let token = web.settings().admin_token.clone().filter(|_| web.admin.is_some());
    let Some(token) = token else {
        let detail = "there is no admin API here: its operator has set no token (web.admin_token_file)";
        return Problem::not_found(detail).into_response();
    };
    let now = Instant::now();
    if let Err(refusal) = web.refusals.check(now, &token, visitor, request.headers()) {
        web.refusals.note(now, visitor, refusal);
        return refusal.into_response();
    }
    // Only lists have parameters. A change that was meant in another way must not be made.
    if !request.method().is_safe()
        && let Err(wrong) = no_parameters(request.uri().query())
    {
        return Problem::from(wrong).into_response();
    }
    let mut response = next.run(request).await;
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The token that a request brings. Of two nobody could say which one counts.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let (scheme, token) = value.as_bytes().split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}
