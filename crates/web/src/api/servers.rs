//! Lists of servers, and one server.

use crate::{
    book::Snapshot,
    filter::{Column, Defaults, Filter, MOST_ROWS, Query, Sort},
    problem::Problem,
    shared::Web,
};
use axum::{
    body::Body,
    extract::{RawQuery, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use std::io::Write;

/// What counts in the API if nothing is said: everything, in an order that never changes.
pub(crate) const DEFAULTS: Defaults =
    Defaults { sort: Sort::ascending(Column::Id), limit: MOST_ROWS, pages: false, strict: true };

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Ask again whether it is still the same, every time: that costs next to nothing.
const REVALIDATE: HeaderValue = HeaderValue::from_static("no-cache");

/// `GET /api/v1/servers`
pub(crate) async fn list(
    State(web): State<Web>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let query = Query::parse(query.as_deref().unwrap_or_default(), &DEFAULTS)?;
    if let Some(lobby) = prebuilt_lobby(&query) {
        let built = web.prebuilt.list(&web.live, lobby).await;
        let wants_gzip = accepts_gzip(&headers);
        let (body, tag) = match wants_gzip.then_some(built.gzip().await).filter(|gzip| !gzip.is_empty()) {
            Some(gzip) => (gzip.clone(), &built.gzip_etag),
            None => (built.json.clone(), &built.etag),
        };
        let is_gzip = tag == built.gzip_etag;
        return Ok(reply(body, tag, is_gzip, &headers));
    }
    let body = write_list(&query, &web.live.snapshot());
    let headers = [(header::CONTENT_TYPE, JSON), (header::CACHE_CONTROL, REVALIDATE)];
    Ok((headers, body).into_response())
}

/// The lobby, or all lobbies, whose whole list is asked for in the usual order.
fn prebuilt_lobby(query: &Query) -> Option<Option<rallypoint_wire::lobby::LobbyId>> {
    let lobby = query.filter.lobby;
    let filter = Filter { lobby, ..Filter::default() };
    let usual = Query { filter, sort: DEFAULTS.sort, offset: 0, limit: DEFAULTS.limit };
    (*query == usual).then_some(lobby)
}

/// What a query finds, as JSON.
pub(crate) fn write_list(query: &Query, snapshot: &Snapshot) -> Bytes {
    let found = query.select(snapshot);
    let size: usize = found.rows.iter().map(|row| row.json().len() + 1).sum();
    let mut out = Vec::with_capacity(size + 160);
    let (cursor, total, offset, count) = (snapshot.cursor(), found.total, query.offset, found.rows.len());
    // Writing into memory does not fail.
    let _ =
        write!(out, "{{\"cursor\":\"{cursor}\",\"total\":{total},\"offset\":{offset},\"count\":{count},\"servers\":[");
    for (place, row) in found.rows.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        out.extend_from_slice(row.json());
    }
    out.extend_from_slice(b"]}");
    out.into()
}

/// An answer with its tag, or that the client already has it.
fn reply(body: Bytes, tag: &HeaderValue, is_gzip: bool, request: &HeaderMap) -> Response {
    let mut response = if knows(request, tag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let mut response = Response::new(Body::from(body));
        response.headers_mut().insert(header::CONTENT_TYPE, JSON);
        if is_gzip {
            response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        response
    };
    let headers = response.headers_mut();
    headers.insert(header::ETAG, tag.clone());
    headers.insert(header::CACHE_CONTROL, REVALIDATE);
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    response
}

/// Whether the client has what this tag stands for.
fn knows(request: &HeaderMap, tag: &HeaderValue) -> bool {
    let tag = tag.as_bytes();
    let known =
        request.get_all(header::IF_NONE_MATCH).iter().flat_map(|tags| tags.as_bytes().split(|&byte| byte == b','));
    let plain = |known: &[u8]| {
        let known = known.trim_ascii();
        known == b"*" || known.strip_prefix(b"W/").unwrap_or(known) == tag
    };
    known.into_iter().any(plain)
}

/// Whether the client takes gzip: named, and not with a weight of zero.
fn accepts_gzip(request: &HeaderMap) -> bool {
    let values = request.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let mut codings = values.flat_map(|value| value.split(','));
    codings.any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip") || name == "*");
        let is_refused = parts.any(|part| {
            let weight = part.strip_prefix("q=").or(part.strip_prefix("Q="));
            weight.is_some_and(|weight| weight.trim().parse::<f32>() == Ok(0.0))
        });
        is_gzip && !is_refused
    })
}
