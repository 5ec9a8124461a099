//! `rallypoint host`: runs a chat room with teams.

mod announcement;
mod args;
pub mod channels;
mod key;
mod metrics;
mod room;

pub use args::Args;
pub use key::data_file;
pub use room::{GREETING, RATE_LIMITED, RECEIPT, RECEIPT_REQUEST};

use crate::{
    announced_lobby::AnnouncedLobby,
    error::CommandError,
    input_lines::{InputLines, too_long_message},
    signals::Signals,
    stdio::{print_line, print_stderr, print_stdout},
};
use announcement::RoomAnnouncement;
use channels::{CHAT, PRESENCE};
use metrics::Metrics;
use rallypoint_limit::Lan;
use rallypoint_query_proto::ServerInfo;
use rallypoint_session::{
    AsyncChannelServer, ChannelMessage, DisconnectReason, EncryptionPolicy, EndpointConfig, NewPlayer, PlayerId,
    PublicKey, SendError, ServerChannels, ServerEvent, ServerOptions, SetupError,
};
use room::{KICK_BAN, Room, RoomAction};
use std::{
    collections::HashMap,
    net::SocketAddr,
    time::{Duration, Instant},
};

/// Name of the game in logins.
pub const GAME: &str = "rallypoint-room";

/// Name of the game as shown to users.
pub const GAME_NAME: &str = "Rallypoint room";

/// Maximum size of a line in bytes, in both directions: its text and the name of its author.
pub const MAX_MESSAGE: usize = 8_192;

/// Interval at which the answer to queries is updated, for the pings of players.
const INFO_INTERVAL: Duration = Duration::from_secs(5);

/// Minimum interval between two presence reports: a guest that changes its state quickly costs no more than that.
const PRESENCE_INTERVAL: Duration = Duration::from_millis(500);

/// Disconnect reason when the room ends.
const GOODBYE: &str = "the server is closing";

/// Runs a room until `/quit` or a signal.
pub fn run(args: &Args) -> Result<(), CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CommandError::failed)?;
    runtime.block_on(async {
        let mut signals = Signals::to_stop().map_err(CommandError::failed)?;
        let mut server = RoomServer::start(args).await?;
        server.print_addresses(args);
        tokio::select! {
            () = server.run() => {}
            () = signals.stop() => {}
        }
        // A second Ctrl-C ends the program at once.
        tokio::select! {
            () = server.stop() => {}
            () = signals.stop_again() => {}
        }
        Ok(())
    })
}

/// A running chat room.
pub struct RoomServer {
    server: AsyncChannelServer,
    public_key: PublicKey,
    room: Room<PlayerId>,
    info: ServerInfo,
    announcement: Option<RoomAnnouncement>,
    metrics: Option<Metrics>,
    /// Networks of kicked guests, and when their ban ends.
    banned_networks: HashMap<Lan, Instant>,
    /// The presence may have changed since the last report to the guests.
    is_presence_due: bool,
}

impl RoomServer {
    /// Opens the room.
    pub async fn start(args: &Args) -> Result<Self, CommandError> {
        let key = key::load_or_generate(args.key_file.as_deref())?;
        let public = key.public();
        let mut endpoint = EndpointConfig::for_game(GAME);
        endpoint.static_key = Some(key);
        endpoint.max_players = args.max_players.into();
        endpoint.max_per_address = args.max_per_address.into();
        endpoint.encryption = if args.encrypted_only { EncryptionPolicy::Encrypted } else { EncryptionPolicy::Either };
        let mut options = ServerOptions::from(endpoint);
        if !args.listen.is_empty() {
            options.listen.clone_from(&args.listen);
        }
        // Guests without channels take part as well, without presence reports.
        let table = channels::table().map_err(CommandError::failed)?;
        let channels = ServerChannels { plain_channel: Some(CHAT), ..table.into() };
        let server = AsyncChannelServer::bind(options, channels).await.map_err(|error| match error {
            SetupError::Bind(error) => CommandError::bind(&error, "--listen"),
            error => CommandError::failed(error),
        })?;
        let addrs = server.local_addrs();
        let announcement = RoomAnnouncement::start(args, addrs.first().map_or(0, SocketAddr::port), public).await?;
        let metrics = match args.metrics {
            Some(addr) => Some(Metrics::bind(addr).await?),
            None => None,
        };
        let teams = if args.teams.is_empty() { vec!["red".into(), "blue".into()] } else { args.teams.clone() };
        let info = ServerInfo {
            name: Some(args.name.clone()),
            description: args.welcome.clone(),
            game: Some(GAME.into()),
            game_name: Some(GAME_NAME.into()),
            max_players: Some(args.max_players.into()),
            ..ServerInfo::default()
        };
        let room = Room::new(teams, args.welcome.clone());
        let mut server = Self {
            server,
            public_key: public,
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

    /// Prints the addresses and the key, for users and scripts.
    fn print_addresses(&self, args: &Args) {
        let lines: String = self.server.local_addrs().iter().map(|addr| format!("session udp {addr}\n")).collect();
        let metrics_line =
            self.metrics.as_ref().map_or(String::new(), |metrics| format!("metrics tcp {}\n", metrics.local_addr()));
        // A closed standard output is no reason not to serve.
        let _ = print_stdout(&format!("{lines}{metrics_line}key {}\n", self.public_key));
        let Ok(list) = args.list().map(rallypoint_query::lobby_names::short_name) else { return };
        for AnnouncedLobby { host: lobby, .. } in &args.lobbies {
            print_stderr(format_args!("to see it in the list: rallypoint list {lobby}/{list} --query"));
        }
    }

    /// The address of the room.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.server.local_addrs().first().copied()
    }

    /// Serves until `/quit` is typed.
    pub async fn run(&mut self) {
        let mut console = InputLines::from_stdin();
        let mut message = ChannelMessage::default();
        let mut refresh = tokio::time::interval(INFO_INTERVAL);
        let mut presence = tokio::time::interval(PRESENCE_INTERVAL);
        presence.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let announce = async {
                match &mut self.announcement {
                    Some(announcement) => announcement.run().await,
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
                event = self.server.next_event(&mut message) => self.handle_event(event, &message),
                Some(line) = console.next() => {
                    match line {
                        Ok(line) if line.trim() == "/quit" => return,
                        Ok(line) => {
                            let server = &self.server;
                            self.room.handle_console(&line, |player| server.stats(player)?.rtt);
                        }
                        Err(characters) => print_stderr(too_long_message(characters)),
                    }
                    self.update_info();
                }
                _ = refresh.tick() => self.update_info(),
                _ = presence.tick(), if self.is_presence_due => self.send_presence(),
                () = announce => {}
                request = stats_request => drop(request.send(self.server.endpoint_stats())),
            }
            self.run_actions();
        }
    }

    fn handle_event(&mut self, event: ServerEvent, message: &ChannelMessage) {
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
            ServerEvent::Message(player) if message.channel == PRESENCE => {
                self.is_presence_due |= self.room.handle_presence(player, &message.bytes);
                return;
            }
            ServerEvent::Message(player) => {
                self.room.handle_line(now, player, &message.bytes, |player| server.stats(player)?.rtt);
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

    fn run_actions(&mut self) {
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
                RoomAction::Log(line) => print_line(&line),
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
        server.broadcast_to(players, PRESENCE, report.into_bytes(), |_, _| {});
    }

    /// Updates the answer to queries and the player count in lobbies.
    fn update_info(&mut self) {
        self.is_presence_due = true;
        if let Some(announcement) = &mut self.announcement {
            announcement.set_players(self.room.len());
        }
        let server = &self.server;
        server.set_info(&self.room.info(&self.info, |player| server.stats(player)?.rtt));
    }

    /// Ends all sessions and unregisters the room.
    pub async fn stop(self) {
        print_stderr("closing the room");
        let unregister = async {
            if let Some(announcement) = self.announcement {
                announcement.stop().await;
            }
        };
        tokio::join!(self.server.shutdown(GOODBYE), unregister);
    }
}
