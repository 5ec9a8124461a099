//! The common view of a server, whatever protocol told it.
//!
//! Every text in it is fit to be shown: decoded and made harmless (L5, S3). The bytes as they came are in the protocol's
//! own part, or in [`Answer::raw`](crate::Answer::raw).

mod bloodmasters;
mod lobby;
mod session;

pub use bloodmasters::BloodmastersInfo;
pub use lobby::LobbyInfo;
pub use session::SessionInfo;

/// What is known of a server. `None` is what its protocol does not tell, or what has not arrived.
///
/// It is made from what a server or a lobby said (`from_*`), or filled by hand for a
/// [`Responder`](crate::Responder), which answers with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerInfo {
    /// Its name.
    pub name: Option<String>,
    /// What it says about itself.
    pub description: Option<String>,
    /// The game, for programs and where there is little room: "gg2".
    pub game: Option<String>,
    /// The game, for people: "Gang Garrison 2".
    pub game_name: Option<String>,
    /// What is played: "Capture The Flag".
    pub mode: Option<String>,
    /// Where it is played.
    pub map: Option<String>,
    /// The version of the game, or what the server runs.
    pub version: Option<String>,
    /// Where to read more.
    pub website: Option<String>,
    /// Whether a password is needed.
    pub password: Option<bool>,
    /// How many people play.
    pub players: Option<u16>,
    /// How many people can play.
    pub max_players: Option<u16>,
    /// How many bots play.
    pub bots: Option<u16>,
    /// How many are connected and only watch.
    pub spectators: Option<u16>,
    /// The mods it runs.
    pub mods: Vec<Mod>,
    /// Whatever else helps to find it.
    pub tags: Vec<String>,
    /// The teams, as far as they are told.
    pub teams: Vec<Team>,
    /// Who is connected, if that was asked and told.
    pub player_list: Option<Vec<Player>>,
    /// What only a lobby tells.
    pub lobby: Option<LobbyInfo>,
    /// What only a Bloodmasters server tells.
    pub bloodmasters: Option<BloodmastersInfo>,
    /// What only a server of the session protocol tells.
    pub session: Option<SessionInfo>,
}

/// One who is connected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Player {
    /// Who it is.
    pub name: String,
    /// The team, by its number: [`ServerInfo::team_name`] has its name.
    pub team: Option<u8>,
    /// The rank within the team: the game's own number.
    pub rank: Option<u8>,
    /// How far from the server, in milliseconds, as the server tells it.
    pub ping_ms: Option<i32>,
    /// What is played on: the game's own number.
    pub platform: Option<i8>,
    /// Whether they only watch.
    pub spectator: bool,
}

/// A team.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Team {
    /// What its players name it by.
    pub id: u8,
    /// Its name.
    pub name: String,
    /// Whether it is ranked.
    pub ranked: bool,
    /// Its colour: red, green, blue.
    pub color: [u8; 3],
}

/// A mod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mod {
    /// For programs.
    pub id: Option<String>,
    /// For people.
    pub name: Option<String>,
}

impl ServerInfo {
    /// The name of a team, if it has one.
    #[must_use]
    pub fn team_name(&self, id: u8) -> Option<&str> {
        self.teams.iter().find(|team| team.id == id).map(|team| &*team.name)
    }

    /// Takes over from `other` what is not known here: what a lobby said, for example, beside what the server itself said.
    pub fn fill_from(&mut self, other: &Self) {
        fn fill<T: Clone>(mine: &mut Option<T>, other: &Option<T>) {
            if mine.is_none() {
                mine.clone_from(other);
            }
        }
        fn fill_list<T: Clone>(mine: &mut Vec<T>, other: &[T]) {
            if mine.is_empty() {
                mine.extend_from_slice(other);
            }
        }
        fill(&mut self.name, &other.name);
        fill(&mut self.description, &other.description);
        fill(&mut self.game, &other.game);
        fill(&mut self.game_name, &other.game_name);
        fill(&mut self.mode, &other.mode);
        fill(&mut self.map, &other.map);
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
        fill(&mut self.bloodmasters, &other.bloodmasters);
        fill(&mut self.session, &other.session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_not_replaced() {
        let some = |text: &str| Some(text.to_owned());
        let mut own = ServerInfo { name: some("own"), players: Some(3), ..ServerInfo::default() };
        let listed =
            ServerInfo { name: some("listed"), map: some("dusk"), tags: vec!["new".into()], ..ServerInfo::default() };
        own.fill_from(&listed);
        assert_eq!((own.name, own.map, own.players), (some("own"), some("dusk"), Some(3)));
        assert_eq!(own.tags, ["new"]);
    }
}
