//! What the operator does while the lobby runs: bans beside those of the configuration, and servers taken off the list.

use super::Registry;
use crate::{Bans, Gone, PublicId, addresses::canonical, entry::Addr, hash::KeyedMap};
use rallypoint_wire::lobby::{ServerId, Transport};
use std::{
    net::{IpAddr, SocketAddr},
    num::NonZeroU16,
    sync::Arc,
    time::Instant,
};

/// How many servers can be kept off the list at once. If there are more, those whose time is nearly over may come back.
const MAX_KEPT_OFF: usize = 10_000;

/// Servers that the operator has taken off the list, until when: by ID, and by where they were, because a server that is
/// started again has another ID.
#[derive(Debug)]
pub(super) struct KeptOff {
    ids: KeyedMap<ServerId, Instant>,
    places: KeyedMap<(Addr, Transport), Instant>,
}

impl Registry {
    /// Bans beside those of the configuration, which stay when that changes. Servers that are no longer welcome go at once;
    /// where there are many thousands, the next [`handle_timeout`](Self::handle_timeout)s go on with it.
    pub fn set_more_bans(&mut self, now: Instant, bans: Bans) {
        self.more_bans = bans;
        self.begin_review(now);
    }

    /// Takes a server off the list, and keeps it off for a while: the one with this ID, which is listed there. Says whether
    /// it was there.
    pub fn unlist_server(&mut self, now: Instant, id: PublicId, at: (SocketAddr, Transport), until: Instant) -> bool {
        let (addr, transport) = at;
        let Some(port) = NonZeroU16::new(addr.port()) else { return false };
        let slot = self.slots.at_endpoint((Addr { ip: canonical(addr.ip()), port }, transport));
        let Some(slot) = slot.filter(|&slot| self.slots.cold(slot).listing.public_id() == id) else { return false };
        let cold = self.slots.cold(slot);
        let places = cold.endpoints.iter().flatten().map(|endpoint| (endpoint.outside, cold.transport));
        self.kept_off.insert(now, self.slots.hot(slot).id, places, until);
        self.remove(now, slot, Gone::Banned);
        true
    }

    pub(super) fn is_kept_off(&self, now: Instant, id: ServerId, place: (Addr, Transport)) -> bool {
        self.is_id_kept_off(now, id) || self.is_place_kept_off(now, place)
    }

    pub(super) fn is_id_kept_off(&self, now: Instant, id: ServerId) -> bool {
        self.kept_off.ids.get(&id).is_some_and(|until| now < *until)
    }

    pub(super) fn is_place_kept_off(&self, now: Instant, place: (Addr, Transport)) -> bool {
        self.kept_off.places.get(&place).is_some_and(|until| now < *until)
    }

    pub(super) fn is_address_banned(&self, now: Instant, ip: IpAddr) -> bool {
        [&self.config.bans, &self.more_bans].iter().any(|bans| bans.of_address(now, ip).is_some())
    }

    /// Why somebody is banned, if the ban says so.
    pub(super) fn ban_reason(&self, now: Instant, ip: IpAddr, name: Option<&[u8]>) -> Option<Arc<str>> {
        [&self.config.bans, &self.more_bans].iter().find_map(|bans| bans.reason(now, ip, name))
    }

    pub(super) fn is_name_banned(&self, now: Instant, name: &[u8]) -> bool {
        [&self.config.bans, &self.more_bans].iter().any(|bans| bans.of_name(now, name).is_some())
    }
}

impl KeptOff {
    pub fn new(keyed: crate::hash::Keyed) -> Self {
        Self { ids: keyed.map(), places: keyed.map() }
    }

    fn insert(&mut self, now: Instant, id: ServerId, places: impl Iterator<Item = (Addr, Transport)>, until: Instant) {
        make_room(&mut self.ids, now);
        self.ids.insert(id, until);
        for place in places {
            make_room(&mut self.places, now);
            self.places.insert(place, until);
        }
    }
}

/// Forgets what is over, and what is over next if that is not enough.
fn make_room<K: Copy + Eq + std::hash::Hash>(kept: &mut KeyedMap<K, Instant>, now: Instant) {
    kept.retain(|_, until| now < *until);
    if kept.len() >= MAX_KEPT_OFF
        && let Some(next) = kept.iter().min_by_key(|(_, until)| **until).map(|(key, _)| *key)
    {
        kept.remove(&next);
    }
}
