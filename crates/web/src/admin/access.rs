//! Authenticates the operator, and limits guesses of the token.

use super::AdminToken;
use crate::{
    api::no_parameters,
    metrics::{Exposition, MetricKind},
    middleware::{ClientAddr, ClientRateLimiter},
    problem::Problem,
    state::AppState,
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
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// Number of wrong tokens per minute that are checked for one IPv4 address or IPv6 /56.
const GUESSES: Rate = Rate { count: 10, per: Duration::from_secs(60), burst: 10 };

/// Checks tokens, and counts requests that are refused.
#[derive(Debug)]
pub(crate) struct AdminAccess {
    guesses: ClientRateLimiter,
    /// Number of refused requests, in the order of [`Refusal::ALL`].
    refused: [AtomicU64; Refusal::ALL.len()],
    /// Throttles the log message about wrong tokens.
    log_throttle: Mutex<LogThrottle>,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    NoToken,
    WrongToken,
    TooManyWrongTokens,
}

impl AdminAccess {
    pub fn new(seed: u128) -> Self {
        Self { guesses: ClientRateLimiter::new(seed), refused: Default::default(), log_throttle: Mutex::default() }
    }

    pub fn export(&self, out: &mut Exposition) {
        let help = "Requests to the admin API that were refused, by reason.";
        let mut family = out.family("rallypoint_admin_refused_total", MetricKind::Counter, help);
        for (refusal, count) in Refusal::ALL.iter().zip(&self.refused) {
            family.sample(&[("reason", refusal.code())], count.load(Relaxed));
        }
    }

    /// Checks that a request carries the token.
    fn check(&self, now: Instant, token: &AdminToken, client: ClientAddr, headers: &HeaderMap) -> Result<(), Refusal> {
        let guess = bearer(headers).ok_or(Refusal::NoToken)?;
        // Local clients are not limited: they could read the token from its file anyway, and clients elsewhere must not be able
        // to lock the operator out.
        if !client.is_local && self.guesses.remaining(now, client.ip, GUESSES) == 0 {
            return Err(Refusal::TooManyWrongTokens);
        }
        if token.matches(guess) {
            return Ok(());
        }
        let _ = self.guesses.take(now, client.ip, GUESSES);
        Err(Refusal::WrongToken)
    }

    /// Counts a refusal, and logs wrong tokens now and then.
    fn record(&self, now: Instant, client: ClientAddr, refusal: Refusal) {
        self.refused[refusal as usize].fetch_add(1, Relaxed);
        if refusal == Refusal::NoToken {
            return;
        }
        let times = self.log_throttle.lock().unwrap_or_else(PoisonError::into_inner).record(now);
        if let Some(times) = times {
            tracing::warn!(address = %MaskedAddr(client.ip), times, "wrong token for the admin API");
        }
    }
}

impl Refusal {
    /// All reasons, in the order of their discriminants.
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
                let detail =
                    "this address requires the operator's token, in one header \"Authorization: Bearer TOKEN\"";
                (StatusCode::UNAUTHORIZED, detail, challenge)
            }
            Self::WrongToken => (StatusCode::UNAUTHORIZED, "wrong admin token", challenge),
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

/// Refuses requests without the operator's token, before their bodies are read.
pub(super) async fn authorize(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<ClientAddr>,
    request: Request,
    next: Next,
) -> Response {
    let token = state.settings().admin_token.clone().filter(|_| state.lobby.admin().is_some());
    let Some(token) = token else {
        let detail = "the admin API is off: the operator has configured no token (web.admin_token_file)";
        return Problem::not_found(detail).into_response();
    };
    let now = Instant::now();
    if let Err(refusal) = state.admin_access.check(now, &token, client, request.headers()) {
        state.admin_access.record(now, client, refusal);
        return refusal.into_response();
    }
    // Only lists have parameters. A change with a parameter that would be ignored must not be made.
    if !request.method().is_safe()
        && let Err(invalid) = no_parameters(request.uri().query())
    {
        return Problem::from(invalid).into_response();
    }
    let mut response = next.run(request).await;
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The token of a request. Two `Authorization` headers are as good as none: it would not be clear which one counts.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let (scheme, token) = value.as_bytes().split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}
