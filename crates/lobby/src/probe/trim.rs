//! Limits on what is stored of a reply: a server may send anything that fits into a datagram.

use rallypoint_query_proto::{Extension, Mod, Player, ServerInfo, Team};

/// Maximum length of a text, in characters.
const MAX_TEXT: usize = 200;

/// Maximum length of the name of a player, a team, a mod or a tag, in characters.
const MAX_NAME: usize = 32;

/// Maximum number of players: document 003 has one byte for it.
const MAX_PLAYERS: usize = 255;

/// Maximum number of teams.
const MAX_TEAMS: usize = 32;

/// Maximum number of mods, and of tags.
const MAX_MODS: usize = 16;

/// Removes the fields that are not displayed anywhere, and cuts every text to its maximum length.
pub(super) fn trim(info: ServerInfo) -> ServerInfo {
    let text = |text: Option<String>| text.map(|text| cut(&text, MAX_TEXT));
    let player = |player: Player| Player { name: cut(&player.name, MAX_NAME), extension: Extension::default(), ..player };
    let team = |team: Team| Team { name: cut(&team.name, MAX_NAME), ..team };
    let name = |text: Option<String>| text.map(|text| cut(&text, MAX_NAME));
    let one = |one: Mod| Mod { id: name(one.id), name: name(one.name) };
    ServerInfo {
        name: text(info.name),
        description: text(info.description),
        game: text(info.game),
        game_name: text(info.game_name),
        mode: text(info.mode),
        map: text(info.map),
        version: text(info.version),
        website: text(info.website),
        password: info.password,
        players: info.players,
        max_players: info.max_players,
        bots: info.bots,
        spectators: info.spectators,
        mods: shrunk(info.mods.into_iter().take(MAX_MODS).map(one)),
        tags: shrunk(info.tags.iter().take(MAX_MODS).map(|tag| cut(tag, MAX_NAME))),
        teams: shrunk(info.teams.into_iter().take(MAX_TEAMS).map(team)),
        player_list: info.player_list.map(|list| shrunk(list.into_iter().take(MAX_PLAYERS).map(player))),
        ..ServerInfo::default()
    }
}

/// The first characters of a text, in an allocation of their size.
fn cut(text: &str, longest: usize) -> String {
    let end = text.char_indices().nth(longest).map_or(text.len(), |(end, _)| end);
    text[..end].to_owned()
}

/// A list without spare capacity, which could be that of a longer list.
fn shrunk<T>(list: impl Iterator<Item = T>) -> Vec<T> {
    let mut list: Vec<T> = list.collect();
    list.shrink_to_fit();
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w42_a_long_reply_takes_little_memory() {
        let long = "\u{fffd}".repeat(60_000);
        let player = Player { name: long.clone(), ..Player::default() };
        let text = Some(long.clone());
        let info = ServerInfo {
            name: text.clone(),
            description: text.clone(),
            map: text.clone(),
            website: text.clone(),
            tags: vec![long.clone(); 99],
            mods: vec![Mod { id: text.clone(), name: text.clone() }; 99],
            teams: vec![Team { name: long, ..Team::default() }; 300],
            player_list: Some(vec![player; 300]),
            players: Some(300),
            ..ServerInfo::default()
        };
        let kept = trim(info);
        let size = |text: &Option<String>| text.as_ref().map_or(0, String::capacity);
        assert!(size(&kept.name) <= 1_024 && size(&kept.map) <= 1_024 && size(&kept.website) <= 1_024);
        assert!(size(&kept.description) <= 1_024);
        assert_eq!((kept.mods.len(), kept.tags.len()), (16, 16));
        assert!(kept.tags.iter().all(|tag| tag.capacity() <= 160));
        assert!(kept.mods.iter().all(|one| size(&one.id) + size(&one.name) <= 320));
        let players = kept.player_list.unwrap();
        assert_eq!((players.len(), kept.players, kept.teams.len()), (255, Some(300), 32));
        assert!(players.iter().all(|player| player.name.capacity() <= 160));
    }

    #[test]
    fn short_replies_are_stored_unchanged() {
        let info = ServerInfo {
            name: Some("Bäcon Town".into()),
            player_list: Some(vec![Player { name: "a".into(), ping_ms: Some(3), ..Player::default() }]),
            ..ServerInfo::default()
        };
        assert_eq!(trim(info.clone()), info);
    }
}
