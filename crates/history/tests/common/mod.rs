//! What these tests share: servers by number, and a history in a folder that goes away.
#![allow(dead_code, reason = "each test uses a part of it")]

use rallypoint_history::{History, Limits, Listed, Options, Seen, Subject, Sweep, UnixSeconds};
use rallypoint_lobby_proto::PublicId;
use rallypoint_wire::lobby::LobbyId;
use std::{sync::Arc, time::Duration};
use tempfile::TempDir;

/// The beginning of a day.
pub const START: UnixSeconds = 1_800_057_600;
pub const HOUR: UnixSeconds = 3_600;
pub const DAY: UnixSeconds = 86_400;
pub const LOBBY: LobbyId = LobbyId::GANG_GARRISON_2;

/// Servers: number and players. A server with a number has that many bots, and twice as many slots.
#[derive(Debug)]
pub struct Rows(pub Vec<(u8, u16)>);

impl Listed for Rows {
    fn each(&self, show: &mut dyn FnMut(Seen<'_>)) {
        for &(number, players) in &self.0 {
            let (bots, slots) = (number.into(), 2 * u16::from(number));
            show(Seen { id: id(number), lobby: LOBBY, players, bots, slots, name: "Bacon Town", map: "ctf_square" });
        }
    }
}

pub fn id(number: u8) -> PublicId {
    PublicId::from_bytes([number; 16])
}

pub fn server(number: u8) -> Subject {
    Subject::Server(id(number))
}

pub fn sweep(time: UnixSeconds, rows: &[(u8, u16)]) -> Sweep {
    Sweep { time, listed: Arc::new(Rows(rows.into())), moves: Vec::new() }
}

/// Everybody has a history at once, and nobody waits for anything.
pub fn options(folder: &TempDir) -> Options {
    let limits = Limits { warm_up: 0, ..Limits::default() };
    Options { limits, patience: Duration::ZERO, ..Options::new(folder.path().join("history.db")) }
}

/// Records a sweep, and waits until it is written or not.
pub fn record(history: &History, time: UnixSeconds, rows: &[(u8, u16)]) {
    history.record(sweep(time, rows));
    history.flush();
}
