//! The table of all settings: the source of file keys, variables, flags and `--print-config`.

use super::{
    address_map::{read_mapping, show_mapping},
    bans::BanListType,
    cluster::{NameType, SecretType, StoreUrlType},
    export::{hosts, mirrors},
    names::{JoinLinksType, LobbyNamesType},
    setting_type::{
        BoolType, ChoiceType, DurationType, ListType, PathType, RateLimitType, SettingType, Value, ValueError, number,
        read_network, read_socket, show_network,
    },
    settings::{LogFormat, Settings},
    site::{ParsedType, TextType},
    token::TokenType,
    watch::WatchListType,
};
use ipnet::IpNet;
use rallypoint_lobby_proto::Mapping;
use rallypoint_query::HttpUrl;
use rallypoint_web::OutcomeAccess;
use rallypoint_wire::lobby::MAX_REGISTRATION;
use std::{
    net::SocketAddr,
    ops::RangeInclusive,
    sync::{Arc, LazyLock},
    time::Duration,
};
use tracing::Level;

/// One setting.
pub struct Setting {
    /// Section and key, as in `lobby.lease`.
    pub path: &'static str,
    /// Description, one or two lines.
    pub about: &'static str,
    /// Description of the valid values.
    pub expects: String,
    /// Whether a change takes effect on SIGHUP; otherwise it needs a restart.
    pub reloads: bool,
    set: Box<Set>,
    show: Box<Show>,
}

type Set = dyn Fn(&mut Settings, &Value<'_>) -> Result<(), Vec<ValueError>> + Send + Sync;
type Show = dyn Fn(&Settings) -> String + Send + Sync;

/// All settings, grouped by table, in the order of `--print-config`.
pub static SETTINGS: LazyLock<Vec<Setting>> = LazyLock::new(|| table().into_iter().chain([watch()]).collect());

impl Setting {
    /// The setting with this path.
    pub fn find(path: &str) -> Option<&'static Self> {
        SETTINGS.iter().find(|setting| setting.path == path)
    }

    /// Whether this path is a table of settings.
    pub fn is_section(path: &str) -> bool {
        SETTINGS.iter().any(|setting| setting.path.strip_prefix(path).is_some_and(|rest| rest.starts_with('.')))
    }

    /// The environment variable: `RALLYPOINT_LOBBY_LEASE`.
    pub fn variable(&self) -> String {
        format!("RALLYPOINT_{}", self.path.replace('.', "_").to_uppercase())
    }

    /// Parses a value into the settings.
    pub fn set(&self, settings: &mut Settings, value: &Value<'_>) -> Result<(), Vec<ValueError>> {
        (self.set)(settings, value)
    }

    /// The current value in TOML syntax.
    pub fn show(&self, settings: &Settings) -> String {
        (self.show)(settings)
    }
}

/// Rows of: `LIVE` (reloadable) or `START`, path, type, field of [`Settings`], description.
macro_rules! setting_table {
    ($($reloads:ident $path:literal: $type:expr => $($field:ident).+, $about:literal;)*) => {
        vec![$({
            let setting_type = Arc::new($type);
            let shown = setting_type.clone();
            Setting {
                path: $path,
                about: $about,
                expects: setting_type.expects(),
                reloads: $reloads,
                set: Box::new(move |settings, value| setting_type.set(&mut settings.$($field).+, value)),
                show: Box::new(move |settings| shown.show(&settings.$($field).+)),
            }
        }),*]
    };
}

fn table() -> Vec<Setting> {
    const LIVE: bool = true;
    const START: bool = false;
    const AT_LEAST_1: RangeInclusive<u64> = 1..=u64::MAX;
    const U32: RangeInclusive<u64> = 1..=u32::MAX as u64;
    let seconds = |low, high| DurationType(Duration::from_secs(low)..=Duration::from_secs(high));
    let tenth_to = |high| DurationType(Duration::from_millis(100)..=Duration::from_secs(high));
    let day = 24 * 60 * 60;
    setting_table! {
        START "data_dir": PathType("a directory") => data_dir,
            "Directory for data that survives a restart: the list of servers, history and admin bans. If empty: \
             $STATE_DIRECTORY (set by systemd), $XDG_STATE_HOME/rallypoint or ~/.local/state/rallypoint.";
        LIVE "ban_file": PathType("a file") => ban_file,
            "Separate file that contains only [[ban]] tables. A relative path starts at the directory of the \
             configuration file.";

        START "lobby.listen": addresses(false) => lobby_listen,
            "Addresses the lobby listens on, UDP and TCP. [::] means IPv6 only and is skipped on a machine without \
             IPv6.";
        LIVE "lobby.lease": seconds(1, day) => registry.lease,
            "Time a server stays listed after its last registration. Servers register every 30 seconds.";
        LIVE "lobby.max_registration": number(61..=MAX_REGISTRATION as u64) => registry.max_registration,
            "Maximum size of a registration in bytes.";
        LIVE "lobby.allow_private": BoolType => registry.allow_private,
            "Whether servers with loopback, private and other special-purpose addresses are accepted. A public lobby \
             should set this to false.";
        LIVE "lobby.address_map": mappings() => address_map,
            "Public addresses of servers that the lobby sees under private ones: \"private=public\". With a port on \
             the left side an entry applies to one server only. The first matching entry is used.";
        START "lobby.save_every": tenth_to(day) => save_every,
            "Interval at which the list is saved if it has changed. After a crash, changes of this period may be \
             lost.";
        START "lobby.receive_buffer": number(4_096..=1 << 30) => receive_buffer,
            "Requested size of each UDP receive buffer in bytes. The system may grant less: see net.core.rmem_max.";
        LIVE "lobby.names": LobbyNamesType => names,
            "Names of lobbies. Lobbies without a name are accepted as well.";

        START "legacy.listen": addresses(true) => legacy_listen,
            "Addresses the legacy lobby for old Gang Garrison 2 versions listens on, UDP and TCP.";

        START "list.connections": number(AT_LEAST_1) => list.connections,
            "Maximum number of connections for list requests. The system's limit of open files can lower it.";
        START "list.per_address": number(AT_LEAST_1) => list.per_address,
            "Maximum number of list connections per IPv4 address or IPv6 /64.";
        START "list.loopback_exempt": BoolType => list.loopback_exempt,
            "Whether connections from this machine are exempt from list.per_address.";
        START "list.request_timeout": tenth_to(600) => list.request_timeout, "Time limit for a client to send its request.";
        START "list.reply_timeout": seconds(60, day) => list.reply_timeout,
            "Time limit for a client to receive the reply. Gang Garrison 2 reads slowly.";
        START "list.held_bytes": number(1 << 20..=1 << 40) => list.held_bytes,
            "Maximum number of bytes of outdated lists kept for slow readers; at most an eighth of caps.memory.";

        START "web.listen": addresses(true) => web.listen, "Addresses of the web page and the API, HTTP.";
        LIVE "web.requests": RateLimitType => web.settings.requests,
            "Request limit per IPv4 address or IPv6 /56.";
        LIVE "web.exempt": networks() => web.settings.exempt,
            "Networks exempt from the limits of requests and connections.";
        LIVE "web.trusted_proxies": networks() => web.settings.trusted_proxies,
            "Proxies whose X-Forwarded-For header is trusted.";
        LIVE "web.outcomes": OUTCOMES => web.settings.outcomes,
            "Addresses whose registration outcomes a visitor can look up (\"why is my server not listed?\"): the \
             visitor's own, or any.";
        LIVE "web.metrics": networks() => web.settings.metrics,
            "Networks that may read /metrics, for Prometheus. Loopback counts only without a proxy in between.";
        LIVE "web.admin_token": TokenType => web.settings.admin_token,
            "Token of the admin API, which is disabled without one. Prefer a file or an environment variable to this \
             setting.";
        LIVE "web.admin_token_file": PathType("a file") => admin_token_file,
            "File that contains the admin token. A relative path starts at the directory of the configuration file.";
        LIVE "web.joins": JoinLinksType => web.settings.joins,
            "Links that start a game and join a server, by lobby: {address}, {ip} and {port} are replaced.";
        LIVE "web.title": TextType(60) => web.settings.site.title, "Title of the pages.";
        LIVE "web.welcome": TextType(2_000) => web.settings.site.welcome,
            "Text above the list of servers. Lines are kept; links are not made.";
        LIVE "web.logo": PathType("a file: .svg, .png, .jpg, .webp or .gif") => web.settings.site.logo,
            "Image beside the title, at most 2 MB. A relative path starts at the directory of the configuration file.";
        LIVE "web.color": ParsedType::new("a colour such as \"#0b6478\"") => web.settings.site.color,
            "Colour of buttons and links. It is darkened or lightened where it could not be read.";
        LIVE "web.base_path": ParsedType::new("a path such as \"/servers\"") => web.settings.site.base_path,
            "Path at which a reverse proxy publishes the pages, if it is not the root of the host.";
        LIVE "web.maps": PathType("a directory") => web.settings.site.maps,
            "Directory with pictures of maps, named like the maps: ctf_truefort.png. They are shown on the pages of servers.";
        LIVE "web.geoip": PathType("a file: .mmdb") => web.settings.site.geoip,
            "Database of countries in the format of MaxMind, such as GeoLite2-Country.mmdb. The countries of servers are \
             shown if it is given.";
        START "web.connections": number(AT_LEAST_1) => web.limits.connections,
            "Maximum number of HTTP connections. At most an eighth of the system's limit of open files, less the \
             sockets for probing servers (up to 512). A new connection beyond it closes one without a request, or one of \
             the network that has most; those of this machine and of web.exempt stay open.";
        START "web.per_address": number(AT_LEAST_1) => web.limits.per_address,
            "Maximum number of HTTP connections per IPv4 address or IPv6 /56.";
        START "web.listeners": number(AT_LEAST_1) => web.limits.listeners,
            "Maximum number of connections that receive live events. Beyond it, a network that has few closes one of the \
             network that has most.";
        START "web.listeners_per_address": number(AT_LEAST_1) => web.limits.listeners_per_address,
            "Maximum number of live event connections per IPv4 address or IPv6 /56.";
        START "web.answer_bytes": number(1 << 20..=1 << 40) => web.limits.answer_bytes,
            "Maximum number of bytes of responses rendered for a single client that are waiting to be sent; at most an \
             eighth of caps.memory.";
        START "web.answer_bytes_per_address": number(1 << 20..=1 << 40) => web.limits.answer_bytes_per_address,
            "Maximum number of such bytes per IPv4 address or IPv6 /56.";
        START "web.list_bytes_per_address": number(1 << 20..=1 << 40) => web.limits.list_bytes_per_address,
            "Maximum number of bytes of shared responses (whole lists) waiting to be sent per IPv4 address or IPv6 \
             /56.";
        START "web.request_timeout": tenth_to(600) => web.limits.request_timeout,
            "Time limit for a client to send a request, and idle time after which a connection is closed.";
        START "web.stall_timeout": tenth_to(600) => web.limits.stall_timeout,
            "Time after which a connection whose client reads nothing is closed.";

        LIVE "caps.per_address": number(AT_LEAST_1) => registry.caps.per_address,
            "Maximum number of servers per IPv4 address or IPv6 /64.";
        LIVE "caps.network_percent": number(1..=100) => registry.caps.network_percent,
            "Maximum share of all servers (caps.total) and of their memory (caps.memory) that one network (IPv4 /24, \
             IPv6 /48) can have, in percent. Every network can have 1000 servers and 4 MiB.";
        LIVE "caps.per_lobby": number(AT_LEAST_1) => registry.caps.per_lobby, "Maximum number of servers per lobby.";
        LIVE "caps.total": number(1..=16_000_000) => registry.caps.total, "Maximum number of servers in all lobbies.";
        LIVE "caps.lobbies": number(AT_LEAST_1) => registry.caps.lobbies,
            "Maximum number of lobbies without a name. Any UUID opens one. Lobbies with a name do not count and \
             always have room.";
        LIVE "caps.lobbies_per_network": number(AT_LEAST_1) => registry.caps.lobbies_per_network,
            "Maximum number of lobbies without a name opened by one network (IPv4 /24, IPv6 /48).";
        LIVE "caps.memory": number(1 << 20..=1 << 40) => registry.caps.memory,
            "Maximum memory for all servers in bytes: two to four times the size of the registrations, plus 1200 bytes \
             each; long ones, with more than 512 bytes in all or in the texts on pages, count up to 25 times. The \
             default is a quarter of the system's memory, at most 2 GiB.";

        LIVE "checks.enabled": BoolType => registry.checks.enabled,
            "Whether a server is listed only after the lobby has reached it: TCP servers by a connection, servers \
             with x-query by a query.";
        LIVE "checks.exempt": networks() => check_exempt, "Networks whose servers are listed without a check.";
        LIVE "checks.timeout": tenth_to(60) => registry.checks.timeout, "Time limit for one check of a server that was reached before. For others it is at most 1.9 s: the source of their registration may be forged.";
        LIVE "checks.keep": seconds(1, day) => registry.checks.keep,
            "Time a successful check stays valid before it is renewed in the background.";
        LIVE "checks.retry": seconds(1, day) => registry.checks.retry,
            "Time after a failed check before a registration triggers another one.";
        LIVE "checks.in_flight": number(AT_LEAST_1) => registry.checks.in_flight,
            "Maximum number of checks running at once.";
        LIVE "checks.waiting": number(4..=u64::MAX) => registry.checks.waiting,
            "Maximum number of queued checks: a quarter each for servers that were reachable before, that return, \
             that are new, and that were unreachable.";
        LIVE "checks.per_address": number(U32) => registry.checks.per_address,
            "Maximum number of checks per minute for one address: the sender of a registration can be forged.";
        LIVE "checks.per_network": number(U32) => registry.checks.per_network,
            "Maximum number of checks per minute for one network (IPv4 /24, IPv6 /56).";
        LIVE "checks.total": number(U32) => registry.checks.total,
            "Maximum number of checks per second in all.";

        LIVE "limits.exempt": networks() => limit_exempt, "Networks exempt from these limits.";
        LIVE "limits.reserved_percent": number(0..=90) => registry.limits.reserved_percent,
            "Percentage of the total reserved for known sources, so that a flood does not lock them out.";
        LIVE "limits.max_entries": number(8..=1 << 24) => registry.limits.max_entries,
            "Maximum number of tracked addresses, 56 bytes each.";
        LIVE "limits.host.packets": RateLimitType => registry.limits.host.packets, "Datagrams per address.";
        LIVE "limits.host.bytes": RateLimitType => registry.limits.host.bytes, "Bytes per address.";
        LIVE "limits.net.packets": RateLimitType => registry.limits.net.packets,
            "Datagrams per network (IPv4 /24, IPv6 /56).";
        LIVE "limits.net.bytes": RateLimitType => registry.limits.net.bytes, "Bytes per network (IPv4 /24, IPv6 /56).";
        LIVE "limits.site.packets": RateLimitType => registry.limits.site.packets, "Datagrams per site (IPv6 /48).";
        LIVE "limits.site.bytes": RateLimitType => registry.limits.site.bytes, "Bytes per site (IPv6 /48).";
        LIVE "limits.total.packets": RateLimitType => registry.limits.total.packets, "Datagrams from all sources together.";
        LIVE "limits.total.bytes": RateLimitType => registry.limits.total.bytes, "Bytes from all sources together.";

        START "history.enabled": BoolType => history.enabled,
            "Whether a history of servers and lobbies is recorded, in the file history.db of the data directory.";
        START "history.minutes": number(1..=366) => history.retention.minutes,
            "Number of days for which one sample per minute is kept.";
        START "history.hours": number(1..=3_660) => history.retention.hours,
            "Number of days for which hourly summaries are kept.";
        START "history.days": number(1..=36_600) => history.retention.days,
            "Number of days for which daily summaries are kept, and servers that are no longer listed.";
        START "history.max_servers": number(1..=1_000_000) => history.max_servers,
            "Maximum number of servers with a history. If there are more, those that were listed for longer are kept.";
        START "history.max_size": number(1 << 20..=1 << 40) => history.max_size,
            "Maximum size of the file in bytes. Data beyond it is not recorded.";

        START "export.directory": PathType("a directory") => export.directory,
            "Directory in which signed copies of page and lists are written, for mirrors. If empty, none are written. It should \
             contain nothing else. A relative path starts at the directory of the configuration file.";
        START "export.interval": seconds(1, 60 * 60) => export.interval,
            "Minimum time between two copies. Copies of very long lists are written less often.";
        START "export.key_file": PathType("a file") => export.key_file,
            "Key that signs the copies; it is created at first use. If empty: export.key in the data directory. All nodes of a \
             cluster should use the same.";
        LIVE "export.max_age": seconds(60, 365 * day) => export.max_age,
            "Time for which clients use a copy, unless their user sets another.";
        LIVE "export.hosts": hosts() => export.hosts,
            "Names under which players know this lobby. A client that was asked for another lobby refuses the copy.";
        LIVE "export.page_url": ParsedType::<HttpUrl>::new("a URL such as \"https://lobby.example.org/\"") => export.page_url,
            "Address of the live page, to which the page of a copy links.";
        LIVE "export.mirrors": mirrors() => export.mirrors,
            "Where the copies are published. The page of the lobbies shows players the command that reads them.";

        START "cluster.url": StoreUrlType => cluster.url,
            "Redis or Valkey 7 or later, through which several lobbies share one list. If empty, this lobby is alone. User and \
             password are not printed. With rediss the connection is encrypted.";
        START "cluster.name": NameType { is_optional: false } => cluster.name,
            "Name of the cluster: clusters with different names can share a store.";
        START "cluster.node": NameType { is_optional: true } => cluster.node,
            "Name of this node, for example its region: players see it with the latencies of servers. If empty: the name of the host.";
        START "cluster.secret": SecretType => cluster.secret,
            "Secret that all nodes of the cluster share. Prefer a file or an environment variable to this setting.";
        START "cluster.secret_file": PathType("a file") => cluster.secret_file,
            "File that contains the cluster's secret. A relative path starts at the directory of the configuration file.";
        START "cluster.outage_limit": seconds(10, day) => cluster.outage_limit,
            "Time that servers of other nodes stay listed while the store cannot be reached.";

        LIVE "log.level": LEVELS => log.level,
            "Log level. Addresses are masked up to \"info\" and shown from \"debug\" on.";
        START "log.format": FORMATS => log.format, "Format of the log: readable lines, or one JSON object per line.";

        LIVE "ban": BanListType => bans,
            "Banned addresses, networks and name patterns (* matches any text, ? one character).";
    }
}

/// The watched servers refer to lobbies by name, so they are parsed with `lobby.names`: the keys of a file are read in
/// alphabetical order, and `lobby` comes before `watch`.
fn watch() -> Setting {
    fn list(settings: &Settings) -> WatchListType<'_> {
        WatchListType { names: &settings.names }
    }
    Setting {
        path: "watch",
        about: "Servers that cannot register: they are probed every 30 seconds and listed while they answer.",
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

const LEVELS: ChoiceType<Level> = ChoiceType(&[
    ("error", Level::ERROR),
    ("warn", Level::WARN),
    ("info", Level::INFO),
    ("debug", Level::DEBUG),
    ("trace", Level::TRACE),
]);

const FORMATS: ChoiceType<LogFormat> = ChoiceType(&[("text", LogFormat::Text), ("json", LogFormat::Json)]);

const OUTCOMES: ChoiceType<OutcomeAccess> = ChoiceType(&[("own", OutcomeAccess::Own), ("any", OutcomeAccess::Any)]);

fn addresses(or_off: bool) -> ListType<SocketAddr> {
    let of = "addresses with ports such as [\"0.0.0.0:29944\", \"[::]:29944\"]";
    ListType { of, read: read_socket, show: SocketAddr::to_string, or_off }
}

fn networks() -> ListType<IpNet> {
    let of = "networks such as [\"203.0.113.0/24\", \"2001:db8::/32\"]";
    ListType { of, read: read_network, show: show_network, or_off: true }
}

fn mappings() -> ListType<Mapping> {
    let of = "pairs such as [\"192.168.1.0/24=203.0.113.5\", \"10.0.0.9:8190=203.0.113.5:9000\"]";
    ListType { of, read: read_mapping, show: show_mapping, or_off: true }
}
