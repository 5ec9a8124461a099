//! The door of Quake 3 and its relatives (ioquake3, OpenArena, DarkPlaces, Xonotic): the protocol of dpmaster.
//!
//! A heartbeat proves nothing, because its source can be forged. So it is answered with a challenge, and the server is listed when
//! its reply has that challenge and comes from the port that is listed. The challenge is a keyed hash of address and time:
//! heartbeats take no memory, however many are forged.
//!
//! ```text
//! server   heartbeat ─►  getinfo CHALLENGE ─►  infoResponse  ─►  listed; a server that is listed and does not reply is removed
//! client   getservers ─► the list, cut to the budget of an address that is not proven
//! ```

mod challenge;
mod deadlines;
mod list;

use super::{
    DatagramDoor, Datagrams, Door, DoorSockets, DoorStats, header_bytes, reflection_budget, rendered::Rendered,
};
use crate::{HashKeys, ListingOrigin, ProbedOutcome, ProbedServer, RegistrationOutcome, Registry, UnlistReason};
use challenge::Challenges;
use deadlines::Deadlines;
use list::Row;
use rallypoint_machine::Transmit;
use rallypoint_wire::{
    DecodeError, DecodeErrorKind,
    lobby::{EntryError, ListId, Occupancy, TableBuf},
    quake3::{ListRequest, MAX_MESSAGE, MasterMessage, PORT},
    query::quake3::{InfoString, Request, strip_colours},
};
use std::{
    collections::VecDeque,
    net::SocketAddr,
    num::NonZeroU16,
    time::{Duration, Instant},
};

/// The protocol of dpmaster.
pub static QUAKE3: Door = Door {
    name: "quake3",
    code: 4,
    title: "Quake 3 and relatives (dpmaster)",
    is_default: false,
    sockets: Some(DoorSockets {
        setting: "doors.quake3",
        default: "[]",
        about: "Addresses of a master for Quake 3, OpenArena, Xonotic and other games that use dpmaster, UDP; their port is 27950.",
        port: PORT,
        datagrams: Some(Datagrams::Protocol(|keys| Box::new(Master::new(keys)))),
        requests: None,
    }),
    http: None,
    query: None,
};

/// The list of all games of this door; their names tell them apart. Defined by this project.
const LIST: ListId = ListId::from_bytes([
    0x5e, 0x0a, 0x41, 0x3c, 0x97, 0xd2, 0x4b, 0x6f, 0x8c, 0x35, 0x51, 0x33, 0x41, 0x27, 0x95, 0x0d,
]);

/// How long a reply keeps a server listed. Servers send a heartbeat every 300 seconds, so two may be lost.
const LEASE: Duration = Duration::from_secs(15 * 60);

/// Number of challenges after a heartbeat of a listed server. One without a reply has ended: the last heartbeat of a server that
/// ends looks like any other.
const ATTEMPTS: u8 = 4;

/// Interval between them.
const RETRY: Duration = Duration::from_secs(1);

/// Maximum number of datagrams that wait to be sent. The event loop sends them after every batch of received ones.
const MAX_QUEUE: usize = 1_024;

/// Maximum length of a text of a server, in bytes.
const MAX_TEXT: usize = 128;

#[derive(Debug)]
struct Master {
    challenges: Challenges,
    queue: VecDeque<(SocketAddr, Vec<u8>)>,
    /// Listed servers that have sent a heartbeat and not yet replied.
    awaited: Deadlines<SocketAddr>,
    rows: Rendered<Vec<Row>>,
    /// Where the next list begins that has to be cut.
    rotation: usize,
    stats: DoorStats,
}

impl Master {
    fn new(keys: &HashKeys) -> Self {
        Self {
            challenges: Challenges::new(keys),
            queue: VecDeque::new(),
            awaited: Deadlines::new(),
            rows: Rendered::default(),
            rotation: 0,
            stats: DoorStats::default(),
        }
    }

    fn send(&mut self, to: SocketAddr, bytes: Vec<u8>) {
        self.stats.sent_bytes += (bytes.len() + header_bytes(to.ip())) as u64;
        self.queue.push_back((to, bytes));
    }

    fn challenge(&mut self, now: Instant, server: SocketAddr) {
        let mut bytes = Vec::new();
        Request::Info(&self.challenges.challenge(now, server)).emit(&mut bytes);
        self.send(server, bytes);
    }

    /// Answers the heartbeat of a server with a challenge.
    fn handle_heartbeat(&mut self, registry: &mut Registry, now: Instant, from: SocketAddr) -> RegistrationOutcome {
        let Some(port) = NonZeroU16::new(from.port()) else { return RegistrationOutcome::InvalidSource };
        if let Some(refused) = registry.precheck_probed(now, from.ip(), port) {
            return refused;
        }
        if !registry.is_listed_as(&label(from)) {
            self.challenge(now, from);
            return RegistrationOutcome::Checking;
        }
        // The heartbeats of a listed server that arrive before its reply are one: forged ones cause no more challenges.
        if self.awaited.begin(from, now + RETRY) {
            self.challenge(now, from);
        }
        RegistrationOutcome::Refreshed
    }

    /// Lists a server whose reply has the challenge that was sent to it.
    fn handle_info(
        &mut self,
        registry: &mut Registry,
        now: Instant,
        from: SocketAddr,
        info: InfoString<'_>,
    ) -> RegistrationOutcome {
        let latency = info.get("challenge").and_then(|challenge| self.challenges.verify(now, from, challenge));
        let Some(latency) = latency else { return RegistrationOutcome::WrongChallenge };
        let server = match probed_server(from, info, latency) {
            Ok(server) => server,
            Err(error) => return RegistrationOutcome::Malformed(error),
        };
        self.awaited.remove(from);
        let was_listed = registry.is_listed_as(&server.label);
        match registry.handle_probed(now, &server) {
            ProbedOutcome::Listed(_) if was_listed => RegistrationOutcome::Refreshed,
            ProbedOutcome::Listed(_) => RegistrationOutcome::Listed,
            ProbedOutcome::Taken => RegistrationOutcome::ListedByQuery,
            ProbedOutcome::Refused(outcome) => outcome,
        }
    }

    /// Sends the servers that a client requests, as far as the budget of its request allows.
    fn handle_list_request(
        &mut self,
        registry: &Registry,
        now: Instant,
        from: SocketAddr,
        request: &ListRequest<'_>,
        size: usize,
    ) {
        self.stats.list_requests += 1;
        let rows = self.rows.get(now, &registry.lists().list(&LIST), |list, _| list::rows(list));
        let is_trusted = registry.config().whole_lists.contains(from.ip());
        let budget = if is_trusted { usize::MAX } else { reflection_budget(from.ip(), size) };
        let (datagrams, is_cut) = list::datagrams(&rows, request, header_bytes(from.ip()), budget, &mut self.rotation);
        self.stats.cut_lists += u64::from(is_cut);
        datagrams.into_iter().for_each(|datagram| self.send(from, datagram));
    }
}

impl DatagramDoor for Master {
    fn handle_datagram(
        &mut self,
        registry: &mut Registry,
        now: Instant,
        from: SocketAddr,
        bytes: &[u8],
    ) -> RegistrationOutcome {
        let from = SocketAddr::new(from.ip().to_canonical(), from.port());
        self.stats.received_bytes += (bytes.len() + header_bytes(from.ip())) as u64;
        let admitted = registry.admit_size(now, from.ip(), bytes.len());
        let outcome = match (admitted, MasterMessage::parse(bytes)) {
            (Err(refused), _) => refused,
            (Ok(()), Err(error)) => RegistrationOutcome::Malformed(error),
            (Ok(()), Ok(_)) if self.queue.len() >= MAX_QUEUE => RegistrationOutcome::CheckBusy,
            (Ok(()), Ok(MasterMessage::Heartbeat(_))) => self.handle_heartbeat(registry, now, from),
            (Ok(()), Ok(MasterMessage::InfoResponse(info))) => self.handle_info(registry, now, from, info),
            (Ok(()), Ok(MasterMessage::ListRequest(request))) => {
                self.handle_list_request(registry, now, from, &request, bytes.len());
                RegistrationOutcome::ListRequested
            }
        };
        let is_malformed = matches!(outcome, RegistrationOutcome::Malformed(_));
        registry.record_door_outcome(now, from.ip(), (!is_malformed).then_some(from.port()), outcome);
        outcome
    }

    fn handle_timeout(&mut self, registry: &mut Registry, now: Instant) {
        while let Some((server, attempts)) = self.awaited.take_due(now) {
            if attempts < ATTEMPTS && registry.is_listed_as(&label(server)) {
                self.awaited.repeat(server, attempts + 1, now + RETRY);
                self.challenge(now, server);
            } else {
                registry.remove_probed(now, &label(server), UnlistReason::Unreachable);
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.awaited.next()
    }

    fn poll_transmit(&mut self, _now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        let (to, bytes) = self.queue.pop_front()?;
        out.extend_from_slice(&bytes);
        Some(Transmit::one(to, bytes.len()))
    }

    fn max_datagram(&self) -> usize {
        MAX_MESSAGE
    }

    fn stats(&self) -> Option<DoorStats> {
        Some(self.stats)
    }
}

/// Identifies the server at an address.
fn label(server: SocketAddr) -> String {
    format!("quake3 {server}")
}

/// A server as the list shows it.
fn probed_server(from: SocketAddr, info: InfoString<'_>, latency: Duration) -> Result<ProbedServer, DecodeError> {
    let missing = |field| DecodeError { field, kind: DecodeErrorKind::Missing };
    let number = |key| std::str::from_utf8(info.get(key)?).ok()?.parse::<u32>().ok();
    let count = |key| number(key).and_then(|count| u16::try_from(count).ok());
    let slots = count("sv_maxclients").filter(|slots| *slots > 0).ok_or(missing("sv_maxclients"))?;
    let protocol = number("protocol").ok_or(missing("protocol"))?;
    let clients = count("clients").ok_or(missing("clients"))?;
    let bots = match count("bots") {
        Some(bots) => bots.min(clients),
        None => count("g_humanplayers").map_or(0, |humans| clients.saturating_sub(humans)),
    };
    let occupancy = Occupancy {
        slots,
        players: clients - bots,
        bots,
        password: number("g_needpass").is_some_and(|needed| needed != 0),
    };
    let mut table = TableBuf::new();
    let filled: Result<(), EntryError> = (|| {
        let addr = from.to_string();
        let name = info.get("hostname").map(plain).filter(|name| !name.is_empty());
        table.push(b"name", &name.unwrap_or_else(|| addr.into_bytes()))?;
        // Versions before ioquake3 do not tell their game: all of them are Quake 3.
        let game = info.get("gamename").map(plain).filter(|game| !game.is_empty());
        table.push(b"game", &game.unwrap_or_else(|| b"Quake3Arena".to_vec()))?;
        for (key, from) in [(&b"map"[..], "mapname"), (b"x-mode", "gametype")] {
            if let Some(value) = info.get(from).map(plain).filter(|value| !value.is_empty()) {
                table.push(key, &value)?;
            }
        }
        table.push(b"x-protocol", protocol.to_string().as_bytes())?;
        table.push(b"x-query", b"quake3")
    })();
    filled.map_err(|_| DecodeError { field: "info string", kind: DecodeErrorKind::TooLong })?;
    Ok(ProbedServer {
        label: label(from),
        origin: ListingOrigin::Announced,
        door: Some(&QUAKE3),
        list: LIST,
        ips: vec![from.ip()],
        port: NonZeroU16::new(from.port()).ok_or(missing("port"))?,
        occupancy,
        table,
        latency,
        lease: LEASE,
    })
}

/// A text without its colours, cut to a length that fits.
fn plain(text: &[u8]) -> Vec<u8> {
    let mut plain = strip_colours(text).into_owned();
    plain.truncate(MAX_TEXT);
    plain
}
