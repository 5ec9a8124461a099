//! Announcing for game loops: one call per frame, no runtime.

use crate::{
    AnnounceConfig, AnnounceError, AnnounceEvent, AnnounceStartError, Announcer, ResolvedLobby, resolver::Resolver,
    sockets::Sockets,
};
use rallypoint_machine::Machine;
use rallypoint_udp::{clock, entropy};
use rallypoint_wire::lobby::{Occupancy, ServerId};
use std::{
    collections::VecDeque,
    net::SocketAddr,
    time::{Duration, Instant},
};

/// Time after which an unregistration is repeated, in case the first datagram is lost: lobbies do not acknowledge it.
const REPEAT_UNREGISTER: Duration = Duration::from_millis(200);

/// Maximum number of queued events; the oldest is dropped when the owner does not read them.
const MAX_EVENTS: usize = 64;

/// Keeps a game server registered with lobbies, from a loop that calls [`poll`](Self::poll).
///
/// Nothing happens between two calls, and none of them blocks: names are resolved by short-lived background threads.
///
/// * Getters: [`lobbies`](Self::lobbies), [`registrations_sent`](Self::registrations_sent),
///   [`is_resolving`](Self::is_resolving), [`is_finished`](Self::is_finished).
/// * Commands: [`set_occupancy`](Self::set_occupancy), [`set_key`](Self::set_key), [`stop`](Self::stop).
/// * Out: [`next_event`](Self::next_event), [`poll_timeout`](Self::poll_timeout).
///
/// ```
/// use rallypoint_announce::{AnnounceConfig, PolledAnnouncer};
///
/// let mut config = AnnounceConfig::new("Bacon Town 24/7", 8190.try_into()?);
/// config.lobbies.push("127.0.0.1:9".parse()?);
/// let mut announcer = PolledAnnouncer::new(config)?;
/// # for _ in 0..2 {
/// // Once per frame:
/// announcer.poll();
/// while let Some(event) = announcer.next_event() {
///     eprintln!("{event}");
/// }
/// # }
/// assert_eq!(announcer.registrations_sent(), 1);
///
/// // At the end:
/// announcer.stop();
/// while !announcer.is_finished() {
///     announcer.poll();
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct PolledAnnouncer {
    announcer: Announcer,
    sockets: Sockets,
    resolver: Resolver,
    lobbies: Vec<ResolvedLobby>,
    /// Whether the first resolution of the names is still in progress.
    is_resolving: bool,
    not_found: Vec<crate::LobbyHost>,
    events: VecDeque<AnnounceEvent>,
    registrations_sent: u64,
    shutdown: Shutdown,
}

/// How far unregistering has come.
#[derive(Debug)]
enum Shutdown {
    Running,
    /// The first unregistration was sent; it is repeated at this time.
    Repeat {
        at: Instant,
        datagrams: Vec<(SocketAddr, Vec<u8>)>,
    },
    Finished,
}

impl PolledAnnouncer {
    /// Opens the sockets and starts to resolve the names of the lobbies. The first [`poll`](Self::poll) registers the
    /// server with all lobbies whose addresses are known by then.
    ///
    /// # Errors
    /// If the configuration is not valid, or no socket can be opened.
    pub fn new(config: AnnounceConfig) -> Result<Self, AnnounceStartError> {
        if config.lobbies.is_empty() {
            return Err(AnnounceStartError::NoLobby);
        }
        let now = clock::now();
        let server_id = match config.server_id {
            Some(id) => id,
            None => ServerId::from_bytes(entropy::bytes()?),
        };
        let announcer = config.announcer(server_id, now)?;
        Ok(Self {
            announcer,
            sockets: Sockets::open()?,
            resolver: Resolver::new(config.lobbies, now),
            lobbies: Vec::new(),
            is_resolving: true,
            not_found: Vec::new(),
            events: VecDeque::new(),
            registrations_sent: 0,
            shutdown: Shutdown::Running,
        })
    }

    /// Sends the registrations that are due. To be called once per frame, or whenever
    /// [`poll_timeout`](Self::poll_timeout) has passed.
    pub fn poll(&mut self) {
        let now = clock::now();
        match &self.shutdown {
            Shutdown::Running => {
                self.resolve(now);
                self.register(now);
            }
            Shutdown::Repeat { at, .. } if *at <= now => self.finish(),
            Shutdown::Repeat { .. } | Shutdown::Finished => {}
        }
    }

    /// The next event, oldest first. Reading events is optional.
    pub fn next_event(&mut self) -> Option<AnnounceEvent> {
        self.events.pop_front()
    }

    /// When [`poll`](Self::poll) has something to do; `None` when unregistering is [finished](Self::is_finished).
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        match &self.shutdown {
            Shutdown::Running => {
                let resolver = self.resolver.poll_timeout(clock::now());
                // Without an address a registration that is due cannot be sent.
                let announcer = self.announcer.poll_timeout().filter(|_| !self.lobbies.is_empty());
                Some(announcer.map_or(resolver, |announcer| announcer.min(resolver)))
            }
            Shutdown::Repeat { at, .. } => Some(*at),
            Shutdown::Finished => None,
        }
    }

    /// Sets the current number of slots, players and bots. A change is sent with the next [`poll`](Self::poll), at most
    /// once per second.
    pub fn set_occupancy(&mut self, occupancy: Occupancy) {
        self.announcer.set_occupancy(occupancy);
    }

    /// Sets a key: `name`, `map`, `game`, `protocol_id`, `x-...`. A change is sent like that of the occupancy.
    ///
    /// # Errors
    /// If the registration would not be valid or too large with it; then nothing has changed.
    pub fn set_key(&mut self, key: &str, value: &[u8]) -> Result<(), AnnounceError> {
        self.announcer.set_key(key.as_bytes(), value)
    }

    /// Unregisters the server: the datagrams leave at once, and are repeated by a [`poll`](Self::poll) 200 ms later. A
    /// lobby that misses both keeps the server for up to 70 seconds.
    pub fn stop(&mut self) {
        if !matches!(self.shutdown, Shutdown::Running) {
            return;
        }
        let now = clock::now();
        self.announcer.stop();
        let datagrams = self.transmits(now);
        if datagrams.is_empty() {
            // Never registered.
            self.shutdown = Shutdown::Finished;
            return;
        }
        self.send(&datagrams);
        self.shutdown = Shutdown::Repeat { at: now + REPEAT_UNREGISTER, datagrams };
    }

    /// Repeats the unregistration immediately instead of after 200 ms, for a program that has to end now.
    pub fn finish(&mut self) {
        self.stop();
        if let Shutdown::Repeat { datagrams, .. } = std::mem::replace(&mut self.shutdown, Shutdown::Finished) {
            self.send(&datagrams);
        }
    }

    /// Whether the server is unregistered and nothing more will be sent.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        matches!(self.shutdown, Shutdown::Finished)
    }

    /// The lobbies whose addresses are known.
    #[must_use]
    pub fn lobbies(&self) -> &[ResolvedLobby] {
        &self.lobbies
    }

    /// The addresses of all lobbies, sorted, each once.
    #[must_use]
    pub fn addrs(&self) -> Vec<SocketAddr> {
        let mut addrs: Vec<_> = self.lobbies.iter().flat_map(|lobby| &lobby.addrs).copied().collect();
        addrs.sort();
        addrs.dedup();
        addrs
    }

    /// Number of registrations that have left this machine, each datagram counted. Whether they arrive, only the list of
    /// the lobby shows: the protocol has no acknowledgement.
    #[must_use]
    pub fn registrations_sent(&self) -> u64 {
        self.registrations_sent
    }

    /// Whether the first resolution of the lobbies' names is still in progress.
    #[must_use]
    pub fn is_resolving(&self) -> bool {
        self.is_resolving
    }

    /// Polls the resolution of the names, without sending anything.
    #[cfg(feature = "async")]
    pub(crate) fn resolve_now(&mut self) {
        self.resolve(clock::now());
    }

    fn resolve(&mut self, now: Instant) {
        let Some(resolution) = self.resolver.poll(now) else { return };
        self.is_resolving = false;
        for host in &resolution.not_found {
            if !self.not_found.contains(host) {
                self.push_event(AnnounceEvent::LobbyNotFound(host.clone()));
            }
        }
        self.not_found = resolution.not_found;
        if self.lobbies != resolution.lobbies {
            self.lobbies = resolution.lobbies;
            let addrs = self.addrs();
            self.sockets.retain_failures(|addr| addrs.contains(addr));
            self.announcer.set_lobbies(addrs);
            self.push_event(AnnounceEvent::LobbiesResolved);
        }
    }

    fn register(&mut self, now: Instant) {
        // A round without addresses would postpone the first registration.
        if !self.lobbies.is_empty() {
            let datagrams = self.transmits(now);
            self.registrations_sent += self.send(&datagrams);
        }
    }

    fn transmits(&mut self, now: Instant) -> Vec<(SocketAddr, Vec<u8>)> {
        let mut datagrams = Vec::new();
        let mut datagram = Vec::new();
        while let Some(transmit) = self.announcer.poll_transmit(now, &mut datagram) {
            datagrams.push((transmit.to, std::mem::take(&mut datagram)));
        }
        datagrams
    }

    /// Returns the number of datagrams that have left this machine.
    fn send(&mut self, datagrams: &[(SocketAddr, Vec<u8>)]) -> u64 {
        let mut sent = 0;
        for (to, datagram) in datagrams {
            match self.sockets.send(*to, datagram) {
                Ok(()) => sent += 1,
                Err(Some(reason)) => self.push_event(AnnounceEvent::SendFailed { to: *to, reason }),
                Err(None) => {}
            }
        }
        sent
    }

    fn push_event(&mut self, event: AnnounceEvent) {
        if self.events.len() == MAX_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LobbyHost, SendFailure};
    use std::{net::UdpSocket, time::Duration};

    fn lobby_socket() -> (UdpSocket, LobbyHost) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let host = socket.local_addr().unwrap().into();
        (socket, host)
    }

    fn config(lobbies: Vec<LobbyHost>) -> AnnounceConfig {
        let mut config = AnnounceConfig::new("server", 8190.try_into().unwrap());
        config.lobbies = lobbies;
        config
    }

    fn received(socket: &UdpSocket) -> usize {
        let mut datagram = [0; 512];
        socket.set_nonblocking(true).unwrap();
        std::iter::from_fn(|| socket.recv(&mut datagram).ok()).count()
    }

    #[test]
    fn a_lobby_whose_address_changes_is_registered_with_at_its_new_address() {
        let (old, old_host) = lobby_socket();
        let (new, new_host) = lobby_socket();
        let mut announcer = PolledAnnouncer::new(config(vec![old_host.clone()])).unwrap();
        announcer.poll();
        assert_eq!(announcer.next_event(), Some(AnnounceEvent::LobbiesResolved));
        assert_eq!(announcer.registrations_sent(), 1);
        // Resolved again with the same result, and then with another one.
        for (host, event) in [(old_host, None), (new_host, Some(AnnounceEvent::LobbiesResolved))] {
            announcer.resolver.replace(vec![host], clock::now());
            announcer.poll();
            assert_eq!(announcer.next_event(), event);
        }
        assert_eq!(announcer.addrs(), [new.local_addr().unwrap()]);
        announcer.finish();
        assert!(announcer.is_finished());
        assert_eq!(announcer.poll_timeout(), None);
        // The new address: not registered before the end, as changes are sent at most once per second, and unregistered
        // twice.
        assert_eq!((received(&old), received(&new)), (1, 2));
    }

    #[test]
    fn stopping_unregisters_twice_and_then_nothing_is_sent() {
        let (lobby, host) = lobby_socket();
        let mut announcer = PolledAnnouncer::new(config(vec![host])).unwrap();
        announcer.poll();
        announcer.stop();
        assert_eq!(received(&lobby), 2);
        while !announcer.is_finished() {
            let wait = announcer.poll_timeout().unwrap().saturating_duration_since(clock::now());
            assert!(wait <= REPEAT_UNREGISTER);
            std::thread::sleep(wait);
            announcer.poll();
        }
        assert_eq!(received(&lobby), 1);
        announcer.poll();
        announcer.finish();
        assert_eq!(received(&lobby), 0);
    }

    #[test]
    fn a_failure_to_send_is_reported_once() {
        // Sending to a broadcast address is not permitted on these sockets.
        let to: SocketAddr = "255.255.255.255:9".parse().unwrap();
        let mut announcer = PolledAnnouncer::new(config(vec![to.into()])).unwrap();
        announcer.poll();
        announcer.stop();
        let events: Vec<_> = std::iter::from_fn(|| announcer.next_event()).collect();
        let failures = |event: &&AnnounceEvent| matches!(event, AnnounceEvent::SendFailed { .. });
        assert_eq!(events.iter().filter(failures).count(), 1, "{events:?}");
        assert_eq!(announcer.registrations_sent(), 0);
        let reason = SendFailure::Blocked;
        assert_eq!(
            AnnounceEvent::SendFailed { to, reason }.to_string(),
            "cannot send to 255.255.255.255:9: the firewall of this machine blocks it"
        );
    }

    #[test]
    fn a_configuration_that_cannot_be_announced_is_refused() {
        assert!(matches!(PolledAnnouncer::new(config(Vec::new())), Err(AnnounceStartError::NoLobby)));
        let mut config = config(vec!["127.0.0.1".parse().unwrap()]);
        config.keys.push(("protocol_id".into(), b"short".to_vec()));
        let error = PolledAnnouncer::new(config).unwrap_err();
        assert_eq!(error.to_string(), "the server cannot be announced: protocol_id: protocol_id is not 16 bytes");
    }
}
