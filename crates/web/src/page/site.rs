//! The operator's files: `GET /logo`, `GET /theme.css`, `GET /maps/{name}`.

use crate::{problem::Problem, site::Picture, state::AppState};
use axum::{
    extract::{Path, State},
    http::{HeaderName, HeaderValue, header},
    response::{IntoResponse, Response},
};
use std::sync::Arc;

/// An address that changes with its content.
const FOREVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

/// The operator can replace a picture of a map without a restart.
const AN_HOUR: HeaderValue = HeaderValue::from_static("public, max-age=3600");

/// An SVG file may contain scripts and links, which must not run if it is opened by itself.
const PICTURE_POLICY: (HeaderName, HeaderValue) = (
    header::CONTENT_SECURITY_POLICY,
    HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'; sandbox"),
);

pub(super) async fn logo(State(state): State<Arc<AppState>>) -> Result<Response, Problem> {
    let files = state.site_files.load();
    let logo = files.logo.clone().ok_or_else(|| Problem::not_found("the operator has configured no logo"))?;
    Ok(picture(logo, FOREVER))
}

pub(super) async fn theme(State(state): State<Arc<AppState>>) -> Response {
    let style = state.settings().site.color.map(crate::AccentColor::style_sheet).unwrap_or_default();
    let css = HeaderValue::from_static("text/css; charset=utf-8");
    ([(header::CONTENT_TYPE, css), (header::CACHE_CONTROL, FOREVER)], style).into_response()
}

pub(super) async fn map_picture(
    State(state): State<Arc<AppState>>,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    let missing = || Problem::not_found("there is no picture of this map");
    let path = state.site_files.load().map_picture_path(&name).ok_or_else(missing)?.to_owned();
    let read = tokio::task::spawn_blocking(move || Picture::read(&path)).await;
    Ok(picture(read.ok().and_then(Result::ok).ok_or_else(missing)?, AN_HOUR))
}

fn picture(picture: Picture, age: HeaderValue) -> Response {
    let headers = [(header::CONTENT_TYPE, picture.content_type), (header::CACHE_CONTROL, age), PICTURE_POLICY];
    (headers, picture.bytes).into_response()
}
