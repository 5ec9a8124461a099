//! The players: whose datagram is whose, and what becomes of it.

use super::{Endpoint, Event, MOST_EVENTS, PlayerId};
use crate::{
    Connection, Reason,
    connection::{Notice, Outcome, Protection},
};
use rallypoint_wire::session::{Control, MessageNumber, Rand, SealInput, SlotIndex, Uid};
use std::{net::SocketAddr, time::Instant};

pub(super) struct Seat {
    pub connection: Connection,
    /// Stands in `ready`.
    pub is_ready: bool,
    /// These events wait to be polled.
    pub readable: bool,
    pub writable: bool,
    pub memory: usize,
}

/// A data datagram of either kind.
pub(super) struct Data<'a> {
    pub number: MessageNumber,
    pub index: SlotIndex,
    pub uid: Uid,
    pub proof: Option<Rand>,
    pub input: Option<SealInput>,
    pub bytes: &'a [u8],
}

impl Data<'_> {
    /// In a plain session the rand has to be right; in an encrypted one the seal tells, later.
    pub fn is_proved_for(&self, protection: &Protection) -> bool {
        match (protection, self.proof) {
            (Protection::Plain(rand), Some(proof)) => *rand == proof,
            (Protection::Sealed { .. }, None) => true,
            _ => false,
        }
    }
}

impl Endpoint {
    pub(super) fn seat(&mut self, player: PlayerId) -> Option<&mut Seat> {
        let seat = self.seats.get_mut(usize::from(player.index))?.as_mut()?;
        (seat.player() == player).then_some(seat)
    }

    /// How much more memory messages may take (S22).
    pub(super) fn allowance(&self) -> usize {
        self.config.memory.saturating_sub(self.memory)
    }

    /// After something happened to a connection: it may have something to send or to tell, and wants to be woken at another
    /// time.
    pub(super) fn touch(&mut self, index: SlotIndex) {
        let Some(Some(seat)) = self.seats.get_mut(usize::from(index)) else { return };
        if !seat.is_ready {
            seat.is_ready = true;
            self.ready.push_back(index.get());
        }
        self.memory = self.memory - seat.memory + seat.connection.memory();
        seat.memory = seat.connection.memory();
        self.deadlines.set(index.get(), seat.connection.poll_timeout());
    }

    /// Takes what a connection has to tell.
    pub(super) fn collect(&mut self, now: Instant, index: SlotIndex) {
        let Some(Some(seat)) = self.seats.get_mut(usize::from(index)) else { return };
        let player = seat.player();
        while let Some(notice) = seat.connection.poll_notice() {
            match notice {
                Notice::Readable if !std::mem::replace(&mut seat.readable, true) => {
                    self.events.push_back(Event::Readable(player));
                }
                Notice::Writable if !std::mem::replace(&mut seat.writable, true) => {
                    self.events.push_back(Event::Writable(player));
                }
                Notice::Readable | Notice::Writable => {}
                // Nobody polls so rarely, unless nobody polls at all.
                Notice::Closing if self.events.len() >= MOST_EVENTS => {}
                Notice::Closing => self.events.push_back(Event::Closing(player)),
                Notice::Closed(reason) => return self.free(now, index, reason),
            }
        }
    }

    pub(super) fn free(&mut self, now: Instant, index: SlotIndex, reason: Reason) {
        let Some(seat) = self.seats.get_mut(usize::from(index)).and_then(Option::take) else { return };
        let player = seat.player();
        self.taken -= 1;
        self.memory -= seat.memory;
        self.deadlines.set(index.get(), None);
        let peer = seat.connection.peer();
        if self.by_address.get(&peer) == Some(&index) {
            self.by_address.remove(&peer);
        }
        // Who timed out or was replaced and still sends should hear that the session is gone.
        let goodbye = matches!(reason, Reason::Closed | Reason::ClosedByPeer(_) | Reason::UsedUp);
        self.slots.rest(now, index, goodbye.then_some(player.uid));
        self.events.push_back(Event::Disconnected(player, reason));
    }

    pub(super) fn handle_data(&mut self, now: Instant, from: SocketAddr, length: usize, data: &Data<'_>) {
        let allowance = self.allowance();
        let Some(Some(seat)) = self.seats.get_mut(usize::from(data.index)) else {
            return self.handle_first_data(now, from, length, data);
        };
        if seat.connection.uid() != data.uid {
            return self.handle_first_data(now, from, length, data);
        }
        if !data.is_proved_for(&seat.connection.channel().protection) {
            self.stats.strays += 1;
            return;
        }
        seat.connection.count_received(length);
        let outcome = seat.connection.handle_data(now, data.number, data.bytes, data.input.as_ref(), allowance);
        // Where another player is nobody moves to: a forged source would cut that player off.
        if outcome == Outcome::Newest && seat.connection.peer() != from && !self.by_address.contains_key(&from) {
            self.move_player(now, data.index, from);
        }
        self.credit(data.index, from, length, outcome);
        self.touch(data.index);
        self.collect(now, data.index);
    }

    /// A new address is sent little more than what came from it, until it answers (S31).
    pub(super) fn credit(&mut self, index: SlotIndex, from: SocketAddr, length: usize, outcome: Outcome) {
        if let Some(Some(seat)) = self.seats.get_mut(usize::from(index))
            && seat.connection.peer() == from
            && outcome != Outcome::Foreign
        {
            seat.connection.credit(length);
        }
    }

    /// The session goes where its newest message came from (S31).
    pub(super) fn move_player(&mut self, now: Instant, index: SlotIndex, to: SocketAddr) {
        let Some(Some(seat)) = self.seats.get_mut(usize::from(index)) else { return };
        let old = seat.connection.peer();
        seat.connection.move_to(now, to, self.entropy.u64());
        let player = seat.player();
        if self.by_address.get(&old) == Some(&index) {
            self.by_address.remove(&old);
        }
        self.by_address.insert(to, index);
        if self.events.len() < MOST_EVENTS {
            self.events.push_back(Event::Moved(player, to));
        }
    }

    pub(super) fn handle_control(
        &mut self,
        now: Instant,
        from: SocketAddr,
        length: usize,
        control: Option<Control<'_>>,
    ) {
        let Some(&index) = self.by_address.get(&from) else {
            self.stats.strays += 1;
            return;
        };
        let Some(Some(seat)) = self.seats.get_mut(usize::from(index)) else { return };
        let connection = &mut seat.connection;
        connection.count_received(length);
        connection.credit(length);
        match control {
            Some(Control::Ack(numbers)) => connection.handle_ack(now, numbers),
            Some(Control::Resend(numbers)) => connection.handle_resend(now, numbers),
            Some(Control::Keepalive) => connection.handle_keepalive(now),
            Some(Control::KeepaliveAck) => connection.handle_keepalive_ack(now),
            None => connection.handle_disconnect(now, ""),
        }
        self.touch(index);
        self.collect(now, index);
    }

    /// Data for a session that does not exist: a client learns at once that the server restarted (S32).
    pub(super) fn handle_unknown(&mut self, now: Instant, from: SocketAddr, length: usize, data: &Data<'_>) {
        self.stats.strays += 1;
        if !self.slots.is_silenced(data.index, data.uid) {
            self.strangers.tell_unknown(now, from, length);
        }
    }
}

impl Seat {
    pub fn player(&self) -> PlayerId {
        PlayerId { index: self.connection.index(), uid: self.connection.uid() }
    }
}
