//! Bans, notes and audit entries as JSON: times in RFC 3339 format, and null for what is absent, as in the rest of the API.

use crate::{
    api::schema::{AuditAction, BanSource, BannedServerEntry},
    json::{time, time_or_null},
};
use rallypoint_lobby::{AuditEntry, Note, StoredBan};
use rallypoint_lobby_proto::{Ban, BanSubject, BannedServer};
use serde::Serialize;
use std::{
    net::IpAddr,
    time::{SystemTime, UNIX_EPOCH},
};
use utoipa::ToSchema;

/// A ban. One of `network`, `name` and `server` is not null.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Ban)]
pub(crate) struct BanView<'a> {
    /// The number of the ban; null for bans of the configuration file, which can be changed only there.
    #[schema(required)]
    id: Option<u64>,
    /// The banned address or network.
    #[schema(required)]
    network: Option<String>,
    /// The banned pattern of names.
    #[schema(required)]
    name: Option<String>,
    /// A server that was removed from the list, and any server that takes its ID or address.
    #[schema(required, value_type = Option<BannedServerEntry>)]
    server: Option<&'a BannedServer>,
    /// The reason.
    reason: &'a str,
    /// The end; null for a permanent ban.
    #[serde(serialize_with = "time_or_null")]
    #[schema(required, value_type = Option<String>, format = "date-time")]
    until: Option<u64>,
    /// The time of the ban; null for bans of the configuration file.
    #[serde(serialize_with = "time_or_null")]
    #[schema(required, value_type = Option<String>, format = "date-time")]
    since: Option<u64>,
    /// Where the ban was made.
    #[schema(value_type = BanSource)]
    source: &'static str,
    /// Whether the ban has not ended.
    in_force: bool,
}

/// A note about a server, an address or a network.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Note)]
pub(crate) struct NoteView<'a> {
    /// The number of the note.
    id: u64,
    /// The public ID of a server, an address or a network.
    about: &'a str,
    /// The text.
    text: &'a str,
    /// The time of the note.
    #[serde(serialize_with = "time")]
    #[schema(value_type = String, format = "date-time")]
    time: u64,
}

/// An entry of the audit log.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AuditEntry)]
pub(crate) struct AuditView<'a> {
    /// The time of the change.
    #[serde(serialize_with = "time")]
    #[schema(value_type = String, format = "date-time")]
    time: u64,
    /// The address of the operator.
    #[schema(value_type = String)]
    from: IpAddr,
    /// The change.
    #[schema(value_type = AuditAction)]
    action: &'a str,
    /// The subject of the change.
    about: &'a str,
    /// The reason, or the text of a note.
    #[schema(required)]
    reason: Option<&'a str>,
    /// The end of a ban.
    #[serde(serialize_with = "time_or_null")]
    #[schema(required, value_type = Option<String>, format = "date-time")]
    until: Option<u64>,
}

impl<'a> BanView<'a> {
    /// A ban of the configuration file.
    pub fn configured(ban: &'a Ban, now: SystemTime) -> Self {
        let mut view = Self {
            id: None,
            network: None,
            name: None,
            server: None,
            reason: &ban.reason,
            until: ban.until.map(|until| until.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()),
            since: None,
            source: "configuration",
            in_force: ban.is_in_force(now),
        };
        match &ban.subject {
            BanSubject::Network(network) => view.network = Some(network.to_string()),
            BanSubject::Name(pattern) => view.name = Some(pattern.to_string()),
            BanSubject::Server(server) => view.server = Some(server),
        }
        view
    }

    /// A ban that was made through the admin API.
    pub fn stored(stored: &'a StoredBan, now: SystemTime) -> Self {
        let StoredBan { id, ban, since } = stored;
        Self { id: Some(*id), since: Some(*since), source: "admin", ..Self::configured(ban, now) }
    }
}

impl<'a> From<&'a Note> for NoteView<'a> {
    fn from(note: &'a Note) -> Self {
        let Note { id, about, text, time } = note;
        Self { id: *id, about, text, time: *time }
    }
}

impl<'a> From<&'a AuditEntry> for AuditView<'a> {
    fn from(entry: &'a AuditEntry) -> Self {
        let AuditEntry { time, from, action, about, reason, until } = entry;
        let reason = Some(&**reason).filter(|reason| !reason.is_empty());
        Self { time: *time, from: *from, action, about, reason, until: *until }
    }
}
