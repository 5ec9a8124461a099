//! Metrics of the web server itself.

use super::{Exposition, MetricKind};
use crate::state::AppState;

pub(super) fn export(out: &mut Exposition, state: &AppState) {
    let help = "HTTP requests, by group of routes and class of status.";
    let mut family = out.family("rallypoint_web_requests_total", MetricKind::Counter, help);
    for (group, class, count) in state.request_counters.iter() {
        family.sample(&[("route", group.label()), ("status", class)], count);
    }
    let quotas = &state.quotas;
    out.gauge("rallypoint_web_connections", "Open HTTP connections.", quotas.connections.used());
    let help = "Maximum number of open HTTP connections.";
    out.gauge("rallypoint_web_connections_limit", help, state.limits.connections);
    let help = "HTTP connections refused because too many were open, in total or from one address.";
    out.counter("rallypoint_web_connections_refused_total", help, quotas.connections.refused());
    out.gauge("rallypoint_web_listeners", "Open streams of live events.", quotas.event_streams.used());
    let help = "Requests for live events refused because too many streams were open.";
    out.counter("rallypoint_web_listeners_refused_total", help, quotas.event_streams.refused());
    let evicting = [
        ("connections", &quotas.connections),
        ("listeners", &quotas.event_streams),
        ("answers", &quotas.response_bytes),
    ];
    let help = "HTTP connections closed to make room for those of other networks, by what was used up.";
    let mut family = out.family("rallypoint_web_evicted_total", MetricKind::Counter, help);
    for (kind, quota) in evicting {
        family.sample(&[("kind", kind)], quota.evicted());
    }
    let help = "Requests refused because too many others waited to be rendered.";
    out.counter("rallypoint_web_render_refused_total", help, state.render_limiter.refused());
    let held = [("answers", &quotas.response_bytes), ("lists", &quotas.shared_list_bytes)];
    let help = "Bytes of long responses that clients have not received yet.";
    let mut family = out.family("rallypoint_web_held_bytes", MetricKind::Gauge, help);
    for (kind, quota) in held {
        family.sample(&[("kind", kind)], quota.used());
    }
    let help = "Long responses refused because clients had not received earlier ones yet.";
    let mut family = out.family("rallypoint_web_held_refused_total", MetricKind::Counter, help);
    for (kind, quota) in held {
        family.sample(&[("kind", kind)], quota.refused());
    }
}
