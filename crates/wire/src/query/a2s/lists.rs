//! The players and the rules of a server.

use super::{WHOLE, emit_text};
use crate::{DecodeError, Reader, Writer};
use alloc::vec::Vec;

/// The players of a server.
///
/// ```text
/// ff ff ff ff 44 COUNT {INDEX name 00 SCORE(4) SECONDS(4)}... [{DEATHS(4) MONEY(4)}...]
///                                                             only The Ship
/// ```
///
/// `COUNT` is modulo 256, or at most 255, if there are more. Many servers list fewer players than they announce in their info.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Players<'a> {
    /// Number of players as announced.
    pub count: u8,
    rest: &'a [u8],
}

/// A player.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Player<'a> {
    /// Name; empty while the player is connecting.
    pub name: &'a [u8],
    /// Points.
    pub score: i32,
    /// Seconds since the player joined. Bots may have a negative number, and hostile servers send anything.
    pub duration: f32,
    /// Fields of The Ship.
    pub ship: Option<ShipPlayer>,
}

/// Fields of a player of The Ship.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShipPlayer {
    /// Number of deaths.
    pub deaths: i32,
    /// Money.
    pub money: i32,
}

/// The settings of a server.
///
/// ```text
/// ff ff ff ff 45 COUNT(2) {name 00 value 00}...
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules<'a> {
    /// Number of rules as announced.
    pub count: u16,
    rest: &'a [u8],
}

/// Size of the further fields of a player of The Ship.
const SHIP_PLAYER: usize = 8;

impl<'a> Players<'a> {
    pub(super) fn parse(mut reader: Reader<'a>) -> Result<Self, DecodeError> {
        let count = reader.u8("number of players")?;
        Ok(Self { count, rest: reader.take_rest() })
    }

    /// The players, and where the list is cut off. Whether the game is The Ship decides what follows the announced number of
    /// players: their further fields, or more players. If it is not known, what follows is ignored.
    #[must_use]
    pub fn list(&self, is_the_ship: Option<bool>) -> (Vec<Player<'a>>, Option<DecodeError>) {
        let mut reader = Reader::new(self.rest);
        let mut players = Vec::new();
        for _ in 0..self.count {
            match Player::parse(&mut reader) {
                Ok(player) => players.push(player),
                Err(error) => return (players, Some(error)),
            }
        }
        let mut cut = None;
        match is_the_ship {
            Some(true) => cut = parse_ship(&mut players, &mut reader).err(),
            Some(false) => players.extend(self.beyond_255(reader)),
            None => {}
        }
        (players, cut)
    }

    pub(super) fn is_exact(&self) -> bool {
        let mut reader = Reader::new(self.rest);
        let is_complete = (0..self.count).all(|_| Player::parse(&mut reader).is_ok());
        is_complete && (reader.is_empty() || reader.rest().len() == SHIP_PLAYER * usize::from(self.count))
    }

    /// Players beyond the announced number, which has one byte. None if the rest does not consist of players.
    fn beyond_255(&self, mut reader: Reader<'a>) -> Vec<Player<'a>> {
        let mut players = Vec::new();
        while !reader.is_empty() {
            let Ok(player) = Player::parse(&mut reader) else { return Vec::new() };
            players.push(player);
        }
        if players.len().is_multiple_of(256) || self.count == u8::MAX { players } else { Vec::new() }
    }
}

fn parse_ship(players: &mut [Player<'_>], reader: &mut Reader<'_>) -> Result<(), DecodeError> {
    for player in players {
        let deaths = reader.u32_le("deaths of a player")?.cast_signed();
        let money = reader.u32_le("money of a player")?.cast_signed();
        player.ship = Some(ShipPlayer { deaths, money });
    }
    Ok(())
}

impl<'a> Player<'a> {
    fn parse(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        // The index, which is 0 for every player of most games.
        reader.u8("index of a player")?;
        let name = reader.until(0, "name of a player")?;
        let score = reader.u32_le("score of a player")?.cast_signed();
        let duration = f32::from_le_bytes(*reader.array("duration of a player")?);
        Ok(Self { name, score, duration, ship: None })
    }
}

impl<'a> Rules<'a> {
    pub(super) fn parse(mut reader: Reader<'a>) -> Result<Self, DecodeError> {
        let count = reader.u16_le("number of rules")?;
        Ok(Self { count, rest: reader.take_rest() })
    }

    pub(super) fn is_exact(&self) -> bool {
        let ends = self.rest.iter().filter(|byte| **byte == 0).count();
        ends == 2 * usize::from(self.count) && self.rest.last().is_none_or(|last| *last == 0)
    }

    /// Names and values of as many rules as announced. An error takes the place of the rule where the list is cut off.
    pub fn iter(&self) -> impl Iterator<Item = Result<(&'a [u8], &'a [u8]), DecodeError>> + use<'a> {
        let mut reader = Reader::new(self.rest);
        let mut left = self.count;
        core::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            let rule = (|| Ok((reader.until(0, "name of a rule")?, reader.until(0, "value of a rule")?)))();
            if rule.is_err() {
                left = 0;
            }
            Some(rule)
        })
    }
}

/// Appends the beginning of a list of players.
pub fn emit_players(count: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(&WHOLE);
    out.extend_from_slice(&[b'D', count]);
}

/// Appends a player to a list.
pub fn emit_player(index: u8, name: &str, score: i32, duration: f32, out: &mut Vec<u8>) {
    out.push(index);
    emit_text(name, out);
    out.extend_from_slice(&score.to_le_bytes());
    out.extend_from_slice(&duration.to_le_bytes());
}

/// Appends the beginning of a list of rules.
pub fn emit_rules(count: u16, out: &mut Vec<u8>) {
    let mut writer = Writer::new(out);
    writer.bytes(&WHOLE);
    writer.u8(b'E');
    writer.u16_le(count);
}

/// Appends a rule to a list.
pub fn emit_rule(name: &str, value: &str, out: &mut Vec<u8>) {
    emit_text(name, out);
    emit_text(value, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DecodeErrorKind;
    use crate::query::a2s::Response;
    use alloc::vec;

    /// An example of Valve's.
    const PLAYERS: &[u8] =
        b"\xff\xff\xff\xffD\x02\x01[D]---->T.N.W<----\0\x0e\0\0\0\xb4\x97\0\x44\x02Killer !!!\0\x05\0\0\0\
        \x69\x24\xd9\x43";

    fn players(message: &[u8], is_the_ship: Option<bool>) -> (Vec<Player<'_>>, Option<DecodeError>) {
        let Ok(Response::Players(players)) = Response::parse(message) else { panic!("not players") };
        players.list(is_the_ship)
    }

    type Rule<'a> = Result<(&'a [u8], &'a [u8]), DecodeErrorKind>;

    fn rules(message: &[u8]) -> Vec<Rule<'_>> {
        let Ok(Response::Rules(rules)) = Response::parse(message) else { panic!("not rules") };
        rules.iter().map(|rule| rule.map_err(|error| error.kind)).collect()
    }

    #[test]
    fn players_have_scores_and_durations() {
        let player = |name, score, duration| Player { name, score, duration, ship: None };
        let expected = vec![player(b"[D]---->T.N.W<----", 14, 514.370_36), player(b"Killer !!!", 5, 434.284_45)];
        for is_the_ship in [None, Some(false)] {
            assert_eq!(players(PLAYERS, is_the_ship), (expected.clone(), None));
        }
    }

    #[test]
    fn the_ship_adds_deaths_and_money_at_the_end() {
        let further = [1, 0, 0, 0, 0xe8, 3, 0, 0, 2, 0, 0, 0, 0xff, 0xff, 0xff, 0xff];
        let message = [PLAYERS, &further].concat();
        let ship = |players: Vec<Player<'_>>| players.iter().map(|player| player.ship).collect::<Vec<_>>();
        let (list, cut) = players(&message, Some(true));
        let expected = [ShipPlayer { deaths: 1, money: 1000 }, ShipPlayer { deaths: 2, money: -1 }];
        assert_eq!((ship(list), cut), (expected.map(Some).to_vec(), None));
        for other in [None, Some(false)] {
            assert_eq!(players(&message, other), players(PLAYERS, None), "no third player");
        }
        let (list, cut) = players(&message[..message.len() - 1], Some(true));
        assert_eq!((list.len(), cut.unwrap().field), (2, "money of a player"));
    }

    #[test]
    fn more_than_255_players_are_listed() {
        for count in [44, 255] {
            let mut message = Vec::new();
            emit_players(count, &mut message);
            for index in 0..300 {
                emit_player(0, "p", -index, 1.0, &mut message);
            }
            let (list, cut) = players(&message, Some(false));
            assert_eq!((list.len(), list[299].score, cut), (300, -299, None));
        }
    }

    #[test]
    fn bytes_after_the_announced_players_are_no_players() {
        let mut message = PLAYERS.to_vec();
        emit_player(0, "third", 1, 1.0, &mut message);
        assert_eq!(players(&message, Some(false)), players(PLAYERS, None));
    }

    #[test]
    fn a_list_that_is_cut_off_says_so() {
        for end in 6..PLAYERS.len() {
            let (list, cut) = players(&PLAYERS[..end], Some(false));
            assert!(cut.is_some(), "{end}");
            assert_eq!(list, players(PLAYERS, None).0[..usize::from(end >= 34)], "{end}");
        }
        let message = b"\xff\xff\xff\xffE\x02\0a\x001\0b\x002\0";
        let [a, b] = [Ok((&b"a"[..], &b"1"[..])), Ok((&b"b"[..], &b"2"[..]))];
        assert_eq!(rules(message), [a, b]);
        for end in 7..message.len() {
            let cut = Err(DecodeErrorKind::Truncated);
            assert_eq!(rules(&message[..end]), if end >= 11 { vec![a, cut] } else { vec![cut] }, "{end}");
        }
    }

    #[test]
    fn only_the_announced_rules_count() {
        assert_eq!(rules(b"\xff\xff\xff\xffE\x01\0a\x001\0b\0\0"), [Ok((&b"a"[..], &b"1"[..]))]);
        assert_eq!(rules(b"\xff\xff\xff\xffE\0\0"), []);
    }

    #[test]
    fn texts_cannot_break_out_of_their_place() {
        let mut message = Vec::new();
        emit_rules(1, &mut message);
        emit_rule("a\0b", "c\0\0d", &mut message);
        assert_eq!(rules(&message), [Ok((&b"ab"[..], &b"cd"[..]))]);
    }
}
