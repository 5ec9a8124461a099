//! Identifiers of the lobby protocol: all are UUIDs, and none are interchangeable.

use core::{fmt, str::FromStr};
use uuid::Uuid;

/// The secret that identifies a server to its lobby: it authorizes unregistering the server (L13). `Debug` does not show it,
/// there is no `Display`, and comparison takes constant time.
#[derive(Clone, Copy)]
pub struct ServerId([u8; 16]);

impl ServerId {
    /// An ID from its 16 bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The secret bytes, for the wire and for keyed hashes. They are never displayed.
    #[must_use]
    pub const fn expose(&self) -> &[u8; 16] {
        &self.0
    }
}

impl PartialEq for ServerId {
    fn eq(&self, other: &Self) -> bool {
        // A single integer comparison: an early exit would reveal how many bytes match.
        u128::from_ne_bytes(self.0) == u128::from_ne_bytes(other.0)
    }
}

impl Eq for ServerId {}

impl core::hash::Hash for ServerId {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        state.write_u128(u128::from_ne_bytes(self.0));
    }
}

impl fmt::Debug for ServerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerId(secret)")
    }
}

macro_rules! public_uuid {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; 16]);

        impl $name {
            /// An ID from its 16 bytes.
            #[must_use]
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(bytes)
            }

            /// Its 16 bytes, as on the wire.
            #[must_use]
            pub const fn as_bytes(&self) -> &[u8; 16] {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                Uuid::from_bytes(self.0).fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), Uuid::from_bytes(self.0))
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(|uuid: Uuid| Self(uuid.into_bytes()))
            }
        }
    };
}

public_uuid! {
    /// Identifies a lobby ("community scope"): a game and its mods. Any UUID is accepted; some have known names.
    ListId
}

public_uuid! {
    /// Identifies a game protocol, the value of the key `protocol_id`: clients join servers with the same one.
    ProtocolId
}

impl ListId {
    /// Gang Garrison 2 and its mods.
    pub const GANG_GARRISON_2: Self =
        Self([0x1c, 0xcf, 0x16, 0xb1, 0x43, 0x6d, 0x85, 0x6f, 0x50, 0x4d, 0xcc, 0x1a, 0xf3, 0x06, 0xaa, 0xa7]);

    /// Bloodmasters servers that announced themselves to the master list (L17). Defined by this project, not by a document.
    pub const BLOODMASTERS: Self =
        Self([0xc3, 0xc4, 0xf9, 0xd0, 0x7f, 0x63, 0x4d, 0x0b, 0x8a, 0x0e, 0x2b, 0x1d, 0x5e, 0x6f, 0x7a, 0x90]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{format, string::ToString};

    #[test]
    fn l13_debug_does_not_show_a_server_id() {
        assert_eq!(format!("{:?}", ServerId::from_bytes([0xab; 16])), "ServerId(secret)");
    }

    #[test]
    fn public_ids_parse_their_own_display() {
        let text = "1ccf16b1-436d-856f-504d-cc1af306aaa7";
        assert_eq!(ListId::GANG_GARRISON_2.to_string(), text);
        assert_eq!(text.parse(), Ok(ListId::GANG_GARRISON_2));
        assert_eq!(format!("{:?}", ListId::GANG_GARRISON_2), format!("ListId({text})"));
        assert!("1ccf16b1".parse::<ProtocolId>().is_err());
    }
}
