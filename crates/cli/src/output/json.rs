//! The JSON form of a server. The keys are documented in docs/querying.md.

use rallypoint_query::{
    ScannedServer, list_names,
    proto::{ExtensionValue, Player, Protocol, RttMethod, ServerInfo},
};
use rallypoint_wire::{lobby::Transport, text};
use serde::{Serialize, Serializer};
use std::{collections::BTreeMap, net::SocketAddr};

/// The JSON form of a server.
pub fn server(record: &ScannedServer) -> ServerJson<'_> {
    let info = &record.info;
    let reply = record.reply.as_ref();
    ServerJson {
        target: &record.target,
        address: record.address,
        protocol: record.protocol.map(Protocol::as_str),
        ping_ms: record.ping_ms(),
        ping_measured: reply.map(|reply| method_code(reply.round_trip.method)),
        retries: reply.map(|reply| reply.retries),
        complete: reply.map(|reply| reply.missing.is_empty()),
        missing: reply.map_or_else(Vec::new, |reply| reply.missing.iter().map(ToString::to_string).collect()),
        error: record.error.as_ref().map(rallypoint_query::ProbeError::code),
        message: record.error.as_ref().map(ToString::to_string),
        name: known(&info.name),
        description: known(&info.description),
        game: known(&info.game),
        game_name: known(&info.game_name),
        mode: known(&info.mode),
        map: known(&info.map),
        version: known(&info.version),
        website: known(&info.website),
        password: info.password,
        players: info.players,
        max_players: info.max_players,
        bots: info.bots,
        spectators: info.spectators,
        mods: info.mods.iter().map(|it| ModJson { id: it.id.as_deref(), name: it.name.as_deref() }).collect(),
        tags: &info.tags,
        teams: info
            .teams
            .iter()
            .map(|team| {
                let [red, green, blue] = team.color;
                let color = format!("#{red:02x}{green:02x}{blue:02x}");
                TeamJson { id: team.id, name: &team.name, ranked: team.ranked, color }
            })
            .collect(),
        player_list: info
            .player_list
            .as_ref()
            .map(|players| players.iter().map(|player| PlayerJson::new(info, player)).collect()),
        lobby: info.lobby.as_ref().map(|lobby| LobbyJson {
            transport: match lobby.transport {
                Transport::Tcp => "tcp",
                Transport::Udp => "udp",
            },
            list: record.list.map(list_names::short_name),
            protocol_id: lobby.protocol_id.map(|id| id.to_string()),
            entries: lobby.entries.iter().map(|(key, value)| entry(key, value)).collect(),
        }),
        endpoints: &record.endpoints,
        rules: &info.rules,
        extensions: info
            .extensions
            .iter()
            .map(|(protocol, fields)| {
                (protocol.as_str(), fields.iter().map(|(name, value)| (name, ValueJson(value))).collect())
            })
            .collect(),
    }
}

/// A text; `None` if it is empty, which some protocols use for a text that the server does not have.
fn known(text: &Option<String>) -> Option<&str> {
    text.as_deref().filter(|text| !text.is_empty())
}

/// Identifier of a measuring method.
const fn method_code(method: RttMethod) -> &'static str {
    match method {
        RttMethod::Echo => "echo",
        RttMethod::FirstReply => "first_answer",
        RttMethod::UpperBound => "at_most",
        RttMethod::Connect => "connect",
    }
}

/// A key of a lobby's table and its value, both safe to display; binary values in hexadecimal.
fn entry(key: &[u8], value: &[u8]) -> (String, String) {
    let is_text = std::str::from_utf8(value).is_ok_and(|text| !text.contains(|c: char| c.is_control()));
    let shown = if is_text || key != b"protocol_id" && !value.contains(&0) {
        text::display(value).into_owned()
    } else {
        value.iter().map(|byte| format!("{byte:02x}")).collect()
    };
    (text::display(key).into_owned(), shown)
}

/// A [`ScannedServer`] as JSON.
#[derive(Debug, Serialize)]
pub struct ServerJson<'a> {
    target: &'a str,
    address: Option<SocketAddr>,
    protocol: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ping_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ping_measured: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retries: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    complete: Option<bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    name: Option<&'a str>,
    description: Option<&'a str>,
    game: Option<&'a str>,
    game_name: Option<&'a str>,
    mode: Option<&'a str>,
    map: Option<&'a str>,
    version: Option<&'a str>,
    website: Option<&'a str>,
    password: Option<bool>,
    players: Option<u16>,
    max_players: Option<u16>,
    bots: Option<u16>,
    spectators: Option<u16>,
    mods: Vec<ModJson<'a>>,
    tags: &'a [String],
    teams: Vec<TeamJson<'a>>,
    player_list: Option<Vec<PlayerJson<'a>>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    endpoints: &'a [SocketAddr],
    #[serde(skip_serializing_if = "Option::is_none")]
    lobby: Option<LobbyJson>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    rules: &'a BTreeMap<String, String>,
    /// Fields that only one protocol has: an object with its name.
    #[serde(flatten)]
    extensions: BTreeMap<&'static str, BTreeMap<&'static str, ValueJson<'a>>>,
}

/// A field that only one protocol has.
#[derive(Debug)]
struct ValueJson<'a>(&'a ExtensionValue);

impl Serialize for ValueJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            ExtensionValue::Number(number) => number.serialize(serializer),
            ExtensionValue::Switch(switch) => switch.serialize(serializer),
            ExtensionValue::Text(text) => text.serialize(serializer),
            ExtensionValue::Unknown => serializer.serialize_none(),
        }
    }
}

#[derive(Debug, Serialize)]
struct ModJson<'a> {
    id: Option<&'a str>,
    name: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct TeamJson<'a> {
    id: u8,
    name: &'a str,
    ranked: bool,
    color: String,
}

/// A player as JSON.
#[derive(Debug, Serialize)]
pub struct PlayerJson<'a> {
    name: &'a str,
    team: Option<u8>,
    team_name: Option<&'a str>,
    rank: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_s: Option<u32>,
    ping_ms: Option<i32>,
    platform: Option<i8>,
    spectator: bool,
    /// Fields that only one protocol has.
    #[serde(flatten)]
    extension: BTreeMap<&'static str, ValueJson<'a>>,
}

impl<'a> PlayerJson<'a> {
    pub fn new(info: &'a ServerInfo, player: &'a Player) -> Self {
        Self {
            name: &player.name,
            team: player.team,
            team_name: player.team.and_then(|team| info.team_name(team)),
            rank: player.rank,
            score: player.score,
            duration_s: player.duration_s,
            ping_ms: player.ping_ms,
            platform: player.platform,
            spectator: player.spectator,
            extension: player.extension.iter().map(|(name, value)| (name, ValueJson(value))).collect(),
        }
    }
}

#[derive(Debug, Serialize)]
struct LobbyJson {
    transport: &'static str,
    list: Option<String>,
    protocol_id: Option<String>,
    entries: BTreeMap<String, String>,
}
