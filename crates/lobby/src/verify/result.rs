//! The result of probing a server.

use super::Differences;
use rallypoint_lobby_proto::PublicId;
use rallypoint_query_proto::ServerInfo;
use rallypoint_session_proto::PublicKey;
use std::{net::SocketAddr, sync::Arc};

/// Whether a server's own reply confirms its registration (E1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verification {
    /// It was not probed: its registration does not state how, or the first probe is still under way.
    #[default]
    NotProbed,
    /// It replied, and the reply agrees with the registration.
    Verified,
    /// It replied, and the reply contradicts the registration.
    Differs,
    /// It did not reply.
    Unreachable,
}

/// The result of probing a server.
#[derive(Clone, Debug)]
pub struct VerificationResult {
    /// The server.
    pub id: PublicId,
    /// Whether its reply confirms its registration.
    pub verification: Verification,
    /// The fields that contradict the registration, if it is [`Verification::Differs`].
    pub differences: Differences,
    /// The reply.
    pub info: Option<Arc<ServerInfo>>,
    /// The address in the list at which it replied, if it is a registered server.
    pub replied_at: Option<SocketAddr>,
    /// The key that the server has proved to hold (W67).
    pub proven_key: Option<PublicKey>,
}

impl Verification {
    /// All variants, in their order.
    pub const ALL: [Self; 4] = [Self::NotProbed, Self::Verified, Self::Differs, Self::Unreachable];

    /// The API's word for it.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::NotProbed => "not_queried",
            Self::Verified => "verified",
            Self::Differs => "differs",
            Self::Unreachable => "unreachable",
        }
    }
}

impl VerificationResult {
    /// A result without differences and without a reply.
    #[must_use]
    pub fn new(id: PublicId, verification: Verification) -> Self {
        Self { id, verification, differences: Differences::default(), info: None, replied_at: None, proven_key: None }
    }
}
