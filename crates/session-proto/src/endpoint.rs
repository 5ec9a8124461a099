//! The server side of one socket.

mod event;
mod half_open;
mod login;
mod players;
mod queries;
mod slots;
mod strangers;

pub use event::{EndpointStats, Event, PlayerId};
pub use queries::QueryAnswers;

use crate::{ConfigError, Connection, EndpointConfig, SendError, deadlines::Deadlines, entropy::Entropy};
use foldhash::quality::FixedState;
use half_open::HalfOpenTable;
use players::{Data, Seat};
use queries::Queries;
use rallypoint_limit::{Rate, TokenBuckets};
use rallypoint_machine::{Machine, Transmit};
use rallypoint_wire::session::{ClientDatagram, SlotIndex};
use slots::Slots;
use std::{
    collections::{HashMap, VecDeque},
    fmt,
    net::SocketAddr,
    time::Instant,
};
use strangers::Strangers;

/// So many events may wait to be polled before those are dropped that may come any number of times, and nobody is let in.
const MOST_EVENTS: usize = 8 * SlotIndex::COUNT;

/// The server side of one socket: queries, logins, and up to 255 players.
///
/// * Getters: [`stats`](Self::stats), [`players`](Self::players), [`connection`](Self::connection).
/// * In: [`handle_datagram`](Machine::handle_datagram), [`handle_timeout`](Machine::handle_timeout).
/// * Commands: [`send`](Self::send), [`recv`](Self::recv), [`disconnect`](Self::disconnect),
///   [`set_answers`](Self::set_answers).
/// * Out: after each call in and each command, drain [`poll_transmit`](Machine::poll_transmit), then
///   [`poll_event`](Machine::poll_event), and then ask [`poll_timeout`](Machine::poll_timeout) when to come back. Several
///   datagrams may be handed in before draining: then fewer acks are sent.
///
/// What a datagram costs does not depend on how many players there are.
pub struct Endpoint {
    config: EndpointConfig,
    entropy: Entropy,
    seats: Vec<Option<Box<Seat>>>,
    taken: usize,
    slots: Slots,
    by_address: HashMap<SocketAddr, SlotIndex, FixedState>,
    half_open: HalfOpenTable,
    encrypted_logins: TokenBuckets<u64>,
    strangers: Strangers,
    queries: Queries,
    ready: VecDeque<u8>,
    deadlines: Deadlines,
    events: VecDeque<Event>,
    memory: usize,
    stats: EndpointStats,
}

impl Endpoint {
    /// A server without players. The seed has to be one that nobody can guess.
    ///
    /// # Errors
    /// If a field of the configuration is out of its range.
    pub fn new(config: EndpointConfig, seed: [u8; 32]) -> Result<Self, ConfigError> {
        config.validate()?;
        let mut entropy = Entropy::new(seed);
        let logins = u64::from(config.encrypted_logins);
        Ok(Self {
            seats: std::iter::repeat_with(|| None).take(config.max_players).collect(),
            taken: 0,
            slots: Slots::new(config.max_players, config.max_per_address, entropy.u64()),
            by_address: HashMap::with_hasher(FixedState::with_seed(entropy.u64())),
            half_open: HalfOpenTable::new(config.half_open, entropy.u64()),
            encrypted_logins: TokenBuckets::new(Rate::per_second(logins, logins), 8, entropy.u128()),
            strangers: Strangers::new(entropy.u128(), entropy.u128()),
            queries: Queries::new(&config, entropy.u128()),
            ready: VecDeque::new(),
            deadlines: Deadlines::new(),
            events: VecDeque::new(),
            memory: 0,
            stats: EndpointStats::default(),
            entropy,
            config,
        })
    }

    /// What was counted.
    #[must_use]
    pub fn stats(&self) -> EndpointStats {
        EndpointStats {
            queries_refused: self.queries.refused,
            logins_evicted: self.half_open.evicted,
            half_open: self.half_open.len(),
            players: self.taken,
            memory: self.memory,
            ..self.stats
        }
    }

    /// All players.
    pub fn players(&self) -> impl Iterator<Item = PlayerId> {
        self.seats.iter().flatten().map(|seat| seat.player())
    }

    /// The connection of a player.
    #[must_use]
    pub fn connection(&self, player: PlayerId) -> Option<&Connection> {
        let seat = self.seats.get(usize::from(player.index))?.as_ref()?;
        (seat.player() == player).then_some(&seat.connection)
    }

    /// Sends a message to a player, reliably.
    ///
    /// # Errors
    /// If it does not fit into a datagram, there is no such player, or the window is full.
    pub fn send(&mut self, now: Instant, player: PlayerId, message: &[u8]) -> Result<(), SendError> {
        let allowance = self.allowance();
        let seat = self.seat(player).ok_or(SendError::UnknownPlayer)?;
        let sent = seat.connection.send(now, message, allowance);
        self.touch(player.index);
        sent
    }

    /// The next message of a player. Its bytes stay until the next call.
    pub fn recv(&mut self, player: PlayerId) -> Option<&[u8]> {
        if self.seat(player)?.connection.make_room() {
            self.touch(player.index);
        }
        self.seat(player)?.connection.recv()
    }

    /// Delivers what is left to a player, says goodbye for this reason, and ends the session. False if there is no such
    /// player.
    pub fn disconnect(&mut self, now: Instant, player: PlayerId, reason: &str) -> bool {
        let Some(seat) = self.seat(player) else { return false };
        seat.connection.close(now, reason);
        self.touch(player.index);
        true
    }

    /// What is answered to queries from now on.
    pub fn set_answers(&mut self, answers: QueryAnswers) {
        self.queries.set_answers(answers);
    }
}

impl Machine for Endpoint {
    type Event = Event;

    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) {
        self.stats.datagrams += 1;
        let length = bytes.len();
        match ClientDatagram::parse(bytes) {
            Ok(ClientDatagram::Data(data)) => {
                let (bytes, proof) = (data.payload.as_bytes(), Some(data.rand));
                let data = Data { number: data.number, index: data.index, uid: data.uid, proof, input: None, bytes };
                self.handle_data(now, from, length, &data);
            }
            Ok(ClientDatagram::EncryptedData(data)) => {
                let (bytes, input) = (data.sealed.as_bytes(), Some(data.seal_input()));
                let data = Data { number: data.number, index: data.index, uid: data.uid, proof: None, input, bytes };
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
            && let Some(index) = SlotIndex::new(index)
        {
            self.deadlines.set(index.get(), None);
            let Some(Some(seat)) = self.seats.get_mut(usize::from(index)) else { continue };
            seat.connection.handle_timeout(now);
            if !seat.is_ready {
                seat.is_ready = true;
                self.ready.push_back(index.get());
            }
            self.collect(now, index);
        }
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        if let Some((to, bytes)) = self.strangers.poll_answer() {
            self.stats.unproven_bytes += bytes.len() as u64;
            out.extend_from_slice(&bytes);
            return Some(Transmit::one(to, bytes.len()));
        }
        while let Some(index) = self.ready.pop_front() {
            let Some(Some(seat)) = self.seats.get_mut(usize::from(index)) else { continue };
            let transmit = seat.connection.poll_transmit(now, out);
            if let Some(transmit) = transmit {
                if seat.connection.is_unproven() {
                    self.stats.unproven_bytes += transmit.len as u64;
                }
                // To the back: the others have their turn before it has the next.
                self.ready.push_back(index);
                return Some(transmit);
            }
            seat.is_ready = false;
            self.deadlines.set(index, seat.connection.poll_timeout());
            if seat.connection.is_closed()
                && let Some(index) = SlotIndex::new(index)
            {
                self.collect(now, index);
            }
        }
        let (to, len) = self.queries.poll_transmit(out)?;
        self.stats.unproven_bytes += len as u64;
        Some(Transmit::one(to, len))
    }

    fn poll_event(&mut self) -> Option<Event> {
        let event = self.events.pop_front()?;
        if let Event::Readable(player) = event
            && let Some(seat) = self.seat(player)
        {
            seat.readable = false;
        }
        if let Event::Writable(player) = event
            && let Some(seat) = self.seat(player)
        {
            seat.writable = false;
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
