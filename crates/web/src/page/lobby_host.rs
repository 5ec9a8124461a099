//! The name of this lobby in the commands that its pages show.

use super::layout::site_url;
use crate::{WebSettings, state::AppState};
use axum::http::HeaderMap;
use rallypoint_lobby_proto::doors::LOBBY;
use std::{fmt, net::SocketAddr};

/// Host name of this lobby as the visitor knows it, with the lobby's port if it is not the default one.
pub(super) struct LobbyHost {
    pub host: String,
    pub port: Option<u16>,
}

impl LobbyHost {
    pub fn new(state: &AppState, headers: &HeaderMap, settings: &WebSettings) -> Self {
        let url = site_url(headers, settings);
        let authority = url.split("//").nth(1).unwrap_or_default().split('/').next().unwrap_or_default();
        let host = match authority.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => host,
            _ => authority,
        };
        let port = state.lobby.local_addrs()[&LOBBY].first().map(SocketAddr::port);
        Self { host: host.to_owned(), port: port.filter(|port| *port != rallypoint_wire::lobby::PORT) }
    }
}

impl fmt::Display for LobbyHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.host)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}
