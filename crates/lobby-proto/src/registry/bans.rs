//! Bans: those of the configuration, and those that the operator adds while the registry runs.

use super::Registry;
use crate::{BanList, PublicId, entry::Addr};
use rallypoint_wire::lobby::Transport;
use std::{net::IpAddr, sync::Arc, time::Instant};

/// A server that may be banned, as far as it is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct BanCandidate<'a> {
    pub ip: IpAddr,
    pub name: Option<&'a [u8]>,
    pub id: Option<PublicId>,
    pub endpoint: Option<(Addr, Transport)>,
}

impl Registry {
    /// Sets the bans in addition to those of the configuration; they stay when the configuration changes. Servers that are
    /// now banned are removed at once; if there are many thousands of servers, the next calls of
    /// [`handle_timeout`](Self::handle_timeout) continue with it.
    pub fn set_admin_bans(&mut self, now: Instant, bans: BanList) {
        self.admin_bans = bans;
        self.begin_review(now);
    }

    pub(super) fn is_address_banned(&self, now: Instant, ip: IpAddr) -> bool {
        self.ban_lists().any(|bans| bans.by_address(now, ip).is_some())
    }

    pub(super) fn is_name_banned(&self, now: Instant, name: &[u8]) -> bool {
        self.ban_lists().any(|bans| bans.by_name(now, name).is_some())
    }

    pub(super) fn is_server_banned(&self, now: Instant, id: PublicId) -> bool {
        self.ban_lists().any(|bans| bans.by_server(now, id).is_some())
    }

    pub(super) fn is_endpoint_banned(&self, now: Instant, (addr, transport): (Addr, Transport)) -> bool {
        self.ban_lists().any(|bans| bans.by_endpoint(now, addr.into(), transport).is_some())
    }

    /// The operator's reason for a ban, if there is one.
    pub(super) fn ban_reason(&self, now: Instant, candidate: BanCandidate<'_>) -> Option<Arc<str>> {
        let BanCandidate { ip, name, id, endpoint } = candidate;
        let reason = |bans: &BanList| {
            let ban = bans
                .by_address(now, ip)
                .or_else(|| bans.by_name(now, name?))
                .or_else(|| bans.by_server(now, id?))
                .or_else(|| endpoint.and_then(|(addr, transport)| bans.by_endpoint(now, addr.into(), transport)));
            ban.map(|ban| Arc::clone(&ban.reason))
        };
        self.ban_lists().filter_map(reason).find(|reason| !reason.is_empty())
    }

    fn ban_lists(&self) -> impl Iterator<Item = &BanList> {
        [&self.config.bans, &self.admin_bans].into_iter()
    }
}
