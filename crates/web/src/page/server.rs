//! `GET /servers/{id}`: the page of a server; `…/website`: a warning before its website; `…/embed`: a server in a frame.

use super::{
    error::PageError,
    format,
    graph::Span,
    history::{self, HistorySection},
    layout::{Layout, LinkPreview, page, site_url},
    server_row::ServerRow,
};
use crate::{WebSettings, middleware::ClientAddr, path_id::PathId, problem::Problem, state::AppState};
use askama::Template;
use axum::{
    Extension,
    extract::{RawQuery, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::Response,
};
use rallypoint_history::{EventKind, Subject};
use rallypoint_lobby::{ServerRecord, unix_now};
use rallypoint_lobby_proto::PublicId;
use rallypoint_query::list_names;
use rallypoint_query_proto::ServerInfo;
use std::{net::SocketAddr, sync::Arc};

#[derive(Template)]
#[template(path = "server.html")]
struct ServerPage<'a> {
    layout: Layout,
    id: PublicId,
    name: &'a str,
    server: Option<ServerRow<'a>>,
    players: Option<Vec<PlayerRow<'a>>>,
    /// The server's own answer.
    details: Vec<(&'static str, String)>,
    /// The link that starts the game, if the operator has configured one.
    join: Option<String>,
    /// The command that joins a room of `rallypoint host`.
    join_command: Option<JoinCommand>,
    /// The address of a picture of the map.
    picture: Option<String>,
    history: HistorySection,
    span: Span,
    settings: &'a WebSettings,
    cursor: String,
    /// The address of this site, for snippets to copy.
    site_url: String,
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
    Extension(client): Extension<ClientAddr>,
    PathId(id): PathId,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    let id = parse(&id)?;
    let span = Span::from_query(query.as_deref());
    Ok(state.render_limiter.clone().run(client, move || server_page(&state, id, span, &headers)).await)
}

fn server_page(state: &AppState, id: PublicId, span: Span, headers: &HeaderMap) -> Result<Response, PageError> {
    let history = HistorySection::read(state, Subject::Server(id), span);
    let snapshot = state.live.snapshot();
    let settings = state.settings();
    let trends = state.trends.load();
    let files = state.site_files.load();
    let row = snapshot.record(id);
    let server = row.map(|row| ServerRow::new(row, &settings, unix_now()).with_details(&trends, &files));
    let name = server.map(|server| server.name()).or(history.summary().map(|summary| &*summary.name));
    let name = name.ok_or_else(not_listed)?.to_owned();
    let site_url = site_url(headers, &settings);
    let picture = row.and_then(|row| files.map_picture(&row.map)).map(|file| format!("/maps/{}", encode(file)));
    let preview = LinkPreview {
        description: server.as_ref().map_or_else(|| "offline".to_owned(), format::summary),
        url: format!("{site_url}/servers/{id}"),
        image: picture.as_ref().map(|picture| format!("{site_url}{picture}")),
    };
    let server_page = ServerPage {
        layout: Layout::new(state, &*name, "/").with_script("server.js").with_preview(preview),
        id,
        name: &name,
        server,
        players: row.and_then(|row| players(row)),
        details: row.and_then(|row| row.info.as_deref()).map(details).unwrap_or_default(),
        join: server.as_ref().and_then(ServerRow::join),
        join_command: row.and_then(|row| join_command(row)),
        picture: picture.map(|picture| format!("{}{picture}", settings.site.base())),
        history,
        span,
        settings: &settings,
        cursor: snapshot.cursor().to_string(),
        site_url,
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
    let layout = Layout::new(&state, "You are leaving this site", "/");
    Ok(page(StatusCode::OK, &WebsitePage { layout, id, name, link }))
}

/// A small page that other sites may show in a frame.
pub(super) async fn embed(State(state): State<Arc<AppState>>, PathId(id): PathId) -> Result<Response, PageError> {
    let id = parse(&id)?;
    let snapshot = state.live.snapshot();
    let settings = state.settings();
    let server = snapshot.record(id).map(|row| ServerRow::new(row, &settings, unix_now()));
    let layout = Layout::new(&state, "Server", "/").with_script("embed.js");
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

/// The server's own answer, apart from the fields that its registration has as well.
fn details(info: &ServerInfo) -> Vec<(&'static str, String)> {
    let join = |texts: Vec<&str>| texts.join(", ");
    let mods = info.mods.iter().filter_map(|one| one.name.as_deref().or(one.id.as_deref())).collect();
    let teams = info.teams.iter().map(|team| &*team.name).filter(|name| !name.is_empty()).collect();
    let spectators = info.spectators.filter(|count| *count > 0).map(format::count);
    let all = [
        ("Description", info.description.clone()),
        ("Mode", info.mode.clone()),
        ("Mods", Some(join(mods))),
        ("Tags", Some(join(info.tags.iter().map(String::as_str).collect()))),
        ("Teams", Some(join(teams))),
        ("Spectators", spectators),
    ];
    all.into_iter().filter_map(|(name, text)| Some((name, text.filter(|text| !text.trim().is_empty())?))).collect()
}

/// The command that joins a room of `rallypoint host`.
struct JoinCommand {
    address: SocketAddr,
    /// The key of the room, in hexadecimal digits.
    key: Option<String>,
}

/// The command that joins a server, if it is such a room.
fn join_command(row: &ServerRecord) -> Option<JoinCommand> {
    let is_room = list_names::ROOMS.parse() == Ok(row.list);
    let address = row.addresses().next().filter(|_| is_room)?;
    let key = row.table().into_iter().find(|(key, _)| key == "x-session-key").map(|(_, value)| value);
    let key = key.filter(|key| key.len() == 64 && key.bytes().all(|digit| digit.is_ascii_hexdigit()));
    Some(JoinCommand { address, key })
}

/// A file name as a segment of an address.
fn encode(name: &str) -> String {
    form_urlencoded::byte_serialize(name.as_bytes()).collect::<String>().replace('+', "%20")
}

impl ServerPage<'_> {
    /// Whether a player has a team, or is a spectator.
    fn has_teams(&self) -> bool {
        self.players.iter().flatten().any(|player| player.is_spectator || !player.team.is_empty())
    }

    fn describe(&self, kind: &EventKind) -> String {
        history::describe(kind, self.settings)
    }
}
