//! The list entry of a server: adding, updating and removing it.

use super::{Event, Registry};
use crate::{
    UnlistReason,
    entry::{Addr, EndpointState, Family, PerFamily},
    index::SlotIndex,
    listed_server::InternalAddrs,
};
use rallypoint_wire::lobby::{Endpoint, ListBlock, Registration};
use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::Arc,
    time::Instant,
};

impl Registry {
    /// Updates the list to the state of an entry, and the entry to the data of a new registration. Returns whether anything
    /// that is shown has changed. The endpoints of `new` are ignored. `reason` is why the server leaves the list, if it does.
    pub(super) fn update_list(
        &mut self,
        now: Instant,
        slot: SlotIndex,
        new: Option<ListBlock<'_>>,
        reason: UnlistReason,
    ) -> bool {
        let (v4, v6) = self.shown_endpoints(slot);
        let internal = self.internal_addrs(slot);
        let cold = self.entries.slots.cold_mut(slot);
        let shown = cold.server.block();
        let is_moved = internal != cold.server.internal;
        if new.is_some() || (shown.v4, shown.v6) != (v4, v6) || is_moved {
            let buffer = &mut self.lists.block;
            buffer.clear();
            ListBlock { v4, v6, ..new.unwrap_or(shown) }.emit(buffer);
            if **buffer != *cold.server.block || is_moved {
                let before = cold.server.memory();
                let server = cold.server.updated(cold.server.list_id, buffer);
                cold.server = Arc::new(server.with_internal(internal));
                self.recharge_memory(slot, before);
                if new.is_some() {
                    // The last registration counts: an earlier one of the other family is not a refresh of it (L8).
                    self.entries.slots.hot_mut(slot).fingerprints = PerFamily::default();
                }
            }
        }
        if v4.is_none() && v6.is_none() {
            let was_listed = self.entries.slots.cold(slot).position.is_some();
            self.unlist(now, slot, reason);
            return was_listed;
        }
        let cold = self.entries.slots.cold_mut(slot);
        let server = cold.server.clone();
        match cold.position {
            None => {
                cold.position = Some(self.lists.builder.insert(slot, server.clone()));
                self.lists.listed += 1;
                self.emit(now, Event::Listed(server));
                self.note_change(slot);
                true
            }
            Some(position) if !Arc::ptr_eq(self.lists.builder.get(position), &server) => {
                self.lists.builder.replace(position, server.clone());
                self.emit(now, Event::Changed(server));
                self.note_change(slot);
                true
            }
            Some(_) => false,
        }
    }

    /// Removes a server from the list, if it is listed.
    pub(super) fn unlist(&mut self, now: Instant, slot: SlotIndex, reason: UnlistReason) {
        let Some(position) = self.entries.slots.cold_mut(slot).position.take() else { return };
        let shown =
            self.lists.builder.remove(position, |slot, moved| self.entries.slots.cold_mut(slot).position = Some(moved));
        self.lists.listed -= 1;
        self.lists.unlisted[reason as usize] += 1;
        self.emit(now, Event::Unlisted(shown, reason));
        self.note_removal(now, slot, reason);
    }

    /// The endpoints of an entry that the list shows.
    pub(super) fn shown_endpoints(&self, slot: SlotIndex) -> (Option<Endpoint<Ipv4Addr>>, Option<Endpoint<Ipv6Addr>>) {
        let hot = self.entries.slots.hot(slot);
        let cold = self.entries.slots.cold(slot);
        let external = |family: Family| {
            let is_listed = hot.states[family] == EndpointState::Listed;
            cold.endpoints[family].filter(|_| is_listed).map(|endpoint| endpoint.external)
        };
        let v4 = external(Family::V4).and_then(|Addr { ip, port }| match ip {
            IpAddr::V4(ip) => Some(Endpoint { ip, port }),
            IpAddr::V6(_) => None,
        });
        let v6 = external(Family::V6).and_then(|Addr { ip, port }| match ip {
            IpAddr::V6(ip) => Some(Endpoint { ip, port }),
            IpAddr::V4(_) => None,
        });
        (v4, v6)
    }

    /// The addresses, before the address map, of those listed endpoints that the map has changed.
    pub(super) fn internal_addrs(&self, slot: SlotIndex) -> Option<Box<InternalAddrs>> {
        let hot = self.entries.slots.hot(slot);
        let cold = self.entries.slots.cold(slot);
        let internal = PerFamily::from_fn(|family| {
            let listed = cold.endpoints[family].filter(|_| hot.states[family] == EndpointState::Listed);
            listed.filter(|endpoint| endpoint.internal != endpoint.external).map(|endpoint| endpoint.internal)
        });
        (internal != InternalAddrs::default()).then(|| Box::new(internal))
    }
}

/// The block of a registered server in the list.
pub(super) fn block_of<'a>(
    new: &Registration<'a>,
    v4: Option<Endpoint<Ipv4Addr>>,
    v6: Option<Endpoint<Ipv6Addr>>,
) -> ListBlock<'a> {
    ListBlock { transport: new.transport(), v4, v6, occupancy: new.occupancy(), table: new.table() }
}
