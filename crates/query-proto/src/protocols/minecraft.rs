//! Minecraft: Java Edition: the ping of its server list, and those of servers before 1.7, each over a connection of its own.

mod mods;
#[cfg(test)]
mod tests;

use super::json;
use crate::{
    Extension, ExtensionValue, MissingPart, Player, RawReply, ServerInfo,
    exchange::{Context, QueryProtocol, Received, Request, Requests, Token, Transport},
};
use rallypoint_wire::{
    DecodeError, DecodeErrorKind,
    query::{
        Detail, Protocol,
        minecraft::{self, LegacyStatus, parse_status, strip_formatting},
    },
};
use serde_json::Value;
use std::net::SocketAddr;

/// The ping of Minecraft: Java Edition.
pub(crate) struct Minecraft;

const STATUS: Request = Request(0);
const LEGACY: Request = Request(1);
const BETA: Request = Request(2);

/// Which ping was sent, and what the reply to it says.
#[derive(Debug, Default)]
pub(crate) struct Ping {
    server: Option<SocketAddr>,
    /// Whether the latest connection began with a ping before 1.7.
    is_legacy: bool,
    reply: Option<Box<ServerInfo>>,
}

impl QueryProtocol for Minecraft {
    const TRANSPORT: Transport = Transport::Tcp;
    /// Twice that of the longest string of the game; that of a server with a thousand mods.
    const MAX_DATAGRAM: usize = 256 << 10;
    const HAS_TOKEN: bool = false;

    type State = Ping;

    fn set_server(ping: &mut Ping, server: SocketAddr) {
        ping.server = Some(server);
    }

    fn outstanding(ping: &Ping, _detail: Detail) -> Requests {
        Requests::only_if(STATUS, ping.reply.is_none())
    }

    /// A server that closes the connection, or does not answer, may be an old one.
    fn reconnect(ping: &Ping, _detail: Detail, connection: u8) -> Requests {
        match connection {
            _ if ping.reply.is_some() => Requests::NONE,
            1 => Requests::of(LEGACY),
            2 => Requests::of(BETA),
            _ => Requests::NONE,
        }
    }

    fn emit(ping: Option<&mut Ping>, request: Request, _token: impl FnOnce() -> Token, out: &mut Vec<u8>) {
        let Some(ping) = ping else { return };
        ping.is_legacy = request != STATUS;
        let (server, port) = match ping.server {
            Some(server) => (server.ip().to_canonical().to_string(), server.port()),
            None => (String::new(), minecraft::PORT),
        };
        match request {
            STATUS => minecraft::Request::Status { server: &server, port },
            LEGACY => minecraft::Request::Legacy { server: &server, port },
            _ => minecraft::Request::Beta,
        }
        .emit(out);
    }

    fn frame(ping: &Ping, received: &[u8]) -> Result<Option<usize>, DecodeError> {
        if ping.is_legacy {
            LegacyStatus::packet_length(received)
        } else {
            minecraft::packet_length(received, Self::MAX_DATAGRAM)
        }
    }

    fn handle(
        ping: &mut Ping,
        packet: &[u8],
        _detail: Detail,
        _context: &Context<'_>,
    ) -> Result<Received, DecodeError> {
        let info = if ping.is_legacy {
            legacy_info(&LegacyStatus::parse(packet)?)
        } else {
            status_info(&json::parse(parse_status(packet)?, "status")?)?
        };
        ping.reply = Some(Box::new(info));
        Ok(Received::accepted(Requests::NONE))
    }

    fn finish(ping: &Ping, detail: Detail, _raw: &RawReply) -> (ServerInfo, Vec<MissingPart>) {
        let info = ping.reply.as_deref().cloned().unwrap_or_default();
        let mut missing = Vec::new();
        // A server names a few players, chosen at random, or none.
        let received = info.player_list.as_ref().map_or(0, Vec::len);
        if detail == Detail::Players && info.players.is_some_and(|players| usize::from(players) > received) {
            missing.push(MissingPart::Players { received: received as u16, expected: info.players });
        }
        (info, missing)
    }
}

/// The name of the server, which is the first line of its description, and all lines if there are several.
fn name_and_description(description: &str) -> (Option<String>, Option<String>) {
    let lines: Vec<String> = strip_formatting(description).lines().filter_map(json::show).collect();
    let all = (lines.len() > 1).then(|| lines.join(" "));
    (lines.into_iter().next(), all.as_deref().and_then(json::show))
}

fn legacy_info(status: &LegacyStatus) -> ServerInfo {
    let (name, description) = name_and_description(&status.description);
    // A negative number is none; one that does not fit is the largest that does.
    let count = |number: i32| u32::try_from(number).ok().map(|number| u16::try_from(number).unwrap_or(u16::MAX));
    let protocol = status.protocol.map_or(ExtensionValue::Unknown, ExtensionValue::from);
    ServerInfo {
        name,
        description,
        version: status.version.as_deref().and_then(|version| json::show(&strip_formatting(version))),
        players: count(status.players),
        max_players: count(status.max_players),
        player_list: (status.players == 0).then(Vec::new),
        extensions: [(Protocol::Minecraft, Extension::from([("protocol", protocol)]))].into(),
        ..game()
    }
}

fn game() -> ServerInfo {
    ServerInfo { game: Some("minecraft".into()), game_name: Some("Minecraft".into()), ..ServerInfo::default() }
}

/// The common view of a status.
fn status_info(status: &Value) -> Result<ServerInfo, DecodeError> {
    let is_status = ["version", "players", "description"].iter().any(|key| status.get(key).is_some());
    if !is_status {
        return Err(DecodeError { field: "status", kind: DecodeErrorKind::Invalid });
    }
    let mut description = String::new();
    push_text(&status["description"], &mut description);
    let (name, description) = name_and_description(&description);
    let players = &status["players"];
    let version = &status["version"];
    let online = json::count(&players["online"]);
    let switch = |key: &str| status[key].as_bool().map_or(ExtensionValue::Unknown, ExtensionValue::from);
    let protocol = json::number(&version["protocol"]).map_or(ExtensionValue::Unknown, ExtensionValue::from);
    let fields = [
        ("protocol", protocol),
        ("has_icon", status["favicon"].is_string().into()),
        ("enforces_secure_chat", switch("enforcesSecureChat")),
        ("prevents_chat_reports", switch("preventsChatReports")),
    ];
    Ok(ServerInfo {
        name,
        description,
        version: version["name"].as_str().and_then(|name| json::show(&strip_formatting(name))),
        players: online,
        max_players: json::count(&players["max"]),
        mods: mods::mods(status),
        player_list: player_list(players, online),
        extensions: [(Protocol::Minecraft, Extension::from(fields))].into(),
        ..game()
    })
}

/// The players that are named. Entries without an identity are no players: lines of advertising, or players who do not want to be
/// named.
fn player_list(players: &Value, online: Option<u16>) -> Option<Vec<Player>> {
    const NOBODY: &str = "00000000-0000-0000-0000-000000000000";
    let sample = players["sample"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_player = |entry: &&Value| entry["id"].as_str().is_some_and(|id| id != NOBODY);
    let name = |entry: &Value| json::show(&strip_formatting(entry["name"].as_str()?));
    let list: Vec<Player> = sample
        .iter()
        .filter(is_player)
        .filter_map(name)
        .take(online.unwrap_or(u16::MAX).into())
        .map(|name| Player { name, ..Player::default() })
        .collect();
    (!list.is_empty() || online == Some(0)).then_some(list)
}

/// Maximum length of a description with its formatting codes, in bytes.
const MAX_DESCRIPTION: usize = 16 << 10;

/// Appends the text of a component: a text, a list of components, or an object with a text and further components.
fn push_text(component: &Value, out: &mut String) {
    if out.len() > MAX_DESCRIPTION {
        return;
    }
    match component {
        Value::String(text) => out.push_str(text),
        Value::Array(parts) => parts.iter().for_each(|part| push_text(part, out)),
        Value::Object(fields) => {
            // A text in the player's language, of which only the key is known here.
            let text = fields.get("text").or_else(|| fields.get("fallback")).or_else(|| fields.get("translate"));
            for part in [text, fields.get("extra")].into_iter().flatten() {
                push_text(part, out);
            }
        }
        _ => {}
    }
}
