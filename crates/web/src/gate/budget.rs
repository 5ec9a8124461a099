//! How often a visitor may ask.

use crate::problem::Problem;
use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, Response, StatusCode, header},
    response::IntoResponse,
};
use rallypoint_limit::{Customer, Rate, TakeResult, TokenBuckets};
use std::{
    net::IpAddr,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// So many visitors are remembered.
const VISITORS: usize = 32_768;

/// The requests of every visitor.
#[derive(Debug)]
pub(crate) struct Budget {
    seed: u128,
    /// The rate that is in force, and what was taken.
    buckets: Mutex<Option<(Rate, TokenBuckets<Customer>)>>,
}

impl Budget {
    pub fn new(seed: u128) -> Self {
        Self { seed, buckets: Mutex::default() }
    }

    pub fn take(&self, now: Instant, ip: IpAddr, rate: Rate) -> TakeResult {
        self.with(rate, |buckets| buckets.try_take(now, Customer::of(ip)))
    }

    /// How many requests somebody has left.
    pub fn left(&self, now: Instant, ip: IpAddr, rate: Rate) -> u64 {
        self.with(rate, |buckets| buckets.remaining(now, Customer::of(ip)))
    }

    fn with<T>(&self, rate: Rate, work: impl FnOnce(&mut TokenBuckets<Customer>) -> T) -> T {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let (in_force, buckets) = buckets.get_or_insert_with(|| (rate, TokenBuckets::new(rate, VISITORS, self.seed)));
        if *in_force != rate {
            buckets.set_rate(rate);
            *in_force = rate;
        }
        work(buckets)
    }
}

/// The answer to who asks too often.
pub(super) fn refuse(taken: &TakeResult) -> Response<Body> {
    let seconds = whole_seconds(taken.retry_after).max(1);
    let detail =
        format!("too many requests from your address: wait {seconds} s, and ask for changes at /api/v1/events");
    let mut response = Problem::new(StatusCode::TOO_MANY_REQUESTS, detail).into_response();
    response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    response
}

/// Tells a visitor how much is left.
pub(super) fn tell(headers: &mut HeaderMap, rate: &Rate, taken: &TakeResult) {
    let refill = rate.per.as_secs_f64() / rate.count.max(1) as f64;
    let reset =
        Duration::try_from_secs_f64(refill * rate.burst.saturating_sub(taken.remaining) as f64).unwrap_or_default();
    headers.insert("ratelimit-limit", HeaderValue::from(rate.burst));
    headers.insert("ratelimit-remaining", HeaderValue::from(taken.remaining));
    headers.insert("ratelimit-reset", HeaderValue::from(whole_seconds(reset)));
}

fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}
