//! Servers by number, and a history in a temporary folder.
#![allow(dead_code, reason = "each test uses a part of it")]

use rallypoint_history::{
    History, HistoryOptions, Observation, ObservedServer, ServerSource, Subject, SubjectLimits, UnixSeconds,
};
use rallypoint_lobby_proto::PublicId;
use rallypoint_wire::lobby::ListId;
use std::{sync::Arc, time::Duration};
use tempfile::TempDir;

/// The beginning of a day.
pub const START: UnixSeconds = 1_800_057_600;
pub const HOUR: UnixSeconds = 3_600;
pub const DAY: UnixSeconds = 86_400;
pub const LIST: ListId = ListId::GANG_GARRISON_2;

/// Servers by number, with their players. The number of bots equals the number of the server, and there are twice as many slots.
#[derive(Debug)]
pub struct Rows(pub Vec<(u8, u16)>);

impl ServerSource for Rows {
    fn for_each(&self, f: &mut dyn FnMut(ObservedServer<'_>)) {
        for &(number, players) in &self.0 {
            let bots = number.into();
            let slots = 2 * u16::from(number);
            f(ObservedServer {
                id: id(number),
                list: LIST,
                players,
                bots,
                slots,
                name: "Bacon Town",
                map: "ctf_square",
            });
        }
    }
}

pub fn id(number: u8) -> PublicId {
    PublicId::from_bytes([number; 16])
}

pub fn server(number: u8) -> Subject {
    Subject::Server(id(number))
}

pub fn observation(time: UnixSeconds, rows: &[(u8, u16)]) -> Observation {
    Observation { time, servers: Arc::new(Rows(rows.into())), changes: Vec::new() }
}

/// Options without a warm-up and with short timeouts.
pub fn options(folder: &TempDir) -> HistoryOptions {
    let limits = SubjectLimits { warm_up: 0, ..SubjectLimits::default() };
    HistoryOptions { limits, busy_timeout: Duration::ZERO, ..HistoryOptions::new(folder.path().join("history.db")) }
}

/// Records an observation and waits until it was written or dropped.
pub fn record(history: &History, time: UnixSeconds, rows: &[(u8, u16)]) {
    history.record(observation(time, rows));
    history.flush();
}
