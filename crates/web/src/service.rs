//! The web server as a service.

use crate::{
    Parts, StartError, WebOptions, WebSettings,
    admin::Refusals,
    gate::Gate,
    live::{self, Live},
    metrics,
    serve::{self, Places, Server},
    shared::Shared,
    turns::Turns,
};
use arc_swap::ArcSwap;
use rallypoint_udp::entropy;
use std::{net::SocketAddr, sync::Arc, time::Duration};
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
    follower: AbortHandle,
}

impl WebService {
    /// Starts a web server. When this returns it serves; if it fails, nothing of it is left. It has to be called within a
    /// runtime that has its I/O and time drivers.
    pub fn start(options: WebOptions, parts: Parts) -> Result<Self, StartError> {
        let listeners = serve::bind(&options)?;
        let (end, ending) = watch::channel(false);
        metrics::started();
        let seed = entropy::u128()?;
        let epoch = u32::from_ne_bytes(entropy::bytes()?);
        let live = Live::new(Arc::clone(parts.lobby.servers()), epoch);
        let shared = Arc::new(Shared {
            lobby: parts.lobby.clone(),
            history: parts.history,
            admin: parts.admin,
            refusals: Refusals::new(seed),
            live: Arc::new(live),
            prebuilt: Default::default(),
            settings: ArcSwap::from_pointee(options.settings),
            traffic: Default::default(),
            connections: Places::new(options.limits.connections, options.limits.per_address),
            listeners: Places::new(options.limits.listeners, options.limits.listeners_per_address),
            turns: Turns::default(),
            answers: Places::new(options.limits.answer_bytes, options.limits.answer_bytes_per_address),
            lists: Places::new(usize::MAX, options.limits.list_bytes_per_address),
            limits: options.limits,
            ending,
        });
        let follower = tokio::spawn(live::follow(parts.lobby, Arc::clone(&shared.live))).abort_handle();
        let addrs = listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect();
        let gate = Gate::new(Arc::clone(&shared), seed);
        let server = Server::start(listeners, &shared, &gate);
        for addr in &addrs {
            tracing::info!(%addr, "listening for HTTP");
        }
        Ok(Self(Arc::new(Inner { addrs, shared, server, end, follower })))
    }

    /// Where it listens: the real ports, also where port 0 was asked for.
    #[must_use]
    pub fn local_addrs(&self) -> &[SocketAddr] {
        &self.0.addrs
    }

    /// Number of clients that listen to events.
    #[must_use]
    pub fn listeners(&self) -> usize {
        self.0.shared.live.listeners()
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
        self.0.follower.abort();
    }
}
