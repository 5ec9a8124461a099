//! Limits how many requests each client makes.

use super::ClientAddr;
use crate::{problem::Problem, state::AppState};
use axum::{
    Extension,
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use rallypoint_limit::{Customer, Rate, TakeResult, TokenBuckets};
use std::{
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Maximum number of clients whose token buckets are kept.
const MAX_CLIENTS: usize = 32_768;

/// Token buckets by IPv4 address or IPv6 /56, whose rate can change at any time.
#[derive(Debug)]
pub(crate) struct ClientRateLimiter {
    seed: u128,
    /// The rate in force, and the buckets; created by the first request.
    buckets: Mutex<Option<(Rate, TokenBuckets<Customer>)>>,
}

impl ClientRateLimiter {
    /// A limiter without buckets. The seed keys their hash table, so that clients cannot choose to collide.
    pub fn new(seed: u128) -> Self {
        Self { seed, buckets: Mutex::default() }
    }

    /// Takes a token of a client, if one is left.
    pub fn take(&self, now: Instant, ip: IpAddr, rate: Rate) -> TakeResult {
        self.with_rate(rate, |buckets| buckets.try_take(now, Customer::of(ip)))
    }

    /// Number of tokens that a client has left.
    pub fn remaining(&self, now: Instant, ip: IpAddr, rate: Rate) -> u64 {
        self.with_rate(rate, |buckets| buckets.remaining(now, Customer::of(ip)))
    }

    fn with_rate<T>(&self, rate: Rate, work: impl FnOnce(&mut TokenBuckets<Customer>) -> T) -> T {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let (in_force, buckets) =
            buckets.get_or_insert_with(|| (rate, TokenBuckets::new(rate, MAX_CLIENTS, self.seed)));
        if *in_force != rate {
            buckets.set_rate(rate);
            *in_force = rate;
        }
        work(buckets)
    }
}

/// Refuses requests over the limit with 429, and reports the rest of the budget in `RateLimit-*` headers.
pub(crate) async fn limit_requests(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<ClientAddr>,
    request: Request,
    next: Next,
) -> Response {
    let rate = state.settings().requests.filter(|_| !state.is_exempt(client));
    let Some(rate) = rate else { return next.run(request).await };
    let taken = state.rate_limiter.take(Instant::now(), client.ip, rate);
    let mut response = if taken.is_allowed { next.run(request).await } else { refuse(&taken) };
    add_headers(response.headers_mut(), &rate, &taken);
    response
}

fn refuse(taken: &TakeResult) -> Response {
    let seconds = whole_seconds(taken.retry_after).max(1);
    let detail = format!(
        "too many requests from your address: wait {seconds} s, and follow changes at /api/v1/events instead of polling"
    );
    let mut response = Problem::new(StatusCode::TOO_MANY_REQUESTS, detail).into_response();
    response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    response
}

fn add_headers(headers: &mut HeaderMap, rate: &Rate, taken: &TakeResult) {
    let refill = rate.per.as_secs_f64() / rate.count.max(1) as f64;
    let reset =
        Duration::try_from_secs_f64(refill * rate.burst.saturating_sub(taken.remaining) as f64).unwrap_or_default();
    headers.insert("ratelimit-limit", HeaderValue::from(rate.burst));
    headers.insert("ratelimit-remaining", HeaderValue::from(taken.remaining));
    headers.insert("ratelimit-reset", HeaderValue::from(whole_seconds(reset)));
}

/// A duration in seconds, rounded up.
fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}
