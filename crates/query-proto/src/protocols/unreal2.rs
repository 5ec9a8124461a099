//! The Unreal Engine 2: the server first, then its rules and its players, which take any number of datagrams.
//!
//! Nothing says how many there are: the reply is complete when no more have arrived until the time of the next attempt. Replies
//! repeat nothing of their query.

#[cfg(test)]
mod tests;

use crate::{
    Extension, ExtensionValue, MissingPart, Mod, Player, RawReply, ServerInfo,
    exchange::{Context, QueryProtocol, Received, Request, Requests, Token},
};
use rallypoint_wire::{
    DecodeError,
    query::{
        Detail, Protocol,
        unreal2::{self, Info, Response, Text},
    },
};
use std::collections::BTreeMap;

/// The query protocol of the Unreal Engine 2.
pub(crate) struct Unreal2;

const INFO: Request = Request(0);
const RULES: Request = Request(1);
const PLAYERS: Request = Request(2);

/// Number of times that rules or players are requested of a server that does not send any.
const MAX_UNANSWERED: u8 = 6;

/// Number of times that players are requested of a server that lists fewer than it announces. Some never list all of them.
const MAX_INCOMPLETE: u8 = 3;

/// Maximum number of datagrams of rules and of players that are kept: a hundred players take ten.
const MAX_PARTS: usize = 128;

/// What has been received of a reply so far.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    has_info: bool,
    has_rules: bool,
    has_players: bool,
    /// Number of players according to the info.
    expected: u32,
    /// Numbers of the players that were listed.
    listed: Vec<u32>,
    /// Hashes of the datagrams with rules and players: they may arrive again.
    parts: Vec<u64>,
    /// How often rules and players were requested.
    requested: [u8; 2],
}

impl QueryProtocol for Unreal2 {
    const MAX_DATAGRAM: usize = unreal2::MAX_DATAGRAM;
    const HAS_TOKEN: bool = false;

    type State = Progress;

    /// With rules, there may always be more: the last attempt, which is empty, ends the probe.
    fn outstanding(progress: &Progress, detail: Detail) -> Requests {
        let needs_lists = detail == Detail::Players;
        Requests::only_if(INFO, !progress.has_info).with(Requests::only_if(RULES, needs_lists))
    }

    fn attempt(progress: &Progress, detail: Detail) -> Requests {
        if !progress.has_info {
            return Requests::of(INFO);
        }
        let [rules, players] = progress.requested;
        let needs_rules = !progress.has_rules && rules < MAX_UNANSWERED;
        let limit = if progress.has_players { MAX_INCOMPLETE } else { MAX_UNANSWERED };
        let needs_players = progress.listed.len() < progress.expected as usize && players < limit;
        let is_wanted = detail == Detail::Players;
        Requests::only_if(RULES, is_wanted && needs_rules).with(Requests::only_if(PLAYERS, is_wanted && needs_players))
    }

    fn emit(progress: Option<&mut Progress>, request: Request, _token: impl FnOnce() -> Token, out: &mut Vec<u8>) {
        let index = match request {
            RULES => Some(0),
            PLAYERS => Some(1),
            _ => None,
        };
        if let (Some(progress), Some(index)) = (progress, index) {
            progress.requested[index] = progress.requested[index].saturating_add(1);
        }
        match request {
            RULES => unreal2::Request::Rules,
            PLAYERS => unreal2::Request::Players,
            _ => unreal2::Request::Info,
        }
        .emit(out);
    }

    fn handle(
        progress: &mut Progress,
        datagram: &[u8],
        detail: Detail,
        context: &Context<'_>,
    ) -> Result<Received, DecodeError> {
        let response = Response::parse(datagram)?;
        if let Response::Info(info) = response {
            if std::mem::replace(&mut progress.has_info, true) {
                return Ok(Received::Redundant);
            }
            progress.expected = info.players;
            return Ok(Received::accepted(Self::attempt(progress, detail)));
        }
        let hash = context.hash(datagram);
        if detail != Detail::Players || progress.parts.contains(&hash) || progress.parts.len() == MAX_PARTS {
            return Ok(Received::Redundant);
        }
        progress.parts.push(hash);
        if let Response::Players(players) = response {
            progress.has_players = true;
            for player in players.iter().flatten().filter(|player| player.id != 0) {
                if !progress.listed.contains(&player.id) {
                    progress.listed.push(player.id);
                }
            }
        } else {
            progress.has_rules = true;
        }
        Ok(Received::accepted(Requests::NONE))
    }

    fn is_query(quoted: &[u8]) -> bool {
        unreal2::Request::parse(quoted).is_some()
    }

    fn finish(progress: &Progress, detail: Detail, raw: &RawReply) -> (ServerInfo, Vec<MissingPart>) {
        let mut server = ServerInfo::default();
        let mut missing = Vec::new();
        let mut cut = None;
        let mut rules = BTreeMap::new();
        let mut players = BTreeMap::new();
        for response in raw.datagrams().flat_map(Response::parse) {
            match response {
                Response::Info(info) => server = of_info(&info),
                Response::Rules(list) => {
                    cut = cut.or(list.iter().find_map(Result::err));
                    for (name, value) in list.iter().flatten() {
                        add_rule(name, value, &mut server.mods, &mut rules);
                    }
                }
                Response::Players(list) => {
                    cut = cut.or(list.iter().find_map(Result::err));
                    for player in list.iter().flatten().filter(|player| player.id != 0) {
                        // Of a player who was listed several times, the latest state.
                        players.insert(player.id, of_player(&player));
                    }
                }
            }
        }
        if !progress.has_info && detail != Detail::Presence {
            missing.push(MissingPart::Part("the server's description"));
        }
        if detail == Detail::Players {
            if !progress.has_rules {
                missing.push(MissingPart::Part("the rules"));
            }
            let received = u16::try_from(players.len()).unwrap_or(u16::MAX);
            let expected = u16::try_from(progress.expected).unwrap_or(u16::MAX);
            if progress.has_info && received < expected {
                missing.push(MissingPart::Players { received, expected: Some(expected) });
            }
            missing.extend(cut.map(MissingPart::Truncated));
            let is_known = progress.has_players || (progress.has_info && progress.expected == 0);
            server.player_list = is_known.then(|| players.into_values().collect());
        }
        let rule =
            |name: &str| rules.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value);
        server.version = rule("ServerVersion").cloned();
        server.password = rule("GamePassword").map(|value| value.eq_ignore_ascii_case("true"));
        server.rules = rules;
        (server, missing)
    }
}

fn of_info(info: &Info<'_>) -> ServerInfo {
    let number = |number: u32| Some(u16::try_from(number).unwrap_or(u16::MAX));
    let text = |text: Text<'_>| (!text.is_empty()).then(|| text.display());
    let known = |value: Option<ExtensionValue>| value.unwrap_or(ExtensionValue::Unknown);
    let fields = [
        ("port", info.port.into()),
        ("skill", known(info.skill.and_then(text).map(Into::into))),
        ("wave", known(info.waves.map(|(wave, _)| wave.into()))),
        ("waves", known(info.waves.map(|(_, waves)| waves.into()))),
    ];
    ServerInfo {
        name: Some(info.name.display()),
        map: text(info.map),
        mode: text(info.game_type),
        players: number(info.players),
        max_players: number(info.max_players),
        extensions: [(Protocol::Unreal2, Extension::from(fields))].into(),
        ..ServerInfo::default()
    }
}

/// A rule `Mutator` occurs once for each mod.
fn add_rule(name: Text<'_>, value: Text<'_>, mods: &mut Vec<Mod>, rules: &mut BTreeMap<String, String>) {
    let (name, value) = (name.display(), value.display());
    if name.eq_ignore_ascii_case("Mutator") {
        let one = Mod { id: Some(value), name: None };
        if !mods.contains(&one) {
            mods.push(one);
        }
    } else if !name.is_empty() {
        rules.insert(name, value);
    }
}

fn of_player(player: &unreal2::Player<'_>) -> Player {
    Player {
        name: player.name.display(),
        team: player.team(),
        score: Some(player.score),
        ping_ms: i32::try_from(player.ping).ok(),
        ..Player::default()
    }
}
