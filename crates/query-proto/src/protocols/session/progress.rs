//! Which parts of a session server's reply have arrived (S9, S10).

use crate::{MissingPart, exchange::Context};
use rallypoint_wire::{
    query::Detail,
    session::{Info, ServerDatagram},
};

/// The parts of a reply that have been received.
#[derive(Debug, Default)]
pub(crate) struct SessionProgress {
    /// One bit for each of the seven infos.
    infos: u8,
    /// Number of players according to the summary (info 1).
    expected_players: Option<u8>,
    /// Number of times the expected number has changed since.
    recounts: u8,
    /// One bit for each team.
    teams: [u64; 4],
    roster: Roster,
}

/// The infos, numbered as in the document (S9).
const INFOS: [&str; Info::PARTS] = [
    "info 1 (numbers and game)",
    "info 2 (name and description)",
    "info 3 (game name)",
    "info 4 (map)",
    "info 5 (mod ids)",
    "info 6 (mod names)",
    "info 7 (tags)",
];

const ALL_INFOS: u8 = (1 << Info::PARTS) - 1;

impl SessionProgress {
    /// Takes in a datagram. False if it adds nothing.
    pub fn accept(&mut self, datagram: &ServerDatagram<'_>, context: &Context<'_>) -> bool {
        match datagram {
            ServerDatagram::Info(info) => self.accept_info(info),
            ServerDatagram::Team(team) => {
                let word = usize::from(team.team / 64);
                let bit = 1 << (team.team % 64);
                let is_new = self.roster.requests > 0 && self.teams[word] & bit == 0;
                self.teams[word] |= bit * u64::from(is_new);
                is_new
            }
            ServerDatagram::Player(player) => {
                !self.has_all_players() && self.roster.accept(context.hash(player.username.as_bytes()))
            }
            _ => false,
        }
    }

    fn accept_info(&mut self, info: &Info<'_>) -> bool {
        let bit = 1 << info.part();
        let is_new = self.infos & bit == 0;
        self.infos |= bit;
        let Info::Summary(summary) = info else { return is_new };
        // Players may join or leave between two queries. The number of accepted recounts is limited by the number of
        // requests, so that a server cannot make the stored reply grow on its own.
        let is_recount = self.expected_players != Some(summary.players) && self.recounts < self.roster.requests;
        let is_accepted = is_new || is_recount;
        if is_accepted {
            self.expected_players = Some(summary.players);
            self.recounts += u8::from(!is_new);
        }
        is_accepted
    }

    /// Notes that the list of players has been requested (again).
    pub fn note_players_requested(&mut self) {
        self.roster.requests = self.roster.requests.saturating_add(1);
    }

    pub fn has_any_info(&self) -> bool {
        self.infos != 0
    }

    pub fn has_all_infos(&self) -> bool {
        self.infos == ALL_INFOS
    }

    /// Whether as many players were received as the summary announces (S10).
    pub fn has_all_players(&self) -> bool {
        self.expected_players.is_some_and(|expected| self.roster.players >= expected)
    }

    /// Whether it makes sense to request players: there are some, and not all have been received.
    pub fn lacks_players(&self) -> bool {
        self.expected_players.is_some() && !self.has_all_players()
    }

    /// The parts that a query of this detail requested and that have not arrived.
    pub fn missing(&self, detail: Detail) -> Vec<MissingPart> {
        if detail == Detail::Presence {
            return Vec::new();
        }
        let infos = INFOS.iter().enumerate().filter(|(part, _)| self.infos & (1 << part) == 0);
        let mut missing: Vec<_> = infos.map(|(_, name)| MissingPart::Part(name)).collect();
        if detail == Detail::Players && !self.has_all_players() {
            missing.push(MissingPart::Players {
                received: self.roster.players.into(),
                expected: self.expected_players.map(u16::from),
            });
        }
        missing
    }
}

/// Counts the players that were received.
///
/// Identical players are legal, so within one reply every packet counts (S10). But after several requests the same player
/// can arrive in several replies, and no packet identifies its reply. So of a name that was received m times after n
/// requests, at least m/n (rounded up) players are in every reply, and that is the number counted.
#[derive(Debug, Default)]
struct Roster {
    /// Number of requests sent.
    requests: u8,
    /// Number of players counted.
    players: u8,
    /// Sorted by hash. Never has more entries than players counted.
    names: Vec<NameCount>,
}

#[derive(Debug)]
struct NameCount {
    hash: u64,
    received: u16,
    counted: u16,
}

impl Roster {
    /// Takes in a player with this name. True if that is one more than known so far.
    fn accept(&mut self, hash: u64) -> bool {
        if self.requests == 0 {
            return false;
        }
        let index = match self.names.binary_search_by_key(&hash, |name| name.hash) {
            Ok(index) => index,
            Err(index) => {
                self.names.insert(index, NameCount { hash, received: 0, counted: 0 });
                index
            }
        };
        let name = &mut self.names[index];
        name.received = name.received.saturating_add(1);
        let is_more = name.received.div_ceil(self.requests.into()) > name.counted;
        name.counted += u16::from(is_more);
        self.players = self.players.saturating_add(is_more.into());
        is_more
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roster(requests: u8) -> Roster {
        Roster { requests, ..Roster::default() }
    }

    #[test]
    fn s10_identical_players_of_one_reply_all_count() {
        let mut roster = roster(1);
        assert!([7, 7, 8, 7].into_iter().all(|name| roster.accept(name)));
        assert_eq!(roster.players, 4);
    }

    #[test]
    fn s10_players_of_two_replies_count_once() {
        let mut roster = roster(2);
        assert_eq!([7, 8, 7, 8, 9].map(|name| roster.accept(name)), [true, true, false, false, true]);
        assert_eq!(roster.players, 3);
    }

    #[test]
    fn s10_a_twin_lost_in_the_first_reply_is_found_in_the_second() {
        let mut roster = roster(1);
        assert!(roster.accept(7));
        roster.requests = 2;
        assert_eq!([7, 7].map(|name| roster.accept(name)), [false, true]);
        assert_eq!(roster.players, 2);
    }

    #[test]
    fn s10_unrequested_players_do_not_count() {
        assert!(!roster(0).accept(7));
    }
}
