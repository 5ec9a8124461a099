//! What can happen to a server that is watched, in words and as JSON.

use crate::ask::{
    Trouble,
    output::record::{self, Record},
    survey::Seen,
};
use serde::Serialize;
use serde_json::Value;
use std::{collections::BTreeMap, fmt, net::SocketAddr};

/// Something has happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// To this server; none if it is about a list.
    pub server: Option<Seen>,
    /// The place that it is about, counted from 0.
    pub place: usize,
    pub what: What,
}

/// What has happened.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// A server is there that was not; or the first look found it.
    Appeared {
        at_first: bool,
    },
    /// It says something else about itself.
    Changed(Vec<Change>),
    Joined(String),
    Left(String),
    /// It is in the list, but does not answer any more.
    Silent(Trouble),
    /// It answers again.
    Back,
    /// It is not in the list any more.
    Gone,
    /// A list cannot be had any more.
    ListFailed(Trouble),
    /// It can be had again.
    ListBack,
}

/// A part of what a server says has changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    #[serde(skip)]
    pub field: &'static str,
    pub from: Value,
    pub to: Value,
}

/// An event as JSON has it.
#[derive(Serialize)]
struct View<'a> {
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
    changes: BTreeMap<&'static str, &'a Change>,
    #[serde(skip_serializing_if = "Option::is_none")]
    player: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<record::View<'a>>,
}

impl Event {
    /// One object. `place` is what the list is called.
    pub fn json(&self, time: &str, place: &str) -> String {
        let record = self.server.as_ref().map(|seen| &seen.record);
        let trouble = match &self.what {
            What::Silent(trouble) | What::ListFailed(trouble) => Some(trouble),
            _ => None,
        };
        let appeared = match self.what {
            What::Appeared { at_first } => Some(at_first),
            _ => None,
        };
        let view = View {
            time,
            event: self.what.code(),
            list: self.server.is_none().then_some(place),
            id: self.server.as_ref().map(|seen| &*seen.id),
            name: record.map(Record::name),
            address: record.and_then(|record| record.address),
            at_first: appeared,
            changes: match &self.what {
                What::Changed(changes) => changes.iter().map(|change| (change.field, change)).collect(),
                _ => BTreeMap::new(),
            },
            player: match &self.what {
                What::Joined(player) | What::Left(player) => Some(player),
                _ => None,
            },
            error: trouble.map(Trouble::code),
            message: trouble.map(ToString::to_string),
            server: record.filter(|_| appeared.is_some()).map(Record::view),
        };
        serde_json::to_string(&view).unwrap_or_default()
    }

    /// A line for people.
    pub fn line(&self, place: &str) -> String {
        match &self.server {
            Some(seen) => format!("{}: {}", seen.record.name(), self.describe()),
            None => format!("{place}: {}", self.describe()),
        }
    }

    fn describe(&self) -> String {
        let record = self.server.as_ref().map(|seen| &seen.record);
        match &self.what {
            What::Appeared { .. } => {
                let place = record.map(|record| format!(" ({})", summary(record))).unwrap_or_default();
                format!("is there{place}")
            }
            What::Changed(changes) => changes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
            What::Joined(player) => format!("{player} joined"),
            What::Left(player) => format!("{player} left"),
            What::Silent(trouble) => format!("does not answer: {trouble}"),
            What::Back => "answers again".into(),
            What::Gone => "is gone".into(),
            What::ListFailed(trouble) => format!("no list: {trouble}"),
            What::ListBack => "the list is there again".into(),
        }
    }
}

impl What {
    /// For scripts.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Appeared { .. } => "appeared",
            Self::Changed(_) => "changed",
            Self::Joined(_) => "player_joined",
            Self::Left(_) => "player_left",
            Self::Silent(_) => "silent",
            Self::Back => "back",
            Self::Gone => "gone",
            Self::ListFailed(_) => "list_failed",
            Self::ListBack => "list_back",
        }
    }

    /// Good news, bad news, or neither: 1, -1, 0.
    pub const fn mood(&self) -> i8 {
        match self {
            Self::Appeared { .. } | Self::Joined(_) | Self::Back | Self::ListBack => 1,
            Self::Changed(_) => 0,
            Self::Left(_) | Self::Silent(_) | Self::Gone | Self::ListFailed(_) => -1,
        }
    }
}

impl fmt::Display for Change {
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

fn summary(record: &Record) -> String {
    let info = &record.info;
    let players = match (info.players, info.max_players) {
        (Some(players), Some(most)) if most > 0 => Some(format!("{players}/{most} players")),
        (Some(1), _) => Some("1 player".into()),
        (Some(players), _) => Some(format!("{players} players")),
        _ => None,
    };
    let map = info.map.clone().filter(|map| !map.is_empty());
    let address = record.address.map(|address| address.to_string());
    [address, map, players].into_iter().flatten().collect::<Vec<_>>().join(", ")
}
