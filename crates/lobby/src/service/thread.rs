//! The lobby thread: owns the registry, hands it datagrams, and passes its events on.

use super::{
    datagram_doors::DatagramDoors, event_batches::EventBatches, event_log::EventLog, loss_meter::LossMeter,
    refusal_log::RefusalLog, save::Saves,
};
use crate::{CheckCoordinator, LogThrottle, check::check};
use arc_swap::ArcSwap;
use rallypoint_lobby_proto::{
    CheckResult, CheckTarget, Event, Registry, RegistryStats,
    doors::{Door, DoorStats},
};
use rallypoint_machine::{Machine, ReceivedDatagram, SocketIndex, Transmit};
use rallypoint_udp::EventLoopHandle;
use std::{
    io,
    net::SocketAddr,
    sync::{Arc, atomic::AtomicU64},
    time::{Duration, Instant},
};
use tokio::{
    runtime::Handle,
    sync::{Notify, watch},
};

/// Interval at which counters are published.
const STATS_INTERVAL: Duration = Duration::from_millis(250);

/// How long datagrams may wait while very many arrive: at 600,000 per second, half of a batch arrives in this time.
const MAX_RECEIVE_DELAY: Duration = Duration::from_micros(100);

/// Maximum number of events that are passed on per turn of the event loop, so that datagrams do not wait for them.
const EVENTS_PER_TURN: usize = 4_096;

/// Counters of the doors that answer over UDP.
pub(super) type SharedDoorStats = Arc<ArcSwap<Vec<(&'static Door, DoorStats)>>>;

/// The state of the lobby thread.
pub(crate) struct LobbyThread {
    pub registry: Registry,
    pub(super) doors: DatagramDoors,
    pub(super) events: EventBatches,
    pub(super) stats: Arc<ArcSwap<RegistryStats>>,
    pub(super) door_stats: SharedDoorStats,
    pub(super) saves: Option<Saves>,
    pub(super) runtime: Handle,
    pub(super) commands: EventLoopHandle<Self>,
    pub(super) log: EventLog,
    pub(super) check_errors: LogThrottle,
    /// Bytes of queries that checks have sent.
    pub(super) check_bytes: Arc<AtomicU64>,
    pub(super) refusals: RefusalLog,
    pub(super) losses: LossMeter,
    /// When counters are published again; `None` if nothing has happened since.
    pub(super) stats_at: Option<Instant>,
    pub(super) stats_published: Instant,
    pub(super) has_more_events: bool,
    /// Notified when there are changes for other nodes of a cluster; `None` without one.
    pub(super) changes: Option<Arc<Notify>>,
    /// Decides which node of a cluster makes a check.
    pub(super) coordinator: Option<Arc<dyn CheckCoordinator>>,
    /// Dropped with the thread, for whatever reason it ends.
    pub(super) _is_alive: watch::Sender<()>,
}

impl LobbyThread {
    fn take_events(&mut self, now: Instant) {
        for _ in 0..EVENTS_PER_TURN {
            match self.registry.poll_event() {
                Some(Event::Check(request)) => {
                    let commands = self.commands.clone();
                    let sent = Arc::clone(&self.check_bytes);
                    let coordinator = self.coordinator.clone();
                    self.runtime.spawn(async move {
                        let result = match coordinator {
                            None => check(request, &sent).await,
                            Some(coordinator) => {
                                coordinator
                                    .coordinate(request, Box::pin(async move { check(request, &sent).await }))
                                    .await
                            }
                        };
                        commands.run(move |thread, now| thread.handle_check_result(now, request.target, result));
                    });
                }
                Some(event) => {
                    self.log.event(now, &event);
                    self.events.push(now, event);
                }
                None => {
                    self.has_more_events = false;
                    return;
                }
            }
        }
        self.has_more_events = true;
    }

    /// Handles the end of a check. After an error of this machine the check is undecided.
    fn handle_check_result(&mut self, now: Instant, target: CheckTarget, result: io::Result<CheckResult>) {
        let result = result.unwrap_or_else(|error| {
            if let Some(times) = self.check_errors.record(now) {
                tracing::warn!(%error, times, "cannot check servers: they are checked again with their next registration");
            }
            CheckResult::Unknown
        });
        self.registry.handle_check(now, target, result);
    }

    /// Handles the end of writing a part of a save.
    pub fn handle_written(&mut self, now: Instant) {
        if let Some(saves) = &mut self.saves {
            saves.handle_written(now);
        }
    }

    fn publish_stats(&mut self, now: Instant) {
        let due = *self.stats_at.get_or_insert(self.stats_published + STATS_INTERVAL);
        if due <= now {
            if self.losses.is_overloaded() {
                self.registry.handle_lost_datagrams(now);
            }
            self.stats.store(Arc::new(self.registry.stats()));
            self.door_stats.store(Arc::new(self.doors.stats()));
            self.stats_published = now;
            self.stats_at = None;
        }
    }
}

impl Machine for LobbyThread {
    type Event = ();

    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) {
        self.registry.handle_datagram(now, from, bytes);
    }

    fn handle_batch<'a>(
        &mut self,
        now: Instant,
        socket: SocketIndex,
        batch: impl Iterator<Item = ReceivedDatagram<'a>> + Clone,
    ) {
        let whole = batch.clone().filter(|datagram| !datagram.is_truncated());
        match self.doors.of(socket) {
            None => self.registry.handle_datagrams(now, whole.map(|datagram| (datagram.from, datagram.bytes))),
            Some(door) => whole.for_each(|datagram| {
                door.handle_datagram(&mut self.registry, now, datagram.from, datagram.bytes);
            }),
        }
        for datagram in batch.filter(ReceivedDatagram::is_truncated) {
            self.registry.handle_too_large(now, datagram.from, datagram.len);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.registry.poll_timeout().is_some_and(|at| at <= now) {
            self.registry.handle_timeout(now);
        }
        self.doors.handle_timeout(&mut self.registry, now);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        self.doors.poll_transmit(now, out)
    }

    fn handle_turn_end(&mut self, now: Instant) {
        // Changes are published at once if the registry permits it.
        self.handle_timeout(now);
        self.take_events(now);
        self.events.handle_timeout(now);
        if let Some(changes) = &self.changes
            && self.registry.has_changes()
        {
            changes.notify_one();
        }
        self.publish_stats(now);
        self.refusals.update(now, self.registry.latest_refusals());
        if let Some(saves) = &mut self.saves {
            saves.handle_turn(now, &self.registry, self.registry.publish_count());
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let saves = self.saves.as_ref().and_then(|saves| saves.poll_timeout(self.registry.publish_count()));
        let more = self.has_more_events.then_some(self.stats_published);
        let events = self.events.poll_timeout();
        let doors = self.doors.poll_timeout();
        [self.registry.poll_timeout(), self.stats_at, saves, more, events, doors, self.refusals.poll_timeout()]
            .into_iter()
            .flatten()
            .min()
    }

    fn max_datagram(&self) -> usize {
        self.registry.config().max_registration.max(self.doors.max_datagram())
    }

    fn max_receive_delay(&self) -> Duration {
        MAX_RECEIVE_DELAY
    }
}
