//! Entries and log records as they are in the store.
//!
//! An entry is a value of the hash `entry`, with the public ID as its field:
//!
//! ```text
//! + 0   format (u8 = 1)
//! + 1   number of its last change (u64)
//! + 9   origin (u8), transport (u8)
//! +11   length of the IPv4 endpoint (u8, 0 or 12); source address and port, listed address and port
//! ...   length of the IPv6 endpoint (u8, 0 or 36); the same
//! ...   lobby ID (16), time of the first registration (u64, ms of the store's clock), flags (u8: 1 if it is proven, plus 16
//!       times the number of its door)
//! ...   block as in the list reply, without endpoints and without its length
//! ```
//!
//! The scripts read everything before the lobby ID; the rest is opaque to them. A record of the log is an entry of the stream
//! `log`, whose ID is the number of the change.

use rallypoint_lobby_proto::{ListingOrigin, PublicId, UnlistReason, doors::Door};
use rallypoint_wire::{
    DecodeError, Reader, Writer,
    lobby::{ListBlock, ListId, MAX_BLOCK, Transport},
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use thiserror::Error;

/// First byte of every entry.
const ENTRY_FORMAT: u8 = 1;

/// Maximum size of an entry in bytes; larger ones are not parsed.
const MAX_ENTRY: usize = MAX_BLOCK + 128;

/// Flag of an entry whose server has replied to a node. Later versions may have others.
const PROVEN: u8 = 1;

/// Position of the door in the flags.
const DOOR_SHIFT: u8 = 4;

/// Length of the public ID.
const ID: usize = 16;

/// A value in the store that is not what a node of this version wrote there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a value in the store is not valid")]
pub struct MalformedRecord;

impl From<DecodeError> for MalformedRecord {
    fn from(_: DecodeError) -> Self {
        Self
    }
}

/// The value of an entry: a server as the store has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryValue {
    /// Number of its last change. The store decides it: in what a node writes it does not count.
    pub seq: u64,
    /// How the server came into the list.
    pub origin: ListingOrigin,
    /// The transport of its endpoints.
    pub transport: Transport,
    /// Its IPv4 endpoint: source and listed address.
    pub v4: Option<(SocketAddr, SocketAddr)>,
    /// Its IPv6 endpoint: source and listed address.
    pub v6: Option<(SocketAddr, SocketAddr)>,
    /// The lobby in which the server is listed.
    pub list_id: ListId,
    /// When it first registered, in milliseconds of the store's clock.
    pub since: u64,
    /// Whether it has replied to a check or query of a node (W45).
    pub is_proven: bool,
    /// The door through which it came, if this version has that door.
    pub door: Option<&'static Door>,
    /// Its block of the list reply, without endpoints and without the length field.
    pub block: Vec<u8>,
}

/// The kind of change that a log record reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// A server has this state; `is_expiry` if an endpoint of it expired.
    Put {
        /// The server.
        id: PublicId,
        /// Its state.
        value: EntryValue,
        /// Whether it lost an endpoint whose lease ended.
        is_expiry: bool,
    },
    /// A server was removed. Without a reason, its leases ended.
    Remove {
        /// The server.
        id: PublicId,
        /// Why a node removed it; `None` if its leases ended.
        reason: Option<UnlistReason>,
    },
    /// A ban was added, changed or lifted.
    Ban {
        /// Its subject.
        subject: Vec<u8>,
        /// Its value.
        value: Vec<u8>,
    },
    /// A record that a node of this version does not understand.
    Unknown,
}

/// A record of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRecord {
    /// Number of the change.
    pub seq: u64,
    /// Identifies the change: a later change with the same number, after a failover that lost this one, has another token.
    pub token: Vec<u8>,
    /// The token of the previous change.
    pub previous: Vec<u8>,
    /// The change.
    pub kind: RecordKind,
}

impl EntryValue {
    /// Parses the value of an entry.
    pub fn parse(bytes: &[u8]) -> Result<Self, MalformedRecord> {
        if bytes.len() > MAX_ENTRY {
            return Err(MalformedRecord);
        }
        let mut reader = Reader::new(bytes);
        if reader.u8("format")? != ENTRY_FORMAT {
            return Err(MalformedRecord);
        }
        let seq = u64::from_be_bytes(*reader.array("seq")?);
        // A later version may have further origins, each stronger than those before it.
        let strongest = ListingOrigin::ALL[ListingOrigin::ALL.len() - 1];
        let origin = ListingOrigin::ALL.get(usize::from(reader.u8("origin")?)).copied().unwrap_or(strongest);
        let transport = transport(reader.u8("transport")?)?;
        let v4 = parse_endpoint::<4>(&mut reader, |ip| Ipv4Addr::from(ip).into())?;
        let v6 = parse_endpoint::<16>(&mut reader, |ip| Ipv6Addr::from(ip).into())?;
        let list_id = ListId::from_bytes(*reader.array("lobby ID")?);
        let since = u64::from_be_bytes(*reader.array("since")?);
        let flags = reader.u8("flags")?;
        let (is_proven, door) = (flags & PROVEN != 0, Door::of_code(flags >> DOOR_SHIFT));
        let block = reader.rest();
        if (v4.is_none() && v6.is_none()) || ListBlock::parse(block)?.transport != transport {
            return Err(MalformedRecord);
        }
        Ok(Self { seq, origin, transport, v4, v6, list_id, since, is_proven, door, block: block.to_vec() })
    }

    /// The part that the scripts do not read.
    pub(crate) fn emit_body(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(25 + self.block.len());
        let mut writer = Writer::new(&mut bytes);
        writer.bytes(self.list_id.as_bytes());
        writer.bytes(&self.since.to_be_bytes());
        let door = self.door.map_or(0, |door| door.code) << DOOR_SHIFT;
        writer.u8(door | if self.is_proven { PROVEN } else { 0 });
        writer.bytes(&self.block);
        bytes
    }
}

impl LogRecord {
    /// Parses a record of the log: its ID in the stream, and its fields. Only a record without a number or token is malformed
    /// as a whole: any other garbage is a record that changes nothing.
    pub fn parse<B: AsRef<[u8]>>(stream_id: &[u8], fields: &[(B, B)]) -> Result<Self, MalformedRecord> {
        let seq = std::str::from_utf8(stream_id).ok().and_then(|id| id.strip_suffix("-0")?.parse().ok());
        let seq = seq.ok_or(MalformedRecord)?;
        let (mut kind, mut id, mut value, mut token, mut previous) = (&b""[..], &b""[..], &b""[..], None, None);
        for (name, field) in fields {
            let field = field.as_ref();
            match name.as_ref() {
                b"k" => kind = field,
                b"i" => id = field,
                b"v" => value = field,
                b"c" => token = Some(field.to_vec()),
                b"p" => previous = Some(field.to_vec()),
                // Later versions may have more.
                _ => {}
            }
        }
        let token = token.ok_or(MalformedRecord)?;
        let previous = previous.ok_or(MalformedRecord)?;
        let kind = RecordKind::parse(kind, id, value).unwrap_or(RecordKind::Unknown);
        Ok(Self { seq, token, previous, kind })
    }
}

impl RecordKind {
    fn parse(kind: &[u8], id: &[u8], value: &[u8]) -> Result<Self, MalformedRecord> {
        match kind {
            b"put" | b"left" => {
                let value = EntryValue::parse(value)?;
                Ok(Self::Put { id: parse_id(id)?, value, is_expiry: kind == b"left" })
            }
            b"del" => Ok(Self::Remove { id: parse_id(id)?, reason: parse_reason(value)? }),
            b"ban" => Ok(Self::Ban { subject: id.to_vec(), value: value.to_vec() }),
            _ => Err(MalformedRecord),
        }
    }
}

/// Parses a public ID of the store.
pub(crate) fn parse_id(bytes: &[u8]) -> Result<PublicId, MalformedRecord> {
    let id: [u8; ID] = bytes.try_into().map_err(|_| MalformedRecord)?;
    Ok(PublicId::from_bytes(id))
}

/// The reason for which a node removed a server; `None` if its leases ended. A later version may have others: the server is gone
/// then, too.
fn parse_reason(code: &[u8]) -> Result<Option<UnlistReason>, MalformedRecord> {
    let reasons = [
        UnlistReason::Unregistered,
        UnlistReason::Replaced,
        UnlistReason::Moved,
        UnlistReason::Unreachable,
        UnlistReason::Banned,
        UnlistReason::Unwatched,
        UnlistReason::Evicted,
        UnlistReason::Contested,
    ];
    if code == UnlistReason::Expired.code().as_bytes() {
        return Ok(None);
    }
    let is_code = !code.is_empty() && code.iter().all(|byte| byte.is_ascii_lowercase() || *byte == b'_');
    let known = reasons.into_iter().find(|reason| reason.code().as_bytes() == code);
    known.or(is_code.then_some(UnlistReason::Expired)).map(Some).ok_or(MalformedRecord)
}

/// The byte of a transport in the store.
pub(crate) const fn transport_byte(transport: Transport) -> u8 {
    match transport {
        Transport::Tcp => b't',
        Transport::Udp => b'u',
    }
}

fn transport(byte: u8) -> Result<Transport, MalformedRecord> {
    match byte {
        b't' => Ok(Transport::Tcp),
        b'u' => Ok(Transport::Udp),
        _ => Err(MalformedRecord),
    }
}

/// The bytes of an endpoint: source and listed address, each with its port.
pub(crate) fn endpoint_bytes((internal, external): (SocketAddr, SocketAddr)) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(36);
    for addr in [internal, external] {
        match addr.ip() {
            IpAddr::V4(ip) => bytes.extend(ip.octets()),
            IpAddr::V6(ip) => bytes.extend(ip.octets()),
        }
        bytes.extend(addr.port().to_be_bytes());
    }
    bytes
}

fn parse_endpoint<const N: usize>(
    reader: &mut Reader<'_>,
    ip: impl Fn([u8; N]) -> IpAddr,
) -> Result<Option<(SocketAddr, SocketAddr)>, MalformedRecord> {
    match usize::from(reader.u8("endpoint length")?) {
        0 => return Ok(None),
        length if length == 2 * (N + 2) => {}
        _ => return Err(MalformedRecord),
    }
    let mut addr = || -> Result<SocketAddr, MalformedRecord> {
        let addr = ip(*reader.array("address")?);
        let port = reader.u16_be("port")?;
        (port > 0).then_some(SocketAddr::new(addr, port)).ok_or(MalformedRecord)
    };
    Ok(Some((addr()?, addr()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn garbage_is_not_an_entry() {
        assert!(EntryValue::parse(b"").is_err());
        assert!(EntryValue::parse(b"hello, this is another program's value").is_err());
        assert!(EntryValue::parse(&vec![1; MAX_ENTRY + 1]).is_err());
        for length in 0..200 {
            assert!(EntryValue::parse(&vec![1; length]).is_err(), "{length}");
        }
    }

    #[test]
    fn every_reason_for_a_removal_is_parsed() {
        for code in UnlistReason::CODES {
            let reason = parse_reason(code.as_bytes()).unwrap();
            assert_eq!(reason.map_or("expired", UnlistReason::code), code);
        }
        assert_eq!(parse_reason(b"later"), Ok(Some(UnlistReason::Expired)));
        assert_eq!(parse_reason(b"\xff"), Err(MalformedRecord));
    }

    #[test]
    fn a_record_of_an_unknown_kind_keeps_its_place_in_the_log() {
        let fields = [(&b"k"[..], &b"later"[..]), (b"c", b"t"), (b"p", b"s"), (b"x", b"new")];
        let record = LogRecord::parse(b"7-0", &fields).unwrap();
        assert_eq!((record.seq, record.kind), (7, RecordKind::Unknown));
        assert_eq!(LogRecord::parse(b"7-1", &fields), Err(MalformedRecord));
        assert_eq!(LogRecord::parse(b"x", &fields), Err(MalformedRecord));
        assert_eq!(LogRecord::parse(b"7-0", &[(&b"k"[..], &b"put"[..])]), Err(MalformedRecord), "no token");
    }
}
