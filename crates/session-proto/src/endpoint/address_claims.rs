//! Sessions whose newest message comes from the address of another session (S31, W54).
//!
//! A source address can be forged, so such a message must not cut the other session off. But it is also what follows when a NAT
//! gives its players each other's ports, or a player the port of one who has vanished. Only the sender of the message can know
//! the rand, or seal the message, so the sender has left its address: nothing is sent there from then on. What is open is
//! whether the other player, the owner, is still at the claimed address:
//!
//! * If messages of the owner come from elsewhere as well, it is not, and the claim is granted at once.
//! * Otherwise the owner is asked to resend a message. Its answer proves that it is there, and refutes the claim.
//! * If there is no answer for one to three seconds, the claim is granted. An owner that turns up later is found by its next
//!   message, as with every change of address. A plain session would take messages of the claimant for its own, so it is given
//!   until it was silent for five seconds, and then ends: its client logs in again.
//!
//! Meanwhile nothing else is sent to the claimed address. An owner that has refuted a claim is immune to that for a while: a
//! forger can cost it one round trip, and no more.

use super::Endpoint;
use crate::{DisconnectReason, PlayerId};
use rallypoint_wire::session::SlotIndex;
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

/// Time after a refuted claim for which another claim does not interrupt a session.
const IMMUNITY: Duration = Duration::from_secs(10);

/// Number of further addresses from which control datagrams of a session are accepted (W53).
const MAX_ALTERNATES: usize = 16;

/// Claims of a session to the addresses of others, and of others to its address.
#[derive(Debug, Default)]
pub(super) struct AddressClaims {
    /// The address of another session that this one's newest message came from.
    claimed: Option<SocketAddr>,
    /// The session that claims the address of this one.
    contested_by: Option<PlayerId>,
    immune_until: Option<Instant>,
    /// Further addresses that this session sends from, the oldest first.
    alternates: Vec<SocketAddr>,
}

impl AddressClaims {
    /// Whether it is uncertain which address the session has.
    #[inline]
    pub fn are_pending(&self) -> bool {
        self.contested_by.is_some() || self.claimed.is_some()
    }
}

impl Endpoint {
    /// Data of a session came from its current address. `is_newest`: its number is above all received before.
    pub(super) fn confirm_address(&mut self, now: Instant, index: SlotIndex, is_newest: bool) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        slot.connection.on_data_from_peer(now);
        if !slot.claims.are_pending() {
            return;
        }
        if let Some(claimant) = slot.claims.contested_by.take() {
            slot.claims.immune_until = Some(now + IMMUNITY);
            if slot.claims.claimed.is_none() {
                slot.connection.confirm_address();
            }
            self.reject_claim(claimant);
        }
        // An old message may have been under way since before the session left this address.
        if is_newest {
            self.withdraw_claim(index);
        }
    }

    /// The newest message of a session came from an address that is not its own.
    pub(super) fn handle_new_address(&mut self, now: Instant, index: SlotIndex, from: SocketAddr) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        if slot.connection.stays_at_peer(now) {
            return self.add_alternate(index, from);
        }
        match self.addresses.owners.get(&from).copied() {
            Some(owner) if owner != index => self.claim_address(now, index, owner, from),
            _ => self.migrate(now, index, from),
        }
    }

    /// The owner of an address has not confirmed that it is there.
    pub(super) fn vacate_address(&mut self, now: Instant, owner: SlotIndex) {
        let Some(slot) = self.slots.get_mut(owner) else { return };
        if !slot.connection.is_encrypted() {
            return slot.connection.end(DisconnectReason::TimedOut);
        }
        slot.connection.leave_address(now);
        let addr = slot.connection.peer();
        self.release_address(now, owner, addr);
    }

    /// A session does not have this address any more: a claim to it is granted.
    pub(super) fn release_address(&mut self, now: Instant, owner: SlotIndex, addr: SocketAddr) {
        if self.addresses.owners.get(&addr) == Some(&owner) {
            self.addresses.owners.remove(&addr);
        }
        let Some(slot) = self.slots.get_mut(owner) else { return };
        let Some(claimant) = slot.claims.contested_by.take() else { return };
        self.grant_claim(now, claimant, addr);
    }

    /// Moves a session to the address that it claims.
    pub(super) fn grant_claim(&mut self, now: Instant, claimant: PlayerId, addr: SocketAddr) {
        if self.slots.of_mut(claimant).is_some_and(|slot| slot.claims.claimed == Some(addr)) {
            self.migrate(now, claimant.index, addr);
            self.update_slot(claimant.index);
        }
    }

    /// Withdraws the claim of a session, if it has one.
    pub(super) fn withdraw_claim(&mut self, claimant: SlotIndex) {
        let Some(slot) = self.slots.get_mut(claimant) else { return };
        let Some(addr) = slot.claims.claimed.take() else { return };
        let player = slot.player();
        self.return_to_address(claimant);
        let Some(&owner) = self.addresses.owners.get(&addr) else { return };
        if let Some(slot) = self.slots.get_mut(owner)
            && slot.claims.contested_by == Some(player)
        {
            slot.claims.contested_by = None;
            slot.connection.confirm_address();
            self.update_slot(owner);
        }
    }

    /// Ends the contest for the address of a session. Returns the session that claims the address.
    pub(super) fn take_contest(&mut self, index: SlotIndex) -> Option<PlayerId> {
        self.slots.get_mut(index)?.claims.contested_by.take()
    }

    /// Forgets the further addresses of a session that has ended.
    pub(super) fn remove_alternates(&mut self, index: SlotIndex, claims: &AddressClaims) {
        for addr in &claims.alternates {
            if self.addresses.alternates.get(addr) == Some(&index) {
                self.addresses.alternates.remove(addr);
            }
        }
    }

    fn claim_address(&mut self, now: Instant, claimant: SlotIndex, owner: SlotIndex, addr: SocketAddr) {
        let Some(slot) = self.slots.get(claimant) else { return };
        let player = slot.player();
        let has_proven_it = slot.connection.has_proven(now, addr);
        if slot.claims.claimed != Some(addr) {
            self.withdraw_claim(claimant);
        }
        let Some(slot) = self.slots.get_mut(owner) else { return };
        // The owner sends from elsewhere, or has never shown that it is at the claimed address, while the claimant has.
        if slot.claims.claimed.is_some() || (has_proven_it && slot.connection.is_unvalidated()) {
            slot.connection.leave_address(now);
            let former = slot.claims.contested_by.take();
            self.addresses.owners.remove(&addr);
            self.update_slot(owner);
            self.migrate(now, claimant, addr);
            if let Some(former) = former.filter(|former| *former != player) {
                self.reject_claim(former);
            }
            return;
        }
        let is_immune = slot.claims.immune_until.is_some_and(|until| now < until);
        slot.connection.contest_address(now, !is_immune);
        let former = slot.claims.contested_by.replace(player);
        self.update_slot(owner);
        if let Some(former) = former.filter(|former| *former != player) {
            self.reject_claim(former);
        }
        let Some(slot) = self.slots.get_mut(claimant) else { return };
        slot.claims.claimed = Some(addr);
        let left = slot.connection.peer();
        slot.connection.leave_address(now);
        // Another session may have been waiting for the address that this one has evidently left.
        if slot.claims.contested_by.is_some() {
            self.release_address(now, claimant, left);
        }
    }

    /// Another session has the address that this player claims.
    pub(super) fn reject_claim(&mut self, claimant: PlayerId) {
        let Some(slot) = self.slots.of_mut(claimant) else { return };
        if slot.claims.claimed.take().is_some() {
            self.return_to_address(claimant.index);
        }
    }

    /// Lets a session without a claim continue at its last address, unless another one has that by now: then it is found by its
    /// next message.
    fn return_to_address(&mut self, index: SlotIndex) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        if self.addresses.owners.get(&slot.connection.peer()) == Some(&index) {
            slot.connection.confirm_address();
            self.update_slot(index);
        }
    }

    /// Accepts control datagrams of a session from a further address.
    pub(super) fn add_alternate(&mut self, index: SlotIndex, addr: SocketAddr) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        let alternates = &mut slot.claims.alternates;
        if !alternates.contains(&addr) {
            let oldest = (alternates.len() >= MAX_ALTERNATES).then(|| alternates.remove(0));
            alternates.push(addr);
            if let Some(oldest) = oldest.filter(|oldest| self.addresses.alternates.get(oldest) == Some(&index)) {
                self.addresses.alternates.remove(&oldest);
            }
        }
        // Another session may have claimed the address in between: the newest message counts.
        self.addresses.alternates.insert(addr, index);
    }
}
