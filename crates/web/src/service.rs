//! The web server as a service.

use crate::{
    Live, Parts, StartError, WebOptions, WebSettings,
    admin::Refusals,
    book::{Book, Calendar},
    gate::Gate,
    keeper,
    masterlist::MasterList,
    metrics,
    serve::{self, Places, Server},
    shared::Shared,
    turns::Turns,
    verify::verify,
};
use arc_swap::ArcSwap;
use rallypoint_udp::entropy;
use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};
use tokio::{sync::watch, task::AbortHandle};

/// How long answers may take when the server ends.
const PATIENCE: Duration = Duration::from_secs(5);

/// A web server that runs. Clones are the same server; it ends with [`shutdown`](Self::shutdown), or with its runtime.
#[derive(Clone, Debug)]
pub struct WebService(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    addrs: Vec<SocketAddr>,
    shared: Arc<Shared>,
    server: Server,
    end: watch::Sender<bool>,
    tasks: Vec<AbortHandle>,
}

impl WebService {
    /// Starts a web server. When this returns it serves; if it fails, nothing of it is left. It has to be called within a
    /// runtime that has its I/O and time drivers.
    pub fn start(options: WebOptions, parts: Parts) -> Result<Self, StartError> {
        let listeners = serve::bind(&options)?;
        let (end, ending) = watch::channel(false);
        metrics::started();
        let now = Instant::now();
        let seed = entropy::u128()?;
        let epoch = u32::from_ne_bytes(entropy::bytes()?);
        let book = Book::new(now, Calendar::new(now, SystemTime::now()), epoch);
        let (live, told) = Live::new(Arc::clone(book.published()));
        let shared = Arc::new(Shared {
            lobby: parts.lobby.clone(),
            history: parts.history,
            admin: parts.admin,
            refusals: Refusals::new(seed),
            asker: parts.asker.clone(),
            live: Arc::new(live),
            master_list: MasterList::new(parts.asker.clone(), seed),
            prebuilt: Default::default(),
            settings: ArcSwap::from_pointee(options.settings),
            traffic: Default::default(),
            connections: Places::with(options.limits.connections, options.limits.per_address),
            listeners: Places::with(options.limits.listeners, options.limits.listeners_per_address),
            turns: Turns::default(),
            answers: Places::with(options.limits.answer_bytes, options.limits.answer_bytes_per_address),
            lists: Places::with(usize::MAX, options.limits.list_bytes_per_address),
            limits: options.limits,
            ending,
        });
        let keeper = tokio::spawn(keeper::keep(book, parts.lobby, Arc::clone(&shared.live), told));
        let verifier = parts.asker.map(|asker| tokio::spawn(verify(Arc::clone(&shared.live), asker, seed)));
        let tasks = [Some(keeper), verifier].into_iter().flatten().map(|task| task.abort_handle()).collect();
        let addrs = listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect();
        let gate = Gate::new(Arc::clone(&shared), seed);
        let server = Server::start(listeners, &shared, &gate);
        for addr in &addrs {
            tracing::info!(%addr, "listening for HTTP");
        }
        Ok(Self(Arc::new(Inner { addrs, shared, server, end, tasks })))
    }

    /// Where it listens: the real ports, also where port 0 was asked for.
    #[must_use]
    pub fn local_addrs(&self) -> &[SocketAddr] {
        &self.0.addrs
    }

    /// The servers as they are shown, and where to tell what was found out by asking them.
    #[must_use]
    pub fn live(&self) -> &Arc<Live> {
        &self.0.shared.live
    }

    /// Changes what can be changed while it runs.
    pub fn set_settings(&self, settings: WebSettings) {
        self.0.shared.settings.store(Arc::new(settings));
    }

    /// Stops taking connections, finishes answers (for at most 5 s), ends the streams of events. Calling it twice is
    /// harmless.
    pub async fn shutdown(&self) {
        self.0.end.send_replace(true);
        self.0.server.finish(PATIENCE).await;
        self.0.tasks.iter().for_each(AbortHandle::abort);
    }
}
