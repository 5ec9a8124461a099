//! What the operator decides: the bans of the configuration, and those beside them that change while the lobby runs.

use super::Registry;
use crate::{BanList, PublicId, entry::Addr};
use rallypoint_wire::lobby::Transport;
use std::{net::IpAddr, sync::Arc, time::Instant};

/// A server that may be banned: as much as is known of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Suspect<'a> {
    pub ip: IpAddr,
    pub name: Option<&'a [u8]>,
    pub id: Option<PublicId>,
    pub place: Option<(Addr, Transport)>,
}

impl Registry {
    /// Bans beside those of the configuration, which stay when that changes. Servers that are no longer welcome go at once;
    /// where there are many thousands, the next [`handle_timeout`](Self::handle_timeout)s go on with it.
    pub fn set_admin_bans(&mut self, now: Instant, bans: BanList) {
        self.admin_bans = bans;
        self.begin_review(now);
    }

    pub(super) fn is_address_banned(&self, now: Instant, ip: IpAddr) -> bool {
        self.all_bans().any(|bans| bans.by_address(now, ip).is_some())
    }

    pub(super) fn is_name_banned(&self, now: Instant, name: &[u8]) -> bool {
        self.all_bans().any(|bans| bans.by_name(now, name).is_some())
    }

    pub(super) fn is_server_banned(&self, now: Instant, id: PublicId) -> bool {
        self.all_bans().any(|bans| bans.by_server(now, id).is_some())
    }

    pub(super) fn is_place_banned(&self, now: Instant, (addr, transport): (Addr, Transport)) -> bool {
        self.all_bans().any(|bans| bans.by_endpoint(now, addr.into(), transport).is_some())
    }

    /// Why somebody is banned, if a ban says so.
    pub(super) fn ban_reason(&self, now: Instant, suspect: Suspect<'_>) -> Option<Arc<str>> {
        let Suspect { ip, name, id, place } = suspect;
        let reason = |bans: &BanList| {
            let known = bans.by_address(now, ip).or_else(|| bans.by_name(now, name?));
            let known = known.or_else(|| bans.by_server(now, id?));
            let known =
                known.or_else(|| place.and_then(|(addr, transport)| bans.by_endpoint(now, addr.into(), transport)));
            known.map(|ban| Arc::clone(&ban.reason))
        };
        self.all_bans().filter_map(reason).find(|reason| !reason.is_empty())
    }

    fn all_bans(&self) -> impl Iterator<Item = &BanList> {
        [&self.config.bans, &self.admin_bans].into_iter()
    }
}
