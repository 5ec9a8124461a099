//! Access to the registry for the tasks of the lobby.

use super::{event_batches::LobbyEvents, thread::LobbyThread};
use crate::{CheckCoordinator, NodeOutcome};
use arc_swap::ArcSwap;
use rallypoint_lobby_proto::{
    Config, ListSnapshot, ProbedOutcome, ProbedServer, PublicId, RecentOutcome, RegistrationOutcome, Registry,
    RegistryConfigError, RegistryStats, UnlistReason,
};
use rallypoint_udp::EventLoopHandle;
use std::{
    net::{IpAddr, SocketAddr},
    num::NonZeroU16,
    sync::Arc,
    time::Instant,
};
use tokio::sync::{broadcast, watch};

/// Runs commands on the lobby thread, which owns the registry. Clones refer to the same thread and do not keep it running.
#[derive(Clone, Debug)]
pub(crate) struct RegistryHandle {
    pub(crate) commands: EventLoopHandle<LobbyThread>,
    pub(super) stats: Arc<ArcSwap<RegistryStats>>,
    pub(super) events: broadcast::Sender<LobbyEvents>,
    /// Closed when the lobby thread ends.
    pub(super) alive: watch::Receiver<()>,
}

impl RegistryHandle {
    /// Counters of the registry, at most a quarter of a second old.
    pub fn stats(&self) -> RegistryStats {
        **self.stats.load()
    }

    /// The current lists, and a subscription to all later events. The first events may be part of the lists already. `None`
    /// after a shutdown.
    pub async fn follow(&self) -> Option<(Arc<ListSnapshot>, broadcast::Receiver<LobbyEvents>)> {
        let follow = |thread: &mut LobbyThread, now| {
            thread.registry.publish(now);
            (thread.registry.lists().snapshot(), thread.events.subscribe(now))
        };
        self.commands.call(follow).await
    }

    /// Outcomes of the last datagrams of an address, other than refreshes; the latest last.
    pub async fn recent_outcomes(&self, ip: IpAddr) -> Vec<RecentOutcome> {
        let outcomes = self.commands.call(move |thread, now| {
            let mut outcomes = thread.registry.recent_outcomes(ip);
            thread.registry.mark_former_bans(now, ip, &mut outcomes);
            outcomes
        });
        outcomes.await.unwrap_or_default()
    }

    /// Latest outcomes of an address at this node, with what the owner of its servers needs to know.
    pub async fn node_outcomes(&self, ip: IpAddr, node: Option<Arc<str>>) -> Vec<NodeOutcome> {
        let outcomes = move |thread: &mut LobbyThread, now| {
            let registry = &thread.registry;
            let outcome =
                |past: &RecentOutcome| NodeOutcome::new(node.clone(), past, registry.failed_check_times(ip, past), now);
            registry.recent_outcomes(ip).iter().map(outcome).collect()
        };
        self.commands.call(outcomes).await.unwrap_or_default()
    }

    /// Replaces the configuration. Ignored after a shutdown.
    pub async fn set_config(&self, config: Config) -> Result<(), RegistryConfigError> {
        self.commands.call(move |thread, now| thread.registry.set_config(now, config)).await.unwrap_or(Ok(()))
    }

    /// Lists a server that replied to a probe. `None` after a shutdown.
    pub async fn list_probed(&self, server: ProbedServer) -> Option<ProbedOutcome> {
        self.commands.call(move |thread, now| thread.registry.handle_probed(now, &server)).await
    }

    /// Reports the reply of a registered server to a query, at the address that the list shows.
    pub fn report_reply(&self, id: PublicId, listed: SocketAddr) {
        self.commands.run(move |thread, now| thread.registry.handle_reply(now, id, listed));
    }

    /// Removes a server that was listed with [`list_probed`](Self::list_probed).
    pub async fn remove_probed(&self, label: String) {
        self.commands
            .call(move |thread, now| thread.registry.remove_probed(now, &label, UnlistReason::Unwatched))
            .await;
    }

    /// The reason for which a server that announces itself is refused without a probe, if there is one. It is recorded for the
    /// owner of the server.
    pub async fn precheck_announced(&self, ip: IpAddr, port: NonZeroU16) -> Option<RegistrationOutcome> {
        self.commands.call(move |thread, now| thread.registry.precheck_announced(now, ip, port)).await.flatten()
    }

    /// The reason for which a server at this endpoint is refused without a probe, if there is one.
    pub async fn precheck_probed(&self, ip: IpAddr, port: NonZeroU16) -> Option<RegistrationOutcome> {
        self.commands.call(move |thread, now| thread.registry.precheck_probed(now, ip, port)).await.flatten()
    }

    /// Records the outcome of an announcement for the owner of the server.
    pub fn record_announced(&self, ip: IpAddr, port: NonZeroU16, outcome: RegistrationOutcome) {
        self.commands.run(move |thread, now| thread.registry.record_announced(now, ip, port, outcome));
    }

    /// Runs a function on the lobby thread. `None` after a shutdown.
    pub async fn run<T: Send + 'static>(
        &self,
        function: impl FnOnce(&mut Registry, Instant) -> T + Send + 'static,
    ) -> Option<T> {
        self.commands.call(move |thread, now| function(&mut thread.registry, now)).await
    }

    /// Lets a coordinator decide which node of a cluster makes a check.
    pub async fn set_check_coordinator(&self, coordinator: Arc<dyn CheckCoordinator>) {
        self.commands.call(move |thread, _| thread.coordinator = Some(coordinator)).await;
    }

    /// Whether the lobby thread is running.
    pub fn is_alive(&self) -> bool {
        self.alive.has_changed().is_ok()
    }

    /// Waits until the lobby thread has ended.
    pub async fn ended(&self) {
        while self.alive.clone().changed().await.is_ok() {}
    }
}
