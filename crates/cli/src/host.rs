//! `rallypoint host`: a chat room with teams.

mod announcing;
mod args;
mod key;
mod metrics;
mod room;

pub use args::Args;
pub use room::{ALL_HEARD, ASK_IF_HEARD, NOT_HEARD};

use crate::{
    error::CommandError,
    lines::{Lines, too_long},
    signals::Signals,
    stdio::{print_stderr, print_stdout},
};
use announcing::RoomAnnouncement;
use metrics::Metrics;
use rallypoint_limit::Lan;
use rallypoint_query_proto::ServerInfo;
use rallypoint_session::{
    DisconnectReason, EncryptionPolicy, EndpointConfig, NewPlayer, PlayerId, SendError, ServerEvent, ServerOptions,
    SessionServer,
};
use room::{AWAY_FOR, Act, Room};
use std::{
    collections::HashMap,
    net::SocketAddr,
    time::{Duration, Instant},
};

/// What a login has to ask for.
pub const GAME: &str = "rallypoint-room";

/// What people call it.
pub const GAME_NAME: &str = "Rallypoint room";

/// The longest message, in both directions: room for a line and the name of who said it.
pub const LONGEST_MESSAGE: usize = 8_192;

/// How often what browsers are told is made anew, for the times to the players.
const REFRESH: Duration = Duration::from_secs(5);

const GOODBYE: &str = "the server is closing";

/// Runs a room until it is told to stop.
pub fn run(args: &Args) -> Result<(), CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CommandError::failed)?;
    runtime.block_on(async {
        let mut signals = Signals::to_stop().map_err(CommandError::failed)?;
        let mut hosting = Hosting::start(args).await?;
        tokio::select! {
            () = hosting.run() => {}
            () = signals.stop() => {}
        }
        // Whoever is in a hurry presses Ctrl-C again.
        tokio::select! {
            () = hosting.stop() => {}
            () = signals.stop_again() => {}
        }
        Ok(())
    })
}

struct Hosting {
    server: SessionServer,
    room: Room<PlayerId>,
    info: ServerInfo,
    announcement: Option<RoomAnnouncement>,
    metrics: Option<Metrics>,
    /// From where people were sent away, and until when nobody gets in from there.
    away: HashMap<Lan, Instant>,
}

impl Hosting {
    async fn start(args: &Args) -> Result<Self, CommandError> {
        let key = key::choose(args.key_file.as_deref())?;
        let public = key.public();
        let mut endpoint = EndpointConfig::for_game(GAME);
        endpoint.static_key = Some(key);
        endpoint.max_players = args.max_players.into();
        endpoint.max_per_address = args.max_per_address.into();
        endpoint.encryption = if args.encrypted_only { EncryptionPolicy::Encrypted } else { EncryptionPolicy::Either };
        let mut options = ServerOptions { stream: Some(LONGEST_MESSAGE), ..endpoint.into() };
        if !args.listen.is_empty() {
            options.listen.clone_from(&args.listen);
        }
        let server = SessionServer::bind(options).await.map_err(CommandError::failed)?;
        let addrs = server.local_addrs();
        let announcement = RoomAnnouncement::start(args, addrs.first().map_or(0, SocketAddr::port), public).await?;
        let metrics = match args.metrics {
            Some(addr) => Some(Metrics::bind(addr).await?),
            None => None,
        };
        let lines: String = addrs.iter().map(|addr| format!("session udp {addr}\n")).collect();
        // Nobody may be reading, which is no reason not to serve.
        let at =
            metrics.as_ref().and_then(Metrics::local_addr).map_or(String::new(), |at| format!("metrics tcp {at}\n"));
        let _ = print_stdout(&format!("{lines}{at}key {public}\n"));
        for lobby in &args.lobbies {
            let list = rallypoint_query::lobby_names::short_name(args.lobby_id);
            print_stderr(format_args!("to find it: rallypoint list {lobby}/{list} --query"));
        }
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
        let mut hosting = Self { server, room, info, announcement, metrics, away: HashMap::new() };
        hosting.tell_browsers();
        Ok(hosting)
    }

    /// Until /quit is typed.
    async fn run(&mut self) {
        let (mut console, mut message) = (Lines::of_stdin(), Vec::new());
        let mut refresh = tokio::time::interval(REFRESH);
        loop {
            let announce = async {
                match &mut self.announcement {
                    Some(announcement) => announcement.run().await,
                    None => std::future::pending().await,
                }
            };
            let asked = async {
                match &self.metrics {
                    Some(metrics) => metrics.next().await,
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
                        Err(characters) => print_stderr(too_long(characters)),
                    }
                    self.tell_browsers();
                }
                _ = refresh.tick() => self.tell_browsers(),
                () = announce => {}
                client = asked => client.answer(self.server.endpoint_stats()),
            }
            self.act();
        }
    }

    fn handle_event(&mut self, event: ServerEvent, message: &[u8]) {
        let (now, server) = (Instant::now(), &self.server);
        match event {
            ServerEvent::Connected(NewPlayer { player, username, .. }) => match self.is_away(now, player) {
                Some(left) => {
                    let minutes = left.as_secs() / 60 + 1;
                    self.server.disconnect(player, &format!("sent away; come back in {minutes} min"));
                }
                None => self.room.handle_join(now, player, &username),
            },
            ServerEvent::Closing(player) => self.room.handle_closing(player),
            ServerEvent::Message(player) => {
                self.room.handle_line(now, player, message, |player| server.stats(player)?.rtt);
            }
            ServerEvent::Disconnected(player, reason) => {
                // Who leaves without a word just leaves.
                let is_silent = matches!(&reason, DisconnectReason::ClosedByPeer(why) if why.is_empty());
                let why = if is_silent { String::new() } else { reason.to_string() };
                self.room.handle_leave(player, &why);
            }
            _ => return,
        }
        self.tell_browsers();
    }

    fn act(&mut self) {
        for act in self.room.take_acts() {
            match act {
                Act::Tell(player, line) => {
                    // Who does not read for so long that the window is full is as good as gone.
                    if let Err(SendError::WouldBlock) = self.server.try_send(player, line.as_bytes()) {
                        self.server.disconnect(player, "too slow");
                    }
                }
                Act::Kick(player, reason) => {
                    if let Some(addr) = self.server.validated_addr(player) {
                        self.away.insert(Lan::of(addr.ip()), Instant::now() + AWAY_FOR);
                    }
                    self.server.disconnect(player, &reason);
                }
                Act::Log(line) => drop(print_stdout(&format!("{line}\n"))),
            }
        }
    }

    /// For how much longer nobody gets in from where this player is.
    fn is_away(&mut self, now: Instant, player: PlayerId) -> Option<Duration> {
        self.away.retain(|_, until| *until > now);
        let home = Lan::of(self.server.validated_addr(player)?.ip());
        self.away.get(&home).map(|until| until.saturating_duration_since(now))
    }

    /// Server browsers and lobbies.
    fn tell_browsers(&mut self) {
        if let Some(announcement) = &mut self.announcement {
            announcement.set_players(self.room.len());
        }
        let server = &self.server;
        server.set_info(&self.room.info(&self.info, |player| server.stats(player)?.rtt));
    }

    async fn stop(self) {
        print_stderr("saying goodbye");
        let unregister = async {
            if let Some(announcement) = self.announcement {
                announcement.stop().await;
            }
        };
        tokio::join!(self.server.shutdown(GOODBYE), unregister);
    }
}
