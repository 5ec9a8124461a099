//! What the web server itself has to do.

use super::{Exposition, Kind};
use crate::shared::Shared;
use axum::http::StatusCode;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Parts of the web server, by the beginning of their addresses; the first that fits counts.
const ROUTES: [(&str, &str); 8] = [
    ("admin", "/api/v1/admin"),
    ("events", "/api/v1/events"),
    ("api", "/api/"),
    ("assets", "/assets/"),
    ("health", "/healthz"),
    ("health", "/readyz"),
    ("metrics", "/metrics"),
    ("page", "/"),
];

/// The hundreds of status codes.
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// Requests that were answered, by part and by class of status.
#[derive(Debug, Default)]
pub(crate) struct Traffic([[AtomicU64; CLASSES.len()]; ROUTES.len()]);

impl Traffic {
    /// A request to this address was answered with this status.
    pub fn count(&self, path: &str, status: StatusCode) {
        let route = ROUTES.iter().position(|(_, start)| path.starts_with(start)).unwrap_or(ROUTES.len() - 1);
        let class = usize::from(status.as_u16() / 100).clamp(1, CLASSES.len()) - 1;
        self.0[route][class].fetch_add(1, Relaxed);
    }

    pub(super) fn tell(&self, out: &mut Exposition, web: &Shared) {
        let help = "HTTP requests that were answered, by part of the web server and class of status.";
        let mut family = out.family("rallypoint_web_requests_total", Kind::Counter, help);
        for (number, (route, _)) in ROUTES.iter().enumerate() {
            // A name that is there twice is one.
            if ROUTES[..number].iter().any(|(known, _)| known == route) {
                continue;
            }
            let rows = || ROUTES.iter().zip(&self.0).filter(|((name, _), _)| name == route);
            for (class, status) in CLASSES.iter().enumerate() {
                let count: u64 = rows().map(|(_, classes)| classes[class].load(Relaxed)).sum();
                family.sample(&[("route", route), ("status", status)], count);
            }
        }
        out.gauge("rallypoint_web_connections", "HTTP connections that are open.", web.connections.used());
        out.gauge("rallypoint_web_connections_limit", "How many there can be.", web.limits.connections);
        let help = "HTTP connections that were refused because there were too many, in total or from one address.";
        out.counter("rallypoint_web_connections_refused_total", help, web.connections.refused());
        out.gauge("rallypoint_web_listeners", "Connections that listen to live events.", web.listeners.used());
        let help = "Requests for live events that were refused because there were too many.";
        out.counter("rallypoint_web_listeners_refused_total", help, web.listeners.refused());
        let held = [("answers", &web.answers), ("lists", &web.lists)];
        let help = "Bytes of long answers that clients have not taken yet.";
        let mut family = out.family("rallypoint_web_held_bytes", Kind::Gauge, help);
        for (kind, places) in held {
            family.sample(&[("kind", kind)], places.used());
        }
        let help = "Long answers that were refused because clients had not taken others yet.";
        let mut family = out.family("rallypoint_web_held_refused_total", Kind::Counter, help);
        for (kind, places) in held {
            family.sample(&[("kind", kind)], places.refused());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_is_in_one_part() {
        let part = |path: &str| {
            let traffic = Traffic::default();
            traffic.count(path, StatusCode::NOT_FOUND);
            let hit = traffic.0.iter().position(|classes| classes[3].load(Relaxed) == 1).unwrap();
            ROUTES[hit].0
        };
        for (path, name) in [
            ("/", "page"),
            ("/servers/7", "page"),
            ("*", "page"),
            ("/api/v1/servers", "api"),
            ("/api/v1/servers/7/history", "api"),
            ("/api/v1/events", "events"),
            ("/api/v1/admin/bans", "admin"),
            ("/metrics", "metrics"),
            ("/readyz", "health"),
            ("/assets/x.js", "assets"),
        ] {
            assert_eq!(part(path), name, "{path}");
        }
    }
}
