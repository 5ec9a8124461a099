//! Comparison of a registration with the server's own reply (W37).

use crate::{table::ServerRecord, text::fold};
use rallypoint_query_proto::ServerInfo;
use rallypoint_wire::bloodmasters::{ascii, strip_colours};

/// Fields in which a server's reply contradicts its registration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Differences {
    /// Number of players.
    pub players: bool,
    /// Number of player slots.
    pub slots: bool,
    /// Name of the server.
    pub name: bool,
    /// Name of the map.
    pub map: bool,
    /// Whether joining needs a password.
    pub password: bool,
}

/// Tolerated difference in the number of players, in addition to a quarter of them: a registration is up to 30 seconds old, and
/// players come and go.
const PLAYER_TOLERANCE: u16 = 2;

impl Differences {
    /// Compares a record with the reply that the server just gave. A field that the reply does not contain is no difference.
    #[must_use]
    pub fn between(record: &ServerRecord, info: &ServerInfo) -> Self {
        let texts_differ = |listed: &str, replied: &Option<String>| {
            replied
                .as_deref()
                .is_some_and(|replied| !replied.is_empty() && !listed.is_empty() && !is_same_text(listed, replied))
        };
        Self {
            players: info.players.is_some_and(|replied| !is_about(record.players, record.bots, replied)),
            // Document 003 has one byte for it.
            slots: info
                .max_players
                .is_some_and(|replied| replied != record.slots && !(replied == 255 && record.slots > 255)),
            name: texts_differ(&record.name, &info.name),
            map: texts_differ(&record.map, &info.map),
            password: info.password.is_some_and(|replied| replied != record.password),
        }
    }

    /// The API's names of the fields that differ.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let Self { players, slots, name, map, password } = self;
        let all = [(players, "players"), (slots, "slots"), (name, "name"), (map, "map"), (password, "password")];
        all.into_iter().filter(|(differs, _)| *differs).map(|(_, name)| name)
    }

    /// The differences in the fields with these names. Other names are ignored.
    pub fn from_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut differences = Self::default();
        for name in names {
            match name {
                "players" => differences.players = true,
                "slots" => differences.slots = true,
                "name" => differences.name = true,
                "map" => differences.map = true,
                "password" => differences.password = true,
                _ => {}
            }
        }
        differences
    }

    /// Whether no field differs.
    #[must_use]
    pub fn is_none(self) -> bool {
        self == Self::default()
    }
}

/// Whether a number of players is plausible for a registration. Some games count bots as players.
fn is_about(players: u16, bots: u16, replied: u16) -> bool {
    let is_near = |listed: u16| listed.abs_diff(replied) <= PLAYER_TOLERANCE + listed.max(replied) / 4;
    // Document 003 has one byte for it.
    let is_clamped = |listed: u16| replied == 255 && listed > 255;
    [players, players.saturating_add(bots)].into_iter().any(|listed| is_near(listed) || is_clamped(listed))
}

/// Whether two texts are equal or one is the beginning of the other: replies have little room. Colours, characters that a
/// reply cannot contain (B2, B12) and case are ignored.
fn is_same_text(listed: &str, replied: &str) -> bool {
    let plain = |text: &str| {
        let text = String::from_utf8_lossy(&strip_colours(text.as_bytes())).into_owned();
        let text = String::from_utf8_lossy(&ascii(text.trim())).into_owned();
        fold(&text)
    };
    let listed = plain(listed);
    let replied = plain(replied);
    listed.starts_with(&replied) || replied.starts_with(&listed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w37_few_players_more_or_less_are_no_difference() {
        for (players, bots, replied) in
            [(0, 0, 2), (2, 0, 0), (12, 0, 9), (10, 0, 14), (4, 8, 12), (300, 0, 255), (0, 0, 0)]
        {
            assert!(is_about(players, bots, replied), "{players} + {bots}, {replied}");
        }
        for (players, bots, replied) in [(0, 0, 4), (23, 0, 0), (12, 0, 6), (4, 8, 20), (40, 0, 255), (u16::MAX, 9, 0)]
        {
            assert!(!is_about(players, bots, replied), "{players} + {bots}, {replied}");
        }
    }

    #[test]
    fn w37_texts_are_compared_without_colours_case_special_characters_and_endings() {
        for (listed, replied) in [
            ("Bacon Town", "bacon town"),
            ("^1Bacon^7 Town ", "Bacon Town"),
            ("Bäcon Town", "B?con Town"),
            ("Bacon Town 24/7 with all the maps", "Bacon Town 24/7 with"),
            ("a", "a long name"),
        ] {
            assert!(is_same_text(listed, replied), "{listed} {replied}");
        }
        for (listed, replied) in [("Bacon Town", "Tofu Town"), ("Bacon", "acon"), ("ä", "b")] {
            assert!(!is_same_text(listed, replied), "{listed} {replied}");
        }
    }
}
