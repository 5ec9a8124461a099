//! What a server registered beside what it answers (W37).

use crate::{book::Row, text::fold};
use rallypoint_query_proto::ServerInfo;
use rallypoint_wire::bloodmasters::{ascii, strip_colours};

/// In what a server's answer is not what it registered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Differences {
    /// How many play.
    pub players: bool,
    /// How many can play.
    pub slots: bool,
    /// Its name.
    pub name: bool,
    /// The map.
    pub map: bool,
    /// Whether a password is needed.
    pub password: bool,
}

/// A registration is up to 30 seconds old, and people come and go: so many are no difference, and a quarter of all besides.
const COME_AND_GO: u16 = 2;

impl Differences {
    /// Compares what is in the list with what the server answered just now. What it did not say is no difference.
    #[must_use]
    pub fn between(row: &Row, info: &ServerInfo) -> Self {
        let some = |differs: Option<bool>| differs.unwrap_or(false);
        let texts = |listed: &str, told: &Option<String>| {
            some(told.as_deref().map(|told| !told.is_empty() && !listed.is_empty() && !is_same_text(listed, told)))
        };
        Self {
            players: some(info.players.map(|told| !is_about(row.players, row.bots, told))),
            // Document 003 has one byte for it.
            slots: some(info.max_players.map(|told| told != row.slots && !(told == 255 && row.slots > 255))),
            name: texts(&row.name, &info.name),
            map: texts(&row.map, &info.map),
            password: some(info.password.map(|told| told != row.password)),
        }
    }

    /// Their names, as in the API.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let Self { players, slots, name, map, password } = self;
        let all = [(players, "players"), (slots, "slots"), (name, "name"), (map, "map"), (password, "password")];
        all.into_iter().filter(|(differs, _)| *differs).map(|(_, name)| name)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_none(self) -> bool {
        self == Self::default()
    }
}

/// Whether so many players can be those of the list. Some games count bots among them.
fn is_about(players: u16, bots: u16, told: u16) -> bool {
    let is_near = |listed: u16| listed.abs_diff(told) <= COME_AND_GO + listed.max(told) / 4;
    // Document 003 has one byte for it.
    let told_is_most = |listed: u16| told == 255 && listed > 255;
    [players, players.saturating_add(bots)].into_iter().any(|listed| is_near(listed) || told_is_most(listed))
}

/// Whether two texts are the same, or one is the beginning of the other: answers have little room. Colours, letters that
/// an answer cannot have (B2, B12), upper and lower case make no difference.
fn is_same_text(listed: &str, told: &str) -> bool {
    let plain = |text: &str| {
        let text = String::from_utf8_lossy(&strip_colours(text.as_bytes())).into_owned();
        let text = String::from_utf8_lossy(&ascii(text.trim())).into_owned();
        fold(&text)
    };
    let (listed, told) = (plain(listed), plain(told));
    listed.starts_with(&told) || told.starts_with(&listed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w37_people_come_and_go_but_not_by_the_dozen() {
        for (players, bots, told) in
            [(0, 0, 2), (2, 0, 0), (12, 0, 9), (10, 0, 14), (4, 8, 12), (300, 0, 255), (0, 0, 0)]
        {
            assert!(is_about(players, bots, told), "{players} + {bots}, {told}");
        }
        for (players, bots, told) in [(0, 0, 4), (23, 0, 0), (12, 0, 6), (4, 8, 20), (40, 0, 255), (u16::MAX, 9, 0)] {
            assert!(!is_about(players, bots, told), "{players} + {bots}, {told}");
        }
    }

    #[test]
    fn w37_texts_are_the_same_in_spite_of_colours_case_letters_and_length() {
        for (listed, told) in [
            ("Bacon Town", "bacon town"),
            ("^1Bacon^7 Town ", "Bacon Town"),
            ("Bäcon Town", "B?con Town"),
            ("Bacon Town 24/7 with all the maps", "Bacon Town 24/7 with"),
            ("a", "a long name"),
        ] {
            assert!(is_same_text(listed, told), "{listed} {told}");
        }
        for (listed, told) in [("Bacon Town", "Tofu Town"), ("Bacon", "acon"), ("ä", "b")] {
            assert!(!is_same_text(listed, told), "{listed} {told}");
        }
    }
}
