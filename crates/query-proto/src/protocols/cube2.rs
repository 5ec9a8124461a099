//! Cube 2: Sauerbraten: a short query for the description, and extended ones for the rest. A server repeats each query, and so
//! its token.
//!
//! A query for the players is answered with one datagram that has their number, and one for each of them. The replies to
//! different attempts are not mixed, because players come and go.

#[cfg(test)]
mod tests;

use crate::{
    Extension, ExtensionValue, MissingPart, Player, RawReply, ServerInfo, Team,
    exchange::{Accepted, Attempt, Context, QueryProtocol, Received, Request, Requests, Token},
};
use rallypoint_wire::{
    DecodeError,
    query::{
        Detail, Protocol,
        cube2::{self, Body, Charset, Flavour, Info, Query, Response, TeamScore, Text},
    },
    text,
};
use std::collections::BTreeMap;

/// The query protocol of Cube 2.
pub(crate) struct Cube2;

const INFO: Request = Request(0);
const UPTIME: Request = Request(1);
const PLAYERS: Request = Request(2);
const TEAMS: Request = Request(3);

/// Maximum number of clients of which replies are kept: more than any server has.
const MAX_CLIENTS: usize = 512;

/// A game of this family.
pub(super) struct Game {
    pub flavour: Flavour,
    pub protocol: Protocol,
    pub id: &'static str,
    pub name: &'static str,
    /// Names of the game modes from 0 on.
    pub modes: &'static [&'static str],
    /// Game modes without teams.
    pub modes_without_teams: &'static [i32],
    pub master_modes: &'static [&'static str],
    /// Number of the first master mode.
    pub first_master_mode: i32,
    /// The usual teams, in the order of their numbers, with their colours.
    pub teams: &'static [(&'static str, [u8; 3])],
}

const GAME: Game = Game {
    flavour: Flavour::Sauerbraten,
    protocol: Protocol::Cube2,
    id: "sauerbraten",
    name: "Cube 2: Sauerbraten",
    modes: &[
        "ffa",
        "coop edit",
        "teamplay",
        "instagib",
        "insta team",
        "efficiency",
        "effic team",
        "tactics",
        "tactics team",
        "capture",
        "regen capture",
        "ctf",
        "insta ctf",
        "protect",
        "insta protect",
        "hold",
        "insta hold",
        "effic ctf",
        "effic protect",
        "effic hold",
        "collect",
        "insta collect",
        "effic collect",
    ],
    modes_without_teams: &[-1, 0, 1, 3, 5, 7],
    master_modes: &["auth", "open", "veto", "locked", "private", "password"],
    first_master_mode: -1,
    teams: &[("good", [0, 0, 255]), ("evil", [255, 0, 0])],
};

/// What has arrived.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    has_info: bool,
    has_uptime: bool,
    has_teams: bool,
    /// A list of players for each attempt that was answered with a part of one.
    lists: Vec<List>,
}

/// A list of players.
#[derive(Debug)]
struct List {
    token: [u8; 7],
    /// Number of players, if it has arrived.
    expected: Option<u16>,
    /// Numbers of the players that have arrived.
    received: Vec<i32>,
}

impl List {
    fn is_complete(&self) -> bool {
        self.expected.is_some_and(|expected| self.received.len() >= usize::from(expected))
    }
}

impl Progress {
    pub fn outstanding(&self, detail: Detail) -> Requests {
        let is_there = detail == Detail::Presence && (self.has_uptime || self.has_teams || !self.lists.is_empty());
        let needs_all = detail == Detail::Players;
        Requests::only_if(INFO, !self.has_info && !is_there)
            .with(Requests::only_if(UPTIME, !self.has_uptime && needs_all))
            .with(Requests::only_if(PLAYERS, !self.lists.iter().any(List::is_complete) && needs_all))
            .with(Requests::only_if(TEAMS, !self.has_teams && needs_all))
    }

    /// Takes in a part of a list of players. False if it adds nothing.
    fn add_to_list(&mut self, token: [u8; 7], body: &Body<'_>) -> bool {
        let index = self.lists.iter().position(|list| list.token == token).unwrap_or_else(|| {
            self.lists.push(List { token, expected: None, received: Vec::new() });
            self.lists.len() - 1
        });
        let list = &mut self.lists[index];
        match body {
            Body::PlayerCount(count) => list.expected.replace(*count).is_none(),
            Body::Player(player) => {
                let is_new = list.received.len() < MAX_CLIENTS && !list.received.contains(&player.client);
                if is_new {
                    list.received.push(player.client);
                }
                is_new
            }
            _ => false,
        }
    }
}

/// The token as queries have it: the short one has its first four bytes, which must not be zero.
fn token(token: Token) -> cube2::Token {
    let [a, b, c, d, e, f, g, _] = token.0;
    cube2::Token([a | 1, b, c, d, e, f, g])
}

impl Game {
    pub fn emit(&self, request: Request, sent: Token, out: &mut Vec<u8>) {
        let query = match request {
            UPTIME => Query::Uptime,
            PLAYERS => Query::Players,
            TEAMS => Query::Teams,
            _ => Query::Info,
        };
        query.emit(self.flavour, token(sent), out);
    }

    pub fn handle(
        &self,
        progress: &mut Progress,
        datagram: &[u8],
        context: &Context<'_>,
    ) -> Result<Received, DecodeError> {
        let Response { token: repeated, body } = Response::parse(self.flavour, datagram)?;
        let is_it = |sent| &token(sent).0[..repeated.len()] == repeated;
        let Some(Attempt(attempt)) = context.attempt_with(is_it) else { return Ok(Received::WrongToken) };
        let is_new = match body {
            Body::Info(_) => !std::mem::replace(&mut progress.has_info, true),
            Body::Uptime { .. } => !std::mem::replace(&mut progress.has_uptime, true),
            Body::Teams(_) => !std::mem::replace(&mut progress.has_teams, true),
            Body::PlayerCount(_) | Body::Player(_) => {
                repeated.try_into().is_ok_and(|token| progress.add_to_list(token, &body))
            }
        };
        if !is_new {
            return Ok(Received::Redundant);
        }
        Ok(Received::Accepted(Accepted { attempt: Some(Attempt(attempt)), ..Accepted::default() }))
    }

    pub fn finish(&self, progress: &Progress, detail: Detail, raw: &RawReply) -> (ServerInfo, Vec<MissingPart>) {
        let best = progress.lists.iter().max_by_key(|list| (list.is_complete(), list.received.len()));
        let mut parts = Parts { list: best, ..Parts::default() };
        for Response { token, body } in raw.datagrams().flat_map(|one| Response::parse(self.flavour, one)) {
            match body {
                Body::Info(info) => parts.info = Some(info),
                Body::Uptime { seconds, modification } => parts.uptime = Some((seconds, modification)),
                Body::Teams(teams) => parts.teams = Some(teams),
                Body::Player(player) if best.is_some_and(|list| list.token == token) => parts.players.push(player),
                Body::Player(_) | Body::PlayerCount(_) => {}
            }
        }
        // In the order of the server, whatever the order of arrival.
        parts.players.sort_by_key(|player| player.client);
        let missing = parts.missing(detail);
        (parts.server_info(self), missing)
    }

    /// The number of a team: the usual ones come first.
    fn team_id(&self, name: &str, teams: &mut Vec<Team>) -> Option<u8> {
        if let Some(team) = teams.iter().find(|team| team.name == name) {
            return Some(team.id);
        }
        let usual = self.teams.iter().position(|(usual, _)| *usual == name);
        let next = || teams.iter().map(|team| usize::from(team.id) + 1).max().unwrap_or(0).max(self.teams.len());
        let id = u8::try_from(usual.unwrap_or_else(next)).ok()?;
        let color = usual.map_or([128; 3], |usual| self.teams[usual].1);
        teams.push(Team { id, name: name.to_owned(), color, ..Team::default() });
        Some(id)
    }
}

/// What has arrived, read.
#[derive(Default)]
struct Parts<'a> {
    info: Option<Info<'a>>,
    uptime: Option<(i32, Option<i32>)>,
    teams: Option<cube2::Teams<'a>>,
    list: Option<&'a List>,
    players: Vec<cube2::Player<'a>>,
}

impl Parts<'_> {
    fn missing(&self, detail: Detail) -> Vec<MissingPart> {
        let mut missing = Vec::new();
        if self.info.is_none() && detail != Detail::Presence {
            missing.push(MissingPart::Part("the description"));
        }
        if detail != Detail::Players {
            return missing;
        }
        if self.uptime.is_none() {
            missing.push(MissingPart::Part("uptime"));
        }
        if !self.list.is_some_and(List::is_complete) {
            let expected = self.list.and_then(|list| list.expected).or(self.info.map(|info| info.clients));
            missing.push(MissingPart::Players { received: self.players.len() as u16, expected });
        }
        match self.teams {
            Some(teams) => {
                missing.extend(teams.iter().filter_map(Result::err).map(MissingPart::Truncated));
                let listed: Vec<String> = teams.iter().flatten().map(|team| show(team.name)).collect();
                // Servers list the teams of all who play.
                let is_unlisted =
                    |player: &cube2::Player<'_>| player.state != SPECTATOR && !listed.contains(&show(player.team));
                if teams.has_teams && self.players.iter().any(is_unlisted) {
                    missing.push(MissingPart::Part("scores of some teams"));
                }
            }
            None => missing.push(MissingPart::Part("scores of the teams")),
        }
        missing
    }

    fn server_info(&self, game: &Game) -> ServerInfo {
        let mode = self.info.map(|info| info.mode).or(self.teams.map(|teams| teams.mode));
        let with_teams = match (self.teams, mode) {
            (Some(teams), _) => teams.has_teams,
            (None, mode) => mode.is_some_and(|mode| !game.modes_without_teams.contains(&mode)),
        };
        let mut teams = Vec::new();
        let mut rules = BTreeMap::new();
        for TeamScore { name, score } in self.teams.iter().flat_map(cube2::Teams::iter).flatten() {
            let name = show(name);
            game.team_id(&name, &mut teams);
            rules.insert(format!("score of {name}"), score.to_string());
        }
        let is_complete = self.list.is_some_and(List::is_complete);
        let list: Vec<Player> = self
            .players
            .iter()
            .map(|player| {
                let team = if with_teams { game.team_id(&show(player.team), &mut teams) } else { None };
                shown_player(player, team)
            })
            .collect();
        teams.sort_by_key(|team| team.id);
        let named = |names: &[&str], index: i32| Some((*names.get(usize::try_from(index).ok()?)?).to_owned());
        let info = self.info;
        ServerInfo {
            name: info.map(|info| show(info.name)),
            game: Some(game.id.into()),
            game_name: Some(game.name.into()),
            mode: mode.and_then(|mode| named(game.modes, mode)),
            map: info.map(|info| show(info.map)).filter(|map| !map.is_empty()),
            password: info.map(|info| info.has_password),
            players: info.map(|info| info.clients),
            max_players: info.map(|info| info.max_clients),
            spectators: is_complete.then(|| list.iter().filter(|player| player.spectator).count() as u16),
            teams,
            player_list: self.list.map(|_| list),
            rules,
            extensions: [(game.protocol, self.extension(game))].into(),
            ..ServerInfo::default()
        }
    }

    fn extension(&self, game: &Game) -> Extension {
        fn known<T: Into<ExtensionValue>>(value: Option<T>) -> ExtensionValue {
            value.map_or(ExtensionValue::Unknown, Into::into)
        }
        let info = self.info;
        let master_mode = info.and_then(|info| {
            let index = usize::try_from(info.master_mode.checked_sub(game.first_master_mode)?).ok()?;
            game.master_modes.get(index).map(|name| (*name).to_owned())
        });
        let pace = info.and_then(|info| info.pace);
        let time_left = match game.flavour {
            Flavour::Sauerbraten => "seconds_left",
            Flavour::AssaultCube => "minutes_left",
        };
        Extension::from([
            ("protocol", known(info.map(|info| info.protocol))),
            ("master_mode", known(master_mode)),
            (time_left, known(info.map(|info| info.time_left))),
            ("paused", known(pace.map(|(is_paused, _)| is_paused))),
            ("game_speed", known(pace.map(|(_, speed)| speed))),
            ("uptime_s", known(self.uptime.map(|(seconds, _)| seconds))),
            ("server_mod", known(self.uptime.and_then(|(_, modification)| modification))),
        ])
    }
}

/// State of a player that only watches.
const SPECTATOR: i32 = 5;

fn shown_player(player: &cube2::Player<'_>, team: Option<u8>) -> Player {
    Player {
        name: show(player.name),
        team,
        rank: u8::try_from(player.privilege).ok(),
        score: Some(player.frags),
        ping_ms: Some(player.ping),
        spectator: player.state == SPECTATOR,
        extension: Extension::from([
            ("client", player.client.into()),
            ("flags", player.flags.into()),
            ("deaths", player.deaths.into()),
            ("team_kills", player.team_kills.into()),
            ("accuracy", player.accuracy.into()),
        ]),
        ..Player::default()
    }
}

/// A text that is safe to display.
fn show(encoded: Text<'_>) -> String {
    let shown = match encoded.charset() {
        Charset::Cube2 => text::sanitize(&encoded.to_string()).into_owned(),
        Charset::System => text::display(&encoded.characters()).into_owned(),
    };
    shown.trim().to_owned()
}

impl QueryProtocol for Cube2 {
    const MAX_DATAGRAM: usize = cube2::MAX_DATAGRAM;
    const HAS_TOKEN: bool = true;

    type State = Progress;

    fn outstanding(progress: &Progress, detail: Detail) -> Requests {
        progress.outstanding(detail)
    }

    fn emit(_progress: Option<&mut Progress>, request: Request, token: impl FnOnce() -> Token, out: &mut Vec<u8>) {
        GAME.emit(request, token(), out);
    }

    fn handle(
        progress: &mut Progress,
        datagram: &[u8],
        _detail: Detail,
        context: &Context<'_>,
    ) -> Result<Received, DecodeError> {
        GAME.handle(progress, datagram, context)
    }

    fn finish(progress: &Progress, detail: Detail, raw: &RawReply) -> (ServerInfo, Vec<MissingPart>) {
        GAME.finish(progress, detail, raw)
    }
}
