//! The queries of the Unreal Engine 2: Unreal Tournament 2003 and 2004, Unreal 2 XMP, Killing Floor, Red Orchestra, Pariah.
//!
//! The port is usually that of the game plus one. All numbers are little-endian.
//!
//! ```text
//! client   79 00 00 00 TYPE                     0 the server, 1 its rules, 2 its players
//! server   80 00 00 00 00 ID(4) address PORT(4) QUERY_PORT(4) name map game_type PLAYERS(4) MAX(4)
//!              [WAVE(4) WAVES(4)] [PING(4) FLAGS(4) skill]
//!          80 00 00 00 01 {name value}...
//!          80 00 00 00 02 {ID(4) name PING(4) SCORE(4) STATS_ID(4)}...
//!                         {00 00 00 00 ID(4) name PING(4) SCORE(4) STATS_ID(4) COUNT {name value}...}...   Unreal 2 XMP
//! text     LENGTH bytes 00                      the length includes the end
//! LENGTH   bit 7: 16 bits per character; bit 6: the next byte has the bits from 6 on
//! ```
//!
//! Rules and players may take several datagrams, whose number is not announced. Teams are bits of the number for statistics.
//!
//! ```
//! use rallypoint_wire::query::unreal2::{Request, Response};
//!
//! let mut query = Vec::new();
//! Request::Rules.emit(&mut query);
//! assert_eq!(query, [0x79, 0, 0, 0, 1]);
//!
//! let reply = b"\x80\0\0\0\x01\x08Mutator\0\x0eMutLoginCheck\0";
//! let Response::Rules(rules) = Response::parse(reply)? else { panic!("not rules") };
//! let (name, value) = rules.iter().next().expect("a rule")?;
//! assert_eq!((&*name.display(), &*value.display()), ("Mutator", "MutLoginCheck"));
//! # Ok::<(), rallypoint_wire::DecodeError>(())
//! ```

use crate::{DecodeError, DecodeErrorKind, Reader};
use alloc::{string::String, vec::Vec};

/// Name of the query protocol in URLs and in `x-query`.
pub const SCHEME: &str = "unreal2";

/// Name of the query protocol for people.
pub const TITLE: &str = "Unreal Engine 2: UT2004, Killing Floor";

/// Default UDP port of the queries of a server: that of Unreal Tournament 2004.
pub const PORT: u16 = 7_778;

/// Longest datagram of a server in bytes. Known ones split their replies long before.
pub const MAX_DATAGRAM: usize = 4_096;

/// A query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// The description of the server.
    Info,
    /// Its settings.
    Rules,
    /// Its players.
    Players,
}

/// A reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response<'a> {
    /// The description of the server.
    Info(Info<'a>),
    /// Some of its settings, or all.
    Rules(Rules<'a>),
    /// Some of its players, or all.
    Players(Players<'a>),
}

/// The description of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info<'a> {
    /// Number of the server; 0 for nearly all.
    pub id: u32,
    /// Address of the server as it knows it; empty for nearly all.
    pub address: Text<'a>,
    /// Port of the game.
    pub port: u32,
    /// Port of queries; 0 for nearly all.
    pub query_port: u32,
    /// Name of the server.
    pub name: Text<'a>,
    /// Current map.
    pub map: Text<'a>,
    /// Class of the game: "xDeathMatch".
    pub game_type: Text<'a>,
    /// Number of players.
    pub players: u32,
    /// Maximum number of players.
    pub max_players: u32,
    /// Current wave and number of waves of Killing Floor.
    pub waves: Option<(u32, u32)>,
    /// Level of difficulty.
    pub skill: Option<Text<'a>>,
}

/// Settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules<'a>(&'a [u8]);

/// Players.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Players<'a>(&'a [u8]);

/// A player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Player<'a> {
    /// Number of the player on the server. Lines with the number 0 are not of players, except in Unreal 2 XMP.
    pub id: u32,
    /// Name.
    pub name: Text<'a>,
    /// Round-trip time in milliseconds.
    pub ping: u32,
    /// Points.
    pub score: i32,
    /// Number for statistics, and the team.
    pub stats_id: u32,
}

/// A text with colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Text<'a> {
    bytes: &'a [u8],
    is_wide: bool,
}

/// Version of the protocol that clients send.
const VERSION: u8 = 0x79;

/// Versions of the protocol that servers send, the latest one last.
const VERSIONS: core::ops::RangeInclusive<u8> = 0x78..=0x80;

/// Bits of [`Player::stats_id`] for the teams 0 and 1.
const TEAMS: [u32; 2] = [1 << 29, 1 << 30];

/// Begins a colour: three more characters follow.
const COLOUR: u8 = 0x1b;

impl Request {
    /// Parses a datagram from a client; `None` if it is none of these queries.
    #[must_use]
    pub fn parse(datagram: &[u8]) -> Option<Self> {
        match *datagram {
            [version, 0, 0, 0, kind] if VERSIONS.contains(&version) => match kind {
                0 => Some(Self::Info),
                1 => Some(Self::Rules),
                2 => Some(Self::Players),
                _ => None,
            },
            _ => None,
        }
    }

    /// Appends the datagram.
    pub fn emit(self, out: &mut Vec<u8>) {
        let kind = match self {
            Self::Info => 0,
            Self::Rules => 1,
            Self::Players => 2,
        };
        out.extend_from_slice(&[VERSION, 0, 0, 0, kind]);
    }
}

impl<'a> Response<'a> {
    /// Parses a datagram from a server.
    ///
    /// # Errors
    /// If it is none of these replies, or a description that is cut off.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, DecodeError> {
        let error = |field, kind| Err(DecodeError::new(field, kind));
        if datagram.is_empty() {
            return error("datagram", DecodeErrorKind::Empty);
        }
        let mut reader = Reader::new(datagram);
        let [version, rest @ ..] = *reader.array::<4>("version")?;
        if !VERSIONS.contains(&version) || rest != [0; 3] {
            return error("version", DecodeErrorKind::Mismatch);
        }
        match reader.u8("type")? {
            0 => Info::parse(reader).map(Self::Info),
            1 => Ok(Self::Rules(Rules(reader.take_rest()))),
            2 => Ok(Self::Players(Players(reader.take_rest()))),
            _ => error("type", DecodeErrorKind::Unknown),
        }
    }
}

impl<'a> Info<'a> {
    fn parse(mut reader: Reader<'a>) -> Result<Self, DecodeError> {
        let mut info = Self {
            id: reader.u32_le("server ID")?,
            address: Text::parse(&mut reader, "address")?,
            port: reader.u32_le("port")?,
            query_port: reader.u32_le("query port")?,
            name: Text::parse(&mut reader, "name")?,
            map: Text::parse(&mut reader, "map")?,
            game_type: Text::parse(&mut reader, "game type")?,
            players: reader.u32_le("number of players")?,
            max_players: reader.u32_le("maximum number of players")?,
            waves: None,
            skill: None,
        };
        // What follows depends on the game. What fits exactly is understood.
        info.skill = skill(reader);
        if let (None, Ok(wave), Ok(waves)) = (info.skill, reader.u32_le("wave"), reader.u32_le("waves")) {
            info.skill = skill(reader);
            let is_end = reader.is_empty() || info.skill.is_some();
            info.waves = is_end.then_some((wave, waves)).filter(|(wave, waves)| *waves > 0 && wave <= waves);
        }
        Ok(info)
    }
}

/// The level of difficulty at the end of an info, after ping and flags.
fn skill(mut reader: Reader<'_>) -> Option<Text<'_>> {
    reader.bytes(8, "ping and flags").ok()?;
    let skill = Text::parse(&mut reader, "skill").ok()?;
    reader.is_empty().then_some(skill)
}

impl<'a> Rules<'a> {
    /// Names and values. An error takes the place of the rule where the datagram is cut off.
    pub fn iter(&self) -> impl Iterator<Item = Result<(Text<'a>, Text<'a>), DecodeError>> + use<'a> {
        let mut reader = Reader::new(self.0);
        core::iter::from_fn(move || {
            if reader.is_empty() {
                return None;
            }
            let rule = rule(&mut reader);
            if rule.is_err() {
                reader.take_rest();
            }
            Some(rule)
        })
    }
}

fn rule<'a>(reader: &mut Reader<'a>) -> Result<(Text<'a>, Text<'a>), DecodeError> {
    Ok((Text::parse(reader, "name of a rule")?, Text::parse(reader, "value of a rule")?))
}

impl<'a> Players<'a> {
    /// The players. An error takes the place of the one where the datagram is cut off.
    pub fn iter(&self) -> impl Iterator<Item = Result<Player<'a>, DecodeError>> + use<'a> {
        let mut reader = Reader::new(self.0);
        let parse = if self.is_xmp() { Player::parse_xmp } else { Player::parse };
        core::iter::from_fn(move || {
            if reader.is_empty() {
                return None;
            }
            let player = parse(&mut reader);
            if player.is_err() {
                reader.take_rest();
            }
            Some(player)
        })
    }

    /// Whether the players are in the form of Unreal 2 XMP: all of them can be read in it.
    fn is_xmp(&self) -> bool {
        let mut reader = Reader::new(self.0);
        let is_whole = |parse: fn(&mut Reader<'a>) -> Result<Player<'a>, DecodeError>, mut reader: Reader<'a>| {
            while !reader.is_empty() {
                if parse(&mut reader).is_err() {
                    return false;
                }
            }
            true
        };
        reader.u32_le("player ID") == Ok(0)
            && is_whole(Player::parse_xmp, Reader::new(self.0))
            && !is_whole(Player::parse, Reader::new(self.0))
    }
}

impl<'a> Player<'a> {
    fn parse(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            id: reader.u32_le("ID of a player")?,
            name: Text::parse(reader, "name of a player")?,
            ping: reader.u32_le("ping of a player")?,
            score: reader.u32_le("score of a player")?.cast_signed(),
            stats_id: reader.u32_le("statistics of a player")?,
        })
    }

    fn parse_xmp(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        if reader.u32_le("number of a player")? != 0 {
            return Err(DecodeError::new("number of a player", DecodeErrorKind::Invalid));
        }
        let player = Self::parse(reader)?;
        for _ in 0..reader.u8("number of properties")? {
            rule(reader)?;
        }
        Ok(player)
    }

    /// The number of the team, if the game has teams.
    #[must_use]
    pub fn team(&self) -> Option<u8> {
        (0..).zip(TEAMS).find(|(_, bit)| self.stats_id & bit != 0).map(|(team, _)| team)
    }
}

impl<'a> Text<'a> {
    fn parse(reader: &mut Reader<'a>, field: &'static str) -> Result<Self, DecodeError> {
        let first = reader.u8(field)?;
        let is_wide = first & 0x80 != 0;
        let size = if is_wide { 2 } else { 1 };
        let mut length = usize::from(first & 0x3f);
        if first & 0x40 != 0 {
            // No text is so long that a third byte is needed.
            length |= usize::from(reader.u8(field)? & 0x7f) << 6;
        }
        let bytes = reader.bytes(length * size, field)?;
        // The end is missing in some texts.
        let text = match bytes {
            [text @ .., 0, 0] if is_wide => text,
            [text @ .., 0] if !is_wide => text,
            text => text,
        };
        Ok(Self { bytes: text, is_wide })
    }

    /// Whether there are no characters.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The text, safe to display, without colours.
    #[must_use]
    pub fn display(&self) -> String {
        if self.is_wide {
            let units = self.bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
            let units: Vec<u16> = without_colours(units, COLOUR.into()).collect();
            return crate::text::sanitize(&String::from_utf16_lossy(&units)).into_owned();
        }
        let bytes: Vec<u8> = without_colours(self.bytes.iter().copied(), COLOUR).collect();
        crate::text::display(&bytes).into_owned()
    }
}

fn without_colours<T: PartialEq>(mut text: impl Iterator<Item = T>, colour: T) -> impl Iterator<Item = T> {
    core::iter::from_fn(move || {
        loop {
            let next = text.next()?;
            if next != colour {
                return Some(next);
            }
            // Red, green and blue.
            text.nth(2)?;
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    /// Killing Floor.
    const INFO: &[u8] =
        b"\x80\0\0\0\0\0\0\0\0\0\x1f\x1e\0\0\0\0\0\0\x13\x1b\xfe@@Bacon \x1b@\xfe\xfeTown\0\x0eKF-BioticsLab\0\
        \x0bKFGameType\0\x02\0\0\0\x06\0\0\0\x01\0\0\0\x0a\0\0\0\0\0\0\0\x20\0\0\0\x044.0\0";

    fn info(datagram: &[u8]) -> Info<'_> {
        let Ok(Response::Info(info)) = Response::parse(datagram) else { panic!("not an info") };
        info
    }

    fn players(datagram: &[u8]) -> Vec<Result<Player<'_>, DecodeError>> {
        let Ok(Response::Players(players)) = Response::parse(datagram) else { panic!("not players") };
        players.iter().collect()
    }

    #[test]
    fn an_info_of_killing_floor() {
        let info = info(INFO);
        assert_eq!((info.id, info.port, info.query_port, info.address.is_empty()), (0, 7_711, 0, true));
        let texts = [info.name, info.map, info.game_type, info.skill.unwrap()].map(|text| text.display());
        assert_eq!(texts, ["Bacon Town", "KF-BioticsLab", "KFGameType", "4.0"]);
        assert_eq!((info.players, info.max_players, info.waves), (2, 6, Some((1, 10))));
    }

    #[test]
    fn the_end_of_an_info_depends_on_the_game() {
        let end = INFO.len() - 4 - 1 - 16;
        let tournament = [&INFO[..end], b"\0\0\0\0\x20\0\0\0\x02\x33\0"].concat();
        assert_eq!((info(&tournament).waves, info(&tournament).skill.unwrap().display()), (None, "3".to_string()));
        for other in [&INFO[..end], &INFO[..end + 8], &INFO[..end + 3]] {
            assert_eq!(info(other).skill, None);
        }
        for end in 0..end {
            assert!(Response::parse(&INFO[..end]).is_err(), "{end}");
        }
    }

    #[test]
    fn long_and_wide_texts() {
        let parse = |bytes: &[u8]| Text::parse(&mut Reader::new(bytes), "text").map(|text| text.display());
        let long = "x".repeat(70);
        assert_eq!(parse(&[&[0x40 | 7, 1], long.as_bytes(), &[0]].concat()), Ok(long.clone()));
        let wide: Vec<u8> = long.bytes().chain([0]).flat_map(|byte| [byte, 0]).collect();
        assert_eq!(parse(&[&[0xc0 | 7, 1], &wide[..]].concat()), Ok(long));
        assert_eq!(parse(b"\x88\x1b\0\x40\0\xf8\0\x40\0\x20\x04\x38\0\xac\x20\0\0"), Ok("\u{420}8\u{20ac}".into()));
        assert_eq!(parse(b"\x05Caf\xe9\0"), Ok("Café".into()));
        assert_eq!(parse(b"\x03abc"), Ok("abc".into()));
        assert_eq!(parse(b"\0"), Ok(String::new()));
        assert_eq!(parse(b"\x04\x1b@\xf8@"), Ok(String::new()));
        for cut in [&b""[..], b"\x40", b"\x04abc", b"\x82a\0b", b"\xff\xff"] {
            assert!(parse(cut).is_err());
        }
    }

    #[test]
    fn players_have_teams() {
        let line = |id: u32, name: &str, score: i32, stats: u32| {
            let name = [&[name.len() as u8 + 1], name.as_bytes(), &[0]].concat();
            [&id.to_le_bytes()[..], &name, &40_u32.to_le_bytes(), &score.to_le_bytes(), &stats.to_le_bytes()].concat()
        };
        let lines = [line(7, "Ada", -3, 1 << 29), line(8, "Grace", 5, 1 << 30 | 9), line(0, "Red", 1, 0)].concat();
        let datagram = [b"\x80\0\0\0\x02", &lines[..]].concat();
        let list: Vec<Player<'_>> = players(&datagram).into_iter().flatten().collect();
        let of = |player: &Player<'_>| (player.id, player.name.display(), player.score, player.team());
        let expected = [(7, "Ada".into(), -3, Some(0)), (8, "Grace".into(), 5, Some(1)), (0, "Red".into(), 1, None)];
        assert_eq!(list.iter().map(of).collect::<Vec<_>>(), expected);
        for end in 6..datagram.len() {
            let list = players(&datagram[..end]);
            let errors = list.iter().filter(|player| player.is_err()).count();
            assert!(errors <= 1 && list.len() - errors <= 2 && (list.len() == 1 || errors == 1 || list.len() == 2));
        }
    }

    #[test]
    fn players_of_xmp_have_properties() {
        let player = b"\0\0\0\0\x07\0\0\0\x04Ada\0\x28\0\0\0\x05\0\0\0\0\0\0\0\x01\x05Kind\0\x05Tech\0";
        let datagram = [b"\x80\0\0\0\x02", &player[..], player].concat();
        let list: Vec<_> = players(&datagram).into_iter().flatten().collect();
        assert_eq!(list.len(), 2);
        assert_eq!((list[1].id, list[1].name.display(), list[1].score), (7, "Ada".into(), 5));
    }

    #[test]
    fn requests_and_other_datagrams() {
        for request in [Request::Info, Request::Rules, Request::Players] {
            let mut out = Vec::new();
            request.emit(&mut out);
            assert_eq!(Request::parse(&out), Some(request));
        }
        for other in [&b""[..], b"\x79\0\0\0", b"\x79\0\0\0\x03", b"\x80\0\0\0\0\0", b"\xff\xff\xff\xff\x54"] {
            assert_eq!(Request::parse(other), None);
        }
        for (bytes, field) in [
            (&b""[..], "datagram"),
            (b"\x80\0\0", "version"),
            (b"\x90\0\0\0\0", "version"),
            (b"\x80\0\x01\0\0", "version"),
            (b"\x80\0\0\0", "type"),
            (b"\x80\0\0\0\x03", "type"),
        ] {
            assert_eq!(Response::parse(bytes).unwrap_err().field, field);
        }
    }
}
