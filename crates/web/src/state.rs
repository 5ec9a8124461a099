//! The state that all requests share.

use crate::{
    WebLimits, WebSettings,
    admin::AdminAccess,
    live::Live,
    middleware::{ClientAddr, ClientRateLimiter, request_count::RequestCounters},
    prebuilt_lists::PrebuiltLists,
    render_limiter::RenderLimiter,
};
use arc_swap::{ArcSwap, Guard};
use rallypoint_history::HistoryReader;
use rallypoint_limit::Quota;
use rallypoint_lobby::LobbyService;
use std::{net::IpAddr, sync::Arc};
use tokio::sync::watch;

/// The state that all requests share.
#[derive(Debug)]
pub(crate) struct AppState {
    pub lobby: LobbyService,
    pub history: Option<HistoryReader>,
    pub admin_access: AdminAccess,
    pub live: Arc<Live>,
    pub prebuilt_lists: PrebuiltLists,
    pub settings: ArcSwap<WebSettings>,
    pub limits: WebLimits,
    pub quotas: Quotas,
    pub rate_limiter: ClientRateLimiter,
    pub render_limiter: RenderLimiter,
    pub request_counters: RequestCounters,
    /// True once the server is shutting down.
    pub shutdown: watch::Receiver<bool>,
}

/// What clients have in use, in total and by address.
#[derive(Debug)]
pub(crate) struct Quotas {
    /// Open connections.
    pub connections: Quota,
    /// Open event streams.
    pub event_streams: Quota,
    /// Bytes of responses that were made for one client each and that it has not received yet.
    pub response_bytes: Quota,
    /// Bytes of prebuilt lists that a client has not received yet.
    pub shared_list_bytes: Quota,
}

impl AppState {
    pub fn settings(&self) -> Guard<Arc<WebSettings>> {
        self.settings.load()
    }

    /// Whether a client is exempt from the limits per address.
    pub fn is_exempt(&self, client: ClientAddr) -> bool {
        self.settings().exempt.iter().any(|net| net.contains(&client.ip))
    }

    /// Whether a peer is exempt from the limit of connections per address. A trusted proxy is, because it connects for many
    /// clients, whose requests are limited one by one.
    pub fn is_connection_exempt(&self, peer: IpAddr) -> bool {
        let peer = peer.to_canonical();
        let settings = self.settings();
        settings.exempt.iter().chain(&settings.trusted_proxies).any(|net| net.contains(&peer))
    }
}

impl Quotas {
    pub fn new(limits: &WebLimits) -> Self {
        Self {
            connections: Quota::new(limits.connections, limits.per_address),
            event_streams: Quota::new(limits.listeners, limits.listeners_per_address),
            response_bytes: Quota::new(limits.answer_bytes, limits.answer_bytes_per_address),
            shared_list_bytes: Quota::new(usize::MAX, limits.list_bytes_per_address),
        }
    }
}
