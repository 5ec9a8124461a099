//! The replies of a server of document 003, encoded once for all clients.

use crate::{Mod, Player, ServerInfo, Team, protocols::byte, responder::Datagrams};
use rallypoint_wire::{
    query::Protocol,
    session::{self, Info, Name, Ping, Summary, Text, TextListBuf, Title},
};

/// Maximum size of the reply to a query for players, in bytes (S11). Teams may take half of it.
const MAX_PLAYERS_REPLY: usize = 16 << 10;

/// The replies of a server of document 003 to the two queries: datagrams, ready to be sent.
///
/// For a game server that answers queries on its own socket; a [`Responder`](crate::Responder) does it for one that cannot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionReplies {
    /// The seven infos, in order (S9).
    pub infos: Vec<Vec<u8>>,
    /// All teams, then all players (S10), cut to 16 kB (S11).
    pub players: Vec<Vec<u8>>,
}

impl SessionReplies {
    /// Encodes the replies for this description.
    #[must_use]
    pub fn new(info: &ServerInfo) -> Self {
        let each =
            |datagrams: &Datagrams| (0..datagrams.len()).filter_map(|n| Some(datagrams.get(n)?.to_vec())).collect();
        Self { infos: each(&infos(info)), players: each(&players(info)) }
    }
}

/// The seven infos (S9).
pub(super) fn infos(info: &ServerInfo) -> Datagrams {
    fn text(text: &Option<String>) -> &str {
        text.as_deref().unwrap_or_default()
    }
    let own = info.extensions.get(&Protocol::Session);
    let number = |name: &str| own.and_then(|own| own.number(name)).unwrap_or(0);
    let summary = Summary {
        revision: own.and_then(|own| own.number("revision")).unwrap_or(0),
        engine_revision: number("engine_revision"),
        version_type: own.and_then(|own| own.number("version_type")).unwrap_or(0),
        version: number("version"),
        // A client waits for this number of players (S10).
        players: byte(playing(info).map_or(usize::from(info.players.unwrap_or(0)), Iterator::count)),
        max_players: byte(info.max_players.unwrap_or(0).into()),
        game: Text::cut(text(&info.game)),
    };
    let ids = list(info.mods.iter().map(|Mod { id, .. }| id));
    let names = list(info.mods.iter().map(|Mod { name, .. }| name));
    let tags = TextListBuf::cut(info.tags.iter().map(String::as_str));
    let all: [Info<'_>; Info::PARTS] = [
        Info::Summary(summary),
        Info::Title(Title::cut(text(&info.name), text(&info.description))),
        Info::GameName(Text::cut(text(&info.game_name))),
        Info::Map(Text::cut(text(&info.map))),
        Info::ModIds(ids.as_list()),
        Info::ModNames(names.as_list()),
        Info::Tags(tags.as_list()),
    ];
    let mut datagrams = Datagrams::default();
    for info in all {
        datagrams.push(|out| info.emit(out));
    }
    datagrams
}

/// One of the two lists of mods, which correspond item by item: an unknown item is empty, but left out at the end.
fn list<'a>(items: impl DoubleEndedIterator<Item = &'a Option<String>> + Clone) -> TextListBuf {
    let known = items.clone().count() - items.clone().rev().take_while(|item| item.is_none()).count();
    TextListBuf::cut(items.take(known).map(|item| item.as_deref().unwrap_or_default()))
}

/// All teams, then all players (S10).
pub(super) fn players(info: &ServerInfo) -> Datagrams {
    let mut datagrams = Datagrams::default();
    for Team { id, name, ranked, color } in &info.teams {
        let team = session::Team { team: *id, ranked: *ranked, color: *color, name: Text::cut(name) };
        if !datagrams.push_within(MAX_PLAYERS_REPLY / 2, |out| team.emit(out)) {
            break;
        }
    }
    for player in playing(info).into_iter().flatten().take(u8::MAX.into()) {
        let player = session::Player {
            team: player.team.unwrap_or(0),
            rank: player.rank.unwrap_or(0),
            ping: Ping(player.ping_ms.unwrap_or(0).clamp(0, u16::MAX.into()) as u16),
            platform: player.platform.unwrap_or(0),
            username: Name::cut(&player.name),
        };
        if !datagrams.push_within(MAX_PLAYERS_REPLY, |out| player.emit(out)) {
            break;
        }
    }
    datagrams
}

/// The players, if they are known. Document 003 has no spectators.
fn playing(info: &ServerInfo) -> Option<impl Iterator<Item = &Player>> {
    info.player_list.as_ref().map(|list| list.iter().filter(|player| !player.spectator))
}
