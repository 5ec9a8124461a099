//! Probes of a [`ProbeEngine`](super::ProbeEngine) that are made over TCP and HTTP: a task with a bounded number of connections.

use super::ProbeFailure;
use crate::{
    ProbeError, ScanConfig,
    stream::{StreamProbe, StreamProbeError},
};
use rallypoint_query_proto::{Probe, ProbeResult};
use std::{
    collections::{HashMap, VecDeque},
    net::SocketAddr,
    time::Duration,
};
use tokio::{
    sync::mpsc,
    task::{AbortHandle, JoinSet},
    time::{Instant, sleep_until},
};

/// Maximum number of connections at a time: half of the descriptors that some systems allow a program.
const MAX_CONNECTIONS: usize = 128;

/// What the task is to do.
#[derive(Debug)]
pub(super) enum StreamCommand {
    Start(Probe),
    /// End a probe without a result.
    Cancel(Probe),
}

/// The end of a probe: its result, or why this machine could not make it.
pub(super) type StreamOutcome = (Probe, Result<ProbeResult, ProbeFailure>);

/// Starts the task, which ends when it is dropped or when no more commands can come. `on_end` is called with each outcome.
pub(super) fn spawn(
    config: &ScanConfig,
    commands: mpsc::UnboundedReceiver<StreamCommand>,
    on_end: impl FnMut(StreamOutcome) + Send + 'static,
) -> JoinSet<()> {
    let task = StreamTask {
        limit: config.timeout,
        source: config.source,
        interval: Duration::from_secs(1) / config.packets_per_second.max(1),
        commands,
        queue: VecDeque::new(),
        running: HashMap::new(),
        probes: JoinSet::new(),
        next_start: Instant::now(),
    };
    let mut tasks = JoinSet::new();
    tasks.spawn(task.run(on_end));
    tasks
}

struct StreamTask {
    limit: Duration,
    source: Option<SocketAddr>,
    /// Minimum time between two starts.
    interval: Duration,
    commands: mpsc::UnboundedReceiver<StreamCommand>,
    queue: VecDeque<Probe>,
    running: HashMap<Probe, AbortHandle>,
    probes: JoinSet<StreamOutcome>,
    /// When the next probe may start.
    next_start: Instant,
}

impl StreamTask {
    async fn run(mut self, mut on_end: impl FnMut(StreamOutcome)) {
        loop {
            let can_start = !self.queue.is_empty() && self.probes.len() < MAX_CONNECTIONS;
            tokio::select! {
                command = self.commands.recv() => match command {
                    Some(StreamCommand::Start(probe)) => self.queue.push_back(probe),
                    Some(StreamCommand::Cancel(probe)) => self.cancel(&probe),
                    None => return,
                },
                // A probe that was cancelled is an error here, and has no outcome.
                Some(ended) = self.probes.join_next() => if let Ok(outcome) = ended {
                    self.running.remove(&outcome.0);
                    on_end(outcome);
                },
                () = sleep_until(self.next_start), if can_start => self.start(),
            }
        }
    }

    fn start(&mut self) {
        let Some(probe) = self.queue.pop_front() else { return };
        // Late by less than a second, the next starts make up for it: timers are not precise.
        let earliest = Instant::now().checked_sub(Duration::from_secs(1)).unwrap_or(self.next_start);
        self.next_start = self.next_start.max(earliest) + self.interval;
        let task = self.probes.spawn(run(probe, self.limit, self.source));
        self.running.insert(probe, task);
    }

    fn cancel(&mut self, probe: &Probe) {
        if let Some(task) = self.running.remove(probe) {
            task.abort();
        } else {
            self.queue.retain(|queued| queued != probe);
        }
    }
}

async fn run(probe: Probe, limit: Duration, source: Option<SocketAddr>) -> StreamOutcome {
    let failure = |error| ProbeFailure { error, address: Some(probe.address) };
    let result = match StreamProbe::new(probe, limit, source) {
        Ok(mut running) => match running.run().await {
            Ok(Some(result)) => Ok(result),
            Ok(None) => Err(failure(ProbeError::TimedOut(limit))),
            Err(error) => Err(failure(ProbeError::from_tcp(&error, limit))),
        },
        Err(StreamProbeError::NotProbed(error)) => Err(failure(error.into())),
        Err(StreamProbeError::Io(error)) => Err(failure(ProbeError::from_tcp(&error, limit))),
    };
    (probe, result)
}
