//! Metrics of the lobby: registry, checks, budgets, sockets, lists, saves, history.

use super::{Exposition, MetricKind};
use crate::state::AppState;
use rallypoint_limit::OverBudget;
use rallypoint_lobby::{ClusterStatus, ListStats, SaveStats, SocketStats, Totals, unix_now};
use rallypoint_lobby_proto::{
    RegistrationOutcome, RegistryStats, UnlistReason,
    doors::{Door, DoorStats},
};
use rallypoint_mirror::ExportStats;
use std::time::{Duration, UNIX_EPOCH};

pub(super) fn export(out: &mut Exposition, state: &AppState) {
    let stats = state.lobby.stats();
    registry(out, &stats);
    totals_by_list(out, state);
    checks(out, &stats, state.lobby.check_bytes());
    budgets(out, &stats);
    sockets(out, &state.lobby.socket_stats());
    doors(out, &state.lobby.door_stats());
    lists(out, &state.lobby.list_stats());
    saves(out, &state.lobby.save_stats());
    if let Some(status) = state.lobby.cluster_status() {
        cluster(out, &status);
    }
    if let Some(history) = &state.history {
        self::history(out, &history.stats());
    }
    if let Some(export) = &state.export {
        copies(out, &export.stats());
    }
}

fn copies(out: &mut Exposition, stats: &ExportStats) {
    out.counter("rallypoint_export_written_total", "Copies of the list written for mirrors.", stats.written);
    out.counter("rallypoint_export_failed_total", "Copies of the list that could not be written.", stats.failed);
    out.gauge(
        "rallypoint_export_failing",
        "Whether the last copy of the list could not be written.",
        u8::from(stats.is_failing),
    );
    out.gauge("rallypoint_export_bytes", "Size of the files that the last copy of the list replaced.", stats.bytes);
    out.gauge("rallypoint_export_time_seconds", "Unix time of the last copy of the list; 0 for none.", stats.last);
}

/// Names of nodes are not labels: they come from the store.
fn cluster(out: &mut Exposition, status: &ClusterStatus) {
    let help = "Whether this node has all servers of its cluster and is in contact with the store.";
    out.gauge("rallypoint_cluster_connected", help, u8::from(status.is_connected));
    out.gauge("rallypoint_cluster_nodes", "Nodes that reported in the last ten seconds.", status.live_nodes());
    let age = status.last_contact.map_or(0.0, |at| at.elapsed().as_secs_f64());
    out.gauge("rallypoint_cluster_contact_age_seconds", "Time since the store last answered.", age);
    let round_trip = status.round_trip.unwrap_or_default().as_secs_f64();
    out.gauge("rallypoint_cluster_round_trip_seconds", "Round-trip time to the store.", round_trip);
    let help = "Changes applied, written and refused, leases renewed and lost, full loads, failed requests, malformed values, \
                defects in the content of the store, and servers without room.";
    by_code(out, "rallypoint_cluster_events_total", help, "event", status.counters.iter().copied());
}

fn registry(out: &mut Exposition, stats: &RegistryStats) {
    let help = "Datagrams to the lobby, by outcome; every datagram has exactly one.";
    by_code(out, "rallypoint_outcomes_total", help, "code", RegistrationOutcome::CODES.into_iter().zip(stats.outcomes));
    let help = "Servers removed from the list, by reason.";
    by_code(out, "rallypoint_unlisted_total", help, "reason", UnlistReason::CODES.into_iter().zip(stats.unlisted));
    out.gauge("rallypoint_servers_registered", "Registered servers, listed or not.", stats.registered);
    out.gauge("rallypoint_servers_listed", "Listed servers.", stats.listed);
    let help = "Registered addresses with port; a server has at most one of each address family.";
    out.gauge("rallypoint_endpoints", help, stats.endpoints);
    out.gauge("rallypoint_lists", "Lists with at least one registered server.", stats.lists);
    let help = "Servers that unregistered recently, which are remembered for some seconds.";
    out.gauge("rallypoint_tombstones", help, stats.tombstones);
    out.gauge("rallypoint_registry_bytes", "Estimated memory of all registered servers.", stats.memory);
    out.counter("rallypoint_lists_published_total", "Publications of changed lists.", stats.publishes);
    let help = "Events lost because they were not consumed in time; the list itself is not affected.";
    out.counter("rallypoint_lost_events_total", help, stats.dropped_events);
    let help =
        "Number of times the lobby was halted for two seconds or more, after which no lease ended for 35 seconds.";
    out.counter("rallypoint_halts_total", help, stats.gaps);
}

/// Lists that the operator has named have time series of their own. All others are added up, because any server can create a
/// list.
fn totals_by_list(out: &mut Exposition, state: &AppState) {
    let snapshot = state.live.snapshot();
    let settings = state.settings();
    let mut rest = snapshot.totals();
    let mut rows = Vec::new();
    for (id, name) in &settings.names.0 {
        if settings.names.name(id).is_some() {
            let totals = snapshot.lists().get(id).copied().unwrap_or_default();
            rest = Totals {
                servers: rest.servers - totals.servers,
                players: rest.players - totals.players,
                bots: rest.bots - totals.bots,
                slots: rest.slots - totals.slots,
            };
            rows.push((id.to_string(), &**name, totals));
        }
    }
    rows.push(("other".into(), "other", rest));
    type Number = fn(&Totals) -> u64;
    let families: [(&'static str, &str, Number); 4] = [
        ("rallypoint_list_servers", "Servers on the web page", |totals| totals.servers as u64),
        ("rallypoint_list_players", "Players", |totals| totals.players),
        ("rallypoint_list_bots", "Bots", |totals| totals.bots),
        ("rallypoint_list_slots", "Slots for players", |totals| totals.slots),
    ];
    for (name, help, number) in families {
        let help = format!("{help}, by list; lists without a name are combined as \"other\".");
        let mut family = out.family(name, MetricKind::Gauge, &help);
        for (id, name, totals) in &rows {
            family.sample(&[("list", id), ("name", name)], number(totals));
        }
    }
}

fn checks(out: &mut Exposition, stats: &RegistryStats, bytes: u64) {
    let checks = &stats.checks;
    out.counter("rallypoint_checks_started_total", "Reachability checks started.", checks.started);
    let help = "Reachability checks finished, by verdict; undecided if the lobby was not able to check.";
    let verdicts =
        [("reachable", checks.reachable), ("unreachable", checks.unreachable), ("undecided", checks.undecided)];
    by_code(out, "rallypoint_checks_total", help, "verdict", verdicts);
    let help = "Reachability checks not made because a limit was reached.";
    out.counter("rallypoint_checks_refused_total", help, checks.refused);
    out.gauge("rallypoint_checks_in_flight", "Reachability checks in progress.", checks.in_flight);
    out.gauge("rallypoint_checks_waiting", "Reachability checks waiting to start.", checks.waiting);
    let help = "Bytes sent to addresses that had not proven to be the sender (queries of checks): an upper bound of what an \
                attacker with forged source addresses can have sent to others. Registrations are never answered.";
    out.counter("rallypoint_unproven_bytes_total", help, bytes);
}

fn budgets(out: &mut Exposition, stats: &RegistryStats) {
    let budgets = &stats.budgets;
    let help = "Datagrams within all budgets. Refreshes and exempt networks are not charged.";
    out.counter("rallypoint_budget_allowed_total", help, budgets.allowed);
    let help = "Datagrams allowed only because their sender was known before.";
    out.counter("rallypoint_budget_guaranteed_total", help, budgets.guaranteed);
    let help = "Datagrams over a budget, by the scope and the unit of the budget.";
    let mut family = out.family("rallypoint_budget_refused_total", MetricKind::Counter, help);
    for refusal in OverBudget::ALL {
        let labels = [("scope", &*refusal.scope.to_string()), ("unit", &*refusal.unit.to_string())];
        family.sample(&labels, budgets.refused(refusal));
    }
    let help = "Senders evicted from the budget tables to make room for others.";
    out.counter("rallypoint_budget_evictions_total", help, budgets.evicted);
    let help = "Senders in the budget tables.";
    let mut family = out.family("rallypoint_budget_entries", MetricKind::Gauge, help);
    let tables = [("hosts", budgets.hosts), ("nets", budgets.nets), ("sites", budgets.sites), ("known", budgets.known)];
    for (table, entries) in tables {
        family.sample(&[("table", table)], entries);
    }
}

fn sockets(out: &mut Exposition, sockets: &[SocketStats]) {
    type Number = fn(&SocketStats) -> u64;
    let families: [(&'static str, MetricKind, &str, Number); 3] = [
        ("rallypoint_udp_received_total", MetricKind::Counter, "Datagrams received.", |socket| socket.received),
        (
            "rallypoint_udp_dropped_total",
            MetricKind::Counter,
            "Datagrams dropped by the system because the receive buffer was full.",
            |socket| socket.dropped,
        ),
        ("rallypoint_udp_receive_buffer_bytes", MetricKind::Gauge, "Size of the receive buffer.", |socket| {
            socket.receive_buffer as u64
        }),
    ];
    for (name, kind, help, number) in families {
        let mut family = out.family(name, kind, help);
        for socket in sockets {
            family.sample(&[("address", &socket.addr.to_string())], number(socket));
        }
    }
}

/// Doors that answer over UDP, if one is open: a family without samples would say nothing.
fn doors(out: &mut Exposition, doors: &[(&'static Door, DoorStats)]) {
    if doors.is_empty() {
        return;
    }
    type Number = fn(&DoorStats) -> u64;
    let families: [(&'static str, &str, Number); 4] = [
        (
            "rallypoint_door_received_bytes_total",
            "Bytes received by doors that answer over UDP, with headers.",
            |door| door.received_bytes,
        ),
        ("rallypoint_door_sent_bytes_total", "Bytes sent by doors over UDP, with headers.", |door| door.sent_bytes),
        ("rallypoint_door_list_requests_total", "Requests for a list over UDP.", |door| door.list_requests),
        (
            "rallypoint_door_cut_lists_total",
            "Lists over UDP that were cut because the address of their client is not proven.",
            |door| door.cut_lists,
        ),
    ];
    for (name, help, number) in families {
        let mut family = out.family(name, MetricKind::Counter, help);
        for (door, stats) in doors {
            family.sample(&[("door", door.name)], number(stats));
        }
    }
}

fn lists(out: &mut Exposition, list: &ListStats) {
    out.gauge("rallypoint_list_connections", "Open connections to the TCP list.", list.open);
    out.gauge("rallypoint_list_connections_limit", "Maximum number of open connections to the TCP list.", list.limit);
    out.counter("rallypoint_list_connections_total", "Connections accepted by the TCP list.", list.accepted);
    out.counter("rallypoint_list_requests_total", "Complete requests for a list.", list.requests);
    out.counter("rallypoint_list_bytes_total", "Bytes of lists passed to the system.", list.bytes);
    let help = "Connections to the TCP list that received none, by reason.";
    let reasons = [
        ("too_many", list.refused_address),
        ("evicted", list.evicted),
        ("wrong_protocol", list.wrong_protocol),
        ("broken", list.broken),
        ("request_timeout", list.request_timeouts),
        ("reply_timeout", list.reply_timeouts),
    ];
    by_code(out, "rallypoint_list_failures_total", help, "reason", reasons);
    let help = "Duration of replies, from the complete request to the last byte passed to the system.";
    out.histogram("rallypoint_list_reply_seconds", help, &list.latency, list.latency_sum);
}

fn saves(out: &mut Exposition, saves: &SaveStats) {
    let help = "Saves of the list to disk, by result.";
    let results = [("written", saves.written), ("failed", saves.failed)];
    by_code(out, "rallypoint_saves_total", help, "result", results);
    out.gauge("rallypoint_save_failing", "1 if the last save failed.", u8::from(saves.is_failing));
    if let Some(last) = saves.last {
        let help = "Time of the last save, in seconds since 1970. The list is saved only if it has changed.";
        let last = last.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        out.gauge("rallypoint_save_time_seconds", help, last);
    }
    out.gauge("rallypoint_save_duration_seconds", "Duration of the last save.", saves.took.as_secs_f64());
    out.gauge("rallypoint_save_bytes", "Size of the last save.", saves.bytes);
}

fn history(out: &mut Exposition, history: &rallypoint_history::HistoryStats) {
    out.gauge("rallypoint_history_writing", "1 if the last sweep was written.", u8::from(history.is_writing));
    if let Some(lag) = history.lag(i64::try_from(unix_now()).unwrap_or(i64::MAX)) {
        let help = "Age of the last written minute of history: about a minute in normal operation.";
        out.gauge("rallypoint_history_lag_seconds", help, lag);
    }
    let help = "Sweeps (one per minute), by whether they were written or lost.";
    let results = [("written", history.written), ("dropped", history.dropped)];
    by_code(out, "rallypoint_history_sweeps_total", help, "result", results);
    out.gauge("rallypoint_history_pending", "Sweeps waiting to be written.", history.pending);
    out.gauge("rallypoint_history_servers", "Servers with a history.", history.servers);
    out.gauge("rallypoint_history_bytes", "Size of the history file.", history.bytes);
    let help = "Duration of writing the last sweep.";
    out.gauge("rallypoint_history_write_seconds", help, Duration::from_micros(history.write_micros).as_secs_f64());
}

/// A counter with one label, and a sample for each of its values, zero included.
fn by_code<'a>(
    out: &mut Exposition,
    name: &'static str,
    help: &str,
    label: &str,
    counts: impl IntoIterator<Item = (&'a str, u64)>,
) {
    let mut family = out.family(name, MetricKind::Counter, help);
    for (code, count) in counts {
        family.sample(&[(label, code)], count);
    }
}
