//! The state machine that keeps a server registered: when to send which datagram to which lobby.

use crate::AnnounceError;
use rallypoint_machine::{Machine, Transmit};
use rallypoint_wire::lobby::{ListId, Occupancy, Registration, ServerId, TableBuf, Transport, Unregister};
use std::{
    fmt,
    net::SocketAddr,
    num::NonZeroU16,
    time::{Duration, Instant},
};

/// Interval between registrations. Document 001 requires 30 seconds: the lease is long enough that one of them can be lost
/// without the server dropping from the list.
const REFRESH: Duration = Duration::from_secs(30);

/// Time after which the first registration is repeated once: if that datagram is lost, the server would otherwise be missing
/// from the list for half a minute.
const REPEAT: Duration = Duration::from_secs(3);

/// Minimum interval between registrations, however often the server's details change.
const MIN_INTERVAL: Duration = Duration::from_secs(1);

/// Decides when to register a server with its lobbies; knows no sockets and no clock.
///
/// * Getters: [`registration_size`](Self::registration_size).
/// * Commands: [`set_occupancy`](Self::set_occupancy), [`set_key`](Self::set_key), [`set_lobbies`](Self::set_lobbies),
///   [`stop`](Self::stop). Changes are sent at once (at most one datagram a second).
/// * Out: the calls of [`Machine`]. Received datagrams are ignored: lobbies do not answer.
///
/// ```
/// use rallypoint_announce::Announcer;
/// use rallypoint_machine::Machine;
/// use rallypoint_wire::lobby::*;
/// use std::time::Instant;
///
/// let id = ServerId::from_bytes([7; 16]); // use random bytes: the ID is a secret
/// let lobbies = vec!["203.0.113.1:29944".parse()?];
/// let port = 8190.try_into()?;
/// let now = Instant::now();
/// let list_id = ListId::GANG_GARRISON_2;
/// let mut announcer = Announcer::new(id, list_id, Transport::Tcp, port, b"Bacon Town 24/7", lobbies, now)?;
/// announcer.set_occupancy(Occupancy { slots: 24, ..Occupancy::default() });
///
/// let mut datagram = Vec::new();
/// let transmit = announcer.poll_transmit(now, &mut datagram).unwrap();
/// assert_eq!((transmit.to.port(), transmit.len), (29944, datagram.len()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Announcer {
    server_id: ServerId,
    list_id: ListId,
    transport: Transport,
    port: NonZeroU16,
    occupancy: Occupancy,
    keys: Vec<(Vec<u8>, Vec<u8>)>,
    lobbies: Vec<SocketAddr>,
    /// Indices of the lobbies that the current datagram still has to be sent to.
    to_send: std::ops::Range<usize>,
    datagram: Vec<u8>,
    /// Time of the next round; `None` once stopped.
    next: Option<Instant>,
    /// Time of the last round.
    last: Option<Instant>,
    /// Whether the datagram has to be built again.
    is_changed: bool,
    is_stopped: bool,
}

/// Leaves out the datagram and the ID: they are secret (L13).
impl fmt::Debug for Announcer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { list_id, transport, port, lobbies, next, is_stopped, .. } = self;
        let mut debug = f.debug_struct("Announcer");
        debug.field("list_id", list_id).field("transport", transport).field("port", port);
        debug.field("lobbies", lobbies).field("next", next).field("is_stopped", is_stopped).finish_non_exhaustive()
    }
}

impl Announcer {
    /// A server that is registered from `now` on. `lobbies` are the addresses of one lobby in both families, or of several
    /// lobbies.
    ///
    /// # Errors
    /// If the name is empty or too long.
    pub fn new(
        server_id: ServerId,
        list_id: ListId,
        transport: Transport,
        port: NonZeroU16,
        name: &[u8],
        lobbies: Vec<SocketAddr>,
        now: Instant,
    ) -> Result<Self, AnnounceError> {
        let mut new = Self {
            server_id,
            list_id,
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

    /// Sets the number of slots, players and bots.
    pub fn set_occupancy(&mut self, occupancy: Occupancy) {
        self.is_changed |= self.occupancy != occupancy;
        self.occupancy = occupancy;
        self.send_early();
    }

    /// Sets a key: `name`, `map`, `game`, `protocol_id`, `x-...`.
    ///
    /// # Errors
    /// If the registration would not be valid or too large with it; then nothing has changed.
    pub fn set_key(&mut self, key: &[u8], value: &[u8]) -> Result<(), AnnounceError> {
        // Before anything is copied: what is too long can be of any length.
        TableBuf::new().push(key, value)?;
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
        self.send_early();
        Ok(())
    }

    /// Replaces the addresses of the lobbies. The server registers there as soon as the minimum interval allows.
    pub fn set_lobbies(&mut self, lobbies: Vec<SocketAddr>) {
        if !self.is_stopped && self.lobbies != lobbies {
            self.lobbies = lobbies;
            self.to_send = 0..0;
            self.is_changed = true;
            self.send_early();
        }
    }

    /// Unregisters the server: [`Machine::poll_transmit`] returns one datagram for each lobby and then nothing more.
    pub fn stop(&mut self) {
        if self.is_stopped {
            return;
        }
        self.is_stopped = true;
        self.next = None;
        self.datagram.clear();
        Unregister { server_id: self.server_id }.emit(&mut self.datagram);
        // A server that was never registered has nothing to unregister.
        self.to_send = if self.last.is_some() { 0..self.lobbies.len() } else { 0..0 };
    }

    /// Size of the registration in bytes. Lobbies accept 4,096 unless configured otherwise (L15).
    #[must_use]
    pub fn registration_size(&self) -> usize {
        let mut registration = Vec::new();
        // Cannot fail: `set_key` accepts only what can be emitted.
        let _ = self.emit(&mut registration);
        registration.len()
    }

    fn emit(&self, out: &mut Vec<u8>) -> Result<(), AnnounceError> {
        let mut table = TableBuf::new();
        for (key, value) in &self.keys {
            table.push(key, value)?;
        }
        let Self { server_id, list_id, transport, port, occupancy, .. } = *self;
        Registration::new(server_id, list_id, transport, port, occupancy, table.as_table())?.emit(out);
        Ok(())
    }

    /// Moves the next round forward if there is a change to send, within the minimum interval.
    fn send_early(&mut self) {
        if let (true, Some(next), Some(last)) = (self.is_changed, self.next, self.last) {
            self.next = Some(next.min(last + MIN_INTERVAL));
        }
    }

    fn begin_round(&mut self, now: Instant) {
        if self.is_changed {
            self.is_changed = false;
            self.datagram.clear();
            let mut datagram = std::mem::take(&mut self.datagram);
            // Cannot fail: `set_key` accepts only what can be emitted.
            let _ = self.emit(&mut datagram);
            self.datagram = datagram;
        }
        let interval = if self.last.is_some() { REFRESH } else { REPEAT };
        self.last = Some(now);
        self.next = Some(now + interval);
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
