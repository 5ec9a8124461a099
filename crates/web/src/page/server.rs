//! `GET /servers/{id}`: the page of a server; `…/website`: a warning before its website; `…/embed`: a server in a frame.

use super::{
    error::PageError,
    format,
    graph::Span,
    history::{self, HistorySection},
    layout::{Layout, page},
    server_row::ServerRow,
};
use crate::{WebSettings, path_id::PathId, problem::Problem, state::AppState};
use askama::Template;
use axum::{
    extract::{RawQuery, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::Response,
};
use rallypoint_history::{EventKind, Subject};
use rallypoint_lobby::{ServerRecord, unix_now};
use rallypoint_lobby_proto::PublicId;
use std::sync::Arc;

#[derive(Template)]
#[template(path = "server.html")]
struct ServerPage<'a> {
    layout: Layout,
    id: PublicId,
    name: &'a str,
    server: Option<ServerRow<'a>>,
    players: Option<Vec<PlayerRow<'a>>>,
    /// The link that starts the game, if the operator has configured one.
    join: Option<String>,
    history: HistorySection,
    span: Span,
    settings: &'a WebSettings,
    cursor: String,
    /// Scheme and host of this site, for snippets to copy.
    origin: String,
}

/// A player.
struct PlayerRow<'a> {
    name: &'a str,
    team: &'a str,
    ping: Option<i32>,
    is_spectator: bool,
}

#[derive(Template)]
#[template(path = "website.html")]
struct WebsitePage<'a> {
    layout: Layout,
    id: PublicId,
    name: &'a str,
    link: &'a str,
}

#[derive(Template)]
#[template(path = "embed.html")]
struct EmbedPage<'a> {
    layout: Layout,
    id: PublicId,
    server: Option<ServerRow<'a>>,
}

pub(super) async fn show(
    State(state): State<Arc<AppState>>,
    PathId(id): PathId,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    let id = parse(&id)?;
    let span = Span::from_query(query.as_deref());
    let history = HistorySection::read(&state, Subject::Server(id), span).await;
    let snapshot = state.live.snapshot();
    let settings = state.settings();
    let row = snapshot.record(id);
    let server = row.map(|row| ServerRow::new(row, &settings, unix_now()));
    let name = server.map(|server| server.name()).or(history.summary().map(|summary| &*summary.name));
    let name = name.ok_or_else(not_listed)?.to_owned();
    let server_page = ServerPage {
        layout: Layout::new(&*name, "/").with_script("server.js"),
        id,
        name: &name,
        server,
        players: row.and_then(|row| players(row)),
        join: row.and_then(|row| Some(settings.joins.get(&row.lobby)?.fill(row.addresses().next()?))),
        history,
        span,
        settings: &settings,
        cursor: snapshot.cursor().to_string(),
        origin: origin(&headers),
    };
    Ok(page(StatusCode::OK, &server_page))
}

/// Warns before the website of a server: its address comes from the server, not from the operator.
pub(super) async fn website(State(state): State<Arc<AppState>>, PathId(id): PathId) -> Result<Response, PageError> {
    let id = parse(&id)?;
    let snapshot = state.live.snapshot();
    let settings = state.settings();
    let row = snapshot.record(id).ok_or_else(not_listed)?;
    let link = row.website.as_deref().ok_or_else(|| Problem::not_found("this server has no website"))?;
    let name = ServerRow::new(row, &settings, 0).name();
    let layout = Layout::new("You are leaving this site", "/");
    Ok(page(StatusCode::OK, &WebsitePage { layout, id, name, link }))
}

/// A small page that other sites may show in a frame.
pub(super) async fn embed(State(state): State<Arc<AppState>>, PathId(id): PathId) -> Result<Response, PageError> {
    let id = parse(&id)?;
    let snapshot = state.live.snapshot();
    let settings = state.settings();
    let server = snapshot.record(id).map(|row| ServerRow::new(row, &settings, unix_now()));
    let layout = Layout::new("Server", "/").with_script("embed.js");
    let mut response = page(StatusCode::OK, &EmbedPage { layout, id, server });
    let policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; \
                  form-action 'none'; frame-ancestors *";
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    Ok(response)
}

fn parse(id: &str) -> Result<PublicId, PageError> {
    id.parse().map_err(|_| Problem::not_found("this is not the public ID of a server").into())
}

fn not_listed() -> PageError {
    Problem::not_found("this server is not in the list (any more)").into()
}

/// The players, if the server was probed and reported them.
fn players(row: &ServerRecord) -> Option<Vec<PlayerRow<'_>>> {
    let info = row.info.as_deref()?;
    let list = info.player_list.as_deref()?.iter().map(|player| {
        let team = player.team.and_then(|team| info.team_name(team)).unwrap_or_default();
        PlayerRow { name: &player.name, team, ping: player.ping_ms, is_spectator: player.spectator }
    });
    Some(list.collect())
}

/// The origin of this site as the client addresses it, for snippets that the client copies. It is shown to this client only, so
/// forged headers do no harm.
fn origin(headers: &HeaderMap) -> String {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let is_host = |host: &&str| host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte));
    let scheme = if text("x-forwarded-proto") == Some("https") { "https" } else { "http" };
    format!("{scheme}://{}", text("host").filter(is_host).unwrap_or("localhost"))
}

impl ServerPage<'_> {
    fn describe(&self, kind: &EventKind) -> String {
        history::describe(kind, self.settings)
    }
}
