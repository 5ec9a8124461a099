//! The open lists: which network opened each of them.
//!
//! Any UUID opens a list, so their number has to be bounded, and one network must not be able to use it up.

use crate::hash::{KeyedHash, KeyedMap, decrement};
use rallypoint_limit::Site;
use rallypoint_wire::lobby::ListId;

#[derive(Debug)]
pub(super) struct OpenLists {
    by_id: KeyedMap<ListId, OpenList>,
    /// Number of open lists per network that opened them. Lists that were restored after a restart are not charged.
    by_site: KeyedMap<Site, usize>,
    /// Open lists that count towards the cap: those that the operator has not named.
    unnamed: Vec<ListId>,
}

#[derive(Debug)]
struct OpenList {
    /// Position among those that are not named; `None` if it is.
    unnamed_at: Option<usize>,
    opener: Option<Site>,
}

/// Numbers of open lists that count towards the caps.
pub(crate) struct OpenCount {
    pub total: usize,
    /// Lists opened by one network.
    pub by_network: usize,
}

impl OpenLists {
    pub fn new(keyed: KeyedHash) -> Self {
        Self { by_id: keyed.map(), by_site: keyed.map(), unnamed: Vec::new() }
    }

    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Numbers of open lists, in total and of one network, not counting `without`.
    pub fn open_without(&self, site: Option<Site>, without: impl Iterator<Item = ListId>) -> OpenCount {
        let by_network = site.and_then(|site| self.by_site.get(&site)).copied().unwrap_or(0);
        let mut open = OpenCount { total: self.unnamed.len(), by_network };
        for list in without.filter_map(|id| self.by_id.get(&id)).filter(|list| list.unnamed_at.is_some()) {
            open.total -= 1;
            open.by_network -= usize::from(site.is_some() && list.opener == site);
        }
        open
    }

    /// Opens a list that is not open.
    pub fn open(&mut self, id: ListId, is_named: bool, opener: Option<Site>) {
        let opener = opener.filter(|_| !is_named);
        let unnamed_at = (!is_named).then_some(self.unnamed.len());
        if !is_named {
            self.unnamed.push(id);
        }
        if let Some(site) = opener {
            *self.by_site.entry(site).or_default() += 1;
        }
        self.by_id.insert(id, OpenList { unnamed_at, opener });
    }

    /// Closes a list that has no servers any more.
    pub fn close(&mut self, id: ListId) {
        let Some(OpenList { unnamed_at, opener }) = self.by_id.remove(&id) else { return };
        if let Some(site) = opener {
            decrement(&mut self.by_site, site);
        }
        if let Some(at) = unnamed_at {
            self.unnamed.swap_remove(at);
            if let Some(moved) = self.unnamed.get(at).and_then(|moved| self.by_id.get_mut(moved)) {
                moved.unnamed_at = Some(at);
            }
        }
    }

    /// The lists that count towards the cap.
    pub fn unnamed(&self) -> &[ListId] {
        &self.unnamed
    }

    /// Panics unless these are the open lists.
    #[cfg(any(test, feature = "invariants"))]
    pub fn check_invariants(&self, open: impl Iterator<Item = ListId>) {
        assert_eq!(open.filter(|id| self.by_id.contains_key(id)).count(), self.by_id.len(), "lists");
        let unnamed = || self.by_id.values().filter(|list| list.unnamed_at.is_some());
        assert_eq!(unnamed().count(), self.unnamed.len(), "lists that count");
        for (at, id) in self.unnamed.iter().enumerate() {
            assert_eq!(self.by_id.get(id).and_then(|list| list.unnamed_at), Some(at), "position of a list");
        }
        let opened = unnamed().filter(|list| list.opener.is_some()).count();
        assert_eq!(opened, self.by_site.values().sum::<usize>(), "openers");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    fn list(number: u8) -> ListId {
        ListId::from_bytes([number; 16])
    }

    #[test]
    fn lists_count_towards_the_network_that_opened_them_unless_they_are_named() {
        let site = |last: u8| Some(Site::of(IpAddr::from([203, 0, last, 1])));
        let mut lists = OpenLists::new(KeyedHash::new(7));
        for (number, is_named, opener) in
            [(1, false, site(1)), (2, true, site(1)), (3, false, site(2)), (4, false, None)]
        {
            lists.open(list(number), is_named, opener);
        }
        let count = |lists: &OpenLists, without: &[u8]| {
            let open = lists.open_without(site(1), without.iter().map(|number| list(*number)));
            (open.total, open.by_network)
        };
        assert_eq!((lists.len(), count(&lists, &[])), (4, (3, 1)));
        assert_eq!(count(&lists, &[1, 2, 9]), (2, 0), "a named list does not count, and one that is not open neither");
        lists.close(list(1));
        assert_eq!((lists.len(), count(&lists, &[])), (3, (2, 0)));
        lists.check_invariants([2, 3, 4].map(list).into_iter());
    }
}
