//! The server side of one socket.

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
mod queries;
mod slot_allocator;
mod slot_table;
mod stateless;

pub use queries::QueryReplies;

use crate::{
    Connection, EndpointConfig, EndpointStats, PlayerId, SendError, ServerEvent, SessionConfigError,
    connection::CopyBudget, deadline_queue::DeadlineQueue, rng::SecretRng,
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

/// The server side of one socket: queries, logins, and up to 255 players.
///
/// * Getters: [`stats`](Self::stats), [`players`](Self::players), [`connection`](Self::connection),
///   [`is_readable`](Self::is_readable).
/// * In: [`handle_datagram`](Machine::handle_datagram), [`handle_timeout`](Machine::handle_timeout).
/// * Commands: [`send`](Self::send), [`recv`](Self::recv), [`disconnect`](Self::disconnect),
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
    stats: EndpointStats,
}

impl Endpoint {
    /// Creates a server without players. The seed must be unpredictable: all secrets are derived from it.
    ///
    /// # Errors
    /// If a field of the configuration is out of range.
    pub fn new(config: EndpointConfig, mut seed: [u8; 32]) -> Result<Self, SessionConfigError> {
        config.validate()?;
        let mut rng = SecretRng::new(seed);
        seed.zeroize();
        Ok(Self {
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
            memory: MessageMemory::new(config.memory),
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

    /// All players.
    pub fn players(&self) -> impl Iterator<Item = PlayerId> {
        self.slots.iter().map(PlayerSlot::player)
    }

    /// The connection of a player.
    #[must_use]
    pub fn connection(&self, player: PlayerId) -> Option<&Connection> {
        self.slots.of(player).map(|slot| &slot.connection)
    }

    /// Sends a message to a player, reliably.
    ///
    /// # Errors
    /// If the message does not fit into a datagram, the player does not exist, or the window is full.
    pub fn send(&mut self, now: Instant, player: PlayerId, message: &[u8]) -> Result<(), SendError> {
        let sent = self.send_with(player, |connection, allowance| connection.send(now, message, allowance));
        sent.unwrap_or(Err(SendError::UnknownPlayer))
    }

    /// Whether a message of a player can be read. That is possible after the end of the session as well, until
    /// [`ServerEvent::Disconnected`] is raised.
    #[must_use]
    pub fn is_readable(&self, player: PlayerId) -> bool {
        self.connection(player).map_or_else(|| self.memory.departed.is_readable(player), Connection::is_readable)
    }

    /// The next message of a player. Its bytes stay valid until the next call. After the end of a session, the messages that
    /// are left can still be read; the end is reported after the last one.
    pub fn recv(&mut self, player: PlayerId) -> Option<&[u8]> {
        let Self { slots, ready, memory, events, .. } = self;
        if let Some(slot) = slots.of_mut(player) {
            slot.prepare_read(player.index, ready, memory);
            return slot.connection.recv();
        }
        let departed = &mut memory.departed;
        departed.recv(player, |player, reason| events.push_back(ServerEvent::Disconnected(player, reason)))
    }

    /// Calls a function that may read a message of a player who has a connection.
    #[inline(always)]
    pub(crate) fn read_with<R>(&mut self, player: PlayerId, read: impl FnOnce(&mut Connection) -> R) -> Option<R> {
        let slot = self.slots.of_mut(player)?;
        slot.prepare_read(player.index, &mut self.ready, &mut self.memory);
        Some(read(&mut slot.connection))
    }

    /// The message that [`recv`](Self::recv) returned last, for the same player.
    pub(crate) fn last_received(&self, player: PlayerId) -> &[u8] {
        let connection = self.connection(player);
        connection.map_or_else(|| self.memory.departed.last_received(player), Connection::last_received)
    }

    /// Ends a player's session: delivers the messages that are left, then sends a disconnect with this reason. Returns false
    /// if the player does not exist.
    pub fn disconnect(&mut self, now: Instant, player: PlayerId, reason: &str) -> bool {
        let Some(slot) = self.slots.of_mut(player) else { return false };
        slot.connection.close(now, reason);
        self.update_slot(player.index);
        true
    }

    /// Prepares [`disconnect`](Self::disconnect) for a caller that still has messages to hand over, and calls it after the last
    /// one. The session ends with this reason 2 s from now at the latest (S28). Returns false if the player does not exist.
    pub fn begin_disconnect(&mut self, now: Instant, player: PlayerId, reason: &str) -> bool {
        let Some(slot) = self.slots.of_mut(player) else { return false };
        slot.connection.begin_close(now, reason);
        self.update_slot(player.index);
        true
    }

    /// Sets the interval at which the application reads datagrams, as a game loop does: a wait of up to one interval does not
    /// indicate a queue on the path. Zero by default: every datagram is read when it arrives.
    pub fn set_poll_interval(&mut self, interval: Duration) {
        // It is measured anew in every frame.
        if interval.abs_diff(self.poll_interval) > Duration::from_millis(1) {
            self.poll_interval = interval;
            self.slots.iter_mut().for_each(|slot| slot.connection.set_poll_interval(interval));
        }
    }

    /// Sets how long the datagrams that are handled next have waited to be read, so that the round-trip time in the statistics is
    /// that of the path (W82). `None`, the default, if that is not known: then half the interval of
    /// [`set_poll_interval`](Self::set_poll_interval) is assumed.
    pub fn set_receive_delay(&mut self, delay: Option<Duration>) {
        self.receive_delay = delay;
    }

    /// Mixes fresh entropy into the state from which secrets are drawn: a copy of an earlier state does not reveal what is
    /// drawn from then on (W66). `rallypoint-session` calls it now and then.
    pub fn mix_entropy(&mut self, entropy: &[u8; 32]) {
        self.rng.mix(entropy);
    }

    /// Determines the bytes per second of the statistics, from what was sent and received since the last call. It is called about
    /// once per second.
    pub fn sample_throughput(&mut self, now: Instant) {
        self.slots.iter_mut().for_each(|slot| slot.connection.sample_throughput(now));
    }

    #[cfg(test)]
    pub(crate) fn rng(&self) -> &SecretRng {
        &self.rng
    }

    /// Sets the replies to queries.
    pub fn set_query_replies(&mut self, replies: QueryReplies) {
        self.queries.set_replies(replies);
    }

    /// [`poll_transmit`](Machine::poll_transmit), with a function that may hand messages over to a connection before it sends.
    /// Its last argument is the number of bytes by which the memory may grow.
    pub(crate) fn poll_transmit_with(
        &mut self,
        now: Instant,
        out: &mut Vec<u8>,
        mut fill: impl FnMut(PlayerId, &mut Connection, usize),
    ) -> Option<Transmit> {
        if let Some((to, bytes)) = self.stateless.pop() {
            self.stats.unvalidated_bytes += bytes.len() as u64;
            out.extend_from_slice(&bytes);
            return Some(Transmit::one(to, bytes.len()));
        }
        while let Some(index) = self.ready.pop_front() {
            let allowance = self.memory.allowance();
            let Some(slot) = self.slots.get_mut(index) else { continue };
            if slot.connection.has_source_work() {
                fill(slot.player(), &mut slot.connection, allowance);
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
        let (to, len) = self.queries.poll_transmit(out)?;
        self.stats.unvalidated_bytes += len as u64;
        Some(Transmit::one(to, len))
    }

    /// Whether events wait to be polled.
    #[inline]
    pub(crate) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Sets the number of bytes that a layer above keeps: they count as memory of the endpoint.
    pub(crate) fn set_reserved(&mut self, bytes: usize) {
        self.memory.reserved = bytes;
    }

    /// Calls a function that may hand a message over to a player's connection. Its last argument is the number of bytes by which
    /// the memory may grow.
    #[inline]
    pub(crate) fn send_with<R>(
        &mut self,
        player: PlayerId,
        send: impl FnOnce(&mut Connection, usize) -> R,
    ) -> Option<R> {
        let allowance = self.memory.allowance();
        let slot = self.slots.of_mut(player)?;
        let result = send(&mut slot.connection, allowance);
        slot.update(player.index, &mut self.ready, &mut self.memory);
        Some(result)
    }

    /// Calls a function that changes a player's connection.
    pub(crate) fn with_connection<R>(
        &mut self,
        now: Instant,
        player: PlayerId,
        f: impl FnOnce(&mut Connection) -> R,
    ) -> Option<R> {
        let result = f(&mut self.slots.of_mut(player)?.connection);
        self.update_slot(player.index);
        self.collect_events(now, player.index);
        Some(result)
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
        self.poll_transmit_with(now, out, |_, _, _| {})
    }

    fn poll_event(&mut self) -> Option<ServerEvent> {
        let event = self.events.pop_front()?;
        match event {
            ServerEvent::Message(player) => {
                if let Some(slot) = self.slots.of_mut(player) {
                    slot.has_message_event = false;
                }
            }
            ServerEvent::Writable(player) => {
                if let Some(slot) = self.slots.of_mut(player) {
                    slot.has_writable_event = false;
                }
            }
            _ => {}
        }
        Some(event)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let connection = self.deadlines.first().map(|(at, _)| at);
        [connection, self.half_open.expires_at()].into_iter().flatten().min()
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("stats", &self.stats()).finish_non_exhaustive()
    }
}
