//! A lobby: `rallypoint serve` with its directory, its ports and its log.

use crate::{
    client::{ParsedServer, list, list_request, send_request},
    command::rallypoint,
    game_server::{GameServer, send},
    process::Process,
    signal::Signal,
    skip::has_ipv6,
    wait::{eventually, wait_for},
};
use rallypoint_wire::lobby::{ListId, Occupancy};
use std::{
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::atomic::{AtomicU8, Ordering::Relaxed},
};
use tempfile::TempDir;

/// Lobby that only the markers of [`Lobby::settle`] register in.
const MARKERS: ListId = ListId::from_bytes(*b"markers' own one");

/// Name of the configuration file in the lobby's directory.
const CONFIG: &str = "rallypoint.toml";

/// The secret of the clusters of [`LobbyBuilder::node`].
pub const CLUSTER_SECRET: &str = "the secret of the tests' cluster";

/// Number of datagrams that fit into the smallest receive buffer of any supported system.
const BURST: usize = 32;

/// The prefixes that the program prints before each address of its lobby, its legacy lobby and its web server.
const LOBBY_ADDR: &str = "lobby udp+tcp ";
const LEGACY_ADDR: &str = "legacy udp+tcp ";
const HTTP_ADDR: &str = "http tcp ";

/// A running lobby. It is killed when this value is dropped, also if the test fails.
#[derive(Debug)]
pub struct Lobby {
    process: Process,
    /// The settings to start it again; only if [`LobbyBuilder::start`] started it.
    installation: Option<Installation>,
}

/// A lobby with a directory of its own.
#[derive(Debug)]
struct Installation {
    builder: LobbyBuilder,
    home: TempDir,
}

/// Settings and files that a lobby is started with.
#[derive(Clone, Debug, Default)]
pub struct LobbyBuilder {
    settings: Vec<String>,
    has_config: bool,
    files: Vec<(String, String)>,
    variables: Vec<(String, String)>,
}

impl LobbyBuilder {
    /// Adds a setting by flag, such as `lobby.lease=2s`.
    #[must_use]
    pub fn set(mut self, setting: &str) -> Self {
        self.settings.push(setting.into());
        self
    }

    /// Adds a configuration file, which [`Lobby::reload`] can replace.
    #[must_use]
    pub fn config(self, text: &str) -> Self {
        Self { has_config: true, ..self.file(CONFIG, text) }
    }

    /// Adds a file beside the configuration file.
    #[must_use]
    pub fn file(mut self, name: &str, text: &str) -> Self {
        self.files.push((name.into(), text.into()));
        self
    }

    /// Adds an environment variable.
    #[must_use]
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Makes it a node of the cluster with this store, with the secret [`CLUSTER_SECRET`].
    #[must_use]
    pub fn node(self, store: &str, name: &str) -> Self {
        self.variable("RALLYPOINT_CLUSTER_SECRET", CLUSTER_SECRET)
            .variable("RALLYPOINT_CLUSTER_URL", store)
            .set(&format!("cluster.node={name}"))
    }

    /// Starts the lobby on free loopback ports of all address families, and waits until it serves.
    ///
    /// # Panics
    /// If it does not.
    #[must_use]
    pub fn start(self) -> Lobby {
        let home = tempfile::tempdir().expect("a temporary directory");
        for (name, text) in &self.files {
            fs::write(home.path().join(name), text).expect("a writable file");
        }
        let process = self.spawn(&home);
        Lobby { process, installation: Some(Installation { builder: self, home }) }
    }

    fn spawn(&self, home: &TempDir) -> Process {
        let mut command = rallypoint(home.path());
        command.args(["serve", "--data-dir", "data"]);
        for ip in loopback_ips() {
            let addr = SocketAddr::new(ip, 0).to_string();
            command.args(["--lobby", &addr, "--legacy", &addr, "--http", &addr]);
        }
        if self.has_config {
            command.args(["--config", CONFIG]);
        }
        for setting in &self.settings {
            command.args(["--set", setting]);
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        let process = Process::spawn(&mut command);
        let families = loopback_ips().count();
        for name in [LOBBY_ADDR, LEGACY_ADDR, HTTP_ADDR] {
            wait_for_addrs(&process, name, families);
        }
        process
    }
}

impl Lobby {
    /// Starts a lobby with the default settings.
    #[must_use]
    pub fn start() -> Self {
        Self::with(&[])
    }

    /// Starts a lobby with some settings, such as `lobby.lease=2s`.
    #[must_use]
    pub fn with(settings: &[&str]) -> Self {
        settings.iter().fold(Self::builder(), |builder, setting| builder.set(setting)).start()
    }

    /// Returns a builder for a lobby with files or environment variables.
    #[must_use]
    pub fn builder() -> LobbyBuilder {
        LobbyBuilder::default()
    }

    /// Starts a lobby whose home directory is `home`, on free loopback ports of all address families. There is no legacy
    /// lobby, and no web server unless `args` has `--http`.
    #[must_use]
    pub fn start_in(home: &Path, args: &[&str]) -> Self {
        let mut command = rallypoint(home);
        command.args(["serve", "--legacy", "off"]);
        for ip in loopback_ips() {
            command.args(["--lobby", &SocketAddr::new(ip, 0).to_string()]);
        }
        if !args.contains(&"--http") {
            command.args(["--http", "off"]);
        }
        Self::spawn(command.args(args), loopback_ips().count())
    }

    /// Runs a command that starts a lobby, and waits until the lobby has printed `listeners` addresses.
    #[must_use]
    pub fn spawn(command: &mut Command, listeners: usize) -> Self {
        let process = Process::spawn(command);
        wait_for_addrs(&process, LOBBY_ADDR, listeners);
        Self { process, installation: None }
    }

    /// All addresses of the lobby, UDP and TCP.
    #[must_use]
    pub fn addrs(&self) -> Vec<SocketAddr> {
        wait_for_addrs(&self.process, LOBBY_ADDR, 1)
    }

    /// IPv4 address of the lobby, UDP and TCP.
    #[must_use]
    pub fn v4(&self) -> SocketAddr {
        self.addr(LOBBY_ADDR, true)
    }

    /// IPv6 address of the lobby, UDP and TCP.
    #[must_use]
    pub fn v6(&self) -> SocketAddr {
        self.addr(LOBBY_ADDR, false)
    }

    /// IPv4 address of the legacy lobby, UDP and TCP.
    #[must_use]
    pub fn legacy(&self) -> SocketAddr {
        self.addr(LEGACY_ADDR, true)
    }

    /// IPv6 address of the legacy lobby, UDP and TCP.
    #[must_use]
    pub fn legacy_v6(&self) -> SocketAddr {
        self.addr(LEGACY_ADDR, false)
    }

    /// IPv4 address of a door that uses UDP only.
    #[must_use]
    pub fn door(&self, name: &str) -> SocketAddr {
        self.addr(&format!("{name} udp "), true)
    }

    /// IPv4 address of the web server.
    #[must_use]
    pub fn http(&self) -> SocketAddr {
        self.addr(HTTP_ADDR, true)
    }

    /// URL of the web server.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.http())
    }

    /// Path of a file in the data directory.
    #[must_use]
    pub fn data(&self, file: &str) -> PathBuf {
        self.home().join("data").join(file)
    }

    /// The log so far.
    #[must_use]
    pub fn log(&self) -> String {
        self.process.stderr()
    }

    /// The running program.
    #[must_use]
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Waits until the log contains `text`, anywhere.
    #[track_caller]
    pub fn wait_until_logged(&self, text: &str) {
        eventually(&format!("the log contains {text:?}"), || self.log().contains(text));
    }

    /// Sends a datagram from any address of this machine.
    pub fn send(&self, from: impl Into<IpAddr>, datagram: &[u8]) {
        let from = from.into();
        send(from, self.addr(LOBBY_ADDR, from.is_ipv4()), datagram);
    }

    /// Registers a server.
    pub fn register(&self, server: &GameServer) {
        self.send(server.source(), &server.registration());
    }

    /// Registers an empty UDP server of Gang Garrison 2 at a port of 127.0.0.1. Its ID depends on the port only, so that a
    /// second call is a refresh.
    pub fn register_port(&self, name: &str, port: u16) {
        let id = u128::from(port).to_be_bytes();
        self.register(&GameServer::named(name).port(port).with_id(id).occupancy(Occupancy::default()));
    }

    /// Registers servers, not faster than the lobby receives them.
    pub fn register_all(&self, servers: &[GameServer]) {
        for burst in servers.chunks(BURST) {
            burst.iter().for_each(|server| self.register(server));
            self.settle();
        }
    }

    /// Unregisters a server.
    pub fn unregister(&self, server: &GameServer) {
        self.send(server.source(), &server.unregistration());
    }

    /// Waits until everything that was sent over IPv4 before has been processed and is visible in the lists. A marker
    /// follows the other datagrams into the same socket, so once it is listed, their effect is visible too.
    pub fn settle(&self) {
        static NEXT: AtomicU8 = AtomicU8::new(0);
        let number = NEXT.fetch_add(1, Relaxed);
        // A new network each time, so that no rate limit delays the marker.
        let from = Ipv4Addr::new(127, 255, number, 1).to_string();
        let name = format!("marker {number}");
        let marker = GameServer::named(&name).from_ip(&from).in_lobby(MARKERS);
        eventually("the lobby has processed everything", || {
            self.register(&marker);
            self.servers_in(MARKERS).iter().any(|server| server.name == name)
        });
        self.unregister(&marker);
    }

    /// The reply of the list service for Gang Garrison 2, byte for byte.
    #[must_use]
    pub fn list_reply(&self) -> Vec<u8> {
        send_request(self.v4(), &list_request(ListId::GANG_GARRISON_2))
    }

    /// The listed servers of Gang Garrison 2, sorted by name.
    #[must_use]
    pub fn servers(&self) -> Vec<ParsedServer> {
        self.servers_in(ListId::GANG_GARRISON_2)
    }

    /// The listed servers of a lobby, sorted by name.
    #[must_use]
    pub fn servers_in(&self, lobby: ListId) -> Vec<ParsedServer> {
        list(self.v4(), lobby)
    }

    /// The names of the listed servers of Gang Garrison 2, sorted.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.servers().into_iter().map(|server| server.name).collect()
    }

    /// The listed server of Gang Garrison 2 with this name.
    #[must_use]
    pub fn server(&self, name: &str) -> Option<ParsedServer> {
        self.servers().into_iter().find(|server| server.name == name)
    }

    /// Waits until the list has exactly these names.
    #[track_caller]
    pub fn wait_until_listed(&self, names: &[&str]) {
        eventually(&format!("the list is {names:?}"), || self.names() == names);
    }

    /// Waits until the list of Gang Garrison 2 satisfies a condition, and returns it.
    #[track_caller]
    pub fn wait_for_list(&self, what: &str, condition: impl Fn(&[ParsedServer]) -> bool) -> Vec<ParsedServer> {
        wait_for(what, || Some(self.servers()).filter(|servers| condition(servers)))
    }

    /// Replaces a file beside the configuration file. The lobby reads it at the next reload or restart.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn write_file(&self, name: &str, text: &str) {
        fs::write(self.home().join(name), text).expect("a writable file");
    }

    /// Replaces the configuration file. The lobby reads it at the next reload or restart.
    ///
    /// # Panics
    /// If the lobby was started without one.
    pub fn write_config(&self, text: &str) {
        assert!(self.installation().builder.has_config, "the lobby was started without a configuration file");
        self.write_file(CONFIG, text);
    }

    /// Replaces the configuration file and has it read again (SIGHUP).
    ///
    /// # Panics
    /// If the program does not log that it accepted or refused the file.
    #[track_caller]
    pub fn reload(&self, config: &str) {
        let count = |text: &str| self.log().matches(text).count();
        let answers = || count("configuration reloaded") + count("the configuration was not reloaded");
        let before = answers();
        self.write_config(config);
        self.process.signal(Signal::HUP);
        eventually("the configuration was accepted or refused", || answers() > before);
    }

    /// Stops it (SIGTERM), and waits for its end.
    pub fn stop(&self) -> Output {
        self.process.signal(Signal::TERM);
        self.process.wait()
    }

    /// Kills it (SIGKILL), and waits for its end.
    pub fn kill(&self) -> Output {
        self.process.signal(Signal::KILL);
        self.process.wait()
    }

    /// Starts it again with the same settings and data, on other ports.
    ///
    /// # Panics
    /// If it still runs, or has no directory of its own.
    pub fn restart(&mut self) {
        assert!(self.process.has_exited(), "the lobby still runs");
        let Installation { builder, home } = self.installation();
        self.process = builder.spawn(home);
    }

    fn home(&self) -> &Path {
        self.installation().home.path()
    }

    fn installation(&self) -> &Installation {
        self.installation.as_ref().expect("a lobby with a directory of its own")
    }

    #[track_caller]
    fn addr(&self, name: &str, is_ipv4: bool) -> SocketAddr {
        let addr = || addrs(&self.process, name).into_iter().find(|addr| addr.is_ipv4() == is_ipv4);
        wait_for(&format!("an address after {name:?}"), addr)
    }
}

fn loopback_ips() -> impl Iterator<Item = IpAddr> {
    [IpAddr::from(Ipv4Addr::LOCALHOST)].into_iter().chain(has_ipv6().then_some(Ipv6Addr::LOCALHOST.into()))
}

/// The addresses that the program has printed so far after `name`.
fn addrs(process: &Process, name: &str) -> Vec<SocketAddr> {
    let stdout = process.stdout();
    // The last line may be incomplete.
    let lines = stdout.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    lines.filter_map(|line| line.strip_prefix(name)).map(|addr| addr.parse().expect("an address")).collect()
}

#[track_caller]
fn wait_for_addrs(process: &Process, name: &str, count: usize) -> Vec<SocketAddr> {
    wait_for(&format!("{count} addresses after {name:?}"), || {
        let has_exited = process.has_exited();
        let addrs = addrs(process, name);
        assert!(addrs.len() >= count || !has_exited, "the lobby did not start");
        (addrs.len() >= count).then_some(addrs)
    })
}
