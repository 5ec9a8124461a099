//! The handlers of the admin API.

use super::pagination::Pagination;
use crate::{api::response::JSON, middleware::ClientAddr, path_id::PathId, problem::Problem, state::AppState};
use axum::{
    Extension,
    extract::{RawQuery, State, rejection::BytesRejection},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use rallypoint_history::export::parse_time;
use rallypoint_lobby::{AdminError, AdminStore, StoredBan, unix_now};
use rallypoint_lobby_proto::{Ban, BanError, BanSubject, BannedServer, Network, PublicId, operator_text};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, SystemTime},
};

/// Default time in seconds for which an unlisted server is banned.
const DEFAULT_UNLIST: u64 = 600;

/// Maximum duration of a ban in seconds: a year.
const MAX_DURATION: u64 = 366 * 24 * 60 * 60;

/// Maximum end of a ban in seconds since 1970: the end of the year 9999.
const MAX_END: u64 = 253_402_300_799;

type Body = Result<Bytes, BytesRejection>;

/// A request to ban an address, a network or a name.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BanRequest {
    address: Option<String>,
    network: Option<String>,
    name: Option<String>,
    #[serde(default)]
    reason: String,
    /// The end: a date, a time, or seconds since 1970.
    until: Option<String>,
    /// The duration in seconds, instead of the end.
    seconds: Option<u64>,
}

/// A request to remove a server from the list.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct UnlistRequest {
    reason: String,
    seconds: Option<u64>,
    ban: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoteRequest {
    about: String,
    text: String,
}

/// A ban in a response.
#[derive(Serialize)]
struct BanView<'a> {
    /// `None` for bans of the configuration file, which can be changed only there.
    id: Option<u64>,
    #[serde(flatten)]
    ban: &'a Ban,
    since: Option<u64>,
    source: &'static str,
    in_force: bool,
}

/// Lists the bans, those of the configuration file included.
pub(super) async fn bans(State(state): State<Arc<AppState>>, RawQuery(query): RawQuery) -> Result<Response, Problem> {
    let (pagination, _) = Pagination::parse(query.as_deref(), None)?;
    let settings = state.settings();
    let now = SystemTime::now();
    let record = admin(&state)?.record();
    let added = record.bans.iter().map(|ban| view(ban, now));
    let configured = settings.bans.iter().map(|ban| {
        let in_force = ban.is_in_force(now);
        BanView { id: None, ban, since: None, source: "configuration", in_force }
    });
    let all: Vec<_> = added.chain(configured).collect();
    Ok(json(StatusCode::OK, &pagination.page("bans", &all)))
}

/// Adds a ban, or replaces the ban of the same subject.
pub(super) async fn ban(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<ClientAddr>,
    body: Body,
) -> Result<Response, Problem> {
    let request: BanRequest = parse_body(body)?;
    let now = unix_now();
    let until = match (&request.until, request.seconds) {
        (None, None) => None,
        (None, Some(seconds)) => Some(now.saturating_add(within_a_year(seconds)?)),
        (Some(until), None) => Some(future_time(until, now)?),
        (Some(_), Some(_)) => return Err(invalid("until", "until: expected either until or seconds, not both")),
    };
    let network = |text: String| BanSubject::network(text.parse()?);
    let (field, subject) = match (request.address, request.network, request.name) {
        (Some(address), None, None) => ("address", network(address)),
        (None, Some(text), None) => ("network", network(text)),
        (None, None, Some(name)) => ("name", BanSubject::name(&name)),
        _ => ("network", Err(BanError::Subject)),
    };
    let subject = subject.map_err(|error| invalid_ban(field, &error))?;
    let reason = operator_text(&request.reason).map_err(|error| invalid_ban("reason", &error))?;
    let ban = Ban { subject, reason: reason.into(), until: until.map(time_of) };
    let (ban, is_new) = admin(&state)?.put_ban(ban, client.ip).await?;
    Ok(json(if is_new { StatusCode::CREATED } else { StatusCode::OK }, &view(&ban, time_of(now))))
}

/// Removes a ban.
pub(super) async fn unban(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<ClientAddr>,
    PathId(id): PathId,
) -> Result<Response, Problem> {
    admin(&state)?.remove_ban(number(&id)?, client.ip).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Removes a server from the list, and bans it for some time.
pub(super) async fn unlist(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<ClientAddr>,
    PathId(id): PathId,
    body: Body,
) -> Result<Response, Problem> {
    let id: PublicId = id.parse().map_err(|error| invalid("id", format!("id: {error}")))?;
    let request = match body {
        Ok(body) if body.is_empty() => UnlistRequest::default(),
        body => parse_body(body)?,
    };
    let seconds = within_a_year(request.seconds.unwrap_or(DEFAULT_UNLIST))?;
    let reason = operator_text(&request.reason).map_err(|error| invalid_ban("reason", &error))?;
    let row = state.live.snapshot().record(id).cloned();
    let row = row.ok_or_else(|| Problem::not_found("no server with this ID is in the list"))?;
    let addresses: Vec<_> = row.addresses().collect();
    let banned: Vec<_> = addresses.iter().map(SocketAddr::ip).filter(|_| request.ban).collect();
    let server = BannedServer { id, name: row.name.to_string(), transport: row.transport, addresses };
    let until = unix_now().saturating_add(seconds);
    let answer = serde_json::json!({ "id": id.to_string(), "name": row.name, "until": until, "banned": banned });
    admin(&state)?.unlist(server, request.ban, &reason, time_of(until), client.ip).await?;
    Ok(json(StatusCode::OK, &answer))
}

/// Lists the notes.
pub(super) async fn notes(State(state): State<Arc<AppState>>, RawQuery(query): RawQuery) -> Result<Response, Problem> {
    let (pagination, about) = Pagination::parse(query.as_deref(), Some("about"))?;
    let about = about.map(|about| subject(&about)).transpose()?;
    let record = admin(&state)?.record();
    let notes = record.notes.iter().filter(|note| about.as_ref().is_none_or(|about| note.about == *about));
    Ok(json(StatusCode::OK, &pagination.page("notes", &notes.collect::<Vec<_>>())))
}

/// Adds a note.
pub(super) async fn add_note(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<ClientAddr>,
    body: Body,
) -> Result<Response, Problem> {
    let request: NoteRequest = parse_body(body)?;
    let about = subject(&request.about)?;
    let text = operator_text(&request.text).map_err(|error| invalid_ban("text", &error))?;
    if text.is_empty() {
        return Err(invalid("text", "text: it is empty"));
    }
    let note = admin(&state)?.add_note(about, text, client.ip).await?;
    Ok(json(StatusCode::CREATED, &note))
}

/// Removes a note.
pub(super) async fn remove_note(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<ClientAddr>,
    PathId(id): PathId,
) -> Result<Response, Problem> {
    admin(&state)?.remove_note(number(&id)?, client.ip).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Lists the entries of the audit log, the latest first.
pub(super) async fn audit(State(state): State<Arc<AppState>>, RawQuery(query): RawQuery) -> Result<Response, Problem> {
    let (pagination, _) = Pagination::parse(query.as_deref(), None)?;
    let entries = admin(&state)?.audit().await?;
    Ok(json(StatusCode::OK, &pagination.page("entries", &entries)))
}

/// The store of the operator's changes. Requests are authorized only if there is one.
fn admin(state: &AppState) -> Result<&AdminStore, Problem> {
    state.lobby.admin().ok_or_else(|| Problem::not_found("the admin API is off"))
}

impl From<AdminError> for Problem {
    fn from(error: AdminError) -> Self {
        match error {
            AdminError::NoSuchBan | AdminError::NoSuchNote => Self::not_found(error.to_string()),
            AdminError::TooManyBans | AdminError::TooManyNotes | AdminError::NoFreeId => {
                Self::new(StatusCode::CONFLICT, error.to_string())
            }
            AdminError::Storage(_) => {
                let detail = "the data directory cannot be used, so nothing was changed: see the log";
                Self::new(StatusCode::SERVICE_UNAVAILABLE, detail)
            }
            _ => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "the change failed because of a bug: see the log"),
        }
    }
}

fn view(stored: &StoredBan, now: SystemTime) -> BanView<'_> {
    let StoredBan { id, ban, since } = stored;
    BanView { id: Some(*id), ban, since: Some(*since), source: "admin", in_force: ban.is_in_force(now) }
}

/// Parses the subject of a note: the public ID of a server, an address or a network.
fn subject(about: &str) -> Result<String, Problem> {
    let about = about.trim();
    let network = || about.parse::<Network>().map(|network| network.to_string());
    about
        .parse::<PublicId>()
        .map(|id| id.to_string())
        .or_else(|_| network())
        .map_err(|_| invalid("about", "about: expected the public ID of a server, an address or a network"))
}

/// A time in seconds since 1970, which is at most a year after [`MAX_END`], so that the sum does not overflow.
fn time_of(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

/// Parses a time in the future, in seconds since 1970.
fn future_time(text: &str, now: u64) -> Result<u64, Problem> {
    let expected =
        || invalid("until", "until: expected a date or time in the future, such as 2027-01-31 or 2027-01-31T18:00:00Z");
    let time = parse_time(text).ok().and_then(|time| u64::try_from(time).ok());
    time.filter(|time| *time > now && *time <= MAX_END).ok_or_else(expected)
}

/// Checks that a duration is not zero and at most a year.
fn within_a_year(seconds: u64) -> Result<u64, Problem> {
    let expected = || invalid("seconds", format!("seconds: expected a number from 1 to {MAX_DURATION} (a year)"));
    Some(seconds).filter(|seconds| (1..=MAX_DURATION).contains(seconds)).ok_or_else(expected)
}

/// Parses the number of a ban or note, in the form in which it is listed.
fn number(id: &str) -> Result<u64, Problem> {
    let is_canonical = |number: &u64| number.to_string() == id;
    id.parse().ok().filter(is_canonical).ok_or_else(|| invalid("id", "id: expected the number of an entry of the list"))
}

/// Parses the JSON body of a request.
fn parse_body<T: DeserializeOwned>(body: Body) -> Result<T, Problem> {
    let body = body.map_err(|error| Problem::new(error.status(), "the body of the request is too long"))?;
    let invalid = |reason: &dyn std::fmt::Display| {
        Problem::new(StatusCode::BAD_REQUEST, format!("the body of the request is invalid: {reason}"))
    };
    // serde would accept an array as the fields in their order, which is not part of the API.
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err(invalid(&"it is not a JSON object"));
    }
    serde_json::from_slice(&body).map_err(|error| invalid(&error))
}

fn invalid_ban(field: &str, error: &BanError) -> Problem {
    invalid(field, format!("{field}: {error}"))
}

fn invalid(field: &str, detail: impl Into<String>) -> Problem {
    Problem::parameter(field, detail)
}

fn json(status: StatusCode, body: &impl Serialize) -> Response {
    (status, [(header::CONTENT_TYPE, JSON)], serde_json::to_vec(body).unwrap_or_default()).into_response()
}
