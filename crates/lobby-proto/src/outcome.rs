//! What became of a datagram, and why an entry went.

use rallypoint_limit::OverBudget;
use rallypoint_wire::DecodeError;
use std::fmt;

/// What became of a datagram: every one ends in exactly one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegistrationOutcome {
    /// A server that was not in the list is now.
    Listed,
    /// A listed server, with something new about it.
    Changed,
    /// A listed server, as before: its lease was renewed.
    Refreshed,
    /// Understood; the server will be listed once the lobby could reach it (L12).
    Checking,
    /// Taken off the list by its owner.
    Unregistered,
    /// An unregistration of a server that is not there: nothing happens (L11).
    NotRegistered,
    /// A registration that came just after its own unregistration, and is taken for a reordered datagram (L11).
    JustUnregistered,
    /// The lobby could not reach the server at its registered port (L12).
    Unreachable,
    /// The lobby could not check the server right now, because there are too many others or because of trouble of its own:
    /// the next registration tries again.
    CheckBusy,
    /// The bytes are not what the documents say.
    Malformed(DecodeError),
    /// The registration is larger than this lobby takes (L15).
    TooLarge,
    /// The sender's budget, that of its network, or that of the whole lobby is used up.
    OverBudget(OverBudget),
    /// The operator has banned the address, its network or the name, or has taken this server off the list.
    Banned,
    /// A source address from which no server can be reached by others, at a lobby that wants only public ones.
    PrivateSource,
    /// A source address that cannot be anybody's: unspecified, multicast, broadcast.
    InvalidSource,
    /// As many servers as one address may have are registered from this one.
    AddressFull,
    /// As many servers as one lobby may have are in this one.
    LobbyFull,
    /// As many lobbies as there may be exist already.
    TooManyLobbies,
    /// As many servers as there may be in all are registered.
    RegistryFull,
    /// All servers together say as much as there is memory for.
    MemoryFull,
    /// The lobby asks the server at this place itself, and lists what it answers: whoever registers it could be anybody
    /// (W38).
    ListedByQuery,
}

impl RegistrationOutcome {
    /// Every code, in the order of [`index`](Self::index): for counters.
    pub const CODES: [&str; 21] = [
        "listed",
        "changed",
        "refreshed",
        "checking",
        "unregistered",
        "not_registered",
        "just_unregistered",
        "unreachable",
        "check_busy",
        "malformed",
        "too_large",
        "over_budget",
        "banned",
        "private_source",
        "invalid_source",
        "address_full",
        "lobby_full",
        "too_many_lobbies",
        "registry_full",
        "memory_full",
        "known_by_asking",
    ];

    /// The stable reason code, for counters, logs and the API.
    #[must_use]
    pub const fn code(self) -> &'static str {
        Self::CODES[self.index()]
    }

    /// The place of this outcome's code in [`CODES`](Self::CODES).
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::Listed => 0,
            Self::Changed => 1,
            Self::Refreshed => 2,
            Self::Checking => 3,
            Self::Unregistered => 4,
            Self::NotRegistered => 5,
            Self::JustUnregistered => 6,
            Self::Unreachable => 7,
            Self::CheckBusy => 8,
            Self::Malformed(_) => 9,
            Self::TooLarge => 10,
            Self::OverBudget(_) => 11,
            Self::Banned => 12,
            Self::PrivateSource => 13,
            Self::InvalidSource => 14,
            Self::AddressFull => 15,
            Self::LobbyFull => 16,
            Self::TooManyLobbies => 17,
            Self::RegistryFull => 18,
            Self::MemoryFull => 19,
            Self::ListedByQuery => 20,
        }
    }

    /// Whether the lobby did not do what was asked for.
    #[must_use]
    pub const fn is_refusal(self) -> bool {
        !matches!(
            self,
            Self::Listed | Self::Changed | Self::Refreshed | Self::Checking | Self::Unregistered | Self::NotRegistered
        )
    }

    /// Whether the server is in the list after this.
    #[must_use]
    pub const fn is_listed(self) -> bool {
        matches!(self, Self::Listed | Self::Changed | Self::Refreshed)
    }
}

/// Told from the side of the server's owner: what happened and, where there is something, what to do.
impl fmt::Display for RegistrationOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listed => f.write_str("the server is now in the list"),
            Self::Changed => f.write_str("the server is in the list, with its new data"),
            Self::Refreshed => f.write_str("the server is in the list"),
            Self::Checking => f.write_str("the lobby is trying to reach the server; it is listed if that works"),
            Self::Unregistered => f.write_str("the server was taken off the list by its owner"),
            Self::NotRegistered => f.write_str("an unregistration for a server that is not in the list"),
            Self::JustUnregistered => {
                f.write_str("the server unregistered less than 3 seconds before; wait a moment and register again")
            }
            Self::Unreachable => f.write_str(
                "the lobby could not reach the server at its registered port: open that port in the firewall and forward \
                 it in the router",
            ),
            Self::CheckBusy => {
                f.write_str("the lobby cannot check the server right now; the next registration tries again")
            }
            Self::Malformed(error) => write!(f, "the registration is not valid: {error}"),
            Self::TooLarge => f.write_str("the registration is larger than this lobby accepts: send fewer or shorter keys"),
            Self::OverBudget(refusal) => write!(f, "too many registrations: {refusal}; one every 30 seconds is enough"),
            Self::Banned => f.write_str("the operator of this lobby has banned this address, network or name, or taken the server off the list"),
            Self::PrivateSource => f.write_str(
                "the registration came from a private address, which players cannot reach: send it from the public one",
            ),
            Self::InvalidSource => f.write_str("the registration came from an address that no server can have"),
            Self::AddressFull => {
                f.write_str("too many servers are registered from this address (of IPv6: from this /64 network)")
            }
            Self::LobbyFull => f.write_str("this lobby is full"),
            Self::TooManyLobbies => {
                f.write_str("no further lobby can be opened here, or not from this network; use one that exists")
            }
            Self::RegistryFull => f.write_str("no further server can be registered here"),
            Self::MemoryFull => {
                f.write_str("the lobby has no memory left for what this server says; send fewer or shorter keys")
            }
            Self::ListedByQuery => {
                f.write_str("the lobby asks the server at this address and port itself, and lists what it answers")
            }
        }
    }
}

/// Why a server is no longer in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnlistReason {
    /// Its lease ended without a refresh (L10).
    Expired,
    /// Its owner said so (L11).
    Unregistered,
    /// Another server registered at the same address, port and transport (L8).
    Replaced,
    /// It moved to another lobby.
    Moved,
    /// A later check could not reach it (L12).
    Unreachable,
    /// The operator banned or unlisted it.
    Banned,
    /// It did not register by itself, and is watched no more.
    Unwatched,
}

impl UnlistReason {
    /// Every code, in the order of the variants: for counters.
    pub const CODES: [&str; 7] = ["expired", "unregistered", "replaced", "moved", "unreachable", "banned", "unwatched"];

    /// The stable reason code.
    #[must_use]
    pub const fn code(self) -> &'static str {
        Self::CODES[self as usize]
    }
}
