//! San Andreas Multiplayer and open.mp: a query for each part of the description.
//!
//! Only the ping has a token, so an attacker who can forge the server's address can forge the other replies. Servers with more
//! than 100 players send no list of players. Of the two lists, the one with round-trip times is requested first; open.mp does
//! not have it, and is recognized by its reply to `o`.

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
        samp::{self, Extra, Info, Opcode, Players, Query, Response, Rules},
    },
    text,
};
use std::{collections::BTreeMap, net::SocketAddr};

/// The query protocol of San Andreas Multiplayer.
pub(crate) struct Samp;

const PING: Request = Request(0);
const INFO: Request = Request(1);
const RULES: Request = Request(2);
const DETAILS: Request = Request(3);
const CLIENTS: Request = Request(4);
const EXTRA: Request = Request(5);

/// Number of players above which servers send no list.
const MAX_LISTED: u16 = 100;

/// Which replies have arrived.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    has_ping: bool,
    /// Number of players in the description.
    players: Option<u16>,
    has_rules: bool,
    has_clients: bool,
    has_details: bool,
    has_extra: bool,
}

impl Progress {
    fn has_any(&self) -> bool {
        self.has_ping || self.players.is_some() || self.has_rules || self.has_list() || self.has_extra
    }

    fn has_list(&self) -> bool {
        self.has_clients || self.has_details
    }

    /// Whether there is a list to wait for.
    fn needs_list(&self) -> bool {
        !self.has_list() && self.players.is_none_or(|players| (1..=MAX_LISTED).contains(&players))
    }
}

impl QueryProtocol for Samp {
    const MAX_DATAGRAM: usize = samp::MAX_DATAGRAM;
    const HAS_TOKEN: bool = false;
    /// Caches in front of servers answer descriptions only.
    const FALLBACK: Requests = Requests::of(INFO);

    type State = Progress;

    fn outstanding(progress: &Progress, detail: Detail) -> Requests {
        match detail {
            Detail::Presence => Requests::only_if(PING, !progress.has_any()),
            Detail::Info => Requests::only_if(INFO, progress.players.is_none()),
            Detail::Players => Requests::only_if(INFO, progress.players.is_none())
                .with(Requests::only_if(RULES, !progress.has_rules))
                .with(Requests::only_if(DETAILS, progress.needs_list())),
        }
    }

    fn attempt(progress: &Progress, detail: Detail) -> Requests {
        let is_first = !progress.has_any();
        let with_list = detail == Detail::Players && progress.needs_list();
        Self::outstanding(progress, detail)
            .with(Requests::only_if(EXTRA, is_first && detail == Detail::Players))
            .with(Requests::only_if(CLIENTS, !is_first && with_list))
    }

    fn emit(_progress: Option<&mut Progress>, request: Request, token: impl FnOnce() -> Token, out: &mut Vec<u8>) {
        let opcode = match request {
            PING => Opcode::Ping,
            RULES => Opcode::Rules,
            DETAILS => Opcode::Details,
            CLIENTS => Opcode::Clients,
            EXTRA => Opcode::Extra,
            _ => Opcode::Info,
        };
        Query { opcode, token: token().short() }.emit(out);
    }

    fn insert_address(datagram: &mut [u8], server: SocketAddr) {
        Query::insert_address(datagram, server);
    }

    fn handle(
        progress: &mut Progress,
        datagram: &[u8],
        detail: Detail,
        context: &Context<'_>,
    ) -> Result<Received, DecodeError> {
        let response = Response::parse(datagram)?;
        let mut accepted = Accepted::default();
        let has_arrived = match response {
            Response::Ping(repeated) => {
                let Some(attempt) = context.attempt_with(|token| token.short() == repeated) else {
                    return Ok(Received::WrongToken);
                };
                accepted.attempt = Some(attempt);
                &mut progress.has_ping
            }
            Response::Info(info) => {
                if progress.players.replace(info.players).is_some() {
                    return Ok(Received::Redundant);
                }
                return Ok(Received::Accepted(accepted));
            }
            Response::Rules(_) => &mut progress.has_rules,
            Response::Players(players) if players.is_detailed => &mut progress.has_details,
            Response::Players(_) => &mut progress.has_clients,
            Response::Extra(_) => &mut progress.has_extra,
        };
        if std::mem::replace(has_arrived, true) {
            return Ok(Received::Redundant);
        }
        let is_open_mp = matches!(response, Response::Extra(_));
        let with_list = detail == Detail::Players && progress.needs_list();
        accepted.next = Requests::only_if(CLIENTS, is_open_mp && with_list);
        Ok(Received::Accepted(accepted))
    }

    fn is_query(quoted: &[u8]) -> bool {
        Query::is_query(quoted)
    }

    fn finish(progress: &Progress, detail: Detail, raw: &RawReply) -> (ServerInfo, Vec<MissingPart>) {
        let mut parts = Parts::default();
        for response in raw.datagrams().flat_map(Response::parse) {
            match response {
                Response::Info(info) => parts.info = Some(info),
                Response::Rules(rules) => parts.rules = Some(rules),
                Response::Players(list) if list.is_detailed || parts.list.is_none() => parts.list = Some(list),
                Response::Extra(extra) => parts.extra = Some(extra),
                Response::Players(_) | Response::Ping(_) => {}
            }
        }
        let missing = parts.missing(progress, detail);
        (parts.server_info(), missing)
    }
}

/// What has arrived.
#[derive(Default)]
struct Parts<'a> {
    info: Option<Info<'a>>,
    rules: Option<Rules<'a>>,
    list: Option<Players<'a>>,
    extra: Option<Extra<'a>>,
}

impl Parts<'_> {
    fn missing(&self, progress: &Progress, detail: Detail) -> Vec<MissingPart> {
        let mut missing = Vec::new();
        if self.info.is_none() && detail != Detail::Presence {
            missing.push(MissingPart::Part("i (info)"));
        }
        if detail != Detail::Players {
            return missing;
        }
        match self.rules {
            Some(rules) => missing.extend(rules.iter().filter_map(Result::err).map(MissingPart::Truncated)),
            None => missing.push(MissingPart::Part("r (rules)")),
        }
        match self.list {
            Some(list) => {
                let received = list.iter().flatten().count() as u16;
                if received < list.count {
                    missing.push(MissingPart::Players { received, expected: Some(list.count) });
                }
            }
            None if progress.players == Some(0) => {}
            None => missing.push(MissingPart::Players { received: 0, expected: progress.players }),
        }
        missing
    }

    fn server_info(&self) -> ServerInfo {
        let rules: BTreeMap<String, String> = match self.rules {
            Some(rules) => rules.iter().flatten().map(|(name, value)| (show(name), show(value))).collect(),
            None => BTreeMap::new(),
        };
        let rule = |name: &str| rules.get(name).filter(|value| !value.is_empty()).cloned();
        let info = self.info;
        let empty = info.is_some_and(|info| info.players == 0).then(Vec::new);
        let list = self.list.map(|list| list.iter().flatten().map(player).collect());
        ServerInfo {
            name: info.map(|info| show(info.name)),
            game: Some("samp".into()),
            game_name: Some("San Andreas Multiplayer".into()),
            mode: info.map(|info| show(info.mode)),
            map: rule("mapname"),
            version: rule("version"),
            website: rule("weburl"),
            password: info.map(|info| info.has_password),
            players: info.map(|info| info.players),
            max_players: info.map(|info| info.max_players),
            player_list: list.or(empty),
            extensions: [(Protocol::Samp, self.extension())].into(),
            rules,
            ..ServerInfo::default()
        }
    }

    fn extension(&self) -> Extension {
        let text = |text: Option<&[u8]>| {
            text.filter(|text| !text.is_empty()).map_or(ExtensionValue::Unknown, |text| show(text).into())
        };
        let extra = self.extra;
        Extension::from([
            ("language", text(self.info.map(|info| info.language))),
            ("open_mp", extra.map_or(ExtensionValue::Unknown, |_| true.into())),
            ("discord", text(extra.map(|extra| extra.discord))),
            ("light_banner", text(extra.map(|extra| extra.light_banner))),
            ("dark_banner", text(extra.map(|extra| extra.dark_banner))),
            ("logo", text(extra.map(|extra| extra.logo))),
        ])
    }
}

fn player(player: samp::Player<'_>) -> Player {
    let id = player.id.map_or(ExtensionValue::Unknown, ExtensionValue::from);
    Player {
        name: show(player.name),
        score: Some(player.score),
        ping_ms: player.ping,
        extension: Extension::from([("id", id)]),
        ..Player::default()
    }
}

fn show(bytes: &[u8]) -> String {
    text::display(bytes).trim().to_owned()
}
