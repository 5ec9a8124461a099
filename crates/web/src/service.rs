//! The web server as a service.

use crate::{
    WebOptions, WebSettings, WebSources, WebStartError,
    admin::AdminAccess,
    live::{self, Live},
    metrics,
    middleware::ClientRateLimiter,
    prebuilt_lists::PrebuiltLists,
    render_limiter::RenderLimiter,
    router::router,
    server::{self, Server},
    site::SiteFiles,
    state::{AppState, Quotas},
    trends,
};
use arc_swap::ArcSwap;
use rallypoint_udp::entropy;
use std::{net::SocketAddr, sync::Arc, time::Duration};
use tokio::{sync::watch, task::AbortHandle};

/// Time that responses have to finish when the server shuts down.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Fraction (1/8) of the lobby's memory cap for prebuilt lists and their compressed forms that are not being sent.
const PREBUILT_SHARE: usize = 8;

/// Fraction (1/8) of the lobby's memory cap for responses that were made for one client each and are not received yet, and for
/// outdated lists that slow readers keep from being freed, if the limits allow more; at least the longest page.
const ANSWER_SHARE: usize = 8;
const MIN_ANSWER_BYTES: usize = 4 << 20;

/// A running web server. Clones refer to the same server; it stops with [`shutdown`](Self::shutdown), or with its runtime.
///
/// The first page of this crate has an example.
#[derive(Clone, Debug)]
pub struct WebService(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    addrs: Vec<SocketAddr>,
    state: Arc<AppState>,
    server: Server,
    shutdown: watch::Sender<bool>,
    /// The tasks that follow the changes of the lobby and of the history.
    tasks: Vec<AbortHandle>,
}

impl WebService {
    /// Starts a web server. It accepts connections when this returns; if this fails, nothing is left behind. It has to be
    /// called within a runtime whose I/O and time drivers are enabled.
    pub fn start(mut options: WebOptions, sources: WebSources) -> Result<Self, WebStartError> {
        let listeners = server::bind(&options)?;
        let answer_bytes = (sources.lobby.memory_cap() / ANSWER_SHARE).max(MIN_ANSWER_BYTES);
        options.limits.answer_bytes = options.limits.answer_bytes.min(answer_bytes);
        let (shutdown, is_shut_down) = watch::channel(false);
        metrics::set_process_start();
        let seed = entropy::u128()?;
        let epoch = u32::from_ne_bytes(entropy::bytes()?);
        let live = Live::new(Arc::clone(sources.lobby.servers()), epoch);
        let state = Arc::new(AppState {
            lobby: sources.lobby.clone(),
            history: sources.history.clone(),
            export: sources.export,
            admin_access: AdminAccess::new(seed),
            live: Arc::new(live),
            prebuilt_lists: PrebuiltLists::new(
                sources.lobby.memory_cap() / PREBUILT_SHARE,
                options.limits.answer_bytes,
            ),
            site_files: ArcSwap::from_pointee(SiteFiles::load(&options.settings.site)),
            settings: ArcSwap::from_pointee(options.settings),
            trends: ArcSwap::default(),
            quotas: Quotas::new(&options.limits),
            rate_limiter: ClientRateLimiter::new(seed),
            render_limiter: RenderLimiter::default(),
            front_page: Default::default(),
            request_counters: Default::default(),
            unnamed_proxy: Default::default(),
            limits: options.limits,
            shutdown: is_shut_down,
        });
        let follower = tokio::spawn(live::follow(sources.lobby, Arc::clone(&state.live)));
        let trends = sources.history.map(|history| tokio::spawn(trends::refresh(history, Arc::clone(&state))));
        let tasks = std::iter::once(follower).chain(trends).map(|task| task.abort_handle()).collect();
        let addrs = listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect();
        let server = Server::start(listeners, &state, &router(Arc::clone(&state)));
        for addr in &addrs {
            tracing::info!(%addr, "listening for HTTP");
        }
        Ok(Self(Arc::new(Inner { addrs, state, server, shutdown, tasks })))
    }

    /// The addresses that it listens on, with the actual ports where port 0 was requested.
    #[must_use]
    pub fn local_addrs(&self) -> &[SocketAddr] {
        &self.0.addrs
    }

    /// Number of clients that follow live events.
    #[must_use]
    pub fn listeners(&self) -> usize {
        self.0.state.live.listeners()
    }

    /// Replaces the settings that can change while the server runs, and reads the files that they name again.
    pub fn set_settings(&self, settings: WebSettings) {
        self.0.state.site_files.store(Arc::new(SiteFiles::load(&settings.site)));
        self.0.state.settings.store(Arc::new(settings));
    }

    /// Stops accepting connections, closes event streams, and waits up to 5 s until responses are finished. Calling it twice is
    /// harmless.
    pub async fn shutdown(&self) {
        self.0.shutdown.send_replace(true);
        self.0.server.finish(SHUTDOWN_TIMEOUT).await;
        self.0.tasks.iter().for_each(AbortHandle::abort);
    }
}

#[cfg(test)]
mod tests;
