//! The datagrams of a session server's answer, as they come (S9, S10).

use crate::{Missing, Raw, secret::TableKey};
use rallypoint_wire::session::{Info, ServerDatagram};

/// What has come of an answer.
#[derive(Debug, Default)]
pub(super) struct Collected {
    /// One bit for each of the seven infos.
    infos: u8,
    /// How many players info 1 said there are.
    players: Option<u8>,
    /// How often that number has changed since.
    recounted: u8,
    /// One bit for each team.
    teams: [u64; 4],
    roster: Roster,
    pub raw: Raw,
}

const ALL_INFOS: u8 = (1 << Info::PARTS) - 1;

impl Collected {
    /// Takes a datagram. False if it is of no use.
    pub fn take(&mut self, bytes: &[u8], datagram: &ServerDatagram<'_>, key: TableKey) -> bool {
        let is_useful = match datagram {
            ServerDatagram::Info(info) => self.take_info(info),
            ServerDatagram::Team(team) => {
                let (word, bit) = (usize::from(team.team / 64), 1 << (team.team % 64));
                let is_new = self.roster.asked > 0 && self.teams[word] & bit == 0;
                self.teams[word] |= bit * u64::from(is_new);
                is_new
            }
            ServerDatagram::Player(player) => {
                !self.has_players() && self.roster.take(key.hash(player.username.as_bytes()))
            }
            _ => false,
        };
        if is_useful {
            self.raw.push(bytes);
        }
        is_useful
    }

    fn take_info(&mut self, info: &Info<'_>) -> bool {
        let bit = 1 << info.part();
        let is_new = self.infos & bit == 0;
        self.infos |= bit;
        let Info::Summary(summary) = info else { return is_new };
        // Somebody came or went between two questions. A server can't make this grow without being asked.
        let is_useful = is_new || (self.players != Some(summary.players) && self.recounted < self.roster.asked);
        if is_useful {
            self.players = Some(summary.players);
            self.recounted += u8::from(!is_new);
        }
        is_useful
    }

    /// Who plays there is asked (again).
    pub fn asked_players(&mut self) {
        self.roster.asked = self.roster.asked.saturating_add(1);
    }

    pub fn has_infos(&self) -> bool {
        self.infos == ALL_INFOS
    }

    /// Whether as many players were told as info 1 said there are (S10).
    pub fn has_players(&self) -> bool {
        self.players.is_some_and(|players| self.roster.told >= players)
    }

    /// Whether asking for players makes sense: there are some, and not all were told.
    pub fn lacks_players(&self) -> bool {
        self.players.is_some() && !self.has_players()
    }

    pub fn missing(&self, with_players: bool) -> Vec<Missing> {
        let infos = (0..Info::PARTS as u8).filter(|part| self.infos & (1 << part) == 0);
        let mut missing: Vec<_> = infos.map(|part| Missing::Info(part + 1)).collect();
        if with_players && !self.has_players() {
            missing.push(Missing::Players { told: self.roster.told, of: self.players });
        }
        missing
    }
}

/// Which players were told.
///
/// Identical players are legal, so within one answer every packet counts (S10). But when it was asked several times, the
/// same player can come in several answers, and nothing tells which packet belongs to which. So of a name that came
/// m times after n questions, at least m/n (rounded up) players are in every answer, and as many are counted.
#[derive(Debug, Default)]
struct Roster {
    /// How often it was asked.
    asked: u8,
    /// How many players are counted.
    told: u8,
    /// Sorted by name. It never has more entries than players are counted.
    names: Vec<Name>,
}

#[derive(Debug)]
struct Name {
    hash: u64,
    came: u16,
    counted: u16,
}

impl Roster {
    /// A player of this name came. Whether that is one more than were known.
    fn take(&mut self, hash: u64) -> bool {
        if self.asked == 0 {
            return false;
        }
        let at = match self.names.binary_search_by_key(&hash, |name| name.hash) {
            Ok(at) => at,
            Err(at) => {
                self.names.insert(at, Name { hash, came: 0, counted: 0 });
                at
            }
        };
        let name = &mut self.names[at];
        name.came = name.came.saturating_add(1);
        let is_more = name.came.div_ceil(self.asked.into()) > name.counted;
        name.counted += u16::from(is_more);
        self.told = self.told.saturating_add(is_more.into());
        is_more
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roster(asked: u8) -> Roster {
        Roster { asked, ..Roster::default() }
    }

    #[test]
    fn s10_identical_players_of_one_answer_all_count() {
        let mut roster = roster(1);
        assert!([7, 7, 8, 7].into_iter().all(|name| roster.take(name)));
        assert_eq!(roster.told, 4);
    }

    #[test]
    fn s10_players_of_two_answers_count_once() {
        let mut roster = roster(2);
        assert_eq!([7, 8, 7, 8, 9].map(|name| roster.take(name)), [true, true, false, false, true]);
        assert_eq!(roster.told, 3);
    }

    #[test]
    fn s10_a_twin_is_found_again_in_the_second_answer() {
        let mut roster = roster(1);
        assert!(roster.take(7));
        roster.asked = 2;
        assert_eq!([7, 7].map(|name| roster.take(name)), [false, true]);
        assert_eq!(roster.told, 2);
    }

    #[test]
    fn s10_what_was_not_asked_does_not_count() {
        assert!(!roster(0).take(7));
    }
}
