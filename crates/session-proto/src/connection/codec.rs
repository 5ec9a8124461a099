//! Encoding, sealing and opening the data datagrams of one session.

use crate::crypto::{Cipher, MessageKey, Secret, SessionKeys};
use rallypoint_wire::session::{
    ClientData, ClientDatagram, ClientSealed, MAX_ENCRYPTED_TO_CLIENT, MAX_ENCRYPTED_TO_SERVER, MAX_TO_CLIENT,
    MAX_TO_SERVER, MessageNumber, PayloadParts, Rand, SealInput, ServerData, ServerDatagram, ServerSealed, SlotIndex,
    TAG, Text, Uid,
};

/// The side of a session that a connection represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

/// How the data of a session is protected.
#[derive(Debug)]
pub(crate) enum Protection {
    /// The client proves itself by the rand of its login; nothing is encrypted.
    Plain(Rand),
    /// Every message is sealed, with one key per direction.
    Sealed { cipher: Cipher, ours: MessageKey, theirs: MessageKey },
}

/// The identity of a session and its keys: all that is needed to write and read its data datagrams.
#[derive(Debug)]
pub(crate) struct Codec {
    pub side: Side,
    pub index: SlotIndex,
    pub uid: Uid,
    pub protection: Protection,
}

impl Protection {
    /// The client's keys, derived from the secret that the server sealed.
    pub fn for_client(cipher: Cipher, secret: &Secret) -> Self {
        let keys = SessionKeys::new(cipher, secret);
        Self::Sealed { cipher, ours: keys.to_server, theirs: keys.to_client }
    }

    /// The server's keys, derived from the secret that it sealed.
    pub fn for_server(cipher: Cipher, secret: &Secret) -> Self {
        let keys = SessionKeys::new(cipher, secret);
        Self::Sealed { cipher, ours: keys.to_client, theirs: keys.to_server }
    }

    /// The cipher of an encrypted session.
    pub fn cipher(&self) -> Option<Cipher> {
        match self {
            Self::Plain(_) => None,
            Self::Sealed { cipher, .. } => Some(*cipher),
        }
    }

    /// Writes a received message into `out` and returns its length, or `None` if it cannot be opened.
    pub fn open(&self, input: Option<&SealInput>, bytes: &[u8], out: &mut [u8]) -> Option<usize> {
        match (self, input) {
            (Self::Plain(_), None) => {
                out.get_mut(..bytes.len())?.copy_from_slice(bytes);
                Some(bytes.len())
            }
            (Self::Sealed { theirs, .. }, Some(input)) => {
                let (sealed, tag) = bytes.split_last_chunk()?;
                let out = out.get_mut(..sealed.len())?;
                theirs.open(input, sealed, tag, out).then_some(sealed.len())
            }
            // A session accepts only its own data type (S20).
            _ => None,
        }
    }
}

impl Codec {
    pub fn is_encrypted(&self) -> bool {
        matches!(self.protection, Protection::Sealed { .. })
    }

    /// Maximum length of a message in bytes (S33).
    pub fn max_message(&self) -> usize {
        match (self.side, self.is_encrypted()) {
            (Side::Client, false) => MAX_TO_SERVER,
            (Side::Server, false) => MAX_TO_CLIENT,
            (Side::Client, true) => MAX_ENCRYPTED_TO_SERVER,
            (Side::Server, true) => MAX_ENCRYPTED_TO_CLIENT,
        }
    }

    /// Appends the datagram of a message of two parts, of which the first may be empty. Returns false if the message is too long.
    #[inline(always)]
    pub fn emit(&self, number: MessageNumber, head: &[u8], body: &[u8], out: &mut Vec<u8>) -> bool {
        let Self { index, uid, .. } = *self;
        match (self.side, &self.protection) {
            (Side::Client, &Protection::Plain(rand)) => {
                let payload = PayloadParts::new(head, body);
                payload.map(|payload| ClientData::emit_parts(number, index, uid, rand, payload, out)).is_ok()
            }
            (Side::Server, Protection::Plain(_)) => {
                PayloadParts::new(head, body).map(|payload| ServerData::emit_parts(number, payload, out)).is_ok()
            }
            (Side::Client, Protection::Sealed { ours, .. }) => PayloadParts::new(head, body).is_ok_and(|payload| {
                let seal = |input: &SealInput, text: &mut [u8], tag: &mut [u8; TAG]| ours.seal(input, text, tag);
                ClientSealed::emit_with(number, index, uid, payload, out, seal).is_ok()
            }),
            (Side::Server, Protection::Sealed { ours, .. }) => PayloadParts::new(head, body).is_ok_and(|payload| {
                let seal = |input: &SealInput, text: &mut [u8], tag: &mut [u8; TAG]| ours.seal(input, text, tag);
                ServerSealed::emit_with(number, index, uid, payload, out, seal).is_ok()
            }),
        }
    }

    /// Appends a disconnect. Only a server's disconnect carries a reason.
    pub fn emit_disconnect(&self, reason: &str, out: &mut Vec<u8>) {
        match self.side {
            Side::Client => ClientDatagram::Disconnect.emit(out),
            Side::Server => ServerDatagram::Disconnect(Text::cut(reason)).emit(out),
        }
    }
}
