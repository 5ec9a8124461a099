//! `GET /servers/{id}`: everything about one server; `…/website`: the way out; `…/embed`: a server in a frame.

use super::{
    frame::{Frame, page},
    graph::Span,
    line::Line,
    past::{self, Known},
    shown,
    sorry::Sorry,
};
use crate::{WebSettings, book::Row, calendar, id::Id, problem::Problem, shared::Web};
use askama::Template;
use axum::{
    extract::{RawQuery, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::Response,
};
use rallypoint_history::{EventKind, Subject};
use rallypoint_lobby_proto::PublicId;

#[derive(Template)]
#[template(path = "server.html")]
struct ServerPage<'a> {
    frame: Frame,
    id: PublicId,
    name: &'a str,
    line: Option<Line<'a>>,
    players: Option<Vec<PlayerLine<'a>>>,
    join: Option<String>,
    known: Known,
    span: Span,
    settings: &'a WebSettings,
    cursor: String,
    origin: String,
}

/// One who plays.
struct PlayerLine<'a> {
    name: &'a str,
    team: &'a str,
    ping: Option<i32>,
    is_spectator: bool,
}

#[derive(Template)]
#[template(path = "website.html")]
struct WebsitePage<'a> {
    frame: Frame,
    id: PublicId,
    name: &'a str,
    link: &'a str,
}

#[derive(Template)]
#[template(path = "embed.html")]
struct EmbedPage<'a> {
    frame: Frame,
    id: PublicId,
    line: Option<Line<'a>>,
}

pub(super) async fn show(
    State(web): State<Web>,
    Id(id): Id,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Sorry> {
    let (id, span) = (parse(&id)?, Span::of(query.as_deref()));
    let known = Known::read(&web, Subject::Server(id), span).await;
    let (snapshot, settings) = (web.live.snapshot(), web.settings());
    let row = snapshot.record(id);
    let line = row.map(|row| Line::new(row, &settings, calendar::now()));
    let name = line.map(|line| line.name()).or(known.summary().map(|summary| &*summary.name));
    let name = name.ok_or_else(gone)?.to_owned();
    let server = ServerPage {
        frame: Frame::new(&*name, "/").with_script("server.js"),
        id,
        name: &name,
        line,
        players: row.and_then(|row| players(row)),
        join: row.and_then(|row| Some(settings.joins.get(&row.lobby)?.fill(row.addresses().next()?))),
        known,
        span,
        settings: &settings,
        cursor: snapshot.cursor().to_string(),
        origin: origin(&headers),
    };
    Ok(page(StatusCode::OK, &server))
}

/// Strangers' links lead through here.
pub(super) async fn website(State(web): State<Web>, Id(id): Id) -> Result<Response, Sorry> {
    let id = parse(&id)?;
    let (snapshot, settings) = (web.live.snapshot(), web.settings());
    let row = snapshot.record(id).ok_or_else(gone)?;
    let link = row.website.as_deref().ok_or_else(|| Problem::not_found("this server names no website"))?;
    let name = Line::new(row, &settings, 0).name();
    Ok(page(StatusCode::OK, &WebsitePage { frame: Frame::new("You are leaving this page", "/"), id, name, link }))
}

/// A small page that others may put into a frame.
pub(super) async fn embed(State(web): State<Web>, Id(id): Id) -> Result<Response, Sorry> {
    let id = parse(&id)?;
    let (snapshot, settings) = (web.live.snapshot(), web.settings());
    let line = snapshot.record(id).map(|row| Line::new(row, &settings, calendar::now()));
    let mut response =
        page(StatusCode::OK, &EmbedPage { frame: Frame::new("Server", "/").with_script("embed.js"), id, line });
    let policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; \
                  form-action 'none'; frame-ancestors *";
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    Ok(response)
}

fn parse(id: &str) -> Result<PublicId, Sorry> {
    id.parse().map_err(|_| Problem::not_found("this is not the address of a server").into())
}

fn gone() -> Sorry {
    Problem::not_found("this server is not in the list, or not any more").into()
}

/// Who plays, if the server was asked and told.
fn players(row: &Row) -> Option<Vec<PlayerLine<'_>>> {
    let told = row.info.as_deref()?;
    let list = told.player_list.as_deref()?.iter().map(|player| {
        let team = player.team.and_then(|team| told.team_name(team)).unwrap_or_default();
        PlayerLine { name: &player.name, team, ping: player.ping_ms, is_spectator: player.spectator }
    });
    Some(list.collect())
}

/// What this page is called by the visitor: for snippets that the visitor copies. Nobody else sees it.
fn origin(headers: &HeaderMap) -> String {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let is_host = |host: &&str| host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte));
    let scheme = if text("x-forwarded-proto") == Some("https") { "https" } else { "http" };
    format!("{scheme}://{}", text("host").filter(is_host).unwrap_or("localhost"))
}

impl ServerPage<'_> {
    fn words(&self, kind: &EventKind) -> String {
        past::words(kind, self.settings)
    }
}
