//! The table of all settings: for each its name, default, valid values, place in [`Settings`](super::Settings) and description.
//!
//! Everything else about settings follows from it: the keys of the file, the variables and flags with their checks, the help,
//! `--print-config` with its template of a file, `--check-config`, and the tables in docs/configuration.md.

use super::{
    export::{hosts, mirrors},
    kind::{
        Empty, Kind, byte_rate, choice, duration, list, number, page_text, parsed, path, rate, read_socket, size,
        switch,
    },
    names::{join_links, list_names},
    networks::{read_mapping, read_network, show_mapping, show_network},
    records::{bans, watched_servers},
    secrets::{admin_token, cluster_name, cluster_secret, store_url},
    setting::{Setting, setting_table},
    settings::LogFormat,
};
use ipnet::IpNet;
use rallypoint_lobby_proto::{
    Mapping,
    doors::{DOORS, Door, DoorSockets, LOBBY},
};
use rallypoint_web::OutcomeAccess;
use rallypoint_wire::lobby::MAX_REGISTRATION;
use std::{
    collections::BTreeMap,
    net::SocketAddr,
    ops::RangeInclusive,
    sync::{Arc, LazyLock},
    time::Duration,
};
use tracing::Level;

/// All settings, grouped by table, in the order of `--print-config`.
pub static SETTINGS: LazyLock<Vec<Setting>> =
    LazyLock::new(|| with_doors(table()).into_iter().chain([watch()]).collect());

/// Rows of: `LIVE` (reloadable) or `START` (needs a restart), name = default, valid values => field, description.
fn table() -> Vec<Setting> {
    const LIVE: bool = true;
    const START: bool = false;
    setting_table! {
        START "data_dir" = "", path("a directory") => data_dir,
            "Directory for data that survives a restart: the list of servers, history and admin bans. If empty: \
             $STATE_DIRECTORY (set by systemd), $XDG_STATE_HOME/rallypoint or ~/.local/state/rallypoint.";
        LIVE "ban_file" = "", path("a file") => ban_file,
            "Separate file that contains only [[ban]] tables. A relative path starts at the directory of the configuration \
             file.";

        LIVE "lobby.lease" = "70s", duration(SECOND..=DAY) => registry.lease,
            "Time a server stays listed after its last registration. Servers register every 30 seconds.";
        LIVE "lobby.max_registration" = "4096", size(61..=MAX_REGISTRATION as u64) => registry.max_registration,
            "Maximum size of a registration in bytes.";
        LIVE "lobby.allow_private" = "true", switch() => registry.allow_private,
            "Whether servers with loopback, private and other special-purpose addresses are accepted. A public lobby should \
             set this to false.";
        LIVE "lobby.address_map" = "[]", mappings() => address_map,
            "Public addresses of servers that the lobby sees under private ones: \"private=public\". With a port on the left \
             side an entry applies to one server only. The first matching entry is used.";
        START "lobby.save_every" = "2s", duration(TENTH..=DAY) => save_every,
            "Interval at which the list is saved if it has changed. After a crash, changes of this period may be lost.";
        START "lobby.receive_buffer" = "8MiB", size(4_096..=GIB) => receive_buffer,
            "Requested size of each UDP receive buffer in bytes. The system may grant less: see net.core.rmem_max.";
        LIVE "lists.names" = "{}", list_names() => names,
            "Names of lists. Lists without a name are accepted as well.";

        START "list.connections" = "16_384", number(AT_LEAST_1) => list.connections,
            "Maximum number of connections for list requests. The system's limit of open files can lower it.";
        START "list.per_address" = "64", number(AT_LEAST_1) => list.per_address,
            "Maximum number of list connections per IPv4 address or IPv6 /64.";
        START "list.loopback_exempt" = "true", switch() => list.loopback_exempt,
            "Whether connections from this machine are exempt from list.per_address.";
        START "list.request_timeout" = "5s", duration(TENTH..=TEN_MINUTES) => list.request_timeout,
            "Time limit for a client to send its request.";
        START "list.reply_timeout" = "2m", duration(MINUTE..=DAY) => list.reply_timeout,
            "Time limit for a client to receive the reply. Gang Garrison 2 reads slowly.";
        START "list.held_bytes" = "512MiB", size(MIB..=TIB) => list.held_bytes,
            "Maximum number of bytes of outdated lists kept for slow readers; at most an eighth of caps.memory.";

        START "web.listen" = "0.0.0.0:29950, [::]:29950", addresses(Empty::Off) => web.listen,
            "Addresses of the web page and the API, HTTP.";
        LIVE "web.requests" = "20/s burst 200", rate() => web.settings.requests,
            "Request limit per IPv4 address or IPv6 /56.";
        LIVE "web.exempt" = "127.0.0.0/8, ::1", networks() => web.settings.exempt,
            "Networks exempt from the limits of requests and connections.";
        LIVE "web.trusted_proxies" = "[]", networks() => web.settings.trusted_proxies,
            "Proxies whose X-Forwarded-For header is trusted.";
        LIVE "web.outcomes" = "own", choice(&OUTCOMES) => web.settings.outcomes,
            "Addresses whose registration outcomes a visitor can look up (\"why is my server not listed?\"): the visitor's \
             own, or any.";
        LIVE "web.metrics" = "127.0.0.0/8, ::1", networks() => web.settings.metrics,
            "Networks that may read /metrics, for Prometheus. Loopback counts only without a proxy in between.";
        LIVE "web.admin_token" = "", admin_token() => web.settings.admin_token,
            "Token of the admin API, which is disabled without one. Prefer a file or an environment variable to this setting.";
        LIVE "web.admin_token_file" = "", path("a file") => admin_token_file,
            "File that contains the admin token. A relative path starts at the directory of the configuration file.";
        LIVE "web.joins" = "{}", join_links() => web.settings.joins,
            "Links that start a game and join a server, by lobby: {address}, {ip} and {port} are replaced.";
        LIVE "web.title" = "Rallypoint", page_text(60) => web.settings.site.title,
            "Title of the pages.";
        LIVE "web.welcome" = "", page_text(2_000) => web.settings.site.welcome,
            "Text above the list of servers. Lines are kept; links are not made.";
        LIVE "web.logo" = "", path("a file: .svg, .png, .jpg, .webp or .gif") => web.settings.site.logo,
            "Image beside the title, at most 2 MB. A relative path starts at the directory of the configuration file.";
        LIVE "web.color" = "", parsed("a colour such as \"#0b6478\"") => web.settings.site.color,
            "Colour of buttons and links. It is darkened or lightened where it could not be read.";
        LIVE "web.base_path" = "", parsed("a path such as \"/servers\"") => web.settings.site.base_path,
            "Path at which a reverse proxy publishes the pages, if it is not the root of the host.";
        LIVE "web.maps" = "", path("a directory") => web.settings.site.maps,
            "Directory with pictures of maps, named like the maps: ctf_truefort.png. They are shown on the pages of servers.";
        LIVE "web.geoip" = "", path("a file: .mmdb") => web.settings.site.geoip,
            "Database of countries in the format of MaxMind, such as GeoLite2-Country.mmdb. The countries of servers are \
             shown if it is given.";
        START "web.connections" = "4096", number(AT_LEAST_1) => web.limits.connections,
            "Maximum number of HTTP connections. At most an eighth of the system's limit of open files, less the sockets for \
             probing servers (up to 512). A new connection beyond it closes one without a request, or one of the network that \
             has most; those of this machine and of web.exempt stay open.";
        START "web.per_address" = "128", number(AT_LEAST_1) => web.limits.per_address,
            "Maximum number of HTTP connections per IPv4 address or IPv6 /56.";
        START "web.listeners" = "2048", number(AT_LEAST_1) => web.limits.listeners,
            "Maximum number of connections that receive live events. Beyond it, a network that has few closes one of the \
             network that has most.";
        START "web.listeners_per_address" = "32", number(AT_LEAST_1) => web.limits.listeners_per_address,
            "Maximum number of live event connections per IPv4 address or IPv6 /56.";
        START "web.answer_bytes" = "32MiB", size(MIB..=TIB) => web.limits.answer_bytes,
            "Maximum number of bytes of responses rendered for a single client that are waiting to be sent; at most an eighth \
             of caps.memory.";
        START "web.answer_bytes_per_address" = "16MiB", size(MIB..=TIB) => web.limits.answer_bytes_per_address,
            "Maximum number of such bytes per IPv4 address or IPv6 /56.";
        START "web.list_bytes_per_address" = "64MiB", size(MIB..=TIB) => web.limits.list_bytes_per_address,
            "Maximum number of bytes of shared responses (whole lists) waiting to be sent per IPv4 address or IPv6 /56.";
        START "web.request_timeout" = "20s", duration(TENTH..=TEN_MINUTES) => web.limits.request_timeout,
            "Time limit for a client to send a request, and idle time after which a connection is closed.";
        START "web.stall_timeout" = "20s", duration(TENTH..=TEN_MINUTES) => web.limits.stall_timeout,
            "Time after which a connection whose client reads nothing is closed.";

        LIVE "caps.per_address" = "32", number(AT_LEAST_1) => registry.caps.per_address,
            "Maximum number of servers per IPv4 address or IPv6 /64.";
        LIVE "caps.network_percent" = "10", number(1..=100) => registry.caps.network_percent,
            "Maximum share of all servers (caps.total) and of their memory (caps.memory) that one network (IPv4 /24, IPv6 \
             /48) can have, in percent. Every network can have 1000 servers and 4 MiB.";
        LIVE "caps.per_list" = "1_000_000", number(AT_LEAST_1) => registry.caps.per_list,
            "Maximum number of servers per list.";
        LIVE "caps.total" = "1_000_000", number(1..=16_000_000) => registry.caps.total,
            "Maximum number of servers in all lists.";
        LIVE "caps.lists" = "10_000", number(AT_LEAST_1) => registry.caps.lists,
            "Maximum number of lists without a name. Any UUID opens one. Lists with a name do not count and always have \
             room.";
        LIVE "caps.lists_per_network" = "100", number(AT_LEAST_1) => registry.caps.lists_per_network,
            "Maximum number of lists without a name opened by one network (IPv4 /24, IPv6 /48).";
        LIVE "caps.memory" = "2GiB", size(MIB..=TIB) => registry.caps.memory,
            "Maximum memory for all servers in bytes: two to four times the size of the registrations, plus 1200 bytes each; \
             long ones, with more than 512 bytes in all or in the texts on pages, count up to 25 times. The default is a \
             quarter of the system's memory, at most 2 GiB.";

        LIVE "checks.enabled" = "true", switch() => registry.checks.enabled,
            "Whether a server is listed only after the lobby has reached it: TCP servers by a connection, servers with \
             x-query by a query.";
        LIVE "checks.exempt" = "[]", networks() => check_exempt,
            "Networks whose servers are listed without a check.";
        LIVE "checks.timeout" = "5s", duration(TENTH..=MINUTE) => registry.checks.timeout,
            "Time limit for one check of a server that was reached before. For others it is at most 1.9 s: the source of \
             their registration may be forged.";
        LIVE "checks.keep" = "5m", duration(SECOND..=DAY) => registry.checks.keep,
            "Time a successful check stays valid before it is renewed in the background.";
        LIVE "checks.retry" = "20s", duration(SECOND..=DAY) => registry.checks.retry,
            "Time after a failed check before a registration triggers another one.";
        LIVE "checks.in_flight" = "256", number(AT_LEAST_1) => registry.checks.in_flight,
            "Maximum number of checks running at once.";
        LIVE "checks.waiting" = "10_000", number(4..=u64::MAX) => registry.checks.waiting,
            "Maximum number of queued checks: a quarter each for servers that were reachable before, that return, that are \
             new, and that were unreachable.";
        LIVE "checks.per_address" = "60", number(U32) => registry.checks.per_address,
            "Maximum number of checks per minute for one address: the sender of a registration can be forged.";
        LIVE "checks.per_network" = "600", number(U32) => registry.checks.per_network,
            "Maximum number of checks per minute for one network (IPv4 /24, IPv6 /56).";
        LIVE "checks.total" = "500", number(U32) => registry.checks.total,
            "Maximum number of checks per second in all.";

        LIVE "limits.exempt" = "127.0.0.0/8, ::1", networks() => limit_exempt,
            "Networks exempt from these limits.";
        LIVE "limits.whole_lists" = "[]", networks() => whole_lists,
            "Networks to which doors send whole lists over UDP. Others get at most three times the bytes of their request, \
             because its source can be forged.";
        LIVE "limits.reserved_percent" = "50", number(0..=90) => registry.limits.reserved_percent,
            "Percentage of the total reserved for known sources, so that a flood does not lock them out.";
        LIVE "limits.max_entries" = "65_536", number(8..=1 << 24) => registry.limits.max_entries,
            "Maximum number of tracked addresses, 56 bytes each.";
        LIVE "limits.host.packets" = "10/s burst 300", rate() => registry.limits.host.packets,
            "Datagrams per address.";
        LIVE "limits.host.bytes" = "40kB/s burst 1.2MB", byte_rate() => registry.limits.host.bytes,
            "Bytes per address.";
        LIVE "limits.net.packets" = "200/s burst 4000", rate() => registry.limits.net.packets,
            "Datagrams per network (IPv4 /24, IPv6 /56).";
        LIVE "limits.net.bytes" = "400kB/s burst 8MB", byte_rate() => registry.limits.net.bytes,
            "Bytes per network (IPv4 /24, IPv6 /56).";
        LIVE "limits.site.packets" = "400/s burst 8000", rate() => registry.limits.site.packets,
            "Datagrams per site (IPv6 /48).";
        LIVE "limits.site.bytes" = "800kB/s burst 16MB", byte_rate() => registry.limits.site.bytes,
            "Bytes per site (IPv6 /48).";
        LIVE "limits.total.packets" = "100_000/s burst 400_000", rate() => registry.limits.total.packets,
            "Datagrams from all sources together.";
        LIVE "limits.total.bytes" = "100MB/s burst 400MB", byte_rate() => registry.limits.total.bytes,
            "Bytes from all sources together.";

        START "history.enabled" = "true", switch() => history.enabled,
            "Whether a history of servers and lists is recorded, in the file history.db of the data directory.";
        START "history.minutes" = "2", number(1..=366) => history.retention.minutes,
            "Number of days for which one sample per minute is kept.";
        START "history.hours" = "40", number(1..=3_660) => history.retention.hours,
            "Number of days for which hourly summaries are kept.";
        START "history.days" = "730", number(1..=36_600) => history.retention.days,
            "Number of days for which daily summaries are kept, and servers that are no longer listed.";
        START "history.max_servers" = "20_000", number(1..=1_000_000) => history.max_servers,
            "Maximum number of servers with a history. If there are more, those that were listed for longer are kept.";
        START "history.max_size" = "4GiB", size(MIB..=TIB) => history.max_size,
            "Maximum size of the file in bytes. Data beyond it is not recorded.";

        START "export.directory" = "", path("a directory") => export.directory,
            "Directory in which signed copies of page and lists are written, for mirrors. If empty, none are written. It \
             should contain nothing else. A relative path starts at the directory of the configuration file.";
        START "export.interval" = "5s", duration(SECOND..=HOUR) => export.interval,
            "Minimum time between two copies. Copies of very long lists are written less often.";
        START "export.key_file" = "", path("a file") => export.key_file,
            "Key that signs the copies; it is created at first use. If empty: export.key in the data directory. All nodes of \
             a cluster should use the same.";
        LIVE "export.max_age" = "24h", duration(MINUTE..=YEAR) => export.max_age,
            "Time for which clients use a copy, unless their user sets another.";
        LIVE "export.hosts" = "[]", hosts() => export.hosts,
            "Names under which players know this lobby. A client that was asked for another lobby refuses the copy.";
        LIVE "export.page_url" = "", parsed("a URL such as \"https://lobby.example.org/\"") => export.page_url,
            "Address of the live page, to which the page of a copy links.";
        LIVE "export.mirrors" = "[]", mirrors() => export.mirrors,
            "Where the copies are published. The page of the lists shows players the command that reads them.";

        START "cluster.url" = "", store_url() => cluster.url,
            "Redis or Valkey 7 or later, through which several lobbies share one list. If empty, this lobby is alone. User \
             and password are not printed. With rediss the connection is encrypted.";
        START "cluster.name" = "rallypoint", cluster_name(false) => cluster.name,
            "Name of the cluster: clusters with different names can share a store.";
        START "cluster.node" = "", cluster_name(true) => cluster.node,
            "Name of this node, for example its region: players see it with the latencies of servers. If empty: the name of \
             the host.";
        START "cluster.secret" = "", cluster_secret() => cluster.secret,
            "Secret that all nodes of the cluster share. Prefer a file or an environment variable to this setting.";
        START "cluster.secret_file" = "", path("a file") => cluster.secret_file,
            "File that contains the cluster's secret. A relative path starts at the directory of the configuration file.";
        START "cluster.outage_limit" = "5m", duration(TEN_SECONDS..=DAY) => cluster.outage_limit,
            "Time that servers of other nodes stay listed while the store cannot be reached.";

        LIVE "log.level" = "info", choice(&LEVELS) => log.level,
            "Log level. Addresses are masked up to \"info\" and shown from \"debug\" on.";
        START "log.format" = "text", choice(&FORMATS) => log.format,
            "Format of the log: readable lines, or one JSON object per line.";

        LIVE "ban" = "[]", bans() => bans,
            "Banned addresses, networks and name patterns (* matches any text, ? one character).";
    }
}

/// Adds the addresses of the doors: each to the table that its setting names, or as a table of its own.
fn with_doors(mut settings: Vec<Setting>) -> Vec<Setting> {
    let mut next = "list.connections";
    for (door, sockets) in DOORS.into_iter().rev().filter_map(|door| Some((door, door.sockets.as_ref()?))) {
        let section = |path: &'static str| path.split('.').next();
        let own = settings.iter().position(|setting| section(setting.path) == section(sockets.setting));
        let at = own.or_else(|| settings.iter().position(|setting| setting.path == next)).unwrap_or(0);
        settings.insert(at, door_setting(door, sockets));
        next = sockets.setting;
    }
    settings
}

/// The addresses of a door.
fn door_setting(door: &'static Door, sockets: &'static DoorSockets) -> Setting {
    let kind = Arc::new(addresses(if *door == LOBBY { Empty::Refused } else { Empty::Off }));
    let shown = Arc::clone(&kind);
    Setting {
        path: sockets.setting,
        default: sockets.default,
        about: sockets.about,
        expects: kind.expects.clone(),
        reloads: false,
        set: Box::new(move |settings, value| kind.set(&mut settings.doors[door], value)),
        show: Box::new(move |settings| shown.show(&settings.doors[door])),
        differs: |old, new| old.doors != new.doors,
    }
}

/// The watched servers refer to lists by name, so they are parsed with `lists.names`: the keys of a file are read in
/// alphabetical order, and `lists` comes before `watch`.
fn watch() -> Setting {
    Setting {
        path: "watch",
        default: "[]",
        about: "Servers that cannot register: they are probed every 30 seconds and listed while they answer.",
        expects: watched_servers(BTreeMap::new()).expects,
        reloads: true,
        set: Box::new(|settings, value| watched_servers(settings.names.clone()).set(&mut settings.watch, value)),
        show: Box::new(|settings| watched_servers(settings.names.clone()).show(&settings.watch)),
        differs: |old, new| old.watch != new.watch,
    }
}

const AT_LEAST_1: RangeInclusive<u64> = 1..=u64::MAX;
const U32: RangeInclusive<u64> = 1..=u32::MAX as u64;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

const TENTH: Duration = Duration::from_millis(100);
const SECOND: Duration = Duration::from_secs(1);
const TEN_SECONDS: Duration = Duration::from_secs(10);
const MINUTE: Duration = Duration::from_secs(60);
const TEN_MINUTES: Duration = Duration::from_secs(600);
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);
const YEAR: Duration = Duration::from_secs(365 * 86_400);

const LEVELS: [(&str, Level); 5] = [
    ("error", Level::ERROR),
    ("warn", Level::WARN),
    ("info", Level::INFO),
    ("debug", Level::DEBUG),
    ("trace", Level::TRACE),
];

const FORMATS: [(&str, LogFormat); 2] = [("text", LogFormat::Text), ("json", LogFormat::Json)];

const OUTCOMES: [(&str, OutcomeAccess); 2] = [("own", OutcomeAccess::Own), ("any", OutcomeAccess::Any)];

fn addresses(empty: Empty) -> Kind<Vec<SocketAddr>> {
    let of = "addresses with ports such as [\"0.0.0.0:29944\", \"[::]:29944\"]";
    list(of, empty, read_socket, SocketAddr::to_string)
}

fn networks() -> Kind<Vec<IpNet>> {
    let of = "networks such as [\"203.0.113.0/24\", \"2001:db8::/32\"]";
    list(of, Empty::Off, read_network, show_network)
}

fn mappings() -> Kind<Vec<Mapping>> {
    let of = "pairs such as [\"192.168.1.0/24=203.0.113.5\", \"10.0.0.9:8190=203.0.113.5:9000\"]";
    list(of, Empty::Off, read_mapping, show_mapping)
}
