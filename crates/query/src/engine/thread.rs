//! The thread of a [`ProbeEngine`](super::ProbeEngine): groups of probes and their results.

use super::{
    GroupResult, ProbeFailure, ProbeReply, RefusalWatch,
    streams::{StreamCommand, StreamOutcome},
};
use crate::{Direction, PacketObserver, ProbeError, ScanConfig, ScanError, config::ScanConfigError};
use rallypoint_machine::{DeliveryError, Machine, ReceivedDatagram, SocketIndex, Transmit};
use rallypoint_query_proto::{Probe, ProbeOutcome, ProbeResult, Prober, Transport};
use rallypoint_udp::{UdpSocket, entropy};
use std::{
    collections::{HashMap, VecDeque},
    fmt, io,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};
use tokio::sync::mpsc;

/// The state machine that the thread runs: a prober, and the groups that its probes belong to.
pub(super) struct ProbeThread {
    prober: Prober,
    sockets: Vec<Arc<UdpSocket>>,
    /// By the tag of their probes.
    groups: HashMap<u64, Group>,
    results: mpsc::Sender<GroupResult>,
    unsent: VecDeque<GroupResult>,
    is_stalled: Arc<AtomicBool>,
    timeout: Duration,
    observer: Option<Box<dyn PacketObserver>>,
    /// Unless the sockets report refusals.
    watch: Option<RefusalWatch>,
    /// To the task that makes probes over TCP and HTTP.
    streams: mpsc::UnboundedSender<StreamCommand>,
}

/// Probes of which one answer is enough.
#[derive(Debug)]
struct Group {
    key: u64,
    probes: Vec<Probe>,
    /// The most informative error so far.
    failure: Option<ProbeFailure>,
}

impl ProbeThread {
    /// `is_stalled` is set while the thread waits for room in the channel: the receiver then has to wake it up.
    pub fn new(
        config: &ScanConfig,
        sockets: Vec<Arc<UdpSocket>>,
        results: mpsc::Sender<GroupResult>,
        is_stalled: Arc<AtomicBool>,
        observer: Option<Box<dyn PacketObserver>>,
        watch: Option<RefusalWatch>,
        streams: mpsc::UnboundedSender<StreamCommand>,
    ) -> Result<Self, ScanError> {
        Ok(Self {
            prober: Prober::new(config.prober(), entropy::bytes()?).map_err(ScanConfigError::from)?,
            sockets,
            groups: HashMap::new(),
            results,
            unsent: VecDeque::new(),
            is_stalled,
            timeout: config.timeout,
            observer,
            watch,
            streams,
        })
    }

    /// Starts a group of at least one probe, all with this tag. Those over TCP and HTTP are started by another task, which calls
    /// [`handle_stream_outcome`](Self::handle_stream_outcome) afterwards.
    pub fn start_group(&mut self, key: u64, tag: u64, mut probes: Vec<Probe>) {
        let mut failure = None;
        probes.retain(|probe| {
            if probe.transport() != Transport::Udp {
                return true;
            }
            match self.prober.enqueue(*probe) {
                Ok(()) => true,
                Err(error) => {
                    failure = Some(ProbeFailure { error: error.into(), address: Some(probe.address) });
                    false
                }
            }
        });
        match failure {
            Some(failure) if probes.is_empty() => self.push_result(GroupResult { key, result: Err(failure) }),
            failure => drop(self.groups.insert(tag, Group { key, probes, failure })),
        }
    }

    /// Queues a result, to be sent when there is room in the channel.
    pub fn push_result(&mut self, result: GroupResult) {
        self.unsent.push_back(result);
    }

    fn handle_result(&mut self, ProbeResult { probe, outcome, retries, .. }: ProbeResult) {
        let error = match outcome {
            ProbeOutcome::Answered(reply) => {
                if let Some(group) = self.groups.remove(&probe.tag) {
                    // The other probes of the group are not needed any more.
                    for other in group.probes.iter().filter(|other| **other != probe) {
                        self.cancel(other);
                    }
                    let reply = ProbeReply { probe: Probe { tag: 0, ..probe }, reply, retries };
                    self.push_result(GroupResult { key: group.key, result: Ok(reply) });
                }
                return;
            }
            ProbeOutcome::Malformed(error) => error.into(),
            ProbeOutcome::Refused => ProbeError::Refused,
            ProbeOutcome::TimedOut => ProbeError::TimedOut(self.timeout),
        };
        self.handle_failure(probe, error);
    }

    /// Handles the end of a probe over TCP or HTTP.
    pub fn handle_stream_outcome(&mut self, (probe, result): StreamOutcome) {
        match result {
            Ok(result) => self.handle_result(result),
            Err(failure) => self.handle_failure(probe, failure.error),
        }
    }

    fn cancel(&mut self, probe: &Probe) {
        if probe.transport() == Transport::Udp {
            self.prober.cancel(probe);
        } else {
            // The task has ended if the engine is being dropped.
            let _ = self.streams.send(StreamCommand::Cancel(*probe));
        }
    }

    /// Notes that a probe of a group failed, and ends the group with its last probe.
    fn handle_failure(&mut self, probe: Probe, error: ProbeError) {
        let Some(group) = self.groups.get_mut(&probe.tag) else { return };
        group.probes.retain(|other| *other != probe);
        if group.failure.as_ref().is_none_or(|failure| failure.error.weight() < error.weight()) {
            group.failure = Some(ProbeFailure { error, address: Some(probe.address) });
        }
        if group.probes.is_empty()
            && let Some(Group { key, failure: Some(failure), .. }) = self.groups.remove(&probe.tag)
        {
            self.push_result(GroupResult { key, result: Err(failure) });
        }
    }
}

impl Machine for ProbeThread {
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
            if let Some(observer) = &mut self.observer {
                let local = self.sockets[socket.0].local_addr();
                observer.observe(Direction::Received, local, datagram.from, datagram.bytes);
            }
            if let Some(watch) = &mut self.watch {
                watch.handle_reply(&datagram.from);
            }
            // The prober uses the time for the round trip only, so it may be in the past.
            self.prober.handle_datagram(datagram.received_at.unwrap_or(now), datagram.from, datagram.bytes);
        }
    }

    fn handle_delivery_error(&mut self, _now: Instant, DeliveryError { to, error, quoted }: &DeliveryError) {
        if error.kind() == io::ErrorKind::ConnectionRefused {
            self.prober.handle_refused(*to, quoted);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.prober.handle_timeout(now);
        if let Some(watch) = &mut self.watch {
            let observer = &mut self.observer;
            let refused = watch.handle_timeout(now, |direction, local, peer, bytes| {
                if let Some(observer) = observer {
                    observer.observe(direction, local, peer, bytes);
                }
            });
            for (server, query) in refused {
                self.prober.handle_refused(server, &query);
            }
        }
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        let start = out.len();
        let transmit = self.prober.poll_transmit(now, out)?;
        if let Some(watch) = &mut self.watch {
            for datagram in transmit.datagrams(&out[start..]) {
                watch.handle_query(now, transmit.to, datagram);
            }
        }
        if let Some(observer) = &mut self.observer {
            let socket = self.sockets.iter().find(|socket| socket.local_addr().is_ipv4() == transmit.to.is_ipv4());
            let local = socket.map_or_else(|| (Ipv4Addr::UNSPECIFIED, 0).into(), |socket| socket.local_addr());
            for datagram in transmit.datagrams(&out[start..]) {
                observer.observe(Direction::Sent, local, transmit.to, datagram);
            }
        }
        Some(transmit)
    }

    /// Sends results, and takes them from the prober only while there is room: otherwise it would start further probes.
    fn handle_turn_end(&mut self, _now: Instant) {
        loop {
            let Ok(room) = self.results.try_reserve() else {
                self.is_stalled.store(true, SeqCst);
                // The receiver may have emptied the channel just before it could see that.
                if self.results.capacity() == 0 || self.results.is_closed() {
                    return;
                }
                continue;
            };
            if let Some(result) = self.unsent.pop_front() {
                room.send(result);
                continue;
            }
            drop(room);
            match self.prober.poll_event() {
                Some(result) => self.handle_result(result),
                None => break,
            }
        }
        if let Some(watch) = self.watch.as_mut().filter(|_| self.groups.is_empty()) {
            watch.clear();
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let watch = self.watch.as_ref().and_then(RefusalWatch::poll_timeout);
        self.prober.poll_timeout().into_iter().chain(watch).min()
    }

    fn max_datagram(&self) -> usize {
        Prober::MAX_DATAGRAM
    }

    fn uses_receive_times(&self) -> bool {
        true
    }
}

impl fmt::Debug for ProbeThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProbeThread").field("prober", &self.prober).finish_non_exhaustive()
    }
}
