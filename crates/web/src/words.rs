//! The words of the API for values of the lobby.

use rallypoint_lobby::{Differences, SessionKeyStatus, Verification};
use rallypoint_lobby_proto::ListingOrigin;
use serde::Serialize;
use utoipa::ToSchema;

/// Makes an enum with a word for each variant of a type of the lobby.
macro_rules! words {
    ($($(#[$meta:meta])* $name:ident for $type:ident { $($variant:ident),* })*) => {
        $(
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
            #[serde(rename_all = "snake_case")]
            $(#[$meta])*
            pub(crate) enum $name { $($variant),* }

            impl From<$type> for $name {
                fn from(value: $type) -> Self {
                    match value {
                        $($type::$variant => Self::$variant),*
                    }
                }
            }
        )*
    };
}

type WireTransport = rallypoint_wire::lobby::Transport;

words! {
    /// The transport protocol of a game.
    #[schema(as = TransportName)]
    Transport for WireTransport { Tcp, Udp }

    /// How a server came into the list.
    #[schema(as = OriginName)]
    Origin for ListingOrigin { Registered, Announced, Watched }

    /// Whether a server has proved that it holds the key that it states.
    #[schema(as = SessionKeyName)]
    SessionKey for SessionKeyStatus { Unverified, Verified }
}

/// The result of verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Verified)]
pub(crate) enum VerificationResult {
    NotQueried,
    Verified,
    Differs,
    Unreachable,
}

impl From<Verification> for VerificationResult {
    fn from(result: Verification) -> Self {
        match result {
            Verification::NotProbed => Self::NotQueried,
            Verification::Verified => Self::Verified,
            Verification::Differs => Self::Differs,
            Verification::Unreachable => Self::Unreachable,
        }
    }
}

/// A field in which a reply can differ from the registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = DifferenceName)]
pub(crate) enum Difference {
    Players,
    Slots,
    Name,
    Map,
    Password,
}

impl Difference {
    /// The fields that differ.
    pub fn all(differences: Differences) -> Vec<Self> {
        let Differences { players, slots, name, map, password } = differences;
        let all = [
            (players, Self::Players),
            (slots, Self::Slots),
            (name, Self::Name),
            (map, Self::Map),
            (password, Self::Password),
        ];
        all.into_iter().filter_map(|(differs, field)| differs.then_some(field)).collect()
    }
}

/// Where a ban was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DecisionSource {
    Admin,
    Configuration,
}
