//! How to list the servers while the lobby is down.

use super::lobby_host::LobbyHost;
use crate::{WebSettings, state::AppState};
use axum::http::HeaderMap;
use rallypoint_mirror::minisign::PublicKey;

/// The command that reads a copy of the list, and what it verifies the copy with.
pub(super) struct MirrorCard {
    /// The lobby, as the copy names it or as the visitor knows it.
    pub lobby: String,
    pub key: PublicKey,
    /// Where the copies are published, if the operator has set that.
    pub urls: Vec<String>,
}

impl MirrorCard {
    /// `None` if no copies are written.
    pub fn new(state: &AppState, headers: &HeaderMap, settings: &WebSettings) -> Option<Self> {
        let export = state.export.as_ref()?;
        let exported = export.settings();
        let host = exported.hosts.first().cloned();
        let lobby = host.unwrap_or_else(|| LobbyHost::new(state, headers, settings).to_string());
        Some(Self { lobby, key: export.public_key(), urls: exported.mirrors.clone() })
    }
}
