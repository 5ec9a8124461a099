//! The task of a node: executes its requests, and exchanges changes with the registry.

use super::{
    ClusterOptions, bans,
    checks::StoreChecks,
    connection::{SharedConnection, no_connection},
    contact_log,
    messenger::Messenger,
    namesakes::Namesakes,
    outages::Outages,
    problem::{BANS_NOT_SHARED, MESSAGES_NOT_SHARED, problem},
};
use crate::{
    ClusterNode, ContactMonitor, FORMAT, NodeConfig, NodeReport, NodeState, Reply, Request, RequestId, RequestKind,
    StoreClient, StoreConnection, StoreError, Update, report::ReportedNode, reported_nodes,
};
use rallypoint_lobby::{BanDecision, ClusterLink, ClusterNodeStatus, ClusterProblem, ClusterStatus, LobbyService};
use rallypoint_lobby_proto::ApplyOutcome;
use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::{Duration, Instant},
};
use tokio::{
    sync::{broadcast, watch},
    task::JoinSet,
    time::MissedTickBehavior,
};

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

/// Interval at which the state is published.
const STATUS_INTERVAL: Duration = Duration::from_millis(500);

/// Time after its start for which a node without the servers of the others is not ready. After that it is useful with its own: a store
/// that fails just then must not keep it out.
const JOIN_TIME: Duration = Duration::from_secs(30);

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
    options: ClusterOptions,
    client: StoreClient,
    /// Random number of this node.
    id: u64,
    node: ClusterNode,
    started: Instant,
    lobby: LobbyService,
    link: ClusterLink,
    connections: Option<Connections>,
    requests: JoinSet<Finished>,
    bans: Option<broadcast::Receiver<BanDecision>>,
    contact: ContactMonitor,
    namesakes: Namesakes,
    outages: Outages,
    /// Whether it was logged that another program's value is where the bans should be.
    is_foreign_bans_logged: bool,
    /// Values of the store that are not bans.
    malformed_bans: u64,
    refused_servers: u64,
    /// Bans of the store, or of this node, that did not fit.
    left_out_bans: usize,
    /// When everything is read again because servers were not applied.
    reread_at: Option<Instant>,
    /// The same connection for checks and messages.
    shared: Arc<SharedConnection>,
    messenger: Messenger,
    next_status: Instant,
    /// Whether the published state says that there is contact.
    is_shown_connected: bool,
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
            node: ClusterNode::new(config, now),
            started: now,
            bans: lobby.admin().map(rallypoint_lobby::AdminStore::subscribe),
            options,
            client,
            lobby,
            link,
            connections: None,
            requests: JoinSet::new(),
            contact: ContactMonitor::default(),
            namesakes: Namesakes::default(),
            outages: Outages::default(),
            is_foreign_bans_logged: false,
            malformed_bans: 0,
            refused_servers: 0,
            left_out_bans: 0,
            reread_at: None,
            shared,
            messenger,
            next_status: now,
            is_shown_connected: false,
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
                Some(received) = bans::receive(&mut self.bans) => match received {
                    bans::Received::Decision(decision) => {
                        if !bans::share(&mut self.node, decision) {
                            self.set_left_out_bans(self.left_out_bans.max(1));
                        }
                    }
                    bans::Received::Missed => self.node.reread_bans(),
                },
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
        // Also those that are too short to be shown: together they are a problem.
        match self.node.state() {
            NodeState::Following => self.outages.handle_contact(now, true),
            NodeState::Disconnected(_) | NodeState::Refused(_) => self.outages.handle_contact(now, false),
            NodeState::Loading => {}
        }
        let event = self.contact.poll_event(now, &self.node);
        let is_connected = self.contact.is_in_contact();
        if now >= self.next_status || is_connected != self.is_shown_connected {
            self.is_shown_connected = is_connected;
            self.publish_status(now);
        }
        if let Some(event) = event {
            contact_log::write(&event, &self.node, &self.contact, self.options.outage_limit);
        }
        self.log_foreign_bans();
    }

    async fn apply(&mut self, now: Instant) {
        loop {
            let mut decisions = Vec::new();
            let mut updates = Vec::new();
            while updates.len() < MAX_UPDATES
                && let Some(update) = self.node.poll_update(now)
            {
                match update {
                    Update::Ban(value) => {
                        let decision = bans::parse(&value);
                        self.malformed_bans += u64::from(decision.is_none());
                        decisions.extend(decision);
                    }
                    Update::AllBans { values, left_out } => {
                        let all: Vec<_> = values.iter().filter_map(|value| bans::parse(value)).collect();
                        self.malformed_bans += (values.len() - all.len()) as u64;
                        let has_room = self.lobby.admin().is_none_or(|admin| {
                            bans::share_missing(&mut self.node, &admin.record(), &admin.lifted(), &all)
                        });
                        self.set_left_out_bans(left_out.saturating_add(usize::from(!has_room)));
                        decisions.extend(all);
                    }
                    update => updates.push(update),
                }
            }
            if updates.is_empty() && decisions.is_empty() {
                return;
            }
            self.apply_to_registry(now, updates).await;
            if let Some(admin) = self.lobby.admin().filter(|_| !decisions.is_empty()) {
                match admin.apply_shared(decisions).await {
                    Ok(left_out) => self.set_left_out_bans(self.left_out_bans.max(left_out)),
                    Err(error) => tracing::warn!(%error, "cannot apply bans of other nodes"),
                }
            }
        }
    }

    async fn apply_to_registry(&mut self, now: Instant, updates: Vec<Update>) {
        if updates.is_empty() {
            return;
        }
        let apply = move |registry: &mut rallypoint_lobby_proto::Registry, now| {
            let (mut refused, mut forbidden) = (0, 0);
            for outcome in updates.iter().filter_map(|update| update.apply_to(now, registry)) {
                refused += u64::from(matches!(outcome, ApplyOutcome::Full | ApplyOutcome::Malformed));
                forbidden += u64::from(outcome == ApplyOutcome::Forbidden);
            }
            (refused, forbidden)
        };
        let (refused, forbidden) = self.link.run(apply).await.unwrap_or_default();
        self.refused_servers += refused;
        if refused + forbidden > 0 && self.reread_at.is_none() {
            self.reread_at = Some(now + REREAD_INTERVAL);
        }
    }

    /// Logs once that there are more bans than a node keeps.
    fn set_left_out_bans(&mut self, count: usize) {
        if count > 0 && self.left_out_bans == 0 {
            let max = rallypoint_lobby::AdminRecord::MAX;
            tracing::error!(
                count,
                "not all bans of the cluster are in force at this node: there are more than {max}. Lift bans that are no \
                 longer needed, or combine them into networks"
            );
        }
        self.left_out_bans = count;
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
        let take = |registry: &mut rallypoint_lobby_proto::Registry, _| {
            let mut renewals = Vec::new();
            registry.take_renewals(SWEEPS, MIN_SWEEP, &mut renewals);
            renewals
        };
        if let Some(renewals) = self.link.run(take).await {
            self.node.handle_renewals(renewals);
        }
    }

    /// Logs once that bans cannot be shared, and that they can again.
    fn log_foreign_bans(&mut self) {
        let is_foreign = self.node.has_foreign_bans();
        if is_foreign && !self.is_foreign_bans_logged {
            let key = self.client.ban_key();
            tracing::error!(
                "bans are not shared with the other nodes: the key {key} of the store has another program's value. Delete it; the \
                 nodes then write their bans again"
            );
        } else if self.is_foreign_bans_logged && !is_foreign {
            tracing::info!("bans are shared with the other nodes again");
        }
        self.is_foreign_bans_logged = is_foreign;
    }

    /// What is not shared with the other nodes, although there is contact.
    fn sharing_problem(&self) -> Option<ClusterProblem> {
        if self.node.has_foreign_bans() {
            return Some(BANS_NOT_SHARED);
        }
        self.messenger.stats().is_foreign.load(Relaxed).then_some(MESSAGES_NOT_SHARED)
    }

    fn publish_status(&mut self, now: Instant) {
        self.next_status = now + STATUS_INTERVAL;
        let stats = self.node.stats();
        let round_trip = self.node.clock().round_trip();
        let is_connected = self.contact.is_in_contact();
        let report = NodeReport {
            name: self.options.node_name.clone(),
            version: env!("CARGO_PKG_VERSION").into(),
            format: FORMAT,
            seq: stats.seq,
            listed: self.lobby.stats().listed as u64,
            behind: stats.behind,
            is_loading: !is_connected,
            outages: self.outages.count(now),
            probes: self.link.is_probing(),
            round_trip_us: round_trip.map_or(0, |time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX)),
        };
        self.node.set_report(report.emit());
        let store_now = self.node.clock().store_time(now);
        let reported = reported_nodes(self.node.nodes(), store_now);
        let name = &self.options.node_name;
        if self.namesakes.find(self.id, name, &reported) {
            // Latencies and replies could not be told apart.
            tracing::warn!(
                "another node of the cluster is called {name:?} too: give each its own name with cluster.node"
            );
        }
        let mut live = vec![self.id];
        if is_connected {
            // A node that does not probe cannot do it for the others.
            let is_other = |node: &&ReportedNode| node.is_live() && node.number != self.id && node.report.probes;
            live.extend(reported.iter().filter(is_other).map(|node| node.number));
        }
        self.link.set_live_nodes(self.id, live);
        let nodes = reported.into_iter().map(|node| ClusterNodeStatus {
            name: node.report.name,
            version: node.report.version,
            age: node.age,
            seq: node.report.seq,
            listed: node.report.listed,
        });
        let nodes = nodes.collect();
        self.link.set_status(ClusterStatus {
            name: self.options.node_name.clone(),
            is_connected,
            is_joining: !self.contact.has_joined() && now < self.started + JOIN_TIME,
            problem: if is_connected { self.sharing_problem() } else { Some(problem(self.node.state())) },
            last_contact: self.contact.has_joined().then(|| self.node.last_contact()),
            outage_limit: self.options.outage_limit,
            round_trip,
            nodes,
            counters: vec![
                ("applied", stats.applied),
                ("written", stats.written),
                ("refused", stats.refused),
                ("renewed", stats.renewed),
                ("lost_leases", stats.lost_leases),
                ("loads", stats.loads),
                ("failures", stats.failures),
                ("malformed", stats.malformed.saturating_add(self.malformed_bans)),
                ("untracked", stats.untracked + self.refused_servers),
                ("messages_sent", self.messenger.stats().sent.load(Relaxed)),
                ("messages_received", self.messenger.stats().received.load(Relaxed)),
                ("malformed_messages", self.messenger.stats().malformed.load(Relaxed)),
                ("left_out_bans", self.left_out_bans as u64),
            ],
        });
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
