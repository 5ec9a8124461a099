//! The queries of BZFlag, over TCP at the port of the game.
//!
//! Numbers are big-endian. After a greeting, messages are preceded by the length of what follows their code:
//!
//! ```text
//! client   "BZFLAG\r\n\r\n"
//! server   "BZFS" VERSION(4) PLAYER(1)                 player ff: there is no room for a connection
//! client   0000 "qg"   0000 "qp"                       the game; the players
//! server   002c "qg" STYLE(2) OPTIONS(2) SLOTS(2) SHOTS(2) SIZE OF EACH TEAM(2)*6 SLOTS OF EACH TEAM(2)*6
//!               WINS TO SHAKE(2) TIME TO SHAKE(2) PLAYER LIMIT(2) TEAM LIMIT(2) TIME LIMIT(2) ELAPSED(2)
//!          0004 "qp" TEAMS(2) PLAYERS(2)
//!          0029 "tu" COUNT(1) (TEAM(2) SIZE(2) WINS(2) LOSSES(2))...
//!          00ab "ap" ID(1) KIND(2) TEAM(2) WINS(2) LOSSES(2) TEAM KILLS(2) NAME(32) MOTTO(128)     one per player
//! ```
//!
//! ```
//! use rallypoint_wire::query::bzflag::{Message, frame};
//!
//! let received = b"\x00\x04qp\x00\x08\x00\x03more";
//! let length = frame(received)?.expect("a whole message");
//! assert_eq!(Message::parse(&received[..length])?, Message::Count { players: 3 });
//! # Ok::<(), rallypoint_wire::DecodeError>(())
//! ```

use crate::{DecodeError, DecodeErrorKind, Reader};

/// Name of the query protocol in URLs and in `x-query`.
pub const SCHEME: &str = "bzflag";

/// Title of the query protocol for people.
pub const TITLE: &str = "BZFlag";

/// Default TCP port of a server.
pub const PORT: u16 = 5_154;

/// What a client sends first.
pub const GREETING: &[u8] = b"BZFLAG\r\n\r\n";

/// The query for the game.
pub const QUERY_GAME: &[u8] = b"\0\0qg";

/// The query for teams and players.
pub const QUERY_PLAYERS: &[u8] = b"\0\0qp";

/// Length of a server's greeting, in bytes.
pub const GREETING_LENGTH: usize = 9;

/// Maximum length of a message, in bytes: no message of a query is half as long.
pub const MAX_MESSAGE: usize = 2_048;

/// Number of the team of those who only watch.
pub const OBSERVERS: u16 = 5;

/// Names of the teams, by number.
pub const TEAMS: [&str; 8] = ["Rogue", "Red", "Green", "Blue", "Purple", "Observer", "Rabbit", "Hunter"];

/// Names of the game styles, by number.
pub const STYLES: [&str; 4] = ["Free For All", "Capture The Flag", "Open Free For All", "Rabbit Chase"];

/// Names of options, by bit.
pub const OPTIONS: [(&str, u16); 8] = [
    ("flags", 0x0002),
    ("jumping", 0x0008),
    ("inertia", 0x0010),
    ("ricochet", 0x0020),
    ("shaking", 0x0040),
    ("antidote", 0x0080),
    ("handicap", 0x0100),
    ("no_team_kills", 0x0400),
];

/// The greeting of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// Version of the protocol, in digits.
    pub version: [u8; 4],
    /// Whether there is room for this connection.
    pub is_welcome: bool,
}

/// A message of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// The game.
    Game(Game),
    /// How many players follow.
    Count {
        /// Number of messages with a player.
        players: u16,
    },
    /// The scores of the teams.
    Teams(Teams<'a>),
    /// A player.
    Player(PlayerEntry<'a>),
    /// A message that is not part of a reply.
    Other,
}

/// The game.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Game {
    /// Index into [`STYLES`].
    pub style: u16,
    /// Bits of [`OPTIONS`].
    pub options: u16,
    /// Maximum number of players.
    pub max_players: u16,
    /// Maximum number of shots of a player at a time.
    pub max_shots: u16,
    /// Number of players of the first six teams.
    pub sizes: [u16; 6],
    /// Maximum number of players of the first six teams.
    pub max_sizes: [u16; 6],
    /// Wins that shake off a bad flag.
    pub shake_wins: u16,
    /// Time that shakes off a bad flag, in tenths of a second.
    pub shake_timeout: u16,
    /// Score of a player that ends the game, or 0.
    pub max_player_score: u16,
    /// Score of a team that ends the game, or 0.
    pub max_team_score: u16,
    /// Length of the game in tenths of a second, or 0.
    pub max_time: u16,
    /// Time since the beginning of the game, in tenths of a second.
    pub elapsed: u16,
}

/// The scores of the teams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Teams<'a>(&'a [u8]);

/// The score of a team.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TeamEntry {
    /// Number of the team.
    pub team: u16,
    /// Number of players.
    pub size: u16,
    /// Wins.
    pub wins: u16,
    /// Losses.
    pub losses: u16,
}

/// A player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayerEntry<'a> {
    /// Number of the player.
    pub id: u8,
    /// 0 for a person.
    pub kind: u16,
    /// Number of the team.
    pub team: u16,
    /// Wins.
    pub wins: u16,
    /// Losses.
    pub losses: u16,
    /// Number of team mates killed.
    pub team_kills: u16,
    /// The name.
    pub name: &'a [u8],
}

impl Greeting {
    /// Parses a greeting.
    ///
    /// # Errors
    /// If it is not one of a BZFlag server.
    pub fn parse(greeting: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(greeting);
        if reader.array("greeting")? != b"BZFS" {
            return Err(DecodeError::new("greeting", DecodeErrorKind::Mismatch));
        }
        let version = *reader.array("version")?;
        if !version.iter().all(u8::is_ascii_alphanumeric) {
            return Err(DecodeError::new("version", DecodeErrorKind::Invalid));
        }
        let is_welcome = reader.u8("number of the player")? != 0xff;
        reader.finish("greeting")?;
        Ok(Self { version, is_welcome })
    }
}

/// The length of the first message after the greeting, with its head; `None` if it is not complete.
///
/// # Errors
/// If it is longer than any message.
pub fn frame(received: &[u8]) -> Result<Option<usize>, DecodeError> {
    let Some((length, _)) = received.split_first_chunk() else { return Ok(None) };
    let total = 4 + usize::from(u16::from_be_bytes(*length));
    if total > MAX_MESSAGE {
        return Err(DecodeError::new("message", DecodeErrorKind::TooLong));
    }
    Ok((received.len() >= total).then_some(total))
}

impl<'a> Message<'a> {
    /// Parses a message with its head.
    ///
    /// # Errors
    /// If it is shorter than its code says.
    pub fn parse(message: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(message);
        reader.u16_be("length of the message")?;
        match reader.array("code of the message")? {
            b"qg" => Game::parse(reader).map(Self::Game),
            b"qp" => {
                reader.u16_be("number of teams")?;
                Ok(Self::Count { players: reader.u16_be("number of players")? })
            }
            b"tu" => {
                let count = reader.u8("number of teams")?;
                Ok(Self::Teams(Teams(reader.bytes(8 * usize::from(count), "teams")?)))
            }
            b"ap" => PlayerEntry::parse(reader).map(Self::Player),
            _ => Ok(Self::Other),
        }
    }
}

impl Game {
    fn parse(mut reader: Reader<'_>) -> Result<Self, DecodeError> {
        let mut game = Self {
            style: reader.u16_be("style")?,
            options: reader.u16_be("options")?,
            max_players: reader.u16_be("number of slots")?,
            max_shots: reader.u16_be("number of shots")?,
            ..Self::default()
        };
        for size in game.sizes.iter_mut().chain(&mut game.max_sizes) {
            *size = reader.u16_be("size of a team")?;
        }
        game.shake_wins = reader.u16_be("wins to shake")?;
        game.shake_timeout = reader.u16_be("time to shake")?;
        game.max_player_score = reader.u16_be("limit of a player")?;
        game.max_team_score = reader.u16_be("limit of a team")?;
        game.max_time = reader.u16_be("limit of time")?;
        game.elapsed = reader.u16_be("elapsed time")?;
        Ok(game)
    }
}

impl Teams<'_> {
    /// The teams, in order.
    pub fn iter(&self) -> impl Iterator<Item = TeamEntry> {
        self.0.as_chunks::<8>().0.iter().map(|&[a, b, c, d, e, f, g, h]| TeamEntry {
            team: u16::from_be_bytes([a, b]),
            size: u16::from_be_bytes([c, d]),
            wins: u16::from_be_bytes([e, f]),
            losses: u16::from_be_bytes([g, h]),
        })
    }
}

impl<'a> PlayerEntry<'a> {
    fn parse(mut reader: Reader<'a>) -> Result<Self, DecodeError> {
        let id = reader.u8("number of the player")?;
        let kind = reader.u16_be("kind of the player")?;
        let team = reader.u16_be("team of the player")?;
        let wins = reader.u16_be("wins")?;
        let losses = reader.u16_be("losses")?;
        let team_kills = reader.u16_be("team kills")?;
        let name = reader.bytes(32, "name of the player")?;
        reader.bytes(128, "motto of the player")?;
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        Ok(Self { id, kind, team, wins, losses, team_kills, name })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn message(code: &[u8; 2], body: &[u8]) -> Vec<u8> {
        [&(body.len() as u16).to_be_bytes(), &code[..], body].concat()
    }

    #[test]
    fn a_greeting_tells_the_version_and_whether_there_is_room() {
        assert_eq!(Greeting::parse(b"BZFS0221\x02"), Ok(Greeting { version: *b"0221", is_welcome: true }));
        assert_eq!(Greeting::parse(b"BZFS0221\xff"), Ok(Greeting { version: *b"0221", is_welcome: false }));
        for wrong in [&b"BZFS0221"[..], b"BZFS02\x1b1\x02", b"HTTP/1.1 ", b"", b"BZFS0221\x02x"] {
            assert!(Greeting::parse(wrong).is_err());
        }
    }

    #[test]
    fn messages_are_separated_by_their_length() {
        assert_eq!(frame(b"\x00"), Ok(None));
        assert_eq!(frame(b"\x00\x04qp\x00\x08\x00"), Ok(None));
        assert_eq!(frame(b"\x00\x00qgmore"), Ok(Some(4)));
        assert_eq!(frame(b"\x08\x00").unwrap_err().kind, DecodeErrorKind::TooLong);
    }

    #[test]
    fn every_message_has_its_fields() {
        let numbers: Vec<u8> = (1..=22_u16).flat_map(u16::to_be_bytes).collect();
        let Ok(Message::Game(game)) = Message::parse(&message(b"qg", &numbers)) else { panic!("no game") };
        assert_eq!((game.style, game.options, game.max_players, game.max_shots), (1, 2, 3, 4));
        assert_eq!((game.sizes, game.max_sizes), ([5, 6, 7, 8, 9, 10], [11, 12, 13, 14, 15, 16]));
        assert_eq!((game.shake_wins, game.max_team_score, game.elapsed), (17, 20, 22));
        let teams = message(b"tu", b"\x01\0\x02\0\x03\0\x04\0\x05");
        let Ok(Message::Teams(teams)) = Message::parse(&teams) else { panic!("no teams") };
        assert!(teams.iter().eq([TeamEntry { team: 2, size: 3, wins: 4, losses: 5 }]));
        let body = [&b"\x07\0\x01\0\x02\0\x03\0\x04\0\x05Ada\0x"[..], &[0; 27 + 128]].concat();
        let expected = PlayerEntry { id: 7, kind: 1, team: 2, wins: 3, losses: 4, team_kills: 5, name: b"Ada" };
        assert_eq!(Message::parse(&message(b"ap", &body)), Ok(Message::Player(expected)));
        assert_eq!(Message::parse(&message(b"gt", b"12345678")), Ok(Message::Other));
        for (code, body) in [(b"qg", &numbers[..]), (b"tu", b"\x01\0\x02\0\x03\0\x04\0\x05"), (b"ap", &body)] {
            for end in 0..body.len() {
                assert!(Message::parse(&message(code, &body[..end])).is_err(), "{end}");
            }
        }
    }
}
