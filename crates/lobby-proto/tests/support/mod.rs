//! A lobby on virtual time, and servers that register there.
#![allow(dead_code, reason = "each test file uses some of it")]

use rallypoint_lobby_proto::{
    Ban, BanList, CheckRequest, CheckResult, CheckTarget, Config, Event, HashKeys, ListedServer, NetworkSet,
    RegistrationOutcome, Registry, SaveFileWriter, UnlistReason,
    doors::{DatagramDoor, Datagrams, DoorReply, LEGACY, RequestDoor},
};
use rallypoint_wire::legacy::ListRequest;
use rallypoint_wire::lobby::{
    ListId, Occupancy, ProtocolId, Registration, ServerId, TableBuf, Transport, Unregister, blocks,
};
use std::{
    net::{IpAddr, SocketAddr},
    ops::{Deref, DerefMut},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

pub const LOBBY: ListId = ListId::GANG_GARRISON_2;
pub const KEYS: HashKeys = HashKeys { tables: 0x5eed, public_ids: [0xab; 16] };

/// How late an endpoint may expire.
pub const GRAIN: Duration = ms(250);

pub const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// The address of a test server by number, in a network of its own.
pub fn address(number: u32) -> IpAddr {
    IpAddr::from((0x0b00_0000 + (number << 8) + 1).to_be_bytes())
}

pub fn networks(texts: &[&str]) -> NetworkSet {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// Another lobby than [`LOBBY`], by number.
pub fn lobby(number: u32) -> ListId {
    ListId::from_bytes(u128::from(number).to_be_bytes())
}

/// The data of a server.
#[derive(Clone, Debug)]
pub struct Server {
    pub id: u128,
    pub lobby: ListId,
    pub transport: Transport,
    pub port: u16,
    pub occupancy: Occupancy,
    pub keys: Vec<(Vec<u8>, Vec<u8>)>,
}

/// A UDP server, which is listed at once.
pub fn udp(id: u128) -> Server {
    Server {
        id,
        lobby: LOBBY,
        transport: Transport::Udp,
        port: 8190,
        occupancy: Occupancy::default(),
        keys: vec![(b"name".to_vec(), format!("server {id}").into_bytes())],
    }
}

/// A TCP server, which is checked first.
pub fn tcp(id: u128) -> Server {
    Server { transport: Transport::Tcp, ..udp(id) }
}

impl Server {
    pub fn port(self, port: u16) -> Self {
        Self { port, ..self }
    }

    pub fn lobby(self, lobby: ListId) -> Self {
        Self { lobby, ..self }
    }

    pub fn name(self, name: &str) -> Self {
        self.key("name", name.as_bytes())
    }

    pub fn players(mut self, players: u16) -> Self {
        self.occupancy.players = players;
        self
    }

    pub fn key(mut self, key: &str, value: impl AsRef<[u8]>) -> Self {
        self.keys.retain(|(known, _)| known != key.as_bytes());
        self.keys.push((key.as_bytes().to_vec(), value.as_ref().to_vec()));
        self
    }

    pub fn server_id(&self) -> ServerId {
        ServerId::from_bytes(self.id.to_be_bytes())
    }

    pub fn datagram(&self) -> Vec<u8> {
        let mut table = TableBuf::new();
        for (key, value) in &self.keys {
            table.push(key, value).unwrap();
        }
        let (id, port) = (self.server_id(), self.port.try_into().unwrap());
        let new = Registration::new(id, self.lobby, self.transport, port, self.occupancy, table.as_table()).unwrap();
        let mut datagram = Vec::new();
        new.emit(&mut datagram);
        datagram
    }
}

pub fn unregister(id: u128) -> Vec<u8> {
    let mut datagram = Vec::new();
    Unregister { server_id: ServerId::from_bytes(id.to_be_bytes()) }.emit(&mut datagram);
    datagram
}

/// The legacy door: its datagrams, and the requests of its clients.
fn legacy() -> (Box<dyn DatagramDoor>, Box<dyn RequestDoor>) {
    let sockets = LEGACY.sockets.as_ref().expect("it has sockets");
    let Some(Datagrams::Protocol(datagrams)) = sockets.datagrams else { panic!("its registrations are converted") };
    (datagrams(&KEYS), sockets.requests.expect("its clients use TCP")())
}

/// A registry with its clock.
pub struct Lobby {
    pub registry: Registry,
    pub now: Instant,
    /// Whether the invariants are checked only when the test requests it.
    pub skips_invariants: bool,
    source_port: u16,
    checks: Vec<CheckRequest>,
    events: Vec<Event>,
    legacy: (Box<dyn DatagramDoor>, Box<dyn RequestDoor>),
}

impl Default for Lobby {
    fn default() -> Self {
        Self::new(Config::default())
    }
}

impl Deref for Lobby {
    type Target = Registry;

    fn deref(&self) -> &Registry {
        &self.registry
    }
}

impl DerefMut for Lobby {
    fn deref_mut(&mut self) -> &mut Registry {
        &mut self.registry
    }
}

impl Lobby {
    pub fn new(config: Config) -> Self {
        let now = Instant::now();
        Self {
            registry: Registry::new(config, KEYS, now).unwrap(),
            now,
            skips_invariants: false,
            source_port: 50_000,
            checks: Vec::new(),
            events: Vec::new(),
            legacy: legacy(),
        }
    }

    /// A lobby that lists servers without checks.
    pub fn unchecked() -> Self {
        let mut config = Config::default();
        config.checks.enabled = false;
        Self::new(config)
    }

    pub fn with(change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::default();
        change(&mut config);
        Self::new(config)
    }

    /// Delivers a datagram. The source port differs every time, as with several real servers (L11).
    pub fn send(&mut self, from: impl ToIp, bytes: &[u8]) -> RegistrationOutcome {
        self.source_port = self.source_port.checked_add(1).unwrap_or(50_000);
        let from = SocketAddr::new(from.to_ip(), self.source_port);
        let outcome = self.registry.handle_datagram(self.now, from, bytes);
        self.check();
        outcome
    }

    pub fn register(&mut self, from: impl ToIp, server: &Server) -> RegistrationOutcome {
        self.send(from, &server.datagram())
    }

    /// Delivers a datagram to the legacy door.
    pub fn send_legacy(&mut self, from: impl ToIp, bytes: &[u8]) -> RegistrationOutcome {
        let from = SocketAddr::new(from.to_ip(), 9);
        let outcome = self.legacy.0.handle_datagram(&mut self.registry, self.now, from, bytes);
        self.check();
        outcome
    }

    /// The published reply to legacy clients of a protocol.
    pub fn legacy_reply(&self, protocol: ProtocolId) -> Arc<[u8]> {
        let mut request = Vec::new();
        ListRequest { protocol_id: protocol }.emit(&mut request);
        match self.legacy.1.reply(self.now, &self.registry.lists(), &request) {
            Ok(DoorReply::Bytes(reply)) => reply,
            other => panic!("{other:?}"),
        }
    }

    pub fn unregister(&mut self, from: impl ToIp, id: u128) -> RegistrationOutcome {
        self.send(from, &unregister(id))
    }

    pub fn set(&mut self, change: impl FnOnce(&mut Config)) {
        let mut config = self.registry.config().clone();
        change(&mut config);
        self.registry.set_config(self.now, config).unwrap();
        self.check();
    }

    fn check(&self) {
        // This is slow if there are many servers.
        if !self.skips_invariants && self.registry.stats().registered < 100 {
            self.registry.check_invariants();
        }
    }

    /// Advances the time, with a timeout call whenever the registry requests one.
    pub fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(at) = self.registry.poll_timeout().filter(|&at| at <= end) {
            self.now = self.now.max(at);
            self.registry.handle_timeout(self.now);
        }
        self.now = end;
        self.check();
    }

    /// The list of [`LOBBY`] as a client receives it, one line per server, sorted.
    pub fn list(&mut self) -> Vec<String> {
        self.list_of(LOBBY)
    }

    pub fn list_of(&mut self, lobby: ListId) -> Vec<String> {
        self.registry.publish(self.now);
        let mut servers = published(&self.registry, lobby);
        servers.sort();
        servers
    }

    /// The targets of the checks that the lobby requests now.
    pub fn checks(&mut self) -> Vec<CheckTarget> {
        self.check_requests().into_iter().map(|request| request.target).collect()
    }

    pub fn check_requests(&mut self) -> Vec<CheckRequest> {
        self.poll();
        std::mem::take(&mut self.checks)
    }

    pub fn report(&mut self, target: CheckTarget, result: CheckResult) {
        self.registry.handle_check(self.now, target, result);
        self.check();
    }

    /// Answers all requested checks, and returns their number.
    pub fn settle(&mut self, result: CheckResult) -> usize {
        let checks = self.checks();
        checks.iter().for_each(|&target| self.report(target, result));
        checks.len()
    }

    /// The events since the last call, without the checks.
    pub fn events(&mut self) -> Vec<String> {
        self.poll();
        let show = |event| match event {
            Event::Check(_) => unreachable!("checks are stored separately"),
            Event::Listed(listing) => format!("listed {}", line(&listing)),
            Event::Changed(listing) => format!("changed {}", line(&listing)),
            Event::Unlisted(listing, why) => format!("{} {}", why.code(), line(&listing)),
        };
        self.events.drain(..).map(show).collect()
    }

    fn poll(&mut self) {
        while let Some(event) = self.registry.poll_event() {
            match event {
                Event::Check(request) => self.checks.push(request),
                event => self.events.push(event),
            }
        }
    }

    pub fn save(&self) -> Vec<u8> {
        let mut saver = SaveFileWriter::new();
        while !self.registry.save_next(self.now, &mut saver, 2) {}
        saver.finish()
    }

    pub fn unlisted(&self, reason: UnlistReason) -> u64 {
        self.registry.stats().unlisted[reason as usize]
    }
}

pub trait ToIp: Copy {
    fn to_ip(self) -> IpAddr;
}

impl ToIp for &str {
    fn to_ip(self) -> IpAddr {
        self.parse().unwrap()
    }
}

impl ToIp for IpAddr {
    fn to_ip(self) -> IpAddr {
        self
    }
}

pub const REACHABLE: CheckResult = CheckResult::Reachable(ms(20));

/// The published reply of a lobby, parsed as a client parses it. It has to agree with the listed servers.
pub fn published(registry: &Registry, lobby: ListId) -> Vec<String> {
    let list = registry.lists().list(&lobby);
    let reply: Vec<u8> = list.pieces().flatten().copied().collect();
    assert_eq!(reply.len(), list.size());
    let servers: Vec<_> = blocks(&reply).collect::<Result<_, _>>().expect("a valid reply");
    assert_eq!(servers.len(), list.count());
    assert!(servers.iter().eq(list.servers().map(|listing| listing.block()).collect::<Vec<_>>().iter()));
    assert!(list.servers().all(|listing| listing.list_id() == lobby));
    list.servers().map(line).collect()
}

/// `203.0.113.9:8190 udp server 7`, the endpoints in the order of [`rallypoint_wire::lobby::ListBlock::endpoints`].
pub fn line(listing: &Arc<ListedServer>) -> String {
    let block = listing.block();
    let endpoints: Vec<_> = block.endpoints().map(|endpoint| endpoint.to_string()).collect();
    let name = String::from_utf8_lossy(block.table.get(b"name").unwrap_or_default());
    format!("{} {} {name}", endpoints.join(" "), block.transport.as_str())
}

/// The current time in UTC when a test reads bans.
pub const UTC: SystemTime = SystemTime::UNIX_EPOCH;

/// A list of permanent bans.
pub fn permanent(bans: impl IntoIterator<Item = Ban>) -> BanList {
    BanList::new(bans, Instant::now(), UTC)
}
