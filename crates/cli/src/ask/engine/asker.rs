//! The thread's side: groups of probes, and what came of each.

use super::{Failed, Finding, Found};
use crate::{
    ask::{
        Asking, Trouble,
        tap::{Tap, Way},
    },
    error::CommandError,
};
use rallypoint_machine::{DeliveryError, Machine, ReceivedDatagram, SocketIndex, Transmit};
use rallypoint_query_proto::{Probe, ProbeOutcome, ProbeResult, Prober};
use rallypoint_udp::{UdpSocket, entropy};
use std::{
    collections::{HashMap, VecDeque},
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};
use tokio::sync::mpsc;

/// What the thread drives.
#[derive(Debug)]
pub struct Asker {
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
    probes: Vec<Probe>,
    /// The trouble so far that tells most.
    failed: Option<Failed>,
}

impl Asker {
    /// One with nobody to ask. It puts findings into the channel, and says if it waits for room there: then somebody has to
    /// wake it.
    pub fn new(
        asking: &Asking,
        sockets: Vec<Arc<UdpSocket>>,
        findings: mpsc::Sender<Finding>,
        is_stalled: Arc<AtomicBool>,
    ) -> Result<Self, CommandError> {
        let prober = Prober::new(asking.prober(), entropy::bytes().map_err(CommandError::failed)?)
            .map_err(|error| CommandError::Usage(error.to_string()))?;
        Ok(Self {
            prober,
            sockets,
            groups: HashMap::new(),
            last_group: 0,
            findings,
            pending: VecDeque::new(),
            is_stalled,
            patience: asking.timeout,
            tap: Tap::open(asking)?,
        })
    }

    /// Asks a group. There is somebody in it.
    pub fn ask(&mut self, key: u64, mut probes: Vec<Probe>) {
        self.last_group += 1;
        let tag = self.last_group;
        let mut failed = None;
        probes.retain_mut(|probe| {
            probe.tag = tag;
            match self.prober.enqueue(*probe) {
                Ok(()) => true,
                Err(error) => {
                    failed = Some(Failed { trouble: error.into(), address: Some(probe.address) });
                    false
                }
            }
        });
        match failed {
            Some(failed) if probes.is_empty() => self.tell(Finding { key, result: Err(failed) }),
            failed => drop(self.groups.insert(tag, Group { key, probes, failed })),
        }
    }

    /// Tells a finding, when there is room.
    pub fn tell(&mut self, finding: Finding) {
        self.pending.push_back(finding);
    }

    fn handle_report(&mut self, report: ProbeResult) {
        let ProbeResult { probe: target, outcome, retries, .. } = report;
        let trouble = match outcome {
            ProbeOutcome::Answered(answer) => {
                if let Some(group) = self.groups.remove(&target.tag) {
                    // No other is of interest.
                    for probe in group.probes.iter().filter(|probe| **probe != target) {
                        self.prober.cancel(probe);
                    }
                    let found = Found { target: Probe { tag: 0, ..target }, answer, retries };
                    self.tell(Finding { key: group.key, result: Ok(found) });
                }
                return;
            }
            ProbeOutcome::Malformed(error) => error.into(),
            ProbeOutcome::Refused => Trouble::Refused,
            ProbeOutcome::TimedOut => Trouble::TimedOut(self.patience),
        };
        self.fail(target, trouble);
    }

    /// A probe of a group has failed.
    fn fail(&mut self, target: Probe, trouble: Trouble) {
        let Some(group) = self.groups.get_mut(&target.tag) else { return };
        group.probes.retain(|probe| *probe != target);
        if group.failed.as_ref().is_none_or(|failed| failed.trouble.weight() < trouble.weight()) {
            group.failed = Some(Failed { trouble, address: Some(target.address) });
        }
        if group.probes.is_empty()
            && let Some(Group { key, failed: Some(failed), .. }) = self.groups.remove(&target.tag)
        {
            self.tell(Finding { key, result: Err(failed) });
        }
    }
}

impl Machine for Asker {
    type Event = ();

    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) {
        self.prober.handle_datagram(now, from, bytes);
    }

    fn handle_batch<'a>(
        &mut self,
        now: Instant,
        socket: SocketIndex,
        batch: impl Iterator<Item = ReceivedDatagram<'a>> + Clone,
    ) {
        for datagram in batch.filter(|datagram| !datagram.is_truncated()) {
            if let Some(tap) = &mut self.tap {
                tap.see(Way::In, self.sockets[socket.0].local_addr(), datagram.from, datagram.bytes);
            }
            self.prober.handle_datagram(now, datagram.from, datagram.bytes);
        }
    }

    fn handle_delivery_error(&mut self, _now: Instant, DeliveryError { to, error, quoted }: &DeliveryError) {
        if error.kind() == io::ErrorKind::ConnectionRefused {
            self.prober.handle_refused(*to, quoted);
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

    fn handle_turn_end(&mut self, _now: Instant) {
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
        Prober::MAX_DATAGRAM
    }
}
