//! Minecraft: Bedrock Edition: the ping that its clients send to the servers of their list. There is no list of players.

#[cfg(test)]
mod tests;

use super::json;
use crate::{
    Extension, ExtensionValue, MissingPart, RawReply, ServerInfo,
    exchange::{Accepted, Context, Query, QueryProtocol, QueryToken, Received, Request, Requests, Token},
    responder::Datagrams,
};
use rallypoint_wire::{
    DecodeError, DecodeErrorKind,
    query::{
        Detail, Protocol,
        bedrock::{self, Ping, Pong},
        minecraft::strip_formatting,
    },
    text,
};

/// The ping of Minecraft: Bedrock Edition.
pub(crate) struct Bedrock;

const PING: Request = Request(0);

/// Whether the reply has arrived.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    has_pong: bool,
}

impl QueryProtocol for Bedrock {
    const MAX_DATAGRAM: usize = bedrock::MAX_PONG;
    const HAS_TOKEN: bool = true;
    const HAS_RESPONDER: bool = true;

    type State = Progress;

    fn outstanding(progress: &Progress, _detail: Detail) -> Requests {
        Requests::only_if(PING, !progress.has_pong)
    }

    fn emit(_progress: Option<&mut Progress>, _request: Request, token: impl FnOnce() -> Token, out: &mut Vec<u8>) {
        let Token(time) = token();
        Ping { time, client: time }.emit(out);
    }

    fn handle(
        progress: &mut Progress,
        datagram: &[u8],
        _detail: Detail,
        context: &Context<'_>,
    ) -> Result<Received, DecodeError> {
        let pong = Pong::parse(datagram)?;
        let Some(attempt) = context.attempt_with(|token| token.0 == pong.time) else { return Ok(Received::WrongToken) };
        // Other games on RakNet have statuses of their own.
        let is_minecraft = pong.fields().next().is_some_and(|edition| matches!(edition, b"MCPE" | b"MCEE"));
        if !is_minecraft {
            return Err(DecodeError { field: "edition", kind: DecodeErrorKind::Unknown });
        }
        if std::mem::replace(&mut progress.has_pong, true) {
            return Ok(Received::Redundant);
        }
        Ok(Received::Accepted(Accepted { attempt: Some(attempt), ..Accepted::default() }))
    }

    fn finish(_progress: &Progress, _detail: Detail, raw: &RawReply) -> (ServerInfo, Vec<MissingPart>) {
        let pong = raw.datagrams().flat_map(Pong::parse).next();
        (pong.as_ref().map_or_else(ServerInfo::default, server_info), Vec::new())
    }

    fn replies(info: &ServerInfo) -> Vec<Datagrams> {
        let status = status(info);
        let mut datagrams = Datagrams::default();
        datagrams.push(|out| Pong { time: [0; 8], server: identity(info), status: status.as_bytes() }.emit(out));
        vec![datagrams]
    }

    fn queries(datagram: &[u8], mut answer: impl FnMut(Query) -> bool) -> bool {
        let Some(Ping { time, .. }) = Ping::parse(datagram) else { return false };
        let Some(token) = QueryToken::new(&time) else { return false };
        answer(Query { kind: 0, token, growth: 0 });
        true
    }

    fn insert_token(token: &[u8], start: usize, out: &mut Vec<u8>) {
        if let Some(time) = out[start..].get_mut(bedrock::TIME) {
            time.copy_from_slice(token);
        }
    }
}

fn server_info(pong: &Pong<'_>) -> ServerInfo {
    let mut fields = pong.fields().map(|field| text::display(field).replace("\\;", ";"));
    let mut next = || fields.next().unwrap_or_default();
    let show = |text: String| json::show(&strip_formatting(&text));
    let number = |text: String| text.trim().parse::<i64>().map_or(ExtensionValue::Unknown, ExtensionValue::from);
    // A count that does not fit is the largest that does.
    let count = |text: String| text.trim().parse::<u64>().ok().map(|number| u16::try_from(number).unwrap_or(u16::MAX));
    let edition = next();
    let name = show(next());
    let protocol = number(next());
    let version = show(next());
    let players = count(next());
    let max_players = count(next());
    let server = next();
    let map = show(next());
    let mode = show(next());
    let mode_number = number(next());
    let port = number(next());
    let port_v6 = number(next());
    let game_name = if edition == "MCEE" { "Minecraft Education" } else { "Minecraft: Bedrock Edition" };
    let extension = [
        ("edition", edition.into()),
        ("protocol", protocol),
        ("server_id", json::show(&server).map_or(ExtensionValue::Unknown, ExtensionValue::from)),
        ("mode_number", mode_number),
        ("port", port),
        ("port_v6", port_v6),
    ];
    ServerInfo {
        name,
        game: Some("bedrock".into()),
        game_name: Some(game_name.into()),
        mode,
        map,
        version,
        players,
        max_players,
        extensions: [(Protocol::Bedrock, Extension::from(extension))].into(),
        ..ServerInfo::default()
    }
}

/// Maximum length of a text in a reply, in bytes.
const MAX_TEXT: usize = 200;

/// Protocol number of 1.20, if a game gives none: clients show the server in any case.
const DEFAULT_PROTOCOL: u32 = 589;

fn status(info: &ServerInfo) -> String {
    // A semicolon ends a field.
    let field = |text: Option<&String>, otherwise: &str| {
        let text = text.map_or(otherwise, |text| &text[..text.floor_char_boundary(MAX_TEXT)]);
        text.replace([';', '\\'], ",")
    };
    let extension = info.extensions.get(&Protocol::Bedrock);
    let protocol = extension.and_then(|extension| extension.number("protocol")).unwrap_or(DEFAULT_PROTOCOL);
    let server = u64::from_be_bytes(identity(info));
    format!(
        "MCPE;{};{protocol};{};{};{};{server};{};{};",
        field(info.name.as_ref(), ""),
        field(info.version.as_ref(), "1.20"),
        info.players.unwrap_or(0),
        info.max_players.unwrap_or(0),
        field(info.map.as_ref(), ""),
        field(info.mode.as_ref(), "Survival"),
    )
}

/// Tells servers apart: a hash of the name (FNV-1a).
fn identity(info: &ServerInfo) -> [u8; 8] {
    let name = info.name.as_deref().unwrap_or_default();
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    hash.to_be_bytes()
}
