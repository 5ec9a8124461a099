//! `GET /metrics`: all counters and gauges, for Prometheus.
//!
//! Nothing in the metrics comes from the network: labels are codes, the names that the operator gave to lists, and addresses
//! that this program listens on. So the number of time series is bounded.

mod exposition;
mod http;
mod lobby;
mod process;
mod queries;

pub use exposition::{Exposition, MetricFamily, MetricKind};
pub use process::{export_process, set_process_start};

use crate::{middleware::ClientAddr, problem::Problem, router::Routes, state::AppState};
use axum::{
    Extension,
    extract::State,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use ipnet::IpNet;
use std::sync::Arc;

const CONTENT_TYPE: HeaderValue = HeaderValue::from_static(Exposition::CONTENT_TYPE);

pub(crate) fn routes() -> Routes {
    Routes::new().route("/metrics", get(show))
}

async fn show(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<ClientAddr>,
) -> Result<Response, Problem> {
    let may_read = {
        let networks = &state.settings().metrics;
        if networks.is_empty() {
            return Err(Problem::not_found("metrics are turned off (web.metrics)"));
        }
        may_read(client, networks)
    };
    if !may_read {
        let detail = "only the networks that the operator lists in web.metrics may read the metrics";
        return Err(Problem::new(StatusCode::FORBIDDEN, detail));
    }
    let mut out = Exposition::default();
    export_process(&mut out, env!("CARGO_PKG_VERSION"));
    lobby::export(&mut out, &state);
    if let Some(stats) = state.lobby.probe_stats() {
        queries::export(&mut out, &stats);
    }
    state.admin_access.export(&mut out);
    http::export(&mut out, &state);
    let headers = [(header::CONTENT_TYPE, CONTENT_TYPE), (header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    Ok((headers, out.finish()).into_response())
}

/// Whether a client is in one of these networks. A loopback address counts only for local requests, not for those that a proxy
/// on this machine forwards.
fn may_read(client: ClientAddr, networks: &[IpNet]) -> bool {
    (client.is_local || !client.ip.is_loopback()) && networks.iter().any(|net| net.contains(&client.ip))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_through_a_proxy_on_this_machine_are_not_local() {
        let networks = ["127.0.0.0/8", "::1/128", "10.0.0.0/8"].map(|net| net.parse().unwrap());
        let may = |ip: &str, is_local| {
            may_read(ClientAddr { ip: ip.parse().unwrap(), is_local, is_unnamed: false }, &networks)
        };
        assert!(may("127.0.0.1", true) && may("::1", true) && may("10.1.2.3", false));
        assert!(!may("127.0.0.1", false), "behind a proxy that does not name its client");
        assert!(!may("203.0.113.9", false));
        assert!(!may_read(ClientAddr { ip: "127.0.0.1".parse().unwrap(), is_local: true, is_unnamed: false }, &[]));
    }
}
