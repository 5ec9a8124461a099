//! What is listed now: what the recorder is fed with.

use crate::{Sample, UnixSeconds};
use rallypoint_lobby_proto::{ListSnapshot, PublicId, UnlistReason};
use rallypoint_wire::{lobby::LobbyId, text};
use std::{fmt, sync::Arc};

/// Everything that is listed at one moment, and what happened since the moment before.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// When that is.
    pub time: UnixSeconds,
    /// The servers.
    pub listed: Arc<dyn Listed>,
    /// Who came and went, in order. It need not be complete: who is there is seen anyway, but not since when and why not.
    pub moves: Vec<Move>,
}

/// A set of servers, each of which is shown once.
pub trait Listed: fmt::Debug + Send + Sync {
    /// Shows all of them.
    fn each(&self, show: &mut dyn FnMut(Seen<'_>));
}

/// A server as it is listed.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// What it is called in public.
    pub id: PublicId,
    /// The lobby it is in.
    pub lobby: LobbyId,
    /// How many people play.
    pub players: u16,
    /// How many bots play.
    pub bots: u16,
    /// How many people can play.
    pub slots: u16,
    /// Its name, fit to be shown.
    pub name: &'a str,
    /// Its map, fit to be shown.
    pub map: &'a str,
}

/// A server came or went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Which.
    pub id: PublicId,
    /// When.
    pub time: UnixSeconds,
    /// Where it came to, or why it went.
    pub what: CameOrWent,
}

/// One of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CameOrWent {
    /// It is in the list of this lobby.
    Came(LobbyId),
    /// It is not in the list any more.
    Went(UnlistReason),
}

impl Seen<'_> {
    pub(crate) fn sample(&self) -> Sample {
        let (players, bots, slots) = (self.players.into(), self.bots.into(), self.slots.into());
        Sample { players, bots, slots, servers: 1 }
    }
}

impl Listed for ListSnapshot {
    fn each(&self, show: &mut dyn FnMut(Seen<'_>)) {
        for listing in self.lobbies().flat_map(|(_, list)| list.servers()) {
            let block = listing.block();
            let text = |key| text::display(block.table.get(key).unwrap_or_default());
            show(Seen {
                id: listing.public_id(),
                lobby: listing.lobby_id(),
                players: block.occupancy.players,
                bots: block.occupancy.bots,
                slots: block.occupancy.slots,
                name: &text(b"name"),
                map: &text(b"map"),
            });
        }
    }
}
