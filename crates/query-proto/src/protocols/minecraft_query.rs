//! The query of Minecraft: Java Edition: a challenge, then settings, plugins and all players in one datagram.
//!
//! The number of the query, of which servers repeat 16 bits, and the challenge are both checked.

#[cfg(test)]
mod tests;

use super::json;
use crate::{
    Extension, ExtensionValue, MissingPart, Mod, Player, RawReply, ServerInfo,
    exchange::{Accepted, Context, QueryProtocol, Received, Request, Requests, Token},
};
use rallypoint_wire::{
    DecodeError,
    query::{
        Detail, Protocol,
        minecraft::strip_formatting,
        minecraft_query::{self, Response, Status},
    },
    text,
};

/// The query of Minecraft: Java Edition.
pub(crate) struct MinecraftQuery;

const CHALLENGE: Request = Request(0);
const STATUS: Request = Request(1);

/// What has arrived.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    challenge: Option<i32>,
    has_status: bool,
}

impl QueryProtocol for MinecraftQuery {
    const MAX_DATAGRAM: usize = minecraft_query::MAX_REPLY;
    const HAS_TOKEN: bool = true;

    type State = Progress;

    fn outstanding(progress: &Progress, detail: Detail) -> Requests {
        match (progress.challenge, progress.has_status) {
            (_, true) => Requests::NONE,
            (None, false) => Requests::of(CHALLENGE),
            (Some(_), false) => Requests::only_if(STATUS, detail != Detail::Presence),
        }
    }

    fn emit(progress: Option<&mut Progress>, request: Request, token: impl FnOnce() -> Token, out: &mut Vec<u8>) {
        let challenge = progress.and_then(|progress| progress.challenge).filter(|_| request == STATUS);
        minecraft_query::Request { session: session(token()), challenge }.emit(out);
    }

    fn handle(
        progress: &mut Progress,
        datagram: &[u8],
        detail: Detail,
        context: &Context<'_>,
    ) -> Result<Received, DecodeError> {
        let response = Response::parse(datagram)?;
        let Some(attempt) = context.attempt_with(|token| session(token) == response.session()) else {
            return Ok(Received::WrongToken);
        };
        let is_challenge = matches!(response, Response::Challenge { .. });
        match response {
            _ if progress.has_status => return Ok(Received::Redundant),
            Response::Challenge { challenge, .. } => {
                if progress.challenge.replace(challenge) == Some(challenge) {
                    return Ok(Received::Redundant);
                }
            }
            Response::Status { .. } => progress.has_status = true,
        }
        let is_transient = is_challenge && detail != Detail::Presence;
        let next = Requests::only_if(STATUS, is_transient);
        Ok(Received::Accepted(Accepted { attempt: Some(attempt), next, is_transient }))
    }

    fn finish(progress: &Progress, detail: Detail, raw: &RawReply) -> (ServerInfo, Vec<MissingPart>) {
        let mut missing = Vec::new();
        if !progress.has_status && detail != Detail::Presence {
            missing.push(MissingPart::Part("status (settings and players)"));
        }
        let responses = raw.datagrams().flat_map(Response::parse);
        let status = responses.filter_map(|response| match response {
            Response::Status { status, .. } => Some(status),
            Response::Challenge { .. } => None,
        });
        let Some(status) = status.last() else { return (ServerInfo::default(), missing) };
        if detail == Detail::Players {
            missing.extend(status.players().find_map(Result::err).map(MissingPart::Truncated));
        }
        (server_info(&status), missing)
    }
}

fn session(token: Token) -> [u8; 4] {
    minecraft_query::Request::session(token.short())
}

fn show(bytes: &[u8]) -> Option<String> {
    json::show(&strip_formatting(&text::display(bytes)))
}

fn server_info(status: &Status<'_>) -> ServerInfo {
    let get = |key: &str| status.get(key).and_then(show);
    // A count that does not fit is the largest that does; a negative one is none.
    let count = |key: &str| {
        let number: u64 = get(key)?.parse().ok()?;
        Some(u16::try_from(number).unwrap_or(u16::MAX))
    };
    let plugins = get("plugins").unwrap_or_default();
    let (software, plugins) = plugins.split_once(':').unwrap_or((&plugins, ""));
    let software = json::show(software).map_or(ExtensionValue::Unknown, ExtensionValue::from);
    let is_cut = status.players().any(|player| player.is_err());
    let list =
        status.players().flatten().map(|name| Player { name: show(name).unwrap_or_default(), ..Player::default() });
    let list: Vec<Player> = list.collect();
    ServerInfo {
        name: get("hostname"),
        game: Some("minecraft".into()),
        game_name: Some("Minecraft".into()),
        mode: get("gametype"),
        map: get("map"),
        version: get("version"),
        players: count("numplayers"),
        max_players: count("maxplayers"),
        mods: plugins.split(';').filter_map(json::show).map(plugin).collect(),
        player_list: (!is_cut || !list.is_empty()).then_some(list),
        rules: status
            .settings()
            .filter_map(|(key, value)| Some((show(key)?, show(value).unwrap_or_default())))
            .collect(),
        extensions: [(Protocol::MinecraftQuery, Extension::from([("software", software)]))].into(),
        ..ServerInfo::default()
    }
}

/// A plugin: its name and its version, with a space between them.
fn plugin(text: String) -> Mod {
    let id = text.split(' ').next().map(str::to_owned);
    Mod { name: Some(text).filter(|text| id.as_deref() != Some(text)), id }
}
