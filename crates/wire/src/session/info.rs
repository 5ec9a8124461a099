//! Replies to queries: description, teams and players.
//!
//! ```text
//! info 1: <u8: 0b10000000><u8: protocol revision><u32: engine revision><u8: game version type><u32: game version>
//!         <u8: players><u8: max players><char[0..127]: game>
//! info 2: <u8: 0b10000001><char[0..507]: <char[]: server name><char: 0><char[]: description>>
//! info 3: <u8: 0b10000010><char[0..507]: game name>
//! info 4: <u8: 0b10000011><char[0..507]: map>
//! info 5: <u8: 0b10000100><char[0..507]: mods ids (separated by '\0')>
//! info 6: <u8: 0b10000101><char[0..507]: mods names (separated by '\0')>
//! info 7: <u8: 0b10000110><char[0..507]: tags (separated by '\0')>
//! player info 1: <u8: 0b10001000><u8: team id><7 bits: 0><1 bit: ranked><u8[3]: team color><char[0..502]: team
//!                name>
//! player info 2: <u8: 0b10001001><u8: team id><u8: team rank><u16: ping><i8: platform><char[0..255]: username>
//! ```

use super::{FieldError, MAX_LOGIN_TEXT, MAX_TEXT, Name, Text, TextList, kind};
use crate::{DecodeError, DecodeErrorKind, Reader, Writer};
use alloc::vec::Vec;
use core::time::Duration;

/// Bit 0 of its byte. The other bits are sent as 0 and ignored (S5).
const RANKED: u8 = 1;

/// Maximum length of the server name in bytes, without a description.
const MAX_SERVER_NAME: usize = MAX_TEXT - 1;

/// One of the seven parts of the reply to a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Info<'a> {
    /// Info 1: versions, players and game.
    Summary(Summary<'a>),
    /// Info 2: name and description.
    Title(Title<'a>),
    /// Info 3: display name of the game.
    GameName(Text<'a>),
    /// Info 4: the map.
    Map(Text<'a>),
    /// Info 5: IDs of the mods.
    ModIds(TextList<'a>),
    /// Info 6: display names of the mods.
    ModNames(TextList<'a>),
    /// Info 7: tags.
    Tags(TextList<'a>),
}

/// Info 1. Engine revision, version type and version are defined by the game and passed through (S6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary<'a> {
    /// Protocol revision of the server.
    pub revision: u8,
    /// Revision of the game engine.
    pub engine_revision: u32,
    /// Type of the game version.
    pub version_type: u8,
    /// Game version.
    pub version: u32,
    /// Number of players.
    pub players: u8,
    /// Maximum number of players.
    pub max_players: u8,
    /// ID of the game, as in a login; it extends to the end of the datagram (S4).
    pub game: Text<'a, MAX_LOGIN_TEXT>,
}

/// Info 2: a name and a description, together at most 506 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Title<'a> {
    name: Name<'a, MAX_SERVER_NAME>,
    description: Text<'a, MAX_SERVER_NAME>,
}

/// Player info 1: a team.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Team<'a> {
    /// ID that the players of the team refer to.
    pub team: u8,
    /// Whether it is ranked.
    pub ranked: bool,
    /// Colour: red, green, blue (S6).
    pub color: [u8; 3],
    /// Team name.
    pub name: Text<'a, 502>,
}

/// Player info 2: a player. Rank and platform are defined by the game and passed through (S6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Player<'a> {
    /// ID of the player's team.
    pub team: u8,
    /// Rank within the team.
    pub rank: u8,
    /// Ping of the player.
    pub ping: Ping,
    /// Platform of the player.
    pub platform: i8,
    /// Username.
    pub username: Name<'a, 255>,
}

/// A ping in milliseconds; longer ones saturate at 65,535 ms (S6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ping(pub u16);

impl<'a> Info<'a> {
    /// Number of parts of the reply to a query.
    pub const PARTS: usize = 7;

    pub(super) fn parse(kind: u8, mut reader: Reader<'a>) -> Result<Self, DecodeError> {
        let reader = &mut reader;
        match kind {
            kind::INFO_1 => Summary::parse(reader).map(Self::Summary),
            kind::INFO_2 => Title::parse(reader).map(Self::Title),
            kind::INFO_3 => Text::parse(reader, "game name").map(Self::GameName),
            kind::INFO_4 => Text::parse(reader, "map").map(Self::Map),
            kind::INFO_5 => TextList::parse(reader, "mod ids").map(Self::ModIds),
            kind::INFO_6 => TextList::parse(reader, "mod names").map(Self::ModNames),
            kind::INFO_7 => TextList::parse(reader, "tags").map(Self::Tags),
            _ => Err(DecodeError::new("type", DecodeErrorKind::Unknown)),
        }
    }

    /// Appends the datagram.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.u8(self.kind());
        match self {
            Self::Summary(summary) => summary.emit(&mut writer),
            Self::Title(title) => title.emit(&mut writer),
            Self::GameName(text) | Self::Map(text) => writer.bytes(text.as_bytes()),
            Self::ModIds(list) | Self::ModNames(list) | Self::Tags(list) => writer.bytes(list.as_bytes()),
        }
    }

    /// Index of the part, counted from 0: info 1 is 0, info 7 is 6.
    #[must_use]
    pub const fn part(&self) -> usize {
        (self.kind() - kind::INFO_1) as usize
    }

    const fn kind(&self) -> u8 {
        match self {
            Self::Summary(_) => kind::INFO_1,
            Self::Title(_) => kind::INFO_2,
            Self::GameName(_) => kind::INFO_3,
            Self::Map(_) => kind::INFO_4,
            Self::ModIds(_) => kind::INFO_5,
            Self::ModNames(_) => kind::INFO_6,
            Self::Tags(_) => kind::INFO_7,
        }
    }
}

impl<'a> Summary<'a> {
    fn parse(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            revision: reader.u8("protocol revision")?,
            engine_revision: reader.u32_le("engine revision")?,
            version_type: reader.u8("game version type")?,
            version: reader.u32_le("game version")?,
            players: reader.u8("players")?,
            max_players: reader.u8("max players")?,
            game: Text::parse(reader, "game")?,
        })
    }

    fn emit(&self, writer: &mut Writer<'_>) {
        writer.u8(self.revision);
        writer.u32_le(self.engine_revision);
        writer.u8(self.version_type);
        writer.u32_le(self.version);
        writer.u8(self.players);
        writer.u8(self.max_players);
        writer.bytes(self.game.as_bytes());
    }
}

impl<'a> Title<'a> {
    /// Creates a title from a name and a description.
    ///
    /// # Errors
    /// If they are longer than 506 bytes together, or the name has a zero byte (S4).
    pub fn new(name: &'a [u8], description: &'a [u8]) -> Result<Self, FieldError> {
        let length = name.len() + description.len();
        if length > MAX_SERVER_NAME {
            return Err(FieldError::TooLong { limit: MAX_SERVER_NAME, length });
        }
        Ok(Self { name: Name::new(name)?, description: Text::new(description)? })
    }

    /// Creates a title, truncated on character boundaries; the name has priority (S3).
    #[must_use]
    pub fn cut(name: &'a str, description: &'a str) -> Self {
        let name = Name::cut(name);
        Self { name, description: Text::cut_to(MAX_SERVER_NAME - name.len(), description) }
    }

    /// The server's name.
    #[must_use]
    pub const fn name(&self) -> Name<'a, MAX_SERVER_NAME> {
        self.name
    }

    /// The description.
    #[must_use]
    pub const fn description(&self) -> Text<'a, MAX_SERVER_NAME> {
        self.description
    }

    fn parse(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            name: Name::parse_until_nul(reader, "server name")?,
            // The space that the name leaves in a datagram is within the limit of a text.
            description: Text::parse(reader, "description")?,
        })
    }

    fn emit(&self, writer: &mut Writer<'_>) {
        writer.bytes(self.name.as_bytes());
        writer.u8(0);
        writer.bytes(self.description.as_bytes());
    }
}

impl<'a> Team<'a> {
    pub(super) fn parse(mut reader: Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            team: reader.u8("team id")?,
            ranked: reader.u8("ranked")? & RANKED != 0,
            color: *reader.array("team color")?,
            name: Text::parse(&mut reader, "team name")?,
        })
    }

    /// Appends the datagram.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.u8(kind::PLAYER_INFO_1);
        writer.u8(self.team);
        writer.u8(if self.ranked { RANKED } else { 0 });
        writer.bytes(&self.color);
        writer.bytes(self.name.as_bytes());
    }
}

impl<'a> Player<'a> {
    pub(super) fn parse(mut reader: Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            team: reader.u8("team id")?,
            rank: reader.u8("team rank")?,
            ping: Ping(reader.u16_le("ping")?),
            platform: reader.u8("platform")?.cast_signed(),
            username: Name::parse(&mut reader, "username")?,
        })
    }

    /// Appends the datagram.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.u8(kind::PLAYER_INFO_2);
        writer.u8(self.team);
        writer.u8(self.rank);
        writer.u16_le(self.ping.0);
        writer.u8(self.platform.cast_unsigned());
        writer.bytes(self.username.as_bytes());
    }
}

impl From<Duration> for Ping {
    fn from(ping: Duration) -> Self {
        Self(u16::try_from(ping.as_millis()).unwrap_or(u16::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::{super::ServerDatagram, *};

    fn reemit(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        ServerDatagram::parse(bytes).unwrap().emit(&mut out);
        out
    }

    #[test]
    fn s5_only_bit_0_says_ranked() {
        for byte in 0..=255 {
            let bytes = [0x88, 1, byte, 2, 3, 4];
            let Ok(ServerDatagram::Team(team)) = ServerDatagram::parse(&bytes) else { panic!("{byte}") };
            assert_eq!(team.ranked, byte % 2 == 1);
            assert_eq!(reemit(&bytes), [0x88, 1, byte % 2, 2, 3, 4]);
        }
    }

    #[test]
    fn s6_the_games_own_numbers_are_passed_through() {
        for byte in 0..=255 {
            let player = [0x89, byte, byte, byte, byte, byte, b'x'];
            assert_eq!(reemit(&player), player);
            let info = [[0x80; 1].as_slice(), &[byte; 12]].concat();
            assert_eq!(reemit(&info), info);
        }
    }

    #[test]
    fn s6_a_ping_saturates() {
        assert_eq!(Ping::from(Duration::from_micros(48_900)), Ping(48));
        assert_eq!(Ping::from(Duration::from_millis(65_535)), Ping(65_535));
        assert_eq!(Ping::from(Duration::from_millis(65_536)), Ping(65_535));
        assert_eq!(Ping::from(Duration::MAX), Ping(65_535));
    }

    #[test]
    fn s4_neither_a_server_nor_a_player_has_nul_in_its_name() {
        assert_eq!(Title::new(b"a\0b", b""), Err(FieldError::Nul));
        let nul = ServerDatagram::parse(b"\x89\0\0\0\0\0a\0b");
        assert_eq!(nul, Err(DecodeError::new("username", DecodeErrorKind::Invalid)));
        // The first one ends the name, the others are part of the description.
        let Ok(ServerDatagram::Info(Info::Title(title))) = ServerDatagram::parse(b"\x81a\0b\0c") else { panic!() };
        assert_eq!((title.name().as_bytes(), title.description().as_bytes()), (&b"a"[..], &b"b\0c"[..]));
    }

    #[test]
    fn s3_a_title_is_cut_at_the_description_first() {
        let short = "name";
        let long = "ä".repeat(400);
        for (name, description) in [(short, &*long), (&*long, short), (&*long, &*long), ("a\0b", short), ("", "")] {
            let title = Title::cut(name, description);
            assert_eq!(Title::new(title.name().as_bytes(), title.description().as_bytes()), Ok(title));
            assert!(title.name().to_str().is_ok() && title.description().to_str().is_ok());
        }
        assert_eq!(Title::cut(short, &long).name().as_bytes(), short.as_bytes());
        assert_eq!(Title::cut(short, &long).description().len(), 502);
        assert_eq!(Title::cut(&long, short).name().len(), 506);
        assert_eq!(Title::new(&[b'n'; 500], &[b'd'; 7]), Err(FieldError::TooLong { limit: 506, length: 507 }));
    }
}
