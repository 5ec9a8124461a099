//! The task that exchanges messages with the other nodes. It has no part in the list: without it, the list is complete.

use super::{
    awaited_responses::AwaitedResponses,
    connection::{SharedConnection, no_connection},
};
use crate::{
    MessageId, StoreClient, StoreError, StoreErrorKind,
    message::{self, Body, MAX_LATENCIES, MAX_RESULTS, Message, RESULTS_SIZE, SharedOutcome, SharedResult},
};
use rallypoint_lobby::{AllOutcomes, BoxFuture, ClusterLink, LobbyService, NodeOutcome, Peers, ProbeReport};
use rallypoint_lobby_proto::PublicId;
use std::{
    collections::{HashMap, HashSet},
    convert::Infallible,
    hash::{DefaultHasher, Hash, Hasher},
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};
use tokio::{sync::mpsc, time::MissedTickBehavior};

/// Interval at which reports are sent.
const SEND_INTERVAL: Duration = Duration::from_millis(500);

/// Interval at which a result that has not changed is sent again: for nodes that joined, or that missed it.
const REPEAT_INTERVAL: Duration = Duration::from_secs(240);

/// How long the store keeps messages: longer than that interval.
const RETENTION: Duration = Duration::from_secs(360);

/// How long the responses of other nodes are awaited.
const RESPONSE_TIMEOUT: Duration = Duration::from_millis(1_500);

/// Maximum number of responses of this node per second.
const MAX_RESPONSES: u32 = 32;

/// Pause before the store is contacted again.
const RETRY: Duration = Duration::from_secs(2);

/// Counters of messages.
#[derive(Debug, Default)]
pub(super) struct MessageStats {
    pub sent: AtomicU64,
    pub received: AtomicU64,
    pub malformed: AtomicU64,
    /// Whether another program's value is in place of the messages.
    pub is_foreign: AtomicBool,
}

/// The name of a node, and the outcomes that it knows.
pub(super) type NodeResponse = (String, Vec<NodeOutcome>);

/// Sends messages, and waits for responses to requests. Clones refer to the same node.
#[derive(Clone, Debug)]
pub(super) struct Messenger(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    client: StoreClient,
    connection: Arc<SharedConnection>,
    /// Number and name of this node.
    number: u64,
    name: String,
    lobby: LobbyService,
    link: ClusterLink,
    requests: AwaitedResponses,
    next_request: AtomicU64,
    stats: MessageStats,
}

impl Messenger {
    pub fn new(
        client: StoreClient,
        connection: Arc<SharedConnection>,
        number: u64,
        name: String,
        lobby: LobbyService,
        link: ClusterLink,
    ) -> Self {
        Self(Arc::new(Inner {
            client,
            connection,
            number,
            name,
            lobby,
            link,
            requests: AwaitedResponses::default(),
            next_request: AtomicU64::new(1),
            stats: MessageStats::default(),
        }))
    }

    pub fn stats(&self) -> &MessageStats {
        &self.0.stats
    }

    /// Runs until the lobby ends.
    pub async fn run(self) {
        let reports = self.0.link.probe_reports();
        tokio::select! {
            () = self.clone().send_probe_reports(reports) => {}
            () = self.clone().receive() => {}
            () = self.0.lobby.ended() => {}
        }
    }

    async fn send(&self, body: Body) -> Result<(), StoreError> {
        let Some(mut connection) = self.0.connection.get() else { return Err(no_connection()) };
        let message = Message { from: self.0.number, name: self.0.name.clone(), body };
        self.0.client.send_message(&mut connection, &message.emit(), RETENTION).await?;
        self.0.stats.sent.fetch_add(1, Relaxed);
        Ok(())
    }

    /// Sends reports in batches. Those that cannot be sent are dropped: they are repeated.
    async fn send_probe_reports(self, mut reports: mpsc::Receiver<ProbeReport>) {
        let mut ticks = tokio::time::interval(SEND_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut sent = SentResults::default();
        loop {
            ticks.tick().await;
            let now = Instant::now();
            let mut batch = Batch::default();
            while !batch.is_full() {
                match reports.try_recv() {
                    Ok(ProbeReport::Latency(id, latency)) => {
                        let us = u32::try_from(latency.as_micros()).unwrap_or(u32::MAX);
                        batch.latencies.push((id.to_string(), us));
                    }
                    Ok(ProbeReport::Verification(result)) => {
                        let shared = SharedResult::new(&result);
                        let json = serde_json::to_vec(&shared).unwrap_or_default();
                        if sent.is_due(now, result.id, &json) {
                            batch.push_result(shared, json.len());
                        }
                    }
                    Err(mpsc::error::TryRecvError::Empty) => break,
                    Err(mpsc::error::TryRecvError::Disconnected) => return,
                }
            }
            let is_full = batch.is_full();
            for body in [Body::Latencies(batch.latencies), Body::Results(batch.results)] {
                let is_empty = matches!(&body, Body::Latencies(list) if list.is_empty())
                    || matches!(&body, Body::Results(list) if list.is_empty());
                if !is_empty && self.send(body).await.is_err() {
                    sent.clear();
                }
            }
            if is_full {
                ticks.reset_immediately();
            }
        }
    }

    /// Receives messages, on a connection of its own because that waits.
    async fn receive(self) {
        let mut position = StreamPosition::default();
        loop {
            // A loss of contact is logged where it matters for the list.
            if self.0.connection.get().is_some() {
                let Err(error) = self.try_receive(&mut position).await;
                position.is_skipping = error.kind == StoreErrorKind::TooLarge;
                if error.kind == StoreErrorKind::Foreign && !self.0.stats.is_foreign.swap(true, Relaxed) {
                    self.0.stats.malformed.fetch_add(1, Relaxed);
                    tracing::error!("latencies and the results of probes are not shared with the other nodes: {error}");
                }
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    async fn try_receive(&self, position: &mut StreamPosition) -> Result<Infallible, StoreError> {
        let mut connection = self.0.client.connect().await?;
        // Requests that were sent before this node received messages have timed out.
        let newest = self.0.client.newest_message(&mut connection).await?;
        if self.0.stats.is_foreign.swap(false, Relaxed) {
            tracing::info!("latencies and the results of probes are shared with the other nodes again");
        }
        if newest < position.last {
            // The store was emptied, or its clock was set back.
            position.last = MessageId::default();
        }
        position.respond_after = newest;
        if position.is_skipping {
            // One of the messages cannot be read. Those before and after it are repeated.
            self.0.stats.malformed.fetch_add(1, Relaxed);
            position.last = newest;
        }
        loop {
            let messages = self.0.client.read_messages(&mut connection, position.last).await?;
            if messages.is_empty() && position.count_idle_read() {
                let newest = self.0.client.newest_message(&mut connection).await?;
                if newest < position.last {
                    position.last = newest;
                }
            }
            for (id, bytes) in messages {
                position.last = id;
                match Message::parse(&bytes) {
                    Ok(None) => {}
                    Ok(Some(message)) if message.from == self.0.number => {}
                    Ok(Some(message)) => {
                        self.0.stats.received.fetch_add(1, Relaxed);
                        self.handle(message, id > position.respond_after, &mut position.responses).await;
                    }
                    Err(_) => {
                        self.0.stats.malformed.fetch_add(1, Relaxed);
                    }
                }
            }
        }
    }

    async fn handle(&self, message: Message, is_new: bool, responses: &mut ResponseLimit) {
        let name: Arc<str> = message.name.as_str().into();
        match message.body {
            Body::Latencies(shared) => self.0.link.apply_latencies(message::latencies(&name, shared)).await,
            Body::Results(shared) => {
                for result in shared.into_iter().take(MAX_RESULTS).filter_map(SharedResult::result) {
                    self.0.link.apply_verification(result).await;
                }
            }
            Body::OutcomesRequest { number, address } if is_new && responses.take(Instant::now()) => {
                let messenger = self.clone();
                tokio::spawn(async move { messenger.respond(number, address).await });
            }
            Body::OutcomesRequest { .. } => {}
            Body::OutcomesResponse { number, outcomes } => {
                self.0.requests.handle(number, (message.name, SharedOutcome::outcomes(&name, outcomes)));
            }
        }
    }

    async fn respond(&self, number: u64, address: IpAddr) {
        let outcomes = self.0.lobby.own_outcomes(address).await.iter().map(SharedOutcome::new).collect();
        let _ = self.send(Body::OutcomesResponse { number, outcomes }).await;
    }

    async fn request_outcomes(self, ip: IpAddr) -> AllOutcomes {
        // Peers of the last contact with the store: without a connection, all of them are silent.
        let mut silent: HashSet<_> =
            self.0.lobby.cluster_status().iter().flat_map(|known| known.peers.clone()).collect();
        let mut outcomes = Vec::new();
        if silent.is_empty() {
            return AllOutcomes::default();
        }
        // Numbers of this node only: others have requests with the same number.
        let number = self.0.number.wrapping_add(self.0.next_request.fetch_add(1, Relaxed));
        if let Some(mut responses) = self.0.requests.begin(number)
            && self.send(Body::OutcomesRequest { number, address: ip }).await.is_ok()
        {
            let end = tokio::time::Instant::now() + RESPONSE_TIMEOUT;
            while !silent.is_empty()
                && let Ok(Some((name, response))) = tokio::time::timeout_at(end, responses.next()).await
            {
                if silent.remove(&name) {
                    outcomes.extend(response);
                }
            }
        }
        let mut silent: Vec<_> = silent.into_iter().collect();
        silent.sort();
        AllOutcomes { outcomes, silent }
    }
}

impl Peers for Messenger {
    fn outcomes(&self, ip: IpAddr) -> BoxFuture<AllOutcomes> {
        Box::pin(self.clone().request_outcomes(ip))
    }
}

/// Reports that are sent together.
#[derive(Debug, Default)]
struct Batch {
    latencies: Vec<(String, u32)>,
    results: Vec<SharedResult>,
    /// Size of the results in bytes.
    size: usize,
}

impl Batch {
    fn push_result(&mut self, result: SharedResult, size: usize) {
        self.size += size;
        self.results.push(result);
    }

    fn is_full(&self) -> bool {
        self.latencies.len() >= MAX_LATENCIES || self.results.len() >= MAX_RESULTS || self.size >= RESULTS_SIZE
    }
}

/// The position of this node in the stream of messages.
#[derive(Debug, Default)]
struct StreamPosition {
    last: MessageId,
    /// Earlier requests get no response.
    respond_after: MessageId,
    idle_reads: u32,
    /// Whether a message was too large to be read.
    is_skipping: bool,
    responses: ResponseLimit,
}

impl StreamPosition {
    /// Counts a read without messages. Returns whether it is time to look whether the stream has begun again.
    fn count_idle_read(&mut self) -> bool {
        self.idle_reads = (self.idle_reads + 1) % 3;
        self.idle_reads == 0
    }
}

/// Limits the number of responses per second.
#[derive(Debug, Default)]
struct ResponseLimit {
    second: Option<Instant>,
    count: u32,
}

impl ResponseLimit {
    fn take(&mut self, now: Instant) -> bool {
        if self.second.is_none_or(|second| now.saturating_duration_since(second) >= Duration::from_secs(1)) {
            *self = Self { second: Some(now), count: 0 };
        }
        self.count += 1;
        self.count <= MAX_RESPONSES
    }
}

/// The results that were sent: one that has not changed is sent again only after a while.
#[derive(Debug, Default)]
struct SentResults {
    hashes: HashMap<PublicId, (u64, Instant)>,
    tidy_at: Option<Instant>,
}

impl SentResults {
    fn is_due(&mut self, now: Instant, id: PublicId, result: &[u8]) -> bool {
        if self.tidy_at.is_none_or(|at| at <= now) {
            self.hashes.retain(|_, (_, at)| now.saturating_duration_since(*at) < REPEAT_INTERVAL);
            self.tidy_at = Some(now + REPEAT_INTERVAL / 4);
        }
        let mut hasher = DefaultHasher::new();
        result.hash(&mut hasher);
        let hash = hasher.finish();
        let is_known = self
            .hashes
            .get(&id)
            .is_some_and(|(known, at)| *known == hash && now.saturating_duration_since(*at) < REPEAT_INTERVAL);
        if !is_known {
            self.hashes.insert(id, (hash, now));
        }
        !is_known
    }

    fn clear(&mut self) {
        self.hashes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rallypoint_lobby::{Verification, VerificationResult};
    use rallypoint_query_proto::{Player, ServerInfo, Team};

    #[test]
    fn a_result_is_sent_when_it_changes_and_repeated_after_a_while() {
        let start = Instant::now();
        let id = PublicId::from_bytes([1; 16]);
        let result =
            |verification| serde_json::to_vec(&SharedResult::new(&VerificationResult::new(id, verification))).unwrap();
        let mut sent = SentResults::default();
        assert!(sent.is_due(start, id, &result(Verification::Verified)));
        assert!(!sent.is_due(start + Duration::from_secs(60), id, &result(Verification::Verified)));
        assert!(sent.is_due(start + Duration::from_secs(60), id, &result(Verification::Unreachable)));
        assert!(sent.is_due(start + REPEAT_INTERVAL + Duration::from_secs(60), id, &result(Verification::Unreachable)));
    }

    /// Servers decide how many players they report, and with which names.
    #[test]
    fn a_batch_of_full_servers_can_be_parsed() {
        let player = Player { name: "\u{1f3ae}\u{1}\"".repeat(100), ping_ms: Some(i32::MIN), ..Player::default() };
        let team = Team { name: "\u{1f3ae}".repeat(1_000), ..Team::default() };
        let info =
            ServerInfo { player_list: Some(vec![player; 1_000]), teams: vec![team; 255], ..ServerInfo::default() };
        let info = Some(Arc::new(info));
        let mut batch = Batch::default();
        for number in 0..=255 {
            let id = PublicId::from_bytes([number; 16]);
            let result =
                VerificationResult { info: info.clone(), ..VerificationResult::new(id, Verification::Verified) };
            let shared = SharedResult::new(&result);
            let size = serde_json::to_vec(&shared).unwrap().len();
            if !batch.is_full() {
                batch.push_result(shared, size);
            }
        }
        assert!(batch.results.len() > 1);
        let message = Message { from: 7, name: "eu-1".into(), body: Body::Results(batch.results) }.emit();
        assert!(Message::parse(&message).is_ok_and(|message| message.is_some()), "{} bytes", message.len());
    }

    #[test]
    fn responses_are_limited() {
        let start = Instant::now();
        let mut limit = ResponseLimit::default();
        assert_eq!((0..100).filter(|_| limit.take(start)).count(), MAX_RESPONSES as usize);
        assert!(limit.take(start + Duration::from_secs(1)));
    }
}
