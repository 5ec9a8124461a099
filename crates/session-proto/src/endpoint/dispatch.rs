//! Which datagram belongs to which connection, and what follows from it.

use super::{Endpoint, MAX_EVENTS, PlayerSlot};
use crate::{
    DisconnectReason, ServerEvent,
    connection::{ConnectionEvent, DataDisposition, Protection},
    session::Unread,
};
use rallypoint_wire::session::{Control, MessageNumber, Rand, SealInput, SlotIndex, Uid};
use std::{collections::VecDeque, net::SocketAddr, time::Instant};

/// A data datagram, plain or encrypted.
pub(super) struct Data<'a> {
    pub number: MessageNumber,
    pub index: SlotIndex,
    pub uid: Uid,
    /// The rand of a plain datagram.
    pub rand: Option<Rand>,
    /// The nonce and associated data of an encrypted datagram.
    pub seal_input: Option<SealInput>,
    pub bytes: &'a [u8],
}

impl Data<'_> {
    /// Whether the rand of a plain session is right. In an encrypted session the seal decides, later.
    pub fn has_right_rand(&self, protection: &Protection) -> bool {
        match (protection, self.rand) {
            (Protection::Plain(expected), Some(rand)) => *expected == rand,
            (Protection::Sealed { .. }, None) => true,
            _ => false,
        }
    }
}

/// An event of a connection that concerns more than its slot.
enum SlotChange {
    /// The hello of a player has arrived.
    Hello,
    AddressUnconfirmed,
    Closed(DisconnectReason),
}

impl Endpoint {
    /// Updates the queues after a change to a connection: see [`PlayerSlot::update`](super::PlayerSlot::update).
    pub(super) fn update_slot(&mut self, index: SlotIndex) {
        if let Some(slot) = self.slots.get_mut(index) {
            slot.update(index, &mut self.ready, &mut self.memory);
        }
    }

    /// Turns the events of a connection into events of the endpoint.
    pub(super) fn collect_events(&mut self, now: Instant, index: SlotIndex) {
        if let Some(slot) = self.slots.get_mut(index)
            && let Some(change) = collect(slot, &mut self.events)
        {
            self.handle_change(now, index, change);
        }
    }

    fn handle_change(&mut self, now: Instant, index: SlotIndex, change: SlotChange) {
        match change {
            SlotChange::Hello => {
                self.handle_hello(now, index);
                self.update_slot(index);
                self.collect_events(now, index);
            }
            SlotChange::AddressUnconfirmed => {
                self.vacate_address(now, index);
                self.collect_events(now, index);
            }
            SlotChange::Closed(reason) => self.free_slot(now, index, reason),
        }
    }

    fn free_slot(&mut self, now: Instant, index: SlotIndex, reason: DisconnectReason) {
        self.withdraw_claim(index);
        let claimant = self.take_contest(index);
        let Some(slot) = self.slots.remove(index) else { return };
        let player = slot.player();
        self.memory.on_removed(&slot);
        self.count_fault(&reason);
        self.deadlines.set(index, None);
        let addr = slot.connection.peer();
        if self.addresses.owners.get(&addr) == Some(&index) {
            self.addresses.owners.remove(&addr);
        }
        self.remove_alternates(index, &slot.claims);
        self.addresses.forget_moved(index);
        if let Some(claimant) = claimant {
            self.grant_claim(now, claimant, addr);
        }
        // A client that timed out or was replaced and still sends is told that its session is gone.
        let is_silenced = matches!(
            reason,
            DisconnectReason::Closed
                | DisconnectReason::ClosedByPeer(_)
                | DisconnectReason::NumbersExhausted
                | DisconnectReason::AckTimeout
                | DisconnectReason::FalseAcks
                | DisconnectReason::Channels(_)
        );
        self.allocator.release(now, index, is_silenced.then_some(player.uid));
        let PlayerSlot { connection, session, new, is_requested, has_message_event, .. } = *slot;
        // A player who was never accepted has not joined, unless the application knows of the request.
        if new.is_some() && !is_requested {
            return;
        }
        let Self { memory, events, .. } = self;
        let Some(unread) = Unread::new(connection, session, &reason) else {
            events.push_back(ServerEvent::Disconnected(player, reason));
            return;
        };
        if !has_message_event {
            events.push_back(ServerEvent::Message(player));
        }
        memory.departed.insert(player, reason, unread, |player, reason| {
            events.push_back(ServerEvent::Disconnected(player, reason));
        });
    }

    pub(super) fn handle_data(&mut self, now: Instant, from: SocketAddr, length: usize, data: &Data<'_>) {
        let allowance = self.memory.allowance();
        let Some(slot) = self.slots.get_mut(data.index) else {
            return self.handle_first_data(now, from, length, data);
        };
        if slot.connection.uid() != data.uid {
            return self.handle_first_data(now, from, length, data);
        }
        if !data.has_right_rand(slot.connection.protection()) {
            self.stats.strays += 1;
            return;
        }
        slot.connection.count_received(length);
        let disposition =
            slot.connection.handle_data(now, data.number, data.bytes, data.seal_input.as_ref(), allowance);
        let is_newest = disposition == DataDisposition::Newest;
        let is_at_peer = slot.connection.is_at(from);
        // No other slot is concerned, as nearly always: then this one is looked up only once.
        if is_at_peer && !slot.claims.are_pending() && disposition != DataDisposition::Unproven {
            slot.connection.on_data_from_peer(now);
            if disposition != DataDisposition::Duplicate {
                slot.connection.grant_credit(length);
            }
            slot.update(data.index, &mut self.ready, &mut self.memory);
            if let Some(change) = collect(slot, &mut self.events) {
                self.handle_change(now, data.index, change);
            }
            return;
        }
        match disposition {
            DataDisposition::Unproven => {}
            // A duplicate may be the answer of an owner that was asked whether it is there (W54).
            _ if is_at_peer => self.confirm_address(now, data.index, is_newest),
            _ if is_newest => self.handle_new_address(now, data.index, from),
            _ => {}
        }
        if matches!(disposition, DataDisposition::Newest | DataDisposition::New) {
            self.grant_credit(data.index, from, length);
        }
        self.update_slot(data.index);
        self.collect_events(now, data.index);
    }

    /// Lets an unvalidated address be sent a multiple of what came from it (S31).
    fn grant_credit(&mut self, index: SlotIndex, from: SocketAddr, length: usize) {
        if let Some(slot) = self.slots.get_mut(index)
            && slot.connection.peer() == from
        {
            slot.connection.grant_credit(length);
        }
    }

    /// Moves a session to the address that its newest message came from (S31).
    pub(super) fn migrate(&mut self, now: Instant, index: SlotIndex, to: SocketAddr) {
        self.withdraw_claim(index);
        let Some(slot) = self.slots.get_mut(index) else { return };
        let old = slot.connection.peer();
        let validated = slot.connection.validated_peer();
        let is_same_host = slot.connection.migrate(now, to, self.rng.u64());
        let alternates = slot.connection.alternates(now);
        let player = slot.player();
        let is_known = slot.new.is_none();
        self.addresses.owners.insert(to, index);
        if is_known && self.events.len() < MAX_EVENTS {
            self.events.push_back(ServerEvent::Moved(player, to));
        }
        if old != to {
            self.release_address(now, index, old);
        }
        if is_same_host {
            self.addresses.on_moved(now, index, to.ip());
        } else {
            self.addresses.forget_moved(index);
        }
        if alternates {
            self.add_alternate(index, validated);
            self.add_alternate(index, old);
        }
    }

    /// Handles a control datagram, or a disconnect if `control` is `None`.
    pub(super) fn handle_control(
        &mut self,
        now: Instant,
        from: SocketAddr,
        length: usize,
        control: Option<Control<'_>>,
    ) {
        let index = self.addresses.session_at(now, from);
        let slot = index.and_then(|index| self.slots.get_mut(index));
        // While it is uncertain which session is at an address, its control datagrams belong to none (W54).
        let Some(slot) = slot.filter(|slot| !slot.connection.is_held()) else {
            self.stats.strays += 1;
            return;
        };
        let connection = &mut slot.connection;
        let index = connection.index();
        connection.count_received(length);
        if connection.is_at(from) {
            connection.grant_credit(length);
        }
        match control {
            Some(Control::Ack(numbers)) => {
                connection.set_receive_delay(self.receive_delay);
                connection.handle_ack(now, numbers);
            }
            Some(Control::Resend(numbers)) => connection.handle_resend_request(now, numbers),
            Some(Control::Keepalive) => connection.handle_keepalive(now),
            Some(Control::KeepaliveAck) => connection.handle_keepalive_ack(now),
            None => connection.handle_disconnect(now, ""),
        }
        slot.update(index, &mut self.ready, &mut self.memory);
        if let Some(change) = collect(slot, &mut self.events) {
            self.handle_change(now, index, change);
        }
    }

    /// Handles data of a session that does not exist: the reply tells a client at once that the server has restarted (S32).
    pub(super) fn handle_unknown_session(&mut self, now: Instant, from: SocketAddr, length: usize, data: &Data<'_>) {
        self.stats.strays += 1;
        if !self.allocator.is_silenced(now, data.index, data.uid) {
            self.stateless.reject_unknown_session(now, from, length);
        }
    }
}

/// Turns the events of a connection into events of the endpoint, up to one that concerns more than the slot.
#[inline]
fn collect(slot: &mut PlayerSlot, events: &mut VecDeque<ServerEvent>) -> Option<SlotChange> {
    while let Some(event) = slot.connection.poll_event() {
        match event {
            ConnectionEvent::Readable if slot.session.is_read() => slot.raise_message(events),
            ConnectionEvent::Readable if slot.session.is_awaiting_hello() => return Some(SlotChange::Hello),
            ConnectionEvent::Readable => {}
            // A queue above the connection has room or not.
            ConnectionEvent::Writable if !slot.session.is_plain() => {}
            ConnectionEvent::Writable => slot.raise_writable(events),
            // This happens only if events are not polled at all.
            ConnectionEvent::Closing if events.len() >= MAX_EVENTS || slot.new.is_some() => {}
            ConnectionEvent::Closing => events.push_back(ServerEvent::Closing(slot.player())),
            ConnectionEvent::AddressUnconfirmed => return Some(SlotChange::AddressUnconfirmed),
            ConnectionEvent::Closed(reason) => return Some(SlotChange::Closed(reason)),
        }
    }
    None
}
