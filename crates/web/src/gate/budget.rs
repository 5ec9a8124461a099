//! How often a visitor may ask.

use crate::{problem::Problem, serve::party};
use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, Response, StatusCode, header},
    response::IntoResponse,
};
use rallypoint_limit::{Buckets, Key, Rate, Taken};
use std::{
    net::IpAddr,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// So many visitors are remembered.
const VISITORS: usize = 32_768;

/// What one customer is commonly given: an IPv4 address or an IPv6 /56.
#[derive(Clone, Copy, Debug)]
struct Party(u128);

impl Key for Party {
    fn bits(self) -> u128 {
        self.0
    }
}

/// The requests of every visitor.
#[derive(Debug)]
pub(crate) struct Budget {
    seed: u128,
    /// The rate that is in force, and what was taken.
    buckets: Mutex<Option<(Rate, Buckets<Party>)>>,
}

impl Budget {
    pub fn new(seed: u128) -> Self {
        Self { seed, buckets: Mutex::default() }
    }

    pub fn take(&self, now: Instant, ip: IpAddr, rate: Rate) -> Taken {
        self.with(rate, |buckets| buckets.take_one(now, Party(party(ip))))
    }

    /// How many requests somebody has left.
    pub fn left(&self, now: Instant, ip: IpAddr, rate: Rate) -> u64 {
        self.with(rate, |buckets| buckets.left(now, Party(party(ip))))
    }

    fn with<T>(&self, rate: Rate, work: impl FnOnce(&mut Buckets<Party>) -> T) -> T {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let (in_force, buckets) = buckets.get_or_insert_with(|| (rate, Buckets::new(rate, VISITORS, self.seed)));
        if *in_force != rate {
            buckets.set_rate(rate);
            *in_force = rate;
        }
        work(buckets)
    }
}

/// The answer to who asks too often.
pub(super) fn refuse(taken: &Taken) -> Response<Body> {
    let seconds = whole_seconds(taken.wait).max(1);
    let detail =
        format!("too many requests from your address: wait {seconds} s, and ask for changes at /api/v1/events");
    let mut response = Problem::new(StatusCode::TOO_MANY_REQUESTS, detail).into_response();
    response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    response
}

/// Tells a visitor how much is left.
pub(super) fn tell(headers: &mut HeaderMap, rate: &Rate, taken: &Taken) {
    let refill = rate.per.as_secs_f64() / rate.count.max(1) as f64;
    let reset = Duration::try_from_secs_f64(refill * rate.burst.saturating_sub(taken.left) as f64).unwrap_or_default();
    headers.insert("ratelimit-limit", HeaderValue::from(rate.burst));
    headers.insert("ratelimit-remaining", HeaderValue::from(taken.left));
    headers.insert("ratelimit-reset", HeaderValue::from(whole_seconds(reset)));
}

fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}
