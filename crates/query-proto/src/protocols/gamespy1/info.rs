//! The common view of keys and values of GameSpy.

use crate::{Extension, ExtensionValue, Player, ServerInfo, Team};
use rallypoint_wire::{
    query::{
        Protocol,
        gamespy1::{Index, split_index},
    },
    text,
};
use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

/// The description of a player or of a team, by key.
type Fields<'a> = BTreeMap<Vec<u8>, &'a [u8]>;

/// What a reply says, sorted into the server, its players and its teams. Keys are in lower case.
#[derive(Default)]
struct Sorted<'a> {
    server: Fields<'a>,
    players: BTreeMap<u16, Fields<'a>>,
    teams: BTreeMap<u16, &'a [u8]>,
}

impl<'a> Sorted<'a> {
    fn new(pairs: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Self {
        let pairs: Vec<_> = pairs.map(|(key, value)| (key.to_ascii_lowercase(), value)).collect();
        let is_name = |name: &[u8]| name == b"player" || name == b"playername";
        let numbers: BTreeSet<u16> = pairs
            .iter()
            .filter_map(|(key, _)| match split_index(key)? {
                (name, Index::Player(number)) if is_name(name) => Some(number),
                _ => None,
            })
            .collect();
        let mut sorted = Self::default();
        for (key, value) in pairs {
            match split_index(&key) {
                Some((b"teamname", Index::Player(number)) | (b"team", Index::Team(number))) => {
                    sorted.teams.entry(number).or_insert(value);
                }
                Some((name, Index::Player(number))) if numbers.contains(&number) && !name.starts_with(b"teamname") => {
                    let name = if is_name(name) { b"player".to_vec() } else { name.to_vec() };
                    sorted.players.entry(number).or_default().entry(name).or_insert(value);
                }
                _ => drop(sorted.server.entry(key).or_insert(value)),
            }
        }
        sorted
    }

    /// The last player, if its description was cut off: it has a name, and nothing that the others have.
    fn remove_cut_player(&mut self) {
        let has_more = |fields: &Fields<'_>| fields.len() > 1;
        let all_but_last = self.players.len().saturating_sub(1);
        if all_but_last > 0
            && self.players.values().take(all_but_last).all(has_more)
            && self.players.values().last().is_some_and(|last| !has_more(last))
        {
            self.players.pop_last();
        }
    }
}

/// A text that is safe to display, without the colour codes of the Unreal engine: an escape and three bytes.
fn show(bytes: &[u8]) -> String {
    let mut plain = Cow::Borrowed(bytes);
    while let Some(at) = plain.iter().position(|byte| *byte == 0x1b) {
        let end = (at + 4).min(plain.len());
        plain.to_mut().drain(at..end);
    }
    text::display(&plain).into_owned()
}

/// A whole number, which may have spaces before it and decimals behind it.
fn integer<N: TryFrom<i64>>(bytes: &[u8]) -> Option<N> {
    let text = str::from_utf8(bytes).ok()?.trim();
    let text = text.split_once('.').map_or(text, |(whole, _)| whole);
    text.parse::<i64>().ok()?.try_into().ok()
}

/// The common view of the keys and values of a reply.
pub(super) fn server_info<'a>(pairs: impl Iterator<Item = (&'a [u8], &'a [u8])>, is_complete: bool) -> ServerInfo {
    let mut sorted = Sorted::new(pairs);
    sorted.remove_cut_player();
    let Sorted { server, mut players, teams: names } = sorted;
    let get = |key: &str| server.get(key.as_bytes()).copied().filter(|value| !value.is_empty());
    let shown = |key: &str| get(key).map(show);
    let number = |key: &str| -> Option<u16> { integer(get(key)?) };
    let game = shown("gamename");
    let count = number("numplayers");
    let is_battlefield =
        game.as_deref().is_some_and(|game| game.starts_with("bfield1942") || game.starts_with("bfvietnam"));
    if let Some(count) = count.filter(|_| is_battlefield) {
        // Servers of these games keep sending those who have left.
        while players.len() > count.into() {
            players.pop_last();
        }
    }
    let mut teams: Vec<Team> = names
        .into_iter()
        .filter_map(|(number, name)| {
            // Players have the numbers 1 and 2.
            let id = (number + u16::from(is_battlefield)).try_into().ok()?;
            Some(Team { id, name: show(name), ..Team::default() })
        })
        .collect();
    let is_bot =
        |fields: &Fields<'_>| fields.get(&b"ngsecret"[..]).is_some_and(|value| value.eq_ignore_ascii_case(b"bot"));
    let knows_bots = players.values().any(|fields| fields.contains_key(&b"ngsecret"[..]));
    let bots = knows_bots.then(|| players.values().filter(|fields| is_bot(fields)).count() as u16);
    let list: Vec<Player> = players.values().map(|fields| player(fields, &mut teams)).collect();
    // Some games count bots as players, others do not.
    let listed = list.len() as u16;
    let humans = match (count, bots) {
        (Some(count), Some(bots)) if count == listed => Some(count.saturating_sub(bots)),
        (Some(count), _) => Some(count),
        (None, bots) => is_complete.then(|| listed.saturating_sub(bots.unwrap_or(0))),
    };
    let is_yes = |value: &[u8]| !matches!(&*value.to_ascii_lowercase(), b"0" | b"false" | b"no");
    ServerInfo {
        name: shown("hostname"),
        mode: shown("gametype"),
        map: shown("mapname").or_else(|| shown("map")),
        version: shown("gamever"),
        website: shown("website"),
        password: get("password").map(is_yes),
        players: humans,
        max_players: number("maxplayers"),
        bots,
        teams,
        player_list: Some(list),
        extensions: [(Protocol::GameSpy1, extension(number("hostport"), shown("gamemode")))].into(),
        rules: server.iter().map(|(key, value)| (show(key), show(value))).collect(),
        game,
        ..ServerInfo::default()
    }
}

fn extension(port: Option<u16>, state: Option<String>) -> Extension {
    Extension::from([
        ("game_port", port.map_or(ExtensionValue::Unknown, ExtensionValue::from)),
        ("state", state.map_or(ExtensionValue::Unknown, ExtensionValue::from)),
    ])
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
        ..Player::default()
    }
}
