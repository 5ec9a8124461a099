//! Which lobby or list is shown, if not all of them.

use super::{Model, Row};
use rallypoint_query::list_names;
use rallypoint_wire::lobby::ListId;
use std::collections::BTreeSet;

/// One lobby, or one of its lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scope {
    target_index: usize,
    /// `None` for all lists of the lobby.
    list: Option<ListId>,
}

impl Scope {
    /// Whether a server belongs to it. Favourites that are in no list do not.
    pub fn contains(self, row: &Row) -> bool {
        let is_in_list = self.list.is_none() || row.server.list == self.list;
        row.is_listed && row.server.target_index == self.target_index && is_in_list
    }
}

impl Model {
    /// All rows of the lobby or list that is shown.
    pub fn rows_in_scope(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| self.scope.is_none_or(|scope| scope.contains(row)))
    }

    /// The names of what is shown: all lobbies, one, or one of its lists, as `lobby.example.org/gg2`.
    pub fn scope_name(&self) -> String {
        let name = |index: usize| self.lists.get(index).map_or("", |list| &*list.name);
        match self.scope {
            None => self.lists.iter().map(|list| &*list.name).collect::<Vec<_>>().join(", "),
            Some(Scope { target_index, list: None }) => name(target_index).to_owned(),
            Some(scope @ Scope { target_index, list: Some(list) }) => {
                let label = self.rows.iter().find(|row| scope.contains(row)).and_then(|row| row.server.list_label());
                let label = label.unwrap_or_else(|| list_names::short_name(list));
                format!("{}/{label}", name(target_index).trim_end_matches('/'))
            }
        }
    }

    /// Whether there is more than one lobby or list.
    pub fn can_switch(&self) -> bool {
        !self.scopes().is_empty()
    }

    /// Shows the next lobby or list alone, or the previous one; after the last one, all of them.
    pub(super) fn switch_scope(&mut self, forward: bool) {
        let scopes: Vec<_> = [None].into_iter().chain(self.scopes().into_iter().map(Some)).collect();
        let at = scopes.iter().position(|scope| *scope == self.scope).unwrap_or(0);
        let step = if forward { 1 } else { scopes.len() - 1 };
        self.scope = scopes[(at + step) % scopes.len()];
        self.is_dirty = true;
    }

    /// Lobbies and lists that can be shown alone, in their order.
    fn scopes(&self) -> BTreeSet<Scope> {
        let mut scopes = BTreeSet::new();
        for target_index in 0..self.lists.len() {
            if self.lists.len() > 1 {
                scopes.insert(Scope { target_index, list: None });
            }
            let rows = self.rows.iter().filter(|row| row.is_listed && row.server.target_index == target_index);
            let lists: BTreeSet<_> = rows.filter_map(|row| row.server.list).collect();
            if lists.len() > 1 {
                scopes.extend(lists.into_iter().map(|list| Scope { target_index, list: Some(list) }));
            }
        }
        scopes
    }
}
