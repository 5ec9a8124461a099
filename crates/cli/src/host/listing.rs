//! Prints whether lobbies list a room.

use crate::{
    announce::{
        list_lookup::EntryMatcher,
        listing_monitor::{DEFAULT_INTERVAL, ListingMonitor, ListingStatus},
    },
    stdio::{print_stderr, print_stdout},
};
use rallypoint_room::{RoomServer, X_QUERY};
use rallypoint_wire::lobby::{ListId, Transport};
use std::{num::NonZeroU16, time::Instant};
use tokio::task::JoinSet;

/// The next status of a room in each lobby.
pub struct ListingReports(JoinSet<(ListingMonitor, ListingStatus)>);

impl ListingReports {
    /// Watches the lists of all lobbies to which the room is announced.
    pub fn start(room: &RoomServer, name: &str, list_id: ListId) -> Self {
        let mut statuses = JoinSet::new();
        let port = room.local_addrs().first().and_then(|addr| NonZeroU16::new(addr.port()));
        for (lobby, port) in room.lobbies().iter().zip(port.into_iter().cycle()) {
            let monitor = ListingMonitor {
                lobby: lobby.clone(),
                server: EntryMatcher {
                    list_id,
                    transport: Transport::Udp,
                    port,
                    name: name.as_bytes().to_vec(),
                    known_at: Vec::new(),
                },
                x_query: Some(X_QUERY.to_owned()),
                api: None,
                interval: DEFAULT_INTERVAL,
                start: Instant::now(),
                rival: None,
            };
            statuses.spawn(monitor.initial_status());
        }
        Self(statuses)
    }

    /// Prints what changes. Never returns.
    pub async fn print(&mut self) {
        while let Some(Ok((monitor, status))) = self.0.join_next().await {
            let presence = status.presence();
            match status {
                // A closed standard output is no reason to stop serving.
                ListingStatus::Listed(text) => drop(print_stdout(&format!("-- {text}\n"))),
                ListingStatus::NotListed(text) | ListingStatus::Unknown(text) => print_stderr(text),
            }
            self.0.spawn(monitor.next_change(presence));
        }
        std::future::pending::<()>().await;
    }
}
