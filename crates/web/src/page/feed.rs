//! `GET /feed.atom` and `GET /lists/{id}/feed.atom`: newly listed servers as an Atom feed.

use super::{format, layout::site_url, server_row::ServerRow};
use crate::{middleware::ClientAddr, path_id::PathId, problem::Problem, state::AppState};
use askama::Template;
use axum::{
    Extension,
    extract::State,
    http::{HeaderMap, HeaderValue, header},
    response::{IntoResponse, Response},
};
use rallypoint_history::{UnixSeconds, export};
use rallypoint_lobby::{ServerRecord, TableSnapshot, unix_now};
use rallypoint_wire::lobby::ListId;
use std::{cmp::Reverse, sync::Arc};

/// Maximum number of servers in a feed: those that were listed last.
const MAX_ENTRIES: usize = 50;

#[derive(Template)]
#[template(path = "feed.xml")]
struct Feed<'a> {
    title: String,
    /// The address of this site.
    site: String,
    /// The address of the page that the feed belongs to, and of the feed itself, below the site's.
    page: String,
    feed: String,
    updated: String,
    entries: Vec<ServerRow<'a>>,
}

pub(super) async fn all(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<ClientAddr>,
    headers: HeaderMap,
) -> Response {
    // It looks at all servers, so it waits for its turn like a list.
    state.render_limiter.clone().run(client, move || feed(&state, &headers, None)).await
}

pub(super) async fn list(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<ClientAddr>,
    PathId(id): PathId,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let id = state.settings().names.find(&id).ok_or_else(|| Problem::not_found("there is no such list"))?;
    Ok(state.render_limiter.clone().run(client, move || feed(&state, &headers, Some(id))).await)
}

fn feed(state: &AppState, headers: &HeaderMap, list: Option<ListId>) -> Response {
    let snapshot = state.live.snapshot();
    let settings = state.settings();
    let entries = newest(&snapshot, list);
    let newest = entries.first().map_or_else(unix_now, |record| record.since);
    let name = list.map_or_else(|| settings.site.title.clone(), |list| settings.names.short(&list));
    let feed = Feed {
        title: format!("{name}: new servers"),
        site: site_url(headers, &settings),
        page: list.map_or_else(|| "/".into(), |list| format!("/lists/{list}")),
        feed: list.map_or_else(|| "/feed.atom".into(), |list| format!("/lists/{list}/feed.atom")),
        updated: export::rfc3339(newest as UnixSeconds),
        entries: entries.into_iter().map(|record| ServerRow::new(record, &settings, 0)).collect(),
    };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/atom+xml; charset=utf-8")),
        (header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=60")),
    ];
    (headers, feed.render().unwrap_or_default()).into_response()
}

/// The servers that were listed last, the latest first.
fn newest(snapshot: &TableSnapshot, list: Option<ListId>) -> Vec<&ServerRecord> {
    let of_list = snapshot.records().map(|record| &**record);
    let mut records: Vec<_> = of_list.filter(|record| list.is_none_or(|list| list == record.list)).collect();
    let latest_first = |record: &&ServerRecord| (Reverse(record.since), record.id);
    if records.len() > MAX_ENTRIES {
        records.select_nth_unstable_by_key(MAX_ENTRIES, latest_first);
        records.truncate(MAX_ENTRIES);
    }
    records.sort_unstable_by_key(latest_first);
    records
}

impl Feed<'_> {
    fn summary(&self, server: &ServerRow<'_>) -> String {
        format::summary(server)
    }

    fn time(&self, server: &ServerRow<'_>) -> String {
        export::rfc3339(server.row.since as UnixSeconds)
    }
}
