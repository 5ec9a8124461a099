//! The form of messages in one session: who sends them, and how they are protected.

use crate::crypto::{Aead, ChaCha, Secret, SessionKeys};
use rallypoint_wire::session::{
    ClientData, ClientDatagram, ClientSealed, MAX_ENCRYPTED_TO_CLIENT, MAX_ENCRYPTED_TO_SERVER, MAX_TO_CLIENT,
    MAX_TO_SERVER, MessageNumber, Payload, Rand, SealInput, ServerData, ServerDatagram, ServerSealed, SlotIndex, TAG,
    Text, Uid,
};

/// On which side of a session a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

#[derive(Debug)]
pub(crate) enum Protection {
    Plain(Rand),
    Sealed { ours: ChaCha, theirs: ChaCha },
}

#[derive(Debug)]
pub(crate) struct Channel {
    pub side: Side,
    pub index: SlotIndex,
    pub uid: Uid,
    pub protection: Protection,
}

impl Protection {
    pub fn of_client(secret: &Secret) -> Self {
        let keys = SessionKeys::new(secret);
        Self::Sealed { ours: keys.to_server, theirs: keys.to_client }
    }

    pub fn of_server(secret: &Secret) -> Self {
        let keys = SessionKeys::new(secret);
        Self::Sealed { ours: keys.to_client, theirs: keys.to_server }
    }
}

impl Channel {
    pub fn is_encrypted(&self) -> bool {
        matches!(self.protection, Protection::Sealed { .. })
    }

    /// The longest message (S33).
    pub fn max_message(&self) -> usize {
        match (self.side, self.is_encrypted()) {
            (Side::Client, false) => MAX_TO_SERVER,
            (Side::Server, false) => MAX_TO_CLIENT,
            (Side::Client, true) => MAX_ENCRYPTED_TO_SERVER,
            (Side::Server, true) => MAX_ENCRYPTED_TO_CLIENT,
        }
    }

    /// Appends the datagram of a message; false if it is too long.
    pub fn emit(&self, number: MessageNumber, message: &[u8], out: &mut Vec<u8>) -> bool {
        let Self { index, uid, .. } = *self;
        match (self.side, &self.protection) {
            (Side::Client, &Protection::Plain(rand)) => {
                Payload::new(message).map(|payload| ClientData { number, index, uid, rand, payload }.emit(out)).is_ok()
            }
            (Side::Server, Protection::Plain(_)) => {
                Payload::new(message).map(|payload| ServerData { number, payload }.emit(out)).is_ok()
            }
            (Side::Client, Protection::Sealed { ours, .. }) => Payload::new(message).is_ok_and(|payload| {
                let seal = |input: &SealInput, text: &mut [u8], tag: &mut [u8; TAG]| ours.seal(input, text, tag);
                ClientSealed::emit_with(number, index, uid, payload, out, seal).is_ok()
            }),
            (Side::Server, Protection::Sealed { ours, .. }) => Payload::new(message).is_ok_and(|payload| {
                let seal = |input: &SealInput, text: &mut [u8], tag: &mut [u8; TAG]| ours.seal(input, text, tag);
                ServerSealed::emit_with(number, index, uid, payload, out, seal).is_ok()
            }),
        }
    }

    /// Writes a received message into `room` and says how long it is; nothing if it does not open.
    pub fn open(&self, input: Option<&SealInput>, bytes: &[u8], room: &mut [u8]) -> Option<usize> {
        match (&self.protection, input) {
            (Protection::Plain(_), None) => {
                room.get_mut(..bytes.len())?.copy_from_slice(bytes);
                Some(bytes.len())
            }
            (Protection::Sealed { theirs, .. }, Some(input)) => {
                let (sealed, tag) = bytes.split_last_chunk()?;
                let room = room.get_mut(..sealed.len())?;
                theirs.open(input, sealed, tag, room).then_some(sealed.len())
            }
            // A session accepts only its own data type (S20).
            _ => None,
        }
    }

    /// Appends the disconnect.
    pub fn emit_disconnect(&self, reason: &str, out: &mut Vec<u8>) {
        match self.side {
            Side::Client => ClientDatagram::Disconnect.emit(out),
            Side::Server => ServerDatagram::Disconnect(Text::cut(reason)).emit(out),
        }
    }
}
