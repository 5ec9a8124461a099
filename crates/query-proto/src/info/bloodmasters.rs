//! From document 002.

use super::{Player, ServerInfo, Team};
use rallypoint_wire::{
    bloodmasters::{self, GameType, Info, Reply, Rules},
    text,
};

/// What only a Bloodmasters server tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BloodmastersInfo {
    /// Its protocol version.
    pub protocol: u8,
    /// How many are connected.
    pub clients: u8,
    /// How many can connect.
    pub max_clients: u8,
    /// What is played.
    pub game_type: GameType,
    /// What is played for, if it is told.
    pub rules: Option<Rules>,
}

impl Default for BloodmastersInfo {
    fn default() -> Self {
        Self {
            protocol: Info::PROTOCOL,
            clients: 0,
            max_clients: 0,
            game_type: GameType::DEATHMATCH,
            rules: Some(Rules::default()),
        }
    }
}

impl ServerInfo {
    /// What a Bloodmasters server answered.
    #[must_use]
    pub fn from_bloodmasters(reply: &Reply<'_>) -> Self {
        let (info, clients) = (reply.info(), reply.clients());
        let show = |bytes| Some(text::display(bytes).into_owned());
        let list: Vec<Player> = clients
            .iter()
            .map(|client| Player {
                name: text::display(client.name).into_owned(),
                team: Some(client.team.0),
                ping_ms: Some(client.ping.into()),
                spectator: client.spectator,
                ..Player::default()
            })
            .collect();
        Self {
            name: show(info.title),
            game: Some("bloodmasters".into()),
            game_name: Some("Bloodmasters".into()),
            mode: Some(info.game_type.to_string()),
            map: show(info.map_name),
            version: reply.build().and_then(show),
            website: show(info.website),
            password: Some(info.locked),
            players: Some(info.players.into()),
            max_players: Some(info.max_players.into()),
            spectators: Some(clients.count().saturating_sub(info.players).into()),
            teams: teams_of(&list),
            // Before protocol version 27 the records are not told at all (B6).
            player_list: reply.rules().is_some().then_some(list),
            bloodmasters: Some(BloodmastersInfo {
                protocol: info.protocol,
                clients: clients.count(),
                max_clients: info.max_clients,
                game_type: info.game_type,
                rules: reply.rules(),
            }),
            ..Self::default()
        }
    }
}

/// The game has two teams, which no server describes (B11): those that somebody is in.
fn teams_of(players: &[Player]) -> Vec<Team> {
    [(bloodmasters::Team::RED, [255, 0, 0]), (bloodmasters::Team::BLUE, [0, 0, 255])]
        .into_iter()
        .filter(|(team, _)| players.iter().any(|player| player.team == Some(team.0)))
        .map(|(team, color)| Team { id: team.0, name: team.to_string(), ranked: false, color })
        .collect()
}
