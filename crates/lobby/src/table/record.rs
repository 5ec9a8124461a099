//! One listed server, ready to be displayed.

use crate::{
    NodeLatency, WallClock,
    text::{fold, link},
    verify::{Differences, SessionKeyStatus, Verification, VerificationResult},
};
use bytes::Bytes;
use rallypoint_lobby_proto::{ListedServer, ListingOrigin, PublicId, doors::Door};
use rallypoint_query_proto::ServerInfo;
use rallypoint_wire::{
    lobby::{ListId, ProtocolId, Transport},
    text,
};
use std::{
    borrow::Cow,
    net::{SocketAddr, SocketAddrV4, SocketAddrV6},
    sync::{Arc, OnceLock},
    time::Duration,
};

/// Maximum length of a text of its own in a record, in characters and in bytes. Names of real servers have up to 64 characters.
const MAX_TEXT: usize = 128;
const MAX_TEXT_BYTES: usize = 256;

/// Maximum length of a link, in bytes.
const MAX_WEBSITE: usize = 512;

/// Maximum length of a key or a value in [`ServerRecord::table`], in characters.
const MAX_VALUE: usize = 256;

/// Maximum length of all keys and values in [`ServerRecord::table`], in bytes.
const MAX_TABLE: usize = 4_096;

/// Maximum length of an encoding that is kept, in bytes: several times that of a real server.
const MAX_KEPT_ENCODING: usize = 1_024;

/// A listed server, ready to be displayed: every text is decoded and harmless (L5), and the secret server ID is not part of
/// it (L13).
///
/// Records are immutable: when something about a server changes, the table replaces its record.
#[derive(Debug)]
pub struct ServerRecord {
    /// Public ID.
    pub id: PublicId,
    /// List in which the server is listed.
    pub list: ListId,
    /// Display name; may be empty (L6).
    pub name: Box<str>,
    /// Current map; empty if not stated.
    pub map: Box<str>,
    /// Short name of the game; the long one if there is no short one, empty if neither is stated.
    pub game: Box<str>,
    /// Long name of the game; empty if not stated.
    pub game_name: Box<str>,
    /// Version of the game; empty if not stated.
    pub version: Box<str>,
    /// Website of the server or its game: http and https only.
    pub website: Option<Box<str>>,
    /// Number of human players.
    pub players: u16,
    /// Number of bots.
    pub bots: u16,
    /// Number of player slots.
    pub slots: u16,
    /// Whether joining needs a password.
    pub password: bool,
    /// IPv4 address at which players reach the server.
    pub v4: Option<SocketAddrV4>,
    /// IPv6 address at which players reach the server.
    pub v6: Option<SocketAddrV6>,
    /// Transport protocol between players and the server.
    pub transport: Transport,
    /// Protocol version that clients compare to decide whether they can join.
    pub protocol_id: Option<ProtocolId>,
    /// First registration, in seconds since 1970.
    pub since: u64,
    /// Round-trip time of the last check or probe.
    pub latency: Option<Duration>,
    /// How the server came into the list.
    pub origin: ListingOrigin,
    /// The door through which the server came; `None` for servers that the operator watches.
    pub door: Option<&'static Door>,
    /// Result of probing the server.
    pub verification: Verification,
    /// Fields in which the server's reply contradicts its registration.
    pub differences: Differences,
    /// Whether the server has proved that it holds the key that it states; `None` if it states none (W67).
    pub session_key: Option<SessionKeyStatus>,
    /// The server's last reply to a probe, which includes its players.
    pub info: Option<Arc<ServerInfo>>,
    folded: FoldedTexts,
    pub(crate) listing: Option<Arc<ListedServer>>,
    encoded: OnceLock<Bytes>,
    /// Latencies by node of a cluster, sorted by name; `None` if there are none.
    latencies: Option<Arc<[NodeLatency]>>,
}

/// The texts of a record folded to lower case, for filters and sorting.
#[derive(Debug, Default)]
pub struct FoldedTexts {
    /// Name, map, short and long name of the game, version, addresses, names of players: one line each, but any number of
    /// lines for players. Display texts have no line breaks.
    lines: Box<str>,
    ends: [u32; 6],
}

impl ServerRecord {
    /// The record of a listing that has not been probed.
    #[must_use]
    pub fn new(listing: &Arc<ListedServer>, clock: &WallClock) -> Self {
        let block = listing.block();
        let display = |key: &[u8]| {
            let shown = block.table.get(key).map(text::display).unwrap_or_default();
            shorten_bytes(shorten(shown, MAX_TEXT), MAX_TEXT_BYTES)
        };
        let name = display(b"name");
        let map = display(b"map");
        let version = display(b"game_ver");
        let game_name = display(b"game");
        let game = Some(display(b"game_short")).filter(|game| !game.is_empty()).unwrap_or_else(|| game_name.clone());
        let v4 = block.v4.map(|v4| SocketAddrV4::new(v4.ip, v4.port.get()));
        let v6 = block.v6.map(|v6| SocketAddrV6::new(v6.ip, v6.port.get(), 0, 0));
        let addresses = [v4.map(SocketAddr::V4), v6.map(SocketAddr::V6)].into_iter().flatten();
        let addresses = addresses.map(|address| address.to_string()).collect::<Vec<_>>().join(" ");
        Self {
            id: listing.public_id(),
            list: listing.list_id(),
            folded: FoldedTexts::new([&name, &map, &game, &game_name, &version, &addresses], None),
            website: website(block.table.get(b"game_url").unwrap_or_default()),
            name: name.into(),
            map: map.into(),
            game: game.into(),
            game_name: game_name.into(),
            version: version.into(),
            players: block.occupancy.players,
            bots: block.occupancy.bots,
            slots: block.occupancy.slots,
            password: block.occupancy.password,
            v4,
            v6,
            transport: block.transport,
            protocol_id: block.table.get(b"protocol_id").and_then(|id| id.try_into().ok()).map(ProtocolId::from_bytes),
            since: clock.unix(listing.since()),
            latency: listing.latency(),
            origin: listing.origin(),
            door: listing.door(),
            verification: Verification::NotProbed,
            differences: Differences::default(),
            session_key: SessionKeyStatus::of(block.table.get(b"x-session-key"), None),
            info: None,
            listing: Some(Arc::clone(listing)),
            encoded: OnceLock::new(),
            latencies: None,
        }
    }

    /// The latency between each node of a cluster and the server, sorted by the name of the node (W91). Empty without a cluster.
    #[must_use]
    pub fn node_latencies(&self) -> &[NodeLatency] {
        self.latencies.as_deref().unwrap_or_default()
    }

    /// A copy with these latencies, if they are displayed differently.
    pub(super) fn with_latencies<'a>(&self, new: impl Iterator<Item = &'a NodeLatency> + Clone) -> Option<Self> {
        let shown = |latency: &NodeLatency| whole_ms(Some(latency.latency));
        let known = self.node_latencies().iter();
        let is_same = known.map(|known| (&known.node, shown(known))).eq(new.clone().map(|new| (&new.node, shown(new))));
        (!is_same).then(|| {
            let latencies: Vec<_> = new.cloned().collect();
            let latencies = (!latencies.is_empty()).then(|| latencies.into());
            Self { latencies, ..self.copy() }
        })
    }

    /// Takes the latencies of an earlier record over.
    pub(super) fn copy_latencies(&mut self, earlier: &Self) {
        self.latencies.clone_from(&earlier.latencies);
    }

    /// The entries of the registration as display texts, in their original order. Binary values are shown as hexadecimal
    /// digits, the protocol ID as a UUID. Keys and values are cut to 256 characters, and entries beyond 4 kB are left out (W42):
    /// a byte of a registration can take three bytes in a text.
    #[must_use]
    pub fn table(&self) -> Vec<(String, String)> {
        let Some(listing) = &self.listing else { return Vec::new() };
        let mut room = MAX_TABLE;
        let fits = |(key, value): &(String, String)| {
            let size = key.len() + value.len();
            let is_room = size <= room;
            room = room.saturating_sub(size);
            is_room
        };
        let block = listing.block();
        block.table.iter().map(|entry| display_entry(entry.key, entry.value)).take_while(fits).collect()
    }

    /// Addresses at which players reach the server, IPv4 first: most clients can use that.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.v4.map(SocketAddr::V4).into_iter().chain(self.v6.map(SocketAddr::V6))
    }

    /// Whether all player slots are taken.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.slots > 0 && self.players >= self.slots
    }

    /// The API's word for the transport protocol.
    #[must_use]
    pub const fn transport_code(&self) -> &'static str {
        match self.transport {
            Transport::Tcp => "tcp",
            Transport::Udp => "udp",
        }
    }

    /// The latency as it is displayed: in whole milliseconds, rounded up.
    #[must_use]
    pub fn latency_ms(&self) -> Option<u64> {
        whole_ms(self.latency)
    }

    /// The texts of the record folded to lower case.
    #[must_use]
    pub fn folded(&self) -> &FoldedTexts {
        &self.folded
    }

    /// An encoding of this record, made by the first caller and kept as long as the record, unless it is unusually large: a list
    /// of ten thousand servers in which few change is written from prepared parts. All callers have to use the same encoder.
    pub fn encoded(&self, encode: impl FnOnce(&Self) -> Bytes) -> Bytes {
        if let Some(encoded) = self.encoded.get() {
            return encoded.clone();
        }
        let encoded = encode(self);
        if encoded.len() <= MAX_KEPT_ENCODING {
            return self.encoded.get_or_init(|| encoded).clone();
        }
        encoded
    }

    /// Whether both records display the same apart from the last reply to a probe, which is not part of lists.
    #[must_use]
    pub(super) fn displays_like(&self, other: &Self) -> bool {
        // Without `..`, so that a new field cannot be forgotten here.
        let Self {
            id,
            list,
            name,
            map,
            game,
            game_name,
            version,
            website,
            players,
            bots,
            slots,
            password,
            v4,
            v6,
            transport,
            protocol_id,
            since,
            latency: _,
            origin,
            door,
            verification,
            differences,
            session_key,
            info: _,
            folded: _,
            listing: _,
            encoded: _,
            latencies: _,
        } = self;
        let numbers = (players, bots, slots, since);
        let texts = (name, map, game, game_name, version, website);
        let addresses = (v4, v6, transport, protocol_id);
        (id, list, password, origin, door) == (&other.id, &other.list, &other.password, &other.origin, &other.door)
            && numbers == (&other.players, &other.bots, &other.slots, &other.since)
            && texts == (&other.name, &other.map, &other.game, &other.game_name, &other.version, &other.website)
            && addresses == (&other.v4, &other.v6, &other.transport, &other.protocol_id)
            && (verification, differences, session_key) == (&other.verification, &other.differences, &other.session_key)
            && self.latency_ms() == other.latency_ms()
            && self.table() == other.table()
    }

    /// A copy with the result of a probe.
    #[must_use]
    pub(super) fn with_verification(&self, result: &VerificationResult) -> Self {
        let VerificationResult { verification, differences, .. } = *result;
        // Only if it states a key, the registration is parsed again.
        let session_key = self.session_key.and_then(|_| {
            let block = self.listing.as_ref()?.block();
            SessionKeyStatus::of(block.table.get(b"x-session-key"), result.proven_key)
        });
        let folded = self.folded.with_players(result.info.as_deref());
        Self { verification, differences, session_key, info: result.info.clone(), folded, ..self.copy() }
    }

    /// A copy with the current latency and with the first registration by the current wall clock, if either is
    /// displayed differently now.
    pub(super) fn refreshed(&self, clock: &WallClock) -> Option<Self> {
        let listing = self.listing.as_ref()?;
        let latency = listing.latency();
        let since = clock.unix(listing.since());
        let is_changed = whole_ms(latency) != whole_ms(self.latency) || since != self.since;
        is_changed.then(|| Self { latency, since, ..self.copy() })
    }

    /// A copy without the prepared encoding.
    fn copy(&self) -> Self {
        let FoldedTexts { lines, ends } = &self.folded;
        Self {
            name: self.name.clone(),
            map: self.map.clone(),
            game: self.game.clone(),
            game_name: self.game_name.clone(),
            version: self.version.clone(),
            website: self.website.clone(),
            info: self.info.clone(),
            folded: FoldedTexts { lines: lines.clone(), ends: *ends },
            listing: self.listing.clone(),
            encoded: OnceLock::new(),
            latencies: self.latencies.clone(),
            ..*self
        }
    }
}

impl FoldedTexts {
    fn new(texts: [&str; 6], players: Option<&ServerInfo>) -> Self {
        let mut lines = String::new();
        let mut ends = [0; 6];
        for (end, text) in ends.iter_mut().zip(texts) {
            lines.push_str(&fold(text));
            *end = lines.len() as u32;
            lines.push('\n');
        }
        for player in players.and_then(|info| info.player_list.as_deref()).unwrap_or_default() {
            lines.push_str(&fold(&player.name));
            lines.push('\n');
        }
        Self { lines: lines.into(), ends }
    }

    /// A copy of the texts with the names of these players.
    fn with_players(&self, info: Option<&ServerInfo>) -> Self {
        let texts = [self.name(), self.map(), self.game(), self.game_name(), self.version(), self.line(ADDRESSES)];
        Self::new(texts, info)
    }

    /// Whether any of the texts, the name of a player or an address contains this one, which has to be folded and without line
    /// breaks. Addresses are searched only for what looks like a part of one: a number in a name would match most of them.
    #[must_use]
    pub fn contains(&self, text: &str) -> bool {
        let texts = &self.lines[..self.ends[ADDRESSES - 1] as usize];
        let players = &self.lines[self.ends[ADDRESSES] as usize + 1..];
        texts.contains(text)
            || (!players.is_empty() && players.contains(text))
            || (is_part_of_address(text) && self.line(ADDRESSES).contains(text))
    }

    /// Folded name of the server.
    #[must_use]
    pub fn name(&self) -> &str {
        self.line(0)
    }

    /// Folded name of the map.
    #[must_use]
    pub fn map(&self) -> &str {
        self.line(1)
    }

    /// Folded short name of the game.
    #[must_use]
    pub fn game(&self) -> &str {
        self.line(2)
    }

    /// Folded long name of the game.
    #[must_use]
    pub fn game_name(&self) -> &str {
        self.line(3)
    }

    /// Folded version of the game.
    #[must_use]
    pub fn version(&self) -> &str {
        self.line(4)
    }

    fn line(&self, index: usize) -> &str {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before] as usize + 1);
        &self.lines[start..self.ends[index] as usize]
    }
}

/// The line of [`FoldedTexts`] with the addresses.
const ADDRESSES: usize = 5;

/// Whether a text looks like a part of an address: `192.0.2`, `:8190`, `2001:db8`.
fn is_part_of_address(text: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_hexdigit() || b".:[]".contains(&byte);
    let dots = text.bytes().filter(|byte| *byte == b'.').count();
    (dots >= 2 || text.contains(':')) && text.len() >= 4 && text.bytes().all(is_digit)
}

/// A duration in whole milliseconds, rounded up.
fn whole_ms(duration: Option<Duration>) -> Option<u64> {
    duration.map(|duration| (duration.as_micros() as u64).div_ceil(1_000))
}

/// Cuts a text to a number of characters.
fn shorten(text: Cow<'_, str>, longest: usize) -> Cow<'_, str> {
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}\u{2026}", &text[..end]).into(),
        None => text,
    }
}

/// Cuts a text to a number of bytes, at the end of a character.
fn shorten_bytes(text: Cow<'_, str>, longest: usize) -> Cow<'_, str> {
    const ELLIPSIS: &str = "\u{2026}";
    if text.len() <= longest {
        return text;
    }
    let end = text.floor_char_boundary(longest - ELLIPSIS.len());
    format!("{}{ELLIPSIS}", &text[..end]).into()
}

/// The website in a registration, if it is a link that can be followed.
fn website(value: &[u8]) -> Option<Box<str>> {
    let text = text::display(value);
    link(&text).filter(|link| link.len() <= MAX_WEBSITE).map(Into::into)
}

/// A key and its value as display texts.
fn display_entry(key: &[u8], value: &[u8]) -> (String, String) {
    let key_text = shorten(text::display(key), MAX_VALUE).into_owned();
    if key == b"protocol_id"
        && let Ok(id) = value.try_into()
    {
        return (key_text, ProtocolId::from_bytes(id).to_string());
    }
    let is_binary = value.contains(&0);
    let value = if is_binary {
        value.iter().take(MAX_VALUE / 2).map(|byte| format!("{byte:02x}")).collect()
    } else {
        shorten(text::display(value), MAX_VALUE).into_owned()
    };
    (key_text, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w42_a_text_is_cut_to_bytes() {
        assert_eq!(shorten_bytes("x".repeat(256).into(), MAX_TEXT_BYTES).len(), 256);
        let euros = shorten_bytes("\u{20ac}".repeat(128).into(), MAX_TEXT_BYTES);
        assert!(euros.ends_with("\u{20ac}\u{2026}") && (250..=256).contains(&euros.len()), "{}", euros.len());
    }
}
