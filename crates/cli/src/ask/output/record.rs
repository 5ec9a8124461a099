//! One result, and its JSON. The keys are documented in docs/asking.md.

use super::milliseconds;
use crate::ask::{Protocol, Trouble, engine::Found, lobby::Listed};
use rallypoint_query_proto::{Player, RttMethod, ServerInfo};
use rallypoint_wire::{bloodmasters::Rules, lobby::Transport, text};
use serde::Serialize;
use std::{collections::BTreeMap, net::SocketAddr};

/// What is known of one server: from itself, from a list, or from both.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// As a person or a list named it.
    pub target: String,
    /// Where it answered, or where a list says that it is.
    pub address: Option<SocketAddr>,
    pub protocol: Option<Protocol>,
    pub info: ServerInfo,
    /// What it answered itself, if it did.
    pub answer: Option<Answered>,
    /// Why it did not, if it was asked.
    pub trouble: Option<Trouble>,
    /// Every address that a list gives.
    pub endpoints: Vec<SocketAddr>,
}

/// How a server answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered {
    pub ping_ms: f64,
    pub measured: &'static str,
    pub retries: u8,
    pub missing: Vec<String>,
}

/// A target without a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Missed {
    /// As a person named it.
    pub target: String,
    /// Whom the trouble is about.
    pub address: Option<SocketAddr>,
    /// For scripts.
    pub error: &'static str,
    /// For people.
    pub message: String,
}

impl Record {
    /// Somebody of whom nothing is known yet.
    pub fn named(target: String) -> Self {
        Self {
            target,
            address: None,
            protocol: None,
            info: ServerInfo::default(),
            answer: None,
            trouble: None,
            endpoints: Vec::new(),
        }
    }

    /// What a server answered.
    pub fn answered(target: String, found: Found) -> Self {
        let mut record = Self::named(target);
        record.take(found);
        record
    }

    /// What a list says.
    pub fn listed(listed: Listed) -> Self {
        let address = listed.endpoints.first().copied();
        Self {
            address,
            protocol: listed.protocol,
            info: listed.info,
            endpoints: listed.endpoints,
            ..Self::named(address.map_or_else(String::new, |address| address.to_string()))
        }
    }

    /// Takes over what the server itself says, which wins over what a list said.
    pub fn take(&mut self, Found { target, answer, retries }: Found) {
        let listed = std::mem::replace(&mut self.info, answer.info);
        self.info.fill_from(&listed);
        self.address = Some(target.address);
        self.protocol = Some(target.query.protocol);
        self.trouble = None;
        self.answer = Some(Answered {
            ping_ms: milliseconds(answer.round_trip.time),
            measured: match answer.round_trip.method {
                RttMethod::Echo => "echo",
                RttMethod::FirstReply => "first_answer",
                RttMethod::UpperBound => "at_most",
            },
            retries,
            missing: answer.missing.iter().map(ToString::to_string).collect(),
        });
    }

    /// The name, or what stands for it.
    pub fn name(&self) -> &str {
        self.info.name.as_deref().filter(|name| !name.trim().is_empty()).unwrap_or(&self.target)
    }

    /// The game, as short as it is told.
    pub fn game(&self) -> Option<&str> {
        let told = [&self.info.game, &self.info.game_name].into_iter().filter_map(Option::as_deref);
        told.into_iter().find(|text| !text.is_empty())
    }

    /// What is written as JSON.
    pub fn view(&self) -> View<'_> {
        let info = &self.info;
        let answer = self.answer.as_ref();
        View {
            target: &self.target,
            address: self.address,
            protocol: self.protocol.map(Protocol::as_str),
            ping_ms: answer.map(|answer| answer.ping_ms),
            ping_measured: answer.map(|answer| answer.measured),
            retries: answer.map(|answer| answer.retries),
            complete: answer.map(|answer| answer.missing.is_empty()),
            missing: answer.map_or(&[], |answer| &answer.missing),
            error: self.trouble.as_ref().map(Trouble::code),
            message: self.trouble.as_ref().map(ToString::to_string),
            name: info.name.as_deref(),
            description: info.description.as_deref(),
            game: info.game.as_deref(),
            game_name: info.game_name.as_deref(),
            mode: info.mode.as_deref(),
            map: info.map.as_deref(),
            version: info.version.as_deref(),
            website: info.website.as_deref(),
            password: info.password,
            players: info.players,
            max_players: info.max_players,
            bots: info.bots,
            spectators: info.spectators,
            mods: info.mods.iter().map(|it| ModView { id: it.id.as_deref(), name: it.name.as_deref() }).collect(),
            tags: &info.tags,
            teams: info
                .teams
                .iter()
                .map(|team| {
                    let [red, green, blue] = team.color;
                    let color = format!("#{red:02x}{green:02x}{blue:02x}");
                    TeamView { id: team.id, name: &team.name, ranked: team.ranked, color }
                })
                .collect(),
            player_list: info
                .player_list
                .as_ref()
                .map(|players| players.iter().map(|player| PlayerView::new(info, player)).collect()),
            lobby: info.lobby.as_ref().map(|lobby| LobbyView {
                transport: match lobby.transport {
                    Transport::Tcp => "tcp",
                    Transport::Udp => "udp",
                },
                protocol_id: lobby.protocol_id.map(|id| id.to_string()),
                entries: lobby.entries.iter().map(|(key, value)| entry(key, value)).collect(),
            }),
            endpoints: &self.endpoints,
            bloodmasters: info.bloodmasters.as_ref().map(|it| BloodmastersView {
                protocol: it.protocol,
                clients: it.clients,
                max_clients: it.max_clients,
                game_type: it.game_type.0,
                score_limit: it.rules.map(|Rules { score_limit, .. }| score_limit),
                time_limit: it.rules.map(|rules| rules.time_limit),
                join_smallest: it.rules.map(|rules| rules.join_smallest),
            }),
            session: info.session.as_ref().map(|it| SessionView {
                revision: it.revision,
                engine_revision: it.engine_revision,
                version_type: it.version_type,
                version: it.version,
            }),
        }
    }
}

/// A key of a lobby's table and its value, both fit to be shown; binary values in hexadecimal digits.
fn entry(key: &[u8], value: &[u8]) -> (String, String) {
    let is_text = std::str::from_utf8(value).is_ok_and(|text| !text.contains(|c: char| c.is_control()));
    let shown = if is_text || key != b"protocol_id" && !value.contains(&0) {
        text::display(value).into_owned()
    } else {
        value.iter().map(|byte| format!("{byte:02x}")).collect()
    };
    (text::display(key).into_owned(), shown)
}

/// A [`Record`] as JSON has it.
#[derive(Debug, Serialize)]
pub struct View<'a> {
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
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    missing: &'a [String],
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
    mods: Vec<ModView<'a>>,
    tags: &'a [String],
    teams: Vec<TeamView<'a>>,
    player_list: Option<Vec<PlayerView<'a>>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    endpoints: &'a [SocketAddr],
    #[serde(skip_serializing_if = "Option::is_none")]
    lobby: Option<LobbyView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bloodmasters: Option<BloodmastersView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<SessionView>,
}

#[derive(Debug, Serialize)]
struct ModView<'a> {
    id: Option<&'a str>,
    name: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct TeamView<'a> {
    id: u8,
    name: &'a str,
    ranked: bool,
    color: String,
}

/// A player as JSON has them.
#[derive(Debug, Serialize)]
pub struct PlayerView<'a> {
    name: &'a str,
    team: Option<u8>,
    team_name: Option<&'a str>,
    rank: Option<u8>,
    ping_ms: Option<i32>,
    platform: Option<i8>,
    spectator: bool,
}

impl<'a> PlayerView<'a> {
    pub fn new(info: &'a ServerInfo, player: &'a Player) -> Self {
        Self {
            name: &player.name,
            team: player.team,
            team_name: player.team.and_then(|team| info.team_name(team)),
            rank: player.rank,
            ping_ms: player.ping_ms,
            platform: player.platform,
            spectator: player.spectator,
        }
    }
}

#[derive(Debug, Serialize)]
struct LobbyView {
    transport: &'static str,
    protocol_id: Option<String>,
    entries: BTreeMap<String, String>,
}

#[derive(Debug, Serialize)]
struct BloodmastersView {
    protocol: u8,
    clients: u8,
    max_clients: u8,
    game_type: u8,
    score_limit: Option<i16>,
    time_limit: Option<i16>,
    join_smallest: Option<bool>,
}

#[derive(Debug, Serialize)]
struct SessionView {
    revision: u8,
    engine_revision: u32,
    version_type: u8,
    version: u32,
}
