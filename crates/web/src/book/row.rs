//! One server, as it is shown.

use crate::{
    Differences, Told,
    calendar::Calendar,
    text::{fold, link},
};
use bytes::Bytes;
use rallypoint_lobby_proto::{ListedServer, ListingOrigin, PublicId};
use rallypoint_query_proto::ServerInfo;
use rallypoint_wire::{
    lobby::{LobbyId, ProtocolId, Transport},
    text,
};
use std::{
    net::{SocketAddr, SocketAddrV4, SocketAddrV6},
    sync::{Arc, OnceLock},
    time::Duration,
};

/// A server, fit to be shown: every text is decoded and harmless (L5), and its secret ID is not here (L13).
///
/// It does not change: when there is something new about a server, it gets a new row.
#[derive(Debug)]
pub struct Row {
    /// What it is called in public.
    pub id: PublicId,
    /// The lobby it is in.
    pub lobby: LobbyId,
    /// Its name; may be empty (L6).
    pub name: Box<str>,
    /// Where it is played; empty if it does not say.
    pub map: Box<str>,
    /// The game, as short as the server tells it; empty if it does not.
    pub game: Box<str>,
    /// The game for people; empty if it does not say.
    pub game_name: Box<str>,
    /// The version of the game; empty if it does not say.
    pub version: Box<str>,
    /// Where to read more: http and https only.
    pub website: Option<Box<str>>,
    /// How many people play.
    pub players: u16,
    /// How many bots play.
    pub bots: u16,
    /// How many can play.
    pub slots: u16,
    /// Whether a password is needed.
    pub password: bool,
    /// Where it is by IPv4.
    pub v4: Option<SocketAddrV4>,
    /// Where it is by IPv6.
    pub v6: Option<SocketAddrV6>,
    /// How players reach it.
    pub transport: Transport,
    /// What clients compare to know whether they can join.
    pub protocol_id: Option<ProtocolId>,
    /// When it first registered, in seconds since 1970.
    pub since: u64,
    /// How long the lobby's last check took.
    pub latency: Option<Duration>,
    /// How it came into the list.
    pub origin: ListingOrigin,
    /// What the lobby found when it asked the server itself.
    pub verified: Verified,
    /// In what its answer is not what it registered.
    pub differences: Differences,
    /// Who plays, if the server was asked and told.
    pub told: Option<Arc<ServerInfo>>,
    pub(crate) folded: Folded,
    pub(crate) listing: Option<Arc<ListedServer>>,
    pub(super) json: OnceLock<Bytes>,
}

/// Whether a server is what it says, as far as the lobby could find out by asking it (E1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verified {
    /// It was not asked: it does not say how, or it is too early.
    #[default]
    Unasked,
    /// It answered, and says the same as its registration.
    Verified,
    /// It answered, and says something else.
    Differs,
    /// It did not answer.
    Unreachable,
}

/// The texts of a row without regard to upper and lower case, for filters and sorting.
#[derive(Debug, Default)]
pub(crate) struct Folded {
    /// Name, map, game, long name of the game, version: one line each. A text that is shown has no line breaks.
    lines: Box<str>,
    ends: [u32; 4],
}

impl Verified {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Unasked, Self::Verified, Self::Differs, Self::Unreachable];

    /// The word for it, in the API.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Unasked => "unasked",
            Self::Verified => "verified",
            Self::Differs => "differs",
            Self::Unreachable => "unreachable",
        }
    }
}

impl Row {
    /// A server as the lobby lists it.
    #[must_use]
    pub fn of(listing: &Arc<ListedServer>, calendar: &Calendar) -> Self {
        let block = listing.block();
        let show = |key: &[u8]| block.table.get(key).map(text::display).unwrap_or_default();
        let (name, map, version) = (show(b"name"), show(b"map"), show(b"game_ver"));
        let game_name = show(b"game");
        let game = Some(show(b"game_short")).filter(|game| !game.is_empty()).unwrap_or_else(|| game_name.clone());
        Self {
            id: listing.public_id(),
            lobby: listing.lobby_id(),
            folded: Folded::new([&name, &map, &game, &game_name, &version]),
            website: link(&show(b"game_url")).map(Into::into),
            name: name.into(),
            map: map.into(),
            game: game.into(),
            game_name: game_name.into(),
            version: version.into(),
            players: block.occupancy.players,
            bots: block.occupancy.bots,
            slots: block.occupancy.slots,
            password: block.occupancy.password,
            v4: block.v4.map(|v4| SocketAddrV4::new(v4.ip, v4.port.get())),
            v6: block.v6.map(|v6| SocketAddrV6::new(v6.ip, v6.port.get(), 0, 0)),
            transport: block.transport,
            protocol_id: block.table.get(b"protocol_id").and_then(|id| id.try_into().ok()).map(ProtocolId::from_bytes),
            since: calendar.unix(listing.since()),
            latency: listing.latency(),
            origin: listing.origin(),
            verified: Verified::Unasked,
            differences: Differences::default(),
            told: None,
            listing: Some(listing.clone()),
            json: OnceLock::new(),
        }
    }

    /// Everything that the server sent, as shown text, in its order. Binary values are in hexadecimal digits, or a UUID.
    #[must_use]
    pub fn table(&self) -> Vec<(String, String)> {
        let Some(listing) = &self.listing else { return Vec::new() };
        listing.block().table.iter().map(|entry| shown(entry.key, entry.value)).collect()
    }

    /// Where it can be reached, IPv4 first: that is what most clients can use.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.v4.map(SocketAddr::V4).into_iter().chain(self.v6.map(SocketAddr::V6))
    }

    /// Whether nobody else can come in.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.players >= self.slots
    }

    /// The word for how players reach it.
    #[must_use]
    pub const fn transport_code(&self) -> &'static str {
        match self.transport {
            Transport::Tcp => "tcp",
            Transport::Udp => "udp",
        }
    }

    /// The same server with what was found by asking it.
    #[must_use]
    pub(super) fn with_told(&self, told: &Told) -> Self {
        let Told { verified, differences, .. } = *told;
        Self { verified, differences, told: told.info.clone(), ..self.again() }
    }

    /// The same server with its latency of now and by the calendar of now, if either has changed.
    pub(super) fn reviewed(&self, calendar: &Calendar) -> Option<Self> {
        let listing = self.listing.as_ref()?;
        let (latency, since) = (listing.latency(), calendar.unix(listing.since()));
        let shown = |latency: Option<Duration>| latency.map(|latency| latency.as_micros().div_ceil(1_000));
        let is_changed = shown(latency) != shown(self.latency) || since != self.since;
        is_changed.then(|| Self { latency, since, ..self.again() })
    }

    fn again(&self) -> Self {
        let Folded { lines, ends } = &self.folded;
        Self {
            name: self.name.clone(),
            map: self.map.clone(),
            game: self.game.clone(),
            game_name: self.game_name.clone(),
            version: self.version.clone(),
            website: self.website.clone(),
            told: self.told.clone(),
            folded: Folded { lines: lines.clone(), ends: *ends },
            listing: self.listing.clone(),
            json: OnceLock::new(),
            ..*self
        }
    }
}

impl Folded {
    fn new(texts: [&str; 5]) -> Self {
        let mut lines = String::new();
        let mut ends = [0; 4];
        for (place, text) in texts.into_iter().enumerate() {
            lines.push_str(&fold(text));
            if let Some(end) = ends.get_mut(place) {
                *end = lines.len() as u32;
                lines.push('\n');
            }
        }
        Self { lines: lines.into(), ends }
    }

    /// Whether a text, folded and without line breaks, is in any of them.
    pub fn contains(&self, text: &str) -> bool {
        self.lines.contains(text)
    }

    pub fn name(&self) -> &str {
        &self.lines[..self.ends[0] as usize]
    }

    pub fn map(&self) -> &str {
        self.line(0, 1)
    }

    pub fn game(&self) -> &str {
        self.line(1, 2)
    }

    pub fn game_name(&self) -> &str {
        self.line(2, 3)
    }

    pub fn version(&self) -> &str {
        &self.lines[self.ends[3] as usize + 1..]
    }

    fn line(&self, before: usize, this: usize) -> &str {
        &self.lines[self.ends[before] as usize + 1..self.ends[this] as usize]
    }
}

/// A key and its value, both fit to be shown.
fn shown(key: &[u8], value: &[u8]) -> (String, String) {
    let key_text = text::display(key).into_owned();
    if key == b"protocol_id"
        && let Ok(id) = value.try_into()
    {
        return (key_text, ProtocolId::from_bytes(id).to_string());
    }
    let is_binary = value.contains(&0);
    let value =
        if is_binary { value.iter().map(|byte| format!("{byte:02x}")).collect() } else { text::display(value).into() };
    (key_text, value)
}
