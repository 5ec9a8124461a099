//! `GET /`: the servers.

use super::{
    facets::Facets,
    frame::{Frame, page},
    line::Line,
    shown,
    sorry::Sorry,
};
use crate::{
    book::{Cursor, Totals, Verified},
    calendar,
    filter::{Column, Defaults, Query, Sort},
    shared::Web,
};
use askama::Template;
use axum::{
    extract::{RawQuery, State},
    http::StatusCode,
    response::Response,
};

/// What counts on the page if nothing is said: where people play comes first, and no more than scrolls smoothly.
const DEFAULTS: Defaults =
    Defaults { sort: Sort::descending(Column::Players), limit: 200, most: 500, pages: true, strict: false };

/// The columns: what they are called, the class of their cells, and by what they are sorted first.
const COLUMNS: [(&str, &str, Sort); 10] = [
    ("Password", "lock", Sort::ascending(Column::Password)),
    ("Name", "name", Sort::ascending(Column::Name)),
    ("Map", "map", Sort::ascending(Column::Map)),
    ("Players", "players", Sort::descending(Column::Players)),
    ("Game", "game", Sort::ascending(Column::Game)),
    ("Version", "version", Sort::descending(Column::Version)),
    ("Address", "address", Sort::ascending(Column::Address)),
    ("Latency", "latency", Sort::ascending(Column::Latency)),
    ("Age", "age", Sort::descending(Column::Age)),
    ("Verified", "verified", Sort::ascending(Column::Verified)),
];

#[derive(Template)]
#[template(path = "list.html")]
struct ListPage<'a> {
    frame: Frame,
    totals: Totals,
    query: &'a Query,
    /// Favourites are known to the browser only: it asks for them by their IDs.
    wants_favourites: bool,
    facets: Facets,
    sorts: Vec<SortChoice>,
    heads: Vec<Head>,
    lines: Vec<Line<'a>>,
    cursor: Cursor,
    found: Found,
}

/// Which part of what was found is shown.
struct Found {
    total: usize,
    first: usize,
    last: usize,
    before: Option<String>,
    after: Option<String>,
}

/// The head of a column.
struct Head {
    name: &'static str,
    class: &'static str,
    href: String,
    /// As `aria-sort` has it.
    order: &'static str,
}

/// An entry of the choice of orders, for narrow screens.
struct SortChoice {
    value: String,
    name: String,
    is_chosen: bool,
}

pub(super) async fn show(State(web): State<Web>, RawQuery(text): RawQuery) -> Result<Response, Sorry> {
    let text = text.unwrap_or_default();
    let query = Query::parse(&text, &DEFAULTS)?;
    let wants_favourites =
        form_urlencoded::parse(text.as_bytes()).any(|(name, value)| name == "favourites" && value == "1");
    let turns = web.turns.clone();
    Ok(turns.write(move || write(&web, &query, wants_favourites)).await)
}

fn write(web: &Web, query: &Query, wants_favourites: bool) -> Response {
    let (snapshot, settings, now) = (web.live.snapshot(), web.settings(), calendar::now());
    let mut selected = query.select(&snapshot);
    if wants_favourites && query.filter.ids.is_none() {
        (selected.rows, selected.total) = (Vec::new(), 0);
    }
    let href = |query: &Query| href(query, wants_favourites);
    let list = ListPage {
        frame: Frame::new("Servers", "/").with_script("list.js"),
        totals: snapshot.totals(),
        wants_favourites,
        facets: Facets::of(&snapshot, &query.filter, &settings),
        sorts: sorts(query.sort),
        heads: COLUMNS.iter().map(|(name, class, first)| Head::new(name, class, *first, query, &href)).collect(),
        lines: selected.rows.iter().map(|row| Line::new(row, &settings, now)).collect(),
        cursor: snapshot.cursor(),
        found: Found::new(query, selected.total, selected.rows.len(), &href),
        query,
    };
    page(StatusCode::OK, &list)
}

impl ListPage<'_> {
    fn q(&self) -> &str {
        self.query.filter.q.as_deref().unwrap_or_default()
    }

    fn game(&self) -> &str {
        self.query.filter.game.as_deref().unwrap_or_default()
    }

    fn map(&self) -> &str {
        self.query.filter.map.as_deref().unwrap_or_default()
    }

    /// What can have been found by asking servers, in words; and whether it is chosen.
    fn verdicts(&self) -> impl Iterator<Item = (&'static str, &'static str, bool)> {
        let chosen = self.query.filter.verified;
        let words = |verified| match verified {
            Verified::NotProbed => "not asked",
            Verified::Verified => "verified",
            Verified::Differs => "differs",
            Verified::Unreachable => "does not answer",
        };
        Verified::ALL.into_iter().map(move |one| (one.code(), words(one), chosen == Some(one)))
    }

    fn version(&self) -> &str {
        self.query.filter.version.as_deref().unwrap_or_default()
    }

    /// How many filters there are that are not in sight on a narrow screen.
    fn more_filters(&self) -> usize {
        let filter = &self.query.filter;
        let texts = [&filter.game, &filter.map, &filter.version].iter().filter(|text| text.is_some()).count();
        let switches = [filter.not_empty, filter.not_full, filter.no_password, filter.both_families];
        let chosen = [filter.lobby.is_some(), filter.verified.is_some()];
        texts + switches.iter().chain(&chosen).filter(|on| **on).count()
    }
}

impl Found {
    fn new(query: &Query, total: usize, count: usize, href: &impl Fn(&Query) -> String) -> Self {
        let at = |offset: usize| href(&Query { offset, ..query.clone() });
        let end = query.offset.saturating_add(count);
        Self {
            total,
            first: query.offset.saturating_add(1),
            last: end,
            before: (query.offset > 0).then(|| at(query.offset.min(total).saturating_sub(query.limit))),
            after: (end < total && count > 0).then(|| at(end)),
        }
    }

    /// "1–200 of 10,000 servers".
    fn words(&self) -> String {
        if self.last < self.first {
            return "no servers on this page".into();
        }
        let all = shown::many(self.total, "server");
        if (self.first, self.last) == (1, self.total) {
            all
        } else {
            format!("{}–{} of {all}", shown::count(self.first), shown::count(self.last))
        }
    }
}

impl Head {
    fn new(
        name: &'static str,
        class: &'static str,
        first: Sort,
        query: &Query,
        href: &impl Fn(&Query) -> String,
    ) -> Self {
        let is_this = query.sort.column == first.column;
        let next = if query.sort == first { Sort { descending: !first.descending, ..first } } else { first };
        let order = match (is_this, query.sort.descending) {
            (false, _) => "none",
            (true, false) => "ascending",
            (true, true) => "descending",
        };
        Self { name, class, href: href(&query.sorted_by(next)), order }
    }
}

/// The address of a list. What goes without saying is not in it, so that shared addresses are short.
fn href(query: &Query, wants_favourites: bool) -> String {
    let mut parts: Vec<String> = Some(query.filter.to_string()).filter(|text| !text.is_empty()).into_iter().collect();
    if wants_favourites {
        parts.push("favourites=1".into());
    }
    if query.sort != DEFAULTS.sort {
        parts.push(format!("sort={}", query.sort));
    }
    if query.limit != DEFAULTS.limit {
        parts.push(format!("per_page={}", query.limit));
    }
    if query.offset > 0 {
        parts.push(format!("page={}", query.offset / query.limit + 1));
    }
    if parts.is_empty() { "/".into() } else { format!("/?{}", parts.join("&")) }
}

fn sorts(chosen: Sort) -> Vec<SortChoice> {
    let named = |name: &str, sort: Sort, first: Sort| SortChoice {
        value: sort.to_string(),
        name: if sort == first { name.to_owned() } else { format!("{name}, reversed") },
        is_chosen: sort == chosen,
    };
    let usual = COLUMNS.iter().map(|(name, _, first)| named(name, *first, *first));
    let reversed = COLUMNS.iter().filter(|(_, _, first)| first.column == chosen.column && *first != chosen);
    let mut all: Vec<_> = usual.chain(reversed.map(|(name, _, first)| named(name, chosen, *first))).collect();
    if !all.iter().any(|choice| choice.is_chosen) {
        all.push(SortChoice { value: chosen.to_string(), name: chosen.column.name().to_owned(), is_chosen: true });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every address that the page writes is read as what it was written for.
    #[test]
    fn addresses_are_read_as_they_were_written() {
        let texts = [
            "",
            "q=a+b%26c&not_empty=1&sort=-age&verified=differs",
            "game=gg2&map=%3Cscript%3E&version=1%2B1&page=3",
            "lobby=1ccf16b1-436d-856f-504d-cc1af306aaa7&both_families=on&no_password=1&not_full=1&per_page=50&page=2",
            "ids=00000000000000000000000000000001,00000000000000000000000000000002&sort=name",
        ];
        for text in texts {
            let query = Query::parse(text, &DEFAULTS).unwrap();
            let written = href(&query, false);
            let read = Query::parse(written.trim_start_matches("/").trim_start_matches('?'), &DEFAULTS).unwrap();
            assert_eq!(read, query, "{text} {written}");
        }
        assert_eq!(href(&Query::parse("q=&sort=-players&page=1", &DEFAULTS).unwrap(), false), "/");
    }

    #[test]
    fn a_head_turns_the_order_round() {
        let query = Query::parse("q=x&page=4", &DEFAULTS).unwrap();
        let head = |query: &Query, column| {
            let (name, class, first) = COLUMNS.iter().find(|(_, _, first)| first.column == column).unwrap();
            let head = Head::new(name, class, *first, query, &|query| href(query, false));
            (head.href, head.order)
        };
        assert_eq!(head(&query, Column::Players), ("/?q=x&sort=players".into(), "descending"));
        assert_eq!(head(&query, Column::Name), ("/?q=x&sort=name".into(), "none"));
        let query = query.sorted_by(Sort::ascending(Column::Players));
        assert_eq!(head(&query, Column::Players), ("/?q=x".into(), "ascending"));
    }

    #[test]
    fn the_page_says_which_part_it_shows() {
        let found = |text: &str, total, count| {
            let query = Query::parse(text, &DEFAULTS).unwrap();
            let found = Found::new(&query, total, count, &|query| href(query, false));
            (found.words(), found.before, found.after)
        };
        assert_eq!(found("", 1, 1), ("1 server".into(), None, None));
        assert_eq!(found("", 10_000, 200), ("1–200 of 10,000 servers".into(), None, Some("/?page=2".into())));
        let (words, before, after) = found("page=50", 10_000, 200);
        assert_eq!((&*words, before.as_deref(), after), ("9,801–10,000 of 10,000 servers", Some("/?page=49"), None));
        assert_eq!(found("page=9", 3, 0), ("no servers on this page".into(), Some("/".into()), None));
    }
}
