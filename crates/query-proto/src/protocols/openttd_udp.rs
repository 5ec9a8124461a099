//! OpenTTD before version 12: a query for the game, and one for its companies. Neither has a token.

#[cfg(test)]
mod tests;

use crate::{
    Extension, ExtensionValue, MissingPart, Mod, RawReply, ServerInfo, Team,
    exchange::{Accepted, Context, QueryProtocol, Received, Request, Requests, Token},
};
use rallypoint_wire::{
    DecodeError,
    query::{
        Detail, Protocol,
        openttd_udp::{self, Companies, Company, Date, Game, Query, Response},
    },
    text,
};
use std::collections::BTreeMap;

/// The query protocol of OpenTTD over UDP.
pub(crate) struct OpenttdUdp;

const INFO: Request = Request(0);
const COMPANIES: Request = Request(1);

/// Which replies have arrived.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    has_info: bool,
    has_companies: bool,
    /// Whether the server describes its game over TCP only.
    is_mute: bool,
}

impl QueryProtocol for OpenttdUdp {
    const MAX_DATAGRAM: usize = openttd_udp::MAX_DATAGRAM;
    const HAS_TOKEN: bool = false;

    type State = Progress;

    fn outstanding(progress: &Progress, detail: Detail) -> Requests {
        if progress.is_mute || (detail == Detail::Presence && progress.has_companies) {
            return Requests::NONE;
        }
        let needs_companies = detail == Detail::Players && !progress.has_companies;
        Requests::only_if(INFO, !progress.has_info).with(Requests::only_if(COMPANIES, needs_companies))
    }

    fn emit(_progress: Option<&mut Progress>, request: Request, _token: impl FnOnce() -> Token, out: &mut Vec<u8>) {
        if request == COMPANIES { Query::Companies } else { Query::Info }.emit(out);
    }

    fn handle(
        progress: &mut Progress,
        datagram: &[u8],
        _detail: Detail,
        _context: &Context<'_>,
    ) -> Result<Received, DecodeError> {
        let has_arrived = match Response::parse(datagram)? {
            Response::Info(game) => {
                progress.is_mute = game.is_none() && !progress.has_info;
                &mut progress.has_info
            }
            Response::Companies(_) => &mut progress.has_companies,
        };
        if std::mem::replace(has_arrived, true) {
            return Ok(Received::Redundant);
        }
        Ok(Received::Accepted(Accepted::default()))
    }

    fn is_query(quoted: &[u8]) -> bool {
        Query::is_query(quoted)
    }

    fn finish(progress: &Progress, detail: Detail, raw: &RawReply) -> (ServerInfo, Vec<MissingPart>) {
        let mut game = None;
        let mut companies = None;
        for response in raw.datagrams().flat_map(Response::parse) {
            match response {
                Response::Info(described) => game = described,
                Response::Companies(list) => companies = Some(list),
            }
        }
        let mut missing = Vec::new();
        if detail != Detail::Presence {
            missing.extend(progress.is_mute.then_some(MissingPart::Part("the game (over TCP from version 12 on)")));
            missing.extend((!progress.has_info).then_some(MissingPart::Part("the game")));
        }
        if detail == Detail::Players && !progress.is_mute {
            missing.extend((!progress.has_companies).then_some(MissingPart::Part("companies")));
            let errors = companies.iter().flat_map(Companies::iter).filter_map(Result::err);
            missing.extend(errors.map(MissingPart::Truncated));
        }
        (server_info(game.as_ref(), companies), missing)
    }
}

/// Names of the landscapes, by number.
const LANDSCAPES: [&str; 4] = ["temperate", "arctic", "tropic", "toyland"];

fn server_info(game: Option<&Game<'_>>, companies: Option<Companies<'_>>) -> ServerInfo {
    let companies: Vec<Company<'_>> = companies.iter().flat_map(Companies::iter).flatten().collect();
    let mut info = ServerInfo {
        game: Some("openttd".into()),
        game_name: Some("OpenTTD".into()),
        teams: companies.iter().map(team).collect(),
        rules: companies.iter().map(shown_company).collect(),
        ..ServerInfo::default()
    };
    let Some(game) = game else { return info };
    info.name = Some(show(game.name));
    info.map = Some(show(game.map)).filter(|map| !map.is_empty());
    info.version = Some(show(game.revision));
    info.password = Some(game.has_password);
    info.players = Some((game.clients - game.spectators).into());
    info.max_players = Some(game.max_clients.into());
    info.spectators = Some(game.spectators.into());
    info.mods = game.grfs.iter().map(extension_id).collect();
    info.extensions = BTreeMap::from([(Protocol::OpenttdUdp, extension(game))]);
    info
}

fn extension(game: &Game<'_>) -> Extension {
    let number = |number: Option<u8>| number.map_or(ExtensionValue::Unknown, ExtensionValue::from);
    let [max_companies, companies, max_spectators] = game.companies.map_or([None; 3], |all| all.map(Some));
    let landscape = LANDSCAPES.get(usize::from(game.landscape)).map(|name| (*name).to_owned());
    let date = |date: Date| {
        let [year, month, day] = date.year_month_day();
        ExtensionValue::from(format!("{year:04}-{month:02}-{day:02}"))
    };
    let script = game.script.map(|(name, version)| format!("{} {version}", show(name)));
    Extension::from([
        ("clients", game.clients.into()),
        ("companies", number(companies)),
        ("max_companies", number(max_companies)),
        ("max_spectators", number(max_spectators)),
        ("date", date(game.date)),
        ("start_date", date(game.start)),
        ("width", game.size[0].into()),
        ("height", game.size[1].into()),
        ("landscape", landscape.map_or(ExtensionValue::Unknown, ExtensionValue::from)),
        ("dedicated", game.is_dedicated.into()),
        ("script", script.map_or(ExtensionValue::Unknown, ExtensionValue::from)),
    ])
}

/// An extension of the game by its identifier, as the game shows it.
fn extension_id([a, b, c, d]: [u8; 4]) -> Mod {
    Mod { id: Some(format!("{a:02x}{b:02x}{c:02x}{d:02x}")), name: None }
}

fn team(company: &Company<'_>) -> Team {
    Team { id: company.id, name: show(company.name), ..Team::default() }
}

/// A company as a rule: no field of a team has its figures.
fn shown_company(company: &Company<'_>) -> (String, String) {
    let Company { founded, value, money, income, performance, .. } = company;
    let [trains, lorries, buses, aircraft, ships] = company.vehicles;
    let stations: u32 = company.stations.iter().map(|count| u32::from(*count)).sum();
    let kind = if company.is_ai { ", AI" } else { "" };
    let password = if company.has_password { ", password" } else { "" };
    let shown = format!(
        "{}: founded {founded}, value {value}, money {money}, income {income}, performance {performance}, {trains} trains, \
         {lorries} lorries, {buses} buses, {aircraft} aircraft, {ships} ships, {stations} stations{kind}{password}",
        show(company.name)
    );
    (format!("company {}", u16::from(company.id) + 1), shown)
}

/// A text that is safe to display, without the codes for colours and sizes, which are characters for private use.
fn show(bytes: &[u8]) -> String {
    text::display(bytes).chars().filter(|c| !('\u{e000}'..='\u{e1ff}').contains(c)).collect()
}
