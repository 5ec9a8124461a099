//! The pretend servers: their players and maps, and how these change from second to second. No I/O.

use super::catalogue::{MAPS, PLAYERS, Profile, Reply, SUFFIXES};
use fastrand::Rng;
use rallypoint_query_proto::{Extension, Player, Protocol, ServerInfo, Team};
use rallypoint_wire::bloodmasters::{self, GameType};

/// Mean time in seconds until a server changes its map, and until it restarts.
const MAP_DURATION: u32 = 240;
const UPTIME: u32 = 1_200;

/// Number of seconds that a restart takes.
const RESTART: std::ops::Range<u32> = 15..45;

/// The teams, numbered as in Bloodmasters, with their colours.
const TEAMS: [(bloodmasters::Team, [u8; 3]); 2] =
    [(bloodmasters::Team::RED, [204, 51, 51]), (bloodmasters::Team::BLUE, [51, 102, 204])];

/// A pretend server.
#[derive(Clone, Debug)]
pub struct PretendServer {
    pub name: String,
    pub profile: Profile,
    /// Names of the players.
    pub players: Vec<String>,
    /// Its number among all servers.
    number: usize,
    maps: Vec<&'static str>,
    map: usize,
    /// Seconds until the end of a restart; 0 while it runs.
    restart: u32,
    rng: Rng,
}

/// The changes of one second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    None,
    /// Players, map, or the server is back after a restart.
    Updated,
    /// The server has stopped.
    Stopped,
}

impl PretendServer {
    pub fn new(profile: Profile, number: usize, seed: u64) -> Self {
        let name = profile.name.to_owned();
        let mut rng = Rng::with_seed(seed);
        let maps: Vec<_> =
            MAPS[profile.game.maps].iter().copied().filter(|map| map.starts_with(profile.maps)).collect();
        let map = rng.usize(..maps.len());
        let mut server = Self { name, profile, players: Vec::new(), number, maps, map, restart: 0, rng };
        // As if it had been running for a while.
        for _ in 0..2_000 {
            server.step_players();
        }
        server
    }

    pub fn is_running(&self) -> bool {
        self.restart == 0
    }

    pub fn map(&self) -> &'static str {
        self.maps[self.map]
    }

    /// Bots take the slots that players leave them.
    pub fn bots(&self) -> u16 {
        self.profile.bots.min(self.profile.slots.saturating_sub(self.players.len() as u16))
    }

    /// Lets a second pass.
    pub fn step(&mut self) -> Change {
        if self.restart > 0 {
            self.restart -= 1;
            return if self.restart == 0 { Change::Updated } else { Change::None };
        }
        if self.rng.u32(..UPTIME) == 0 {
            self.restart = self.rng.u32(RESTART);
            self.players.clear();
            return Change::Stopped;
        }
        let mut is_changed = self.step_players();
        if self.rng.u32(..MAP_DURATION) == 0 {
            is_changed |= self.maps.len() > 1;
            self.map = (self.map + 1) % self.maps.len();
        }
        if is_changed { Change::Updated } else { Change::None }
    }

    /// The server's reply to queries.
    pub fn info(&self) -> ServerInfo {
        let game = self.profile.game;
        let players = match self.profile.reply {
            Reply::FewerPlayers => &self.players[..self.players.len().min(1)],
            Reply::Honest | Reply::Ends => &self.players[..],
        };
        let is_bloodmasters = game.protocol == Some(Protocol::Bloodmasters);
        let has_teams = !is_bloodmasters || self.profile.game_type == GameType::TEAM_DEATHMATCH;
        let teams = if has_teams { &TEAMS[..] } else { &[] };
        // The shown properties of a player depend on the name alone, so they do not change when others come and go.
        let player = |name: &String| {
            let hash = name.bytes().fold(7_u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
            Player {
                name: name.clone(),
                team: has_teams.then_some(TEAMS[hash as usize >> 4 & 1].0.0),
                ping_ms: Some(20 + (hash % 90) as i32),
                ..Player::default()
            }
        };
        let own = || {
            let max_clients = u8::try_from(self.profile.slots).unwrap_or(u8::MAX);
            Extension::from([("game_type", self.profile.game_type.0.into()), ("max_clients", max_clients.into())])
        };
        ServerInfo {
            name: Some(self.name.clone()),
            description: Some("A pretend server of the demo".to_owned()),
            game: Some(game.short.to_owned()),
            game_name: Some(game.name.to_owned()),
            map: Some(self.map().to_owned()),
            version: Some(game.version.to_owned()),
            players: Some(players.len() as u16),
            max_players: Some(self.profile.slots),
            bots: Some(self.bots()),
            password: Some(self.profile.password),
            teams: teams
                .iter()
                .map(|(id, color)| Team { id: id.0, name: id.to_string(), ranked: false, color: *color })
                .collect(),
            extensions: is_bloodmasters.then(|| (Protocol::Bloodmasters, own())).into_iter().collect(),
            player_list: Some(players.iter().map(player).collect()),
            ..ServerInfo::default()
        }
    }

    /// Players come more often to a popular server, and stay about ten minutes. Returns whether one came or left.
    fn step_players(&mut self) -> bool {
        let slots = usize::from(self.profile.slots);
        let expected = f64::from(self.profile.popularity) / 100.0 * slots as f64;
        if self.rng.f64() < expected / 600.0 && self.players.len() < slots {
            let first = self.rng.usize(..PLAYERS.len());
            // A reply of Bloodmasters has no other letters.
            let is_ascii = self.profile.game.protocol == Some(Protocol::Bloodmasters);
            let name = |offset: usize| {
                let index = (first + offset) % PLAYERS.len();
                format!("{}{}", PLAYERS[index], SUFFIXES[(index + self.number) % SUFFIXES.len()])
            };
            if let Some(name) =
                (0..PLAYERS.len()).map(name).find(|name| !self.players.contains(name) && (name.is_ascii() || !is_ascii))
            {
                self.players.push(name);
                return true;
            }
        }
        if self.rng.f64() < self.players.len() as f64 / 600.0 {
            let leaving = self.rng.usize(..self.players.len());
            self.players.remove(leaving);
            return true;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::{super::catalogue::SERVERS, *};

    #[test]
    fn an_hour_has_joins_map_changes_and_restarts() {
        let mut servers: Vec<_> =
            (0..).zip(SERVERS).map(|(seed, profile)| PretendServer::new(*profile, seed as usize, seed)).collect();
        let (mut updates, mut stops) = (0, 0);
        for _ in 0..3_600 {
            for server in &mut servers {
                match server.step() {
                    Change::Updated => updates += 1,
                    Change::Stopped => stops += 1,
                    Change::None => {}
                }
                assert!(server.players.len() <= usize::from(server.profile.slots));
                assert!(server.is_running() || server.players.is_empty());
            }
        }
        assert!(updates > 1_000 && (20..300).contains(&stops), "{updates} updates, {stops} stops");
    }

    #[test]
    fn a_player_is_in_one_place_and_maps_suit_the_name_of_their_server() {
        let servers: Vec<_> =
            (0..).zip(SERVERS).map(|(seed, profile)| PretendServer::new(*profile, seed as usize, seed)).collect();
        let mut names: Vec<_> = servers.iter().flat_map(|server| &server.players).collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert!(count > 50 && names.len() == count, "{count} players have {} names", names.len());
        let flags = servers.iter().find(|server| server.name.contains("Capture the flag")).unwrap();
        assert!(flags.map().starts_with("ctf_"), "{}", flags.map());
    }

    #[test]
    fn a_deathmatch_has_no_teams_and_names_fit_into_the_replies_of_their_game() {
        for profile in SERVERS.iter().filter(|profile| profile.game.protocol == Some(Protocol::Bloodmasters)) {
            let info = PretendServer::new(*profile, 3, 3).info();
            let players = info.player_list.unwrap();
            assert!(players.iter().all(|player| player.name.is_ascii()), "{players:?}");
            let is_for_teams = profile.name.contains("Team");
            assert!(players.iter().all(|player| player.team.is_some() == is_for_teams), "{}", profile.name);
            assert_eq!(info.teams.is_empty(), !is_for_teams, "{}", profile.name);
        }
    }

    #[test]
    fn the_answer_agrees_with_the_registration() {
        let server = PretendServer::new(SERVERS[7], 7, 7);
        let info = server.info();
        assert_eq!(info.password, Some(true));
        assert_eq!(info.player_list.map(|list| list.len()), Some(server.players.len()));
        assert_eq!((info.map.as_deref(), info.max_players), (Some(server.map()), Some(server.profile.slots)));
    }
}
