//! `GET /status`: the page of the old lobby, at its old address. A plain table of everything, for old links and old
//! programs that read it.

use super::{
    frame::{Frame, page},
    line::Line,
    shown,
};
use crate::{
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
    lines: Vec<Line<'a>>,
    total: usize,
}

pub(super) async fn show(State(web): State<Web>) -> Response {
    let turns = web.turns.clone();
    turns.write(move || write(&web)).await
}

fn write(web: &Web) -> Response {
    let (snapshot, settings, now) = (web.live.snapshot(), web.settings(), shown::now());
    let sort = Sort::ascending(Column::Lobby);
    let found = Query { filter: Filter::default(), sort, offset: 0, limit: MOST }.select(&snapshot);
    let lines = found.rows.iter().map(|row| Line::new(row, &settings, now)).collect();
    page(StatusCode::OK, &StatusPage { frame: Frame::new("Lobby status", "/"), lines, total: found.total })
}
