//! `GET /status`: the page of the Faucet lobby at its old address, for old links and for programs that parse it.
//!
//! The elements that such a program looks for are unchanged: a table `serverlist` for each list below a heading with its name,
//! with the columns PW, Name, Map, Players, Game and Address, a row for each server, an `X` for a password, and `5+2/16` for
//! players, bots and slots. The links of servers lead through the page that warns, as on all other pages.

use super::{
    format,
    layout::{Layout, compress, render},
    server_row::ServerRow,
};
use crate::{
    api::response::accepts_gzip,
    filter::{Column, Filter, ListQuery, Sort},
    middleware::{ClientAddr, response_limit::count_response},
    server::Connection,
    state::AppState,
};
use askama::Template;
use axum::{
    Extension,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::Response,
};
use bytes::Bytes;
use rallypoint_lobby::{ServerRecord, unix_now};
use std::sync::Arc;

/// Maximum number of servers, which bounds the cost of a request; the main list has several pages instead.
const MAX_ROWS: usize = 1_000;

#[derive(Template)]
#[template(path = "status.html")]
struct StatusPage<'a> {
    layout: Layout,
    lists: Vec<Table<'a>>,
    shown: usize,
    total: usize,
}

/// The servers of a list.
struct Table<'a> {
    name: String,
    rows: Vec<ServerRow<'a>>,
}

pub(super) async fn show(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<ClientAddr>,
    Extension(connection): Extension<Arc<Connection>>,
    headers: HeaderMap,
) -> Response {
    let limiter = state.render_limiter.clone();
    let accepts_gzip = accepts_gzip(&headers);
    let render = move || {
        let page = compress(status_page(&state), accepts_gzip);
        count_response(&state, client, &connection, page)
    };
    limiter.run(client, render).await
}

fn status_page(state: &AppState) -> axum::http::Response<Bytes> {
    let snapshot = state.live.snapshot();
    let settings = state.settings();
    let now = unix_now();
    let sort = Sort::ascending(Column::List);
    let selection =
        ListQuery { filter: Filter::default(), sort, offset: 0, limit: MAX_ROWS }.select(&snapshot, &|_| 0.0);
    let lists = selection.rows.chunk_by(|one, next| one.list == next.list).map(|rows| {
        // `chunk_by` gives no empty chunks.
        let list = rows[0].list;
        let unknown = || format!("unknown lobby \"{list}\"");
        let name = settings.names.name(&list).map_or_else(unknown, |name| format!("{name} lobby"));
        Table { name, rows: rows.iter().map(|row| ServerRow::new(row, &settings, now)).collect() }
    });
    let lists = lists.collect();
    let layout = Layout::new(state, "Lobby status page", "/");
    render(StatusCode::OK, &StatusPage { layout, lists, shown: selection.rows.len(), total: selection.total })
}

impl ServerRow<'_> {
    /// Players, bots and slots in the old form: "5+2/16".
    fn faucet_players(&self) -> String {
        let ServerRecord { players, bots, slots, .. } = self.row;
        if *bots > 0 { format!("{players}+{bots}/{slots}") } else { format!("{players}/{slots}") }
    }

    /// The game and its version in the old form.
    fn faucet_game(&self) -> String {
        format!("{} {}", self.row.game_name, self.row.version).trim().to_owned()
    }
}
