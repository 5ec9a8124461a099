//! The replies of a responder.

use crate::{ServerInfo, protocols::byte, responder::Datagrams};
use rallypoint_wire::query::{
    Protocol,
    a2s::{self, Extra, Info},
};

/// Indices of the replies.
pub(super) const CHALLENGE: u8 = 0;
pub(super) const INFO: u8 = 1;
pub(super) const PLAYERS: u8 = 2;
pub(super) const RULES: u8 = 3;

/// Version of the network protocol that servers of most games send.
const DEFAULT_PROTOCOL: u8 = 17;

/// Maximum length of a text in an info, in bytes: all of them fit into a datagram of 1,400 bytes.
const MAX_TEXT: usize = 160;

/// Maximum length of the name of a player in bytes: Steam's.
const MAX_NAME: usize = 128;

/// Maximum length of the name or the value of a rule, in bytes.
const MAX_RULE: usize = 256;

/// Maximum size of the lists of players and of rules in bytes: they fit into the budget of an address.
const MAX_LIST: usize = 16 << 10;

pub(super) fn replies(info: &ServerInfo) -> Vec<Datagrams> {
    let mut challenge = Datagrams::default();
    challenge.push(a2s::emit_challenge);
    let mut own = Datagrams::default();
    own.push(|out| emit_info(info, out));
    vec![challenge, own, split(&players(info)), split(&rules(info))]
}

/// The beginning of a text, at a character boundary.
fn cut(text: &str, longest: usize) -> &str {
    &text[..text.floor_char_boundary(longest)]
}

fn emit_info(info: &ServerInfo, out: &mut Vec<u8>) {
    let text = |text: &Option<String>| cut(text.as_deref().unwrap_or_default(), MAX_TEXT).to_owned();
    let [name, map, folder, version] = [&info.name, &info.map, &info.game, &info.version].map(text);
    let game = text(if info.game_name.is_some() { &info.game_name } else { &info.game });
    let own = info.extensions.get(&Protocol::A2s);
    let number = |name: &str| own.and_then(|own| own.number::<u32>(name));
    let big_number = |name: &str| own.and_then(|own| own.text(name)?.parse::<u64>().ok());
    let app_id = number("app_id");
    let keywords = info.tags.join(",");
    let listed = info.player_list.as_ref().map(|list| u16::try_from(list.len()).unwrap_or(u16::MAX));
    let bots = info.bots.unwrap_or(0);
    let players = info.players.or(listed).unwrap_or(0).saturating_add(bots);
    Info {
        protocol: number("protocol").map_or(DEFAULT_PROTOCOL, |protocol| byte(protocol as usize)),
        name: name.as_bytes(),
        map: map.as_bytes(),
        folder: folder.as_bytes(),
        game: game.as_bytes(),
        app_id: Some(app_id.unwrap_or(0) as u16),
        players: byte(players.into()),
        max_players: byte(info.max_players.unwrap_or(0).into()),
        bots: Some(byte(bots.into())),
        server_type: b'd',
        environment: if cfg!(windows) { b'w' } else { b'l' },
        password: info.password == Some(true),
        vac: own.and_then(|own| own.switch("vac")) == Some(true),
        version: Some(version.as_bytes()),
        extra: Extra {
            port: number("port").and_then(|port| port.try_into().ok()),
            steam_id: big_number("steam_id"),
            source_tv: None,
            keywords: (!keywords.is_empty()).then_some(cut(&keywords, MAX_TEXT).as_bytes()),
            game_id: big_number("game_id").or(app_id.map(u64::from)),
        },
        ..Info::default()
    }
    .emit(out);
}

/// The players, up to the 255 that can be announced.
fn players(info: &ServerInfo) -> Vec<u8> {
    let mut list = Vec::new();
    let mut count = 0;
    for player in info.player_list.iter().flatten().take(u8::MAX.into()) {
        let duration = player.duration_s.unwrap_or(0) as f32;
        let before = list.len();
        a2s::emit_player(count, cut(&player.name, MAX_NAME), player.score.unwrap_or(0), duration, &mut list);
        if list.len() > MAX_LIST {
            list.truncate(before);
            break;
        }
        count += 1;
    }
    let mut message = Vec::new();
    a2s::emit_players(count, &mut message);
    message.extend_from_slice(&list);
    message
}

fn rules(info: &ServerInfo) -> Vec<u8> {
    let mut room = MAX_LIST;
    let rules: Vec<_> = info
        .rules
        .iter()
        .map(|(name, value)| (cut(name, MAX_RULE), cut(value, MAX_RULE)))
        .take_while(|(name, value)| {
            let length = name.len() + value.len() + 2;
            let fits = length <= room;
            room = room.saturating_sub(length);
            fits
        })
        .collect();
    let mut message = Vec::new();
    a2s::emit_rules(rules.len() as u16, &mut message);
    for (name, value) in rules {
        a2s::emit_rule(name, value, &mut message);
    }
    message
}

fn split(message: &[u8]) -> Datagrams {
    let mut datagrams = Datagrams::default();
    for datagram in a2s::emit_split(message).unwrap_or_default() {
        datagrams.push(|out| out.extend_from_slice(&datagram));
    }
    datagrams
}
