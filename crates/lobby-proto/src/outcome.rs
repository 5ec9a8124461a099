//! The outcome of a datagram, and the reason why a server left the list.

use rallypoint_limit::OverBudget;
use rallypoint_wire::DecodeError;
use std::fmt;

/// The outcome of a datagram to the lobby. Every datagram has exactly one.
///
/// ```
/// use rallypoint_lobby_proto::RegistrationOutcome;
///
/// let outcome = RegistrationOutcome::TooLarge;
/// assert_eq!(outcome.code(), "too_large");
/// assert!(outcome.is_refusal() && !outcome.is_listed());
/// println!("{outcome}"); // what happened, and what the owner of the server can do about it
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegistrationOutcome {
    /// The server is newly listed.
    Listed,
    /// The server was listed before, and its data or endpoints have changed.
    Changed,
    /// The server was listed before, and its lease was extended.
    Refreshed,
    /// The registration is valid; the server will be listed once a check has reached it (L12).
    Checking,
    /// The server was removed from the list by its owner.
    Unregistered,
    /// An unregistration of a server that is not registered; it has no effect (L11).
    NotRegistered,
    /// A registration just after an unregistration of the same server, which is taken for a reordered datagram (L11).
    JustUnregistered,
    /// The lobby could not reach the server at its registered port: there was no answer (L12).
    Unreachable,
    /// The lobby could not check the server, because too many checks are waiting or because of a local error. The next
    /// registration tries again.
    CheckBusy,
    /// The datagram does not conform to the specification.
    Malformed(DecodeError),
    /// The registration is larger than this lobby accepts (L15).
    TooLarge,
    /// The budget of the source address, of its network, or of the whole lobby is used up.
    OverBudget(OverBudget),
    /// The operator has banned the address, its network or the name, or has removed this server from the list.
    Banned,
    /// The source address is private or loopback, and the lobby accepts only public ones.
    PrivateSource,
    /// The source address cannot belong to a server: unspecified, multicast or broadcast.
    InvalidSource,
    /// The maximum number of servers per address is registered from this one.
    AddressFull,
    /// The maximum number of servers per list is registered in this one.
    ListFull,
    /// The maximum number of lists is open, in total or by this network.
    TooManyLists,
    /// The maximum number of servers is registered.
    RegistryFull,
    /// The memory for all servers is used up.
    MemoryFull,
    /// The lobby queries the server at this endpoint itself and lists its replies. A registration proves less: its source
    /// can be forged (W38).
    ListedByQuery,
    /// Another host of the internal network is listed at the same external address and port (W44).
    EndpointTaken,
    /// The maximum share of all servers, or of their memory, is registered from this network.
    NetworkFull,
    /// The machine of the server answers, but nothing listens at the registered port (L12).
    PortClosed,
    /// The server is listed in place of one that had replaced it: two servers register at the same address and port, and each
    /// replaces the other (W100).
    Contested,
    /// A datagram that requests a list, at a door that answers over UDP.
    ListRequested,
    /// A reply to the lobby's challenge with another challenge, or without one: its source may be forged.
    WrongChallenge,
}

impl RegistrationOutcome {
    /// All reason codes, in the order of [`index`](Self::index), for counters.
    pub const CODES: [&str; 27] = [
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
        "list_full",
        "too_many_lists",
        "registry_full",
        "memory_full",
        "listed_by_query",
        "endpoint_taken",
        "network_full",
        "port_closed",
        "contested",
        "list_requested",
        "wrong_challenge",
    ];

    /// The reason code for metrics, logs and the API. It is stable.
    #[must_use]
    pub const fn code(self) -> &'static str {
        Self::CODES[self.index()]
    }

    /// The position of this outcome's code in [`CODES`](Self::CODES).
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
            Self::ListFull => 16,
            Self::TooManyLists => 17,
            Self::RegistryFull => 18,
            Self::MemoryFull => 19,
            Self::ListedByQuery => 20,
            Self::EndpointTaken => 21,
            Self::NetworkFull => 22,
            Self::PortClosed => 23,
            Self::Contested => 24,
            Self::ListRequested => 25,
            Self::WrongChallenge => 26,
        }
    }

    /// Whether the lobby did not do what the datagram requested.
    #[must_use]
    pub const fn is_refusal(self) -> bool {
        !matches!(
            self,
            Self::Listed
                | Self::Changed
                | Self::Refreshed
                | Self::Contested
                | Self::Checking
                | Self::Unregistered
                | Self::NotRegistered
                | Self::ListRequested
        )
    }

    /// Whether the server is in the list afterwards.
    #[must_use]
    pub const fn is_listed(self) -> bool {
        matches!(self, Self::Listed | Self::Changed | Self::Refreshed | Self::Contested)
    }
}

/// An explanation for the owner of the server: what happened and, where possible, what to do.
impl fmt::Display for RegistrationOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listed => f.write_str("the server is now in the list"),
            Self::Changed => f.write_str("the server is in the list, with its new data"),
            Self::Refreshed => f.write_str("the server is in the list"),
            Self::Checking => f.write_str("the lobby is checking whether the server is reachable; it will be listed if so"),
            Self::Unregistered => f.write_str("the owner unregistered the server"),
            Self::NotRegistered => f.write_str("an unregistration for a server that is not in the list"),
            Self::JustUnregistered => {
                f.write_str("the server unregistered less than 3 seconds ago; wait a moment and register again")
            }
            Self::Unreachable => f.write_str(
                "the lobby got no answer from the server at its registered port: open that port in the firewall and forward \
                 it in the router",
            ),
            Self::CheckBusy => {
                f.write_str("the lobby cannot check the server right now; it will try again with the next registration")
            }
            Self::Malformed(error) => write!(f, "the registration is not valid: {error}"),
            Self::TooLarge => f.write_str("the registration is larger than this lobby accepts: send fewer or shorter keys"),
            Self::OverBudget(refusal) => write!(f, "too many registrations: {refusal}; one every 30 seconds is enough"),
            Self::Banned => f.write_str("the operator of this lobby has banned this address, network or name, or has removed the server from the list"),
            Self::PrivateSource => f.write_str(
                "the registration came from a private address, which players cannot reach: send it from a public address",
            ),
            Self::InvalidSource => f.write_str("the registration came from an address that no server can have"),
            Self::AddressFull => {
                f.write_str("too many servers are registered from this address (with IPv6: from this /64 network)")
            }
            Self::ListFull => f.write_str("this list is full"),
            Self::TooManyLists => {
                f.write_str("the maximum number of lists is open, in all or from this network; use an existing list")
            }
            Self::RegistryFull => f.write_str("the maximum number of servers is registered with this lobby"),
            Self::MemoryFull => {
                f.write_str("the lobby has no memory left for the data of this server; send fewer or shorter keys")
            }
            Self::ListedByQuery => {
                f.write_str("the lobby queries the server at this address and port itself, and lists its replies")
            }
            Self::EndpointTaken => f.write_str(
                "another host of this internal network is listed at the same external address and port: use another port",
            ),
            Self::NetworkFull => {
                f.write_str("too many servers are registered from this network (IPv4 /24, IPv6 /48)")
            }
            Self::PortClosed => f.write_str(
                "the machine refused the lobby's connection: nothing listens at the registered port; start the server, and \
                 compare its port and transport (TCP or UDP) with those of the registration",
            ),
            Self::ListRequested => f.write_str("a request for the list"),
            Self::WrongChallenge => f.write_str(
                "the reply does not have the challenge that the lobby sent to this address within the last seconds; the next \
                 announcement gets a new one",
            ),
            Self::Contested => f.write_str(
                "the server is in the list, but another one registers at the same address and port, and each replaces the \
                 other: stop one of them, or give it another port",
            ),
        }
    }
}

/// The reason why a server left the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnlistReason {
    /// Its lease ended without a refresh (L10).
    Expired,
    /// It was unregistered (L11).
    Unregistered,
    /// Another server registered at the same address, port and transport (L8).
    Replaced,
    /// It moved to another list.
    Moved,
    /// A later check could not reach it (L12).
    Unreachable,
    /// The operator banned or unlisted it.
    Banned,
    /// It was in the list because the lobby queried it, which it no longer does.
    Unwatched,
    /// A cap was reached, and it gave way to a server with a better claim (W45).
    Evicted,
    /// The server that it had replaced shortly before has replaced it (W100).
    Contested,
}

impl UnlistReason {
    /// All reason codes, in the order of the variants, for counters.
    pub const CODES: [&str; 9] =
        ["expired", "unregistered", "replaced", "moved", "unreachable", "banned", "unwatched", "evicted", "contested"];

    /// The reason code for metrics, logs and the API. It is stable.
    #[must_use]
    pub const fn code(self) -> &'static str {
        Self::CODES[self as usize]
    }
}
