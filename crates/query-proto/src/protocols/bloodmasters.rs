//! Document 002: one query with an echo value, one datagram in reply.

use crate::{
    Extension, ExtensionValue, MissingPart, Player, RawReply, ServerInfo, Team,
    exchange::{Accepted, Context, Query, QueryProtocol, QueryToken, Received, Request, Requests, Token},
    responder::Datagrams,
};
use rallypoint_wire::{
    DecodeError,
    bloodmasters::{self, Client, ClientsBuf, Echo, GameType, Info, Reply, Rules},
    query::{Detail, Protocol},
    text,
};
use std::collections::BTreeMap;

/// The Bloodmasters query protocol.
pub(crate) struct Bloodmasters;

/// The only request.
const INFO: Request = Request(0);

/// Whether a reply has arrived.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    has_reply: bool,
}

impl QueryProtocol for Bloodmasters {
    const MAX_DATAGRAM: usize = bloodmasters::MAX_REPLY;
    const HAS_TOKEN: bool = true;
    const IS_TRIED_UNASKED: bool = true;
    const HAS_RESPONDER: bool = true;

    type State = Progress;

    fn outstanding(progress: &Progress, _detail: Detail) -> Requests {
        Requests::only_if(INFO, !progress.has_reply)
    }

    fn emit(_progress: Option<&mut Progress>, _request: Request, token: impl FnOnce() -> Token, out: &mut Vec<u8>) {
        bloodmasters::Query { echo: Echo(token().short()) }.emit(out);
    }

    fn handle(
        progress: &mut Progress,
        datagram: &[u8],
        _detail: Detail,
        context: &Context<'_>,
    ) -> Result<Received, DecodeError> {
        let reply = Reply::parse(datagram)?;
        let Some(attempt) = context.attempt_with(|token| token.short() == reply.echo().0) else {
            return Ok(Received::WrongToken);
        };
        if std::mem::replace(&mut progress.has_reply, true) {
            return Ok(Received::Redundant);
        }
        Ok(Received::Accepted(Accepted { attempt: Some(attempt), ..Accepted::default() }))
    }

    fn finish(_progress: &Progress, _detail: Detail, raw: &RawReply) -> (ServerInfo, Vec<MissingPart>) {
        match raw.bloodmasters() {
            Some(reply) => {
                let truncated = reply.warning().map(MissingPart::Truncated);
                (ServerInfo::from_bloodmasters(&reply), truncated.into_iter().collect())
            }
            // Cannot happen: the datagram was parsed before it was stored.
            None => (ServerInfo::default(), Vec::new()),
        }
    }

    fn replies(info: &ServerInfo) -> Vec<Datagrams> {
        vec![encode(info)]
    }

    fn queries(datagram: &[u8], mut answer: impl FnMut(Query) -> bool) -> bool {
        let mut has_query = false;
        if !is_reply(datagram) {
            for query in bloodmasters::queries(datagram) {
                has_query = true;
                let token = QueryToken::new(&query.echo.0).unwrap_or(QueryToken::EMPTY);
                // A datagram can contain thousands of queries: those over a budget are not counted one by one.
                if !answer(Query { kind: 0, token, growth: 0 }) {
                    break;
                }
            }
        }
        has_query
    }

    fn insert_token(token: &[u8], start: usize, out: &mut Vec<u8>) {
        out[start..][Echo::RANGE].copy_from_slice(token);
    }
}

/// Whether this is the complete reply of another server, of a protocol version in use. It could be read as a query with
/// extra bytes (B4), and then two servers, one of them forged, would answer each other forever. A query that is padded with
/// zeros is not mistaken for a reply.
fn is_reply(bytes: &[u8]) -> bool {
    Reply::parse(bytes).is_ok_and(|reply| reply.is_complete() && reply.rules().is_some())
}

impl RawReply {
    /// The reply of document 002, if this is one.
    #[must_use]
    pub fn bloodmasters(&self) -> Option<Reply<'_>> {
        self.datagrams().next().and_then(|datagram| Reply::parse(datagram).ok())
    }
}

impl ServerInfo {
    /// The common view of a reply of a Bloodmasters server.
    #[must_use]
    pub fn from_bloodmasters(reply: &Reply<'_>) -> Self {
        let info = reply.info();
        let clients = reply.clients();
        let show = |bytes| Some(text::display(bytes).into_owned());
        let list: Vec<Player> = clients
            .iter()
            .map(|client| Player {
                name: text::display(client.name).into_owned(),
                team: Some(client.team.0),
                ping_ms: Some(client.ping.into()),
                spectator: client.spectator,
                ..Player::default()
            })
            .collect();
        Self {
            name: show(info.title),
            game: Some("bloodmasters".into()),
            game_name: Some("Bloodmasters".into()),
            mode: Some(info.game_type.to_string()),
            map: show(info.map_name),
            version: reply.build().and_then(show),
            website: show(info.website),
            password: Some(info.locked),
            players: Some(info.players.into()),
            max_players: Some(info.max_players.into()),
            spectators: Some(clients.count().saturating_sub(info.players).into()),
            teams: teams_of(&list),
            // Before protocol version 27 the player records are not sent at all (B6).
            player_list: reply.rules().is_some().then_some(list),
            rules: reply.rules().map(shown_rules).unwrap_or_default(),
            extensions: [(Protocol::Bloodmasters, extension(reply))].into(),
            ..Self::default()
        }
    }
}

/// The game has two teams, which no server describes (B11): those of them that have players.
fn teams_of(players: &[Player]) -> Vec<Team> {
    [(bloodmasters::Team::RED, [255, 0, 0]), (bloodmasters::Team::BLUE, [0, 0, 255])]
        .into_iter()
        .filter(|(team, _)| players.iter().any(|player| player.team == Some(team.0)))
        .map(|(team, color)| Team { id: team.0, name: team.to_string(), ranked: false, color })
        .collect()
}

/// What exists in document 002 only. Before protocol version 27, servers do not send rules.
fn extension(reply: &Reply<'_>) -> Extension {
    let info = reply.info();
    let rules = reply.rules();
    Extension::from([
        ("protocol", info.protocol.into()),
        ("clients", reply.clients().count().into()),
        ("max_clients", info.max_clients.into()),
        ("game_type", info.game_type.0.into()),
        ("score_limit", rules.map_or(ExtensionValue::Unknown, |rules| rules.score_limit.into())),
        ("time_limit", rules.map_or(ExtensionValue::Unknown, |rules| rules.time_limit.into())),
        ("join_smallest", rules.map_or(ExtensionValue::Unknown, |rules| rules.join_smallest.into())),
    ])
}

/// The limits, for people.
fn shown_rules(rules: Rules) -> BTreeMap<String, String> {
    let limit = |value: i16, unit: &str| if value > 0 { format!("{value}{unit}") } else { "none".into() };
    [
        ("score limit".to_owned(), limit(rules.score_limit, "")),
        ("time limit".to_owned(), limit(rules.time_limit, " min")),
    ]
    .into()
}

/// Maximum length of a text and of a player's name in a reply, in bytes. With these, 255 players always fit into a datagram.
const MAX_TEXT: usize = 1_024;
const MAX_NAME: usize = 128;

/// The reply, with an echo value of zeros.
fn encode(info: &ServerInfo) -> Datagrams {
    let own = info.extensions.get(&Protocol::Bloodmasters);
    let number = |name: &str| own.and_then(|own| own.number(name));
    let title = plain(info.name.as_deref(), MAX_TEXT);
    let [website, map, build] = [&info.website, &info.map, &info.version].map(|text| {
        let mut text = bloodmasters::ascii(text.as_deref().unwrap_or_default()).into_owned();
        text.truncate(MAX_TEXT);
        text
    });
    let list = info.player_list.as_deref().unwrap_or_default();
    let mut clients = ClientsBuf::new();
    for player in list {
        let name = plain(Some(&player.name), MAX_NAME);
        let ping = player.ping_ms.unwrap_or(0).clamp(i16::MIN.into(), i16::MAX.into()) as i16;
        let team = bloodmasters::Team(player.team.unwrap_or(0));
        // The document counts players in one byte: there is no room for the 256th.
        if clients.push(Client { name: &name, team, spectator: player.spectator, ping }).is_err() {
            break;
        }
    }
    let playing = list.iter().filter(|player| !player.spectator).count();
    let max_players = super::byte(info.max_players.unwrap_or(0).into());
    let encoded = Info {
        title: &title,
        locked: info.password.unwrap_or(false),
        website: &website,
        // A game that does not distinguish spectators from players lets as many connect as can play.
        max_clients: number("max_clients").unwrap_or(max_players),
        max_players,
        game_type: number("game_type").map_or(GameType::DEATHMATCH, GameType),
        map_name: &map,
        players: super::byte(info.players.map_or(playing, usize::from)),
        protocol: number("protocol").unwrap_or(Info::PROTOCOL),
    };
    let rules = Rules {
        score_limit: own.and_then(|own| own.number("score_limit")).unwrap_or(0),
        time_limit: own.and_then(|own| own.number("time_limit")).unwrap_or(0),
        join_smallest: own.and_then(|own| own.switch("join_smallest")).unwrap_or(false),
    };
    let mut datagrams = Datagrams::default();
    // Always fits: see the limits of texts and names above.
    if let Ok(reply) = Reply::new(Echo::default(), encoded, rules, clients.as_clients(), &build) {
        datagrams.push(|out| reply.emit(out));
    }
    datagrams
}

/// The text in ASCII (B2), without colour codes (B12).
fn plain(text: Option<&str>, limit: usize) -> Vec<u8> {
    let ascii = bloodmasters::ascii(text.unwrap_or_default());
    let mut plain = bloodmasters::strip_colours(&ascii).into_owned();
    plain.truncate(limit);
    plain
}
