//! What the lobby has and does.

use super::{Exposition, Kind};
use crate::{book::Totals, calendar, shared::Shared};
use rallypoint_limit::OverBudget;
use rallypoint_lobby::{ListStats, SaveStats, SocketStats};
use rallypoint_lobby_proto::{RegistrationOutcome, RegistryStats, UnlistReason};
use std::time::{Duration, UNIX_EPOCH};

pub(super) fn tell(out: &mut Exposition, web: &Shared) {
    let stats = web.lobby.stats();
    registry(out, &stats);
    lobbies(out, web);
    checks(out, &stats, web.lobby.check_bytes());
    budgets(out, &stats);
    sockets(out, &web.lobby.socket_stats());
    lists(out, &web.lobby.list_stats());
    saves(out, &web.lobby.save_stats());
    if let Some(history) = &web.history {
        self::history(out, &history.stats());
    }
}

fn registry(out: &mut Exposition, stats: &RegistryStats) {
    let help = "Datagrams to the lobby, by what became of them: every one has exactly one outcome.";
    by_code(out, "rallypoint_outcomes_total", help, "code", RegistrationOutcome::CODES.into_iter().zip(stats.outcomes));
    let help = "Servers that left the list, by reason.";
    by_code(out, "rallypoint_unlisted_total", help, "reason", UnlistReason::CODES.into_iter().zip(stats.unlisted));
    out.gauge("rallypoint_servers_registered", "Servers in the registry, listed or not.", stats.registered);
    out.gauge("rallypoint_servers_listed", "Servers in the list.", stats.listed);
    let help = "Addresses and ports under which servers are registered: each has up to one of each family.";
    out.gauge("rallypoint_endpoints", help, stats.endpoints);
    out.gauge("rallypoint_lobbies", "Lobbies with at least one registered server.", stats.lobbies);
    let help = "Servers that unregistered within the last seconds and are remembered for that.";
    out.gauge("rallypoint_tombstones", help, stats.tombstones);
    out.gauge("rallypoint_registry_bytes", "An estimate of the memory that all servers take.", stats.memory);
    out.counter("rallypoint_lists_published_total", "How often changed lists were published.", stats.publishes);
    let help = "Events that were lost because nobody took them in time; the list itself is not affected.";
    out.counter("rallypoint_lost_events_total", help, stats.dropped_events);
}

/// Lobbies that the operator has named have numbers of their own, and all others together: anybody can open a lobby.
fn lobbies(out: &mut Exposition, web: &Shared) {
    let (snapshot, settings) = (web.live.snapshot(), web.settings());
    let mut rest = snapshot.totals();
    let mut rows = Vec::new();
    for (id, name) in &settings.names.0 {
        if settings.names.name(id).is_some() {
            let totals = snapshot.lobbies().get(id).copied().unwrap_or_default();
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
        ("rallypoint_lobby_servers", "Servers that the web server shows", |totals| totals.servers as u64),
        ("rallypoint_lobby_players", "People who play", |totals| totals.players),
        ("rallypoint_lobby_bots", "Bots that play", |totals| totals.bots),
        ("rallypoint_lobby_slots", "Places for people", |totals| totals.slots),
    ];
    for (name, help, number) in families {
        let help = format!("{help}, by lobby; those without a name together as \"other\".");
        let mut family = out.family(name, Kind::Gauge, &help);
        for (id, name, totals) in &rows {
            family.sample(&[("lobby", id), ("name", name)], number(totals));
        }
    }
}

fn checks(out: &mut Exposition, stats: &RegistryStats, bytes: u64) {
    let checks = &stats.checks;
    out.counter("rallypoint_checks_started_total", "Checks whether a server can be reached.", checks.started);
    let help = "Checks that have ended, by verdict; undecided if the lobby itself could not try.";
    let verdicts =
        [("reachable", checks.reachable), ("unreachable", checks.unreachable), ("undecided", checks.undecided)];
    by_code(out, "rallypoint_checks_total", help, "verdict", verdicts);
    let help = "Checks that were not made because a bound was reached.";
    out.counter("rallypoint_checks_refused_total", help, checks.refused);
    out.gauge("rallypoint_checks_in_flight", "Checks under way.", checks.in_flight);
    out.gauge("rallypoint_checks_waiting", "Checks that wait for their turn.", checks.waiting);
    let help = "Bytes that were sent to addresses that had not shown that they want them (the queries of checks): what \
                somebody who forges addresses can have sent to others. Registrations are never answered.";
    out.counter("rallypoint_unproven_bytes_total", help, bytes);
}

fn budgets(out: &mut Exposition, stats: &RegistryStats) {
    let budgets = &stats.budgets;
    let help = "Datagrams that were within all budgets. Refreshes are not charged, nor are exempt networks.";
    out.counter("rallypoint_budget_allowed_total", help, budgets.allowed);
    let help = "Those of them that passed only because their sender is known from before.";
    out.counter("rallypoint_budget_guaranteed_total", help, budgets.guaranteed);
    let help = "Datagrams that were over a budget, by whose budget that is and by what it counts.";
    let mut family = out.family("rallypoint_budget_refused_total", Kind::Counter, help);
    for refusal in OverBudget::ALL {
        let labels = [("scope", &*refusal.scope.to_string()), ("unit", &*refusal.unit.to_string())];
        family.sample(&labels, budgets.refused(refusal));
    }
    let help = "How often one sender was forgotten to make room for another.";
    out.counter("rallypoint_budget_evictions_total", help, budgets.evicted);
    let help = "Senders that are remembered.";
    let mut family = out.family("rallypoint_budget_entries", Kind::Gauge, help);
    let tables = [("hosts", budgets.hosts), ("nets", budgets.nets), ("sites", budgets.sites), ("known", budgets.known)];
    for (table, entries) in tables {
        family.sample(&[("table", table)], entries);
    }
}

fn sockets(out: &mut Exposition, sockets: &[SocketStats]) {
    type Number = fn(&SocketStats) -> u64;
    let families: [(&'static str, Kind, &str, Number); 3] = [
        ("rallypoint_udp_received_total", Kind::Counter, "Datagrams that were received.", |socket| socket.received),
        (
            "rallypoint_udp_dropped_total",
            Kind::Counter,
            "Datagrams that the system dropped because the receive buffer was full.",
            |socket| socket.dropped,
        ),
        (
            "rallypoint_udp_receive_buffer_bytes",
            Kind::Gauge,
            "How much the system keeps while the lobby is busy.",
            |socket| socket.receive_buffer as u64,
        ),
    ];
    for (name, kind, help, number) in families {
        let mut family = out.family(name, kind, help);
        for socket in sockets {
            family.sample(&[("address", &socket.addr.to_string())], number(socket));
        }
    }
}

fn lists(out: &mut Exposition, list: &ListStats) {
    out.gauge("rallypoint_list_connections", "Connections for the list that are open.", list.open);
    out.gauge("rallypoint_list_connections_limit", "How many there can be.", list.limit);
    out.counter("rallypoint_list_connections_total", "Connections for the list that were made.", list.accepted);
    out.counter("rallypoint_list_requests_total", "Whole requests for a list.", list.requests);
    out.counter("rallypoint_list_bytes_total", "Bytes of lists that were handed over.", list.bytes);
    let help = "Connections for the list that got none, by reason.";
    let reasons = [
        ("too_many", list.refused_address),
        ("evicted", list.evicted),
        ("wrong_protocol", list.wrong_protocol),
        ("broken", list.broken),
        ("request_timeout", list.request_timeouts),
        ("reply_timeout", list.reply_timeouts),
    ];
    by_code(out, "rallypoint_list_failures_total", help, "reason", reasons);
    let help = "Replies by how long they took, from the whole request to the last byte handed over to the system.";
    out.histogram("rallypoint_list_reply_seconds", help, &list.latency, list.latency_sum);
}

fn saves(out: &mut Exposition, saves: &SaveStats) {
    let help = "Saves of the list, by whether they are on the disk.";
    let results = [("written", saves.written), ("failed", saves.failed)];
    by_code(out, "rallypoint_saves_total", help, "result", results);
    out.gauge("rallypoint_save_failing", "1 if the last save could not be written.", u8::from(saves.is_failing));
    if let Some(last) = saves.last {
        let help = "When the list was last saved, in seconds since 1970. It is saved only if it has changed.";
        let last = last.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        out.gauge("rallypoint_save_time_seconds", help, last);
    }
    out.gauge("rallypoint_save_duration_seconds", "How long the last save took to write.", saves.took.as_secs_f64());
    out.gauge("rallypoint_save_bytes", "How long the last save is.", saves.bytes);
}

fn history(out: &mut Exposition, history: &rallypoint_history::HistoryStats) {
    out.gauge("rallypoint_history_writing", "1 if the last sweep was written.", u8::from(history.is_writing));
    if let Some(lag) = history.lag(i64::try_from(calendar::now()).unwrap_or(i64::MAX)) {
        let help = "How long ago the last minute of history was written: a minute or so if all is well.";
        out.gauge("rallypoint_history_lag_seconds", help, lag);
    }
    let help = "Sweeps (one a minute), by whether they were written or are lost.";
    let results = [("written", history.written), ("dropped", history.dropped)];
    by_code(out, "rallypoint_history_sweeps_total", help, "result", results);
    out.gauge("rallypoint_history_pending", "Sweeps that wait to be written.", history.pending);
    out.gauge("rallypoint_history_servers", "Servers that have a history.", history.servers);
    out.gauge("rallypoint_history_bytes", "How large the file is.", history.bytes);
    let help = "How long the last sweep took to write.";
    out.gauge("rallypoint_history_write_seconds", help, Duration::from_micros(history.write_micros).as_secs_f64());
}

/// A counter with one label, and a sample for each of its values, also where nothing has happened yet.
fn by_code<'a>(
    out: &mut Exposition,
    name: &'static str,
    help: &str,
    label: &str,
    counts: impl IntoIterator<Item = (&'a str, u64)>,
) {
    let mut family = out.family(name, Kind::Counter, help);
    for (code, count) in counts {
        family.sample(&[(label, code)], count);
    }
}
