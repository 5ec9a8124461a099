//! OpenTTD over TCP: the description of the game. A server names its players only to those who join.

#[cfg(test)]
mod tests;

use super::json;
use crate::{
    Extension, ExtensionValue, MissingPart, Mod, RawReply, ServerInfo,
    exchange::{Context, QueryProtocol, Received, Request, Requests, Token, Transport},
};
use rallypoint_wire::{
    DecodeError,
    query::{
        Detail, Protocol,
        openttd::{self, Date, Game, NewGrf},
    },
    text,
};

/// The query of OpenTTD over TCP.
pub(crate) struct OpenTtd;

const GAME: Request = Request(0);

/// Whether the description has arrived.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    has_game: bool,
}

impl QueryProtocol for OpenTtd {
    const TRANSPORT: Transport = Transport::Tcp;
    const MAX_DATAGRAM: usize = openttd::MAX_PACKET;
    const HAS_TOKEN: bool = false;

    type State = Progress;

    fn outstanding(progress: &Progress, _detail: Detail) -> Requests {
        Requests::only_if(GAME, !progress.has_game)
    }

    fn emit(_progress: Option<&mut Progress>, _request: Request, _token: impl FnOnce() -> Token, out: &mut Vec<u8>) {
        out.extend_from_slice(openttd::QUERY);
    }

    fn frame(_progress: &Progress, received: &[u8]) -> Result<Option<usize>, DecodeError> {
        openttd::frame(received)
    }

    fn handle(
        progress: &mut Progress,
        packet: &[u8],
        _detail: Detail,
        _context: &Context<'_>,
    ) -> Result<Received, DecodeError> {
        Game::parse(packet)?;
        progress.has_game = true;
        Ok(Received::accepted(Requests::NONE))
    }

    fn finish(_progress: &Progress, _detail: Detail, raw: &RawReply) -> (ServerInfo, Vec<MissingPart>) {
        let game = raw.datagrams().flat_map(Game::parse).next();
        (game.as_ref().map_or_else(ServerInfo::default, server_info), Vec::new())
    }
}

fn show(bytes: &[u8]) -> Option<String> {
    // Colours and other commands of the game are characters for private use.
    let text = text::display(bytes);
    json::show(&text.replace(|c| matches!(c, '\u{e000}'..='\u{f8ff}'), ""))
}

fn server_info(game: &Game<'_>) -> ServerInfo {
    let date = |date: Date| {
        let [year, month, day] = date.year_month_day();
        format!("{year:04}-{month:02}-{day:02}")
    };
    let landscape = openttd::LANDSCAPES.get(usize::from(game.landscape)).copied();
    let rules = [
        ("landscape", landscape.map(str::to_owned)),
        ("map_size", Some(format!("{}x{}", game.width, game.height))),
        ("date", Some(date(game.date))),
        ("start", Some(date(game.start))),
        ("game_script", show(game.script)),
    ];
    let number = |number: Option<u8>| number.map_or(ExtensionValue::Unknown, ExtensionValue::from);
    let fields = [
        ("companies", number(game.companies)),
        ("max_companies", number(game.max_companies)),
        ("dedicated", game.is_dedicated.into()),
    ];
    ServerInfo {
        name: show(game.name),
        game: Some("openttd".into()),
        game_name: Some("OpenTTD".into()),
        map: landscape.map(str::to_owned),
        version: show(game.revision),
        password: Some(game.password),
        players: Some(game.clients.saturating_sub(game.spectators).into()),
        max_players: Some(game.max_clients.into()),
        spectators: Some(game.spectators.into()),
        mods: game.extensions.iter().map(|grf| new_grf(&grf)).collect(),
        rules: rules.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect(),
        extensions: [(Protocol::OpenTtd, Extension::from(fields))].into(),
        ..ServerInfo::default()
    }
}

/// An extension, whose identifier is written in hexadecimal digits, as the game does.
fn new_grf(grf: &NewGrf<'_>) -> Mod {
    Mod { id: Some(format!("{:08x}", u32::from_be_bytes(grf.id))), name: grf.name.and_then(show) }
}
