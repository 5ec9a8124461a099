//! The replies of a server, encoded once for all clients.

use crate::{Mod, Player, ServerInfo, Team};
use rallypoint_wire::{
    bloodmasters::{self, Client, ClientsBuf, Echo, Reply},
    session::{self, Info, Name, Ping, Summary, Text, TextListBuf, Title},
};

/// Maximum size of the reply to a query for players, in bytes (S11). Teams may take half of it.
pub(super) const MAX_PLAYERS_REPLY: usize = 16 << 10;

/// Maximum length of a text and of a player's name in a reply of document 002, in bytes. With these, 255 players always
/// fit into a datagram.
const MAX_TEXT: usize = 1_024;
const MAX_NAME: usize = 128;

/// The datagrams of one reply.
#[derive(Debug, Default)]
pub(super) struct Datagrams {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// The replies to all queries.
#[derive(Debug)]
pub(super) struct PreparedReplies {
    /// With an echo value of zeros.
    pub bloodmasters: Datagrams,
    /// The seven infos (S9).
    pub infos: Datagrams,
    /// All teams, then all players (S10).
    pub players: Datagrams,
}

impl Datagrams {
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends.get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.bytes.get(start..end)
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Total size in bytes.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    fn push(&mut self, emit: impl FnOnce(&mut Vec<u8>)) {
        emit(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    /// Appends a datagram, unless the total size would exceed the limit.
    fn push_within(&mut self, limit: usize, emit: impl FnOnce(&mut Vec<u8>)) -> bool {
        let before = self.bytes.len();
        emit(&mut self.bytes);
        let fits = self.bytes.len() <= limit;
        if fits {
            self.ends.push(self.bytes.len());
        } else {
            self.bytes.truncate(before);
        }
        fits
    }
}

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
        Self { infos: each(&infos(info)), players: each(&session_players(info)) }
    }
}

impl PreparedReplies {
    pub fn new(info: &ServerInfo) -> Self {
        Self { bloodmasters: bloodmasters(info), infos: infos(info), players: session_players(info) }
    }
}

fn bloodmasters(info: &ServerInfo) -> Datagrams {
    let own = info.bloodmasters.unwrap_or_default();
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
    let max_players = byte(info.max_players.unwrap_or(0).into());
    let encoded = bloodmasters::Info {
        title: &title,
        locked: info.password.unwrap_or(false),
        website: &website,
        // A game that does not distinguish spectators from players lets as many connect as can play.
        max_clients: if info.bloodmasters.is_some() { own.max_clients } else { max_players },
        max_players,
        game_type: own.game_type,
        map_name: &map,
        players: byte(info.players.map_or(playing, usize::from)),
        protocol: own.protocol,
    };
    let rules = own.rules.unwrap_or_default();
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

fn infos(info: &ServerInfo) -> Datagrams {
    fn text(text: &Option<String>) -> &str {
        text.as_deref().unwrap_or_default()
    }
    let own = info.session.unwrap_or_default();
    let summary = Summary {
        revision: own.revision,
        engine_revision: own.engine_revision,
        version_type: own.version_type,
        version: own.version,
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

fn session_players(info: &ServerInfo) -> Datagrams {
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

fn byte(number: usize) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
}
