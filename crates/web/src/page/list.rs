//! `GET /`: the list of servers.

use super::{
    error::PageError,
    facets::Facets,
    format,
    front_page::is_cluster_disconnected,
    layout::{Layout, compress, render},
    lobby_host::LobbyHost,
    server_row::ServerRow,
};
use crate::{
    api::response::accepts_gzip,
    filter::{Column, ListQuery, QueryDefaults, Sort},
    live::Cursor,
    middleware::{ClientAddr, response_limit::count_response},
    server::Connection,
    state::AppState,
};
use askama::Template;
use axum::{
    Extension,
    extract::{RawQuery, State},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use rallypoint_lobby::{Totals, Verification, unix_now};
use std::sync::Arc;

/// Defaults of the parameters of the page: servers with players first, and no more than scrolls smoothly.
const DEFAULTS: QueryDefaults = QueryDefaults {
    sort: Sort::descending(Column::Players),
    limit: 200,
    max_limit: 500,
    by_page: true,
    is_strict: false,
};

/// The orders: name, CSS class of the column whose heading selects it (empty if there is none), and the direction that comes
/// first.
const ORDERS: [(&str, &str, Sort); 12] = [
    ("Name", "name", Sort::ascending(Column::Name)),
    ("Map", "map", Sort::ascending(Column::Map)),
    ("Players", "players", Sort::descending(Column::Players)),
    ("24 h", "trend", Sort::descending(Column::Popularity)),
    ("Game", "game", Sort::ascending(Column::Game)),
    ("Address", "address", Sort::ascending(Column::Address)),
    ("Latency", "latency", Sort::ascending(Column::Latency)),
    ("Age", "age", Sort::descending(Column::Age)),
    ("Newest", "", Sort::ascending(Column::Age)),
    ("Version", "", Sort::descending(Column::Version)),
    ("Password", "", Sort::ascending(Column::Password)),
    ("Verified", "", Sort::ascending(Column::Verified)),
];

#[derive(Template)]
#[template(path = "list.html")]
struct ListPage<'a> {
    layout: Layout,
    totals: Totals,
    query: &'a ListQuery,
    /// Only the browser knows the favourites; it requests them by their IDs.
    favourites_only: bool,
    facets: Facets,
    sorts: Vec<SortChoice>,
    headings: Vec<Heading>,
    rows: Vec<ServerRow<'a>>,
    cursor: Cursor,
    range: PageRange,
    /// Number of servers that were listed since the lobby started.
    listed: u64,
    /// Current time in seconds since 1970.
    now: u64,
    /// The operator's text above the list.
    welcome: Option<&'a str>,
    /// The text of a list without servers, if no filter is the reason.
    /// The lobby that a server can register with, if the list is empty.
    invitation: Option<LobbyHost>,
    /// Notes for visitors about the list as a whole.
    notice: Option<&'static str>,
}

/// The servers on this page among all that match.
struct PageRange {
    total: usize,
    /// Number of the first server on the page, counted from 1.
    first: usize,
    last: usize,
    /// Address of the previous page.
    previous: Option<String>,
    /// Address of the next page.
    next: Option<String>,
}

/// The heading of a column.
struct Heading {
    name: &'static str,
    class: &'static str,
    href: String,
    /// The value of `aria-sort`.
    order: &'static str,
}

/// An option of the order, for narrow screens without headings.
struct SortChoice {
    value: String,
    name: String,
    is_selected: bool,
}

pub(super) async fn show(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<ClientAddr>,
    Extension(connection): Extension<Arc<Connection>>,
    RawQuery(text): RawQuery,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    let text = text.unwrap_or_default();
    let query = ListQuery::parse(&text, &DEFAULTS, &state.settings().names)?;
    let favourites_only =
        form_urlencoded::parse(text.as_bytes()).any(|(name, value)| name == "favourites" && value == "1");
    let accepts_gzip = accepts_gzip(&headers);
    // An empty list shows the host name that this visitor uses.
    let is_empty = state.live.snapshot().is_empty();
    let is_front_page = !favourites_only && !is_empty && query == ListQuery::defaults(&DEFAULTS);
    if is_front_page && let Some(page) = state.front_page.fresh(&state, accepts_gzip) {
        return Ok(count_response(&state, client, &connection, page));
    }
    let limiter = state.render_limiter.clone();
    let permit = match limiter.acquire(client).await {
        Ok(permit) => permit,
        Err(refused) => {
            let stale = is_front_page.then(|| state.front_page.stale(&state, accepts_gzip)).flatten();
            return Ok(
                stale.map_or_else(|| refused.into_response(), |page| count_response(&state, client, &connection, page))
            );
        }
    };
    let render = move || {
        let render = || compress(list_page(&state, &query, favourites_only, &headers), accepts_gzip);
        let page = match is_front_page {
            // Another request may have rendered it in the meantime.
            true => state
                .front_page
                .fresh(&state, accepts_gzip)
                .unwrap_or_else(|| state.front_page.render(&state, accepts_gzip, render)),
            false => render(),
        };
        count_response(&state, client, &connection, page)
    };
    Ok(permit.run(render).await)
}

fn list_page(
    state: &AppState,
    query: &ListQuery,
    favourites_only: bool,
    headers: &HeaderMap,
) -> axum::http::Response<Bytes> {
    let snapshot = state.live.snapshot();
    let settings = state.settings();
    let trends = state.trends.load();
    let files = state.site_files.load();
    let now = unix_now();
    let mut selection = query.select(&snapshot, &|id| trends.week(id));
    if favourites_only && query.filter.ids.is_none() {
        selection.rows.clear();
        selection.total = 0;
    }
    let base = settings.site.base();
    let href = |query: &ListQuery| format!("{base}{}", href(query, favourites_only));
    let headings = ORDERS.iter().filter(|(_, class, _)| !class.is_empty());
    let headings = headings.map(|(name, class, first)| Heading::new(name, class, *first, query, &href));
    let is_empty = snapshot.is_empty() && query.filter.is_all() && !favourites_only;
    let list = ListPage {
        layout: Layout::new(state, "Servers", "/").with_script("list.js").with_feed("/feed.atom"),
        totals: snapshot.totals(),
        favourites_only,
        facets: Facets::count(&snapshot, &query.filter, &settings),
        sorts: sorts(query.sort),
        headings: headings.collect(),
        rows: selection
            .rows
            .iter()
            .map(|row| ServerRow::new(row, &settings, now).with_details(&trends, &files))
            .collect(),
        cursor: snapshot.cursor(),
        listed: snapshot.listed(),
        now,
        welcome: Some(&*settings.site.welcome).filter(|welcome| !welcome.is_empty()),
        invitation: is_empty.then(|| LobbyHost::new(state, headers, &settings)),
        range: PageRange::new(query, selection.total, selection.rows.len(), &href),
        query,
        notice: cluster_notice(state),
    };
    render(StatusCode::OK, &list)
}

/// A notice if this lobby is a node of a cluster and does not hear from the others.
fn cluster_notice(state: &AppState) -> Option<&'static str> {
    is_cluster_disconnected(state).then_some(
        "This lobby has no contact with its cluster at the moment: servers of other nodes may be missing or outdated.",
    )
}

impl ListPage<'_> {
    fn q(&self) -> &str {
        self.query.filter.q.as_deref().unwrap_or_default()
    }

    fn is_game(&self, game: &str) -> bool {
        self.query.filter.game.as_deref() == Some(game)
    }

    fn map(&self) -> &str {
        self.query.filter.map.as_deref().unwrap_or_default()
    }

    /// The results of verification: value, label, and whether it is selected.
    fn verified_options(&self) -> impl Iterator<Item = (&'static str, &'static str, bool)> {
        let selected = self.query.filter.verified;
        let label = |verified| match verified {
            Verification::NotProbed => "not queried",
            Verification::Verified => "verified",
            Verification::Differs => "differs",
            Verification::Unreachable => "does not reply",
        };
        Verification::ALL.into_iter().map(move |one| (one.code(), label(one), selected == Some(one)))
    }

    fn version(&self) -> &str {
        self.query.filter.version.as_deref().unwrap_or_default()
    }

    /// Number of active filters that are collapsed on a narrow screen.
    fn collapsed_filters(&self) -> usize {
        let filter = &self.query.filter;
        let texts = [&filter.game, &filter.map, &filter.version].iter().filter(|text| text.is_some()).count();
        let switches = [filter.not_empty, filter.not_full, filter.no_password, filter.both_families];
        let selects = [filter.list.is_some(), filter.verified.is_some()];
        texts + switches.iter().chain(&selects).filter(|on| **on).count()
    }
}

impl PageRange {
    fn new(query: &ListQuery, total: usize, count: usize, href: &impl Fn(&ListQuery) -> String) -> Self {
        let at = |offset: usize| href(&ListQuery { offset, ..query.clone() });
        let end = query.offset.saturating_add(count);
        Self {
            total,
            first: query.offset.saturating_add(1),
            last: end,
            previous: (query.offset > 0).then(|| at(query.offset.min(total).saturating_sub(query.limit))),
            next: (end < total && count > 0).then(|| at(end)),
        }
    }

    /// "1–200 of 10,000 servers".
    fn label(&self) -> String {
        if self.last < self.first {
            return if self.total == 0 { "0 servers".into() } else { "this page has no servers".into() };
        }
        let all = format::count_of(self.total, "server");
        if (self.first, self.last) == (1, self.total) {
            all
        } else {
            format!("{}–{} of {all}", format::count(self.first), format::count(self.last))
        }
    }
}

impl Heading {
    fn new(
        name: &'static str,
        class: &'static str,
        first: Sort,
        query: &ListQuery,
        href: &impl Fn(&ListQuery) -> String,
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

/// The address of a list. Defaults are left out, so that shared addresses are short.
fn href(query: &ListQuery, favourites_only: bool) -> String {
    let mut parts: Vec<String> = Some(query.filter.to_string()).filter(|text| !text.is_empty()).into_iter().collect();
    if favourites_only {
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

/// The first order of every column, and the selected one.
fn sorts(selected: Sort) -> Vec<SortChoice> {
    let named = |name: &str, sort: Sort, first: Sort| {
        let name = if first.column == Column::Popularity { "Popular this week" } else { name };
        SortChoice {
            value: sort.to_string(),
            name: if sort == first { name.to_owned() } else { format!("{name}, reversed") },
            is_selected: sort == selected,
        }
    };
    let first_orders = ORDERS.iter().map(|(name, _, first)| named(name, *first, *first));
    let is_named = ORDERS.iter().any(|(_, _, first)| *first == selected);
    let reversed = ORDERS.iter().filter(|(_, _, first)| first.column == selected.column && !is_named);
    let mut all: Vec<_> = first_orders.chain(reversed.map(|(name, _, first)| named(name, selected, *first))).collect();
    if !all.iter().any(|choice| choice.is_selected) {
        all.push(SortChoice {
            value: selected.to_string(),
            name: selected.column.name().to_owned(),
            is_selected: true,
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ListNames;

    #[test]
    fn the_address_of_a_query_parses_to_the_same_query() {
        let texts = [
            "",
            "q=a+b%26c&not_empty=1&sort=-age&verified=differs",
            "game=gg2&map=%3Cscript%3E&version=1%2B1&page=3",
            "list=1ccf16b1-436d-856f-504d-cc1af306aaa7&both_families=on&no_password=1&not_full=1&per_page=50&page=2",
            "ids=00000000000000000000000000000001,00000000000000000000000000000002&sort=name",
        ];
        for text in texts {
            let query = ListQuery::parse(text, &DEFAULTS, &ListNames::default()).unwrap();
            let written = href(&query, false);
            let parsed = ListQuery::parse(
                written.trim_start_matches("/").trim_start_matches('?'),
                &DEFAULTS,
                &ListNames::default(),
            )
            .unwrap();
            assert_eq!(parsed, query, "{text} {written}");
        }
        assert_eq!(
            href(&ListQuery::parse("q=&sort=-players&page=1", &DEFAULTS, &ListNames::default()).unwrap(), false),
            "/"
        );
    }

    #[test]
    fn a_click_on_the_heading_of_the_current_order_reverses_it() {
        let query = ListQuery::parse("q=x&page=4", &DEFAULTS, &ListNames::default()).unwrap();
        let heading = |query: &ListQuery, column| {
            let (name, class, first) = ORDERS.iter().find(|(_, _, first)| first.column == column).unwrap();
            let heading = Heading::new(name, class, *first, query, &|query| href(query, false));
            (heading.href, heading.order)
        };
        assert_eq!(heading(&query, Column::Players), ("/?q=x&sort=players".into(), "descending"));
        assert_eq!(heading(&query, Column::Name), ("/?q=x&sort=name".into(), "none"));
        let query = query.sorted_by(Sort::ascending(Column::Players));
        assert_eq!(heading(&query, Column::Players), ("/?q=x".into(), "ascending"));
    }

    #[test]
    fn the_page_shows_its_range_and_the_pages_around_it() {
        let range = |text: &str, total, count| {
            let query = ListQuery::parse(text, &DEFAULTS, &ListNames::default()).unwrap();
            let range = PageRange::new(&query, total, count, &|query| href(query, false));
            (range.label(), range.previous, range.next)
        };
        assert_eq!(range("", 1, 1), ("1 server".into(), None, None));
        assert_eq!(range("", 10_000, 200), ("1–200 of 10,000 servers".into(), None, Some("/?page=2".into())));
        let (label, previous, next) = range("page=50", 10_000, 200);
        assert_eq!((&*label, previous.as_deref(), next), ("9,801–10,000 of 10,000 servers", Some("/?page=49"), None));
        assert_eq!(range("page=9", 3, 0), ("this page has no servers".into(), Some("/".into()), None));
    }
}
