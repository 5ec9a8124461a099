//! Keeps a room in the list of its lobbies.

use super::{Args, GAME, GAME_NAME};
use crate::{
    announce::{
        list_lookup::EntryMatcher,
        listing_monitor::{DEFAULT_INTERVAL, ListingMonitor, ListingStatus},
    },
    announced_lobby::AnnouncedLobby,
    error::CommandError,
    stdio::{print_stderr, print_stdout},
};
use rallypoint_announce::{AnnounceConfig, AnnounceEvent, AnnounceStartError, AnnounceTask, Occupancy};
use rallypoint_session::PublicKey;
use std::{num::NonZeroU16, time::Instant};
use tokio::task::JoinSet;

/// Query protocol of rooms: lobbies query a room before they list it.
const X_QUERY: &str = "session";

/// A room that is being announced.
pub struct RoomAnnouncement {
    task: AnnounceTask,
    slots: u16,
    /// The next status of the room in each lobby.
    statuses: JoinSet<(ListingMonitor, ListingStatus)>,
}

impl RoomAnnouncement {
    /// Starts to announce a room; `None` without `--lobby`.
    pub async fn start(args: &Args, port: u16, key: PublicKey) -> Result<Option<Self>, CommandError> {
        let Some(port) = NonZeroU16::new(port).filter(|_| !args.lobbies.is_empty()) else { return Ok(None) };
        let mut config = AnnounceConfig::new(&args.name, port);
        config.lobby_id = args.list()?;
        config.lobbies = AnnouncedLobby::hosts(&args.lobbies);
        let slots = args.max_players.into();
        config.occupancy = Occupancy { slots, ..Occupancy::default() };
        let key = key.to_string();
        for (name, value) in [("game", GAME_NAME), ("game_short", GAME), ("x-query", X_QUERY), ("x-session-key", &key)]
        {
            config.keys.push((name.to_owned(), value.as_bytes().to_vec()));
        }
        let server = EntryMatcher {
            lobby_id: config.lobby_id,
            transport: config.transport,
            port,
            name: config.name.clone().into_bytes(),
            known_at: Vec::new(),
        };
        let task = AnnounceTask::start(config).await.map_err(|error| match error {
            AnnounceStartError::LobbyNotFound(_) => CommandError::failed(format!("{error}, or leave out --lobby")),
            error => error.into(),
        })?;
        let mut statuses = JoinSet::new();
        for lobby in task.lobbies() {
            let monitor = ListingMonitor {
                lobby: lobby.clone(),
                server: server.clone(),
                x_query: Some(X_QUERY.to_owned()),
                api: None,
                interval: DEFAULT_INTERVAL,
                start: Instant::now(),
                rival: None,
            };
            statuses.spawn(monitor.initial_status());
        }
        Ok(Some(Self { task, slots, statuses }))
    }

    pub fn set_players(&mut self, players: usize) {
        let players = u16::try_from(players).unwrap_or(u16::MAX);
        self.task.set_occupancy(Occupancy { slots: self.slots, players, ..Occupancy::default() });
    }

    /// Sends the registrations that are due, and prints what changes. Never returns; cancel-safe.
    pub async fn run(&mut self) {
        loop {
            tokio::select! {
                event = self.task.next_event() => match event {
                    AnnounceEvent::LobbiesResolved => {}
                    event => print_stderr(event),
                },
                Some(Ok((monitor, status))) = self.statuses.join_next() => {
                    let presence = status.presence();
                    match status {
                        // A closed standard output is no reason to stop serving.
                        ListingStatus::Listed(text) => drop(print_stdout(&format!("-- {text}\n"))),
                        ListingStatus::NotListed(text) | ListingStatus::Unknown(text) => print_stderr(text),
                    }
                    self.statuses.spawn(monitor.next_change(presence));
                }
            }
        }
    }

    /// Removes the room from the list.
    pub async fn stop(self) {
        self.task.stop(std::future::pending()).await;
    }
}
