//! Whether a server has proved that it holds the key that it states (E2, W67).

use crate::table::ServerRecord;
use rallypoint_session_proto::PublicKey;

/// The verification state of a server's `x-session-key`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SessionKeyStatus {
    /// The server states it, which proves nothing: a registration can be forged, and a key can be copied.
    Unverified,
    /// The server has answered a login that only the holder of the key can answer.
    Verified,
}

impl SessionKeyStatus {
    /// The API's word for it.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Unverified => "unverified",
            Self::Verified => "verified",
        }
    }

    /// The status of the value of `x-session-key`, given the key that the server has proved to hold. `None` if the value is
    /// not a key.
    pub(crate) fn of(stated: Option<&[u8]>, proven: Option<PublicKey>) -> Option<Self> {
        let stated = parse(stated?)?;
        Some(if proven == Some(stated) { Self::Verified } else { Self::Unverified })
    }
}

impl ServerRecord {
    /// The key that the registration states as `x-session-key`, if it is one.
    #[must_use]
    pub fn stated_session_key(&self) -> Option<PublicKey> {
        parse(self.listing.as_ref()?.block().table.get(b"x-session-key")?)
    }
}

fn parse(value: &[u8]) -> Option<PublicKey> {
    std::str::from_utf8(value).ok()?.parse().ok()
}
