//! Ten thousand simulated game servers in one thread: one socket for all addresses of 127.0.0.0/8, which replies after a
//! delay, in the protocol of the query.

use crate::sys::{self, BATCH, Batch, Datagram};
use rallypoint_bench::{Random, address};
use rallypoint_machine::Machine;
use rallypoint_query_proto::{Responder, ResponderConfig, ServerInfo};
use rallypoint_wire::bloodmasters::Echo;
use std::{
    collections::{HashMap, VecDeque},
    io,
    net::UdpSocket,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::JoinHandle,
    time::{Duration, Instant, SystemTime},
};

/// Delay of each reply.
const DELAY: Duration = Duration::from_millis(20);

/// Time window for the largest burst.
pub const WINDOW: Duration = Duration::from_millis(10);

/// Conditions of the simulated network.
#[derive(Clone, Copy, Debug, Default)]
pub struct Network {
    /// Every n-th server is dead; 0 means none.
    pub dead: u32,
    /// Loss in percent, in each direction.
    pub loss: u32,
}

/// The servers, which run until they are dropped.
pub struct Servers {
    pub port: u16,
    is_over: Arc<AtomicBool>,
    flow: Arc<Mutex<Flow>>,
    holds: Arc<Mutex<Holds>>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

/// How long each server, by number, had the query before it replied: the round trip that a perfect client measures, but for the
/// loopback device.
pub type Holds = HashMap<u32, Duration>;

/// A reply that is due at some time.
struct Waiting {
    due: Instant,
    /// When the query arrived, by the clock of the kernel's timestamps.
    arrived: Duration,
    number: u32,
    reply: Datagram,
}

/// Arrival times of datagrams.
#[derive(Default)]
struct Flow {
    /// Arrivals within [`WINDOW`].
    recent: VecDeque<Duration>,
    last: Option<Duration>,
    seen: Pacing,
}

/// Deviation from even spacing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pacing {
    /// Maximum number of datagrams within [`WINDOW`].
    pub burst: usize,
    /// Longest time between two datagrams.
    pub gap: Duration,
}

impl Servers {
    pub fn start(network: Network) -> io::Result<Self> {
        let socket = UdpSocket::bind("0.0.0.0:0")?;
        sys::prepare(&socket, true)?;
        let port = socket.local_addr()?.port();
        let is_over = Arc::new(AtomicBool::new(false));
        let flow = Arc::new(Mutex::new(Flow::default()));
        let holds = Arc::new(Mutex::new(Holds::default()));
        let thread = std::thread::spawn({
            let is_over = is_over.clone();
            let flow = flow.clone();
            let holds = holds.clone();
            move || serve(&socket, network, &is_over, &flow, &holds)
        });
        Ok(Self { port, is_over, flow, holds, thread: Some(thread) })
    }

    /// The first reply of each server since the last call.
    pub fn take_holds(&self) -> Holds {
        std::mem::take(&mut *self.holds.lock().expect("no thread panics while it holds the lock"))
    }

    /// The pacing since the last call.
    pub fn take_pacing(&self) -> Pacing {
        std::mem::take(&mut *self.flow.lock().expect("no thread panics while it holds the lock")).seen
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.is_over.store(true, Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Flow {
    /// Records the arrival of a datagram.
    fn add(&mut self, now: Duration) {
        self.seen.gap = self.seen.gap.max(self.last.map_or(Duration::ZERO, |last| now.saturating_sub(last)));
        self.last = Some(now);
        self.recent.push_back(now);
        while self.recent.pop_front_if(|at| *at + WINDOW <= now).is_some() {}
        self.seen.burst = self.seen.burst.max(self.recent.len());
    }
}

fn serve(
    socket: &UdpSocket,
    network: Network,
    is_over: &AtomicBool,
    flow: &Mutex<Flow>,
    holds: &Mutex<Holds>,
) -> io::Result<()> {
    let answers = Answers::new();
    let mut batch = Batch::new();
    let mut random = Random::new(7);
    let mut waiting: VecDeque<Waiting> = VecDeque::new();
    while !is_over.load(Relaxed) {
        let now = Instant::now();
        let count = batch.receive(socket, true)?;
        if count > 0 {
            let mut flow = flow.lock().expect("no thread panics while it holds the lock");
            (0..count).for_each(|n| flow.add(batch.arrived(n)));
        }
        for n in 0..count {
            let (peer, local, bytes) = batch.received(n);
            let number = local.to_bits().wrapping_sub(address(0).to_bits());
            let is_dead = network.dead > 0 && number.is_multiple_of(network.dead);
            if is_dead || random.below(100) < network.loss {
                continue;
            }
            for bytes in answers.reply_to(bytes) {
                if random.below(100) >= network.loss {
                    let due = now + DELAY;
                    let arrived = batch.arrived(n);
                    waiting.push_back(Waiting { due, arrived, number, reply: Datagram { peer, local, bytes } });
                }
            }
        }
        let due = waiting.iter().take(BATCH).take_while(|waiting| waiting.due <= now).count();
        let before = since_epoch();
        let replies = waiting.range(..due).map(|Waiting { reply, .. }| (reply.peer, reply.local, &reply.bytes[..]));
        batch.send(socket, replies)?;
        let each = since_epoch().saturating_sub(before) / due.max(1) as u32;
        let mut holds = holds.lock().expect("no thread panics while it holds the lock");
        for (at, Waiting { arrived, number, .. }) in (0..).zip(waiting.drain(..due)) {
            holds.entry(number).or_insert((before + each * at + each / 2).saturating_sub(arrived));
        }
        drop(holds);
        if count < BATCH && due < BATCH {
            let next = waiting.front().map_or(Duration::from_millis(50), |waiting| waiting.due - now);
            sys::wait(socket, next);
        }
    }
    Ok(())
}

/// The time on the clock of the kernel's timestamps.
fn since_epoch() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// Prepared replies; all protocols carry about the same information.
struct Answers {
    bloodmasters: Vec<u8>,
    session: Vec<Vec<u8>>,
}

const NAME: &str = "Bacon Town";

impl Answers {
    fn new() -> Self {
        let info = ServerInfo {
            name: Some(NAME.into()),
            map: Some("ctf_harvest".into()),
            game: Some("tag".into()),
            players: Some(0),
            max_players: Some(16),
            ..ServerInfo::default()
        };
        let reply_to = |query: &[u8]| {
            let mut responder =
                Responder::new(ResponderConfig::default(), 7, &info).expect("the default configuration is valid");
            responder.handle_datagram(Instant::now(), ([127, 0, 0, 1], 1).into(), query);
            let mut answers = Vec::new();
            let mut out = Vec::new();
            while responder.poll_transmit(Instant::now(), &mut out).is_some() {
                answers.push(std::mem::take(&mut out));
            }
            answers
        };
        Self { bloodmasters: reply_to(&[7, 0, 13, 0, 0, 0, 0]).concat(), session: reply_to(&[0x80]) }
    }

    fn reply_to(&self, query: &[u8]) -> Vec<Vec<u8>> {
        match query {
            [7, 0, 13, echo @ ..] if echo.len() == 4 => {
                let mut answer = self.bloodmasters.clone();
                answer[Echo::RANGE].copy_from_slice(echo);
                vec![answer]
            }
            [0x80] => self.session.clone(),
            // A2S_INFO: protocol, name, map, folder, game, app, players, most, bots, kind, system, password, VAC, version.
            [255, 255, 255, 255, b'T', ..] => {
                let texts = format!("I\x11{NAME}\0ctf_harvest\0tag\0Tag\0");
                let tail = b"\xdc\x00\x00\x10\x00dl\x00\x001.0.0.0\0\x00";
                vec![[b"\xff\xff\xff\xff", texts.as_bytes(), tail].concat()]
            }
            // Quake 3: getstatus and getinfo.
            [255, 255, 255, 255, b'g', b'e', b't', b's', ..] => quake3(&format!(
                "statusResponse\n\\sv_hostname\\{NAME}\\mapname\\ctf_harvest\\gamename\\tag\\sv_maxclients\\16\\version\\1.0\n"
            )),
            [255, 255, 255, 255, b'g', b'e', b't', b'i', ..] => quake3(&format!(
                "infoResponse\n\\hostname\\{NAME}\\mapname\\ctf_harvest\\game\\tag\\clients\\0\\sv_maxclients\\16\\protocol\\68"
            )),
            _ => Vec::new(),
        }
    }
}

fn quake3(answer: &str) -> Vec<Vec<u8>> {
    vec![[b"\xff\xff\xff\xff", answer.as_bytes()].concat()]
}
