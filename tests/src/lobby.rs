//! A lobby: `rallypoint serve` with its folder, its ports and its log.

use crate::{
    client::{Listed, ask, request},
    game_server::{GameServer, send},
    has_ipv6,
    process::{Ended, Process},
    wait::eventually,
};
use rallypoint_wire::lobby::LobbyId;
use rustix::process::Signal;
use std::{
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
    sync::atomic::{AtomicU8, Ordering::Relaxed},
};
use tempfile::TempDir;

/// Where nobody but the markers of [`Lobby::settle`] are.
const MARKERS: LobbyId = LobbyId::from_bytes(*b"markers' own one");

/// The configuration file, in the lobby's folder.
const CONFIG: &str = "rallypoint.toml";

/// So many datagrams fit into the smallest receive buffer that a system may have.
const BURST: usize = 32;

/// A lobby that runs. It ends with this value, also if the test fails.
#[derive(Debug)]
pub struct Lobby {
    setup: Setup,
    home: TempDir,
    process: Process,
    lobby: Vec<SocketAddr>,
    legacy: Vec<SocketAddr>,
    http: Vec<SocketAddr>,
}

/// What a lobby is started with.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    settings: Vec<String>,
    has_config: bool,
    files: Vec<(String, String)>,
    variables: Vec<(String, String)>,
}

impl Setup {
    /// A setting by flag, such as `lobby.lease=2s`.
    #[must_use]
    pub fn set(mut self, setting: &str) -> Self {
        self.settings.push(setting.into());
        self
    }

    /// The configuration file. It can be changed later: [`Lobby::reload`].
    #[must_use]
    pub fn config(self, text: &str) -> Self {
        Self { has_config: true, ..self.file(CONFIG, text) }
    }

    /// Another file beside the configuration.
    #[must_use]
    pub fn file(mut self, name: &str, text: &str) -> Self {
        self.files.push((name.into(), text.into()));
        self
    }

    /// A variable of the environment.
    #[must_use]
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Starts it, and waits until it serves.
    ///
    /// # Panics
    /// If it does not.
    #[must_use]
    pub fn start(self) -> Lobby {
        let home = tempfile::tempdir().expect("a temporary folder");
        for (name, text) in &self.files {
            fs::write(home.path().join(name), text).expect("the file can be written");
        }
        let process = self.launch(&home);
        let mut lobby = Lobby { setup: self, home, process, lobby: Vec::new(), legacy: Vec::new(), http: Vec::new() };
        lobby.wait_until_serving();
        lobby
    }

    /// On loopback, at any port, in both families if there are two.
    fn launch(&self, home: &TempDir) -> Process {
        let mut args: Vec<String> = ["serve", "--data-dir", "data"].map(String::from).into();
        for ip in addresses() {
            let addr = SocketAddr::new(ip, 0).to_string();
            args.extend(["--lobby", &addr, "--legacy", &addr, "--http", &addr].map(String::from));
        }
        if self.has_config {
            args.extend(["--config".into(), CONFIG.into()]);
        }
        for setting in &self.settings {
            args.extend(["--set".into(), setting.clone()]);
        }
        let variables: Vec<_> = self.variables.iter().map(|(name, value)| (&**name, &**value)).collect();
        Process::start(home.path(), args, &variables)
    }
}

impl Lobby {
    /// A lobby without any settings.
    #[must_use]
    pub fn start() -> Self {
        Self::with(&[])
    }

    /// A lobby with some settings, such as `lobby.lease=2s`.
    #[must_use]
    pub fn with(settings: &[&str]) -> Self {
        settings.iter().fold(Self::setup(), |setup, setting| setup.set(setting)).start()
    }

    /// A lobby with more to it.
    #[must_use]
    pub fn setup() -> Setup {
        Setup::default()
    }

    /// Where it listens by IPv4, UDP and TCP.
    #[must_use]
    pub fn v4(&self) -> SocketAddr {
        of_family(&self.lobby, true)
    }

    /// Where it listens by IPv6, UDP and TCP.
    #[must_use]
    pub fn v6(&self) -> SocketAddr {
        of_family(&self.lobby, false)
    }

    /// Where its legacy lobby listens by IPv4, UDP and TCP.
    #[must_use]
    pub fn legacy(&self) -> SocketAddr {
        of_family(&self.legacy, true)
    }

    /// Where its web server listens by IPv4.
    #[must_use]
    pub fn http(&self) -> SocketAddr {
        of_family(&self.http, true)
    }

    /// Where its legacy lobby listens by IPv6, UDP and TCP.
    #[must_use]
    pub fn legacy_v6(&self) -> SocketAddr {
        of_family(&self.legacy, false)
    }

    /// A file in the folder where it keeps what outlives it.
    #[must_use]
    pub fn data(&self, file: &str) -> PathBuf {
        self.home.path().join("data").join(file)
    }

    /// What it has logged so far.
    #[must_use]
    pub fn log(&self) -> String {
        self.process.err()
    }

    /// The program itself.
    #[must_use]
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Waits until it has logged this.
    #[track_caller]
    pub fn until_logged(&self, text: &str) {
        eventually(&format!("the log has {text:?}"), || self.log().contains(text));
    }

    /// Sends any datagram from any address of this machine.
    pub fn send(&self, from: impl Into<IpAddr>, datagram: &[u8]) {
        let from = from.into();
        send(from, of_family(&self.lobby, from.is_ipv4()), datagram);
    }

    /// A server registers.
    pub fn register(&self, server: &GameServer) {
        self.send(server.source(), &server.registration());
    }

    /// Servers register, not faster than the lobby can take it.
    pub fn register_all(&self, servers: &[GameServer]) {
        for some in servers.chunks(BURST) {
            some.iter().for_each(|server| self.register(server));
            self.settle();
        }
    }

    /// A server goes.
    pub fn unregister(&self, server: &GameServer) {
        self.send(server.source(), &server.unregistration());
    }

    /// Waits until everything that was sent before by IPv4 has been dealt with and shows in the lists. A datagram follows the
    /// others into the socket, and what it does is shown together with what they did.
    pub fn settle(&self) {
        static NEXT: AtomicU8 = AtomicU8::new(0);
        let number = NEXT.fetch_add(1, Relaxed);
        // In a network of its own each time, so that no budget is in its way.
        let from = Ipv4Addr::new(127, 255, number, 1).to_string();
        let name = format!("marker {number}");
        let marker = GameServer::named(&name).from(&from).of_lobby(MARKERS);
        eventually("the lobby has dealt with everything", || {
            self.register(&marker);
            self.servers_of(MARKERS).iter().any(|server| server.name == name)
        });
        self.unregister(&marker);
    }

    /// The reply of the list service, byte for byte.
    #[must_use]
    pub fn list(&self) -> Vec<u8> {
        ask(self.v4(), &request(LobbyId::GANG_GARRISON_2))
    }

    /// The servers of Gang Garrison 2.
    #[must_use]
    pub fn servers(&self) -> Vec<Listed> {
        Listed::all(&self.list())
    }

    /// The servers of a lobby.
    #[must_use]
    pub fn servers_of(&self, lobby: LobbyId) -> Vec<Listed> {
        Listed::all(&ask(self.v4(), &request(lobby)))
    }

    /// Their names, sorted.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.servers().into_iter().map(|server| server.name).collect()
    }

    /// The server of this name.
    #[must_use]
    pub fn server(&self, name: &str) -> Option<Listed> {
        self.servers().into_iter().find(|server| server.name == name)
    }

    /// Waits until the list has these names and no others.
    #[track_caller]
    pub fn until_listed(&self, names: &[&str]) {
        eventually(&format!("the list is {names:?}"), || self.names() == names);
    }

    /// Changes a file beside the configuration, which nobody reads until a reload or a restart.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn write_file(&self, name: &str, text: &str) {
        fs::write(self.home.path().join(name), text).expect("the file can be written");
    }

    /// Changes the configuration itself, which nobody reads until a restart.
    pub fn write_config(&self, text: &str) {
        assert!(self.setup.has_config, "it was started without a configuration file");
        self.write_file(CONFIG, text);
    }

    /// Changes the configuration file and has it read again (SIGHUP).
    ///
    /// # Panics
    /// If the program does not say that it did, or that it could not.
    #[track_caller]
    pub fn reload(&self, config: &str) {
        let times = |text: &str| self.log().matches(text).count();
        let answers = || times("the configuration was read again") + times("the configuration stays as it was");
        let before = answers();
        self.write_config(config);
        self.process.signal(Signal::HUP);
        eventually("the configuration was read again, or was refused", || answers() > before);
    }

    /// Tells it to stop (SIGTERM), and waits for that.
    pub fn stop(&mut self) -> Ended {
        self.process.signal(Signal::TERM);
        self.process.wait()
    }

    /// Ends it without a word (SIGKILL).
    pub fn kill(&mut self) -> Ended {
        self.process.signal(Signal::KILL);
        self.process.wait()
    }

    /// Starts it again with the same settings and data, at other ports.
    pub fn start_again(&mut self) {
        assert!(self.process.has_ended(), "it runs");
        self.process = self.setup.launch(&self.home);
        self.wait_until_serving();
    }

    fn wait_until_serving(&mut self) {
        let count = addresses().count();
        let listening = |process: &Process, name: &str| -> Vec<SocketAddr> {
            let out = process.out();
            let addrs = out.lines().filter_map(|line| line.strip_prefix(name));
            addrs.map(|addr| addr.parse().expect("an address")).collect()
        };
        eventually("the lobby says where it listens", || {
            assert!(!self.process.has_ended(), "the lobby did not start");
            self.lobby = listening(&self.process, "lobby udp+tcp ");
            self.legacy = listening(&self.process, "legacy udp+tcp ");
            self.http = listening(&self.process, "http tcp ");
            [&self.lobby, &self.legacy, &self.http].iter().all(|addrs| addrs.len() == count)
        });
    }
}

fn addresses() -> impl Iterator<Item = IpAddr> {
    [IpAddr::from(Ipv4Addr::LOCALHOST)].into_iter().chain(has_ipv6().then_some(Ipv6Addr::LOCALHOST.into()))
}

fn of_family(addrs: &[SocketAddr], is_ipv4: bool) -> SocketAddr {
    *addrs.iter().find(|addr| addr.is_ipv4() == is_ipv4).expect("an address of that family")
}
