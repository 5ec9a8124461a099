//! Quake, and Hexen II on its engine: a description of the server, then its players and its rules, each with a query of its own.
//!
//! Several players are requested at a time; rules only one after the other, because a query names the rule before. No value of a
//! query is repeated in the reply, so that anyone who can forge the address of a server can forge its reply.

#[cfg(test)]
mod tests;

use crate::{
    Extension, MissingPart, Player, RawReply, ServerInfo, Team,
    exchange::{Context, QueryProtocol, Received, Request, Requests, Token},
};
use rallypoint_wire::{
    DecodeError,
    query::{
        Detail, Protocol, quake,
        quake1::{self, Response, Server},
    },
};
use std::collections::BTreeMap;

/// The query protocol of Quake.
pub(crate) struct Quake1;

const RULE: Request = Request(0);
/// The first of the requests for a player: that of each is determined when it is sent.
const FIRST_PLAYER: u8 = 1;
/// The last one of an attempt: DarkPlaces answers one query for the server or a player a second.
const SERVER: Request = Request(7);
/// Number of players that are requested at a time.
const PLAYERS_AT_A_TIME: usize = 5;
/// The description of a server of Hexen II, whose other queries are the same.
const HEXEN_SERVER: Request = Request(6);

/// Maximum number of rules: three times those of the richest server.
const MAX_RULES: usize = 128;

/// Maximum length of the name of a rule in bytes; it is sent back to the server.
const MAX_RULE_NAME: usize = 64;

/// What has arrived.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Number of players according to the latest description of the server.
    expected: Option<u8>,
    /// Number of times that this number has changed.
    recounts: u8,
    /// One bit for each player that has arrived.
    players: [u64; 4],
    /// Where the search for the next player to request begins.
    cursor: u8,
    /// Hashes of the names of the rules that have arrived.
    rules: Vec<u64>,
    last_rule: Vec<u8>,
    /// Whether the rule after the last one has been requested.
    has_asked_for_rules: bool,
    has_all_rules: bool,
}

impl Progress {
    fn has_player(&self, number: u8) -> bool {
        self.players[usize::from(number / 64)] & 1 << (number % 64) != 0
    }

    /// The players from this number on that have not arrived.
    fn lacking(&self, from: u8) -> impl Iterator<Item = u8> {
        (from..self.expected.unwrap_or(0)).filter(|number| !self.has_player(*number))
    }

    /// Requests for at most this number of players.
    fn player_requests(lacking: impl Iterator<Item = u8>, at_most: usize) -> Requests {
        let count = lacking.take(at_most).count() as u8;
        (0..count).fold(Requests::NONE, |requests, slot| requests.with(Requests::of(Request(FIRST_PLAYER + slot))))
    }

    fn accept_server(&mut self, server: &Server<'_>, detail: Detail) -> Received {
        let is_first = self.expected.is_none();
        let is_recount = self.expected != Some(server.players) && self.recounts < MAX_RECOUNTS;
        if !is_first && !is_recount {
            return Received::Redundant;
        }
        self.recounts += u8::from(!is_first);
        self.expected = Some(server.players);
        Received::accepted(if is_first { Quake1::outstanding(self, detail) } else { Requests::NONE })
    }

    fn accept_player(&mut self, number: u8) -> Received {
        if number >= self.expected.unwrap_or(0) || self.has_player(number) {
            return Received::Redundant;
        }
        self.players[usize::from(number / 64)] |= 1 << (number % 64);
        Received::accepted(Self::player_requests(self.lacking(self.cursor), 1))
    }

    fn accept_rule(&mut self, name: &[u8], context: &Context<'_>) -> Received {
        let hash = context.hash(name);
        if !self.has_asked_for_rules || self.has_all_rules || self.rules.contains(&hash) {
            return Received::Redundant;
        }
        if self.rules.len() >= MAX_RULES || name.is_empty() || name.len() > MAX_RULE_NAME {
            return Received::Redundant;
        }
        self.rules.push(hash);
        self.last_rule.clear();
        self.last_rule.extend_from_slice(name);
        Received::accepted(Requests::of(RULE))
    }
}

/// Maximum number of changes of the number of players during a query.
const MAX_RECOUNTS: u8 = 16;

impl QueryProtocol for Quake1 {
    const MAX_DATAGRAM: usize = quake1::MAX_DATAGRAM;
    const HAS_TOKEN: bool = false;
    const FALLBACK: Requests = Requests::of(HEXEN_SERVER);
    /// One per player and per rule is what it takes; the numbers of both are limited.
    const MAX_FOLLOW_UPS: u8 = u8::MAX;

    type State = Progress;

    fn outstanding(progress: &Progress, detail: Detail) -> Requests {
        if progress.expected.is_none() {
            return Requests::of(SERVER);
        }
        if detail != Detail::Players {
            return Requests::NONE;
        }
        let players = Progress::player_requests(progress.lacking(0), PLAYERS_AT_A_TIME);
        players.with(Requests::only_if(RULE, !progress.has_all_rules))
    }

    /// The number of players may have changed: a request for players is accompanied by one for their number.
    fn attempt(progress: &Progress, detail: Detail) -> Requests {
        Self::outstanding(progress, detail).with(Requests::of(SERVER))
    }

    fn emit(progress: Option<&mut Progress>, request: Request, _token: impl FnOnce() -> Token, out: &mut Vec<u8>) {
        match (request, progress) {
            (HEXEN_SERVER, _) => quake1::Request::HexenServer.emit(out),
            (SERVER, _) | (_, None) => quake1::Request::Server.emit(out),
            (RULE, Some(progress)) => {
                progress.has_asked_for_rules = true;
                quake1::Request::RuleAfter(&progress.last_rule).emit(out);
            }
            (_, Some(progress)) => {
                let next = progress.lacking(progress.cursor).next().or_else(|| progress.lacking(0).next());
                match next {
                    Some(number) => {
                        progress.cursor = number.saturating_add(1);
                        quake1::Request::Player(number).emit(out);
                    }
                    // All have arrived since this request was queued.
                    None => quake1::Request::Server.emit(out),
                }
            }
        }
    }

    fn handle(
        progress: &mut Progress,
        datagram: &[u8],
        detail: Detail,
        context: &Context<'_>,
    ) -> Result<Received, DecodeError> {
        Ok(match Response::parse(datagram)? {
            Response::Server(server) => progress.accept_server(&server, detail),
            Response::Player(player) => progress.accept_player(player.number),
            Response::Rule(Some((name, _))) => progress.accept_rule(name, context),
            Response::Rule(None) if progress.has_asked_for_rules && !progress.has_all_rules => {
                progress.has_all_rules = true;
                Received::accepted(Requests::NONE)
            }
            Response::Rule(None) => Received::Redundant,
        })
    }

    fn is_query(quoted: &[u8]) -> bool {
        quake1::Request::parse(quoted).is_some()
    }

    fn finish(progress: &Progress, detail: Detail, raw: &RawReply) -> (ServerInfo, Vec<MissingPart>) {
        let mut missing = Vec::new();
        let lacking = progress.lacking(0).count() as u16;
        if detail == Detail::Players && lacking > 0 {
            let expected = progress.expected.map(u16::from);
            missing.push(MissingPart::Players { received: expected.unwrap_or(0) - lacking, expected });
        }
        if detail == Detail::Players && !progress.has_all_rules {
            missing.push(MissingPart::Part("rules"));
        }
        (server_info(progress, detail, raw), missing)
    }
}

/// The common view of the replies that have arrived.
fn server_info(progress: &Progress, detail: Detail, raw: &RawReply) -> ServerInfo {
    let mut info = ServerInfo { game: Some("quake".into()), game_name: Some("Quake".into()), ..ServerInfo::default() };
    let mut players = BTreeMap::new();
    for response in raw.datagrams().flat_map(Response::parse) {
        match response {
            Response::Server(server) => {
                let is_hexen = server.version >= quake1::HEXEN_VERSION;
                let (game, name) = if is_hexen { ("hexen2", "Hexen II") } else { ("quake", "Quake") };
                info.game = Some(game.into());
                info.game_name = Some(name.into());
                info.name = Some(quake::to_text_without_colours(server.name));
                info.map = Some(quake::to_text_without_colours(server.map));
                info.players = Some(server.players.into());
                info.max_players = Some(server.max_players.into());
                let own = Extension::from([("protocol", server.version.into())]);
                info.extensions.insert(Protocol::Quake1, own);
            }
            Response::Player(player) => drop(players.insert(player.number, player)),
            Response::Rule(Some((name, value))) => {
                info.rules.insert(quake::to_text_without_colours(name), quake::to_text_without_colours(value));
            }
            Response::Rule(None) => {}
        }
    }
    let is_on =
        |rule: &str| info.rules.get(rule).and_then(|value| value.parse().ok()).is_some_and(|value: f32| value > 0.0);
    let is_team_game = is_on("teamplay");
    info.mode = [("coop", "Cooperative"), ("deathmatch", "Deathmatch")]
        .into_iter()
        .find(|(rule, _)| is_on(rule))
        .map(|(_, mode)| mode.to_owned());
    let bots = players.values().filter(|player| player.address == BOT).count() as u16;
    if bots > 0 {
        info.bots = Some(bots);
        info.players = info.players.map(|players| players.saturating_sub(bots));
    }
    if detail == Detail::Players {
        // Of players that left during the query, those with the highest numbers may be there twice.
        let is_there = |number: &u8| *number < progress.expected.unwrap_or(0);
        let listed: Vec<_> = players.values().filter(|player| is_there(&player.number)).collect();
        if is_team_game {
            info.teams = teams(listed.iter().map(|player| player.bottom));
        }
        info.player_list = Some(listed.into_iter().map(|player| shown(player, is_team_game)).collect());
    }
    info
}

/// Address of a bot in DarkPlaces.
const BOT: &[u8] = b"botclient";

fn shown(player: &quake1::Player<'_>, is_team_game: bool) -> Player {
    Player {
        name: quake::to_text_without_colours(player.name),
        team: is_team_game.then_some(player.bottom),
        score: Some(player.frags),
        duration_s: player.seconds.try_into().ok(),
        ..Player::default()
    }
}

/// A team consists of the players with the same trousers.
fn teams(colours: impl Iterator<Item = u8>) -> Vec<Team> {
    let mut numbers: Vec<u8> = colours.collect();
    numbers.sort_unstable();
    numbers.dedup();
    let team = |number: u8| {
        let (name, color) = quake::colour(number);
        Team { id: number, name: name.to_owned(), ranked: false, color }
    };
    numbers.into_iter().map(team).collect()
}
