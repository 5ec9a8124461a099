//! Metrics of queries to game servers: watched ones, those with the key `x-query`, and those on the master list.

use super::{Exposition, MetricKind};
use rallypoint_query_proto::ProberStats;

pub(super) fn export(out: &mut Exposition, stats: &ProberStats) {
    let help = "Queries to game servers (watched, with x-query, or announced to the master list), by result.";
    let mut family = out.family("rallypoint_queries_total", MetricKind::Counter, help);
    let results = [
        ("complete", stats.complete),
        ("partial", stats.partial),
        ("nonsense", stats.unreadable),
        ("timed_out", stats.timed_out),
        ("refused", stats.refused),
    ];
    for (result, count) in results {
        family.sample(&[("result", result)], count);
    }
    out.counter("rallypoint_query_datagrams_total", "Datagrams sent to query game servers.", stats.sent);
    out.counter("rallypoint_query_bytes_total", "Bytes of the datagrams sent to query game servers.", stats.sent_bytes);
    let help = "Datagrams received with an echo that was not sent: late or forged.";
    out.counter("rallypoint_query_strays_total", help, stats.wrong_echo);
}
