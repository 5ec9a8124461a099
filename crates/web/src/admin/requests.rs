//! What the operator asks for.

use super::{
    Admin,
    audit::Entry,
    part::Part,
    record::{Full, NumberedBan, Record},
};
use crate::{api::answer::JSON, calendar, gate::Visitor, id::Id, problem::Problem, shared::Web};
use axum::{
    Extension,
    extract::{RawQuery, State, rejection::BytesRejection},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use rallypoint_history::export::parse_time;
use rallypoint_lobby_proto::{Ban, BanError, BanSubject, BannedServer, Network, PublicId, operator_text};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    net::SocketAddr,
    time::{Duration, SystemTime},
};

/// How long a server that was taken off the list is banned, if nothing is said. In seconds.
const UNLISTED: u64 = 600;

/// The longest that can be said, in seconds: a year.
const LONGEST: u64 = 366 * 24 * 60 * 60;

/// The last moment that can be said, in seconds since 1970: calendars end with the year 9999.
const LAST_MOMENT: u64 = 253_402_300_799;

type Body = Result<Bytes, BytesRejection>;

/// A ban that is wanted.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WantedBan {
    address: Option<String>,
    network: Option<String>,
    name: Option<String>,
    #[serde(default)]
    reason: String,
    /// A date, a time, or seconds since 1970.
    until: Option<String>,
    /// Or how long.
    seconds: Option<u64>,
}

/// How a server is to be taken off the list.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct WantedUnlist {
    reason: String,
    seconds: Option<u64>,
    ban: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WantedNote {
    about: String,
    text: String,
}

/// A ban as it is shown.
#[derive(Serialize)]
struct ShownBan<'a> {
    /// `None` for those of the configuration, which can be changed only there.
    id: Option<u64>,
    #[serde(flatten)]
    ban: &'a Ban,
    since: Option<u64>,
    source: &'static str,
    in_force: bool,
}

/// `GET /api/v1/admin/bans`
pub(super) async fn bans(State(web): State<Web>, RawQuery(query): RawQuery) -> Result<Response, Problem> {
    let (part, _) = Part::parse(query.as_deref(), None)?;
    let (settings, admin, now) = (web.settings(), admin(&web)?, SystemTime::now());
    let record = admin.record();
    let ours = record.bans.iter().map(|ban| shown(ban, now));
    let of_files = settings.bans.iter().map(|ban| {
        let in_force = ban.is_in_force(now);
        ShownBan { id: None, ban, since: None, source: "configuration", in_force }
    });
    let all: Vec<_> = ours.chain(of_files).collect();
    Ok(json(StatusCode::OK, &part.of("bans", &all)))
}

/// `POST /api/v1/admin/bans`
pub(super) async fn ban(
    State(web): State<Web>,
    Extension(visitor): Extension<Visitor>,
    body: Body,
) -> Result<Response, Problem> {
    let wanted: WantedBan = read(body)?;
    let now = calendar::now();
    let until = match (&wanted.until, wanted.seconds) {
        (None, None) => None,
        (None, Some(seconds)) => Some(now.saturating_add(within_a_year(seconds)?)),
        (Some(until), None) => Some(moment(until, now)?),
        (Some(_), Some(_)) => return Err(wrong("until", "until: expected until or seconds, not both")),
    };
    let network = |text: String| BanSubject::network(text.parse()?);
    let (field, subject) = match (wanted.address, wanted.network, wanted.name) {
        (Some(address), None, None) => ("address", network(address)),
        (None, Some(text), None) => ("network", network(text)),
        (None, None, Some(name)) => ("name", BanSubject::name(&name)),
        _ => ("network", Err(BanError::Subject)),
    };
    let subject = subject.map_err(|error| of(field, &error))?;
    let reason = operator_text(&wanted.reason).map_err(|error| of("reason", &error))?;
    let ban = Ban { subject, reason: reason.into(), until: until.map(time_of) };
    let change = move |record: &mut Record| {
        let entry = entry(visitor, "ban", ban.subject.to_string(), ban.reason.to_string(), until);
        Ok((record.put_ban(ban, now)?, vec![entry]))
    };
    let (ban, is_new) = admin(&web)?.change(&web.lobby, change).await?;
    Ok(json(if is_new { StatusCode::CREATED } else { StatusCode::OK }, &shown(&ban, time_of(now))))
}

/// `DELETE /api/v1/admin/bans/{id}`
pub(super) async fn unban(
    State(web): State<Web>,
    Extension(visitor): Extension<Visitor>,
    Id(id): Id,
) -> Result<Response, Problem> {
    let id = number(&id)?;
    let change = move |record: &mut Record| {
        let removed = record.remove_ban(id).ok_or_else(|| {
            Problem::not_found("there is no such ban; those of the configuration can be changed only there")
        })?;
        Ok(((), vec![entry(visitor, "unban", removed.ban.subject.to_string(), removed.ban.reason.to_string(), None)]))
    };
    admin(&web)?.change(&web.lobby, change).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `POST /api/v1/admin/servers/{id}/unlist`
pub(super) async fn unlist(
    State(web): State<Web>,
    Extension(visitor): Extension<Visitor>,
    Id(id): Id,
    body: Body,
) -> Result<Response, Problem> {
    let id: PublicId = id.parse().map_err(|error| wrong("id", format!("id: {error}")))?;
    let wanted = match body {
        Ok(body) if body.is_empty() => WantedUnlist::default(),
        body => read(body)?,
    };
    let seconds = within_a_year(wanted.seconds.unwrap_or(UNLISTED))?;
    let reason = operator_text(&wanted.reason).map_err(|error| of("reason", &error))?;
    let row = web.live.snapshot().record(id).cloned();
    let row = row.ok_or_else(|| Problem::not_found("no server of this ID is in the list"))?;
    let addresses: Vec<_> = row.addresses().collect();
    let banned: Vec<_> = addresses.iter().map(SocketAddr::ip).filter(|_| wanted.ban).collect();
    let server = BannedServer { id, name: row.name.to_string(), transport: row.transport, addresses };
    let now = calendar::now();
    let until = now.saturating_add(seconds);
    let answer = serde_json::json!({ "id": id.to_string(), "name": row.name, "until": until, "banned": banned });
    let change = move |record: &mut Record| {
        let networks = banned.into_iter().map(|ip| ("ban", BanSubject::Network(ip.into())));
        let mut entries = Vec::new();
        for (action, subject) in [("unlist", BanSubject::Server(server))].into_iter().chain(networks) {
            entries.push(entry(visitor, action, subject.to_string(), reason.clone(), Some(until)));
            let ban = Ban { subject, reason: reason.as_str().into(), until: Some(time_of(until)) };
            record.put_ban(ban, now)?;
        }
        Ok(((), entries))
    };
    admin(&web)?.change(&web.lobby, change).await?;
    Ok(json(StatusCode::OK, &answer))
}

/// `GET /api/v1/admin/notes`
pub(super) async fn notes(State(web): State<Web>, RawQuery(query): RawQuery) -> Result<Response, Problem> {
    let (part, about) = Part::parse(query.as_deref(), Some("about"))?;
    let about = about.map(|about| subject(&about)).transpose()?;
    let record = admin(&web)?.record();
    let notes = record.notes.iter().filter(|note| about.as_ref().is_none_or(|about| note.about == *about));
    Ok(json(StatusCode::OK, &part.of("notes", &notes.collect::<Vec<_>>())))
}

/// `POST /api/v1/admin/notes`
pub(super) async fn note(
    State(web): State<Web>,
    Extension(visitor): Extension<Visitor>,
    body: Body,
) -> Result<Response, Problem> {
    let wanted: WantedNote = read(body)?;
    let about = subject(&wanted.about)?;
    let text = operator_text(&wanted.text).map_err(|error| of("text", &error))?;
    if text.is_empty() {
        return Err(wrong("text", "text: it is empty"));
    }
    let change = move |record: &mut Record| {
        let entry = entry(visitor, "note", about.clone(), text.clone(), None);
        Ok((record.add_note(about, text, entry.time)?, vec![entry]))
    };
    let note = admin(&web)?.change(&web.lobby, change).await?;
    Ok(json(StatusCode::CREATED, &note))
}

/// `DELETE /api/v1/admin/notes/{id}`
pub(super) async fn forget_note(
    State(web): State<Web>,
    Extension(visitor): Extension<Visitor>,
    Id(id): Id,
) -> Result<Response, Problem> {
    let id = number(&id)?;
    let change = move |record: &mut Record| {
        let note = record.remove_note(id).ok_or_else(|| Problem::not_found("there is no such note"))?;
        Ok(((), vec![entry(visitor, "forget_note", note.about, note.text, None)]))
    };
    admin(&web)?.change(&web.lobby, change).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `GET /api/v1/admin/audit`
pub(super) async fn audit(State(web): State<Web>, RawQuery(query): RawQuery) -> Result<Response, Problem> {
    let (part, _) = Part::parse(query.as_deref(), None)?;
    let entries = admin(&web)?.audit().await?;
    Ok(json(StatusCode::OK, &part.of("entries", &entries)))
}

/// There is one wherever a request gets this far.
fn admin(web: &Web) -> Result<&Admin, Problem> {
    web.admin.as_ref().ok_or_else(|| Problem::not_found("there is no admin API here"))
}

impl From<Full> for Problem {
    fn from(full: Full) -> Self {
        Self::new(StatusCode::CONFLICT, full.to_string())
    }
}

fn entry(Visitor { ip, .. }: Visitor, action: &str, about: String, reason: String, until: Option<u64>) -> Entry {
    Entry { time: calendar::now(), from: ip, action: action.into(), about, reason, until }
}

fn shown(numbered: &NumberedBan, now: SystemTime) -> ShownBan<'_> {
    let NumberedBan { id, ban, since } = numbered;
    ShownBan { id: Some(*id), ban, since: Some(*since), source: "admin", in_force: ban.is_in_force(now) }
}

/// What a note is about: a server by its public ID, an address or a network.
fn subject(about: &str) -> Result<String, Problem> {
    let about = about.trim();
    let network = || about.parse::<Network>().map(|network| network.to_string());
    about
        .parse::<PublicId>()
        .map(|id| id.to_string())
        .or_else(|_| network())
        .map_err(|_| wrong("about", "about: expected the public ID of a server, an address or a network"))
}

/// A time that is given in seconds since 1970, none of which is later than [`LAST_MOMENT`] and a year.
fn time_of(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

/// A moment to come.
fn moment(text: &str, now: u64) -> Result<u64, Problem> {
    let expected = || wrong("until", "until: expected a date such as 2027-01-31 or 2027-01-31T18:00:00Z, to come");
    let moment = parse_time(text).ok().and_then(|time| u64::try_from(time).ok());
    moment.filter(|moment| *moment > now && *moment <= LAST_MOMENT).ok_or_else(expected)
}

fn within_a_year(seconds: u64) -> Result<u64, Problem> {
    let expected = || wrong("seconds", format!("seconds: expected a number from 1 to {LONGEST}, a year"));
    Some(seconds).filter(|seconds| (1..=LONGEST).contains(seconds)).ok_or_else(expected)
}

fn number(id: &str) -> Result<u64, Problem> {
    let is_as_shown = |number: &u64| number.to_string() == id;
    id.parse().ok().filter(is_as_shown).ok_or_else(|| wrong("id", "id: expected a number, as in the list"))
}

/// The body of a request.
fn read<T: DeserializeOwned>(body: Body) -> Result<T, Problem> {
    let body = body.map_err(|error| Problem::new(error.status(), "the request is too long"))?;
    let wrong = |why: &dyn std::fmt::Display| {
        Problem::new(StatusCode::BAD_REQUEST, format!("the body of the request is not what is expected: {why}"))
    };
    // An array would be taken for the fields in their order, which nobody knows.
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err(wrong(&"it is no JSON object"));
    }
    serde_json::from_slice(&body).map_err(|error| wrong(&error))
}

fn of(field: &str, error: &BanError) -> Problem {
    wrong(field, format!("{field}: {error}"))
}

fn wrong(field: &str, detail: impl Into<String>) -> Problem {
    Problem::parameter(field, detail)
}

fn json(status: StatusCode, body: &impl Serialize) -> Response {
    (status, [(header::CONTENT_TYPE, JSON)], serde_json::to_vec(body).unwrap_or_default()).into_response()
}
