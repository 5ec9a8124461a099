//! The handlers of the admin API.

use super::{
    pagination::Pagination,
    request_schema::{MAX_DURATION, NoteSubject, operator_text_schema, seconds_schema},
    views::{AuditPage, AuditView, BanPage, BanView, NotePage, NoteView, UnlistResult},
};
use crate::{
    api::{
        response::JSON,
        schema::{EntryNumber, PublicIdPath},
    },
    middleware::ClientAddr,
    path_id::PathId,
    problem::Problem,
    state::AppState,
};
use axum::{
    Extension,
    extract::{RawQuery, State, rejection::BytesRejection},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use rallypoint_history::{UnixSeconds, export::parse_time};
use rallypoint_lobby::{AdminError, AdminStore, unix_now};
use rallypoint_lobby_proto::{
    Ban, BanSubject, CanonicalNetwork, OperatorInputError, PublicId, UnlistedServer, operator_text,
};
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, SystemTime},
};
use utoipa::ToSchema;

/// Default time in seconds for which an unlisted server is banned.
const DEFAULT_UNLIST: u64 = 600;

/// Maximum end of a ban in seconds since 1970: the end of the year 9999.
const MAX_END: UnixSeconds = 253_402_300_799;

type Body = Result<Bytes, BytesRejection>;

/// A request for a ban: one of `address`, `network` and `name`, and at most one of `until` and `seconds`. Its schema is in
/// [`request_schema`](super::request_schema).
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BanRequest {
    #[serde(default, deserialize_with = "not_null")]
    address: Option<String>,
    #[serde(default, deserialize_with = "not_null")]
    network: Option<String>,
    #[serde(default, deserialize_with = "not_null")]
    name: Option<String>,
    #[serde(default)]
    reason: String,
    #[serde(default, deserialize_with = "not_null")]
    until: Option<String>,
    #[serde(default, deserialize_with = "whole_number")]
    seconds: Option<u64>,
}

/// A request to remove a server from the list.
#[derive(Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
struct UnlistRequest {
    /// The reason, which the owner of the server can read.
    #[schema(schema_with = operator_text_schema, required = false)]
    reason: String,
    /// The duration in seconds, at most a year. Default: 600.
    #[serde(deserialize_with = "whole_number")]
    #[schema(schema_with = seconds_schema, required = false)]
    seconds: Option<u64>,
    /// Whether its addresses are banned as well, for the same time.
    ban: bool,
}

/// A request for a note.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NoteRequest {
    about: String,
    text: String,
}

/// Reads the value of a field that may be absent, but not null.
fn not_null<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// Reads a whole number that may be absent, but not null. JSON does not distinguish 5 and 5.0.
fn whole_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let number = serde_json::Number::deserialize(deserializer)?;
    let whole = number.as_f64().filter(|number| number.fract() == 0.0 && (0.0..=MAX_DURATION as f64).contains(number));
    // Beyond the maximum, the exact value does not matter.
    Ok(Some(number.as_u64().or(whole.map(|number| number as u64)).unwrap_or(u64::MAX)))
}

/// The bans, including those of the configuration file
#[utoipa::path(
    get,
    operation_id = "list_bans",
    path = "/api/v1/admin/bans",
    params(Pagination),
    responses(
        (status = 200, description = "The bans.", body = BanPage),
        (status = 503, description = "Too many long responses are being sent; Retry-After is the time to wait in seconds."),
    )
)]
pub(super) async fn bans(State(state): State<Arc<AppState>>, RawQuery(query): RawQuery) -> Result<Response, Problem> {
    let (pagination, _) = Pagination::parse(query.as_deref(), None)?;
    let settings = state.settings();
    let now = SystemTime::now();
    let record = admin(&state)?.record();
    let added = record.bans.iter().map(|ban| BanView::stored(ban, now));
    let configured = settings.bans.iter().map(|ban| BanView::configured(ban, now));
    let all: Vec<_> = added.chain(configured).collect();
    Ok(json(StatusCode::OK, &BanPage::from(pagination.part(&all))))
}

/// Bans an address, a network or a name pattern; replaces a ban of the same subject
#[utoipa::path(
    post,
    operation_id = "add_ban",
    path = "/api/v1/admin/bans",
    request_body = inline(BanRequest),
    responses(
        (status = 200, description = "The ban of the same subject was replaced.", body = BanView),
        (status = 201, description = "A new ban.", body = BanView),
        (status = 409, description = "The end is not in the future, or there are too many bans."),
        (status = 413, description = "The body is longer than 16 kB."),
        (status = 503, description = "The data directory of the lobby cannot be used; nothing was changed."),
    )
)]
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
        _ => ("network", Err(OperatorInputError::Subject)),
    };
    let subject = subject.map_err(|error| invalid_ban(field, &error))?;
    let reason = operator_text(&request.reason).map_err(|error| invalid_ban("reason", &error))?;
    let ban = Ban { subject, reason: reason.into(), until: until.map(time_of) };
    let (ban, is_new) = admin(&state)?.put_ban(ban, client.ip).await?;
    Ok(json(if is_new { StatusCode::CREATED } else { StatusCode::OK }, &BanView::stored(&ban, time_of(now))))
}

/// Removes a ban; bans of the configuration file can be removed only there
#[utoipa::path(
    delete,
    operation_id = "remove_ban",
    path = "/api/v1/admin/bans/{id}",
    params(EntryNumber),
    responses(
        (status = 204, description = "The ban is removed."),
        (status = 503, description = "The data directory of the lobby cannot be used; nothing was changed."),
    )
)]
pub(super) async fn unban(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<ClientAddr>,
    PathId(id): PathId,
) -> Result<Response, Problem> {
    admin(&state)?.remove_ban(number(&id)?, client.ip).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Removes a server from the list, and bans it for some time
#[utoipa::path(
    post,
    operation_id = "unlist_server",
    path = "/api/v1/admin/servers/{id}/unlist",
    params(PublicIdPath),
    request_body(content = Option<UnlistRequest>, content_type = "application/json"),
    responses(
        (status = 200, description = "The server is removed.", body = UnlistResult),
        (status = 409, description = "There are too many bans."),
        (status = 413, description = "The body is longer than 16 kB."),
        (status = 503, description = "The data directory of the lobby cannot be used; nothing was changed."),
    )
)]
pub(super) async fn unlist(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<ClientAddr>,
    PathId(id): PathId,
    body: Body,
) -> Result<Response, Problem> {
    let id: PublicId = id.parse().map_err(|error| invalid("id", format!("id: {error}")))?;
    let request = match body {
        Ok(body) if body.is_empty() || body.trim_ascii() == b"null" => UnlistRequest::default(),
        body => parse_body(body)?,
    };
    let seconds = within_a_year(request.seconds.unwrap_or(DEFAULT_UNLIST))?;
    let reason = operator_text(&request.reason).map_err(|error| invalid_ban("reason", &error))?;
    let row = state.live.snapshot().record(id).cloned();
    let row = row.ok_or_else(|| Problem::not_found("no server with this ID is in the list"))?;
    let addresses: Vec<_> = row.addresses().collect();
    let banned: Vec<_> = addresses.iter().map(SocketAddr::ip).filter(|_| request.ban).collect();
    let server = UnlistedServer { id, name: row.name.to_string(), transport: row.transport, addresses };
    let until = unix_now().saturating_add(seconds);
    let answer = UnlistResult { id, name: &row.name, until, banned };
    admin(&state)?.unlist(server, request.ban, &reason, time_of(until), client.ip).await?;
    Ok(json(StatusCode::OK, &answer))
}

/// The notes
#[utoipa::path(
    get,
    operation_id = "list_notes",
    path = "/api/v1/admin/notes",
    params(
        (
            "about" = inline(Option<NoteSubject>),
            Query,
            description = "Only notes about this server, address or network.",
            example = "203.0.113.9",
        ),
        Pagination,
    ),
    responses(
        (status = 200, description = "The notes.", body = NotePage),
        (status = 503, description = "Too many long responses are being sent; Retry-After is the time to wait in seconds."),
    )
)]
pub(super) async fn notes(State(state): State<Arc<AppState>>, RawQuery(query): RawQuery) -> Result<Response, Problem> {
    let (pagination, about) = Pagination::parse(query.as_deref(), Some("about"))?;
    let about = about.map(|about| subject(&about)).transpose()?;
    let record = admin(&state)?.record();
    let notes = record.notes.iter().filter(|note| about.as_ref().is_none_or(|about| note.about == *about));
    let notes: Vec<_> = notes.map(NoteView::from).collect();
    Ok(json(StatusCode::OK, &NotePage::from(pagination.part(&notes))))
}

/// Adds a note about a server, an address or a network
#[utoipa::path(
    post,
    path = "/api/v1/admin/notes",
    request_body = inline(NoteRequest),
    responses(
        (status = 201, description = "The note.", body = NoteView),
        (status = 409, description = "There are too many notes."),
        (status = 413, description = "The body is longer than 16 kB."),
        (status = 503, description = "The data directory of the lobby cannot be used; nothing was changed."),
    )
)]
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
    Ok(json(StatusCode::CREATED, &NoteView::from(&note)))
}

/// Removes a note
#[utoipa::path(
    delete,
    path = "/api/v1/admin/notes/{id}",
    params(EntryNumber),
    responses(
        (status = 204, description = "The note is removed."),
        (status = 503, description = "The data directory of the lobby cannot be used; nothing was changed."),
    )
)]
pub(super) async fn remove_note(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<ClientAddr>,
    PathId(id): PathId,
) -> Result<Response, Problem> {
    admin(&state)?.remove_note(number(&id)?, client.ip).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// The audit log, the latest entry first
#[utoipa::path(
    get,
    operation_id = "list_audit_entries",
    path = "/api/v1/admin/audit",
    params(Pagination),
    responses(
        (status = 200, description = "The entries.", body = AuditPage),
        (
            status = 503,
            description = "The data directory of the lobby cannot be read, or too many long responses are being sent; \
                           Retry-After is the time to wait in seconds.",
        ),
    )
)]
pub(super) async fn audit(State(state): State<Arc<AppState>>, RawQuery(query): RawQuery) -> Result<Response, Problem> {
    let (pagination, _) = Pagination::parse(query.as_deref(), None)?;
    let entries = admin(&state)?.audit().await?;
    let entries: Vec<_> = entries.iter().map(AuditView::from).collect();
    Ok(json(StatusCode::OK, &AuditPage::from(pagination.part(&entries))))
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

/// Parses the subject of a note: the public ID of a server, an address or a network.
fn subject(about: &str) -> Result<String, Problem> {
    let about = about.trim();
    let network = || about.parse::<CanonicalNetwork>().map(|network| network.to_string());
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

/// Parses a time in the future, in seconds since 1970. One that is past is a conflict with the current time.
fn future_time(text: &str, now: u64) -> Result<u64, Problem> {
    let expected = "until: expected a date or time in the future, such as 2027-01-31 or 2027-01-31T18:00:00Z";
    let time = parse_time(text).ok().filter(|time| *time <= MAX_END).ok_or_else(|| invalid("until", expected))?;
    let time = u64::try_from(time).unwrap_or(0);
    Some(time)
        .filter(|time| *time > now)
        .ok_or_else(|| Problem::new(StatusCode::CONFLICT, expected).with_parameter("until"))
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

fn invalid_ban(field: &str, error: &OperatorInputError) -> Problem {
    invalid(field, format!("{field}: {error}"))
}

fn invalid(field: &str, detail: impl Into<String>) -> Problem {
    Problem::parameter(field, detail)
}

fn json(status: StatusCode, body: &impl Serialize) -> Response {
    (status, [(header::CONTENT_TYPE, JSON)], serde_json::to_vec(body).unwrap_or_default()).into_response()
}
