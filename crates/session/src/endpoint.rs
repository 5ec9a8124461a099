//! The server side of one socket.

mod half_open;
mod login;
mod queries;
mod slots;

pub use queries::QueryAnswers;

use crate::{
    ConfigError, Connection, EndpointConfig, Reason, SendError,
    connection::{Notice, Outcome, Protection},
    deadlines::Deadlines,
    entropy::Entropy,
};
use foldhash::quality::FixedState;
use half_open::HalfOpenTable;
use queries::Queries;
use rallypoint_limit::{Buckets, Net, Rate};
use rallypoint_machine::{Machine, Transmit};
use rallypoint_wire::session::{
    ClientDatagram, Control, MessageNumber, Rand, SealInput, ServerDatagram, SlotIndex, Text, Uid,
};
use slots::Slots;
use std::{
    collections::{HashMap, VecDeque},
    fmt,
    net::SocketAddr,
    time::Instant,
};

/// So many answers to strangers may wait to be sent.
const MOST_ANSWERS: usize = 256;

/// What is always allowed to an address that has proved nothing (S16).
const ALWAYS_ALLOWED: usize = 16;

/// How many networks are remembered that were told about an unknown session.
const REMEMBERED: usize = 4_096;

/// So many events may wait to be polled before those are dropped that may come any number of times, and nobody is let in.
const MOST_EVENTS: usize = 8 * SlotIndex::COUNT;

/// A player: a slot, and which of its sessions.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PlayerId {
    index: SlotIndex,
    uid: Uid,
}

/// What a server is told.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A player is here.
    Connected {
        /// Who.
        player: PlayerId,
        /// The name, without control characters.
        username: String,
        /// The game that was asked for.
        game: String,
    },
    /// There are messages to [`recv`](Endpoint::recv).
    Readable(PlayerId),
    /// After [`SendError::WouldBlock`]: there is room again.
    Writable(PlayerId),
    /// A datagram says that the player goes. Nothing proves it: either [`Disconnected`](Self::Disconnected) follows, or it
    /// was forged and nothing does (S28).
    Closing(PlayerId),
    /// The player has another address (S31).
    Moved(PlayerId, SocketAddr),
    /// The player is gone.
    Disconnected(PlayerId, Reason),
}

/// What an endpoint has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndpointStats {
    /// Datagrams that came.
    pub datagrams: u64,
    /// Those of them that no one sends who knows the protocol.
    pub malformed: u64,
    /// Those of them that belong to no session.
    pub strays: u64,
    /// Bytes sent to addresses that have proved nothing (S11).
    pub unproven_bytes: u64,
    /// Queries that were not answered because of the budget.
    pub queries_refused: u64,
    /// Logins answered with success, repeated ones included.
    pub logins_granted: u64,
    /// Logins answered with a bad login.
    pub logins_refused: u64,
    /// Logins that were forgotten before their first message, because too many others came.
    pub logins_evicted: u64,
    /// Logins that wait for their first message.
    pub half_open: usize,
    /// Players.
    pub players: usize,
    /// Bytes of messages that are kept.
    pub memory: usize,
}

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
    encrypted_logins: Buckets<u64>,
    told_unknown: Buckets<Net>,
    queries: Queries,
    answers: VecDeque<(SocketAddr, Vec<u8>)>,
    ready: VecDeque<u8>,
    deadlines: Deadlines,
    events: VecDeque<Event>,
    memory: usize,
    stats: EndpointStats,
}

struct Seat {
    connection: Connection,
    /// Stands in `ready`.
    is_ready: bool,
    /// These events wait to be polled.
    readable: bool,
    writable: bool,
    memory: usize,
}

impl PlayerId {
    /// The player's slot: 0 to 254.
    #[must_use]
    pub fn index(self) -> SlotIndex {
        self.index
    }
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
            slots: Slots::new(config.max_players),
            by_address: HashMap::with_hasher(FixedState::with_seed(entropy.u64())),
            half_open: HalfOpenTable::new(config.half_open, entropy.u64()),
            encrypted_logins: Buckets::new(Rate::per_second(logins, logins), 8, entropy.u128()),
            told_unknown: Buckets::new(Rate::per_second(1, 1), REMEMBERED, entropy.u128()),
            queries: Queries::new(&config, entropy.u128()),
            answers: VecDeque::new(),
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

    fn seat(&mut self, player: PlayerId) -> Option<&mut Seat> {
        let seat = self.seats.get_mut(usize::from(player.index))?.as_mut()?;
        (seat.player() == player).then_some(seat)
    }

    /// How much more memory messages may take (S22).
    fn allowance(&self) -> usize {
        self.config.memory.saturating_sub(self.memory)
    }

    /// After something happened to a connection: it may have something to send or to tell, and wants to be woken at another
    /// time.
    fn touch(&mut self, index: SlotIndex) {
        let Some(Some(seat)) = self.seats.get_mut(usize::from(index)) else { return };
        if !seat.is_ready {
            seat.is_ready = true;
            self.ready.push_back(index.get());
        }
        self.memory = self.memory - seat.memory + seat.connection.memory();
        seat.memory = seat.connection.memory();
        self.deadlines.set(index.get(), seat.connection.poll_timeout());
    }

    /// Takes what a connection has to tell.
    fn collect(&mut self, now: Instant, index: SlotIndex) {
        let Some(Some(seat)) = self.seats.get_mut(usize::from(index)) else { return };
        let player = seat.player();
        while let Some(notice) = seat.connection.poll_notice() {
            match notice {
                Notice::Readable if !std::mem::replace(&mut seat.readable, true) => {
                    self.events.push_back(Event::Readable(player));
                }
                Notice::Writable if !std::mem::replace(&mut seat.writable, true) => {
                    self.events.push_back(Event::Writable(player));
                }
                Notice::Readable | Notice::Writable => {}
                // Nobody polls so rarely, unless nobody polls at all.
                Notice::Closing if self.events.len() >= MOST_EVENTS => {}
                Notice::Closing => self.events.push_back(Event::Closing(player)),
                Notice::Closed(reason) => return self.free(now, index, reason),
            }
        }
    }

    fn free(&mut self, now: Instant, index: SlotIndex, reason: Reason) {
        let Some(seat) = self.seats.get_mut(usize::from(index)).and_then(Option::take) else { return };
        let player = seat.player();
        self.taken -= 1;
        self.memory -= seat.memory;
        self.deadlines.set(index.get(), None);
        let peer = seat.connection.peer();
        if self.by_address.get(&peer) == Some(&index) {
            self.by_address.remove(&peer);
        }
        // Who timed out or was replaced and still sends should hear that the session is gone.
        let goodbye = matches!(reason, Reason::Closed | Reason::ClosedByPeer(_) | Reason::UsedUp);
        self.slots.rest(now, index, goodbye.then_some(player.uid));
        self.events.push_back(Event::Disconnected(player, reason));
    }

    fn handle_data(&mut self, now: Instant, from: SocketAddr, length: usize, data: &Data<'_>) {
        let allowance = self.allowance();
        let Some(Some(seat)) = self.seats.get_mut(usize::from(data.index)) else {
            return self.handle_first_data(now, from, length, data);
        };
        if seat.connection.uid() != data.uid {
            return self.handle_first_data(now, from, length, data);
        }
        if !data.is_proved_for(&seat.connection.channel().protection) {
            self.stats.strays += 1;
            return;
        }
        seat.connection.count_received(length);
        let outcome = seat.connection.handle_data(now, data.number, data.bytes, data.input.as_ref(), allowance);
        // Where another player is nobody moves to: a forged source would cut that player off.
        if outcome == Outcome::Newest && seat.connection.peer() != from && !self.by_address.contains_key(&from) {
            self.move_player(now, data.index, from);
        }
        self.credit(data.index, from, length, outcome);
        self.touch(data.index);
        self.collect(now, data.index);
    }

    /// A new address is sent little more than what came from it, until it answers (S31).
    fn credit(&mut self, index: SlotIndex, from: SocketAddr, length: usize, outcome: Outcome) {
        if let Some(Some(seat)) = self.seats.get_mut(usize::from(index))
            && seat.connection.peer() == from
            && outcome != Outcome::Foreign
        {
            seat.connection.credit(length);
        }
    }

    /// The session goes where its newest message came from (S31).
    fn move_player(&mut self, now: Instant, index: SlotIndex, to: SocketAddr) {
        let Some(Some(seat)) = self.seats.get_mut(usize::from(index)) else { return };
        let old = seat.connection.peer();
        seat.connection.move_to(now, to, self.entropy.u64());
        let player = seat.player();
        if self.by_address.get(&old) == Some(&index) {
            self.by_address.remove(&old);
        }
        self.by_address.insert(to, index);
        if self.events.len() < MOST_EVENTS {
            self.events.push_back(Event::Moved(player, to));
        }
    }

    fn handle_control(&mut self, now: Instant, from: SocketAddr, length: usize, control: Option<Control<'_>>) {
        let Some(&index) = self.by_address.get(&from) else {
            self.stats.strays += 1;
            return;
        };
        let Some(Some(seat)) = self.seats.get_mut(usize::from(index)) else { return };
        let connection = &mut seat.connection;
        connection.count_received(length);
        connection.credit(length);
        match control {
            Some(Control::Ack(numbers)) => connection.handle_ack(now, numbers),
            Some(Control::Resend(numbers)) => connection.handle_resend(now, numbers),
            Some(Control::Keepalive) => connection.handle_keepalive(now),
            Some(Control::KeepaliveAck) => connection.handle_keepalive_ack(now),
            None => connection.handle_disconnect(now, ""),
        }
        self.touch(index);
        self.collect(now, index);
    }

    /// Data for a session that does not exist: a client learns at once that the server restarted (S32).
    fn handle_unknown(&mut self, now: Instant, from: SocketAddr, length: usize, data: &Data<'_>) {
        self.stats.strays += 1;
        let silenced = self.slots.is_silenced(data.index, data.uid);
        if !silenced && self.told_unknown.take(now, Net::of(from.ip())) {
            self.answer_stranger(from, length, ServerDatagram::Disconnect(Text::cut("unknown session")));
        }
    }

    /// Answers somebody who has proved nothing: never with more than three times what came (S16).
    fn answer_stranger(&mut self, to: SocketAddr, received: usize, datagram: ServerDatagram<'_>) {
        let mut bytes = Vec::new();
        datagram.emit(&mut bytes);
        if bytes.len() <= ALWAYS_ALLOWED.max(3 * received) && self.answers.len() < MOST_ANSWERS {
            self.answers.push_back((to, bytes));
        }
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
        if let Some((to, bytes)) = self.answers.pop_front() {
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

/// A data datagram of either kind.
struct Data<'a> {
    number: MessageNumber,
    index: SlotIndex,
    uid: Uid,
    proof: Option<Rand>,
    input: Option<SealInput>,
    bytes: &'a [u8],
}

impl Data<'_> {
    /// In a plain session the rand has to be right; in an encrypted one the seal tells, later.
    fn is_proved_for(&self, protection: &Protection) -> bool {
        match (protection, self.proof) {
            (Protection::Plain(rand), Some(proof)) => *rand == proof,
            (Protection::Sealed { .. }, None) => true,
            _ => false,
        }
    }
}

impl Seat {
    fn player(&self) -> PlayerId {
        PlayerId { index: self.connection.index(), uid: self.connection.uid() }
    }
}

impl fmt::Debug for PlayerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "player {}", self.index.get())
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("stats", &self.stats()).finish_non_exhaustive()
    }
}
