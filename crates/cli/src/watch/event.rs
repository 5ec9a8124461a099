//! Events of `rallypoint watch`, as text and as JSON.

use crate::{
    mirror_args,
    output::{json, server_cells},
};
use rallypoint_query::{ProbeError, ScannedServer, mirror::MirroredList};
use serde::Serialize;
use serde_json::Value;
use std::{collections::BTreeMap, fmt, net::SocketAddr};

/// A change of a server or of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchEvent {
    /// The server; `None` if the event is about a list.
    pub server: Option<ScannedServer>,
    /// Index of the target that the event is about.
    pub target_index: usize,
    pub kind: WatchEventKind,
}

/// The kind of change that an event reports.
#[derive(Clone, Debug, PartialEq)]
pub enum WatchEventKind {
    /// A server was found that was not known.
    Appeared {
        /// Whether the first pass found it: then it is not new.
        at_first: bool,
    },
    /// Fields of the server changed.
    Changed(Vec<FieldChange>),
    /// A player with this name joined.
    Joined(String),
    /// A player with this name left.
    Left(String),
    /// The server does not answer.
    Silent {
        error: ProbeError,
        /// Whether it did not answer when it was found.
        at_first: bool,
    },
    /// The server answers again.
    Back,
    /// The server is no longer in its list.
    Gone,
    /// A list cannot be read any more.
    ListFailed(ProbeError),
    /// A list cannot be read any more, and a copy of a mirror takes its place.
    ListCopied(Box<MirroredList>),
    /// A list cannot be read any more, and the copy of this mirror is not used.
    MirrorFailed { mirror: String, message: String },
    /// A list can be read again.
    ListBack,
}

/// A field that changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FieldChange {
    #[serde(skip)]
    pub field: &'static str,
    pub from: Value,
    pub to: Value,
}

/// An event as JSON.
#[derive(Serialize)]
struct EventJson<'a> {
    time: &'a str,
    event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    list: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<SocketAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at_first: Option<bool>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    changes: BTreeMap<&'static str, &'a FieldChange>,
    #[serde(skip_serializing_if = "Option::is_none")]
    player: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mirror: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    age_s: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<json::ServerJson<'a>>,
}

impl WatchEvent {
    /// The event as a JSON object. `target` is the name of the target.
    pub fn json(&self, time: &str, target: &str) -> String {
        let record = self.server.as_ref();
        let error = match &self.kind {
            WatchEventKind::Silent { error, .. } | WatchEventKind::ListFailed(error) => Some(error),
            WatchEventKind::ListCopied(list) => Some(&list.cause),
            _ => None,
        };
        let (mirror, age_s) = match &self.kind {
            WatchEventKind::ListCopied(list) => (Some(list.url.to_string()), Some(list.age.as_secs())),
            WatchEventKind::MirrorFailed { mirror, .. } => (Some(mirror.clone()), None),
            _ => (None, None),
        };
        let at_first = match self.kind {
            WatchEventKind::Appeared { at_first } => Some(at_first),
            _ => None,
        };
        let object = EventJson {
            time,
            event: self.kind.code(),
            list: self.server.is_none().then_some(target),
            id: record.map(|record| &*record.id),
            name: record.map(ScannedServer::name),
            address: record.and_then(|record| record.address),
            at_first,
            changes: match &self.kind {
                WatchEventKind::Changed(changes) => changes.iter().map(|change| (change.field, change)).collect(),
                _ => BTreeMap::new(),
            },
            player: match &self.kind {
                WatchEventKind::Joined(player) | WatchEventKind::Left(player) => Some(player),
                _ => None,
            },
            error: error.map(ProbeError::code),
            message: match &self.kind {
                WatchEventKind::ListCopied(_) => Some(self.describe()),
                WatchEventKind::MirrorFailed { message, .. } => Some(message.clone()),
                _ => error.map(ToString::to_string),
            },
            mirror,
            age_s,
            server: record.filter(|_| at_first.is_some()).map(json::server),
        };
        serde_json::to_string(&object).unwrap_or_default()
    }

    /// A line of text. `target` is the name of the target.
    pub fn line(&self, target: &str) -> String {
        match &self.server {
            Some(server) => format!("{}: {}", server.name(), self.describe()),
            None => format!("{target}: {}", self.describe()),
        }
    }

    fn describe(&self) -> String {
        let record = self.server.as_ref();
        match &self.kind {
            WatchEventKind::Appeared { at_first } => {
                let is_silent = record.is_some_and(|record| record.error.is_some());
                let verb = match (at_first, is_silent) {
                    (false, _) => "appeared",
                    (true, false) => "online",
                    (true, true) => "listed",
                };
                let details = record.map(|record| format!(" ({})", summary(record))).unwrap_or_default();
                format!("{verb}{details}")
            }
            WatchEventKind::Changed(changes) => changes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
            WatchEventKind::Joined(player) => format!("{player} joined"),
            WatchEventKind::Left(player) => format!("{player} left"),
            WatchEventKind::Silent { error, .. } => format!("does not answer: {error}"),
            WatchEventKind::Back => "answers again".into(),
            WatchEventKind::Gone => "no longer listed".into(),
            WatchEventKind::ListFailed(error) => format!("cannot read the list: {error}"),
            WatchEventKind::ListCopied(list) => {
                let cause = mirror_args::describe_cause(&list.cause);
                let copy = format!("{cause}; its list of {} ago is used, from {}", list.age(), list.url);
                std::iter::once(copy).chain(mirror_args::warnings(list)).collect::<Vec<_>>().join("; ")
            }
            WatchEventKind::MirrorFailed { message, .. } => message.clone(),
            WatchEventKind::ListBack => "the list is available again".into(),
        }
    }
}

impl WatchEventKind {
    /// Identifier of the event, for programs.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Appeared { .. } => "appeared",
            Self::Changed(_) => "changed",
            Self::Joined(_) => "player_joined",
            Self::Left(_) => "player_left",
            Self::Silent { .. } => "silent",
            Self::Back => "back",
            Self::Gone => "gone",
            Self::ListFailed(_) => "list_failed",
            Self::ListCopied(_) => "list_copied",
            Self::MirrorFailed { .. } => "mirror_failed",
            Self::ListBack => "list_back",
        }
    }

    /// Whether something was gained or lost, which decides about the colour.
    pub const fn tone(&self) -> Tone {
        match self {
            Self::Appeared { .. } | Self::Joined(_) | Self::Back | Self::ListBack => Tone::Good,
            Self::Changed(_) => Tone::Neutral,
            Self::Left(_)
            | Self::Silent { .. }
            | Self::Gone
            | Self::ListFailed(_)
            | Self::ListCopied(_)
            | Self::MirrorFailed { .. } => Tone::Bad,
        }
    }
}

/// Whether an event is good or bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Good,
    Neutral,
    Bad,
}

impl fmt::Display for FieldChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |value: &Value| match value {
            Value::String(text) if text.is_empty() => "none".to_owned(),
            Value::String(text) => text.clone(),
            Value::Null => "unknown".into(),
            Value::Bool(true) => "yes".into(),
            Value::Bool(false) => "no".into(),
            other => other.to_string(),
        };
        write!(f, "{} {} -> {}", self.field.replace('_', " "), show(&self.from), show(&self.to))
    }
}

fn summary(record: &ScannedServer) -> String {
    let info = &record.info;
    let noun =
        if info.players == Some(1) && info.max_players.is_none_or(|most| most == 0) { "player" } else { "players" };
    let players = info.players.map(|_| format!("{} {noun}", server_cells::players(info).text));
    let map = info.map.clone().filter(|map| !map.is_empty());
    let address = record.address.map(|address| address.to_string());
    [address, map, players].into_iter().flatten().collect::<Vec<_>>().join(", ")
}
