//! What is kept of an answer: who is asked says what it likes, as much as fits into a datagram.

use rallypoint_query_proto::{Player, ServerInfo, Team};

/// The longest text, in characters.
const LONGEST_TEXT: usize = 200;

/// The longest name of a player or of a team, in characters.
const LONGEST_NAME: usize = 32;

/// The most players: document 003 can count no more.
const MOST_PLAYERS: usize = 255;

/// The most teams.
const MOST_TEAMS: usize = 32;

/// An answer without what is not shown anywhere, and with every text cut to a length that can be kept.
pub(super) fn fit(info: ServerInfo) -> ServerInfo {
    let text = |text: Option<String>| text.map(|text| cut(&text, LONGEST_TEXT));
    let player = |player: Player| Player { name: cut(&player.name, LONGEST_NAME), ..player };
    let team = |team: Team| Team { name: cut(&team.name, LONGEST_NAME), ..team };
    ServerInfo {
        name: text(info.name),
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
        teams: info.teams.into_iter().take(MOST_TEAMS).map(team).collect(),
        player_list: info.player_list.map(|list| list.into_iter().take(MOST_PLAYERS).map(player).collect()),
        ..ServerInfo::default()
    }
}

fn cut(text: &str, longest: usize) -> String {
    text.chars().take(longest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w42_who_says_much_takes_little_memory() {
        let long = "\u{fffd}".repeat(60_000);
        let player = Player { name: long.clone(), ..Player::default() };
        let text = Some(long.clone());
        let info = ServerInfo {
            name: text.clone(),
            description: text.clone(),
            map: text.clone(),
            website: text,
            tags: vec![long.clone(); 9],
            teams: vec![Team { name: long, ..Team::default() }; 300],
            player_list: Some(vec![player; 300]),
            players: Some(300),
            ..ServerInfo::default()
        };
        let kept = fit(info);
        let size = |text: &Option<String>| text.as_ref().map_or(0, String::capacity);
        assert!(size(&kept.name) <= 1_024 && size(&kept.map) <= 1_024 && size(&kept.website) <= 1_024);
        assert_eq!((kept.description, kept.tags), (None, Vec::new()), "nobody shows them");
        let players = kept.player_list.unwrap();
        assert_eq!((players.len(), kept.players, kept.teams.len()), (255, Some(300), 32));
        assert!(players.iter().all(|player| player.name.capacity() <= 160));
    }

    #[test]
    fn what_is_short_stays_as_it_is() {
        let info = ServerInfo {
            name: Some("Bäcon Town".into()),
            player_list: Some(vec![Player { name: "a".into(), ping_ms: Some(3), ..Player::default() }]),
            ..ServerInfo::default()
        };
        assert_eq!(fit(info.clone()), info);
    }
}
