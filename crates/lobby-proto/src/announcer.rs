//! Keeping a server registered: the other side of the registry.

use rallypoint_machine::{Machine, Transmit};
use rallypoint_wire::{
    DecodeError,
    lobby::{EntryError, LobbyId, Occupancy, Registration, ServerId, TableBuf, Transport, Unregister},
};
use std::{
    fmt,
    net::SocketAddr,
    num::NonZeroU16,
    time::{Duration, Instant},
};
use thiserror::Error;

/// 001 wants one every 30 seconds: then one can be lost without the server dropping from the list.
const REFRESH: Duration = Duration::from_secs(30);

/// The first registration is repeated once after this, because nobody wants to wait half a minute for a lost datagram.
const REPEAT: Duration = Duration::from_secs(3);

/// Changes are sent at once, but not more often than this.
const AT_MOST_EVERY: Duration = Duration::from_secs(1);

/// Keeps a server in the list of its lobbies.
///
/// * Getters: [`size`](Self::size).
/// * Commands: [`set_occupancy`](Self::set_occupancy), [`set_key`](Self::set_key), [`set_lobbies`](Self::set_lobbies),
///   [`stop`](Self::stop). Changes are sent at once (at most one datagram a second).
/// * Out: the calls of [`Machine`]. It expects no answers: the protocol has none.
///
/// ```
/// use rallypoint_lobby_proto::Announcer;
/// use rallypoint_machine::Machine;
/// use rallypoint_wire::lobby::*;
/// use std::time::Instant;
///
/// let id = ServerId::from_bytes([7; 16]); // random bytes in real life: it is a secret
/// let to = vec!["203.0.113.1:29944".parse()?];
/// let (lobby, port, now) = (LobbyId::GANG_GARRISON_2, 8190.try_into()?, Instant::now());
/// let mut announcer = Announcer::new(id, lobby, Transport::Tcp, port, b"Bacon Town 24/7", to, now)?;
/// announcer.set_occupancy(Occupancy { slots: 24, ..Occupancy::default() });
///
/// let mut datagram = Vec::new();
/// let transmit = announcer.poll_transmit(now, &mut datagram).unwrap();
/// assert_eq!((transmit.to.port(), transmit.len), (29944, datagram.len()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Announcer {
    server_id: ServerId,
    lobby_id: LobbyId,
    transport: Transport,
    port: NonZeroU16,
    occupancy: Occupancy,
    keys: Vec<(Vec<u8>, Vec<u8>)>,
    lobbies: Vec<SocketAddr>,
    /// Lobbies that get the present datagram.
    to_send: std::ops::Range<usize>,
    datagram: Vec<u8>,
    next: Option<Instant>,
    last: Option<Instant>,
    is_changed: bool,
    is_stopped: bool,
}

/// Why a server cannot be announced as it was described.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AnnounceError {
    /// A key or value does not fit.
    #[error(transparent)]
    Entry(#[from] EntryError),
    /// The registration would not be valid.
    #[error(transparent)]
    Invalid(#[from] DecodeError),
}

/// The datagram has the secret in it (L13).
impl fmt::Debug for Announcer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lobby_id, transport, port, lobbies, next, is_stopped, .. } = self;
        let mut debug = f.debug_struct("Announcer");
        debug.field("lobby_id", lobby_id).field("transport", transport).field("port", port);
        debug.field("lobbies", lobbies).field("next", next).field("is_stopped", is_stopped).finish_non_exhaustive()
    }
}

impl Announcer {
    /// Starts to announce a server. `lobbies` are the addresses of the same lobby's two families, or of several lobbies.
    pub fn new(
        server_id: ServerId,
        lobby_id: LobbyId,
        transport: Transport,
        port: NonZeroU16,
        name: &[u8],
        lobbies: Vec<SocketAddr>,
        now: Instant,
    ) -> Result<Self, AnnounceError> {
        let mut new = Self {
            server_id,
            lobby_id,
            transport,
            port,
            occupancy: Occupancy::default(),
            keys: Vec::new(),
            lobbies,
            to_send: 0..0,
            datagram: Vec::new(),
            next: Some(now),
            last: None,
            is_changed: true,
            is_stopped: false,
        };
        new.set_key(b"name", name)?;
        Ok(new)
    }

    /// How full the server is now.
    pub fn set_occupancy(&mut self, occupancy: Occupancy) {
        self.is_changed |= self.occupancy != occupancy;
        self.occupancy = occupancy;
        self.hurry();
    }

    /// Sets a key: `name`, `map`, `game`, `protocol_id`, `x-...`.
    ///
    /// # Errors
    /// If the registration would not be valid or too large with it; then nothing has changed.
    pub fn set_key(&mut self, key: &[u8], value: &[u8]) -> Result<(), AnnounceError> {
        let old = self.keys.clone();
        match self.keys.iter_mut().find(|(known, _)| known == key) {
            Some((_, known)) if known == value => return Ok(()),
            Some((_, known)) => *known = value.to_vec(),
            None => self.keys.push((key.to_vec(), value.to_vec())),
        }
        if let Err(error) = self.emit(&mut Vec::new()) {
            self.keys = old;
            return Err(error);
        }
        self.is_changed = true;
        self.hurry();
        Ok(())
    }

    /// The lobbies are somewhere else now: they hear of the server as soon as they may.
    pub fn set_lobbies(&mut self, lobbies: Vec<SocketAddr>) {
        if !self.is_stopped && self.lobbies != lobbies {
            self.lobbies = lobbies;
            self.to_send = 0..0;
            self.is_changed = true;
            self.hurry();
        }
    }

    /// Takes the server off the list: what [`Machine::poll_transmit`] gives from now on are the last datagrams.
    pub fn stop(&mut self) {
        if self.is_stopped {
            return;
        }
        self.is_stopped = true;
        self.next = None;
        self.datagram.clear();
        Unregister { server_id: self.server_id }.emit(&mut self.datagram);
        // A server that was never announced has nothing to take back.
        self.to_send = if self.last.is_some() { 0..self.lobbies.len() } else { 0..0 };
    }

    /// How many bytes its registration has. Lobbies take 4,096 unless they are set up otherwise (L15).
    #[must_use]
    pub fn size(&self) -> usize {
        let mut registration = Vec::new();
        // `set_key` has made sure that it can be emitted.
        let _ = self.emit(&mut registration);
        registration.len()
    }

    fn emit(&self, out: &mut Vec<u8>) -> Result<(), AnnounceError> {
        let mut table = TableBuf::new();
        for (key, value) in &self.keys {
            table.push(key, value)?;
        }
        let (id, lobby, table) = (self.server_id, self.lobby_id, table.as_table());
        Registration::new(id, lobby, self.transport, self.port, self.occupancy, table)?.emit(out);
        Ok(())
    }

    /// A change goes out as soon as it may.
    fn hurry(&mut self) {
        if let (true, Some(next), Some(last)) = (self.is_changed, self.next, self.last) {
            self.next = Some(next.min(last + AT_MOST_EVERY));
        }
    }

    fn begin_round(&mut self, now: Instant) {
        if self.is_changed {
            self.is_changed = false;
            self.datagram.clear();
            let mut datagram = std::mem::take(&mut self.datagram);
            // `set_key` has made sure that it can be emitted.
            let _ = self.emit(&mut datagram);
            self.datagram = datagram;
        }
        let wait = if self.last.is_some() { REFRESH } else { REPEAT };
        self.last = Some(now);
        self.next = Some(now + wait);
        self.to_send = 0..self.lobbies.len();
    }
}

impl Machine for Announcer {
    type Event = ();

    fn handle_datagram(&mut self, _now: Instant, _from: SocketAddr, _bytes: &[u8]) {}

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        if self.to_send.is_empty() && self.next.is_some_and(|next| next <= now) {
            self.begin_round(now);
        }
        let lobby = self.to_send.next()?;
        out.extend_from_slice(&self.datagram);
        Some(Transmit::one(self.lobbies[lobby], self.datagram.len()))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.next
    }
}
