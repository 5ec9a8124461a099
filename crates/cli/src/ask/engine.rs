//! A prober on real sockets.
//!
//! What is asked is a group of probes: the addresses of a name, the protocols that a server may speak. The first answer
//! settles the group; if there is none, the trouble that tells most does.

use crate::{
    ask::{
        Asking, Trouble,
        options::Family,
        tap::{Tap, Way, route},
    },
    failure::Failure,
};
use rallypoint_machine::{Machine, Transmit};
use rallypoint_net::{Driven, Driver, RecvBatch, UdpSocket, Undelivered};
use rallypoint_query::{Outcome, Prober, Report, Target};
use std::{
    collections::{HashMap, VecDeque},
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};
use tokio::sync::mpsc;

/// Asks servers, in a thread of its own. Dropping it ends that.
#[derive(Debug)]
pub struct Engine {
    driver: Driver<Asker>,
    findings: mpsc::Receiver<Finding>,
    /// Whether the thread waits for room in the channel.
    is_stalled: Arc<AtomicBool>,
    open: usize,
    family: Option<Family>,
    checks: usize,
}

/// What came of a question.
#[derive(Debug)]
pub struct Finding {
    /// What it was asked as.
    pub key: u64,
    /// The answer (there is one in the report), or why there is none.
    pub result: Result<Report, Failed>,
}

/// Why there is no answer, and from whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    pub trouble: Trouble,
    /// The one that the trouble is about, if there is one.
    pub probe: Option<Target>,
}

/// How many findings wait to be taken, at most. While there is no room, nobody else is asked.
const WAITING: usize = 1_024;

/// How much the system keeps of what arrives while this program does something else.
const RECEIVE_BUFFER: usize = 4 << 20;

/// For so many questions it is looked beforehand whether there is a way at all: a person wants to know that. Whoever asks
/// thousands has no time for it.
const CHECKS: usize = 256;

impl Engine {
    /// Opens sockets, and waits for questions.
    pub fn start(asking: &Asking) -> Result<Self, Failure> {
        asking.validate()?;
        let seed = entropy()?;
        let prober = Prober::new(asking.prober(), seed).map_err(|error| Failure::Usage(error.to_string()))?;
        let (sockets, tap) = (sockets(asking)?, Tap::open(asking)?);
        let (sender, findings) = mpsc::channel(WAITING);
        let is_stalled = Arc::new(AtomicBool::new(false));
        let asker = Asker {
            prober,
            sockets: sockets.clone(),
            groups: HashMap::new(),
            last_group: 0,
            findings: sender,
            pending: VecDeque::new(),
            is_stalled: is_stalled.clone(),
            patience: asking.timeout,
            tap,
        };
        let driver = Driver::start("ask", sockets, |_| asker)
            .map_err(|error| Failure::failed(format!("cannot start a thread: {error}")))?;
        Ok(Self { driver, findings, is_stalled, open: 0, family: asking.family(), checks: CHECKS })
    }

    /// Asks; there will be one [`Finding`] with this key. Keys may repeat.
    pub fn ask(&mut self, key: u64, mut probes: Vec<Target>) {
        self.open += 1;
        let mut trouble = Trouble::NotFound;
        probes.retain(|probe| match self.look(probe) {
            Ok(()) => true,
            Err(found) => {
                trouble = found;
                false
            }
        });
        self.driver.commands().run(move |asker, _| {
            if probes.is_empty() {
                asker.pending.push_back(Finding { key, result: Err(Failed { trouble, probe: None }) });
            } else {
                asker.ask(key, probes);
            }
        });
    }

    /// The next finding; `None` if everything that was asked is done.
    pub async fn next(&mut self) -> Option<Finding> {
        if self.open == 0 {
            return None;
        }
        let finding = self.findings.recv().await?;
        self.open -= 1;
        if self.is_stalled.swap(false, SeqCst) {
            self.driver.commands().run(|_, _| {});
        }
        Some(finding)
    }

    /// How many questions have no finding yet.
    pub fn open(&self) -> usize {
        self.open
    }

    /// Whether a datagram could leave this machine for there.
    fn look(&mut self, probe: &Target) -> Result<(), Trouble> {
        if let Some(family) = self.family.filter(|family| *family != Family::of(probe.address.ip())) {
            return Err(Trouble::NoAddress(family));
        }
        if self.checks == 0 {
            return Ok(());
        }
        self.checks -= 1;
        route(probe.address).map(drop).map_err(|error| match error.kind() {
            io::ErrorKind::NetworkUnreachable | io::ErrorKind::AddrNotAvailable => {
                Trouble::NoRoute(format!("it has no {} connection", Family::of(probe.address.ip())))
            }
            _ => Trouble::NoRoute(error.to_string()),
        })
    }
}

/// What the thread has.
#[derive(Debug)]
struct Asker {
    prober: Prober,
    sockets: Vec<Arc<UdpSocket>>,
    /// By the tag of their probes.
    groups: HashMap<u64, Group>,
    last_group: u64,
    findings: mpsc::Sender<Finding>,
    pending: VecDeque<Finding>,
    is_stalled: Arc<AtomicBool>,
    patience: Duration,
    tap: Option<Tap>,
}

/// Probes of which one answer is enough.
#[derive(Debug)]
struct Group {
    key: u64,
    probes: Vec<Target>,
    /// The trouble so far that tells most.
    failed: Option<Failed>,
}

impl Asker {
    fn ask(&mut self, key: u64, mut probes: Vec<Target>) {
        self.last_group += 1;
        let tag = self.last_group;
        let mut failed = None;
        probes.retain_mut(|probe| {
            probe.tag = tag;
            match self.prober.ask(*probe) {
                Ok(()) => true,
                Err(error) => {
                    failed = Some(Failed { trouble: error.into(), probe: Some(*probe) });
                    false
                }
            }
        });
        match failed {
            Some(failed) if probes.is_empty() => self.pending.push_back(Finding { key, result: Err(failed) }),
            failed => drop(self.groups.insert(tag, Group { key, probes, failed })),
        }
    }

    fn handle_report(&mut self, report: Report) {
        let (target, patience) = (report.target, self.patience);
        let trouble = match &report.outcome {
            Outcome::Answered(_) => {
                if let Some(group) = self.groups.remove(&target.tag) {
                    // No other is of interest.
                    for probe in group.probes.iter().filter(|probe| **probe != target) {
                        self.prober.cancel(probe);
                    }
                    self.pending.push_back(Finding { key: group.key, result: Ok(report) });
                }
                return;
            }
            Outcome::Malformed(error) => (*error).into(),
            Outcome::Refused => Trouble::Refused,
            Outcome::TimedOut => Trouble::TimedOut(patience),
        };
        self.fail(target, trouble);
    }

    /// A probe of a group has failed.
    fn fail(&mut self, target: Target, trouble: Trouble) {
        let Some(group) = self.groups.get_mut(&target.tag) else { return };
        group.probes.retain(|probe| *probe != target);
        if group.failed.as_ref().is_none_or(|failed| failed.trouble.weight() < trouble.weight()) {
            group.failed = Some(Failed { trouble, probe: Some(target) });
        }
        if group.probes.is_empty()
            && let Some(Group { key, failed: Some(failed), .. }) = self.groups.remove(&target.tag)
        {
            self.pending.push_back(Finding { key, result: Err(failed) });
        }
    }

    fn take_errors(&mut self) {
        for socket in self.sockets.clone() {
            while let Ok(Some(Undelivered { to, error, quoted })) = socket.next_error() {
                if error.kind() == io::ErrorKind::ConnectionRefused {
                    self.prober.handle_refused(to, &quoted);
                }
            }
        }
    }
}

impl Driven for Asker {
    fn handle_batch(&mut self, now: Instant, socket: usize, batch: &RecvBatch) {
        for datagram in batch.iter().filter(|datagram| !datagram.is_cut()) {
            if let Some(tap) = &mut self.tap {
                tap.see(Way::In, self.sockets[socket].local_addr(), datagram.from, datagram.bytes);
            }
            self.prober.handle_datagram(now, datagram.from, datagram.bytes);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.prober.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        let start = out.len();
        let transmit = self.prober.poll_transmit(now, out)?;
        if let Some(tap) = &mut self.tap {
            let socket = self.sockets.iter().find(|socket| socket.local_addr().is_ipv4() == transmit.to.is_ipv4());
            let local = socket.map_or_else(|| (Ipv4Addr::UNSPECIFIED, 0).into(), |socket| socket.local_addr());
            transmit.datagrams(&out[start..]).for_each(|bytes| tap.see(Way::Out, local, transmit.to, bytes));
        }
        Some(transmit)
    }

    fn handle_turn(&mut self, _now: Instant) {
        self.take_errors();
        loop {
            let Ok(room) = self.findings.try_reserve() else {
                self.is_stalled.store(true, SeqCst);
                // It may have been emptied in between, by somebody who did not see that.
                if self.findings.capacity() == 0 || self.findings.is_closed() {
                    return;
                }
                continue;
            };
            if let Some(finding) = self.pending.pop_front() {
                room.send(finding);
                continue;
            }
            drop(room);
            match self.prober.poll_event() {
                Some(report) => self.handle_report(report),
                None => return,
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.prober.poll_timeout()
    }

    fn max_datagram(&self) -> usize {
        rallypoint_wire::bloodmasters::MAX_REPLY
    }
}

/// A socket for each family that is wanted and that this machine has.
fn sockets(asking: &Asking) -> Result<Vec<Arc<UdpSocket>>, Failure> {
    let wanted: Vec<SocketAddr> = match (asking.source, asking.family()) {
        (Some(source), _) => vec![source],
        (None, family) => [IpAddr::from(Ipv4Addr::UNSPECIFIED), Ipv6Addr::UNSPECIFIED.into()]
            .into_iter()
            .filter(|ip| family.is_none_or(|family| family == Family::of(*ip)))
            .map(|ip| SocketAddr::new(ip, 0))
            .collect(),
    };
    let (mut opened, mut trouble) = (Vec::new(), None);
    for addr in wanted {
        match UdpSocket::bind(addr, RECEIVE_BUFFER).and_then(|socket| socket.keep_errors().map(|()| socket)) {
            Ok(socket) => opened.push(Arc::new(socket)),
            Err(error) => trouble = Some((addr, error)),
        }
    }
    match trouble {
        Some((addr, error)) if opened.is_empty() => {
            let what = if asking.source.is_some() {
                format!("from {}: {error}; is it an address of this machine?", addr.ip())
            } else {
                format!("by {}: {error}", Family::of(addr.ip()))
            };
            Err(Failure::failed(format!("cannot send {what}")))
        }
        _ => Ok(opened),
    }
}

fn entropy() -> Result<[u8; 32], Failure> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| Failure::failed(format!("the system has no random bytes: {error}")))?;
    Ok(seed)
}
