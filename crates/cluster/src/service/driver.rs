//! The task of a node: executes its requests, and exchanges changes with the registry.

use super::{
    ClusterOptions,
    bans::Exchange,
    checks::StoreChecks,
    connection::{SharedConnection, no_connection},
    messenger::Messenger,
    status::{NodeStatus, OtherState, STATUS_INTERVAL},
};
use crate::{
    ClusterNode, NodeConfig, NodeState, Reply, Request, RequestId, RequestKind, StoreClient, StoreConnection,
    StoreError, Update,
};
use rallypoint_lobby::{ClusterLink, LobbyService};
use rallypoint_lobby_proto::{ApplyOutcome, Registry};
use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::{Duration, Instant},
};
use tokio::{sync::watch, task::JoinSet, time::MissedTickBehavior};

/// Interval of the sweep for renewed leases. All slots are visited in [`SWEEPS`] of them.
const SWEEP_INTERVAL: Duration = Duration::from_millis(250);

/// Number of steps of a complete sweep: a lease is reported at most five seconds after its renewal.
const SWEEPS: usize = 20;

/// Minimum number of slots per step.
const MIN_SWEEP: usize = 512;

/// Maximum number of updates that are applied in one call, so that datagrams do not wait for them.
const MAX_UPDATES: usize = 256;

/// Interval at which everything is read again if servers were not applied: by now there may be room, or a ban of the
/// configuration may have been lifted.
const REREAD_INTERVAL: Duration = Duration::from_secs(300);

/// Connections to the store: the log is read on one of its own, because that waits.
#[derive(Clone, Debug)]
pub(super) struct Connections {
    pub commands: StoreConnection,
    reader: StoreConnection,
}

/// The end of a request.
struct Finished {
    id: RequestId,
    sent: Instant,
    reply: Result<Reply, StoreError>,
    /// New connections, after [`Request::Open`].
    connections: Option<Connections>,
}

pub(super) struct Driver {
    client: StoreClient,
    /// Random number of this node.
    id: u64,
    node: ClusterNode,
    lobby: LobbyService,
    link: ClusterLink,
    connections: Option<Connections>,
    requests: JoinSet<Finished>,
    bans: Exchange,
    status: NodeStatus,
    refused_servers: u64,
    /// When everything is read again because servers were not applied.
    reread_at: Option<Instant>,
    /// Connection that checks and messages use as well.
    shared: Arc<SharedConnection>,
    messenger: Messenger,
}

impl Driver {
    pub async fn new(
        options: ClusterOptions,
        client: StoreClient,
        config: NodeConfig,
        lobby: LobbyService,
        link: ClusterLink,
    ) -> Self {
        let now = Instant::now();
        let shared = Arc::new(SharedConnection::default());
        let checks = StoreChecks::new(client.clone(), Arc::clone(&shared), config.node);
        link.set_check_coordinator(Arc::new(checks)).await;
        let name = options.node_name.clone();
        let messenger =
            Messenger::new(client.clone(), Arc::clone(&shared), config.node, name, lobby.clone(), link.clone());
        link.set_peers(Arc::new(messenger.clone()));
        Self {
            id: config.node,
            bans: Exchange::new(&lobby),
            status: NodeStatus::new(config.node, &options, now),
            node: ClusterNode::new(config, now),
            client,
            lobby,
            link,
            connections: None,
            requests: JoinSet::new(),
            refused_servers: 0,
            reread_at: None,
            shared,
            messenger,
        }
    }

    pub fn messenger(&self) -> Messenger {
        self.messenger.clone()
    }

    pub async fn run(mut self, mut stopped: watch::Receiver<bool>) {
        let mut sweeps = tokio::time::interval(SWEEP_INTERVAL);
        sweeps.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut end = None;
        loop {
            self.exchange().await;
            if end.is_some_and(|end| Instant::now() >= end) {
                return self.leave().await;
            }
            let wake = self.node.poll_timeout().unwrap_or_else(|| Instant::now() + STATUS_INTERVAL);
            tokio::select! {
                Some(finished) = self.requests.join_next() => self.handle_finished(finished),
                () = self.link.changed(), if self.node.free_changes() > 0 => {}
                _ = sweeps.tick() => self.sweep().await,
                Some(received) = self.bans.receive() => self.bans.handle_received(&mut self.node, received),
                () = tokio::time::sleep_until(wake.into()) => {}
                _ = stopped.changed(), if end.is_none() => end = Some(Instant::now() + Duration::from_millis(300)),
            }
        }
    }

    /// Removes this node's report.
    async fn leave(mut self) {
        // A report that is sent later would be that of a node that died.
        self.requests.shutdown().await;
        if let Some(mut connections) = self.connections {
            // Without contact the node counts as lost until its report is too old.
            let _ = self.client.remove_report(&mut connections.commands, self.id).await;
        }
    }

    /// Takes changes from the registry, applies changes to it, and sends requests.
    async fn exchange(&mut self) {
        let now = Instant::now();
        let free = self.node.free_changes();
        if free > 0
            && let Some(changes) = self.link.run(move |registry, _| registry.take_changes(free)).await
        {
            self.node.handle_changes(now, changes);
        }
        self.apply(now).await;
        if self.reread_at.take_if(|at| *at <= now).is_some() {
            self.node.reread(now);
        }
        while let Some((id, request)) = self.node.poll_request(now) {
            self.send(id, request);
        }
        self.update_status(now);
        self.bans.log_foreign(&self.node, self.client.ban_key());
    }

    fn update_status(&mut self, now: Instant) {
        let Self { node, link, lobby, messenger, bans, refused_servers, .. } = self;
        let messages = messenger.stats();
        let other = || OtherState {
            listed: lobby.stats().listed as u64,
            has_foreign_messages: messages.is_foreign.load(Relaxed),
            malformed: bans.malformed(),
            untracked: *refused_servers,
            counters: vec![
                ("messages_sent", messages.sent.load(Relaxed)),
                ("messages_received", messages.received.load(Relaxed)),
                ("malformed_messages", messages.malformed.load(Relaxed)),
                ("left_out_bans", bans.left_out() as u64),
            ],
        };
        self.status.update(now, node, link, other);
    }

    async fn apply(&mut self, now: Instant) {
        loop {
            let mut decisions = Vec::new();
            let mut updates = Vec::new();
            while updates.len() < MAX_UPDATES
                && let Some(update) = self.node.poll_update(now)
            {
                match update {
                    Update::Ban(value) => decisions.extend(self.bans.parse(&value)),
                    Update::AllBans { values, left_out } => {
                        decisions.extend(self.bans.parse_all(&mut self.node, &values, left_out));
                    }
                    update => updates.push(update),
                }
            }
            if updates.is_empty() && decisions.is_empty() {
                return;
            }
            if !updates.is_empty() {
                let apply = move |registry: &mut Registry, now| -> Vec<_> {
                    updates.iter().filter_map(|update| update.apply_to(now, registry)).collect()
                };
                let outcomes = self.link.run(apply).await.unwrap_or_default();
                self.note_outcomes(now, &outcomes);
            }
            self.bans.apply(decisions).await;
        }
    }

    /// Counts servers that were not applied, and reads everything again later: by then they may be.
    fn note_outcomes(&mut self, now: Instant, outcomes: &[ApplyOutcome]) {
        let is_refusal = |outcome: &&ApplyOutcome| matches!(outcome, ApplyOutcome::Full | ApplyOutcome::Malformed);
        let refused = outcomes.iter().filter(is_refusal).count();
        self.refused_servers += refused as u64;
        if (refused > 0 || outcomes.contains(&ApplyOutcome::Forbidden)) && self.reread_at.is_none() {
            self.reread_at = Some(now + REREAD_INTERVAL);
        }
    }

    /// Executes a request in a task of its own.
    fn send(&mut self, id: RequestId, request: Request) {
        let client = self.client.clone();
        let sent = Instant::now();
        let connections = self.connections.clone();
        self.requests.spawn(async move {
            if request.kind() == RequestKind::Open {
                return match open(&client, id, &request).await {
                    Ok(finished) => finished,
                    Err(error) => Finished { id, sent, reply: Err(error), connections: None },
                };
            }
            let reply = match connections {
                None => Err(no_connection()),
                Some(Connections { mut commands, mut reader }) => {
                    let is_log = request.kind() == RequestKind::ReadLog;
                    client.execute(if is_log { &mut reader } else { &mut commands }, &request).await
                }
            };
            Finished { id, sent, reply, connections: None }
        });
    }

    fn handle_finished(&mut self, finished: Result<Finished, tokio::task::JoinError>) {
        let Ok(Finished { id, sent, reply, connections }) = finished else { return };
        if connections.is_some() {
            self.connections = connections;
            self.shared.set(self.connections.as_ref().map(|connections| connections.commands.clone()));
        }
        self.node.handle_reply(sent, Instant::now(), id, reply);
        if let NodeState::Disconnected(_) | NodeState::Refused(_) = self.node.state() {
            self.connections = None;
            self.shared.set(None);
        }
    }

    async fn sweep(&mut self) {
        if !self.node.has_room_for_renewals() {
            return;
        }
        let take = |registry: &mut Registry, _| {
            let mut renewals = Vec::new();
            registry.take_renewals(SWEEPS, MIN_SWEEP, &mut renewals);
            renewals
        };
        if let Some(renewals) = self.link.run(take).await {
            self.node.handle_renewals(renewals);
        }
    }
}

/// Opens both connections and the store.
async fn open(client: &StoreClient, id: RequestId, request: &Request) -> Result<Finished, StoreError> {
    let (mut commands, reader) = tokio::try_join!(client.connect(), client.connect())?;
    // The reply has the store's time: connecting takes longer than the request, and does not count.
    let sent = Instant::now();
    let reply = client.execute(&mut commands, request).await?;
    Ok(Finished { id, sent, reply: Ok(reply), connections: Some(Connections { commands, reader }) })
}
