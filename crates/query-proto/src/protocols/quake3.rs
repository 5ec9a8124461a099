//! Quake 3 and games on its engine: `getinfo` for a short description, `getstatus` for all settings and the players.
//!
//! Both queries have a challenge, which the server repeats: a reply without it counts as forged. DarkPlaces answers one query a
//! second, so that the status, in which it says everything, is asked for first.

mod darkplaces;
#[cfg(test)]
mod tests;

use crate::{
    Extension, ExtensionValue, MissingPart, Player, RawReply, ServerInfo,
    exchange::{Accepted, Context, Query, QueryProtocol, QueryToken, Received, Request, Requests, Token},
    responder::Datagrams,
};
use rallypoint_wire::{
    DecodeError, DecodeErrorKind,
    query::{
        Detail, Protocol,
        quake3::{self, InfoString, Response, Status},
    },
    text,
};
use std::collections::BTreeMap;

/// The query protocol of Quake 3.
pub(crate) struct Quake3;

const STATUS: Request = Request(0);
const INFO: Request = Request(1);

/// Which replies have arrived.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    has_info: bool,
    has_status: bool,
    /// Whether the status says all that an info would.
    needs_no_info: bool,
}

impl QueryProtocol for Quake3 {
    const MAX_DATAGRAM: usize = quake3::MAX_MESSAGE;
    const HAS_TOKEN: bool = true;
    const HAS_RESPONDER: bool = true;

    type State = Progress;

    fn outstanding(progress: &Progress, detail: Detail) -> Requests {
        let has_info = progress.has_info || progress.needs_no_info;
        let needs_info = !has_info && (detail != Detail::Presence || !progress.has_status);
        let needs_status = !progress.has_status && detail == Detail::Players;
        Requests::only_if(INFO, needs_info).with(Requests::only_if(STATUS, needs_status))
    }

    fn emit(_progress: Option<&mut Progress>, request: Request, token: impl FnOnce() -> Token, out: &mut Vec<u8>) {
        let challenge = challenge(token());
        if request == STATUS { quake3::Request::Status(&challenge) } else { quake3::Request::Info(&challenge) }
            .emit(out);
    }

    fn handle(
        progress: &mut Progress,
        datagram: &[u8],
        _detail: Detail,
        context: &Context<'_>,
    ) -> Result<Received, DecodeError> {
        let response = Response::parse(datagram)?;
        let repeated = response.settings().get("challenge").unwrap_or_default();
        let Some(attempt) = context.attempt_with(|token| challenge(token) == repeated) else {
            return Ok(Received::WrongToken);
        };
        let has_arrived = match response {
            Response::Info(_) => &mut progress.has_info,
            Response::Status(_) => {
                progress.needs_no_info = darkplaces::is_engine_of(&response.settings());
                &mut progress.has_status
            }
        };
        if std::mem::replace(has_arrived, true) {
            return Ok(Received::Redundant);
        }
        Ok(Received::Accepted(Accepted { attempt: Some(attempt), ..Accepted::default() }))
    }

    fn finish(progress: &Progress, detail: Detail, raw: &RawReply) -> (ServerInfo, Vec<MissingPart>) {
        let mut info = None;
        let mut status = None;
        for response in raw.datagrams().flat_map(Response::parse) {
            match response {
                Response::Info(settings) => info = Some(settings),
                Response::Status(found) => status = Some(found),
            }
        }
        let mut missing = Vec::new();
        if !progress.has_info && !progress.needs_no_info && detail != Detail::Presence {
            missing.push(MissingPart::Part("infoResponse"));
        }
        if !progress.has_status && detail == Detail::Players {
            missing.push(MissingPart::Part("statusResponse (settings and players)"));
        }
        let lines = status.iter().flat_map(Status::players);
        let is_cut = |error: &DecodeError| error.kind == DecodeErrorKind::Truncated;
        missing.extend(lines.filter_map(Result::err).find(is_cut).map(MissingPart::Truncated));
        (server_info(info, status), missing)
    }

    fn replies(info: &ServerInfo) -> Vec<Datagrams> {
        vec![info_response(info), status_response(info)]
    }

    fn queries(datagram: &[u8], mut answer: impl FnMut(Query) -> bool) -> bool {
        let (kind, challenge) = match quake3::Request::parse(datagram) {
            Some(quake3::Request::Info(challenge)) => (0, challenge),
            Some(quake3::Request::Status(challenge)) => (1, challenge),
            None => return false,
        };
        let Some(token) = QueryToken::new(challenge) else { return false };
        let growth = if challenge.is_empty() { 0 } else { quake3::CHALLENGE.len() + challenge.len() };
        answer(Query { kind, token, growth });
        true
    }

    fn insert_token(token: &[u8], start: usize, out: &mut Vec<u8>) {
        quake3::insert_challenge(token, start, out);
    }
}

/// The token in hexadecimal digits.
fn challenge(token: Token) -> [u8; 16] {
    let digit = |index: usize| b"0123456789abcdef"[usize::from(token.0[index / 2] >> (4 * (1 - index % 2)) & 15)];
    std::array::from_fn(digit)
}

/// A text that is safe to display, without colour codes.
fn show(bytes: &[u8]) -> String {
    text::display(&quake3::strip_colours(bytes)).into_owned()
}

/// The common view of the replies that have arrived. The settings in a status have other names than those in an info.
fn server_info(info: Option<InfoString<'_>>, status: Option<Status<'_>>) -> ServerInfo {
    let settings = status.map(|status| status.settings);
    let get = |of: Option<InfoString<'_>>, keys: &[&str]| {
        keys.iter().find_map(|key| of.and_then(|of| of.get(key)).filter(|value| !value.is_empty()).map(<[u8]>::to_vec))
    };
    let either = |in_info: &[&str], in_status: &[&str]| get(info, in_info).or_else(|| get(settings, in_status));
    let number =
        |bytes: Option<Vec<u8>>| bytes.and_then(|bytes| str::from_utf8(&bytes).ok()?.trim().parse::<u16>().ok());
    let list: Option<Vec<Player>> = status.map(|status| status.players().flatten().map(player).collect());

    let clients = number(get(info, &["clients"])).or_else(|| list.as_ref().map(|list| list.len() as u16));
    let humans = number(get(info, &["g_humanplayers"]));
    let bots = number(get(info, &["bots"])).or_else(|| Some(clients?.saturating_sub(humans?)));
    let slots = number(get(settings, &["sv_maxclients"])).map(|slots| {
        // An info has the number without these already.
        slots.saturating_sub(number(get(settings, &["sv_privateClients"])).unwrap_or(0))
    });
    let game_name = either(&["gamename"], &["com_gamename", "gamename"]).map(|name| show(&name));
    let kind = number(either(&["gametype"], &["g_gametype"]));
    let is_quake = game_name.as_deref() == Some("Quake3Arena");
    let mut server = ServerInfo {
        name: either(&["hostname", "sv_hostname"], &["sv_hostname", "hostname"]).map(|name| show(&name)),
        game: get(settings, &["gamename"]).or_else(|| get(info, &["game"])).map(|name| show(&name)),
        mode: kind.filter(|_| is_quake).and_then(|kind| MODES.get(usize::from(kind))).map(|mode| (*mode).to_owned()),
        game_name,
        map: either(&["mapname"], &["mapname"]).map(|map| show(&map)),
        version: either(&["version"], &["version", "shortversion"]).map(|version| show(&version)),
        website: get(settings, &["sv_website", "website", "URL"]).map(|website| show(&website)),
        password: either(&["g_needpass", "needpass"], &["g_needpass", "needpass"]).map(|value| value != b"0"),
        players: clients.map(|clients| clients.saturating_sub(bots.unwrap_or(0))),
        max_players: number(get(info, &["sv_maxclients"])).or(slots),
        bots,
        player_list: list,
        rules: rules(settings.into_iter().chain(info)),
        extensions: [(Protocol::Quake3, extension(number(either(&["protocol"], &["protocol", "com_protocol"]))))]
            .into(),
        ..ServerInfo::default()
    };
    if let Some(settings) = info.or(settings).filter(darkplaces::is_engine_of) {
        darkplaces::refine(&mut server, settings, status);
    }
    server
}

/// Game types of Quake 3 itself. Those of other games with the same numbers differ.
const MODES: [&str; 5] = ["Free For All", "Tournament", "Single Player", "Team Deathmatch", "Capture The Flag"];

fn extension(protocol: Option<u16>) -> Extension {
    Extension::from([("protocol", protocol.map_or(ExtensionValue::Unknown, ExtensionValue::from))])
}

fn player(line: quake3::PlayerLine<'_>) -> Player {
    Player {
        name: show(line.name),
        team: line.team.and_then(|team| team.try_into().ok()),
        score: line.score,
        ping_ms: line.ping,
        ..Player::default()
    }
}

/// All settings: of a key in several replies, the first value.
fn rules<'a>(replies: impl Iterator<Item = InfoString<'a>>) -> BTreeMap<String, String> {
    let mut rules = BTreeMap::new();
    for (key, value) in replies.flat_map(|reply| reply.iter()) {
        if !key.eq_ignore_ascii_case(b"challenge") {
            rules.entry(show(key)).or_insert_with(|| show(value));
        }
    }
    rules
}

/// What a responder says of a server in both replies, by key.
struct Settings {
    players: String,
    bots: String,
    clients: String,
    slots: String,
    protocol: String,
    password: &'static str,
}

impl Settings {
    fn new(info: &ServerInfo) -> Self {
        let listed = info.player_list.as_ref().map(|list| u16::try_from(list.len()).unwrap_or(u16::MAX));
        let players = info.players.or(listed).unwrap_or(0);
        let bots = info.bots.unwrap_or(0);
        let own = info.extensions.get(&Protocol::Quake3);
        Self {
            players: players.to_string(),
            bots: bots.to_string(),
            clients: players.saturating_add(bots).to_string(),
            slots: info.max_players.unwrap_or(0).to_string(),
            protocol: own.and_then(|own| own.number("protocol")).unwrap_or(DEFAULT_PROTOCOL).to_string(),
            password: if info.password == Some(true) { "1" } else { "0" },
        }
    }
}

/// Protocol number of Quake 3, version 1.32, if a game gives none.
const DEFAULT_PROTOCOL: u16 = 68;

/// Maximum length of a text in a reply, in bytes.
const MAX_TEXT: usize = 256;

/// Maximum size of a reply without its challenge, in bytes: any challenge still fits into a message.
const MAX_REPLY: usize = quake3::MAX_MESSAGE - quake3::MAX_CHALLENGE - quake3::CHALLENGE.len();

/// The beginning of a text, at a character boundary.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_TEXT)]
}

fn known<'a>(pairs: impl IntoIterator<Item = (&'a str, Option<&'a str>)>) -> impl Iterator<Item = (&'a str, &'a str)> {
    pairs.into_iter().filter_map(|(key, value)| Some((key, cut(value?))))
}

fn info_response(info: &ServerInfo) -> Datagrams {
    let Settings { players, bots, clients, slots, protocol, password } = Settings::new(info);
    let pairs = known([
        ("hostname", Some(info.name.as_deref().unwrap_or_default())),
        ("mapname", info.map.as_deref()),
        ("gamename", info.game_name.as_deref().or(info.game.as_deref())),
        ("game", info.game.as_deref()),
        ("clients", Some(&*clients)),
        ("g_humanplayers", Some(&*players)),
        ("bots", Some(&*bots)),
        ("sv_maxclients", Some(&*slots)),
        ("g_needpass", Some(password)),
        ("protocol", Some(&*protocol)),
        ("gametype", info.rules.get("g_gametype").map(String::as_str)),
    ]);
    let mut datagrams = Datagrams::default();
    datagrams.push(|out| quake3::emit_settings(false, pairs, out));
    datagrams
}

fn status_response(info: &ServerInfo) -> Datagrams {
    let Settings { slots, protocol, password, .. } = Settings::new(info);
    let own: Vec<(&str, &str)> = known([
        ("sv_hostname", Some(info.name.as_deref().unwrap_or_default())),
        ("mapname", info.map.as_deref()),
        ("gamename", info.game.as_deref()),
        ("com_gamename", info.game_name.as_deref()),
        ("version", info.version.as_deref()),
        ("website", info.website.as_deref()),
        ("sv_maxclients", Some(&*slots)),
        ("g_needpass", Some(password)),
        ("com_protocol", Some(&*protocol)),
    ])
    .collect();
    let is_own = |name: &str| name.is_empty() || own.iter().any(|(key, _)| key.eq_ignore_ascii_case(name));
    // Half of the reply is left for the players.
    let mut room = MAX_REPLY / 2;
    let rules = info.rules.iter().filter(|(name, _)| !is_own(name)).map(|(name, value)| (cut(name), cut(value)));
    let rules: Vec<_> = rules
        .take_while(|(name, value)| {
            let length = name.len() + value.len() + 2;
            let fits = length <= room;
            room = room.saturating_sub(length);
            fits
        })
        .collect();
    let mut datagrams = Datagrams::default();
    datagrams.push(|out| {
        quake3::emit_settings(true, own.iter().copied().chain(rules), out);
        for player in info.player_list.iter().flatten() {
            let before = out.len();
            let (score, ping) = (player.score.unwrap_or(0), player.ping_ms.unwrap_or(0));
            quake3::emit_player(score, ping, cut(&player.name), out);
            if out.len() > MAX_REPLY {
                out.truncate(before);
                break;
            }
        }
    });
    datagrams
}
