//! Game versions: one byte, or a protocol UUID.
//!
//! ```text
//! + 0   version v                      the protocol UUID dea41970-4cea-a588-df40-62faef6f1738 plus v
//! or
//! + 0   128, + 1 protocol UUID         hence there is no one-byte version 128
//! ```

use crate::{DecodeError, Reader, Writer, lobby::ProtocolId};

/// The UUID that one-byte versions are added to.
const BASE: u128 = 0xdea4_1970_4cea_a588_df40_62fa_ef6f_1738;

/// The byte that precedes a UUID.
pub(super) const UUID_FOLLOWS: u8 = 128;

/// The protocol that a one-byte version stands for. (128 is never sent as a version, but its number in the sequence is a
/// protocol like the others.)
#[must_use]
pub const fn protocol_of_version(version: u8) -> ProtocolId {
    ProtocolId::from_bytes((BASE + version as u128).to_be_bytes())
}

/// The one-byte version of a protocol, if it can be sent as one.
#[must_use]
pub const fn version_of_protocol(protocol_id: ProtocolId) -> Option<u8> {
    match u128::from_be_bytes(*protocol_id.as_bytes()).wrapping_sub(BASE) {
        version @ 0..=255 if version != UUID_FOLLOWS as u128 => Some(version as u8),
        _ => None,
    }
}

pub(super) fn parse(reader: &mut Reader<'_>) -> Result<ProtocolId, DecodeError> {
    match reader.u8("version")? {
        UUID_FOLLOWS => reader.array("protocol UUID").map(|bytes| ProtocolId::from_bytes(*bytes)),
        version => Ok(protocol_of_version(version)),
    }
}

/// Writes the short form if there is one, because old game versions sent and understood only that (W8).
pub(super) fn emit(protocol_id: ProtocolId, writer: &mut Writer<'_>) {
    if let Some(version) = version_of_protocol(protocol_id) {
        writer.u8(version);
    } else {
        writer.u8(UUID_FOLLOWS);
        writer.bytes(protocol_id.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{string::ToString, vec::Vec};

    fn emitted(protocol_id: ProtocolId) -> Vec<u8> {
        let mut bytes = Vec::new();
        emit(protocol_id, &mut Writer::new(&mut bytes));
        bytes
    }

    #[test]
    fn l16_a_one_byte_version_is_added_to_a_uuid() {
        assert_eq!(protocol_of_version(0).to_string(), "dea41970-4cea-a588-df40-62faef6f1738");
        assert_eq!(protocol_of_version(1).to_string(), "dea41970-4cea-a588-df40-62faef6f1739");
        assert_eq!(protocol_of_version(255).to_string(), "dea41970-4cea-a588-df40-62faef6f1837");
    }

    #[test]
    fn l16_every_protocol_round_trips() {
        for version in 0..=255 {
            let protocol_id = protocol_of_version(version);
            let bytes = emitted(protocol_id);
            assert_eq!(parse(&mut Reader::new(&bytes)), Ok(protocol_id), "{version}");
            assert_eq!(bytes.len(), if version == 128 { 17 } else { 1 }, "{version}");
        }
        for text in [
            "b31c2209-4256-9a19-d0ef-c71c5373bd75",
            "dea41970-4cea-a588-df40-62faef6f1737",
            "dea41970-4cea-a588-df40-62faef6f1838",
        ] {
            let protocol_id: ProtocolId = text.parse().unwrap();
            assert_eq!(version_of_protocol(protocol_id), None);
            assert_eq!(emitted(protocol_id), [&[128], &protocol_id.as_bytes()[..]].concat());
        }
    }

    #[test]
    fn w8_a_protocol_with_a_version_is_accepted_as_uuid_and_emitted_as_version() {
        let protocol_id = protocol_of_version(41);
        let long = [&[128], &protocol_id.as_bytes()[..]].concat();
        assert_eq!(parse(&mut Reader::new(&long)), Ok(protocol_id));
        assert_eq!(emitted(protocol_id), [41]);
    }
}
