//! `rallypoint demo`: a lobby with pretend servers, for a first look.

mod catalogue;
mod directory;
mod past;
mod world;

use crate::{
    error::CommandError,
    host::{self, RoomServer},
    listen_addr::listen_addr,
    local_lobby::DEFAULT_HTTP_PORT,
    signals::Signals,
    stdio::{print_stderr, print_stdout},
};
use catalogue::{HOSTILE_SERVERS, Profile, Reply, SERVERS};
use directory::DemoDirectory;
use rallypoint_announce::LobbyHost;
use rallypoint_history::{History, HistoryOptions, Observation};
use rallypoint_lobby::{LobbyOptions, LobbyService, LobbyStartError, ProbePool};
use rallypoint_query::lobby_names;
use rallypoint_query_proto::{Protocol, Responder, ResponderConfig};
use rallypoint_udp::{BindError, EventLoop, EventLoopThread, UdpSocket, entropy};
use rallypoint_web::{LobbyNames, WebOptions, WebService, WebSources};
use rallypoint_wire::lobby::{LobbyId, Occupancy, Registration, ServerId, TableBuf, Transport, Unregister};
use std::{
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    num::NonZeroU16,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::{net::TcpListener, time::interval};
use world::{Change, PretendServer};

/// Show all of it on this machine: a lobby, its page, pretend servers and a chat room
///
/// Starts a lobby with its page, and 30 pretend servers of several games that come, go, and change maps and players.
/// They register through the real protocols, and many of them answer queries. Their history of the last week is made up.
/// Everything stays on this machine (127.0.0.1), unless --http names another address, and nothing is left behind after Ctrl-C.
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub struct Args {
    /// Address of the page [default: port 29950 of 127.0.0.1, or a free port]
    #[arg(long, value_name = "ADDR:PORT", value_parser = |text: &str| listen_addr(text, DEFAULT_HTTP_PORT.get()))]
    http: Option<SocketAddr>,

    /// Add servers with names and texts that try to break out of their place, and with answers that do not agree
    #[arg(long, hide = true)]
    hostile: bool,

    /// Add servers that only register, until there is this number of them
    #[arg(long, hide = true, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=MAX_CROWD))]
    servers: u16,
}

const MORE: &str = "\
Examples:
  rallypoint demo
      prints the address of the page, and what to try in another terminal
  rallypoint demo --http 127.0.0.1:8080
      the page at another port

Exit codes:
  0  ended by Ctrl-C, or by /quit in the console of the room
  1  failed to start; the last line states the reason
  2  wrong usage";

/// Interval of registrations without a change, in seconds.
const REFRESH: u64 = 30;

/// Number of seconds after which a server whose replies end gives none.
const REPLY_END: u64 = 20;

/// Maximum number of servers, each with a port of its own above [`CROWD_PORT`].
const MAX_CROWD: i64 = 50_000;
const CROWD_PORT: u16 = 15_000;

/// Number of servers with a made-up past.
const SERVERS_WITH_A_PAST: usize = 100;

/// Size of the receive buffer of a pretend server in bytes.
const RECEIVE_BUFFER: usize = 1 << 16;

/// Runs the demo until Ctrl-C.
pub fn run(args: &Args) -> Result<(), CommandError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(CommandError::failed)?;
    let result = runtime.block_on(async {
        let mut signals = Signals::to_end().map_err(CommandError::failed)?;
        let directory = DemoDirectory::create()?;
        let mut demo = Demo::start(args, directory.path()).await?;
        demo.print_what_to_try()?;
        tokio::select! {
            () = demo.run() => {}
            () = signals.stop() => {}
        }
        tokio::select! {
            () = demo.stop() => {}
            () = signals.stop_again() => {}
        }
        Ok(())
    });
    runtime.shutdown_background();
    result
}

struct Demo {
    lobby: LobbyService,
    web: WebService,
    room: RoomServer,
    history: Arc<History>,
    servers: Vec<RunningServer>,
    socket: UdpSocket,
    lobby_addr: SocketAddr,
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
    async fn start(args: &Args, directory: &std::path::Path) -> Result<Self, CommandError> {
        let history =
            Arc::new(History::start(HistoryOptions::new(directory.join("history.db"))).map_err(CommandError::failed)?);
        let lobby = start_lobby(args)?;
        let web = start_web(args, &lobby, &history)?;
        let lobby_addr = lobby.local_addrs().lobby[0];
        let room = start_room(directory, lobby_addr).await?;
        let socket = UdpSocket::bind(any_port(), RECEIVE_BUFFER).map_err(CommandError::failed)?;
        let mut servers = Vec::new();
        let hostile = HOSTILE_SERVERS.iter().filter(|_| args.hostile);
        for (number, profile) in SERVERS.iter().chain(hostile).enumerate() {
            servers.push(RunningServer::start(*profile, number).await?);
        }
        for number in servers.len() as u16..args.servers {
            let (profile, port) = (catalogue::crowd_profile(number), CROWD_PORT + number);
            let mut server = RunningServer::start_unanswering(profile, number.into(), port)?;
            server.server.name += &format!(" #{number}");
            servers.push(server);
        }
        let demo = Self { lobby, web, room, history, servers, socket, lobby_addr };
        demo.servers.iter().for_each(|server| demo.register(server));
        Ok(demo)
    }

    /// Prints the addresses and a few commands. They name this program as it was called, so that they can be copied.
    fn print_what_to_try(&self) -> Result<(), CommandError> {
        let program = std::env::args().next().filter(|name| !name.is_empty()).unwrap_or_else(|| "rallypoint".into());
        let listening = self.web.local_addrs()[0];
        let page = reachable_here(listening);
        let extent = if listening.ip().is_loopback() {
            "All of it stays on this machine"
        } else {
            "Other machines can open the page; the rest stays on this one"
        };
        let lobby = match self.lobby_addr.port() {
            rallypoint_wire::lobby::PORT => self.lobby_addr.ip().to_string(),
            _ => self.lobby_addr.to_string(),
        };
        // The page names all lists of the lobby. If it is at another port than usual, the commands have to be given that one.
        let lists = if page.port() == DEFAULT_HTTP_PORT.get() { lobby.clone() } else { format!("http://{page}/") };
        let watched = if lists == lobby { format!("lobby://{lobby}") } else { lists.clone() };
        let queryable =
            self.servers.iter().find(|server| server.server.profile.game.protocol == Some(Protocol::Session));
        let session = queryable.map_or(0, |server| server.port.get());
        let room = self.room.local_addr().map_or(String::new(), |addr| addr.to_string());
        print_stdout(&format!(
            "A lobby with {count} pretend servers and a chat room. {extent}.\n\n  \
             page      http://{page}/\n\n\
             In another terminal:\n\n  \
             {program} browse {lists}\n  \
             {program} list {lists} --query --sort players\n  \
             {program} query session://127.0.0.1:{session}\n  \
             {program} watch {watched}\n  \
             {program} join {room} --name YOU\n\n\
             Servers, players and their history of the last week are made up. Ctrl-C ends the demo and leaves nothing behind.\n\
             The chat room follows; lines that you type here are sent to its guests.\n\n",
            count = self.servers.len(),
        ))
    }

    /// Runs until the console of the chat room is closed with `/quit`.
    async fn run(&mut self) {
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
            () = world => {}
            () = record(lobby, history) => {}
            () = room.run() => {}
        }
    }

    fn register(&self, server: &RunningServer) {
        server.send(&self.socket, self.lobby_addr, &server.registration());
    }

    async fn stop(self) {
        print_stderr("ending the demo");
        self.room.stop().await;
        self.web.shutdown().await;
        self.lobby.shutdown().await;
        drop(self.servers);
        let _ = tokio::task::spawn_blocking(move || drop(self.history)).await;
    }
}

impl RunningServer {
    async fn start(profile: Profile, number: usize) -> Result<Self, CommandError> {
        if profile.game.transport == Transport::Tcp {
            return Self::start_unanswering(profile, number, open_tcp_port().await?);
        }
        let socket = Arc::new(UdpSocket::bind(any_port(), RECEIVE_BUFFER).map_err(CommandError::failed)?);
        let mut server = Self::start_unanswering(profile, number, socket.local_addr().port())?;
        server.query_socket = profile.game.protocol.map(|protocol| (protocol, socket));
        server.answer_queries()?;
        Ok(server)
    }

    fn start_unanswering(profile: Profile, number: usize, port: u16) -> Result<Self, CommandError> {
        let server = PretendServer::new(profile, number, entropy::u64().map_err(CommandError::failed)?);
        let port = NonZeroU16::new(port).ok_or_else(|| CommandError::failed("the system chose port 0"))?;
        let id = ServerId::from_bytes(entropy::bytes().map_err(CommandError::failed)?);
        Ok(Self { server, id, port, query_socket: None, responder: None })
    }

    /// Answers queries from now on, if the game has a protocol for them.
    fn answer_queries(&mut self) -> Result<(), CommandError> {
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

/// An address of this machine at which a program on it reaches a listener at all addresses.
fn reachable_here(listening: SocketAddr) -> SocketAddr {
    match listening {
        SocketAddr::V4(addr) if addr.ip().is_unspecified() => (Ipv4Addr::LOCALHOST, addr.port()).into(),
        SocketAddr::V6(addr) if addr.ip().is_unspecified() => (Ipv6Addr::LOCALHOST, addr.port()).into(),
        addr => addr,
    }
}

/// Starts a lobby at its usual port, or at a free one if that is taken.
fn start_lobby(args: &Args) -> Result<LobbyService, CommandError> {
    let mut registry = LobbyOptions::default().registry;
    registry.caps.per_address = registry.caps.per_address.max(2 * usize::from(args.servers)).max(64);
    let start = |port| {
        let options = LobbyOptions {
            registry: registry.clone(),
            listen: vec![(Ipv4Addr::LOCALHOST, port).into()],
            legacy: Vec::new(),
            probe_sockets: ProbePool::MAX_SOCKETS,
            ..LobbyOptions::default()
        };
        LobbyService::start(options, &tokio::runtime::Handle::current())
    };
    match start(rallypoint_wire::lobby::PORT) {
        Err(LobbyStartError::BindLobby(BindError::InUse { .. })) => start(0),
        result => result,
    }
    .map_err(CommandError::failed)
}

/// Starts the web server at the given address; otherwise at its usual port, or at a free one if that is taken.
fn start_web(args: &Args, lobby: &LobbyService, history: &History) -> Result<WebService, CommandError> {
    let start = |addr| {
        let mut options = WebOptions { listen: vec![addr], ..WebOptions::default() };
        let lists = SERVERS.iter().map(|profile| (list_id(profile.game.list), format!("{} (demo)", profile.game.name)));
        let known = lobby_names::known().map(|lobby| (lobby.id, lobby.name.to_owned()));
        options.settings.names = LobbyNames(known.chain(lists).collect());
        "Rallypoint demo".clone_into(&mut options.settings.site.title);
        "A demo: all servers, players and their history are made up.".clone_into(&mut options.settings.site.welcome);
        let sources = WebSources { history: Some(history.reader()), ..WebSources::new(lobby.clone()) };
        WebService::start(options, sources)
    };
    match args.http {
        Some(addr) => start(addr),
        None => {
            let usual = WebOptions::default().listen.first().map_or(0, SocketAddr::port);
            start((Ipv4Addr::LOCALHOST, usual).into()).or_else(|_| start(any_port()))
        }
    }
    .map_err(|error| CommandError::failed(format_args!("{error} with --http")))
}

/// Starts the chat room at its usual port, or at a free one if that is taken.
async fn start_room(directory: &std::path::Path, lobby: SocketAddr) -> Result<RoomServer, CommandError> {
    let lobby: LobbyHost = lobby.to_string().parse().map_err(CommandError::failed)?;
    let args = |listen| host::Args::new("Demo room: say hello", directory.join("room.key"), lobby.clone(), listen);
    let usual = (Ipv4Addr::LOCALHOST, Protocol::Session.default_port()).into();
    match RoomServer::start(&args(usual)).await {
        Ok(room) => Ok(room),
        Err(_) => RoomServer::start(&args(any_port())).await,
    }
}

/// Answers queries on behalf of a server.
fn respond(
    protocol: Protocol,
    socket: Arc<UdpSocket>,
    server: &PretendServer,
) -> Result<EventLoopThread<Responder>, CommandError> {
    let config = ResponderConfig {
        bloodmasters: protocol == Protocol::Bloodmasters,
        session: protocol == Protocol::Session,
        ..ResponderConfig::default()
    };
    let seed = entropy::u128().map_err(CommandError::failed)?;
    let responder = Responder::new(config, seed, &server.info()).map_err(CommandError::failed)?;
    EventLoop::new(vec![socket])
        .and_then(|event_loop| event_loop.spawn("respond", responder, drop))
        .map_err(CommandError::failed)
}

/// Opens a TCP port that accepts connections, as a lobby expects of a TCP server.
async fn open_tcp_port() -> Result<u16, CommandError> {
    let listener = TcpListener::bind(any_port()).await.map_err(CommandError::failed)?;
    let port = listener.local_addr().map_err(CommandError::failed)?.port();
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

/// The list of a game. The catalogue has valid UUIDs only, which a test checks.
fn list_id(uuid: &str) -> LobbyId {
    lobby_names::find(uuid).unwrap_or_else(|_| LobbyId::from_bytes([0; 16]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_of_the_catalogue_is_a_uuid() {
        assert!(SERVERS.iter().chain(HOSTILE_SERVERS).all(|profile| profile.game.list.parse::<LobbyId>().is_ok()));
    }
}
