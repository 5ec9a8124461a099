//! Legacy registrations.
//!
//! ```text
//! + 0   4 8 15 16 23 42
//! + 6   version                      see `version`: 1 or 17 bytes
//! + n   port (uint16, little-endian)
//! + n+2 info length (uint8)
//! + n+3 info text                    see `info`
//! ```

use super::{Info, version};
use crate::{DecodeError, DecodeErrorKind, Reader, Writer, lobby::ProtocolId};
use alloc::vec::Vec;
use core::num::NonZeroU16;

const REGISTER: [u8; 6] = [4, 8, 15, 16, 23, 42];

/// A legacy registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registration<'a> {
    /// Protocol of the game.
    pub protocol_id: ProtocolId,
    /// TCP port that players connect to. The address is the source address of the datagram.
    pub port: NonZeroU16,
    /// Description of the server.
    pub info: Info<'a>,
}

impl<'a> Registration<'a> {
    /// Parses a datagram. Bytes after the info text are an error (W7).
    pub fn parse(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        if *reader.array("message type")? != REGISTER {
            return Err(DecodeError::new("message type", DecodeErrorKind::Unknown));
        }
        let protocol_id = version::parse(&mut reader)?;
        let port = NonZeroU16::new(reader.u16_le("port")?).ok_or(DecodeError::new("port", DecodeErrorKind::Zero))?;
        let info = Info::parse_counted(&mut reader)?;
        reader.finish("info text")?;
        Ok(Self { protocol_id, port, info })
    }

    /// Appends the datagram. A text that is too long is truncated as described at [`Info::emit`].
    pub fn emit(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.bytes(&REGISTER);
        version::emit(self.protocol_id, &mut writer);
        writer.u16_le(self.port.get());
        self.info.emit_counted(&mut writer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::legacy::{Counts, protocol_of_version};
    use alloc::string::ToString;

    const BYTES: &[u8] = b"\x04\x08\x0f\x10\x17\x2a\x29\xfe\x1f\x16!private![map] n [1/2]";

    fn registration() -> Registration<'static> {
        let counts = Some(Counts { players: 1, bots: 0, slots: 2 });
        let info = Info { private: true, map: Some(b"map"), name: b"n", counts, modification: None };
        Registration { protocol_id: protocol_of_version(41), port: 8190.try_into().unwrap(), info }
    }

    fn emitted(registration: &Registration<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        registration.emit(&mut bytes);
        bytes
    }

    #[test]
    fn l16_the_version_in_one_byte() {
        assert_eq!(Registration::parse(BYTES), Ok(registration()));
        assert_eq!(emitted(&registration()), BYTES);
    }

    #[test]
    fn l16_the_version_as_uuid() {
        let protocol_id: ProtocolId = "b31c2209-4256-9a19-d0ef-c71c5373bd75".parse().unwrap();
        let bytes = [&BYTES[..6], &[128], protocol_id.as_bytes(), &BYTES[7..]].concat();
        let registration = Registration { protocol_id, ..registration() };
        assert_eq!(Registration::parse(&bytes), Ok(registration));
        assert_eq!(emitted(&registration), bytes);
    }

    #[test]
    fn l16_truncated_and_unknown_datagrams_are_errors() {
        for length in 0..BYTES.len() {
            assert_eq!(Registration::parse(&BYTES[..length]).unwrap_err().kind, DecodeErrorKind::Truncated, "{length}");
        }
        let mut bytes = BYTES.to_vec();
        bytes[7..9].fill(0);
        assert_eq!(Registration::parse(&bytes).unwrap_err().to_string(), "port is 0");
        bytes[0] = 5;
        assert_eq!(Registration::parse(&bytes).unwrap_err().to_string(), "unknown message type");
    }

    #[test]
    fn w7_a_trailing_byte_is_an_error() {
        let bytes = [BYTES, b"!"].concat();
        assert_eq!(Registration::parse(&bytes).unwrap_err().to_string(), "trailing bytes after info text");
    }
}
