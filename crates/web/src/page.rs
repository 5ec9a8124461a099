//! The pages that people see.

use crate::{
    filter::{Column, Defaults, Query, Sort},
    problem::Problem,
    shared::Web,
};
use axum::{
    Router,
    extract::{RawQuery, State},
    response::{Html, IntoResponse},
    routing::get,
};

/// What counts on the page if nothing is said: where people play comes first.
const DEFAULTS: Defaults = Defaults { sort: Sort::descending(Column::Players), limit: 100, pages: true, strict: false };

/// All pages.
pub(crate) fn router() -> Router<Web> {
    Router::new().route("/", get(list))
}

async fn list(State(web): State<Web>, RawQuery(query): RawQuery) -> Result<impl IntoResponse, Problem> {
    let query = Query::parse(query.as_deref().unwrap_or_default(), &DEFAULTS)?;
    let found = query.select(&web.live.snapshot());
    let rows: String = found.rows.iter().map(|row| format!("<li>{}</li>", escape(&row.name))).collect();
    Ok(Html(format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>Servers</title><h1>{} servers</h1><ul>{rows}</ul>",
        found.total
    )))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#39;")
}
