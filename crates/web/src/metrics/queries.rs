//! What was asked of game servers: those that are watched, that say how they can be asked, and that announce themselves.

use super::{Exposition, Kind};
use rallypoint_query_proto::ProberStats;

pub(super) fn tell(out: &mut Exposition, stats: &ProberStats) {
    let help =
        "Game servers that were asked (watched, with x-query, announced to the master list), by what came of it.";
    let mut family = out.family("rallypoint_queries_total", Kind::Counter, help);
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
    out.counter("rallypoint_query_datagrams_total", "Datagrams that were sent to ask them.", stats.sent);
    out.counter("rallypoint_query_bytes_total", "Bytes in these.", stats.sent_bytes);
    let help = "Datagrams that came with an echo that was not sent: late or forged.";
    out.counter("rallypoint_query_strays_total", help, stats.wrong_echo);
}
