//! The slots of an endpoint, and what it knows about the player in each.

use super::{address_claims::AddressClaims, message_memory::MessageMemory};
use crate::{Connection, NewPlayer, PlayerId, ServerEvent, session::Session};
use rallypoint_wire::session::SlotIndex;
use std::collections::VecDeque;

/// A fixed number of slots, each of which has a player or is empty.
pub(super) struct SlotTable {
    slots: Vec<Option<Box<PlayerSlot>>>,
    player_count: usize,
}

/// A player's session, and what the endpoint knows about it.
pub(super) struct PlayerSlot {
    pub connection: Connection,
    pub session: Session,
    /// Set until the player is accepted.
    pub new: Option<NewPlayer>,
    /// The application was asked whether the player may join.
    pub is_requested: bool,
    /// Whether the slot is in the endpoint's `ready` queue.
    pub is_ready: bool,
    /// Whether these events wait to be polled.
    pub has_message_event: bool,
    pub has_writable_event: bool,
    /// The application waits for memory.
    pub is_memory_blocked: bool,
    /// Memory as last counted by the endpoint: of the connection, of unfinished messages, and of those that wait to be sent.
    pub memory: usize,
    pub unfinished: usize,
    pub queued: usize,
    pub claims: AddressClaims,
}

impl SlotTable {
    pub fn new(slot_count: usize) -> Self {
        Self { slots: std::iter::repeat_with(|| None).take(slot_count).collect(), player_count: 0 }
    }

    pub fn player_count(&self) -> usize {
        self.player_count
    }

    pub fn iter(&self) -> impl Iterator<Item = &PlayerSlot> {
        self.slots.iter().flatten().map(|slot| &**slot)
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut PlayerSlot> {
        self.slots.iter_mut().flatten().map(|slot| &mut **slot)
    }

    /// The slot with this index, unless it is empty.
    #[inline]
    pub fn get(&self, index: SlotIndex) -> Option<&PlayerSlot> {
        self.slots.get(usize::from(index))?.as_deref()
    }

    /// The slot with this index, unless it is empty.
    #[inline]
    pub fn get_mut(&mut self, index: SlotIndex) -> Option<&mut PlayerSlot> {
        self.slots.get_mut(usize::from(index))?.as_deref_mut()
    }

    /// The slot of a player, unless its session has ended.
    #[inline]
    pub fn of(&self, player: PlayerId) -> Option<&PlayerSlot> {
        self.get(player.index).filter(|slot| slot.player() == player)
    }

    /// The slot of a player, unless its session has ended.
    #[inline]
    pub fn of_mut(&mut self, player: PlayerId) -> Option<&mut PlayerSlot> {
        self.get_mut(player.index).filter(|slot| slot.player() == player)
    }

    /// Puts a player into an empty slot.
    pub fn insert(&mut self, index: SlotIndex, player: PlayerSlot) {
        if let Some(slot) = self.slots.get_mut(usize::from(index)) {
            *slot = Some(Box::new(player));
            self.player_count += 1;
        }
    }

    /// Empties a slot. Returns its player.
    pub fn remove(&mut self, index: SlotIndex) -> Option<Box<PlayerSlot>> {
        let player = self.slots.get_mut(usize::from(index))?.take()?;
        self.player_count -= 1;
        Some(player)
    }
}

impl PlayerSlot {
    pub fn new(connection: Connection, session: Session, new: NewPlayer) -> Self {
        Self {
            connection,
            session,
            new: Some(new),
            is_requested: false,
            is_ready: false,
            has_message_event: false,
            has_writable_event: false,
            is_memory_blocked: false,
            memory: 0,
            unfinished: 0,
            queued: 0,
            claims: AddressClaims::default(),
        }
    }

    #[inline]
    pub fn player(&self) -> PlayerId {
        PlayerId { index: self.connection.index(), uid: self.connection.uid() }
    }

    /// Updates the queues after a change to the connection, which may have something to send. Its deadline is determined when
    /// it has nothing more to send: until then it may change with every message.
    #[inline]
    pub fn update(&mut self, index: SlotIndex, ready: &mut VecDeque<SlotIndex>, memory: &mut MessageMemory) {
        self.make_ready(index, ready);
        self.count_memory(memory);
        self.connection.set_memory_scarce(memory.is_scarce());
    }

    /// Puts the slot into the queue of those that may have something to send.
    #[inline]
    pub fn make_ready(&mut self, index: SlotIndex, ready: &mut VecDeque<SlotIndex>) {
        if !self.is_ready {
            self.is_ready = true;
            ready.push_back(index);
        }
    }

    /// Counts the memory of the connection anew.
    #[inline]
    pub fn count_memory(&mut self, memory: &mut MessageMemory) {
        let current = self.connection.memory();
        memory.connections = memory.connections - self.memory + current;
        self.memory = current;
    }

    /// Counts the unfinished messages anew.
    pub fn count_unfinished(&mut self, memory: &mut MessageMemory) {
        let before = std::mem::replace(&mut self.unfinished, self.session.memory());
        memory.unfinished = memory.unfinished - before + self.unfinished;
    }

    /// Counts the messages that wait to be sent anew.
    #[inline]
    pub fn count_queue(&mut self, memory: &mut MessageMemory) {
        if self.queued > 0 {
            let before = std::mem::replace(&mut self.queued, self.session.queue_memory());
            memory.queued = memory.queued - before + self.queued;
        }
    }

    /// Raises [`ServerEvent::Message`], unless it waits to be polled.
    #[inline]
    pub fn raise_message(&mut self, events: &mut VecDeque<ServerEvent>) {
        if !std::mem::replace(&mut self.has_message_event, true) {
            events.push_back(ServerEvent::Message(self.player()));
        }
    }

    /// Raises [`ServerEvent::Writable`], unless it waits to be polled.
    pub fn raise_writable(&mut self, events: &mut VecDeque<ServerEvent>) {
        if !std::mem::replace(&mut self.has_writable_event, true) {
            events.push_back(ServerEvent::Writable(self.player()));
        }
    }

    /// Called before a message is read: the peer is notified of the room that reading has made.
    #[inline(always)]
    pub fn prepare_read(&mut self, index: SlotIndex, ready: &mut VecDeque<SlotIndex>, memory: &mut MessageMemory) {
        if self.connection.reopen_window() {
            self.update(index, ready, memory);
        }
    }
}
