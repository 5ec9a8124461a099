//! The common view of the replies.

use super::{INFO, PLAYERS, Part, Progress, RULES, is_the_ship};
use crate::{Extension, ExtensionValue, MissingPart, Player, RawReply, ServerInfo, exchange::Request};
use rallypoint_wire::query::{
    Detail, Protocol,
    a2s::{self, Info, Obsolete, Response, Rules},
};
use std::{borrow::Cow, collections::BTreeMap};

/// Steam's number of Rust, whose servers have more players than fit into one byte: their numbers are among the tags.
const RUST: u32 = 252_490;

/// Game modes of The Ship.
const SHIP_MODES: [&str; 6] = ["Hunt", "Elimination", "Duel", "Deathmatch", "VIP Team", "Team Elimination"];

/// Maps what has arrived, and names what has not.
pub(super) fn server_info(progress: &Progress, detail: Detail, raw: &RawReply) -> (ServerInfo, Vec<MissingPart>) {
    let messages = [INFO, PLAYERS, RULES].map(|request| message(progress, request, raw));
    let mut info = None;
    let mut list = None;
    let mut rules = None;
    for response in messages.iter().flatten().flat_map(|message| Response::parse(message)) {
        match response {
            Response::Info(found) => info = Some(found),
            Response::Players(found) => list = Some(found),
            Response::Rules(found) => rules = Some(found),
            Response::Challenge(_) => {}
        }
    }
    let mut missing = Vec::new();
    if info.is_none() && detail != Detail::Presence {
        missing.push(MissingPart::Part("the info (A2S_INFO)"));
    }
    missing.extend(info.as_ref().and_then(|info| info.cut).map(MissingPart::Truncated));
    let mut server = info.as_ref().map(of_info).unwrap_or_default();
    if detail != Detail::Players {
        return (server, missing);
    }

    match list {
        Some(list) => {
            let (players, cut) = list.list(is_the_ship(info.as_ref()));
            if cut.is_some() {
                missing
                    .push(MissingPart::Players { received: count(players.len()), expected: Some(list.count.into()) });
            }
            set_players(&mut server, players.into_iter().map(player).collect(), cut.is_none(), info.as_ref());
        }
        None if progress.is_empty => server.player_list = Some(Vec::new()),
        None => missing.push(MissingPart::Part("the players (A2S_PLAYER)")),
    }
    match rules {
        Some(rules) => {
            missing.extend(rules.iter().find_map(Result::err).map(MissingPart::Truncated));
            server.rules = of_rules(rules);
        }
        None => missing.push(MissingPart::Part("the rules (A2S_RULES)")),
    }
    (server, missing)
}

/// The reply to a request. Of two infos, the one that is not obsolete.
fn message<'a>(progress: &'a Progress, request: Request, raw: &'a RawReply) -> Option<Cow<'a, [u8]>> {
    match &progress.parts[usize::from(request.0)] {
        Part::Missing => None,
        Part::Assembled(assembled) => assembled.message().ok(),
        Part::Whole => {
            let is_it = |datagram: &&[u8]| match Response::parse(datagram) {
                Ok(Response::Info(info)) => request == INFO && info.obsolete.is_some() == progress.is_obsolete,
                Ok(Response::Players(_)) => request == PLAYERS,
                Ok(Response::Rules(_)) => request == RULES,
                _ => false,
            };
            raw.datagrams().find(is_it).map(Cow::Borrowed)
        }
    }
}

fn show(bytes: &[u8]) -> String {
    a2s::display(bytes).into_owned()
}

/// A text, unless it is empty.
fn text(bytes: &[u8]) -> Option<String> {
    (!bytes.is_empty()).then(|| show(bytes))
}

fn count(number: usize) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}

fn of_info(info: &Info<'_>) -> ServerInfo {
    let tags: Vec<String> = info.extra.keywords.map(tags).unwrap_or_default();
    let tagged = |name: &str| {
        let value = tags.iter().find_map(|tag| tag.strip_prefix(name)?.parse::<u16>().ok());
        value.filter(|_| info.full_app_id() == Some(RUST))
    };
    let clients = tagged("cp").unwrap_or(info.players.into());
    let bots = info.bots.map(u16::from);
    ServerInfo {
        name: Some(show(info.name)),
        game: text(info.folder),
        game_name: text(info.game),
        mode: info.ship.and_then(|ship| SHIP_MODES.get(usize::from(ship.mode))).map(|mode| (*mode).to_owned()),
        map: text(info.map),
        version: info.version.and_then(text),
        password: Some(info.password),
        players: Some(humans(clients, bots.unwrap_or(0))),
        max_players: Some(tagged("mp").unwrap_or(info.max_players.into())),
        bots,
        extensions: [(Protocol::A2s, extension(info))].into(),
        tags,
        ..ServerInfo::default()
    }
}

/// The number of clients that are no bots. A few games do not count bots as clients.
fn humans(clients: u16, bots: u16) -> u16 {
    clients.checked_sub(bots).unwrap_or(clients)
}

fn tags(keywords: &[u8]) -> Vec<String> {
    let tags = keywords.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|tag| !tag.is_empty());
    tags.map(show).collect()
}

/// The fields that only this protocol has. Numbers that programs in other languages would round are texts.
fn extension(info: &Info<'_>) -> Extension {
    let environment = match info.environment {
        b'l' => "linux",
        b'w' => "windows",
        b'm' | b'o' => "macos",
        _ => "unknown",
    };
    let server_type = match info.server_type {
        b'd' => "dedicated",
        b'l' => "listen",
        b'p' => "proxy",
        _ => "unknown",
    };
    let mut fields: Vec<(&'static str, ExtensionValue)> = vec![
        ("protocol", info.protocol.into()),
        ("server_type", server_type.to_owned().into()),
        ("environment", environment.to_owned().into()),
        ("vac", info.vac.into()),
    ];
    let mut add = |name, value: Option<ExtensionValue>| fields.extend(value.map(|value| (name, value)));
    add("app_id", info.full_app_id().map(Into::into));
    add("port", info.extra.port.map(Into::into));
    add("steam_id", info.extra.steam_id.map(|id| id.to_string().into()));
    add("sourcetv_port", info.extra.source_tv.map(|(port, _)| port.into()));
    add("sourcetv_name", info.extra.source_tv.map(|(_, name)| show(name).into()));
    add("game_id", info.extra.game_id.map(|id| id.to_string().into()));
    add("witnesses", info.ship.map(|ship| ship.witnesses.into()));
    add("arrest_seconds", info.ship.map(|ship| ship.duration.into()));
    if let Some(Obsolete { address, mod_info }) = info.obsolete {
        add("address", Some(show(address).into()));
        add("mod_website", mod_info.map(|of| show(of.link).into()));
        add("mod_download", mod_info.map(|of| show(of.download_link).into()));
        add("mod_version", mod_info.map(|of| of.version.into()));
        add("mod_bytes", mod_info.map(|of| of.size.into()));
        add("mod_multiplayer_only", mod_info.map(|of| of.multiplayer_only.into()));
        add("mod_own_library", mod_info.map(|of| of.own_library.into()));
    }
    fields.into_iter().collect()
}

fn player(player: a2s::Player<'_>) -> Player {
    // Not a number, infinite or negative: the server does not know it.
    let is_duration = player.duration.is_finite() && player.duration >= 0.0;
    let ship = player.ship.map(|ship| Extension::from([("deaths", ship.deaths.into()), ("money", ship.money.into())]));
    Player {
        name: show(player.name),
        score: Some(player.score),
        duration_s: is_duration.then_some(player.duration as u32),
        extension: ship.unwrap_or_default(),
        ..Player::default()
    }
}

/// Adds the list of players. What the info says of their number stays: a list is shorter while players connect, and on servers that
/// pretend to have players. The extension has the number of listed players, for comparison.
fn set_players(server: &mut ServerInfo, list: Vec<Player>, is_whole: bool, info: Option<&Info<'_>>) {
    let listed = count(list.len());
    let bots = server.bots.unwrap_or(0);
    // More than the info can express.
    let is_more = info.is_some_and(|info| info.players == u8::MAX) && listed > u16::from(u8::MAX);
    if is_whole && (info.is_none() || is_more) {
        server.players = Some(humans(listed, bots));
    }
    if is_whole {
        let own = server.extensions.remove(&Protocol::A2s).unwrap_or_default();
        let fields = own.iter().map(|(name, value)| (name, value.clone())).chain([("listed_players", listed.into())]);
        server.extensions.insert(Protocol::A2s, fields.collect());
    }
    server.player_list = Some(list);
}

/// Of a name that occurs more than once, the first value. Names with control characters are the numbers of pages of binary data,
/// which Arma 3 and DayZ send instead of rules.
fn of_rules(rules: Rules<'_>) -> BTreeMap<String, String> {
    let mut map = BTreeMap::new();
    for (name, value) in rules.iter().flatten().filter(|(name, _)| !name.iter().any(u8::is_ascii_control)) {
        map.entry(show(name)).or_insert_with(|| show(value));
    }
    map
}
