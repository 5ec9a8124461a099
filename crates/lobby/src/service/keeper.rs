//! Keeps the registry: what its thread does besides handing it datagrams.

use super::{log::EventLog, refusals::RefusalLog, saves::Saves};
use crate::{check::check, seldom::Seldom};
use arc_swap::ArcSwap;
use rallypoint_lobby_proto::{CheckResult, CheckTarget, Event, Registry, RegistryStats};
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
    sync::{broadcast, watch},
};

/// How old the published numbers can be.
const STATS_EVERY: Duration = Duration::from_millis(250);

/// How many events are passed on per turn: the others wait for the next, so that datagrams do not wait for them.
const EVENTS: usize = 4_096;

/// The registry and those who have to do with it.
pub(super) struct Keeper {
    pub registry: Registry,
    /// Sockets from this one on belong to the legacy lobby.
    pub legacy_from: SocketIndex,
    pub events: broadcast::Sender<Event>,
    pub stats: Arc<ArcSwap<RegistryStats>>,
    pub saves: Option<Saves>,
    pub runtime: Handle,
    pub commands: EventLoopHandle<Self>,
    pub log: EventLog,
    pub check_trouble: Seldom,
    /// Bytes of queries that checks have sent.
    pub check_bytes: Arc<AtomicU64>,
    pub refusals: RefusalLog,
    /// When the numbers are published again; `None` if nothing has happened since they were.
    pub stats_at: Option<Instant>,
    pub stats_published: Instant,
    pub has_more_events: bool,
    /// Dropped with the thread, whatever ends it.
    pub _is_alive: watch::Sender<()>,
}

impl Keeper {
    fn take_events(&mut self, now: Instant) {
        for _ in 0..EVENTS {
            match self.registry.poll_event() {
                Some(Event::Check(request)) => {
                    let (commands, sent) = (self.commands.clone(), Arc::clone(&self.check_bytes));
                    self.runtime.spawn(async move {
                        let result = check(request, &sent).await;
                        commands.run(move |keeper, now| keeper.handle_checked(now, request.target, result));
                    });
                }
                Some(event) => {
                    self.log.event(now, &event);
                    // It is an error if nobody listens.
                    let _ = self.events.send(event);
                }
                None => {
                    self.has_more_events = false;
                    return;
                }
            }
        }
        self.has_more_events = true;
    }

    /// A check has ended. If it is this machine that could not, that is not the server's fault.
    fn handle_checked(&mut self, now: Instant, target: CheckTarget, result: io::Result<CheckResult>) {
        let verdict = result.unwrap_or_else(|error| {
            if let Some(times) = self.check_trouble.happens(now) {
                tracing::warn!(%error, times, "servers cannot be checked: trying again when they register again");
            }
            CheckResult::Unknown
        });
        self.registry.handle_check(now, target, verdict);
    }

    /// A save has ended.
    pub fn handle_written(&mut self, now: Instant) {
        if let Some(saves) = &mut self.saves {
            saves.handle_written(now);
        }
    }

    fn publish_stats(&mut self, now: Instant) {
        let due = *self.stats_at.get_or_insert(self.stats_published + STATS_EVERY);
        if due <= now {
            self.stats.store(Arc::new(self.registry.stats()));
            self.stats_published = now;
            self.stats_at = None;
        }
    }
}

impl Machine for Keeper {
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
        if socket < self.legacy_from {
            self.registry.handle_datagrams(now, whole.map(|datagram| (datagram.from, datagram.bytes)));
        } else {
            for datagram in whole {
                self.registry.handle_legacy_datagram(now, datagram.from, datagram.bytes);
            }
        }
        for datagram in batch.filter(ReceivedDatagram::is_truncated) {
            self.registry.handle_too_large(now, datagram.from, datagram.len);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.registry.poll_timeout().is_some_and(|at| at <= now) {
            self.registry.handle_timeout(now);
        }
    }

    fn poll_transmit(&mut self, _now: Instant, _out: &mut Vec<u8>) -> Option<Transmit> {
        None
    }

    fn handle_turn_end(&mut self, now: Instant) {
        // What has just changed is shown at once if it may be.
        self.handle_timeout(now);
        self.take_events(now);
        self.publish_stats(now);
        self.refusals.look(now, self.registry.latest_refusals());
        if let Some(saves) = &mut self.saves {
            saves.handle_turn(now, &self.registry, self.registry.publish_count());
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let saves = self.saves.as_ref().and_then(|saves| saves.poll_timeout(self.registry.publish_count()));
        let events = self.has_more_events.then_some(self.stats_published);
        [self.registry.poll_timeout(), self.stats_at, saves, events, self.refusals.poll_timeout()]
            .into_iter()
            .flatten()
            .min()
    }

    fn max_datagram(&self) -> usize {
        self.registry.config().max_registration
    }
}
