//! DOOM 3 and games on its engine: `getInfo`, whose reply has all settings and the players.
//!
//! The query contains two numbers that cannot be guessed. Servers repeat the first one, those of Quake Wars both: a reply
//! without it counts as forged.

#[cfg(test)]
mod tests;

use crate::{
    Extension, ExtensionValue, MissingPart, Player, RawReply, ServerInfo,
    exchange::{Accepted, Context, QueryProtocol, Received, Request, Requests, Token},
};
use rallypoint_wire::{
    DecodeError,
    query::{
        Detail, Protocol,
        doom3::{self, Contents, Reply, Tail, Version},
    },
    text,
};

/// The query protocol of DOOM 3.
pub(crate) struct Doom3;

/// The only request.
const INFO: Request = Request(0);

/// Whether the reply has arrived.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    has_reply: bool,
    /// Whether it repeats both numbers.
    has_challenge: bool,
}

impl QueryProtocol for Doom3 {
    const MAX_DATAGRAM: usize = doom3::MAX_MESSAGE;
    const HAS_TOKEN: bool = true;

    type State = Progress;

    fn outstanding(progress: &Progress, _detail: Detail) -> Requests {
        Requests::only_if(INFO, !progress.has_reply)
    }

    fn emit(_progress: Option<&mut Progress>, _request: Request, token: impl FnOnce() -> Token, out: &mut Vec<u8>) {
        doom3::emit_query(token().0, out);
    }

    fn handle(
        progress: &mut Progress,
        datagram: &[u8],
        _detail: Detail,
        context: &Context<'_>,
    ) -> Result<Received, DecodeError> {
        let reply = Reply::parse(datagram)?;
        let Some(attempt) = context.attempt_with(|token| token.short() == reply.task) else {
            return Ok(Received::WrongToken);
        };
        let [.., a, b, c, d] = context.token(attempt).0;
        let has_challenge = reply.has_challenge([a, b, c, d]);
        reply.contents(has_challenge)?;
        if std::mem::replace(&mut progress.has_reply, true) {
            return Ok(Received::Redundant);
        }
        progress.has_challenge = has_challenge;
        Ok(Received::Accepted(Accepted { attempt: Some(attempt), ..Accepted::default() }))
    }

    fn finish(progress: &Progress, detail: Detail, raw: &RawReply) -> (ServerInfo, Vec<MissingPart>) {
        let reply = raw.datagrams().next().map(Reply::parse);
        let contents = reply.and_then(|reply| reply.ok()?.contents(progress.has_challenge).ok());
        // There always is one: the datagram was parsed before it was stored.
        let Some(contents) = contents else { return Default::default() };
        let error = contents.players.err().filter(|_| detail == Detail::Players);
        (server_info(&contents, progress.has_challenge), error.map(MissingPart::Truncated).into_iter().collect())
    }
}

/// The game that a version of the protocol belongs to.
fn game_name(version: Version, is_quake_wars: bool) -> Option<&'static str> {
    match version.major {
        _ if is_quake_wars => Some("Enemy Territory: Quake Wars"),
        1 => Some("DOOM 3"),
        QUAKE4 => Some("Quake 4"),
        3 | 4 => Some("Prey"),
        10.. => Some("Wolfenstein"),
        _ => None,
    }
}

/// Version of the protocol in Quake 4.
const QUAKE4: u16 = 2;

fn server_info(contents: &Contents<'_>, is_quake_wars: bool) -> ServerInfo {
    let Contents { version, settings, players } = contents;
    let show = |bytes: &[u8]| text::display(&doom3::strip_colours(bytes, version.major == QUAKE4)).into_owned();
    let get = |keys: &[&str]| keys.iter().find_map(|key| settings.get(key).filter(|value| !value.is_empty()));
    let number = |keys: &[&str]| -> Option<u16> { str::from_utf8(get(keys)?).ok()?.trim().parse().ok() };
    let list: Option<Vec<_>> = players.ok().map(|players| players.iter().collect());
    let bots = list.as_ref().and_then(|list| {
        let knows_bots = list.iter().any(|player| player.is_bot.is_some());
        knows_bots.then(|| list.iter().filter(|player| player.is_bot == Some(true)).count() as u16)
    });
    let mode = get(&["si_gameType", "si_rules"]).map(show);
    ServerInfo {
        name: get(&["si_name"]).map(show),
        game: get(&["fs_game", "gamename"]).map(show),
        game_name: game_name(*version, is_quake_wars).map(str::to_owned),
        mode: mode.map(|mode| mode.strip_prefix("sdGameRules").map_or(mode.clone(), str::to_owned)),
        map: get(&["si_map"]).map(|map| plain_map(&show(map)).to_owned()),
        version: get(&["si_version"]).map(show),
        website: get(&["si_website"]).map(show),
        password: get(&["si_usePass", "si_needPass"]).map(|value| value != b"0"),
        players: list.as_ref().map(|list| (list.len() as u16).saturating_sub(bots.unwrap_or(0))),
        max_players: number(&["si_maxPlayers"]),
        bots,
        spectators: number(&["ri_numViewers"]),
        player_list: list.map(|list| {
            let shown = |player: doom3::Player<'_>| Player {
                name: show(player.name),
                ping_ms: Some(player.ping.into()),
                extension: Some(player.clan)
                    .filter(|clan| !clan.is_empty())
                    .map(|clan| ("clan", show(clan).into()))
                    .into_iter()
                    .collect(),
                ..Player::default()
            };
            list.into_iter().map(shown).collect()
        }),
        rules: settings.iter().map(|(key, value)| (show(key), show(value))).collect(),
        extensions: [(Protocol::Doom3, extension(*version, players.ok().and_then(|players| players.tail())))].into(),
        ..ServerInfo::default()
    }
}

/// The name of a map, which in Quake Wars is that of a file.
fn plain_map(map: &str) -> &str {
    let map = map.strip_suffix(".entities").unwrap_or(map);
    map.strip_prefix("maps/").unwrap_or(map)
}

fn extension(version: Version, tail: Option<Tail>) -> Extension {
    let time_left = tail.and_then(|tail| tail.time_left_ms);
    Extension::from([
        ("protocol", ExtensionValue::Text(format!("{}.{}", version.major, version.minor))),
        ("ranked", tail.map_or(ExtensionValue::Unknown, |tail| tail.is_ranked.into())),
        ("time_left_ms", time_left.map_or(ExtensionValue::Unknown, ExtensionValue::from)),
    ])
}
