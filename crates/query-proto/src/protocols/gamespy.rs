//! What the three query protocols of GameSpy have in common: the keys of servers, players and teams.

use crate::{Extension, ExtensionValue, Player, ServerInfo, Team};
use rallypoint_wire::{query::Protocol, text};
use std::collections::BTreeMap;

/// Values by key, in lower case.
pub(super) type Fields<'a> = BTreeMap<Vec<u8>, &'a [u8]>;

/// What a reply says of a server.
#[derive(Debug, Default)]
pub(super) struct Description<'a> {
    pub server: Fields<'a>,
    /// Players by number. The key of the name is `player`.
    pub players: BTreeMap<u16, Fields<'a>>,
    /// Names of teams by number.
    pub teams: BTreeMap<u16, &'a [u8]>,
}

/// Highest number of a player: more than any game has.
pub(super) const MAX_NUMBER: u16 = 1_023;

/// A text that is safe to display, without the colour codes of the Unreal engine: an escape and three bytes, or a control
/// character.
pub(super) fn show(bytes: &[u8]) -> String {
    if !bytes.iter().any(is_colour) {
        return text::display(bytes).into_owned();
    }
    let mut plain = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((byte, behind)) = rest.split_first() {
        rest = match byte {
            0x1b => behind.get(3..).unwrap_or_default(),
            byte if is_colour(byte) => behind,
            byte => {
                plain.push(*byte);
                behind
            }
        };
    }
    text::display(&plain).into_owned()
}

fn is_colour(byte: &u8) -> bool {
    matches!(byte, 1..=8 | 0x0e..=0x1b)
}

/// A whole number, which may have spaces before it and decimals behind it.
pub(super) fn integer<N: TryFrom<i64>>(bytes: &[u8]) -> Option<N> {
    let text = str::from_utf8(bytes).ok()?.trim();
    let text = text.split_once('.').map_or(text, |(whole, _)| whole);
    text.parse::<i64>().ok()?.try_into().ok()
}

impl Description<'_> {
    /// The common view. The number of players is that in the list only if this is complete.
    pub fn server_info(mut self, protocol: Protocol, is_complete: bool) -> ServerInfo {
        let game = self.shown(&["gamename"]);
        let is_of =
            |games: &[&str]| games.iter().any(|known| game.as_deref().is_some_and(|game| game.starts_with(known)));
        let count: Option<u16> = self.integer("numplayers");
        if let Some(count) = count.filter(|_| is_of(&["bfield1942", "bfvietnam"])) {
            // Servers of these games keep sending those who have left.
            while self.players.len() > count.into() {
                self.players.pop_last();
            }
        }
        let mut teams = self.team_list(is_of(&["bfield", "bfvietnam", "battlefield", "stella"]));
        let bots = self.bots();
        let list: Vec<Player> = self.players.values().map(|fields| player(fields, &mut teams)).collect();
        let listed = list.len() as u16;
        // Some games count bots as players, others do not.
        let humans = match (count, bots) {
            (Some(count), Some(bots)) if count == listed => Some(count.saturating_sub(bots)),
            (Some(count), _) => Some(count),
            (None, bots) => is_complete.then(|| listed.saturating_sub(bots.unwrap_or(0))),
        };
        let is_yes = |value: &[u8]| !matches!(&*value.to_ascii_lowercase(), b"0" | b"false" | b"no" | b"n");
        let port: Option<u16> = self.integer("hostport");
        let own = Extension::from([
            ("game_port", port.map_or(ExtensionValue::Unknown, ExtensionValue::from)),
            ("state", self.shown(&["gamemode"]).map_or(ExtensionValue::Unknown, ExtensionValue::from)),
        ]);
        ServerInfo {
            name: self.shown(&["hostname", "servername"]),
            mode: self.shown(&["gametype", "gamestyle"]),
            map: self.shown(&["mapname", "map"]),
            version: self.shown(&["gamever", "gameversion", "version"]),
            website: self.shown(&["website"]),
            password: self.get("password").map(is_yes),
            players: humans,
            max_players: self.integer("maxplayers"),
            bots,
            teams,
            player_list: Some(list),
            rules: self.server.iter().map(|(key, value)| (show(key), show(value))).collect(),
            extensions: [(protocol, own)].into(),
            game,
            ..ServerInfo::default()
        }
    }

    fn get(&self, key: &str) -> Option<&[u8]> {
        self.server.get(key.as_bytes()).copied().filter(|value| !value.is_empty())
    }

    fn shown(&self, keys: &[&str]) -> Option<String> {
        keys.iter().find_map(|key| self.get(key)).map(show)
    }

    fn integer<N: TryFrom<i64>>(&self, key: &str) -> Option<N> {
        integer(self.get(key)?)
    }

    /// The teams, with the numbers that players have. These begin with 0, or with 1.
    fn team_list(&self, begins_with_1: bool) -> Vec<Team> {
        let numbers = || self.players.values().filter_map(|fields| integer::<usize>(fields.get(&b"team"[..])?));
        let is_beyond = |number: usize| number == self.teams.len() && !self.teams.contains_key(&(number as u16));
        let begins_with_1 = begins_with_1 || numbers().any(is_beyond) && numbers().all(|number| number != 0);
        let offset = u16::from(begins_with_1 && self.teams.contains_key(&0));
        let team = |(number, name): (&u16, &&[u8])| {
            Some(Team { id: u8::try_from(number + offset).ok()?, name: show(name), ..Team::default() })
        };
        self.teams.iter().filter_map(team).collect()
    }

    /// The number of bots, in games that say who is one.
    fn bots(&self) -> Option<u16> {
        let mark = |fields: &Fields<'_>| -> Option<bool> {
            let marks = [(&b"ngsecret"[..], &b"bot"[..]), (b"aibot", b"1")];
            marks.iter().find_map(|(key, bot)| Some(fields.get(*key)?.eq_ignore_ascii_case(bot)))
        };
        let marks: Vec<bool> = self.players.values().filter_map(mark).collect();
        (!marks.is_empty()).then(|| marks.into_iter().filter(|is_bot| *is_bot).count() as u16)
    }
}

/// A player. Teams are numbers, or names, which are numbered in the order of their first players.
fn player(fields: &Fields<'_>, teams: &mut Vec<Team>) -> Player {
    let get = |keys: &[&str]| keys.iter().find_map(|key| fields.get(key.as_bytes())).copied();
    let team = get(&["team"]).filter(|team| !team.trim_ascii().is_empty()).and_then(|team| {
        if let Some(number) = integer::<i64>(team) {
            // Unreal Tournament has 255 for no team.
            return u8::try_from(number).ok().filter(|number| *number != u8::MAX);
        }
        let name = show(team);
        let known = teams.iter().find(|known| known.name == name).map(|known| known.id);
        known.or_else(|| {
            let id = u8::try_from(teams.len()).ok().filter(|id| teams.iter().all(|known| known.id != *id))?;
            teams.push(Team { id, name, ..Team::default() });
            Some(id)
        })
    });
    Player {
        name: get(&["player"]).map(show).unwrap_or_default(),
        team,
        score: get(&["score", "frags", "frag", "kills"]).and_then(integer),
        ping_ms: get(&["ping"]).and_then(integer),
        extension: extension(fields),
        ..Player::default()
    }
}

/// What many games say of their players.
fn extension(fields: &Fields<'_>) -> Extension {
    let number = |name: &'static str| Some((name, integer::<i32>(fields.get(name.as_bytes())?)?.into()));
    ["deaths", "kills", "skill"].into_iter().filter_map(number).collect()
}
