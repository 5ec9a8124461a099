//! The parts of a lobby that probe game servers: verification, watched servers and Bloodmasters announcements.

use super::handle::RegistryHandle;
use crate::{
    announcement::Announcements,
    cluster::Duties,
    latency,
    probe::ProbePool,
    table::ServerFeed,
    verify::{self, VerifyContext},
    watch::{WatchContext, Watcher},
};
use std::sync::Arc;
use tokio::{runtime::Handle, sync::Mutex, task::AbortHandle};

/// Everything that probes game servers. The tasks end when this is dropped.
#[derive(Debug)]
pub(super) struct Probing {
    pub pool: ProbePool,
    pub announcements: Announcements,
    /// `None` after a shutdown.
    pub watcher: Mutex<Option<Watcher>>,
    /// Verification and, in a cluster, the measurement of latencies.
    tasks: Vec<AbortHandle>,
}

impl Probing {
    /// Starts the verification of servers. The seed has to be unpredictable.
    pub fn start(
        sockets: usize,
        registry: RegistryHandle,
        feed: Arc<ServerFeed>,
        node_name: Option<Arc<str>>,
        duties: Duties,
        seed: u128,
        runtime: &Handle,
    ) -> Self {
        let pool = ProbePool::new(sockets);
        let context = VerifyContext {
            feed: Arc::clone(&feed),
            registry: registry.clone(),
            pool: pool.clone(),
            duties: duties.clone(),
        };
        let verify = verify::run(context, feed.subscribe(), seed);
        let mut tasks = vec![runtime.spawn(verify).abort_handle()];
        if let Some(name) = node_name {
            let (feed, updates) = (Arc::clone(&feed), feed.subscribe());
            let measure = latency::run(name, feed, updates, pool.clone(), duties.clone(), seed.rotate_left(64));
            tasks.push(runtime.spawn(measure).abort_handle());
        }
        let context = WatchContext { registry, pool: pool.clone(), feed, duties };
        let announcements = Announcements::new(context.clone(), seed.rotate_left(32));
        let watcher = Mutex::new(Some(Watcher::new(context, runtime.clone())));
        Self { pool, announcements, watcher, tasks }
    }

    /// Ends all tasks. Servers that are listed because they reply stay listed until their leases expire.
    pub async fn stop(&self) {
        self.tasks.iter().for_each(AbortHandle::abort);
        self.watcher.lock().await.take();
    }
}

impl Drop for Probing {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}
