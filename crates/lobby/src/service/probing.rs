//! The parts of a lobby that probe game servers: verification, watched servers and Bloodmasters announcements.

use super::handle::RegistryHandle;
use crate::{
    announcement::Announcements,
    cluster::Duties,
    probe::ProbePool,
    table::ServerFeed,
    verify,
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
    verifier: AbortHandle,
}

impl Probing {
    /// Starts the verification of servers. The seed has to be unpredictable.
    pub fn start(
        sockets: usize,
        registry: RegistryHandle,
        feed: Arc<ServerFeed>,
        duties: Duties,
        seed: u128,
        runtime: &Handle,
    ) -> Self {
        let pool = ProbePool::new(sockets);
        let verify = verify::run(Arc::clone(&feed), registry.clone(), feed.subscribe(), pool.clone(), seed);
        let verifier = runtime.spawn(verify).abort_handle();
        let context = WatchContext { registry, pool: pool.clone(), feed, duties };
        let announcements = Announcements::new(context.clone(), seed.rotate_left(32));
        let watcher = Mutex::new(Some(Watcher::new(context, runtime.clone())));
        Self { pool, announcements, watcher, verifier }
    }

    /// Ends all tasks. Servers that are listed because they reply stay listed until their leases expire.
    pub async fn stop(&self) {
        self.verifier.abort();
        self.watcher.lock().await.take();
    }
}

impl Drop for Probing {
    fn drop(&mut self) {
        self.verifier.abort();
    }
}
