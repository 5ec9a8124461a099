//! The servers that are known, and those that are shown.

use super::Model;
use crate::ask::{output::record::Record, survey::Seen};
use rallypoint_query_proto::{LobbyInfo, ServerInfo};
use rallypoint_wire::lobby::Transport;

/// A server.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub seen: Seen,
    /// The look that found it last.
    pub(super) look: u32,
    /// Whether it was found anywhere; otherwise it is only remembered.
    pub is_listed: bool,
}

impl Row {
    pub fn record(&self) -> &Record {
        &self.seen.record
    }
}

impl Model {
    /// Takes over what a list says. What the server said itself stays until it is asked again: nothing flickers.
    pub(super) fn take(&mut self, mut seen: Seen, is_listed: bool) {
        let look = self.look;
        match self.by_id.get(&seen.id) {
            Some(&at) => {
                let row = &mut self.rows[at];
                if row.seen.record.answer.is_some() {
                    let (listed, mut known) = (seen.record.info, row.seen.record.clone());
                    known.info.lobby.clone_from(&listed.lobby);
                    known.endpoints = seen.record.endpoints;
                    seen.record = known;
                }
                *row = Row { seen, look, is_listed };
            }
            None => {
                self.by_id.insert(seen.id.clone(), self.rows.len());
                self.rows.push(Row { seen, look, is_listed });
            }
        }
    }

    /// Takes over what a server said itself.
    pub(super) fn take_answer(&mut self, seen: Seen) {
        match self.by_id.get(&seen.id) {
            Some(&at) => self.rows[at].seen.record = seen.record,
            None => return self.take(seen, true),
        }
        // A server that a person named is in no list, but it is there.
        if let Some(row) = self.by_id.get(&seen.id).map(|&at| &mut self.rows[at])
            && row.seen.record.endpoints.is_empty()
        {
            (row.look, row.is_listed) = (self.look, true);
        }
    }

    /// Favourites are shown before anything else is known.
    pub(super) fn remember_favourites(&mut self) {
        let remembered: Vec<_> = self.favourites.iter().map(|(id, name)| remembered(id, name)).collect();
        for seen in remembered {
            self.take(seen, false);
        }
    }

    /// Chooses and sorts. The chosen server stays chosen, wherever it goes; if it is gone, the one in its place is.
    pub(super) fn arrange(&mut self) {
        let is_favourite: Vec<bool> = self.rows.iter().map(|row| self.favourites.contains(&row.seen.id)).collect();
        let (rows, filter) = (&self.rows, &self.filter);
        let mut shown: Vec<usize> =
            (0..rows.len()).filter(|&at| filter.shows(&rows[at].seen.record, is_favourite[at])).collect();
        shown.sort_by_cached_key(|&at| self.column.key(&rows[at].seen.record, is_favourite[at], self.most_first));
        self.shown = shown;
        let last = self.shown.len().saturating_sub(1);
        let at = self.selected().map_or(self.selected_at.min(last), |(at, _)| at);
        self.select(at);
    }

    pub(super) fn select(&mut self, at: usize) {
        let selected = self.shown.get(at).map(|&row| self.rows[row].seen.id.clone());
        self.selected_at = at;
        if selected != self.selected {
            self.selected = selected;
            self.scroll = 0;
        }
    }
}

/// What is left of a favourite until it is found again: a name and an address.
fn remembered(id: &str, name: &str) -> Seen {
    let (scheme, address) = id.split_once("://").unwrap_or(("", id));
    let address = address.parse().ok();
    let transport = match scheme {
        "tcp" => Some(Transport::Tcp),
        "udp" => Some(Transport::Udp),
        _ => None,
    };
    let endpoints: Vec<_> = address.into_iter().collect();
    let lobby = |transport| LobbyInfo { transport, endpoints: endpoints.clone(), protocol_id: None, entries: vec![] };
    let info = ServerInfo {
        name: Some(name.to_owned()).filter(|name| !name.is_empty()),
        lobby: transport.map(lobby),
        ..ServerInfo::default()
    };
    let record = Record { address, info, endpoints, ..Record::named(id.to_owned()) };
    Seen { id: id.to_owned(), place: usize::MAX, record }
}
