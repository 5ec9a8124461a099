//! The server side of one socket.

mod acceptance;
mod address_claims;
mod address_table;
mod attempt_table;
mod departed;
mod dispatch;
mod half_open;
mod known_addresses;
mod login;
mod login_admission;
mod login_cookies;
mod message_memory;
mod messages;
mod queries;
mod slot_allocator;
mod slot_table;
mod stateless;

pub use queries::QueryReplies;

use crate::{
    ChannelIndex, Connection, EndpointConfig, EndpointStats, PlayerId, PublicKey, ServerEvent, SessionConfigError,
    SessionMachine, StaticKey, TokenVerifier, connection::CopyBudget, deadline_queue::DeadlineQueue, rng::SecretRng,
};
use address_table::AddressTable;
use dispatch::Data;
use half_open::HalfOpenTable;
use login_admission::LoginAdmission;
use message_memory::MessageMemory;
use queries::QueryResponder;
use rallypoint_machine::{Machine, Transmit};
use rallypoint_wire::session::{ClientDatagram, SlotIndex};
use slot_allocator::SlotAllocator;
use slot_table::{PlayerSlot, SlotTable};
use stateless::StatelessReplies;
use std::{
    collections::VecDeque,
    fmt,
    net::SocketAddr,
    time::{Duration, Instant},
};
use zeroize::Zeroize;

/// Maximum number of events that wait to be polled. Beyond it, events that may be raised any number of times are dropped, and
/// logins are not answered.
const MAX_EVENTS: usize = 8 * SlotIndex::COUNT;

/// The server side of one socket: queries, logins, and up to 255 players, whose sessions carry what
/// [`EndpointConfig::layer`] says.
///
/// * Getters: [`stats`](Self::stats), [`players`](Self::players), [`connection`](Self::connection),
///   [`is_readable`](Self::is_readable), [`has_room`](Self::has_room).
/// * In: [`handle_datagram`](Machine::handle_datagram), [`handle_timeout`](Machine::handle_timeout).
/// * Commands: [`send`](Self::send), [`broadcast`](Self::broadcast), [`recv`](Self::recv),
///   [`accept_login`](Self::accept_login), [`disconnect`](Self::disconnect),
///   [`set_query_replies`](Self::set_query_replies).
/// * Out: after each call in and each command, drain [`poll_transmit`](Machine::poll_transmit), then
///   [`poll_event`](Machine::poll_event), and then ask [`poll_timeout`](Machine::poll_timeout) for the next deadline. Several
///   datagrams may be handed in before draining: then fewer acks are sent.
///
/// The cost of a datagram does not depend on the number of players.
///
/// ```
/// use rallypoint_machine::Machine;
/// use rallypoint_session_proto::{Endpoint, EndpointConfig};
/// use std::time::Instant;
///
/// let now = Instant::now();
/// let client = "192.0.2.2:1000".parse()?;
/// let mut endpoint = Endpoint::new(EndpointConfig::for_game("tag"), [1; 32])?;
/// endpoint.handle_datagram(now, client, b"\x03\x00alice\0tag");
///
/// // The answer: a login success. The player is connected when the first message arrives.
/// let mut out = Vec::new();
/// let transmit = endpoint.poll_transmit(now, &mut out).ok_or("no answer")?;
/// assert_eq!((transmit.to, out[0]), (client, 0x03));
/// assert_eq!((endpoint.stats().half_open, endpoint.players().count()), (1, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Endpoint {
    config: EndpointConfig,
    /// Verifies tokens for this server.
    tokens: Option<(TokenVerifier, PublicKey)>,
    rng: SecretRng,
    slots: SlotTable,
    allocator: SlotAllocator,
    addresses: AddressTable,
    half_open: HalfOpenTable,
    admission: LoginAdmission,
    stateless: StatelessReplies,
    queries: QueryResponder,
    /// Slots that may have something to send, each once.
    ready: VecDeque<SlotIndex>,
    deadlines: DeadlineQueue,
    events: VecDeque<ServerEvent>,
    copies: CopyBudget,
    poll_interval: Duration,
    receive_delay: Option<Duration>,
    memory: MessageMemory,
    /// A message was read that a player expects a receipt or credit for.
    has_replies: bool,
    stats: EndpointStats,
}

impl Endpoint {
    /// Creates a server without players. The seed must be unpredictable: all secrets are derived from it.
    ///
    /// # Errors
    /// If a field of the configuration is out of range.
    pub fn new(config: EndpointConfig, mut seed: [u8; 32]) -> Result<Self, SessionConfigError> {
        let mut rng = SecretRng::new(seed);
        seed.zeroize();
        let config = config.below_layer();
        config.validate()?;
        let key = config.static_key.as_ref().map(StaticKey::public);
        Ok(Self {
            tokens: config.tokens.zip(key),
            slots: SlotTable::new(config.max_players),
            allocator: SlotAllocator::new(config.max_players, config.max_per_address, rng.u64()),
            addresses: AddressTable::new([rng.u64(), rng.u64()]),
            half_open: HalfOpenTable::new(config.half_open, rng.u64()),
            admission: LoginAdmission::new(config.encrypted_logins, [rng.u128(), rng.u128()], rng.u64()),
            stateless: StatelessReplies::new(rng.u128(), rng.u128()),
            queries: QueryResponder::new(&config, rng.u128()),
            ready: VecDeque::new(),
            deadlines: DeadlineQueue::new(),
            events: VecDeque::new(),
            copies: CopyBudget::default(),
            poll_interval: Duration::ZERO,
            receive_delay: None,
            memory: MessageMemory::new(config.memory, config.max_players),
            has_replies: false,
            stats: EndpointStats::default(),
            rng,
            config,
        })
    }

    /// Counters and current sizes.
    #[must_use]
    pub fn stats(&self) -> EndpointStats {
        EndpointStats {
            queries_refused: self.queries.refused,
            logins_evicted: self.half_open.evicted,
            half_open: self.half_open.len(),
            players: self.slots.player_count(),
            memory: self.memory.used(),
            ..self.stats
        }
    }

    /// All players who are accepted.
    pub fn players(&self) -> impl Iterator<Item = PlayerId> {
        self.slots.iter().filter(|slot| slot.session.is_open()).map(PlayerSlot::player)
    }

    /// The connection of a player.
    #[must_use]
    pub fn connection(&self, player: PlayerId) -> Option<&Connection> {
        self.slots.of(player).map(|slot| &slot.connection)
    }

    /// Whether a message of a player may be readable. That is possible after the end of the session as well, until
    /// [`ServerEvent::Disconnected`] is raised.
    #[must_use]
    pub fn is_readable(&self, player: PlayerId) -> bool {
        match self.slots.of(player) {
            Some(slot) => slot.connection.is_readable() || slot.session.is_readable(),
            None => self.memory.departed.is_readable(player),
        }
    }

    /// Whether a player has a session, or messages that can be read after its end.
    #[must_use]
    pub fn is_active(&self, player: PlayerId) -> bool {
        self.slots.of(player).is_some() || self.memory.departed.is_readable(player)
    }

    /// Whether there are sessions, of players who are accepted or not.
    #[must_use]
    pub fn has_sessions(&self) -> bool {
        self.slots.player_count() > 0
    }

    /// Whether a player has channels; if not on a server that has them, it has only [`EndpointConfig::plain_channel`].
    #[must_use]
    pub fn has_channels(&self, player: PlayerId) -> bool {
        self.slots.of(player).is_some_and(|slot| slot.session.has_channels())
    }

    /// Maximum length of a message to a player; with channels, whose table limits it, of one that fits into a datagram.
    #[must_use]
    pub fn max_message(&self, player: PlayerId) -> Option<usize> {
        self.slots.of(player).map(|slot| slot.session.max_message(&slot.connection))
    }

    /// Whether messages of a channel expire: then the time at which they are sent matters. The others may be sent with the time at
    /// which datagrams were last handled or polled.
    #[must_use]
    #[inline]
    pub fn is_expiring(&self, channel: ChannelIndex) -> bool {
        self.config.layer.is_expiring(channel)
    }

    /// Whether events wait to be polled. A message may turn out to be incomplete.
    #[must_use]
    #[inline]
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Whether receipts or credits have to be sent to a player whose messages were read since the last call.
    pub fn take_has_replies(&mut self) -> bool {
        std::mem::take(&mut self.has_replies)
    }

    /// Ends a player's session: delivers the messages that are left, then sends a disconnect with this reason. That is also how a
    /// [`ServerEvent::LoginRequest`] is refused. Returns false if the player does not exist.
    pub fn disconnect(&mut self, now: Instant, player: PlayerId, reason: &str) -> bool {
        let Some(slot) = self.slots.of_mut(player) else { return false };
        slot.session.close(now, &mut slot.connection, reason);
        slot.update(player.index, &mut self.ready, &mut self.memory);
        true
    }

    /// Ends all sessions, also of players who are not accepted yet, as [`disconnect`](Self::disconnect) does one.
    pub fn disconnect_all(&mut self, now: Instant, reason: &str) {
        let players: Vec<PlayerId> = self.slots.iter().map(PlayerSlot::player).collect();
        for player in players {
            self.disconnect(now, player, reason);
        }
    }

    #[cfg(test)]
    pub(crate) fn rng(&self) -> &SecretRng {
        &self.rng
    }

    /// Sets the replies to queries.
    pub fn set_query_replies(&mut self, replies: QueryReplies) {
        self.queries.set_replies(replies);
    }

    /// The next datagrams of the players, in turn.
    #[inline(always)]
    fn poll_slots(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        while let Some(index) = self.ready.pop_front() {
            let allowance = self.memory.allowance();
            let Some(slot) = self.slots.get_mut(index) else { continue };
            if slot.connection.has_source_work() {
                slot.session.fill(now, &mut slot.connection, allowance);
                slot.count_queue(&mut self.memory);
                if slot.session.take_writable() {
                    slot.raise_writable(&mut self.events);
                }
                while self.events.len() < MAX_EVENTS
                    && let Some(id) = slot.session.poll_receipt()
                {
                    self.events.push_back(ServerEvent::Receipt(slot.player(), id));
                }
            }
            slot.count_memory(&mut self.memory);
            let transmit = slot.connection.poll_transmit(now, &mut self.copies, out);
            if let Some(transmit) = transmit {
                if slot.connection.is_unvalidated() {
                    self.stats.unvalidated_bytes += transmit.len as u64;
                }
                // Round robin: the other connections send before this one sends again.
                self.ready.push_back(index);
                return Some(transmit);
            }
            slot.is_ready = false;
            self.deadlines.set(index, slot.connection.poll_timeout());
            if slot.connection.is_closed() {
                self.collect_events(now, index);
            }
        }
        None
    }
}

impl Machine for Endpoint {
    type Event = ServerEvent;

    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) {
        self.stats.datagrams += 1;
        let length = bytes.len();
        match ClientDatagram::parse(bytes) {
            Ok(ClientDatagram::Data(data)) => {
                let data = Data {
                    number: data.number,
                    index: data.index,
                    uid: data.uid,
                    rand: Some(data.rand),
                    seal_input: None,
                    bytes: data.payload.as_bytes(),
                };
                self.handle_data(now, from, length, &data);
            }
            Ok(ClientDatagram::EncryptedData(data)) => {
                let data = Data {
                    number: data.number,
                    index: data.index,
                    uid: data.uid,
                    rand: None,
                    seal_input: Some(data.seal_input()),
                    bytes: data.sealed.as_bytes(),
                };
                self.handle_data(now, from, length, &data);
            }
            Ok(ClientDatagram::Control(control)) => self.handle_control(now, from, length, Some(control)),
            Ok(ClientDatagram::Disconnect) => self.handle_control(now, from, length, None),
            Ok(ClientDatagram::Login(login)) => self.handle_login(now, from, bytes, &login),
            Ok(ClientDatagram::Query) => self.queries.handle_query(now, from, false),
            Ok(ClientDatagram::QueryPlayers) => self.queries.handle_query(now, from, true),
            Err(_) => self.stats.malformed += 1,
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.half_open.expire(now);
        while let Some((at, index)) = self.deadlines.first()
            && at <= now
        {
            self.deadlines.set(index, None);
            let Some(slot) = self.slots.get_mut(index) else { continue };
            slot.connection.handle_timeout(now);
            slot.make_ready(index, &mut self.ready);
            self.collect_events(now, index);
        }
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        self.limit_unfinished(now);
        if let Some((to, bytes)) = self.stateless.pop() {
            self.stats.unvalidated_bytes += bytes.len() as u64;
            out.extend_from_slice(&bytes);
            return Some(Transmit::one(to, bytes.len()));
        }
        let transmit = self.poll_slots(now, out);
        if transmit.is_some() {
            return transmit;
        }
        self.report_queue_memory();
        let (to, len) = self.queries.poll_transmit(out)?;
        self.stats.unvalidated_bytes += len as u64;
        Some(Transmit::one(to, len))
    }

    fn poll_event(&mut self) -> Option<ServerEvent> {
        let event = self.events.pop_front()?;
        self.on_polled(&event);
        Some(event)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let connection = self.deadlines.first().map(|(at, _)| at);
        [connection, self.half_open.expires_at()].into_iter().flatten().min()
    }
}

impl SessionMachine for Endpoint {
    fn set_poll_interval(&mut self, interval: Duration) {
        // It is measured anew in every frame.
        if interval.abs_diff(self.poll_interval) > Duration::from_millis(1) {
            self.poll_interval = interval;
            self.slots.iter_mut().for_each(|slot| slot.connection.set_poll_interval(interval));
        }
    }

    fn set_receive_delay(&mut self, delay: Option<Duration>) {
        self.receive_delay = delay;
    }

    fn mix_entropy(&mut self, entropy: &[u8; 32]) {
        self.rng.mix(entropy);
    }

    fn sample_throughput(&mut self, now: Instant) {
        self.slots.iter_mut().for_each(|slot| slot.connection.sample_throughput(now));
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("stats", &self.stats()).finish_non_exhaustive()
    }
}
