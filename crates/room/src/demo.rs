//! The world of `rallypoint demo`: a lobby with its page, pretend servers and a chat room.

mod catalogue;
mod directory;
mod past;
mod world;

use crate::server::{Console, RoomConfig, RoomServer, RoomStartError};
use catalogue::{HOSTILE_SERVERS, Profile, Reply, SERVERS};
use directory::DemoDirectory;
use rallypoint_history::{History, HistoryOptions, Observation};
use rallypoint_lobby::{DoorAddrs, LobbyOptions, LobbyService, LobbyStartError, ProbePool};
use rallypoint_lobby_proto::doors::LOBBY;
use rallypoint_query::list_names;
use rallypoint_query_proto::{Protocol, Responder, ResponderConfig};
use rallypoint_session::{DriverPanicked, generate_static_key};
use rallypoint_udp::{BindError, EntropyError, EventLoop, EventLoopThread, UdpSocket, entropy};
use rallypoint_web::{ListNames, WebOptions, WebService, WebSources, WebStartError};
use rallypoint_wire::lobby::{ListId, Occupancy, Registration, ServerId, TableBuf, Transport, Unregister};
use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    num::NonZeroU16,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use thiserror::Error;
use tokio::{net::TcpListener, time::interval};
use world::{Change, PretendServer};

/// Interval of registrations without a change, in seconds.
const REFRESH: u64 = 30;

/// Number of seconds after which a server whose replies end gives none.
const REPLY_END: u64 = 20;

/// Maximum number of servers, each with a port of its own.
pub const MAX_CROWD: u16 = 50_000;
const CROWD_PORT: u16 = 15_000;

/// Number of servers with a made-up past.
const SERVERS_WITH_A_PAST: usize = 100;

/// Size of the receive buffer of a pretend server in bytes.
const RECEIVE_BUFFER: usize = 1 << 16;

/// Settings of a demo.
#[derive(Clone, Debug, Default)]
pub struct DemoConfig {
    /// Address of the page; otherwise its usual port of 127.0.0.1, or a free one.
    pub http: Option<SocketAddr>,
    /// Adds servers with names and texts that try to break out of their place, and with answers that do not agree.
    pub hostile: bool,
    /// Adds servers that only register, until there is this number of them; at most [`MAX_CROWD`].
    pub servers: u16,
}

/// Why a demo cannot be started.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DemoStartError {
    /// There is no place for its files.
    #[error("cannot create a temporary directory (in the directory that TMPDIR names): {0}")]
    Directory(io::Error),
    /// The lobby cannot be started.
    #[error(transparent)]
    Lobby(#[from] LobbyStartError),
    /// The page cannot be served at this address.
    #[error(transparent)]
    Web(#[from] WebStartError),
    /// The chat room cannot be opened.
    #[error(transparent)]
    Room(#[from] RoomStartError),
    /// A socket cannot be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// A thread, the history, or the TCP port of a server cannot be created.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The system gives no random bytes.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
}

/// A running demo.
pub struct Demo {
    lobby: LobbyService,
    web: WebService,
    room: RoomServer,
    history: Arc<History>,
    servers: Vec<RunningServer>,
    socket: UdpSocket,
    lobby_addr: SocketAddr,
    /// Removed last.
    directory: DemoDirectory,
}

/// A pretend server and its port.
struct RunningServer {
    server: PretendServer,
    id: ServerId,
    port: NonZeroU16,
    /// The socket for queries, if the game has a protocol for them.
    query_socket: Option<(Protocol, Arc<UdpSocket>)>,
    /// Answers queries, unless the server restarts.
    responder: Option<EventLoopThread<Responder>>,
}

impl Demo {
    /// The name of the chat room.
    pub const ROOM_NAME: &str = "Demo room: say hello";

    /// Starts everything.
    ///
    /// # Errors
    /// If a socket, a thread or a file cannot be created.
    pub async fn start(config: &DemoConfig) -> Result<Self, DemoStartError> {
        let directory = DemoDirectory::create().map_err(DemoStartError::Directory)?;
        let history = Arc::new(History::start(HistoryOptions::new(directory.path().join("history.db")))?);
        let lobby = start_lobby(config)?;
        let web = start_web(config, &lobby, &history)?;
        let lobby_addr = lobby.local_addrs()[&LOBBY][0];
        let room = start_room(lobby_addr).await?;
        let socket = UdpSocket::bind(any_port(), RECEIVE_BUFFER)?;
        let mut servers = Vec::new();
        let hostile = HOSTILE_SERVERS.iter().filter(|_| config.hostile);
        for (number, profile) in SERVERS.iter().chain(hostile).enumerate() {
            servers.push(RunningServer::start(*profile, number).await?);
        }
        for number in servers.len() as u16..config.servers {
            let (profile, port) = (catalogue::crowd_profile(number), CROWD_PORT + number);
            let mut server = RunningServer::start_unanswering(profile, number.into(), port)?;
            server.server.name += &format!(" #{number}");
            servers.push(server);
        }
        let demo = Self { lobby, web, room, history, servers, socket, lobby_addr, directory };
        demo.servers.iter().for_each(|server| demo.register(server));
        Ok(demo)
    }

    /// The address of the page.
    pub fn web_addr(&self) -> SocketAddr {
        self.web.local_addrs()[0]
    }

    /// The address of the lobby.
    pub fn lobby_addr(&self) -> SocketAddr {
        self.lobby_addr
    }

    /// The chat room.
    pub fn room(&self) -> &RoomServer {
        &self.room
    }

    /// Number of pretend servers.
    pub fn servers(&self) -> usize {
        self.servers.len()
    }

    /// The port of a server that answers in the session protocol.
    pub fn session_port(&self) -> u16 {
        let is_session = |server: &&RunningServer| server.server.profile.game.protocol == Some(Protocol::Session);
        self.servers.iter().find(is_session).map_or(0, |server| server.port.get())
    }

    /// Runs until the console of the chat room is closed with `/quit`.
    ///
    /// # Errors
    /// If the task of the room's session server has panicked.
    pub async fn run(&mut self, console: &mut impl Console) -> Result<(), DriverPanicked> {
        let mut seconds = interval(Duration::from_secs(1));
        let mut second = 0;
        let Self { lobby, history, servers, socket, lobby_addr, room, .. } = self;
        let world = async {
            loop {
                seconds.tick().await;
                second += 1;
                for server in servers.iter_mut() {
                    server.step(second, socket, *lobby_addr);
                }
            }
        };
        tokio::select! {
            () = world => Ok(()),
            () = record(lobby, history) => Ok(()),
            result = room.run(console) => result,
        }
    }

    fn register(&self, server: &RunningServer) {
        server.send(&self.socket, self.lobby_addr, &server.registration());
    }

    /// Ends everything and removes its files.
    pub async fn stop(self) {
        self.room.stop().await;
        self.web.shutdown().await;
        self.lobby.shutdown().await;
        drop(self.servers);
        let _ = tokio::task::spawn_blocking(move || drop(self.history)).await;
        drop(self.directory);
    }
}

impl RunningServer {
    async fn start(profile: Profile, number: usize) -> Result<Self, DemoStartError> {
        if profile.game.transport == Transport::Tcp {
            return Self::start_unanswering(profile, number, open_tcp_port().await?);
        }
        let socket = Arc::new(UdpSocket::bind(any_port(), RECEIVE_BUFFER)?);
        let mut server = Self::start_unanswering(profile, number, socket.local_addr().port())?;
        server.query_socket = profile.game.protocol.map(|protocol| (protocol, socket));
        server.answer_queries()?;
        Ok(server)
    }

    fn start_unanswering(profile: Profile, number: usize, port: u16) -> Result<Self, DemoStartError> {
        let server = PretendServer::new(profile, number, entropy::u64()?);
        let port = NonZeroU16::new(port).ok_or_else(|| io::Error::other("the system chose port 0"))?;
        let id = ServerId::from_bytes(entropy::bytes()?);
        Ok(Self { server, id, port, query_socket: None, responder: None })
    }

    /// Answers queries from now on, if the game has a protocol for them.
    fn answer_queries(&mut self) -> Result<(), DemoStartError> {
        if let Some((protocol, socket)) = &self.query_socket {
            self.responder = Some(respond(*protocol, Arc::clone(socket), &self.server)?);
        }
        Ok(())
    }

    fn step(&mut self, second: u64, socket: &UdpSocket, lobby: SocketAddr) {
        if self.server.profile.reply == Reply::Ends && second > REPLY_END {
            self.query_socket = None;
            self.responder = None;
        }
        let is_due = (second + u64::from(self.port.get())).is_multiple_of(REFRESH) && self.server.is_running();
        match self.server.step() {
            Change::Updated => {
                self.send(socket, lobby, &self.registration());
                match &self.responder {
                    Some(responder) => {
                        let info = self.server.info();
                        responder.handle().run(move |responder, _| responder.set_info(&info));
                    }
                    // If it fails, the server registers without answering.
                    None => drop(self.answer_queries()),
                }
            }
            Change::Stopped => {
                self.responder = None;
                let mut datagram = Vec::new();
                Unregister { server_id: self.id }.emit(&mut datagram);
                self.send(socket, lobby, &datagram);
            }
            Change::None if is_due => self.send(socket, lobby, &self.registration()),
            Change::None => {}
        }
    }

    fn registration(&self) -> Vec<u8> {
        let Profile { game, slots, password, keys, .. } = self.server.profile;
        let x_query = game.protocol.map_or("", Protocol::as_str);
        let usual = [
            ("name", &*self.server.name),
            ("game", game.name),
            ("game_short", game.short),
            ("game_ver", game.version),
            ("map", self.server.map()),
            ("x-query", x_query),
        ];
        let mut table = TableBuf::new();
        // A name is required, also an empty one.
        let is_given = |(key, value): &(&str, &str)| *key == "name" || !value.is_empty();
        let keys = usual.into_iter().filter(is_given).chain(keys.iter().copied());
        for (key, value) in keys {
            // Every text of the catalogue fits.
            let _ = table.push(key.as_bytes(), value.as_bytes());
        }
        let players = self.server.players.len() as u16;
        let occupancy = Occupancy { slots, players, bots: self.server.bots(), password };
        let mut datagram = Vec::new();
        if let Ok(registration) =
            Registration::new(self.id, list_id(game.list), game.transport, self.port, occupancy, table.as_table())
        {
            registration.emit(&mut datagram);
        }
        datagram
    }

    fn send(&self, socket: &UdpSocket, lobby: SocketAddr, datagram: &[u8]) {
        // A datagram that is lost is sent again with the next refresh.
        let _ = socket.send_to(datagram, lobby);
    }
}

/// Starts a lobby at its usual port, or at a free one if that is taken.
fn start_lobby(config: &DemoConfig) -> Result<LobbyService, DemoStartError> {
    let mut registry = LobbyOptions::default().registry;
    registry.caps.per_address = registry.caps.per_address.max(2 * usize::from(config.servers)).max(64);
    let start = |port| {
        let options = LobbyOptions {
            registry: registry.clone(),
            doors: DoorAddrs::lobby(vec![(Ipv4Addr::LOCALHOST, port).into()]),
            probe_sockets: ProbePool::MAX_SOCKETS,
            ..LobbyOptions::default()
        };
        LobbyService::start(options, &tokio::runtime::Handle::current())
    };
    match start(rallypoint_wire::lobby::PORT) {
        Err(LobbyStartError::Bind { error: BindError::InUse { .. }, .. }) => start(0),
        result => result,
    }
    .map_err(Into::into)
}

/// Starts the web server at the given address; otherwise at its usual port, or at a free one if that is taken.
fn start_web(config: &DemoConfig, lobby: &LobbyService, history: &History) -> Result<WebService, DemoStartError> {
    let start = |addr| {
        let mut options = WebOptions { listen: vec![addr], ..WebOptions::default() };
        let lists = SERVERS.iter().map(|profile| (list_id(profile.game.list), format!("{} (demo)", profile.game.name)));
        let known = list_names::known().map(|lobby| (lobby.id, lobby.name.to_owned()));
        options.settings.names = ListNames(known.chain(lists).collect());
        "Rallypoint demo".clone_into(&mut options.settings.site.title);
        "A demo: all servers, players and their history are made up.".clone_into(&mut options.settings.site.welcome);
        let sources = WebSources { history: Some(history.reader()), ..WebSources::new(lobby.clone()) };
        WebService::start(options, sources)
    };
    match config.http {
        Some(addr) => start(addr),
        None => {
            let usual = WebOptions::default().listen.first().map_or(0, SocketAddr::port);
            start((Ipv4Addr::LOCALHOST, usual).into()).or_else(|_| start(any_port()))
        }
    }
    .map_err(Into::into)
}

/// Starts the chat room at its usual port, or at a free one if that is taken.
async fn start_room(lobby: SocketAddr) -> Result<RoomServer, DemoStartError> {
    let key = generate_static_key()?;
    let config = |listen| RoomConfig {
        name: Demo::ROOM_NAME.to_owned(),
        key: key.clone(),
        listen: vec![listen],
        max_players: 64,
        max_per_address: 8,
        teams: vec!["red".into(), "blue".into()],
        welcome: None,
        lobbies: lobby.to_string().parse().into_iter().collect(),
        list_id: list_id(list_names::ROOMS),
        encrypted_only: false,
        metrics: None,
    };
    let usual = (Ipv4Addr::LOCALHOST, Protocol::Session.default_port()).into();
    match RoomServer::start(config(usual)).await {
        Ok(room) => Ok(room),
        Err(_) => Ok(RoomServer::start(config(any_port())).await?),
    }
}

/// Answers queries on behalf of a server.
fn respond(
    protocol: Protocol,
    socket: Arc<UdpSocket>,
    server: &PretendServer,
) -> Result<EventLoopThread<Responder>, DemoStartError> {
    let config = ResponderConfig { protocols: vec![protocol], ..ResponderConfig::default() };
    let seed = entropy::u128()?;
    let responder = Responder::new(config, seed, &server.info()).map_err(io::Error::other)?;
    EventLoop::new(vec![socket]).and_then(|event_loop| event_loop.spawn("respond", responder, drop)).map_err(Into::into)
}

/// Opens a TCP port that accepts connections, as a lobby expects of a TCP server.
async fn open_tcp_port() -> Result<u16, DemoStartError> {
    let listener = TcpListener::bind(any_port()).await?;
    let port = listener.local_addr()?.port();
    tokio::spawn(async move { while listener.accept().await.is_ok() {} });
    Ok(port)
}

/// Records the made-up week as soon as the servers are listed, and from then on what happens.
async fn record(lobby: &LobbyService, history: &Arc<History>) {
    let listed = || lobby.servers().snapshot().records().count();
    let mut before = 0;
    // Until the number no longer grows: servers that do not answer are not listed at once, and one that restarts may be missing.
    for _ in 0..20 {
        if listed() >= SERVERS.len() && listed() <= before {
            break;
        }
        before = listed();
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let servers: Vec<_> = lobby.servers().snapshot().records().take(SERVERS_WITH_A_PAST).cloned().collect();
    let past = history.clone();
    let _ = tokio::task::spawn_blocking(move || past::record_week(&past, &servers, seconds_since_1970())).await;
    let mut minutes = interval(Duration::from_secs(60));
    loop {
        minutes.tick().await;
        history.record(Observation {
            time: seconds_since_1970(),
            servers: lobby.lists().snapshot(),
            changes: Vec::new(),
        });
    }
}

fn seconds_since_1970() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64)
}

fn any_port() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

/// A list by its name or UUID. The catalogue has valid UUIDs only, which a test checks.
fn list_id(uuid: &str) -> ListId {
    list_names::find(uuid).unwrap_or_else(|_| ListId::from_bytes([0; 16]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_of_the_catalogue_is_a_uuid() {
        assert!(SERVERS.iter().chain(HOSTILE_SERVERS).all(|profile| profile.game.list.parse::<ListId>().is_ok()));
    }
}
