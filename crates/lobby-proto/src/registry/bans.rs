//! Bans: those of the configuration, and those that the operator adds while the registry runs.

use super::Registry;
use crate::{Ban, BanList, bans::Candidate};
use std::{sync::Arc, time::Instant};

impl Registry {
    /// Sets the bans in addition to those of the configuration; they stay when the configuration changes. Servers that are
    /// now banned are removed at once; if there are many thousands of servers, the next calls of
    /// [`handle_timeout`](Self::handle_timeout) continue with it.
    pub fn set_admin_bans(&mut self, now: Instant, bans: BanList) {
        self.admission.admin_bans = bans;
        self.begin_review(now);
    }

    /// The ban that applies to a server, as far as it is known; one with a reason, if there are several.
    pub(super) fn ban_for(&self, now: Instant, candidate: &Candidate<'_>) -> Option<&Ban> {
        let lists = [&self.config.bans, &self.admission.admin_bans].into_iter();
        lists.filter_map(|bans| bans.ban_for(now, candidate)).min_by_key(|ban| ban.reason.is_empty())
    }

    /// The operator's reason for a ban, if there is one.
    pub(super) fn ban_reason(&self, now: Instant, candidate: &Candidate<'_>) -> Option<Arc<str>> {
        let ban = self.ban_for(now, candidate)?;
        (!ban.reason.is_empty()).then(|| Arc::clone(&ban.reason))
    }
}
