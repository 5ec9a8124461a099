//! `GET /status`: the page of the Faucet lobby, at its old address, for old links and for programs that read it.
//!
//! What such a program looks for is as it was: a table `serverlist` for each lobby under a heading with its name, with the
//! columns PW, Name, Map, Players, Game and Address, a row for each server, an `X` for a password, `5+2/16` for players,
//! bots and places. The links of servers lead through the page that warns, as everywhere here.

use super::{
    frame::{Frame, page},
    line::Line,
    shown,
};
use crate::{
    book::Row,
    calendar,
    filter::{Column, Filter, Query, Sort},
    shared::Web,
};
use askama::Template;
use axum::{extract::State, http::StatusCode, response::Response};

/// A bound on what one request can cost; the list has pages.
const MOST: usize = 1_000;

#[derive(Template)]
#[template(path = "status.html")]
struct StatusPage<'a> {
    frame: Frame,
    lobbies: Vec<Table<'a>>,
    shown: usize,
    total: usize,
}

/// The servers of a lobby.
struct Table<'a> {
    name: String,
    lines: Vec<Line<'a>>,
}

pub(super) async fn show(State(web): State<Web>) -> Response {
    let turns = web.turns.clone();
    turns.write(move || write(&web)).await
}

fn write(web: &Web) -> Response {
    let (snapshot, settings, now) = (web.live.snapshot(), web.settings(), calendar::now());
    let sort = Sort::ascending(Column::Lobby);
    let found = Query { filter: Filter::default(), sort, offset: 0, limit: MOST }.select(&snapshot);
    let lobbies = found.rows.chunk_by(|one, next| one.lobby == next.lobby).map(|rows| {
        let lobby = rows[0].lobby;
        let unknown = || format!("unknown lobby \"{lobby}\"");
        let name = settings.names.name(&lobby).map_or_else(unknown, |name| format!("{name} lobby"));
        Table { name, lines: rows.iter().map(|row| Line::new(row, &settings, now)).collect() }
    });
    let lobbies = lobbies.collect();
    let frame = Frame::new("Lobby status page", "/");
    page(StatusCode::OK, &StatusPage { frame, lobbies, shown: found.rows.len(), total: found.total })
}

impl Line<'_> {
    /// "5+2/16": people, bots, places.
    fn old_players(&self) -> String {
        let Row { players, bots, slots, .. } = self.row;
        if *bots > 0 { format!("{players}+{bots}/{slots}") } else { format!("{players}/{slots}") }
    }

    /// The game and its version.
    fn old_game(&self) -> String {
        format!("{} {}", self.row.game_name, self.row.version).trim().to_owned()
    }
}
