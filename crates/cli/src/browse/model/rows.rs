//! The rows of the table: all known servers.

use super::Model;
use rallypoint_query::{
    ScannedServer,
    proto::{LobbyInfo, ServerInfo},
};
use rallypoint_wire::lobby::Transport;

/// A server.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub server: ScannedServer,
    /// The last pass that found it.
    pub(super) pass: u32,
    /// Whether the last scan found it; otherwise it is only a favourite.
    pub is_listed: bool,
}

impl Model {
    /// Applies an entry of a list. The server's own reply stays until it is probed again, so that nothing flickers.
    pub(super) fn apply_listed(&mut self, mut server: ScannedServer, is_listed: bool) {
        let pass = self.pass;
        match self.by_id.get(&server.id) {
            Some(&index) => {
                let row = &mut self.rows[index];
                if row.server.reply.is_some() {
                    let mut known = row.server.clone();
                    known.target_index = server.target_index;
                    known.info.lobby = server.info.lobby;
                    known.endpoints = server.endpoints;
                    server = known;
                }
                *row = Row { server, pass, is_listed };
            }
            None => {
                self.by_id.insert(server.id.clone(), self.rows.len());
                self.rows.push(Row { server, pass, is_listed });
            }
        }
    }

    /// Applies a server's own reply.
    pub(super) fn apply_reply(&mut self, server: ScannedServer) {
        let Some(&index) = self.by_id.get(&server.id) else { return self.apply_listed(server, true) };
        let row = &mut self.rows[index];
        row.server = ScannedServer { target_index: row.server.target_index, ..server };
        // A named server is in no list: its reply shows that it exists.
        if row.server.endpoints.is_empty() {
            row.pass = self.pass;
            row.is_listed = true;
        }
    }

    /// Adds the favourites, which are shown before anything else is known.
    pub(super) fn add_favourites(&mut self) {
        let favourites: Vec<_> = self.favourites.iter().map(|(id, name)| favourite(id, name)).collect();
        for server in favourites {
            self.apply_listed(server, false);
        }
    }

    /// Filters and sorts the rows. The selected server stays selected wherever it moves; if it is gone, the one at its position
    /// is selected.
    pub(super) fn arrange(&mut self) {
        let is_favourite: Vec<bool> = self.rows.iter().map(|row| self.favourites.contains(&row.server.id)).collect();
        let rows = &self.rows;
        let filter = &self.filter;
        let scope = self.scope;
        let is_in_scope = |row: &Row| scope.is_none_or(|scope| scope.contains(row));
        let is_shown = |&at: &usize| is_in_scope(&rows[at]) && filter.shows(&rows[at].server, is_favourite[at]);
        let mut shown: Vec<usize> = (0..rows.len()).filter(is_shown).collect();
        shown.sort_by_cached_key(|&at| self.column.key(&rows[at].server, is_favourite[at], self.most_first));
        self.shown = shown;
        let last = self.shown.len().saturating_sub(1);
        let position = self.selected().map_or(self.selected_at.min(last), |(position, _)| position);
        self.select(position);
    }

    pub(super) fn select(&mut self, position: usize) {
        let selected = self.shown.get(position).map(|&row| self.rows[row].server.id.clone());
        self.selected_at = position;
        if selected != self.selected {
            self.selected = selected;
            self.scroll = 0;
        }
    }
}

/// A favourite before it is found: a name and an address.
fn favourite(id: &str, name: &str) -> ScannedServer {
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
    ScannedServer {
        id: id.to_owned(),
        // Of no target.
        target_index: usize::MAX,
        target: id.to_owned(),
        address,
        protocol: None,
        info,
        reply: None,
        error: None,
        endpoints,
        list: None,
        list_name: None,
    }
}
