//! Data messages, plain and encrypted.
//!
//! ```text
//! client to server:
//! data: <u8: 0b00000101><u32: CRC32><u32: message #><u8: user index><u32: UID><u64: rand from server><u16: # of
//!       bytes><u8[0..484]: data>
//! encrypted data: <u8: 0b01010101><u32: CRC32><u32: message #><u8: user index><u32: UID><u16: # of bytes>
//!                 <u8[0..480]: encrypted (using symmetrical key) data>
//!
//! server to client:
//! data: <u8: 0b00000101><u32: CRC32><u32: message #><u16: # of bytes><u8[0..497]: data>
//! encrypted data: <u8: 0b01010101><u32: CRC32><u32: message #><u16: # of bytes><u8[0..496]: data encrypted using
//!                 symmetrical key>
//! ```
//!
//! The CRC is CRC-32/ISO-HDLC over every byte that follows it (S7).

use super::{
    FieldError, MAX_ENCRYPTED_TO_CLIENT, MAX_ENCRYPTED_TO_SERVER, MAX_SEALED_TO_CLIENT, MAX_SEALED_TO_SERVER,
    MAX_TO_CLIENT, MAX_TO_SERVER, MessageNumber, Rand, SealInput, SlotIndex, TAG, Uid, kind,
};
use crate::{DecodeError, DecodeErrorKind, Reader, Writer};
use alloc::vec::Vec;

/// Offset of the CRC, and of the bytes that it protects.
const CRC: usize = 1;
const PROTECTED: usize = CRC + 4;

/// A message or its ciphertext, of at most `MAX` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload<'a, const MAX: usize>(&'a [u8]);

/// A message to send whose header and body a layer above keeps apart, of at most `MAX` bytes together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadParts<'a, const MAX: usize> {
    head: &'a [u8],
    body: &'a [u8],
}

/// A message from a client, in a plain session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientData<'a> {
    /// Number of the message in this direction.
    pub number: MessageNumber,
    /// The player's slot.
    pub index: SlotIndex,
    /// UID of the session in that slot.
    pub uid: Uid,
    /// The secret that authenticates the player.
    pub rand: Rand,
    /// The message. An empty one only authenticates the player (S15).
    pub payload: Payload<'a, MAX_TO_SERVER>,
}

/// A message from a client, in an encrypted session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientSealed<'a> {
    /// Number of the message in this direction.
    pub number: MessageNumber,
    /// The player's slot.
    pub index: SlotIndex,
    /// UID of the session in that slot.
    pub uid: Uid,
    /// Ciphertext and tag. Decryption fails if it is shorter than a tag.
    pub sealed: Payload<'a, MAX_SEALED_TO_SERVER>,
}

/// A message from a server, in a plain session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerData<'a> {
    /// Number of the message in this direction.
    pub number: MessageNumber,
    /// The message.
    pub payload: Payload<'a, MAX_TO_CLIENT>,
}

/// A message from a server, in an encrypted session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerSealed<'a> {
    /// Number of the message in this direction.
    pub number: MessageNumber,
    /// Ciphertext and tag. Decryption fails if it is shorter than a tag.
    pub sealed: Payload<'a, MAX_SEALED_TO_CLIENT>,
}

impl<'a, const MAX: usize> Payload<'a, MAX> {
    /// Creates a payload.
    ///
    /// # Errors
    /// If it exceeds the limit, which the error names (S33).
    pub const fn new(bytes: &'a [u8]) -> Result<Self, FieldError> {
        if bytes.len() <= MAX { Ok(Self(bytes)) } else { Err(FieldError::TooLong { limit: MAX, length: bytes.len() }) }
    }

    /// The bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.0
    }

    #[inline]
    fn parse(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let size = usize::from(reader.u16_le("# of bytes")?);
        if size > MAX {
            return Err(DecodeError::new("data", DecodeErrorKind::TooLong));
        }
        reader.bytes(size, "data").map(Self)
    }

    #[inline]
    fn emit(self, writer: &mut Writer<'_>) {
        PayloadParts::from(self).emit(writer);
    }
}

impl<'a, const MAX: usize> PayloadParts<'a, MAX> {
    /// Creates a payload of two parts.
    ///
    /// # Errors
    /// If together they exceed the limit, which the error names (S33).
    #[inline]
    pub const fn new(head: &'a [u8], body: &'a [u8]) -> Result<Self, FieldError> {
        let length = head.len() + body.len();
        if length <= MAX { Ok(Self { head, body }) } else { Err(FieldError::TooLong { limit: MAX, length }) }
    }

    const fn len(self) -> usize {
        self.head.len() + self.body.len()
    }

    #[inline]
    fn emit(self, writer: &mut Writer<'_>) {
        // At most 497, the largest limit of all fields.
        let length = self.len() as u16;
        // The header of a message in a channel is written together with the length: 10 instructions fewer, of about 330 for the
        // datagram of 100 bytes.
        if let [first, second, third] = *self.head {
            let [low, high] = length.to_le_bytes();
            writer.bytes(&[low, high, first, second, third]);
            writer.bytes(self.body);
        } else {
            writer.u16_le(length);
            self.emit_bytes(writer);
        }
    }

    #[inline]
    fn emit_bytes(self, writer: &mut Writer<'_>) {
        match *self.head {
            [] => {}
            // The header of a message in a channel: stores instead of a call, which is 12 instructions fewer, of about 380 for a
            // sealed datagram of 100 bytes without the cipher.
            [first, second, third] => writer.bytes(&[first, second, third]),
            _ => writer.bytes(self.head),
        }
        writer.bytes(self.body);
    }
}

impl<'a, const MAX: usize> From<Payload<'a, MAX>> for PayloadParts<'a, MAX> {
    fn from(payload: Payload<'a, MAX>) -> Self {
        Self { head: &[], body: payload.0 }
    }
}

impl<'a> ClientData<'a> {
    /// Number of bytes before the payload.
    pub const HEADER: usize = 24;

    #[inline]
    pub(super) fn parse(reader: Reader<'a>) -> Result<Self, DecodeError> {
        parse_protected(reader, |reader| {
            Ok(Self {
                number: MessageNumber::parse(reader)?,
                index: SlotIndex::parse(reader)?,
                uid: Uid::parse(reader)?,
                rand: Rand::parse(reader)?,
                payload: Payload::parse(reader)?,
            })
        })
    }

    /// Appends the datagram.
    pub fn emit(&self, out: &mut Vec<u8>) {
        Self::emit_parts(self.number, self.index, self.uid, self.rand, self.payload.into(), out);
    }

    /// Appends the datagram of a message of two parts.
    #[inline]
    pub fn emit_parts(
        number: MessageNumber,
        index: SlotIndex,
        uid: Uid,
        rand: Rand,
        payload: PayloadParts<'_, MAX_TO_SERVER>,
        out: &mut Vec<u8>,
    ) {
        out.reserve(Self::HEADER + payload.len());
        emit_protected(kind::DATA, out, |writer| {
            emit_identity(number, index, uid, writer);
            rand.emit(writer);
            payload.emit(writer);
        });
    }
}

impl<'a> ClientSealed<'a> {
    /// Number of bytes before the ciphertext.
    pub const HEADER: usize = 16;

    #[inline]
    pub(super) fn parse(reader: Reader<'a>) -> Result<Self, DecodeError> {
        parse_protected(reader, |reader| {
            Ok(Self {
                number: MessageNumber::parse(reader)?,
                index: SlotIndex::parse(reader)?,
                uid: Uid::parse(reader)?,
                sealed: Payload::parse(reader)?,
            })
        })
    }

    /// Appends the datagram.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.reserve(Self::HEADER + self.sealed.0.len());
        emit_protected(kind::DATA_ENCRYPTED, out, |writer| {
            emit_identity(self.number, self.index, self.uid, writer);
            self.sealed.emit(writer);
        });
    }

    /// Appends the datagram of a message that is encrypted in place: `seal` gets the message and the space for the tag.
    ///
    /// # Errors
    /// The error of `seal`; nothing is appended then.
    pub fn emit_with<E>(
        number: MessageNumber,
        index: SlotIndex,
        uid: Uid,
        message: impl Into<PayloadParts<'a, MAX_ENCRYPTED_TO_SERVER>>,
        out: &mut Vec<u8>,
        seal: impl FnOnce(&SealInput, &mut [u8], &mut [u8; TAG]) -> Result<(), E>,
    ) -> Result<(), E> {
        let message = message.into();
        let input = SealInput::new(number, index, uid, message.len() + TAG);
        let header = |writer: &mut Writer<'_>| emit_identity(number, index, uid, writer);
        emit_sealed(header, message, out, |message, tag| seal(&input, message, tag))
    }

    /// The nonce and associated data for decrypting the message.
    #[must_use]
    pub fn seal_input(&self) -> SealInput {
        SealInput::new(self.number, self.index, self.uid, self.sealed.0.len())
    }
}

impl<'a> ServerData<'a> {
    /// Number of bytes before the payload.
    pub const HEADER: usize = 11;

    #[inline]
    pub(super) fn parse(reader: Reader<'a>) -> Result<Self, DecodeError> {
        parse_protected(reader, |reader| {
            Ok(Self { number: MessageNumber::parse(reader)?, payload: Payload::parse(reader)? })
        })
    }

    /// Appends the datagram.
    pub fn emit(&self, out: &mut Vec<u8>) {
        Self::emit_parts(self.number, self.payload.into(), out);
    }

    /// Appends the datagram of a message of two parts.
    #[inline]
    pub fn emit_parts(number: MessageNumber, payload: PayloadParts<'_, MAX_TO_CLIENT>, out: &mut Vec<u8>) {
        out.reserve(Self::HEADER + payload.len());
        emit_protected(kind::DATA, out, |writer| {
            number.emit(writer);
            payload.emit(writer);
        });
    }
}

impl<'a> ServerSealed<'a> {
    /// Number of bytes before the ciphertext.
    pub const HEADER: usize = 11;

    #[inline]
    pub(super) fn parse(reader: Reader<'a>) -> Result<Self, DecodeError> {
        parse_protected(reader, |reader| {
            Ok(Self { number: MessageNumber::parse(reader)?, sealed: Payload::parse(reader)? })
        })
    }

    /// Appends the datagram.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.reserve(Self::HEADER + self.sealed.0.len());
        emit_protected(kind::DATA_ENCRYPTED, out, |writer| {
            self.number.emit(writer);
            self.sealed.emit(writer);
        });
    }

    /// Appends the datagram of a message that is encrypted in place: `seal` gets the message and the space for the tag. The
    /// index and the UID of the receiver are protected, though they are not sent.
    ///
    /// # Errors
    /// The error of `seal`; nothing is appended then.
    pub fn emit_with<E>(
        number: MessageNumber,
        index: SlotIndex,
        uid: Uid,
        message: impl Into<PayloadParts<'a, MAX_ENCRYPTED_TO_CLIENT>>,
        out: &mut Vec<u8>,
        seal: impl FnOnce(&SealInput, &mut [u8], &mut [u8; TAG]) -> Result<(), E>,
    ) -> Result<(), E> {
        let message = message.into();
        let input = SealInput::new(number, index, uid, message.len() + TAG);
        let header = |writer: &mut Writer<'_>| number.emit(writer);
        emit_sealed(header, message, out, |message, tag| seal(&input, message, tag))
    }

    /// The nonce and associated data for decrypting a message to the client with this index and UID.
    #[must_use]
    pub fn seal_input(&self, index: SlotIndex, uid: Uid) -> SealInput {
        SealInput::new(self.number, index, uid, self.sealed.0.len())
    }
}

#[inline]
fn emit_identity(number: MessageNumber, index: SlotIndex, uid: Uid, writer: &mut Writer<'_>) {
    number.emit(writer);
    index.emit(writer);
    uid.emit(writer);
}

/// Parses the CRC, the fields and the end, and only then verifies the CRC (S1, S7).
#[inline]
fn parse_protected<'a, T>(
    mut reader: Reader<'a>,
    fields: impl FnOnce(&mut Reader<'a>) -> Result<T, DecodeError>,
) -> Result<T, DecodeError> {
    let crc = reader.u32_le("crc")?;
    let protected = reader.rest();
    let fields = fields(&mut reader)?;
    reader.finish("data")?;
    if crc32fast::hash(protected) != crc {
        return Err(DecodeError::new("crc", DecodeErrorKind::Mismatch));
    }
    Ok(fields)
}

/// Writes the type, the CRC and the fields that it protects (S7).
#[inline]
fn emit_protected(kind: u8, out: &mut Vec<u8>, fields: impl FnOnce(&mut Writer<'_>)) {
    let mut writer = Writer::new(out);
    writer.u8(kind);
    writer.u32_le(0);
    fields(&mut writer);
    let crc = crc32fast::hash(writer.since(PROTECTED));
    writer.patch(CRC, &crc.to_le_bytes());
}

/// Writes an encrypted message: after `header` its length, the ciphertext and the tag.
#[inline]
fn emit_sealed<E, const MAX: usize>(
    header: impl FnOnce(&mut Writer<'_>),
    message: PayloadParts<'_, MAX>,
    out: &mut Vec<u8>,
    seal: impl FnOnce(&mut [u8], &mut [u8; TAG]) -> Result<(), E>,
) -> Result<(), E> {
    out.reserve(ClientSealed::HEADER + message.len() + TAG);
    let start = out.len();
    let mut sealed = Ok(());
    emit_protected(kind::DATA_ENCRYPTED, out, |writer| {
        header(writer);
        // At most 496: both kinds of message check it.
        writer.u16_le((message.len() + TAG) as u16);
        let at = writer.written();
        message.emit_bytes(writer);
        writer.bytes(&[0; TAG]);
        if let Some((message, tag)) = writer.since_mut(at).split_last_chunk_mut() {
            sealed = seal(message, tag);
        }
    });
    if sealed.is_err() {
        out.truncate(start);
    }
    sealed
}

#[cfg(test)]
mod tests {
    use super::{super::ClientDatagram, *};
    use alloc::vec;

    const NUMBER: MessageNumber = MessageNumber::new(5);
    const UID: Uid = Uid::new(0x0102_0304);

    fn index() -> SlotIndex {
        SlotIndex::new(3).unwrap()
    }

    /// A fake cipher: it inverts every bit, and its tag consists of associated data.
    fn seal(input: &SealInput, message: &mut [u8], tag: &mut [u8; TAG]) -> Result<(), ()> {
        message.iter_mut().for_each(|byte| *byte = !*byte);
        tag[..12].copy_from_slice(&input.associated);
        Ok(())
    }

    #[test]
    fn s7_the_crc_is_zlibs_over_all_that_follows_it() {
        let bytes = b"\x05\x10\x10\x03\x08\x01\0\0\0\x05\0hello";
        let data = ServerData { number: MessageNumber::new(1), payload: Payload::new(b"hello").unwrap() };
        let mut out = Vec::new();
        data.emit(&mut out);
        assert_eq!(out, bytes);
        assert_eq!(out[1..5], crc32fast::hash(&out[5..]).to_le_bytes());
        assert_eq!(crc32fast::hash(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn s33_each_direction_has_its_limit() {
        let bytes = [0; 600];
        let too_long = |limit| Err(FieldError::TooLong { limit, length: limit + 1 });
        assert_eq!(Payload::<MAX_TO_SERVER>::new(&bytes[..485]).map(|_| ()), too_long(484));
        assert_eq!(Payload::<MAX_TO_CLIENT>::new(&bytes[..498]).map(|_| ()), too_long(497));
        assert_eq!(Payload::<MAX_ENCRYPTED_TO_SERVER>::new(&bytes[..465]).map(|_| ()), too_long(464));
        assert_eq!(Payload::<MAX_ENCRYPTED_TO_CLIENT>::new(&bytes[..481]).map(|_| ()), too_long(480));
        assert!(Payload::<MAX_TO_SERVER>::new(&bytes[..484]).is_ok());
    }

    #[test]
    fn s33_an_encrypted_field_is_shorter_than_a_datagram_could_hold() {
        // 16 + 481 bytes are 497: the datagram is within its limit, the field is not.
        let mut bytes = vec![0; 16 + 481];
        bytes[0] = kind::DATA_ENCRYPTED;
        bytes[14..16].copy_from_slice(&481u16.to_le_bytes());
        let crc = crc32fast::hash(&bytes[5..]);
        bytes[1..5].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(ClientDatagram::parse(&bytes), Err(DecodeError::new("data", DecodeErrorKind::TooLong)));
    }

    #[test]
    fn s17_index_255_is_invalid() {
        let mut bytes = Vec::new();
        let payload = Payload::new(b"").unwrap();
        ClientData { number: NUMBER, index: index(), uid: UID, rand: Rand::new(9), payload }.emit(&mut bytes);
        bytes[9] = 255;
        let crc = crc32fast::hash(&bytes[5..]);
        bytes[1..5].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(ClientDatagram::parse(&bytes), Err(DecodeError::new("user index", DecodeErrorKind::Invalid)));
    }

    #[test]
    fn s30_a_message_is_encrypted_in_place_after_existing_bytes() {
        let mut out = b"another datagram".to_vec();
        ClientSealed::emit_with(NUMBER, index(), UID, Payload::new(b"\x0f\xf0").unwrap(), &mut out, seal).unwrap();
        let (before, datagram) = out.split_at(16);
        assert_eq!(before, b"another datagram");
        let Ok(ClientDatagram::EncryptedData(data)) = ClientDatagram::parse(datagram) else { panic!("{datagram:?}") };
        assert_eq!((data.number, data.index, data.uid), (NUMBER, index(), UID));
        assert_eq!(data.sealed.as_bytes(), b"\xf0\x0f\x55\x05\0\0\0\x03\x04\x03\x02\x01\x12\0\0\0\0\0");
        assert_eq!(data.sealed.as_bytes()[2..14], data.seal_input().associated);
    }

    #[test]
    fn s30_both_sides_seal_with_the_same_input() {
        let mut out = Vec::new();
        let mut input = None;
        let seal = |used: &SealInput, _: &mut [u8], _: &mut [u8; TAG]| {
            input = Some(*used);
            Ok::<_, ()>(())
        };
        ServerSealed::emit_with(NUMBER, index(), UID, Payload::new(&[7; 480]).unwrap(), &mut out, seal).unwrap();
        let data = ServerSealed::parse(Reader::new(&out[1..])).unwrap();
        assert_eq!(Some(data.seal_input(index(), UID)), input);
        assert_eq!(out.len(), 507);
    }

    #[test]
    fn s33_two_parts_are_one_payload() {
        let head = [1, 2, 3];
        let body = [7; 480];
        let whole = [&head[..], &body[..]].concat();
        let mut out = Vec::new();
        let mut parts = Vec::new();
        ServerData { number: NUMBER, payload: Payload::new(&whole).unwrap() }.emit(&mut out);
        ServerData::emit_parts(NUMBER, PayloadParts::new(&head, &body).unwrap(), &mut parts);
        let rand = Rand::new(9);
        ClientData { number: NUMBER, index: index(), uid: UID, rand, payload: Payload::new(&whole).unwrap() }
            .emit(&mut out);
        ClientData::emit_parts(NUMBER, index(), UID, rand, PayloadParts::new(&head, &body).unwrap(), &mut parts);
        let head = &head[..2];
        let body = &body[..450];
        let whole = [head, body].concat();
        ServerSealed::emit_with(NUMBER, index(), UID, Payload::new(&whole).unwrap(), &mut out, seal).unwrap();
        ServerSealed::emit_with(NUMBER, index(), UID, PayloadParts::new(head, body).unwrap(), &mut parts, seal)
            .unwrap();
        assert_eq!(out, parts);
        let too_long = PayloadParts::<MAX_TO_SERVER>::new(&[1; 5], &[7; 480]);
        assert_eq!(too_long, Err(FieldError::TooLong { limit: 484, length: 485 }));
    }

    #[test]
    fn s30_nothing_is_appended_if_sealing_fails() {
        let mut out = vec![1, 2, 3];
        let fail = |_: &SealInput, _: &mut [u8], _: &mut [u8; TAG]| Err("no key");
        let sealed = ServerSealed::emit_with(NUMBER, index(), UID, Payload::new(b"x").unwrap(), &mut out, fail);
        assert_eq!((sealed, &out[..]), (Err("no key"), &[1, 2, 3][..]));
    }
}
