//! Quake 2 and games on its engine: `status` for all settings and the players, `info` for one line.
//!
//! No value of a query is repeated in the reply, so that anyone who can forge the address of a server can forge its reply. A
//! status is enough, unless it is so long that the engine may have left out players: then the number in the info counts. A server
//! that does not answer `status` is asked for the info only.

#[cfg(test)]
mod tests;

use crate::{
    Extension, ExtensionValue, MissingPart, Player, RawReply, ServerInfo,
    exchange::{Context, QueryProtocol, Received, Request, Requests, Token},
};
use rallypoint_wire::{
    DecodeError, DecodeErrorKind,
    query::{
        Detail, Protocol, quake,
        quake2::{self, Info, Response, Status},
        quake3::InfoString,
    },
};

/// The query protocol of Quake 2.
pub(crate) struct Quake2;

const INFO: Request = Request(0);
const STATUS: Request = Request(1);

/// Which replies have arrived.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    has_info: bool,
    has_status: bool,
    /// Whether the status may lack players.
    needs_count: bool,
}

impl QueryProtocol for Quake2 {
    const MAX_DATAGRAM: usize = quake2::MAX_DATAGRAM;
    const HAS_TOKEN: bool = false;
    const FALLBACK: Requests = Requests::of(INFO);

    type State = Progress;

    fn outstanding(progress: &Progress, detail: Detail) -> Requests {
        let has_any = progress.has_info || progress.has_status;
        let needs_status = !progress.has_status && (detail != Detail::Presence || !has_any);
        let needs_info = progress.needs_count && !progress.has_info && detail == Detail::Players;
        Requests::only_if(INFO, needs_info).with(Requests::only_if(STATUS, needs_status))
    }

    fn emit(_progress: Option<&mut Progress>, request: Request, _token: impl FnOnce() -> Token, out: &mut Vec<u8>) {
        if request == INFO { quake2::Request::Info } else { quake2::Request::Status }.emit(out);
    }

    fn handle(
        progress: &mut Progress,
        datagram: &[u8],
        detail: Detail,
        _context: &Context<'_>,
    ) -> Result<Received, DecodeError> {
        let has_arrived = match Response::parse(datagram)? {
            Response::Info(_) => &mut progress.has_info,
            Response::Status(_) => {
                progress.needs_count = datagram.len() >= quake2::MAY_LACK_PLAYERS;
                &mut progress.has_status
            }
        };
        if std::mem::replace(has_arrived, true) {
            return Ok(Received::Redundant);
        }
        let next = if progress.has_status { Self::outstanding(progress, detail) } else { Requests::NONE };
        Ok(Received::accepted(next))
    }

    fn is_query(quoted: &[u8]) -> bool {
        quake2::Request::parse(quoted).is_some()
    }

    fn finish(progress: &Progress, detail: Detail, raw: &RawReply) -> (ServerInfo, Vec<MissingPart>) {
        let mut info = None;
        let mut status = None;
        for response in raw.datagrams().flat_map(Response::parse) {
            match response {
                Response::Info(found) => info = Some(found),
                Response::Status(found) => status = Some(found),
            }
        }
        let server = server_info(info, status);
        let mut missing = Vec::new();
        if !progress.has_status && detail != Detail::Presence {
            missing.push(MissingPart::Part("status (settings and players)"));
        }
        let received = server.player_list.as_ref().map_or(0, Vec::len) as u16;
        match server.players {
            Some(players) if status.is_some() && players > received => {
                missing.push(MissingPart::Players { received, expected: Some(players) });
            }
            _ if Self::outstanding(progress, detail) == Requests::of(INFO) => {
                missing.push(MissingPart::Part("info (number of players)"));
            }
            _ => {}
        }
        let errors = status.iter().flat_map(Status::players).filter_map(Result::err);
        missing.extend(errors.filter(|error| error.kind == DecodeErrorKind::Truncated).map(MissingPart::Truncated));
        (server, missing)
    }
}

/// The common view of the replies that have arrived.
fn server_info(info: Option<Info<'_>>, status: Option<Status<'_>>) -> ServerInfo {
    let settings = status.map(|status| status.settings);
    let text = |keys: &[&str]| {
        let value = keys.iter().find_map(|key| settings?.get(key).filter(|value| !value.is_empty()));
        value.map(quake::to_text)
    };
    let number = |key: &str| -> Option<u16> { str::from_utf8(settings?.get(key)?).ok()?.trim().parse().ok() };
    let state = info.and_then(|info| info.state);
    let list: Option<Vec<Player>> = status.map(|status| status.players().flatten().map(player).collect());
    let listed = list.as_ref().map(|list| list.len() as u16);
    ServerInfo {
        name: text(&["hostname", "sv_hostname"]).or_else(|| info.map(|info| quake::to_text(info.name))),
        game: text(&["gamedir", "game", "gamename"]),
        mode: mode(&number).map(str::to_owned),
        map: text(&["mapname"]).or_else(|| state.map(|state| quake::to_text(state.map))),
        version: text(&["version"]),
        website: text(&["website", "sv_website", "url"]),
        // The second bit is for spectators.
        password: number("needpass").map(|needpass| needpass & 1 != 0),
        players: state.map(|state| state.players).max(listed),
        max_players: number("maxclients").or(state.map(|state| state.max_players)),
        player_list: list,
        rules: settings.into_iter().flat_map(|settings| rules(settings)).collect(),
        extensions: [(Protocol::Quake2, extension(number("protocol")))].into(),
        ..ServerInfo::default()
    }
}

/// The mode by the settings of Quake 2 itself.
fn mode(number: &dyn Fn(&str) -> Option<u16>) -> Option<&'static str> {
    let is_on = |key| number(key).map(|value| value != 0);
    match (is_on("ctf"), is_on("coop"), is_on("deathmatch")) {
        (Some(true), ..) => Some("Capture The Flag"),
        (_, Some(true), _) => Some("Cooperative"),
        (.., Some(true)) => Some("Deathmatch"),
        _ => None,
    }
}

fn extension(protocol: Option<u16>) -> Extension {
    Extension::from([("protocol", protocol.map_or(ExtensionValue::Unknown, ExtensionValue::from))])
}

fn player(line: quake2::PlayerLine<'_>) -> Player {
    Player { name: quake::to_text(line.name), score: Some(line.frags), ping_ms: Some(line.ping), ..Player::default() }
}

fn rules(settings: InfoString<'_>) -> impl Iterator<Item = (String, String)> {
    settings.iter().map(|(key, value)| (quake::to_text(key), quake::to_text(value)))
}
