//! What all requests share.

use crate::{
    Admin, WebLimits, WebSettings, admin::Refusals, gate::Visitor, live::Live, metrics::Traffic, prebuilt::Prebuilt,
    serve::Places, turns::Turns,
};
use arc_swap::{ArcSwap, Guard};
use rallypoint_history::HistoryReader;
use rallypoint_lobby::LobbyService;
use std::sync::Arc;
use tokio::sync::watch;

/// What all requests share: the state of the router.
pub(crate) type Web = Arc<Shared>;

#[derive(Debug)]
pub(crate) struct Shared {
    pub lobby: LobbyService,
    pub history: Option<HistoryReader>,
    /// What the operator decides by HTTP, if that is possible.
    pub admin: Option<Admin>,
    /// Those who are not the operator.
    pub refusals: Refusals,
    pub live: Arc<Live>,
    pub prebuilt: Prebuilt,
    pub settings: ArcSwap<WebSettings>,
    pub limits: WebLimits,
    /// What was answered.
    pub traffic: Traffic,
    /// The places for connections.
    pub connections: Places,
    /// The places for those who listen to events.
    pub listeners: Places,
    /// Who may write a long answer now.
    pub turns: Turns,
    /// The bytes for answers that are made for one client each.
    pub answers: Places,
    /// The bytes for lists that are the same for all.
    pub lists: Places,
    /// True when it is time to end.
    pub ending: watch::Receiver<bool>,
}

impl Shared {
    pub fn settings(&self) -> Guard<Arc<WebSettings>> {
        self.settings.load()
    }

    /// Whether a visitor may have as much as it likes.
    pub fn is_exempt(&self, visitor: Visitor) -> bool {
        self.settings().exempt.iter().any(|net| net.contains(&visitor.ip))
    }
}
