//! Which servers, in which order, and how many of them: the same parameters for the page and for the API.

mod parse;
mod sort;
#[cfg(test)]
mod tests;

pub use parse::{BadParameter, Defaults, MOST_ROWS};
pub use sort::{Column, Sort};

use crate::book::{Row, Snapshot, Verified};
use rallypoint_lobby_proto::PublicId;
use rallypoint_wire::lobby::LobbyId;
use std::{fmt, sync::Arc};

/// Which servers are wanted. The default is all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Words that all have to be in the name, map, game or version.
    pub q: Option<String>,
    /// Only this lobby.
    pub lobby: Option<LobbyId>,
    /// Only this game: its short or its long name.
    pub game: Option<String>,
    /// Only this map.
    pub map: Option<String>,
    /// Only this version.
    pub version: Option<String>,
    /// Only servers where somebody plays.
    pub not_empty: bool,
    /// Only servers with a free place.
    pub not_full: bool,
    /// Only servers that need no password.
    pub no_password: bool,
    /// Only servers that can be reached by IPv4 and by IPv6.
    pub both_families: bool,
    /// Only servers of which this was found by asking them.
    pub verified: Option<Verified>,
    /// Only these servers: favourites.
    pub ids: Option<Vec<PublicId>>,
}

/// A filter, an order, and a part of what comes out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Which servers.
    pub filter: Filter,
    /// In which order.
    pub sort: Sort,
    /// How many are left out at the beginning.
    pub offset: usize,
    /// How many are wanted at most.
    pub limit: usize,
}

/// What a [`Query`] finds.
#[derive(Clone, Debug)]
pub struct Selection {
    /// How many servers fit the filter.
    pub total: usize,
    /// Those of them that were wanted.
    pub rows: Vec<Arc<Row>>,
}

/// A filter, ready to be compared with many rows.
struct Prepared<'a> {
    filter: &'a Filter,
    words: Vec<String>,
    game: Option<String>,
    map: Option<String>,
    version: Option<String>,
    /// In order.
    ids: Option<Vec<PublicId>>,
}

impl Filter {
    /// Whether every server fits.
    #[must_use]
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }
}

impl Query {
    /// What there is now.
    #[must_use]
    pub fn select(&self, snapshot: &Snapshot) -> Selection {
        let prepared = Prepared::new(&self.filter);
        let mut rows: Vec<&Arc<Row>> = match &prepared.ids {
            Some(ids) => ids.iter().filter_map(|id| snapshot.record(*id)).filter(|row| prepared.fits(row)).collect(),
            None => snapshot.records().filter(|row| prepared.fits(row)).collect(),
        };
        let total = rows.len();
        let (from, to) = (self.offset.min(total), self.offset.saturating_add(self.limit).min(total));
        self.sort.arrange(&mut rows, from, to);
        Selection { total, rows: rows[from..to].iter().map(|row| Arc::clone(row)).collect() }
    }

    /// The same in another order, from the beginning.
    #[must_use]
    pub fn sorted_by(&self, sort: Sort) -> Self {
        Self { sort, offset: 0, ..self.clone() }
    }
}

impl<'a> Prepared<'a> {
    fn new(filter: &'a Filter) -> Self {
        let fold = |text: &Option<String>| text.as_deref().map(rallypoint_lobby::text::fold);
        let ids = filter.ids.clone().map(|mut ids| {
            ids.sort_unstable();
            ids.dedup();
            ids
        });
        Self {
            filter,
            words: fold(&filter.q).unwrap_or_default().split_whitespace().map(str::to_owned).collect(),
            game: fold(&filter.game),
            map: fold(&filter.map),
            version: fold(&filter.version),
            ids,
        }
    }

    /// What costs little is looked at first.
    fn fits(&self, row: &Row) -> bool {
        let Filter { lobby, not_empty, not_full, no_password, both_families, verified, .. } = *self.filter;
        let is = |wanted: &Option<String>, text: &str| wanted.as_deref().is_none_or(|wanted| wanted == text);
        let folded = row.folded();
        lobby.is_none_or(|lobby| lobby == row.lobby)
            && !(not_empty && row.players == 0)
            && !(not_full && row.is_full())
            && !(no_password && row.password)
            && !(both_families && (row.v4.is_none() || row.v6.is_none()))
            && verified.is_none_or(|verified| verified == row.verification)
            && is(&self.map, folded.map())
            && is(&self.version, folded.version())
            && (is(&self.game, folded.game()) || is(&self.game, folded.game_name()))
            && self.words.iter().all(|word| folded.contains(word))
    }
}

/// The filter as parameters of an address, without the question mark.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = form_urlencoded::Serializer::new(String::new());
        let texts = [("q", &self.q), ("game", &self.game), ("map", &self.map), ("version", &self.version)];
        for (name, text) in texts.into_iter().filter_map(|(name, text)| Some((name, text.as_ref()?))) {
            out.append_pair(name, text);
        }
        if let Some(lobby) = self.lobby {
            out.append_pair("lobby", &lobby.to_string());
        }
        if let Some(verified) = self.verified {
            out.append_pair("verified", verified.code());
        }
        let switches = [
            ("not_empty", self.not_empty),
            ("not_full", self.not_full),
            ("no_password", self.no_password),
            ("both_families", self.both_families),
        ];
        for (name, _) in switches.into_iter().filter(|(_, on)| *on) {
            out.append_pair(name, "1");
        }
        if let Some(ids) = &self.ids {
            out.append_pair("ids", &ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(","));
        }
        f.write_str(&out.finish())
    }
}
