//! Selects and sorts servers: the same parameters for the page and for the API.
//!
//! ```
//! use rallypoint_web::{ListNames, filter::{Column, ListQuery, QueryDefaults, Sort}};
//!
//! let defaults = QueryDefaults {
//!     sort: Sort::descending(Column::Players),
//!     limit: 200,
//!     max_limit: 500,
//!     by_page: true,
//!     is_strict: false,
//! };
//! let query = ListQuery::parse("q=arena&not_empty=1&page=2", &defaults, &ListNames::default()).unwrap();
//! assert_eq!((query.offset, query.limit), (200, 200));
//! assert_eq!(query.filter.to_string(), "q=arena&not_empty=1");
//! ```

mod parse;
mod sort;
#[cfg(test)]
mod tests;

pub use parse::{InvalidParameter, MAX_ROWS, QueryDefaults};
pub use sort::{Column, Sort};

use rallypoint_lobby::{ServerRecord, TableSnapshot, Verification};
use rallypoint_lobby_proto::PublicId;
use rallypoint_wire::lobby::ListId;
use std::{fmt, sync::Arc};

/// Maximum number of words that are searched for, each in all texts of all servers. The rest of a search text has no effect.
const MAX_WORDS: usize = 16;

/// Conditions that servers have to meet. The default has none, so that all servers match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Words that each have to occur in the name, map, game, version, address, or the name of a player. The first 16 different
    /// ones count.
    pub q: Option<String>,
    /// Only servers of this list.
    pub list: Option<ListId>,
    /// Only this game, by its short or its full name.
    pub game: Option<String>,
    /// Only maps whose name contains this.
    pub map: Option<String>,
    /// Only versions that contain this.
    pub version: Option<String>,
    /// Only servers with at least one player.
    pub not_empty: bool,
    /// Only servers with a free slot.
    pub not_full: bool,
    /// Only servers without a password.
    pub no_password: bool,
    /// Only servers that have an IPv4 and an IPv6 address.
    pub both_families: bool,
    /// Only servers with this result of verification.
    pub verified: Option<Verification>,
    /// Only servers with one of these IDs.
    pub ids: Option<Vec<PublicId>>,
}

/// A request for a part of the list: a filter, an order, and a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListQuery {
    /// Which servers are selected.
    pub filter: Filter,
    /// The order of the servers.
    pub sort: Sort,
    /// Number of servers to skip.
    pub offset: usize,
    /// Maximum number of servers.
    pub limit: usize,
}

/// The result of a [`ListQuery`].
#[derive(Clone, Debug)]
pub struct Selection {
    /// Number of servers that match the filter.
    pub total: usize,
    /// Matching servers in the requested range.
    pub rows: Vec<Arc<ServerRecord>>,
}

/// A filter whose texts are folded once, for the comparison with many servers.
struct Matcher<'a> {
    filter: &'a Filter,
    words: Vec<String>,
    game: Option<String>,
    map: Option<String>,
    version: Option<String>,
    /// Sorted, without duplicates.
    ids: Option<Vec<PublicId>>,
}

impl Filter {
    /// Whether every server matches.
    #[must_use]
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }
}

impl ListQuery {
    /// Selects from the servers of a snapshot. `popularity` is called only for that order.
    #[must_use]
    pub fn select(&self, snapshot: &TableSnapshot, popularity: &dyn Fn(PublicId) -> f32) -> Selection {
        let matcher = Matcher::new(&self.filter);
        let mut rows: Vec<&Arc<ServerRecord>> = match &matcher.ids {
            Some(ids) => ids.iter().filter_map(|id| snapshot.record(*id)).filter(|row| matcher.matches(row)).collect(),
            None => snapshot.records().filter(|row| matcher.matches(row)).collect(),
        };
        let total = rows.len();
        let start = self.offset.min(total);
        let end = self.offset.saturating_add(self.limit).min(total);
        self.sort.sort_range(&mut rows, start, end, popularity);
        Selection { total, rows: rows[start..end].iter().map(|row| Arc::clone(row)).collect() }
    }

    /// A copy of the query in another order, from the first server.
    #[must_use]
    pub fn sorted_by(&self, sort: Sort) -> Self {
        Self { sort, offset: 0, ..self.clone() }
    }
}

impl<'a> Matcher<'a> {
    fn new(filter: &'a Filter) -> Self {
        let fold = |text: &Option<String>| text.as_deref().map(rallypoint_lobby::text::fold);
        let ids = filter.ids.clone().map(|mut ids| {
            ids.sort_unstable();
            ids.dedup();
            ids
        });
        Self {
            filter,
            words: words(&fold(&filter.q).unwrap_or_default()),
            game: fold(&filter.game),
            map: fold(&filter.map),
            version: fold(&filter.version),
            ids,
        }
    }

    /// Whether a server matches. Cheap conditions come first.
    fn matches(&self, row: &ServerRecord) -> bool {
        let Filter { list, not_empty, not_full, no_password, both_families, verified, .. } = *self.filter;
        let is = |condition: &Option<String>, text: &str| condition.as_deref().is_none_or(|wanted| wanted == text);
        let has = |condition: &Option<String>, text: &str| condition.as_deref().is_none_or(|part| text.contains(part));
        let folded = row.folded();
        list.is_none_or(|list| list == row.list)
            && !(not_empty && row.players == 0)
            && !(not_full && row.is_full())
            && !(no_password && row.password)
            && !(both_families && (row.v4.is_none() || row.v6.is_none()))
            && verified.is_none_or(|verified| verified == row.verification)
            && has(&self.map, folded.map())
            && has(&self.version, folded.version())
            && (is(&self.game, folded.game()) || is(&self.game, folded.game_name()))
            && self.words.iter().all(|word| folded.contains(word))
    }
}

/// The words of a search text, each once.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::<String>::new();
    for word in text.split_whitespace() {
        if words.len() < MAX_WORDS && !words.iter().any(|known| known == word) {
            words.push(word.to_owned());
        }
    }
    words
}

/// The filter as a query string, without the question mark.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = form_urlencoded::Serializer::new(String::new());
        let texts = [("q", &self.q), ("game", &self.game), ("map", &self.map), ("version", &self.version)];
        for (name, text) in texts.into_iter().filter_map(|(name, text)| Some((name, text.as_ref()?))) {
            out.append_pair(name, text);
        }
        if let Some(list) = self.list {
            out.append_pair("list", &list.to_string());
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
