//! Registrations and unregistrations.
//!
//! ```text
//! +  0    Message type (UUID)          b5dae2e8-424f-9ed0-0fcb-8c21c7ca1352 registers,
//! + 16    Server ID (UUID)             488984ac-45dc-86e1-9901-98dd1c01c064 unregisters and ends here
//! + 32    Lobby ID (UUID)
//! + 48    Transport protocol           0 = TCP, 1 = UDP (L7)
//! + 49    Port number (uint16)         not 0 (L7)
//! + 51    Player slots (uint16)
//! + 53    Occupied slots (uint16)
//! + 55    AI players (uint16)
//! + 57    Flags (uint16)               bit 0 = password protected (L2)
//! + 59    Number of entries (uint16)   not in document 000 (L1)
//! + 61    key/value table
//! ```

use super::{ListId, ProtocolId, ServerId, Table, table};
use crate::{DecodeError, DecodeErrorKind, Reader, Writer};
use alloc::vec::Vec;
use core::num::NonZeroU16;

const REGISTER: [u8; 16] = hex(b"b5dae2e8424f9ed00fcb8c21c7ca1352");
const UNREGISTER: [u8; 16] = hex(b"488984ac45dc86e1990198dd1c01c064");

/// Position of the port number in a registration.
const PORT_OFFSET: usize = 49;

/// Flag bit 0. The other bits are reserved and are not forwarded (L2).
pub(super) const PASSWORD: u16 = 0x0001;

/// A datagram to the lobby's UDP port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Datagram<'a> {
    /// Registers a server, or refreshes its registration.
    Register(Registration<'a>),
    /// Removes a server from the list.
    Unregister(Unregister),
}

/// A registration: the complete description of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registration<'a> {
    server_id: ServerId,
    list_id: ListId,
    transport: Transport,
    port: NonZeroU16,
    occupancy: Occupancy,
    layout: Layout,
    table: Table<'a>,
}

/// An unregistration. The ID suffices, because it is secret (L11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unregister {
    /// The ID that the server registered with.
    pub server_id: ServerId,
}

/// Transport protocol of a game.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transport {
    /// TCP: the lobby can check whether the port is open.
    Tcp,
    /// UDP.
    Udp,
}

/// Slots, players, bots and password flag: the same eight bytes in registrations and in the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Occupancy {
    /// Number of player slots.
    pub slots: u16,
    /// Number of human players.
    pub players: u16,
    /// Number of bots; players and bots together can exceed the slots.
    pub bots: u16,
    /// Whether a password is required.
    pub password: bool,
}

/// The document that a registration follows (L1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Document 000: no entry count.
    Draft,
    /// Document 001, the current one.
    Current,
}

impl<'a> Datagram<'a> {
    /// Parses a datagram.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        match *reader.array("message type")? {
            REGISTER => Registration::parse_body(reader).map(Self::Register),
            UNREGISTER => {
                let server_id = ServerId::from_bytes(*reader.array("server ID")?);
                reader.finish("unregister")?;
                Ok(Self::Unregister(Unregister { server_id }))
            }
            _ => Err(DecodeError::new("message type", DecodeErrorKind::Unknown)),
        }
    }

    /// The server ID of a possible registration, without parsing the rest: enough to compare it, byte for byte, with the
    /// previous one.
    #[inline]
    #[must_use]
    pub fn peek_registration(bytes: &[u8]) -> Option<ServerId> {
        let (message, rest) = bytes.split_first_chunk()?;
        let (server_id, _) = rest.split_first_chunk()?;
        (*message == REGISTER).then_some(ServerId::from_bytes(*server_id))
    }

    /// The port of a possible registration, without parsing the rest.
    #[must_use]
    pub fn peek_port(bytes: &[u8]) -> Option<NonZeroU16> {
        Self::peek_registration(bytes)?;
        let port = bytes.get(PORT_OFFSET..)?.first_chunk()?;
        NonZeroU16::new(u16::from_be_bytes(*port))
    }

    /// The entry count of a possible registration, without parsing the rest, limited by its size: an estimate of the cost of
    /// parsing it.
    #[must_use]
    pub fn peek_count(bytes: &[u8]) -> usize {
        let claimed = bytes.get(table::OFFSET - 2..table::OFFSET).and_then(<[u8]>::first_chunk);
        let room = bytes.len().saturating_sub(table::OFFSET);
        claimed.map_or(0, |count| usize::from(u16::from_be_bytes(*count))).min(room / table::SMALLEST_ENTRY)
    }
}

impl<'a> Registration<'a> {
    /// Creates a registration in the current layout.
    ///
    /// # Errors
    /// If the table has no `name` (L6) or a `protocol_id` that is not 16 bytes (L5).
    pub fn new(
        server_id: ServerId,
        list_id: ListId,
        transport: Transport,
        port: NonZeroU16,
        occupancy: Occupancy,
        table: Table<'a>,
    ) -> Result<Self, DecodeError> {
        let new = Self { server_id, list_id, transport, port, occupancy, layout: Layout::Current, table };
        require_name(table)?;
        require_protocol_id(table)?;
        Ok(new)
    }

    fn parse_body(mut reader: Reader<'a>) -> Result<Self, DecodeError> {
        let server_id = ServerId::from_bytes(*reader.array("server ID")?);
        let list_id = ListId::from_bytes(*reader.array("lobby ID")?);
        let transport = Transport::parse(&mut reader)?;
        let port = NonZeroU16::new(reader.u16_be("port")?).ok_or(DecodeError::new("port", DecodeErrorKind::Zero))?;
        let occupancy = Occupancy::parse(&mut reader)?;
        let (layout, table) = parse_either_layout(reader)?;
        require_protocol_id(table)?;
        Ok(Self { server_id, list_id, transport, port, occupancy, layout, table })
    }

    /// Appends the datagram. Repeated keys are merged (L4).
    pub fn emit(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.bytes(&REGISTER);
        writer.bytes(self.server_id.expose());
        writer.bytes(self.list_id.as_bytes());
        self.transport.emit(&mut writer);
        writer.u16_be(self.port.get());
        self.occupancy.emit(&mut writer);
        match self.layout {
            Layout::Current => self.table.emit_counted(&mut writer),
            Layout::Draft => self.table.emit_bare(&mut writer),
        }
    }

    /// The secret ID of the server.
    #[must_use]
    pub const fn server_id(&self) -> ServerId {
        self.server_id
    }

    /// The lobby to be listed in.
    #[must_use]
    pub const fn list_id(&self) -> ListId {
        self.list_id
    }

    /// Protocol that players connect with.
    #[must_use]
    pub const fn transport(&self) -> Transport {
        self.transport
    }

    /// Port that players connect to. The address is the source address of the datagram.
    #[must_use]
    pub const fn port(&self) -> NonZeroU16 {
        self.port
    }

    /// Slots, players, bots and password flag.
    #[must_use]
    pub const fn occupancy(&self) -> Occupancy {
        self.occupancy
    }

    /// The document that it follows.
    #[must_use]
    pub const fn layout(&self) -> Layout {
        self.layout
    }

    /// All other properties of the server.
    #[must_use]
    pub const fn table(&self) -> Table<'a> {
        self.table
    }

    /// The server name: present in every registration (L6), but possibly empty.
    #[must_use]
    pub fn name(&self) -> &'a [u8] {
        self.table.get(b"name").unwrap_or_default()
    }

    /// The game protocol, if present.
    #[must_use]
    pub fn protocol_id(&self) -> Option<ProtocolId> {
        self.table.get(b"protocol_id")?.try_into().ok().map(ProtocolId::from_bytes)
    }
}

/// Tries 001 first; only if that does not fit the datagram or yields no name, 000 (L1). If neither works, the error is that of
/// 001, the document that current servers follow.
fn parse_either_layout(reader: Reader<'_>) -> Result<(Layout, Table<'_>), DecodeError> {
    // Bytes after the last entry are ignored (L3).
    let current = Table::parse_counted(&mut { reader }).and_then(require_name);
    let error = match current {
        Ok(table) => return Ok((Layout::Current, table)),
        Err(error) => error,
    };
    match Table::parse_to_end(reader).and_then(require_name) {
        Ok(table) => Ok((Layout::Draft, table)),
        Err(_) => Err(error),
    }
}

fn require_name(table: Table<'_>) -> Result<Table<'_>, DecodeError> {
    match table.get(b"name") {
        Some(_) => Ok(table),
        None => Err(DecodeError::new("name", DecodeErrorKind::Missing)),
    }
}

fn require_protocol_id(table: Table<'_>) -> Result<(), DecodeError> {
    match table.get(b"protocol_id") {
        Some(value) if value.len() != 16 => Err(DecodeError::new("protocol_id", DecodeErrorKind::NotBytes(16))),
        _ => Ok(()),
    }
}

impl Unregister {
    /// Appends the datagram.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.bytes(&UNREGISTER);
        writer.bytes(self.server_id.expose());
    }
}

impl Transport {
    pub(super) fn parse(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match reader.u8("transport")? {
            0 => Ok(Self::Tcp),
            1 => Ok(Self::Udp),
            _ => Err(DecodeError::new("transport", DecodeErrorKind::Unknown)),
        }
    }

    pub(super) fn emit(self, writer: &mut Writer<'_>) {
        writer.u8(match self {
            Self::Tcp => 0,
            Self::Udp => 1,
        });
    }

    /// `tcp` or `udp`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }
}

impl Occupancy {
    pub(super) fn parse(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            slots: reader.u16_be("player slots")?,
            players: reader.u16_be("occupied player slots")?,
            bots: reader.u16_be("AI players")?,
            password: reader.u16_be("flags")? & PASSWORD != 0,
        })
    }

    pub(super) fn emit(self, writer: &mut Writer<'_>) {
        writer.u16_be(self.slots);
        writer.u16_be(self.players);
        writer.u16_be(self.bots);
        writer.u16_be(if self.password { PASSWORD } else { 0 });
    }
}

/// The 16 bytes of a UUID written without dashes.
pub(super) const fn hex(digits: &[u8; 32]) -> [u8; 16] {
    const fn nibble(digit: u8) -> u8 {
        match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => panic!("not a hex digit"),
        }
    }
    let mut bytes = [0; 16];
    let mut i = 0;
    while i < 16 {
        bytes[i] = nibble(digits[2 * i]) << 4 | nibble(digits[2 * i + 1]);
        i += 1;
    }
    bytes
}
