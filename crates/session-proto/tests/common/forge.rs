//! Datagrams of an attacker: acks, resend requests, and data with a correct checksum.

use super::*;
use rallypoint_netsim::FilterAction;
use std::{cell::RefCell, rc::Rc};

/// First bytes of datagrams.
pub const PLAIN: u8 = 0x05;
pub const SEALED: u8 = 0x55;
pub const ACK: u8 = 0xff;
pub const RESEND: u8 = 0xaa;

/// An ack or a resend request of these numbers, at most 63.
pub fn number_list(kind: u8, numbers: impl IntoIterator<Item = u32>) -> Vec<u8> {
    let mut bytes = vec![kind, 0];
    for number in numbers {
        bytes[1] += 1;
        bytes.extend(number.to_le_bytes());
        bytes.extend((!number).to_le_bytes());
    }
    bytes
}

/// CRC-32/ISO-HDLC, bit by bit.
pub fn crc(bytes: &[u8]) -> u32 {
    let step = |crc: u32| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), |crc, _| step(crc)))
}

/// A data datagram with another last byte, so that its seal is wrong, and the right checksum.
pub fn with_wrong_seal(datagram: &[u8]) -> Vec<u8> {
    let mut forged = datagram.to_vec();
    *forged.last_mut().unwrap() ^= 1;
    let crc = crc(&forged[5..]);
    forged[1..5].copy_from_slice(&crc.to_le_bytes());
    forged
}

/// The datagrams of the two nodes of a [`Pair`], as an attacker on the path sees them.
#[derive(Clone, Default)]
pub struct Wiretap(Rc<RefCell<Log>>);

/// Datagrams and their senders.
type Log = Vec<(SocketAddr, Vec<u8>)>;

impl Wiretap {
    /// Records everything that is sent from now on.
    pub fn attach(net: &mut Network) -> Self {
        Self::attach_dropping(net, |_, _| false)
    }

    /// Drops the datagrams for which `is_dropped` is true, and records the others.
    pub fn attach_dropping(net: &mut Network, is_dropped: impl Fn(SocketAddr, &[u8]) -> bool + 'static) -> Self {
        let tap = Self::default();
        let log = tap.0.clone();
        net.set_filter(move |packet| {
            if is_dropped(packet.from, packet.bytes) {
                return FilterAction::Drop;
            }
            log.borrow_mut().push((packet.from, packet.bytes.clone()));
            FilterAction::Pass
        });
        tap
    }

    pub fn clear(&self) {
        self.0.borrow_mut().clear();
    }

    /// The datagrams of this kind that an address has sent.
    pub fn sent(&self, from: impl Into<SocketAddr>, kinds: &[u8]) -> Vec<Vec<u8>> {
        let from = from.into();
        let log = self.0.borrow();
        log.iter()
            .filter(|(sender, bytes)| *sender == from && kinds.contains(&bytes[0]))
            .map(|(_, bytes)| bytes.clone())
            .collect()
    }

    /// Number of bytes of the datagrams of this kind.
    pub fn bytes(&self, from: impl Into<SocketAddr>, kinds: &[u8]) -> usize {
        self.sent(from, kinds).iter().map(Vec::len).sum()
    }
}

/// The newest number that an address has sent in a data datagram.
pub fn newest_number(datagrams: &[Vec<u8>]) -> Option<u32> {
    datagrams.iter().map(|bytes| u32::from_le_bytes(bytes[5..9].try_into().unwrap())).max()
}
