//! `GET /metrics`: everything that is counted, for Prometheus.
//!
//! Nothing in here comes from strangers: labels are codes, the names that the operator gave to lobbies, and addresses that
//! this program listens on. So their number is bounded, whatever arrives.

mod exposition;
mod lobby;
mod process;
mod queries;
mod traffic;

pub use exposition::{Exposition, Family, Kind};
pub use process::{process, started};
pub(crate) use traffic::Traffic;

use crate::{gate::Visitor, problem::Problem, shared::Web};
use axum::{
    Extension, Router,
    extract::State,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use ipnet::IpNet;

const KIND: HeaderValue = HeaderValue::from_static(Exposition::CONTENT_TYPE);

pub(crate) fn router() -> Router<Web> {
    Router::new().route("/metrics", get(show))
}

async fn show(State(web): State<Web>, Extension(visitor): Extension<Visitor>) -> Result<Response, Problem> {
    let may_read = {
        let networks = &web.settings().metrics;
        if networks.is_empty() {
            return Err(Problem::not_found("metrics are turned off here (web.metrics)"));
        }
        may_read(visitor, networks)
    };
    if !may_read {
        let detail = "metrics are for the networks that the operator names in web.metrics";
        return Err(Problem::new(StatusCode::FORBIDDEN, detail));
    }
    let mut out = Exposition::default();
    process(&mut out, env!("CARGO_PKG_VERSION"));
    lobby::tell(&mut out, &web);
    if let Some(stats) = web.lobby.probe_stats() {
        queries::tell(&mut out, &stats);
    }
    web.refusals.tell(&mut out);
    web.traffic.tell(&mut out, &web);
    let headers = [(header::CONTENT_TYPE, KIND), (header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    Ok((headers, out.finish()).into_response())
}

/// Whether somebody is in one of these networks. Loopback is only who is on this machine: not everybody behind a proxy on it.
fn may_read(visitor: Visitor, networks: &[IpNet]) -> bool {
    (visitor.is_local || !visitor.ip.is_loopback()) && networks.iter().any(|net| net.contains(&visitor.ip))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_on_this_machine_is_not_this_machine() {
        let networks = ["127.0.0.0/8", "::1/128", "10.0.0.0/8"].map(|net| net.parse().unwrap());
        let may = |ip: &str, is_local| may_read(Visitor { ip: ip.parse().unwrap(), is_local }, &networks);
        assert!(may("127.0.0.1", true) && may("::1", true) && may("10.1.2.3", false));
        assert!(!may("127.0.0.1", false), "somebody behind a proxy that says nothing");
        assert!(!may("203.0.113.9", false));
        assert!(!may_read(Visitor { ip: "127.0.0.1".parse().unwrap(), is_local: true }, &[]));
    }
}
