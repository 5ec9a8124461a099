//! A running chat room: its session server, its registration with lobbies, and its metrics.

use crate::{
    GAME, GAME_NAME, Line, QUIT,
    channels::{self, CHAT, PRESENCE},
    chat::{KICK_BAN, Room, RoomAction},
    metrics::Metrics,
    too_long_message,
};
use rallypoint_announce::{
    AnnounceConfig, AnnounceEvent, AnnounceStartError, AnnounceTask, LobbyHost, Occupancy, ResolvedLobby,
};
use rallypoint_limit::Lan;
use rallypoint_query_proto::ServerInfo;
use rallypoint_session::{
    DisconnectReason, DriverPanicked, EncryptionPolicy, EndpointConfig, NewPlayer, PlayerId, PublicKey, SendError,
    Server, ServerEvent, ServerOptions, SetupError, StaticKey,
};
use rallypoint_udp::BindError;
use rallypoint_wire::lobby::ListId;
use std::{
    collections::HashMap,
    net::SocketAddr,
    num::NonZeroU16,
    time::{Duration, Instant},
};
use thiserror::Error;

/// Query protocol of rooms: lobbies query a room before they list it.
pub const X_QUERY: &str = "session";

/// Interval at which the answer to queries is updated, for the pings of players.
const INFO_INTERVAL: Duration = Duration::from_secs(5);

/// Minimum interval between two presence reports: a guest that changes its state quickly costs no more than that.
const PRESENCE_INTERVAL: Duration = Duration::from_millis(500);

/// Disconnect reason when the room ends.
const GOODBYE: &str = "the server is closing";

/// Settings of a room.
#[derive(Debug)]
pub struct RoomConfig {
    /// Name of the room.
    pub name: String,
    /// The secret key that identifies the room.
    pub key: StaticKey,
    /// Addresses to listen on, one per family; empty for the default port on all addresses.
    pub listen: Vec<SocketAddr>,
    /// Maximum number of guests.
    pub max_players: u8,
    /// Maximum number of guests per IPv4 address or IPv6 /64.
    pub max_per_address: u8,
    /// Names of the teams.
    pub teams: Vec<String>,
    /// Message shown to guests when they join.
    pub welcome: Option<String>,
    /// Lobbies to register with.
    pub lobbies: Vec<LobbyHost>,
    /// The list in which the room is to appear.
    pub list_id: ListId,
    /// Whether clients without encryption are refused.
    pub encrypted_only: bool,
    /// Address of the Prometheus metrics.
    pub metrics: Option<SocketAddr>,
}

/// Why a room cannot be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RoomStartError {
    /// The session server cannot be started.
    #[error(transparent)]
    Session(#[from] SetupError),
    /// The address of the metrics cannot be used.
    #[error(transparent)]
    Metrics(BindError),
    /// The room cannot be announced.
    #[error(transparent)]
    Announce(#[from] AnnounceStartError),
}

/// The operator's console.
pub trait Console {
    /// The next typed line; `None` at the end of the input. Cancel-safe.
    fn next_line(&mut self) -> impl Future<Output = Option<Line>>;

    /// Prints a line of the room.
    fn print(&mut self, line: &str);

    /// Prints a notice about the program itself.
    fn report(&mut self, notice: &str);
}

/// A running chat room.
pub struct RoomServer {
    server: Server,
    public_key: PublicKey,
    room: Room<PlayerId>,
    info: ServerInfo,
    announcement: Option<AnnounceTask>,
    metrics: Option<Metrics>,
    /// Networks of kicked guests, and when their ban ends.
    banned_networks: HashMap<Lan, Instant>,
    /// The presence may have changed since the last report to the guests.
    is_presence_due: bool,
}

impl RoomServer {
    /// Opens the room.
    ///
    /// # Errors
    /// If an address cannot be used, or no lobby can be resolved.
    pub async fn start(config: RoomConfig) -> Result<Self, RoomStartError> {
        let public_key = config.key.public();
        let mut endpoint = EndpointConfig::for_game(GAME);
        endpoint.static_key = Some(config.key);
        endpoint.max_players = config.max_players.into();
        endpoint.max_per_address = config.max_per_address.into();
        endpoint.encryption =
            if config.encrypted_only { EncryptionPolicy::Encrypted } else { EncryptionPolicy::Either };
        // Guests without channels take part as well, without presence reports.
        let table = channels::table().map_err(|error| SetupError::Config(error.into()))?;
        let mut options = ServerOptions::from(endpoint).channels(table).plain_channel(CHAT);
        if !config.listen.is_empty() {
            options.listen = config.listen;
        }
        let server = Server::bind(options).await?;
        let port = server.local_addrs().first().and_then(|addr| NonZeroU16::new(addr.port()));
        let announcement = match port.filter(|_| !config.lobbies.is_empty()) {
            Some(port) => {
                let mut announce = AnnounceConfig::new(&config.name, port);
                announce.list_id = config.list_id;
                announce.lobbies = config.lobbies;
                announce.occupancy = Occupancy { slots: config.max_players.into(), ..Occupancy::default() };
                let key = public_key.to_string();
                let keys = [("game", GAME_NAME), ("game_short", GAME), ("x-query", X_QUERY), ("x-session-key", &key)];
                announce.keys.extend(keys.map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec())));
                Some(AnnounceTask::start(announce).await?)
            }
            None => None,
        };
        let metrics = match config.metrics {
            Some(addr) => Some(Metrics::bind(addr).await.map_err(RoomStartError::Metrics)?),
            None => None,
        };
        let info = ServerInfo {
            name: Some(config.name),
            description: config.welcome.clone(),
            game: Some(GAME.into()),
            game_name: Some(GAME_NAME.into()),
            max_players: Some(config.max_players.into()),
            ..ServerInfo::default()
        };
        let room = Room::new(config.teams, config.welcome);
        let mut server = Self {
            server,
            public_key,
            room,
            info,
            announcement,
            metrics,
            banned_networks: HashMap::new(),
            is_presence_due: false,
        };
        server.update_info();
        Ok(server)
    }

    /// The addresses of the room, one per family.
    pub fn local_addrs(&self) -> Vec<SocketAddr> {
        self.server.local_addrs().to_vec()
    }

    /// The address of the metrics, if they are served.
    pub fn metrics_addr(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().map(Metrics::local_addr)
    }

    /// The key that guests verify.
    pub fn public_key(&self) -> PublicKey {
        self.public_key
    }

    /// The lobbies to which the room is announced.
    pub fn lobbies(&self) -> &[ResolvedLobby] {
        self.announcement.as_ref().map_or(&[], AnnounceTask::lobbies)
    }

    /// Serves until `/quit` is typed.
    ///
    /// # Errors
    /// If the task of the session server has panicked.
    pub async fn run(&mut self, console: &mut impl Console) -> Result<(), DriverPanicked> {
        let mut buffer = Vec::new();
        let mut refresh = tokio::time::interval(INFO_INTERVAL);
        let mut presence = tokio::time::interval(PRESENCE_INTERVAL);
        presence.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let announce = async {
                match &mut self.announcement {
                    Some(announcement) => announcement.next_event().await,
                    None => std::future::pending().await,
                }
            };
            let stats_request = async {
                match &mut self.metrics {
                    Some(metrics) => metrics.next_request().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                event = self.server.next_event(&mut buffer) => self.handle_event(event?),
                Some(line) = console.next_line() => {
                    match line {
                        Ok(line) if line.trim() == QUIT => return Ok(()),
                        Ok(line) => {
                            let server = &self.server;
                            self.room.handle_console(&line, |player| server.stats(player)?.rtt);
                        }
                        Err(characters) => console.report(&too_long_message(characters)),
                    }
                    self.update_info();
                }
                _ = refresh.tick() => self.update_info(),
                _ = presence.tick(), if self.is_presence_due => self.send_presence(),
                event = announce => if !matches!(event, AnnounceEvent::LobbiesResolved) {
                    console.report(&event.to_string());
                },
                request = stats_request => drop(request.send(self.server.endpoint_stats())),
            }
            self.run_actions(console);
        }
    }

    fn handle_event(&mut self, event: ServerEvent<'_>) {
        let now = Instant::now();
        let server = &self.server;
        match event {
            ServerEvent::Connected(NewPlayer { player, username, .. }) => match self.remaining_ban(now, player) {
                Some(left) => {
                    let minutes = left.as_secs() / 60 + 1;
                    self.server.disconnect(player, &format!("kicked; you can join again in {minutes} min"));
                }
                None => self.room.handle_join(now, player, &username),
            },
            ServerEvent::Closing(player) => self.room.handle_closing(player),
            ServerEvent::Message { player, channel: PRESENCE, bytes } => {
                self.is_presence_due |= self.room.handle_presence(player, bytes);
                return;
            }
            ServerEvent::Message { player, bytes, .. } => {
                self.room.handle_line(now, player, bytes, |player| server.stats(player)?.rtt);
            }
            ServerEvent::Disconnected(player, reason) => {
                // An empty reason is the normal one and not shown.
                let is_silent = matches!(&reason, DisconnectReason::ClosedByPeer(why) if why.is_empty());
                let why = if is_silent { String::new() } else { reason.to_string() };
                self.room.handle_leave(player, &why);
            }
            _ => return,
        }
        self.update_info();
    }

    fn run_actions(&mut self, console: &mut impl Console) {
        for act in self.room.take_actions() {
            match act {
                RoomAction::Send(player, line) => {
                    // A guest whose window is full has not read for a long time.
                    if let Err(SendError::WouldBlock) = self.server.try_send(player, CHAT, line.as_bytes()) {
                        self.server.disconnect(player, "too slow");
                    }
                }
                RoomAction::Kick(player, reason) => {
                    if let Some(addr) = self.server.validated_addr(player) {
                        self.banned_networks.insert(Lan::of(addr.ip()), Instant::now() + KICK_BAN);
                    }
                    self.server.disconnect(player, &reason);
                }
                RoomAction::Log(line) => console.print(&line),
            }
        }
    }

    /// The remaining ban of the network of this player, if any.
    fn remaining_ban(&mut self, now: Instant, player: PlayerId) -> Option<Duration> {
        self.banned_networks.retain(|_, until| *until > now);
        let network = Lan::of(self.server.validated_addr(player)?.ip());
        self.banned_networks.get(&network).map(|until| until.saturating_duration_since(now))
    }

    /// Sends the presence report to all guests with channels.
    fn send_presence(&mut self) {
        self.is_presence_due = false;
        let server = &self.server;
        let report = self.room.presence(|player| server.stats(player)?.rtt);
        let players = server.players().into_iter().filter(|player| server.has_channels(*player));
        // A guest whose queue is full gets the next report.
        let players: Vec<_> = players.collect();
        server.broadcast_to(players, PRESENCE, report.into_bytes());
    }

    /// Updates the answer to queries and the player count in lobbies.
    fn update_info(&mut self) {
        self.is_presence_due = true;
        if let Some(announcement) = &mut self.announcement {
            let players = u16::try_from(self.room.len()).unwrap_or(u16::MAX);
            announcement.set_occupancy(Occupancy {
                slots: self.info.max_players.unwrap_or_default(),
                players,
                ..Occupancy::default()
            });
        }
        let server = &self.server;
        server.set_info(&self.room.info(&self.info, |player| server.stats(player)?.rtt));
    }

    /// Ends all sessions and unregisters the room.
    pub async fn stop(self) {
        let unregister = async {
            if let Some(announcement) = self.announcement {
                announcement.stop(std::future::pending()).await;
            }
        };
        tokio::join!(self.server.shutdown(GOODBYE), unregister);
    }
}
