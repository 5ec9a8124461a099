//! The common view of a server, regardless of the protocol.
//!
//! Every text in it is safe to display: decoded, and without control characters (L5, S3). The bytes as received are in the
//! protocol's own part, or in [`QueryReply::raw`](crate::QueryReply::raw).

mod extension;
mod lobby;

pub use extension::{Extension, ExtensionValue};
pub use lobby::LobbyInfo;

use rallypoint_wire::query::Protocol;
use std::collections::BTreeMap;

/// The description of a server. `None` means that the protocol does not have the field, or that it has not arrived.
///
/// Made from what a server or a lobby sent (`from_*`), or filled in by hand for a [`Responder`](crate::Responder).
///
/// ```
/// use rallypoint_query_proto::ServerInfo;
///
/// let listed = ServerInfo { name: Some("Bacon Town".into()), players: Some(3), ..ServerInfo::default() };
/// let mut own = ServerInfo { players: Some(4), map: Some("ctf_truefort".into()), ..ServerInfo::default() };
/// // The server's own description takes precedence over the lobby's.
/// own.fill_from(&listed);
/// assert_eq!(own.name.as_deref(), Some("Bacon Town"));
/// assert_eq!(own.players, Some(4));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerInfo {
    /// Name of the server.
    pub name: Option<String>,
    /// Description by its owner.
    pub description: Option<String>,
    /// Short name of the game, for programs and narrow columns: "gg2".
    pub game: Option<String>,
    /// Full name of the game: "Gang Garrison 2".
    pub game_name: Option<String>,
    /// Game mode: "Capture The Flag".
    pub mode: Option<String>,
    /// Current map.
    pub map: Option<String>,
    /// Version of the game or of the server software.
    pub version: Option<String>,
    /// Website of the game or of the server.
    pub website: Option<String>,
    /// Whether a password is required.
    pub password: Option<bool>,
    /// Number of human players.
    pub players: Option<u16>,
    /// Maximum number of human players.
    pub max_players: Option<u16>,
    /// Number of bots.
    pub bots: Option<u16>,
    /// Number of clients that are connected without playing.
    pub spectators: Option<u16>,
    /// Mods that the server runs.
    pub mods: Vec<Mod>,
    /// Free-form search tags.
    pub tags: Vec<String>,
    /// Teams, if the protocol describes them.
    pub teams: Vec<Team>,
    /// Connected players, if they were requested and received.
    pub player_list: Option<Vec<Player>>,
    /// Fields that only a lobby has.
    pub lobby: Option<LobbyInfo>,
    /// Settings of the game, by name.
    pub rules: BTreeMap<String, String>,
    /// Fields that only one protocol has.
    pub extensions: BTreeMap<Protocol, Extension>,
}

/// A connected player.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Player {
    /// Name of the player.
    pub name: String,
    /// Number of the team: [`ServerInfo::team_name`] has its name.
    pub team: Option<u8>,
    /// Rank within the team: the meaning is up to the game.
    pub rank: Option<u8>,
    /// Points of the player: the meaning is up to the game.
    pub score: Option<i32>,
    /// Time since the player joined, in seconds.
    pub duration_s: Option<u32>,
    /// Round-trip time between player and server in milliseconds, as reported by the server.
    pub ping_ms: Option<i32>,
    /// Platform of the player: the meaning is up to the game.
    pub platform: Option<i8>,
    /// Whether the player only watches.
    pub spectator: bool,
    /// Fields that only the server's protocol has.
    pub extension: Extension,
}

/// A team.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Team {
    /// Number that [`Player::team`] refers to.
    pub id: u8,
    /// Name of the team.
    pub name: String,
    /// Whether the team is ranked.
    pub ranked: bool,
    /// Colour: red, green, blue.
    pub color: [u8; 3],
}

/// A mod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mod {
    /// Identifier, for programs.
    pub id: Option<String>,
    /// Display name.
    pub name: Option<String>,
}

impl ServerInfo {
    /// The name of a team, if it is known.
    #[must_use]
    pub fn team_name(&self, id: u8) -> Option<&str> {
        self.teams.iter().find(|team| team.id == id).map(|team| &*team.name)
    }

    /// Fills unknown fields from `other`: a server's own description, for example, from the lobby's. A name
    /// whose letters this server's protocol cannot express ("??????") is replaced by the complete one, too.
    pub fn fill_from(&mut self, other: &Self) {
        fn fill<T: Clone>(mine: &mut Option<T>, other: &Option<T>) {
            if mine.is_none() {
                mine.clone_from(other);
            }
        }
        fn fill_text(mine: &mut Option<String>, other: &Option<String>) {
            if let (Some(text), Some(full)) = (&*mine, other)
                && is_degraded(text, full)
            {
                *mine = None;
            }
            fill(mine, other);
        }
        fn fill_list<T: Clone>(mine: &mut Vec<T>, other: &[T]) {
            if mine.is_empty() {
                mine.extend_from_slice(other);
            }
        }
        fill_text(&mut self.name, &other.name);
        fill_text(&mut self.description, &other.description);
        fill(&mut self.game, &other.game);
        fill_text(&mut self.game_name, &other.game_name);
        fill_text(&mut self.mode, &other.mode);
        fill_text(&mut self.map, &other.map);
        fill(&mut self.version, &other.version);
        fill(&mut self.website, &other.website);
        fill(&mut self.password, &other.password);
        fill(&mut self.players, &other.players);
        fill(&mut self.max_players, &other.max_players);
        fill(&mut self.bots, &other.bots);
        fill(&mut self.spectators, &other.spectators);
        fill_list(&mut self.mods, &other.mods);
        fill_list(&mut self.tags, &other.tags);
        fill_list(&mut self.teams, &other.teams);
        fill(&mut self.player_list, &other.player_list);
        fill(&mut self.lobby, &other.lobby);
        if self.rules.is_empty() {
            self.rules.clone_from(&other.rules);
        }
        for (protocol, extension) in &other.extensions {
            self.extensions.entry(*protocol).or_insert_with(|| extension.clone());
        }
    }
}

/// Whether a text is `full` with a question mark for every letter, or for every byte of a letter, outside of ASCII. It may be
/// cut off, because many protocols have short fields.
fn is_degraded(text: &str, full: &str) -> bool {
    let matches = |marks_per_letter: fn(char) -> usize| {
        let mut rest = text.chars();
        let mut has_marks = false;
        for letter in full.chars() {
            let marks = if letter.is_ascii() { 0 } else { marks_per_letter(letter) };
            has_marks |= marks > 0;
            let expected = if marks > 0 { '?' } else { letter };
            for _ in 0..marks.max(1) {
                match rest.next() {
                    Some(c) if c == expected => {}
                    Some(_) => return false,
                    None => return has_marks,
                }
            }
        }
        has_marks && rest.next().is_none()
    };
    text.contains('?') && (matches(|_| 1) || matches(char::len_utf8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fill_from_replaces_a_name_that_the_protocol_cannot_express() {
        for (own, listed, expected) in [
            ("??????", "東京サーバー", "東京サーバー"),
            ("??????????????????", "東京サーバー", "東京サーバー"),
            ("M?nchen", "München", "München"),
            ("Caf? des Art", "Café des Artistes", "Café des Artistes"),
            ("Who? Me", "Who? Me", "Who? Me"),
            ("Really?", "München", "Really?"),
            ("??????", "another server", "??????"),
        ] {
            let named = |name: &str| ServerInfo { name: Some(name.into()), ..ServerInfo::default() };
            let mut info = named(own);
            info.fill_from(&named(listed));
            assert_eq!(info.name.as_deref(), Some(expected), "{own} and {listed}");
        }
    }

    #[test]
    fn fill_from_keeps_known_fields() {
        let some = |text: &str| Some(text.to_owned());
        let mut own = ServerInfo { name: some("own"), players: Some(3), ..ServerInfo::default() };
        let listed =
            ServerInfo { name: some("listed"), map: some("dusk"), tags: vec!["new".into()], ..ServerInfo::default() };
        own.fill_from(&listed);
        assert_eq!((own.name, own.map, own.players), (some("own"), some("dusk"), Some(3)));
        assert_eq!(own.tags, ["new"]);
    }
}
