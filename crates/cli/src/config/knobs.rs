//! The table of all settings. Files, variables, flags, `--print-config` and the documentation all go by it.

use super::{
    address_map::{read_mapping, show_mapping},
    bans::BanSetting,
    kind::{
        Kind, Limit, List, Path, Switch, Time, Value, Word, Wrong, number, read_network, read_socket, show_network,
    },
    names::{Joins, Names},
    secret::Secret,
    settings::{LogFormat, Settings},
    watch::WatchList,
};
use ipnet::IpNet;
use rallypoint_lobby_proto::Mapping;
use rallypoint_web::Outcomes;
use rallypoint_wire::lobby::MAX_REGISTRATION;
use std::{
    net::SocketAddr,
    ops::RangeInclusive,
    sync::{Arc, LazyLock},
    time::Duration,
};
use tracing::Level;

/// One setting.
pub struct Knob {
    /// Section and key, as in `lobby.lease`.
    pub path: &'static str,
    /// What it is for: a line or two.
    pub about: &'static str,
    /// What can be written there.
    pub expects: String,
    /// Whether SIGHUP is enough for a change; otherwise the program has to be started anew.
    pub reloads: bool,
    set: Box<Set>,
    show: Box<Show>,
}

type Set = dyn Fn(&mut Settings, &Value<'_>) -> Result<(), Vec<Wrong>> + Send + Sync;
type Show = dyn Fn(&Settings) -> String + Send + Sync;

/// All settings, sections together, in the order in which a person would want to read them.
pub static KNOBS: LazyLock<Vec<Knob>> = LazyLock::new(|| table().into_iter().chain([watch()]).collect());

impl Knob {
    /// The setting with this path.
    pub fn find(path: &str) -> Option<&'static Self> {
        KNOBS.iter().find(|knob| knob.path == path)
    }

    /// Whether settings are below this path.
    pub fn is_section(path: &str) -> bool {
        KNOBS.iter().any(|knob| knob.path.strip_prefix(path).is_some_and(|rest| rest.starts_with('.')))
    }

    /// The environment variable: `RALLYPOINT_LOBBY_LEASE`.
    pub fn variable(&self) -> String {
        format!("RALLYPOINT_{}", self.path.replace('.', "_").to_uppercase())
    }

    /// Reads a value into the settings.
    pub fn set(&self, settings: &mut Settings, value: &Value<'_>) -> Result<(), Vec<Wrong>> {
        (self.set)(settings, value)
    }

    /// The value in force, as it stands in a file.
    pub fn show(&self, settings: &Settings) -> String {
        (self.show)(settings)
    }
}

/// Rows of: whether a reload is enough, path, kind, place in [`Settings`], what it is for.
macro_rules! knobs {
    ($($reloads:ident $path:literal: $kind:expr => $($field:ident).+, $about:literal;)*) => {
        vec![$({
            let kind = Arc::new($kind);
            let shown = kind.clone();
            Knob {
                path: $path,
                about: $about,
                expects: kind.expects(),
                reloads: $reloads,
                set: Box::new(move |settings, value| kind.set(&mut settings.$($field).+, value)),
                show: Box::new(move |settings| shown.show(&settings.$($field).+)),
            }
        }),*]
    };
}

fn table() -> Vec<Knob> {
    const LIVE: bool = true;
    const START: bool = false;
    const AT_LEAST_1: RangeInclusive<u64> = 1..=u64::MAX;
    const U32: RangeInclusive<u64> = 1..=u32::MAX as u64;
    let seconds = |low, high| Time(Duration::from_secs(low)..=Duration::from_secs(high));
    let tenth_to = |high| Time(Duration::from_millis(100)..=Duration::from_secs(high));
    let day = 24 * 60 * 60;
    knobs! {
        START "data_dir": Path("a folder") => data_dir,
            "Where the list of servers is kept over a restart. If empty: $STATE_DIRECTORY (set by systemd), \
             $XDG_STATE_HOME/rallypoint or ~/.local/state/rallypoint.";
        LIVE "ban_file": Path("a file") => ban_file,
            "A further file with nothing but [[ban]]s. A relative path starts at the folder of the configuration file.";

        START "lobby.listen": addresses(false) => lobby_listen,
            "Where the lobby listens, UDP and TCP. [::] is for IPv6 only, and is left out on a machine without it.";
        LIVE "lobby.lease": seconds(1, day) => registry.lease,
            "How long a server stays in the list after its last registration. Servers register every 30 seconds.";
        LIVE "lobby.max_registration": number(61..=MAX_REGISTRATION as u64) => registry.max_registration,
            "The largest registration that is accepted, in bytes.";
        LIVE "lobby.allow_private": Switch => registry.allow_private,
            "Whether servers with loopback and private addresses are welcome. Public lobbies say false.";
        LIVE "lobby.address_map": mappings() => address_map,
            "Servers seen from inside a private network are listed under their public address: \"inside=outside\", \
             the inside with a port for one server only. The first pair that fits counts.";
        START "lobby.save_every": tenth_to(day) => save_every,
            "How often the list is saved, if it has changed: so much is lost if the machine fails.";
        START "lobby.receive_buffer": number(4_096..=1 << 30) => receive_buffer,
            "How many bytes the system should keep for each UDP socket while the lobby is busy. The system may give \
             less: see net.core.rmem_max.";
        LIVE "lobby.names": Names => names,
            "What lobbies are called. Any lobby is welcome, with a name or without one.";

        START "legacy.listen": addresses(true) => legacy_listen,
            "Where the legacy lobby of old Gang Garrison 2 versions listens, UDP and TCP.";

        START "list.connections": number(AT_LEAST_1) => list.connections,
            "How many connections for the list there can be. The system's limit of open files can lower it.";
        START "list.per_address": number(AT_LEAST_1) => list.per_address,
            "How many of them one IPv4 address or IPv6 /64 can have.";
        START "list.loopback_exempt": Switch => list.loopback_exempt,
            "Whether this machine itself may have as many as it likes.";
        START "list.request_timeout": tenth_to(600) => list.request_timeout, "How long a client has for its request.";
        START "list.reply_timeout": seconds(60, day) => list.reply_timeout,
            "How long a client has for taking the reply. Gang Garrison 2 takes its time.";
        START "list.held_bytes": number(1 << 20..=1 << 40) => list.held_bytes,
            "How many bytes of lists that are no longer the latest may be kept for slow readers.";

        START "web.listen": addresses(true) => web.listen, "Where the web page and the API are, HTTP.";
        LIVE "web.requests": Limit => web.settings.requests,
            "Requests of one IPv4 address or IPv6 /56.";
        LIVE "web.exempt": networks() => web.settings.exempt,
            "Networks that may make as many requests and connections as they like.";
        LIVE "web.trusted_proxies": networks() => web.settings.trusted_proxies,
            "Proxies whose X-Forwarded-For says who the visitor is.";
        LIVE "web.outcomes": OUTCOMES => web.settings.outcomes,
            "Whose outcomes a visitor can ask for (\"why is my server not listed?\"): those of the own address, or of any.";
        LIVE "web.metrics": networks() => web.settings.metrics,
            "Networks that may read /metrics, for Prometheus. Loopback is only who is on this machine itself.";
        LIVE "web.admin_token": Secret => web.settings.admin_token,
            "What the operator is known by in the admin API. Without a token there is no such API. A file or a variable \
             is a better place than this one.";
        LIVE "web.admin_token_file": Path("a file") => admin_token_file,
            "The file that the token is in. A relative path starts at the folder of the configuration file.";
        LIVE "web.joins": Joins => web.settings.joins,
            "Links that start a game and join a server, by lobby: {address}, {ip} and {port} are replaced.";
        START "web.connections": number(AT_LEAST_1) => web.limits.connections,
            "How many connections there can be. An eighth of the system's limit of open files at most, less what is for \
             asking servers (up to 512).";
        START "web.per_address": number(AT_LEAST_1) => web.limits.per_address,
            "How many of them one IPv4 address or IPv6 /56 can have.";
        START "web.listeners": number(AT_LEAST_1) => web.limits.listeners,
            "How many connections can listen to live events.";
        START "web.listeners_per_address": number(AT_LEAST_1) => web.limits.listeners_per_address,
            "How many of them one IPv4 address or IPv6 /56 can have.";
        START "web.answer_bytes": number(1 << 20..=1 << 40) => web.limits.answer_bytes,
            "How many bytes of answers that were made for one client each may wait to be taken.";
        START "web.answer_bytes_per_address": number(1 << 20..=1 << 40) => web.limits.answer_bytes_per_address,
            "How many of them those of one IPv4 address or IPv6 /56 can have.";
        START "web.list_bytes_per_address": number(1 << 20..=1 << 40) => web.limits.list_bytes_per_address,
            "How many bytes of whole lists, which are the same for all, one IPv4 address or IPv6 /56 can be slow to take.";
        START "web.request_timeout": tenth_to(600) => web.limits.request_timeout,
            "How long a client has for a request, and how long a connection is kept for the next one.";
        START "web.stall_timeout": tenth_to(600) => web.limits.stall_timeout,
            "How long a client may take nothing of what is sent to it.";

        LIVE "caps.per_address": number(AT_LEAST_1) => registry.caps.per_address,
            "How many servers one IPv4 address or IPv6 /64 can have.";
        LIVE "caps.per_lobby": number(AT_LEAST_1) => registry.caps.per_lobby, "How many servers one lobby can have.";
        LIVE "caps.total": number(1..=16_000_000) => registry.caps.total, "How many servers there can be in all.";
        LIVE "caps.lobbies": number(AT_LEAST_1) => registry.caps.lobbies,
            "How many lobbies there can be. Any UUID opens one. Those with a name do not count: they always have room.";
        LIVE "caps.lobbies_per_network": number(AT_LEAST_1) => registry.caps.lobbies_per_network,
            "How many lobbies without a name one network (IPv4 /24, IPv6 /48) can open.";
        LIVE "caps.memory": number(1 << 20..=1 << 40) => registry.caps.memory,
            "How many bytes of memory all servers may take: about twice what they say, and 640 each.";

        LIVE "checks.enabled": Switch => registry.checks.enabled,
            "Whether a server is listed only after the lobby could reach it: TCP servers by a connection, servers with \
             x-query by a query.";
        LIVE "checks.exempt": networks() => check_exempt, "Networks whose servers are listed without a check.";
        LIVE "checks.timeout": tenth_to(60) => registry.checks.timeout, "How long the lobby tries to reach a server.";
        LIVE "checks.keep": seconds(1, day) => registry.checks.keep,
            "How long a good verdict is kept before it is renewed in the background.";
        LIVE "checks.retry": seconds(1, day) => registry.checks.retry,
            "How long after a bad verdict a registration makes the lobby try again.";
        LIVE "checks.in_flight": number(AT_LEAST_1) => registry.checks.in_flight,
            "How many checks may be under way at once.";
        LIVE "checks.waiting": number(4..=u64::MAX) => registry.checks.waiting,
            "How many checks may be waiting: a quarter each for servers that could be reached before, that come back, \
             that are new, and that could not be reached.";
        LIVE "checks.per_address": number(U32) => registry.checks.per_address,
            "Checks per minute of one address: the sender of a registration can be forged.";
        LIVE "checks.per_network": number(U32) => registry.checks.per_network,
            "Checks per minute of one network (IPv4 /24, IPv6 /56).";

        LIVE "limits.exempt": networks() => limit_exempt, "Networks that may send as much as they like.";
        LIVE "limits.reserved_percent": number(0..=90) => registry.limits.reserved_percent,
            "How much of the total is kept for sources that are known from before, so that a flood does not lock them \
             out.";
        LIVE "limits.max_entries": number(8..=1 << 24) => registry.limits.max_entries,
            "How many addresses are remembered, 56 bytes each.";
        LIVE "limits.host.packets": Limit => registry.limits.host.packets, "Datagrams from one address.";
        LIVE "limits.host.bytes": Limit => registry.limits.host.bytes, "Bytes from one address.";
        LIVE "limits.net.packets": Limit => registry.limits.net.packets,
            "Datagrams from one network (IPv4 /24, IPv6 /56).";
        LIVE "limits.net.bytes": Limit => registry.limits.net.bytes, "Bytes from one network (IPv4 /24, IPv6 /56).";
        LIVE "limits.site.packets": Limit => registry.limits.site.packets, "Datagrams from one site (IPv6 /48).";
        LIVE "limits.site.bytes": Limit => registry.limits.site.bytes, "Bytes from one site (IPv6 /48).";
        LIVE "limits.total.packets": Limit => registry.limits.total.packets, "Datagrams from all together.";
        LIVE "limits.total.bytes": Limit => registry.limits.total.bytes, "Bytes from all together.";

        START "history.enabled": Switch => history.enabled,
            "Whether a history of servers and lobbies is kept, in the file history.db of the data folder.";
        START "history.minutes": number(1..=366) => history.retention.minutes,
            "For how many days every minute is kept.";
        START "history.hours": number(1..=3_660) => history.retention.hours,
            "For how many days every hour is kept.";
        START "history.days": number(1..=36_600) => history.retention.days,
            "For how many days every day is kept, and servers that are not seen any more.";
        START "history.max_servers": number(1..=1_000_000) => history.max_servers,
            "How many servers have a history. If there are more, those that were listed for longer win.";
        START "history.max_size": number(1 << 20..=1 << 40) => history.max_size,
            "How large the file may become, in bytes. What does not fit is not recorded.";

        LIVE "log.level": LEVELS => log.level,
            "How much is told. Addresses are masked up to \"info\", and shown from \"debug\" on.";
        START "log.format": FORMATS => log.format, "Lines for people, or one JSON object per line.";

        LIVE "ban": BanSetting => bans,
            "Who is not welcome: an address, a network, or a pattern of names (* for anything, ? for one character).";
    }
}

/// The servers to watch name lobbies, so they are read with what those are called: a file is walked in the order of its
/// keys, and `lobby` comes before `watch`.
fn watch() -> Knob {
    fn list(settings: &Settings) -> WatchList<'_> {
        WatchList { names: &settings.names }
    }
    Knob {
        path: "watch",
        about: "Servers that cannot register: they are asked every 30 seconds, and listed in a lobby while they answer.",
        expects: list(&Settings::default()).expects(),
        reloads: true,
        set: Box::new(|settings, value| {
            let mut targets = Vec::new();
            list(settings).set(&mut targets, value)?;
            settings.watch = targets;
            Ok(())
        }),
        show: Box::new(|settings| list(settings).show(&settings.watch)),
    }
}

const LEVELS: Word<Level> = Word(&[
    ("error", Level::ERROR),
    ("warn", Level::WARN),
    ("info", Level::INFO),
    ("debug", Level::DEBUG),
    ("trace", Level::TRACE),
]);

const FORMATS: Word<LogFormat> = Word(&[("text", LogFormat::Text), ("json", LogFormat::Json)]);

const OUTCOMES: Word<Outcomes> = Word(&[("own", Outcomes::Own), ("any", Outcomes::Any)]);

fn addresses(or_off: bool) -> List<SocketAddr> {
    let of = "addresses with ports such as [\"0.0.0.0:29944\", \"[::]:29944\"]";
    List { of, read: read_socket, show: SocketAddr::to_string, or_off }
}

fn networks() -> List<IpNet> {
    let of = "networks such as [\"203.0.113.0/24\", \"2001:db8::/32\"]";
    List { of, read: read_network, show: show_network, or_off: true }
}

fn mappings() -> List<Mapping> {
    let of = "pairs such as [\"192.168.1.0/24=203.0.113.5\", \"10.0.0.9:8190=203.0.113.5:9000\"]";
    List { of, read: read_mapping, show: show_mapping, or_off: true }
}
