//! The state that all requests share.

use crate::{
    ExportService, WebLimits, WebSettings,
    admin::AdminAccess,
    live::Live,
    middleware::{ClientAddr, ClientRateLimiter, UnnamedProxy, request_count::RequestCounters},
    page::FrontPage,
    prebuilt_lists::PrebuiltLists,
    render_limiter::RenderLimiter,
    server::Connection,
    site::SiteFiles,
    trends::Trends,
};
use arc_swap::{ArcSwap, Guard};
use rallypoint_history::HistoryReader;
use rallypoint_limit::{EvictingQuota, QuotaClient, QuotaLimits};
use rallypoint_lobby::LobbyService;
use std::{net::IpAddr, sync::Arc, time::Duration};
use tokio::sync::watch;

/// Age at which a response that its client has not received makes room for others.
const SLOW_READER: Duration = Duration::from_secs(1);

/// The state that all requests share.
#[derive(Debug)]
pub(crate) struct AppState {
    pub lobby: LobbyService,
    pub history: Option<HistoryReader>,
    pub export: Option<ExportService>,
    pub admin_access: AdminAccess,
    pub live: Arc<Live>,
    pub prebuilt_lists: PrebuiltLists,
    pub settings: ArcSwap<WebSettings>,
    /// The files that the settings name.
    pub site_files: ArcSwap<SiteFiles>,
    pub trends: ArcSwap<Trends>,
    pub limits: WebLimits,
    pub quotas: Quotas,
    pub rate_limiter: ClientRateLimiter,
    pub render_limiter: RenderLimiter,
    pub front_page: FrontPage,
    pub request_counters: RequestCounters,
    pub unnamed_proxy: UnnamedProxy,
    /// True once the server is shutting down.
    pub shutdown: watch::Receiver<bool>,
}

/// Quotas of resources that clients use, in total and by address.
#[derive(Debug)]
pub(crate) struct Quotas {
    /// Open connections.
    pub connections: EvictingQuota<Connection>,
    /// Open event streams.
    pub event_streams: EvictingQuota<Connection>,
    /// Bytes of responses that were made for one client each and that it has not received yet.
    pub response_bytes: EvictingQuota<Connection>,
    /// Bytes of prebuilt lists that a client has not received yet.
    pub shared_list_bytes: EvictingQuota<Connection>,
}

impl AppState {
    pub fn settings(&self) -> Guard<Arc<WebSettings>> {
        self.settings.load()
    }

    /// Whether a client is exempt from the limits per address. Clients of a proxy that does not name them are not, even if the
    /// proxy is.
    pub fn is_exempt(&self, client: ClientAddr) -> bool {
        !client.is_unnamed && self.is_exempt_network(client)
    }

    fn is_exempt_network(&self, client: ClientAddr) -> bool {
        self.settings().exempt.iter().any(|net| net.contains(&client.ip))
    }

    /// Records a request of a proxy that does not name its clients. Only proxies in exempt networks are recorded, such as one on
    /// this machine: any other client can claim to be a proxy.
    pub fn record_client(&self, client: ClientAddr) {
        if client.is_unnamed && self.is_exempt_network(client) {
            self.unnamed_proxy.record(client.ip);
        }
    }

    /// A client as the quotas see it.
    pub fn quota_client(&self, client: ClientAddr) -> QuotaClient {
        quota_client(client.ip, self.is_exempt(client))
    }

    /// Whether a peer is exempt from the limit of connections per address. A trusted proxy is, because it connects for many
    /// clients, whose requests are limited one by one.
    pub fn is_connection_exempt(&self, peer: IpAddr) -> bool {
        let peer = peer.to_canonical();
        let settings = self.settings();
        settings.exempt.iter().chain(&settings.trusted_proxies).any(|net| net.contains(&peer))
    }
}

/// A client as the quotas see it. Those of this machine and of exempt networks are evicted only by each other.
pub(crate) fn quota_client(ip: IpAddr, is_exempt: bool) -> QuotaClient {
    QuotaClient { ip, is_exempt, is_privileged: is_exempt || ip.to_canonical().is_loopback() }
}

impl Quotas {
    pub fn new(limits: &WebLimits) -> Self {
        let evicting = |max, max_per_client, min_age| {
            EvictingQuota::new(QuotaLimits { max, max_per_client, min_age, evicts_own: true })
        };
        let event_streams = QuotaLimits {
            max: limits.listeners,
            max_per_client: limits.listeners_per_address,
            min_age: Duration::ZERO,
            evicts_own: false,
        };
        Self {
            connections: evicting(limits.connections, limits.per_address, Duration::ZERO),
            event_streams: EvictingQuota::new(event_streams),
            response_bytes: evicting(limits.answer_bytes, limits.answer_bytes_per_address, SLOW_READER),
            shared_list_bytes: evicting(usize::MAX, limits.list_bytes_per_address, Duration::ZERO),
        }
    }
}
