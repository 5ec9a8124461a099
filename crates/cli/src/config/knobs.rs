//! The table of all settings. Files, variables, flags, `--print-config` and the documentation all go by it.

use super::{
    bans::BanList,
    kind::{
        Kind, Limit, List, Path, Switch, Time, Value, Word, Wrong, number, quoted, read_network, read_socket,
        show_network,
    },
    names::Names,
    settings::{LogFormat, Settings},
};
use ipnet::IpNet;
use rallypoint_lobby::Mapping;
use rallypoint_wire::lobby::MAX_REGISTRATION;
use std::{
    net::{IpAddr, SocketAddr},
    ops::RangeInclusive,
    sync::LazyLock,
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
    set: Box<dyn Fn(&mut Settings, &Value<'_>) -> Result<(), Wrong> + Send + Sync>,
    show: Box<dyn Fn(&Settings) -> String + Send + Sync>,
}

/// All settings, sections together, in the order in which a person would want to read them.
pub static KNOBS: LazyLock<Vec<Knob>> = LazyLock::new(table);

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
    pub fn set(&self, settings: &mut Settings, value: &Value<'_>) -> Result<(), Wrong> {
        (self.set)(settings, value)
    }

    /// The value in force, as it stands in a file.
    pub fn show(&self, settings: &Settings) -> String {
        (self.show)(settings)
    }
}

/// A setting from its path, its kind, its place in [`Settings`] and what it is for.
macro_rules! knob {
    ($reloads:ident, $path:literal, $kind:expr, $($field:ident).+, $about:literal) => {{
        let kind = std::sync::Arc::new($kind);
        let expects = kind.expects();
        let shown = kind.clone();
        Knob {
            path: $path,
            about: $about,
            expects,
            reloads: stringify!($reloads) == "live",
            set: Box::new(move |settings, value| kind.set(&mut settings.$($field).+, value)),
            show: Box::new(move |settings| shown.show(&settings.$($field).+)),
        }
    }};
}

const LEVELS: Word<Level> = Word(&[
    ("error", Level::ERROR),
    ("warn", Level::WARN),
    ("info", Level::INFO),
    ("debug", Level::DEBUG),
    ("trace", Level::TRACE),
]);

fn table() -> Vec<Knob> {
    let addresses = |or_off| List {
        of: "addresses with ports such as [\"0.0.0.0:29944\", \"[::]:29944\"]",
        read: read_socket,
        show: SocketAddr::to_string,
        or_off,
    };
    let networks = || List::<IpNet> {
        of: "networks such as [\"203.0.113.0/24\", \"2001:db8::/32\"]",
        read: read_network,
        show: show_network,
        or_off: true,
    };
    let map = List {
        of: "pairs such as [\"192.168.1.0/24=203.0.113.5\", \"10.0.0.9:8190=203.0.113.5:9000\"]",
        read: read_mapping,
        show: show_mapping,
        or_off: true,
    };
    let seconds = |low, high| Time(Duration::from_secs(low)..=Duration::from_secs(high));
    const DAY: u64 = 24 * 60 * 60;
    const AT_LEAST_1: RangeInclusive<u64> = 1..=u64::MAX;
    vec![
        knob!(
            restart,
            "data_dir",
            Path("a folder"),
            data_dir,
            "Where the list of servers is kept over a restart. If empty: $STATE_DIRECTORY (set by systemd), \
             $XDG_STATE_HOME/rallypoint or ~/.local/state/rallypoint."
        ),
        knob!(
            live,
            "ban_file",
            Path("a file"),
            ban_file,
            "A further file with nothing but [[ban]]s, read again on SIGHUP. A relative path starts at the folder of \
             this file."
        ),
        knob!(
            restart,
            "lobby.listen",
            addresses(false),
            lobby_listen,
            "Where the lobby listens, UDP and TCP. [::] takes IPv6 only, and is left out on a machine without it."
        ),
        knob!(
            live,
            "lobby.lease",
            seconds(1, DAY),
            registry.lease,
            "How long a server stays in the list after its last registration. Servers register every 30 seconds."
        ),
        knob!(
            live,
            "lobby.max_registration",
            number(61..=MAX_REGISTRATION as u64),
            registry.max_registration,
            "The largest registration that is accepted, in bytes."
        ),
        knob!(
            live,
            "lobby.allow_private",
            Switch,
            registry.allow_private,
            "Whether servers with loopback and private addresses are welcome. Public lobbies say false."
        ),
        knob!(
            live,
            "lobby.address_map",
            map,
            address_map,
            "Servers seen from inside a private network are listed under their public address: \"inside=outside\", \
             the inside with a port for one server only. The first pair that fits counts."
        ),
        knob!(
            restart,
            "lobby.save_every",
            Time(Duration::from_millis(100)..=Duration::from_secs(DAY)),
            save_every,
            "How often the list is saved, if it has changed: so much is lost if the machine fails."
        ),
        knob!(
            restart,
            "lobby.receive_buffer",
            number(4_096..=1 << 30),
            receive_buffer,
            "How many bytes the system should keep for each UDP socket while the lobby is busy. The system may give less: \
             net.core.rmem_max."
        ),
        knob!(
            live,
            "lobby.names",
            Names,
            names,
            "What lobbies are called in logs and pages. Any lobby is welcome, with a name or without one."
        ),
        knob!(
            restart,
            "legacy.listen",
            addresses(true),
            legacy_listen,
            "Where the legacy lobby of old Gang Garrison 2 versions listens, UDP and TCP; \"off\" for not at all."
        ),
        knob!(
            restart,
            "list.connections",
            number(AT_LEAST_1),
            list.connections,
            "How many connections for the list there can be. The system's limit of open files can lower it."
        ),
        knob!(
            restart,
            "list.per_address",
            number(AT_LEAST_1),
            list.per_address,
            "How many of them one IPv4 address or IPv6 /64 can have."
        ),
        knob!(
            restart,
            "list.loopback_exempt",
            Switch,
            list.loopback_exempt,
            "Whether this machine itself may have as many as it likes."
        ),
        knob!(
            restart,
            "list.request_timeout",
            Time(Duration::from_millis(100)..=Duration::from_secs(600)),
            list.request_timeout,
            "How long a client has for its request."
        ),
        knob!(
            restart,
            "list.reply_timeout",
            seconds(60, DAY),
            list.reply_timeout,
            "How long a client has for taking the reply. Gang Garrison 2 takes its time."
        ),
        knob!(
            restart,
            "list.held_bytes",
            number(1 << 20..=1 << 40),
            list.held_bytes,
            "How many bytes of lists that are no longer the latest may be kept for slow readers."
        ),
        knob!(
            live,
            "caps.per_address",
            number(AT_LEAST_1),
            registry.caps.per_address,
            "How many servers one address can have."
        ),
        knob!(
            live,
            "caps.per_lobby",
            number(AT_LEAST_1),
            registry.caps.per_lobby,
            "How many servers one lobby can have."
        ),
        knob!(live, "caps.total", number(1..=16_000_000), registry.caps.total, "How many servers there can be in all."),
        knob!(
            live,
            "caps.lobbies",
            number(AT_LEAST_1),
            registry.caps.lobbies,
            "How many lobbies there can be. Any UUID opens one."
        ),
        knob!(
            live,
            "checks.enabled",
            Switch,
            registry.checks.enabled,
            "Whether a server is listed only after the lobby could reach it: TCP servers by a connection, servers with \
             x-query by a query."
        ),
        knob!(live, "checks.exempt", networks(), check_exempt, "Networks whose servers are listed without a check."),
        knob!(
            live,
            "checks.timeout",
            Time(Duration::from_millis(100)..=Duration::from_secs(60)),
            registry.checks.timeout,
            "How long the lobby tries to reach a server."
        ),
        knob!(
            live,
            "checks.keep",
            seconds(1, DAY),
            registry.checks.keep,
            "How long a good verdict is kept before it is renewed in the background."
        ),
        knob!(
            live,
            "checks.retry",
            seconds(1, DAY),
            registry.checks.retry,
            "How long after a bad verdict a registration makes the lobby try again."
        ),
        knob!(
            live,
            "checks.in_flight",
            number(AT_LEAST_1),
            registry.checks.in_flight,
            "How many checks may be under way at once."
        ),
        knob!(live, "checks.waiting", number(AT_LEAST_1), registry.checks.waiting, "How many checks may be waiting."),
        knob!(
            live,
            "checks.per_address",
            number(1..=u64::from(u32::MAX)),
            registry.checks.per_address,
            "Checks per minute of one address: the sender of a registration can be forged."
        ),
        knob!(
            live,
            "checks.per_network",
            number(1..=u64::from(u32::MAX)),
            registry.checks.per_network,
            "Checks per minute of one network (IPv4 /24, IPv6 /56)."
        ),
        knob!(live, "limits.exempt", networks(), limit_exempt, "Networks that may send as much as they like."),
        knob!(
            live,
            "limits.reserved_percent",
            number(0..=90),
            registry.limits.reserved_percent,
            "How much of the total is kept for sources that are known from before, so that a flood does not lock them out."
        ),
        knob!(
            live,
            "limits.max_entries",
            number(8..=1 << 24),
            registry.limits.max_entries,
            "How many addresses are remembered, 56 bytes each."
        ),
        knob!(live, "limits.host.packets", Limit, registry.limits.host.packets, "Datagrams from one address."),
        knob!(live, "limits.host.bytes", Limit, registry.limits.host.bytes, "Bytes from one address."),
        knob!(
            live,
            "limits.net.packets",
            Limit,
            registry.limits.net.packets,
            "Datagrams from one network (IPv4 /24, IPv6 /56)."
        ),
        knob!(
            live,
            "limits.net.bytes",
            Limit,
            registry.limits.net.bytes,
            "Bytes from one network (IPv4 /24, IPv6 /56)."
        ),
        knob!(live, "limits.site.packets", Limit, registry.limits.site.packets, "Datagrams from one site (IPv6 /48)."),
        knob!(live, "limits.site.bytes", Limit, registry.limits.site.bytes, "Bytes from one site (IPv6 /48)."),
        knob!(live, "limits.total.packets", Limit, registry.limits.total.packets, "Datagrams from all together."),
        knob!(live, "limits.total.bytes", Limit, registry.limits.total.bytes, "Bytes from all together."),
        knob!(
            live,
            "log.level",
            LEVELS,
            log.level,
            "How much is told. Addresses are masked up to \"info\", and shown from \"debug\" on."
        ),
        knob!(
            restart,
            "log.format",
            Word(&[("text", LogFormat::Text), ("json", LogFormat::Json)]),
            log.format,
            "Lines for people, or one JSON object per line."
        ),
        knob!(
            live,
            "ban",
            BanList,
            bans,
            "Who is not welcome: an address, a network, or a pattern of names (* for anything, ? for one character)."
        ),
    ]
}

/// `192.168.1.0/24=203.0.113.5` or `192.168.1.10:8190=203.0.113.5:9000`.
fn read_mapping(text: &str) -> Result<Mapping, String> {
    let wrong = |why: &str| format!("expected {why}, not {}", quoted(text));
    let pair = "a pair such as \"192.168.1.0/24=203.0.113.5\" or \"10.0.0.9:8190=203.0.113.5:9000\"";
    let (inside, outside) = text.split_once('=').ok_or_else(|| wrong(pair))?;
    let (inside, outside) = (inside.trim(), outside.trim());
    let (from, port) = match inside.parse::<SocketAddr>() {
        Ok(one) => (IpNet::from(one.ip().to_canonical()), Some(one.port())),
        Err(_) => (read_network(inside).map_err(|_| wrong(pair))?, None),
    };
    let (to, to_port) = match outside.parse::<SocketAddr>() {
        Ok(one) => (one.ip(), Some(one.port())),
        Err(_) => (outside.parse::<IpAddr>().map_err(|_| wrong(pair))?, None),
    };
    if from.addr().is_ipv4() != to.is_ipv4() {
        return Err(wrong("two addresses of the same family"));
    }
    if port == Some(0) || to_port == Some(0) {
        return Err(wrong("ports from 1 to 65535"));
    }
    if to_port.is_some() && port.is_none() {
        return Err(wrong("a port on the inside too, because one port outside leads to one server"));
    }
    Ok(Mapping { from, port, to, to_port })
}

fn show_mapping(map: &Mapping) -> String {
    let with_port = |ip: IpAddr, port: Option<u16>| match port {
        Some(port) => SocketAddr::new(ip, port).to_string(),
        None => ip.to_string(),
    };
    let from = if map.port.is_some() { with_port(map.from.addr(), map.port) } else { show_network(&map.from) };
    format!("{from}={}", with_port(map.to, map.to_port))
}
