//! Bans, notes and audit entries as JSON: times in RFC 3339 format, and null for what is absent, as in the rest of the API.

use super::pagination::Part;
use crate::{
    json::{text, time, time_or_null},
    words::{DecisionSource, Transport},
};
use rallypoint_lobby::{AuditEntry, Note, StoredBan};
use rallypoint_lobby_proto::{Ban, BanSubject, PublicId, UnlistedServer};
use serde::Serialize;
use std::{
    net::{IpAddr, SocketAddr},
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
    #[schema(required)]
    server: Option<UnlistedServerEntry<'a>>,
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
    source: DecisionSource,
    /// Whether the ban has not ended.
    in_force: bool,
}

/// A server that was removed from the list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UnlistedServerEntry<'a> {
    /// The public ID.
    #[serde(serialize_with = "text")]
    #[schema(value_type = String)]
    id: PublicId,
    /// The name.
    name: &'a str,
    /// The transport protocol.
    transport: Transport,
    /// The addresses with port.
    #[schema(value_type = Vec<String>)]
    addresses: &'a [SocketAddr],
}

impl<'a> From<&'a UnlistedServer> for UnlistedServerEntry<'a> {
    fn from(server: &'a UnlistedServer) -> Self {
        let UnlistedServer { id, name, transport, addresses } = server;
        Self { id: *id, name, transport: (*transport).into(), addresses }
    }
}

/// The result of the removal of a server from the list.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Unlisted)]
pub(crate) struct UnlistResult<'a> {
    /// The public ID.
    #[serde(serialize_with = "text")]
    #[schema(value_type = String)]
    pub id: PublicId,
    /// The name.
    pub name: &'a str,
    /// The end of the ban.
    #[serde(serialize_with = "time")]
    #[schema(value_type = String, format = "date-time")]
    pub until: u64,
    /// The addresses that are banned as well.
    #[schema(value_type = Vec<String>)]
    pub banned: Vec<IpAddr>,
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

/// A change by the operator, as the audit log names it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "the log stores the word")]
enum AuditAction {
    Ban,
    Unban,
    Unlist,
    Note,
    ForgetNote,
}

/// Makes a type for a part of a list.
macro_rules! page {
    ($(#[$meta:meta])* $name:ident { $(#[$doc:meta])* $items:ident: $view:ident }) => {
        #[derive(Debug, Serialize, ToSchema)]
        $(#[$meta])*
        pub(crate) struct $name<'a> {
            /// Number of items in the whole list.
            total: usize,
            /// Number of items skipped.
            offset: usize,
            /// Number of items in this response.
            count: usize,
            $(#[$doc])*
            $items: &'a [$view<'a>],
        }

        impl<'a> From<Part<'a, $view<'a>>> for $name<'a> {
            fn from(part: Part<'a, $view<'a>>) -> Self {
                let Part { total, offset, items: $items } = part;
                Self { total, offset, count: $items.len(), $items }
            }
        }
    };
}

page! {
    /// A part of the list of bans.
    #[schema(as = Bans)]
    BanPage {
        /// The bans.
        bans: BanView
    }
}

page! {
    /// A part of the list of notes.
    #[schema(as = Notes)]
    NotePage {
        /// The notes.
        notes: NoteView
    }
}

page! {
    /// A part of the audit log.
    #[schema(as = Audit)]
    AuditPage {
        /// The entries, the latest first.
        entries: AuditView
    }
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
            source: DecisionSource::Configuration,
            in_force: ban.is_in_force(now),
        };
        match &ban.subject {
            BanSubject::Network(network) => view.network = Some(network.to_string()),
            BanSubject::Name(pattern) => view.name = Some(pattern.to_string()),
            BanSubject::Server(server) => view.server = Some(server.into()),
        }
        view
    }

    /// A ban that was made through the admin API.
    pub fn stored(stored: &'a StoredBan, now: SystemTime) -> Self {
        let StoredBan { id, ban, since } = stored;
        Self { id: Some(*id), since: Some(*since), source: DecisionSource::Admin, ..Self::configured(ban, now) }
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
