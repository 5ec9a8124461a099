//! FiveM and RedM: three documents over HTTP, each of which a server may refuse.

#[cfg(test)]
mod tests;

use super::json;
use crate::{
    Extension, ExtensionValue, MissingPart, Mod, Player, RawReply, ServerInfo,
    exchange::{Context, QueryProtocol, Received, Request, Requests, Token, Transport},
};
use rallypoint_wire::{
    DecodeError, DecodeErrorKind,
    query::{
        Detail, Protocol,
        fivem::{self, strip_colours},
    },
};
use serde_json::Value;

/// The documents of FiveM.
pub(crate) struct FiveM;

const DYNAMIC: Request = Request(0);
const INFO: Request = Request(1);
const PLAYERS: Request = Request(2);

/// What the documents that have arrived say.
#[derive(Debug, Default)]
pub(crate) struct Documents {
    dynamic: Option<Box<Dynamic>>,
    info: Option<Box<Info>>,
    players: Option<Vec<Player>>,
}

#[derive(Debug)]
struct Dynamic {
    name: Option<String>,
    mode: Option<String>,
    map: Option<String>,
    players: Option<u16>,
    max_players: Option<u16>,
}

#[derive(Debug)]
struct Info {
    version: Option<String>,
    rules: Vec<(String, String)>,
    resources: Vec<Mod>,
}

impl QueryProtocol for FiveM {
    const TRANSPORT: Transport = Transport::Http;
    /// Two thousand players with their identifiers.
    const MAX_DATAGRAM: usize = 768 << 10;
    const HAS_TOKEN: bool = false;

    type State = Documents;

    fn outstanding(documents: &Documents, detail: Detail) -> Requests {
        let needs_dynamic = documents.dynamic.is_none() && (detail != Detail::Presence || documents.info.is_none());
        Requests::only_if(DYNAMIC, needs_dynamic)
            .with(Requests::only_if(INFO, documents.info.is_none() && detail != Detail::Presence))
            .with(Requests::only_if(PLAYERS, documents.players.is_none() && detail == Detail::Players))
    }

    fn emit(_documents: Option<&mut Documents>, request: Request, _token: impl FnOnce() -> Token, out: &mut Vec<u8>) {
        let path = match request {
            DYNAMIC => fivem::DYNAMIC,
            INFO => fivem::INFO,
            _ => fivem::PLAYERS,
        };
        out.extend_from_slice(path.as_bytes());
    }

    fn handle(
        documents: &mut Documents,
        body: &[u8],
        _detail: Detail,
        context: &Context<'_>,
    ) -> Result<Received, DecodeError> {
        match context.request {
            Some(DYNAMIC) => documents.dynamic = Some(Box::new(dynamic(&json::parse(body, "dynamic.json")?)?)),
            Some(INFO) => documents.info = Some(Box::new(info(&json::parse(body, "info.json")?)?)),
            Some(PLAYERS) => documents.players = Some(players(&json::parse(body, "players.json")?)?),
            _ => return Ok(Received::Foreign),
        }
        Ok(Received::accepted(Requests::NONE))
    }

    fn finish(documents: &Documents, detail: Detail, _raw: &RawReply) -> (ServerInfo, Vec<MissingPart>) {
        let Documents { dynamic, info, players } = documents;
        let mut missing = Vec::new();
        if dynamic.is_none() && detail != Detail::Presence {
            missing.push(MissingPart::Part("dynamic.json"));
        }
        if info.is_none() && detail != Detail::Presence {
            missing.push(MissingPart::Part("info.json (settings)"));
        }
        if players.is_none() && detail == Detail::Players {
            missing.push(MissingPart::Part("players.json"));
        }
        let mut server = ServerInfo { player_list: players.clone(), ..ServerInfo::default() };
        server.players = players.as_ref().map(|players| u16::try_from(players.len()).unwrap_or(u16::MAX));
        if let Some(info) = info {
            apply_info(info, &mut server);
        }
        if let Some(Dynamic { name, mode, map, players, max_players }) = dynamic.as_deref() {
            server.name = name.clone().or(server.name);
            server.mode.clone_from(mode);
            server.map.clone_from(map);
            server.players = players.or(server.players);
            server.max_players = max_players.or(server.max_players);
        }
        (server, missing)
    }
}

fn invalid(field: &'static str) -> DecodeError {
    DecodeError { field, kind: DecodeErrorKind::Invalid }
}

fn show(value: &Value) -> Option<String> {
    json::show(&strip_colours(value.as_str()?))
}

fn dynamic(document: &Value) -> Result<Dynamic, DecodeError> {
    if document.get("hostname").or_else(|| document.get("clients")).is_none() {
        return Err(invalid("dynamic.json"));
    }
    Ok(Dynamic {
        name: show(&document["hostname"]),
        mode: show(&document["gametype"]),
        map: show(&document["mapname"]),
        players: json::count(&document["clients"]),
        max_players: json::count(&document["sv_maxclients"]),
    })
}

fn info(document: &Value) -> Result<Info, DecodeError> {
    if document.get("vars").or_else(|| document.get("resources")).is_none() {
        return Err(invalid("info.json"));
    }
    let text = |value: &Value| match value {
        Value::String(text) => Some(json::show(&strip_colours(text)).unwrap_or_default()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    };
    let vars = document["vars"].as_object().into_iter().flatten();
    let resources = document["resources"].as_array().map(Vec::as_slice).unwrap_or_default();
    Ok(Info {
        version: show(&document["server"]),
        rules: vars.filter_map(|(name, value)| Some((json::show(name)?, text(value)?))).collect(),
        resources: resources.iter().filter_map(|name| Some(Mod { id: Some(show(name)?), name: None })).collect(),
    })
}

fn players(document: &Value) -> Result<Vec<Player>, DecodeError> {
    let list = document.as_array().ok_or(invalid("players.json"))?;
    let player = |entry: &Value| {
        entry.is_object().then(|| Player {
            name: show(&entry["name"]).unwrap_or_default(),
            ping_ms: json::number(&entry["ping"]).and_then(|ping| ping.try_into().ok()),
            ..Player::default()
        })
    };
    Ok(list.iter().filter_map(player).collect())
}

fn apply_info(info: &Info, server: &mut ServerInfo) {
    server.version.clone_from(&info.version);
    server.rules = info.rules.iter().cloned().collect();
    server.mods.clone_from(&info.resources);
    let rule = |name: &str| server.rules.get(name).filter(|value| !value.is_empty());
    let game = rule("gamename").cloned();
    let is_redm = game.as_deref() == Some("rdr3");
    let build = rule("sv_enforceGameBuild").and_then(|build| build.parse::<u32>().ok());
    let onesync = rule("onesync_enabled").map(|value| value == "true");
    let fields = [
        ("onesync", onesync.map_or(ExtensionValue::Unknown, ExtensionValue::from)),
        ("game_build", build.map_or(ExtensionValue::Unknown, ExtensionValue::from)),
    ];
    server.name = rule("sv_projectName").cloned();
    server.description = rule("sv_projectDesc").cloned();
    server.max_players = rule("sv_maxClients").and_then(|slots| slots.parse().ok());
    server.tags = rule("tags").map_or_else(Vec::new, |tags| tags.split(',').filter_map(json::show).collect());
    server.game_name = Some(if is_redm { "RedM" } else { "FiveM" }.into());
    server.game = game;
    server.extensions = [(Protocol::FiveM, Extension::from(fields))].into();
}
