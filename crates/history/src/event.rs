//! Events in the history of a server.

use crate::UnixSeconds;
use rallypoint_lobby_proto::UnlistReason;
use rallypoint_wire::lobby::ListId;

/// An event in the history of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryEvent {
    /// When it happened.
    pub time: UnixSeconds,
    /// The kind of event.
    pub kind: EventKind,
}

/// The kind of a [`HistoryEvent`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The server was added to this list.
    Listed(ListId),
    /// The server was removed from the list, with the reason code ([`UnlistReason::code`]) if it is known.
    Unlisted(Option<&'static str>),
    /// The server changed its name to this one.
    Name(String),
    /// The server changed its map to this one.
    Map(String),
}

impl EventKind {
    /// The code of the kind, in the file and in the API.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Listed(_) => "listed",
            Self::Unlisted(_) => "unlisted",
            Self::Name(_) => "name",
            Self::Map(_) => "map",
        }
    }

    /// The list, the reason code, the name or the map; empty if it is unknown.
    #[must_use]
    pub fn detail(&self) -> String {
        match self {
            Self::Listed(list) => list.to_string(),
            Self::Unlisted(reason) => (*reason).unwrap_or_default().into(),
            Self::Name(text) | Self::Map(text) => text.clone(),
        }
    }

    /// The lane of the event. Each lane is bounded separately, because maps change all day and must not displace the other
    /// events.
    pub(crate) const fn lane(&self) -> i64 {
        matches!(self, Self::Map(_)) as i64
    }

    pub(crate) fn from_parts(code: &str, detail: &str) -> Option<Self> {
        match code {
            "listed" => detail.parse().ok().map(Self::Listed),
            "unlisted" => Some(Self::Unlisted(UnlistReason::CODES.iter().copied().find(|code| *code == detail))),
            "name" => Some(Self::Name(detail.into())),
            "map" => Some(Self::Map(detail.into())),
            _ => None,
        }
    }
}
