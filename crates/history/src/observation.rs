//! The input of the recorder: the servers that are listed at one moment.

use crate::{Sample, UnixSeconds};
use rallypoint_lobby_proto::{ListSnapshot, PublicId, UnlistReason};
use rallypoint_wire::{lobby::ListId, text};
use std::{fmt, sync::Arc};

/// All servers that are listed at one moment, and the changes since the previous observation.
#[derive(Clone, Debug)]
pub struct Observation {
    /// The time of the observation.
    pub time: UnixSeconds,
    /// The listed servers.
    pub servers: Arc<dyn ServerSource>,
    /// Servers that were added to or removed from the list, in order. It need not be complete: `servers` shows who is
    /// listed, and only the exact time and the reason are lost.
    pub changes: Vec<ListChange>,
}

/// A set of servers, each of which occurs once.
pub trait ServerSource: fmt::Debug + Send + Sync {
    /// Calls a function for each server.
    fn for_each(&self, f: &mut dyn FnMut(ObservedServer<'_>));
}

/// A listed server.
#[derive(Clone, Copy, Debug)]
pub struct ObservedServer<'a> {
    /// Its public ID.
    pub id: PublicId,
    /// The list in which it is listed.
    pub list: ListId,
    /// Number of human players.
    pub players: u16,
    /// Number of bots.
    pub bots: u16,
    /// Number of slots for players.
    pub slots: u16,
    /// Its name, made safe for display.
    pub name: &'a str,
    /// Its map, made safe for display.
    pub map: &'a str,
}

/// A server that was added to or removed from the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListChange {
    /// The server.
    pub id: PublicId,
    /// The time of the change.
    pub time: UnixSeconds,
    /// Addition or removal.
    pub kind: ListChangeKind,
}

/// The kind of a [`ListChange`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListChangeKind {
    /// The server was added to this list.
    Listed(ListId),
    /// The server was removed from the list.
    Unlisted(UnlistReason),
}

impl ObservedServer<'_> {
    pub(crate) fn sample(&self) -> Sample {
        Sample { players: self.players.into(), bots: self.bots.into(), slots: self.slots.into(), servers: 1 }
    }
}

impl ServerSource for ListSnapshot {
    fn for_each(&self, f: &mut dyn FnMut(ObservedServer<'_>)) {
        for server in self.lists().flat_map(|(_, list)| list.servers()) {
            let block = server.block();
            let text = |key| text::display(block.table.get(key).unwrap_or_default());
            f(ObservedServer {
                id: server.public_id(),
                list: server.list_id(),
                players: block.occupancy.players,
                bots: block.occupancy.bots,
                slots: block.occupancy.slots,
                name: &text(b"name"),
                map: &text(b"map"),
            });
        }
    }
}
