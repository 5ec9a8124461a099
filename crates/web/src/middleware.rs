//! Middleware: what every request passes before its handler, and every response after it.

mod client_addr;
mod errors;
mod headers;
mod rate_limit;
pub(crate) mod request_count;
pub(crate) mod response_limit;
mod unnamed_proxy;

pub(crate) use client_addr::{ClientAddr, parse_addr};
pub(crate) use errors::{as_html, method_not_allowed, not_found};
pub(crate) use headers::{add_response_headers, require_single_host};
pub(crate) use rate_limit::{ClientRateLimiter, limit_requests};
pub(crate) use response_limit::limit_response_bytes;
pub(crate) use unnamed_proxy::UnnamedProxy;
