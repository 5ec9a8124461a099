//! What happened to a server.

use crate::UnixSeconds;
use rallypoint_lobby_proto::UnlistReason;
use rallypoint_wire::lobby::LobbyId;

/// Something that happened to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub time: UnixSeconds,
    /// What.
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// It came into the list of this lobby.
    Listed(LobbyId),
    /// It left the list: the reason code ([`UnlistReason::code`]), if that is known.
    Unlisted(Option<&'static str>),
    /// It got this name.
    Name(String),
    /// It went to this map.
    Map(String),
}

impl What {
    /// One word.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Listed(_) => "listed",
            Self::Unlisted(_) => "unlisted",
            Self::Name(_) => "name",
            Self::Map(_) => "map",
        }
    }

    /// The lobby, the reason, the name or the map; empty if it is not known.
    #[must_use]
    pub fn detail(&self) -> String {
        match self {
            Self::Listed(lobby) => lobby.to_string(),
            Self::Unlisted(why) => (*why).unwrap_or_default().into(),
            Self::Name(text) | Self::Map(text) => text.clone(),
        }
    }

    /// Maps change all day long, and must not push out what else happened: each lane is bounded by itself.
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
